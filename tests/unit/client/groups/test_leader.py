"""Tests which partitions a group leader assigns, and which topic changes the leader notices."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from kproto.client.groups.assignor import ASSIGNORS, Assignor
from kproto.client.groups.assignors.subscriptions import Subscription as MemberSubscription
from kproto.client.groups.leader import (
    compute_assignment,
    subscriptions_in,
    topic_error,
    topic_racks,
)
from kproto.client.groups.protocol_data import subscription_bytes
from kproto.client.groups.subscription import Subscription
from kproto.client.groups.topic_watch import MissingTopics, TopicWatch, partition_count
from kproto.client.metadata.cluster import Cluster, PartitionInfo, TopicInfo
from kproto.messages.join_group_response import JoinGroupResponseMember
from kproto.protocol.error_codes import code_of
from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import ZERO_UUID

NO_RACKS: frozenset[str] = frozenset()


def info(name: str, partitions: int | tuple[int, ...] = 1, error: str = "NONE") -> TopicInfo:
    numbers = range(partitions) if isinstance(partitions, int) else partitions
    parts = {at: PartitionInfo(at, 1, 0, (1, 2), (1,)) for at in numbers}
    return TopicInfo(name, ZERO_UUID, parts, error_code=code_of(error))


# Subscriptions of members


def test_leader_reads_the_subscriptions_of_members() -> None:
    parsed = subscriptions_in(
        [
            JoinGroupResponseMember(
                member_id="a",
                group_instance_id="i",
                metadata=subscription_bytes(MemberSubscription(("t", "u"), [("t", 1)], 3, "r")),
            ),
            JoinGroupResponseMember(
                member_id="b", metadata=subscription_bytes(MemberSubscription(("v",)))
            ),
        ]
    )
    assert parsed.members["a"] == MemberSubscription(("t", "u"), [("t", 1)], 3, "r", "i")
    assert parsed.topics == {"t", "u", "v"}
    assert parsed.unreadable == {}


def test_leader_reads_version_1_without_owned_partitions() -> None:
    """kafka-go and older releases of sarama send version 1 without owned partitions."""
    whole = subscription_bytes(MemberSubscription(("t",)))
    topics_and_null_user_data = whole[2 : 2 + 4 + 3 + 4]
    member = JoinGroupResponseMember(member_id="a", metadata=b"\0\1" + topics_and_null_user_data)
    parsed = subscriptions_in([member])
    assert parsed.members == {"a": MemberSubscription(("t",), [])}
    assert parsed.unreadable == {}


def test_member_with_malformed_metadata_gets_no_partitions() -> None:
    broken = JoinGroupResponseMember(member_id="b", metadata=b"\0")
    whole = JoinGroupResponseMember(
        member_id="a", metadata=subscription_bytes(MemberSubscription(("t",)))
    )
    parsed = subscriptions_in([broken, whole])
    assert list(parsed.unreadable) == ["b"]
    found = compute_assignment(ASSIGNORS["range"], {"t": [NO_RACKS]}, parsed.members)
    assert found == {"a": [("t", 0)], "b": []}


def test_topics_are_described_with_the_racks_of_their_replicas() -> None:
    cluster = Cluster(racks={1: "x", 2: "y"})
    topics = [info("t", 2), info("u", 0, "UNKNOWN_TOPIC_OR_PARTITION"), info("v", (0, 2))]
    both = frozenset({"x", "y"})
    assert topic_racks(topics, cluster) == {"t": [both, both], "v": [both]}
    assert topic_racks([info("t")], Cluster(racks={2: "y"})) == {"t": [frozenset({"y"})]}


def test_unauthorized_topic_is_an_error_for_its_subscriber() -> None:
    topics = [info("t"), info("secret", 0, "TOPIC_AUTHORIZATION_FAILED")]
    assert topic_error(topics, ["t"]) is None
    error = topic_error(topics, ["t", "secret"])
    assert error is not None
    assert error.name == "TOPIC_AUTHORIZATION_FAILED"
    assert topic_error([info("t", 0, "UNKNOWN_TOPIC_OR_PARTITION")], ["t"]) is None


# Assigning


def test_assignor_gets_only_subscribed_topics() -> None:
    seen: list[Any] = []

    def mine(topics: Any, members: Any) -> dict[str, Any]:
        seen.append(dict(topics))
        return {"a": [("t", 0)]}

    members = {"a": MemberSubscription(("t", "gone")), "b": MemberSubscription(("t",))}
    found = compute_assignment(Assignor("mine", mine), {"t": [NO_RACKS], "u": [NO_RACKS]}, members)
    assert seen == [{"t": [NO_RACKS]}]
    assert found == {"a": [("t", 0)], "b": []}


WRONG: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda topics, members: {"c": []}, "'c', which is no member"),
    (lambda topics, members: {"a": ["t"]}, "no partition as (topic, number)"),
    (lambda topics, members: {"a": [("t", "0")]}, "no partition as (topic, number)"),
    (lambda topics, members: {"a": [([], 0)]}, "no partition as (topic, number)"),
    (lambda topics, members: {"a": [("t", 2)]}, "t[2], which does not exist"),
    (lambda topics, members: {"a": [("t", -1)]}, "t[-1], which does not exist"),
    (lambda topics, members: {"a": [("v", 0)]}, "v[0], which does not exist"),
    (lambda topics, members: {"b": [("u", 0)]}, "'b', which does not subscribe to 'u'"),
    (lambda topics, members: {"a": [("t", 0)], "b": [("t", 0)]}, "t[0] to 'a' and to 'b'"),
    (lambda topics, members: {"a": [("t", 0), ("t", 0)]}, "t[0] to 'a' and to 'a'"),
    (lambda topics, members: None, "raised"),
    (lambda topics, members: members["x"], "raised KeyError('x')"),
]


@pytest.mark.parametrize(("mine", "words"), WRONG)
def test_wrong_result_of_a_custom_assignor_is_refused(mine: Any, words: str) -> None:
    members = {"a": MemberSubscription(("t", "u")), "b": MemberSubscription(("t",))}
    topics = {"t": [NO_RACKS] * 2, "u": [NO_RACKS]}
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        compute_assignment(Assignor("mine", mine), topics, members)


def test_custom_cooperative_assignor_may_not_move_an_owned_partition() -> None:
    members = {"a": MemberSubscription(("t",), [("t", 0)]), "b": MemberSubscription(("t",))}
    topics = {"t": [NO_RACKS] * 2}

    def moves(topics: Any, members: Any) -> dict[str, Any]:
        return {"b": [("t", 0), ("t", 1)]}

    with pytest.raises(ConfigurationError, match="leave it out once"):
        compute_assignment(Assignor("mine", moves, cooperative=True), topics, members)
    assert compute_assignment(Assignor("mine", moves), topics, members)["b"] == [("t", 0), ("t", 1)]

    def stays(topics: Any, members: Any) -> dict[str, Any]:
        return {"a": [("t", 0)], "b": [("t", 1)]}

    found = compute_assignment(Assignor("mine", stays, cooperative=True), topics, members)
    assert found == {"a": [("t", 0)], "b": [("t", 1)]}


# Watching topics


def led(*topics: TopicInfo, wanted: tuple[str, ...] = ()) -> TopicWatch:
    watch = TopicWatch()
    names = wanted or tuple(each.name for each in topics)
    watch.joined(Subscription.to(names), frozenset(names))
    watch.lead(names, topic_racks(topics, Cluster()))
    return watch


def test_leader_notices_new_partitions_of_the_groups_topics() -> None:
    watch = led(info("t", 2), info("u", 1))
    assert watch.topics == frozenset({"t", "u"})
    same = {"t": info("t", 2), "u": info("u", 1), "v": info("v", 9)}
    assert watch.rejoin_reason(same) is None
    assert (
        watch.rejoin_reason({"u": info("u", 1)}) is None
    )  # a topic missing in metadata may still exist
    more = watch.rejoin_reason(same | {"t": info("t", 3)})
    assert more == "topic t has 3 partitions, and had 2"
    assert watch.rejoin_reason_in_response([info("t", 3)], whole=False) == more


def test_leader_notices_a_created_topic() -> None:
    watch = led(info("t", 2), wanted=("t", "u"))
    assert watch.missing == {"u"}
    missing = info("u", 0, "UNKNOWN_TOPIC_OR_PARTITION")
    assert watch.rejoin_reason_in_response([missing], whole=False) is None
    assert (
        watch.rejoin_reason_in_response([info("u", 0, "LEADER_NOT_AVAILABLE")], whole=False) is None
    )
    assert (
        watch.rejoin_reason_in_response([info("u", 1)], whole=False)
        == "topic u has 1 partition, and had 0"
    )


def test_leader_notices_a_deleted_topic() -> None:
    watch = led(info("t", 2))
    gone = info("t", 0, "UNKNOWN_TOPIC_OR_PARTITION")
    assert (
        watch.rejoin_reason_in_response([gone], whole=False)
        == "topic t has 0 partitions, and had 2"
    )
    assert watch.rejoin_reason_in_response([], whole=True) is not None
    assert watch.rejoin_reason_in_response([], whole=False) is None
    assert (
        watch.rejoin_reason_in_response([info("t", 0, "LEADER_NOT_AVAILABLE")], whole=False) is None
    )


def test_partitions_after_a_gap_are_not_counted() -> None:
    assert partition_count(info("t", (0, 1, 3))) == 2
    watch = led(info("t", (0, 1, 3)))
    assert watch.rejoin_reason({"t": info("t", (0, 1, 3))}) is None
    assert watch.rejoin_reason({"t": info("t", 4)}) is not None


def test_follower_does_not_watch_topics_by_name() -> None:
    watch = led(info("t", 2))
    watch.joined(Subscription.to("t"), frozenset({"t"}))
    assert watch.topics == frozenset()
    assert watch.rejoin_reason({"t": info("t", 3)}) is None


def test_every_member_watches_its_pattern() -> None:
    watch = TopicWatch()
    watch.joined(Subscription.to(re.compile("o-.*")), frozenset({"o-a", "o-b"}))
    assert watch.topics is None
    assert (
        watch.rejoin_reason({"x": info("x")}) is None
    )  # metadata may lack the other topics for a short time
    assert watch.rejoin_reason({"o-c": info("o-c")}) == (
        "the topics of the pattern have changed: o-c matches"
    )
    assert (
        watch.rejoin_reason_in_response([info("o-a"), info("o-b"), info("x")], whole=True) is None
    )
    assert watch.rejoin_reason_in_response([info("o-a"), info("x")], whole=True) == (
        "the topics of the pattern have changed: o-b is gone"
    )
    unsure = [info("o-a"), info("o-b", 0, "LEADER_NOT_AVAILABLE")]
    assert watch.rejoin_reason_in_response(unsure, whole=True) is None


# Missing topics


def test_missing_topic_is_reported_once_until_it_exists() -> None:
    missing_topics = MissingTopics(5)
    wanted = {"typo", "t"}
    gone = info("typo", 0, "UNKNOWN_TOPIC_OR_PARTITION")
    other = info("of others", 0, "UNKNOWN_TOPIC_OR_PARTITION")
    assert missing_topics.next_report_at == float("inf")
    assert missing_topics.to_report(wanted, [gone, info("t"), other], {"t"}, 1.0) == []
    assert missing_topics.next_report_at == 6.0
    assert missing_topics.to_report(wanted, [gone], {"t"}, 5.9) == []
    assert missing_topics.to_report(wanted, [], {"t"}, 7.0) == [], "no broker has answered"
    assert missing_topics.next_report_at == 6.0
    assert missing_topics.to_report(wanted, [gone, other], {"t"}, 8.0) == ["typo"]
    assert missing_topics.next_report_at == float("inf")
    assert missing_topics.to_report(wanted, [gone], {"t"}, 99.0) == []
    assert missing_topics.to_report(wanted, [], {"t", "typo"}, 100.0) == []
    assert missing_topics.to_report(wanted, [gone], {"t"}, 200.0) == []
    assert missing_topics.to_report(wanted, [gone], {"t"}, 205.0) == ["typo"]


def test_unsubscribed_topic_is_forgotten() -> None:
    missing_topics = MissingTopics(5)
    gone = info("typo", 0, "UNKNOWN_TOPIC_OR_PARTITION")
    assert missing_topics.to_report({"typo"}, [gone], (), 0.0) == []
    assert missing_topics.to_report({"t"}, [gone], (), 9.0) == []
    assert missing_topics.next_report_at == float("inf")
