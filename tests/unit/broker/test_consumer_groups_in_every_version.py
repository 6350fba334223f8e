"""Tests the APIs of consumer protocol groups in each version, over a socket (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kproto.broker import BrokerSettings, Cluster
from kproto.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kproto.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.protocol.error_codes import error_code
from kproto.wire.uuid import Uuid
from tests.support.embedded import (
    ThreadedBroker,
    ThreadedCluster,
    threaded_broker,
    threaded_cluster,
)
from tests.support.raw_connection import RawConnection


def error(answer: Any) -> str:
    return error_code(answer.error_code).name


@pytest.fixture(autouse=True)
def topic_id(broker: ThreadedBroker, connection: RawConnection) -> Uuid:
    """Sends FindCoordinator, so that group g has a coordinator; creates topic t, returns its id."""
    connection.exchange(FindCoordinatorRequest(key="g"), 0)
    broker.call(lambda it: it.create_topic("t", partitions=2))
    return broker.topic_id("t")


def beat(epoch: int, member_id: str = "m", **fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, **fields
    )


def first(member_id: str = "m", **fields: Any) -> ConsumerGroupHeartbeatRequest:
    given = {"subscribed_topic_names": ["t"], **fields}
    return beat(0, member_id, rebalance_timeout_ms=60_000, topic_partitions=[], **given)


def join(connection: RawConnection, version: int = 1, **fields: Any) -> Any:
    answer = connection.exchange(first(**fields), version)
    assert error(answer) == "NONE"
    return answer


@pytest.mark.parametrize("version", ConsumerGroupHeartbeatRequest.VALID_VERSIONS)
def test_consumer_group_heartbeat(connection: RawConnection, version: int, topic_id: Uuid) -> None:
    joined = join(connection, version)
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("m", 2, 5_000)
    held = [(it.topic_id, list(it.partitions)) for it in joined.assignment.topic_partitions]
    assert held == [(topic_id, [0, 1])]
    owned = [TopicPartitions(topic_id=topic_id, partitions=[0, 1])]
    again = connection.exchange(beat(2, topic_partitions=owned), version)
    assert (error(again), again.member_epoch, again.assignment) == ("NONE", 2, None)
    fenced = connection.exchange(beat(3), version)
    assert (error(fenced), bool(fenced.error_message)) == ("FENCED_MEMBER_EPOCH", True)
    left = connection.exchange(beat(-1), version)
    assert (error(left), left.member_epoch) == ("NONE", -1)
    assert error(connection.exchange(beat(2), version)) == "UNKNOWN_MEMBER_ID"


def test_member_id_is_generated_by_version(connection: RawConnection) -> None:
    assert len(join(connection, 0, member_id="").member_id) == 22
    assert error(connection.exchange(first(""), 1)) == "INVALID_REQUEST"


def test_regex_subscription_needs_v1(connection: RawConnection) -> None:
    join(connection, 1, subscribed_topic_names=None, subscribed_topic_regex="t|u")
    assigned: Any = connection.exchange(beat(1), 1)
    assert [list(it.partitions) for it in assigned.assignment.topic_partitions] == [[0, 1]]
    invalid = first("n", subscribed_topic_names=None, subscribed_topic_regex="(?=t)")
    assert error(connection.exchange(invalid, 1)) == "INVALID_REGULAR_EXPRESSION"


@pytest.mark.parametrize("version", ConsumerGroupDescribeRequest.VALID_VERSIONS)
def test_consumer_group_describe(connection: RawConnection, version: int) -> None:
    join(connection, instance_id="i", rack_id="r")
    request = ConsumerGroupDescribeRequest(
        group_ids=["g", "nope", ""], include_authorized_operations=True
    )
    found = {it.group_id: it for it in connection.exchange(request, version).groups}
    assert [error(found[it]) for it in ("g", "nope", "")] == [
        "NONE",
        "GROUP_ID_NOT_FOUND",
        "INVALID_GROUP_ID",
    ]
    group = found["g"]
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert (group.assignor_name, group.authorized_operations > 0) == ("uniform", True)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.client_id, member.client_host) == ("raw", "/127.0.0.1")
    assert list(member.subscribed_topic_names) == ["t"]
    for part in (member.assignment, member.target_assignment):
        assert [(it.topic_name, list(it.partitions)) for it in part.topic_partitions] == [
            ("t", [0, 1])
        ]
    assert member.member_type == (1 if version else -1)


@pytest.mark.parametrize("version", DescribeGroupsRequest.VALID_VERSIONS)
def test_describe_groups_does_not_find_consumer_groups(
    connection: RawConnection, version: int
) -> None:
    join(connection)
    request = DescribeGroupsRequest(groups=["g"])
    (group,) = connection.exchange(request, version).groups
    expected = "GROUP_ID_NOT_FOUND" if version >= 6 else "NONE"
    assert (error(group), group.group_state) == (expected, "Dead")


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        ((), (), True),
        (("Stable",), ("Consumer",), True),
        (("stable", "reconciling"), (), True),
        (("empty",), (), False),
        ((), ("classic",), False),
    ],
)
def test_list_groups(
    connection: RawConnection, states: tuple[str, ...], types: tuple[str, ...], *, found: bool
) -> None:
    join(connection)
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    listed = [
        (it.group_id, it.protocol_type, it.group_state, it.group_type)
        for it in connection.exchange(request, 5).groups
    ]
    assert listed == [("g", "consumer", "Stable", "consumer")] * found


def test_groups_with_members_are_not_deleted(connection: RawConnection) -> None:
    join(connection)
    delete = DeleteGroupsRequest(groups_names=["g"])
    (result,) = connection.exchange(delete, 2).results
    assert error(result) == "NON_EMPTY_GROUP"
    connection.exchange(beat(-1), 1)
    (result,) = connection.exchange(delete, 2).results
    assert error(result) == "NONE"
    assert not connection.exchange(ListGroupsRequest(), 5).groups


def commit(epoch: int, version: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    return OffsetCommitRequest(
        group_id="g", member_id="m", generation_id_or_member_epoch=epoch, topics=[topic]
    )


@pytest.mark.parametrize("version", range(1, 10))
def test_commits_have_member_epoch_since_v9(connection: RawConnection, version: int) -> None:
    join(connection)
    answer = connection.exchange(commit(2, version), version)
    code = error(answer.topics[0].partitions[0])
    assert code == ("NONE" if version >= 9 else "UNSUPPORTED_VERSION")


@pytest.mark.parametrize("version", range(8, 11))
def test_offset_fetches_have_member_epoch_since_v9(connection: RawConnection, version: int) -> None:
    join(connection)
    connection.exchange(commit(2, 9), 9)
    wanted = OffsetFetchRequestGroup(group_id="g", topics=None)
    (group,) = connection.exchange(OffsetFetchRequest(groups=[wanted]), version).groups
    assert [it.committed_offset for topic in group.topics for it in topic.partitions] == [5]
    if version >= 9:
        wanted.member_id, wanted.member_epoch = "m", 1
        (group,) = connection.exchange(OffsetFetchRequest(groups=[wanted]), version).groups
        assert error(group) == "STALE_MEMBER_EPOCH"


def test_offsets_of_subscribed_topics_are_not_deleted(connection: RawConnection) -> None:
    join(connection)
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topics = [OffsetDeleteRequestTopic(name="t", partitions=[partition])]
    answer = connection.exchange(OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert error(answer.topics[0].partitions[0]) == "GROUP_SUBSCRIBED_TO_TOPIC"


def test_a_member_of_the_classic_protocol_joins_at_once(connection: RawConnection) -> None:
    join(connection)
    said = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=said)],
    )
    required = connection.exchange(request, 9)
    assert error(required) == "MEMBER_ID_REQUIRED"
    request.member_id = required.member_id
    joined = connection.exchange(request, 9)
    assert (error(joined), joined.generation_id, list(joined.members)) == ("NONE", 3, [])


@pytest.mark.parametrize(
    ("settings", "answered"),
    [
        (BrokerSettings(), "NONE"),
        (BrokerSettings(release="4.0"), "NONE"),
        (BrokerSettings(release="3.9.2"), "UNSUPPORTED_VERSION"),
        (
            BrokerSettings(
                release="3.9.2", group_coordinator_rebalance_protocols=("classic", "consumer")
            ),
            "NONE",
        ),
        (
            BrokerSettings(group_coordinator_rebalance_protocols=("classic",)),
            "UNSUPPORTED_VERSION",
        ),
    ],
)
def test_consumer_protocol_can_be_disabled(settings: BrokerSettings, answered: str) -> None:
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:
        connection.exchange(FindCoordinatorRequest(key="g"), 0)
        assert error(connection.exchange(first(), 0)) == answered
        (group,) = connection.exchange(ConsumerGroupDescribeRequest(group_ids=["g"]), 0).groups
        assert error(group) == answered


def test_groups_move_with_their_coordinator() -> None:
    with threaded_cluster(2) as cluster:
        cluster.call(lambda it: it.create_topic("t", partitions=2))
        old, where = coordinator(cluster)
        with RawConnection(where) as connection:
            assert error(connection.exchange(first(), 1)) == "NONE"
            for index in range(50):
                cluster.call(partial(move, index=index, node=3 - old))
            assert error(connection.exchange(beat(2), 1)) == "NOT_COORDINATOR"
        new, where = coordinator(cluster)
        with RawConnection(where) as connection:
            answer = connection.exchange(beat(2), 1)
            assert (new, error(answer), answer.member_epoch) == (3 - old, "NONE", 2)


def coordinator(cluster: ThreadedCluster) -> tuple[int, str]:
    with RawConnection(cluster.bootstrap) as asking:
        found = asking.exchange(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    (its,) = found.coordinators
    return its.node_id, f"{its.host}:{its.port}"


def move(cluster: Cluster, index: int, node: int) -> None:
    cluster.move_leader("__consumer_offsets", index, node)
