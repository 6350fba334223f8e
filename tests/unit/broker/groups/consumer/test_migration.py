"""Tests groups with members that change from the classic to the consumer protocol, and back."""

from __future__ import annotations

import pytest

from kproto.broker.consumer_group_settings import MigrationPolicy
from kproto.broker.groups import ClassicGroup, ClassicGroupState
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.unit.broker.groups.classic_group_driver import error_of

from .consumer_group_driver import REBALANCE_MS, ConsumerPlay, metadata

ALL_OF_T = {"t": [0, 1, 2, 3, 4, 5]}


def classic(play: ConsumerPlay) -> str:
    """Joins a classic member, to which all partitions of t are assigned; returns its id."""
    joined = play.join_classic("", "t")
    play.sync_classic(joined.member_id, joined.generation, ALL_OF_T)
    return joined.member_id


def mixed() -> tuple[ConsumerPlay, str]:
    """Returns a group, and the id of its classic member, to which all partitions of t are assigned.

    Member b has joined with the consumer protocol.
    """
    play = ConsumerPlay()
    member = classic(play)
    assert play.join("b", "t") == {}
    return play, member


def test_classic_group_is_upgraded_and_keeps_its_members() -> None:
    play, a = mixed()
    assert str(play.group.state) == "Reconciling"
    assert error_of(lambda: play.beat_classic(a, 1)) == "REBALANCE_IN_PROGRESS"
    assert play.sync_classic(a, 1).error == "REBALANCE_IN_PROGRESS"
    joined = play.join_classic(a, "t")
    assert (joined.error, joined.generation, joined.leader) == ("NONE", 2, "")
    assert play.sync_classic(a, joined.generation).error == "NONE"
    assert play.beat("b") == {"t": [3, 4, 5]}
    assert error_of(lambda: play.beat_classic(a, 2)) == "NONE"
    assert error_of(lambda: play.beat_classic(a, 1)) == "ILLEGAL_GENERATION"
    assert error_of(lambda: play.beat_classic("b", 2)) == "UNKNOWN_MEMBER_ID"
    assert str(play.group.state) == "Stable"


def test_classic_member_that_does_not_rejoin_is_fenced() -> None:
    play, a = mixed()
    assert error_of(lambda: play.beat_classic(a, 1)) == "REBALANCE_IN_PROGRESS"
    for _ in range(REBALANCE_MS // 10_000):
        play.wait(10_000)
        play.beat("b")
    assert list(play.group.members) == ["b"]
    play.own("b")
    assert play.owned["b"] == ALL_OF_T


def test_classic_member_without_sync_is_fenced() -> None:
    play, a = mixed()
    play.join_classic(a, "t")
    for _ in range(REBALANCE_MS // 10_000):
        play.wait(10_000)
        play.beat("b")
    assert list(play.group.members) == ["b"]


@pytest.mark.parametrize("how", ["leaves", "is out"])
def test_group_is_downgraded_when_last_consumer_member_leaves(how: str) -> None:
    play, a = mixed()
    play.join_classic(a, "t")
    play.sync_classic(a, 2)
    play.beat("b")
    if how == "leaves":
        play.leave("b")
    else:
        for _ in range(4):
            play.wait(9_000)
            play.beat_classic(a, 2)
        play.wait(9_000)
    group = play.classic_group
    assert (group.state, group.generation) == (ClassicGroupState.PREPARING_REBALANCE, 2)
    assert list(group.members) == [a]
    joined = play.join_classic(a, "t")
    assert (joined.error, joined.generation, joined.leader) == ("NONE", 3, a)
    play.sync_classic(a, 3, ALL_OF_T)
    play.move()
    assert play.classic_group.state is ClassicGroupState.STABLE


def test_new_coordinator_loads_mixed_group() -> None:
    play, a = mixed()
    before = play.group.persisted
    play.move()
    assert play.group.persisted == before
    play.join_classic(a, "t")
    play.leave("b")
    play.move()
    assert isinstance(play.any_group, ClassicGroup)


@pytest.mark.parametrize("policy", MigrationPolicy)
def test_migration_policy_allows_or_rejects_conversion(policy: MigrationPolicy) -> None:
    play = ConsumerPlay(migration=policy)
    classic(play)
    converted = error_of(lambda: play.join("b", "t"))
    assert converted == ("NONE" if policy.upgrades else "GROUP_ID_NOT_FOUND")
    other = ConsumerPlay(migration=policy)
    other.join("b", "t")
    joined = other.join_classic("", "t")
    refused = policy is MigrationPolicy.DISABLED
    assert joined.error == ("INCONSISTENT_GROUP_PROTOCOL" if refused else "NONE")
    other.leave("b")
    assert isinstance(other.any_group, ClassicGroup) is policy.downgrades


@pytest.mark.parametrize(
    ("protocol_type", "said", "assigned"),
    [
        pytest.param("connect", metadata("t"), b"", id="no consumers"),
        pytest.param("consumer", b"\0", b"", id="a subscription that cannot be read"),
        pytest.param("consumer", metadata("t"), b"\xff\xff", id="an assignment that cannot"),
        pytest.param(
            "consumer", metadata("t"), b"\0\1" + b"\0\0\0\0" + b"\0\0\0\1x", id="an assignor's own"
        ),
    ],
)
def test_inconvertible_group_stays_classic(
    protocol_type: str, said: bytes, assigned: bytes
) -> None:
    play = ConsumerPlay()
    classic(play)
    group = play.classic_group
    group.protocol_type = protocol_type
    (member,) = group.members.values()
    member.protocols = (member.protocols[0]._replace(metadata=said),)
    member.assignment = assigned
    log = list(play.log)
    assert error_of(lambda: play.join("b", "t")) == "GROUP_ID_NOT_FOUND"
    assert (play.any_group, play.log) == (group, log)


def test_subscription_without_the_fields_of_its_version_is_converted() -> None:
    """kafka-go sends subscriptions of version 1 without owned partitions."""
    play = ConsumerPlay()
    a = classic(play)
    (member,) = play.classic_group.members.values()
    subscription = b"\0\1" + ConsumerProtocolSubscription(topics=["t"]).encode(0)
    member.protocols = (member.protocols[0]._replace(metadata=subscription),)
    play.join("b", "t")
    assert play.group.members[a].topics == {"t"}
    assert play.join_classic(a, "t").error == "NONE"


def test_waiting_members_get_rebalance_in_progress_even_if_upgrade_fails() -> None:
    play = ConsumerPlay(delay_ms=3_000)
    first = play.ask_to_join("", "t")
    assert error_of(lambda: play.join("b", "t")) == "UNKNOWN_SERVER_ERROR"
    assert first.answer is not None
    assert (first.answer.member_id, first.answer.error) == ("m1", "REBALANCE_IN_PROGRESS")
    again, second = play.ask_to_join("m1", "t"), play.ask_to_join("", "t")
    play.wait(6_000)  # KIP-134: a join within the delay prolongs it
    assert play.classic_group.state is ClassicGroupState.COMPLETING_REBALANCE
    assert [it.answer and it.answer.generation for it in (again, second)] == [1, 1]
    waiting = play.ask_to_sync("m2", 1)
    play.join("b", "t")
    assert waiting.answer is not None
    assert waiting.answer.error == "REBALANCE_IN_PROGRESS"
    assert set(play.group.members) == {"m1", "m2", "b"}


def test_group_with_joining_member_of_other_protocol_is_not_upgraded() -> None:
    play = ConsumerPlay()
    joined = play.join_classic("", "t", names=("range", "sticky"))
    play.sync_classic(joined.member_id, joined.generation, ALL_OF_T)
    waiting = play.ask_to_join("", "t", names=("sticky",))
    assert error_of(lambda: play.join("b", "t")) == "UNKNOWN_SERVER_ERROR"
    assert waiting.answer is not None
    assert waiting.answer.error == "REBALANCE_IN_PROGRESS"


def test_oversized_group_is_not_upgraded() -> None:
    play = ConsumerPlay(max_size=0)
    classic(play)
    assert error_of(lambda: play.join("b", "t")) == "GROUP_ID_NOT_FOUND"


def test_empty_groups_are_replaced() -> None:
    play = ConsumerPlay()
    play.join("b", "t")
    offsets = play.group.offsets
    play.leave("b")
    joined = play.join_classic("", "t")
    assert play.classic_group.offsets is offsets
    play.sync_classic(joined.member_id, joined.generation, {})
    assert play.classic_group.state is ClassicGroupState.STABLE


def test_protocol_without_common_support_is_rejected() -> None:
    play, _ = mixed()
    asked = play.join_classic("", "t", requires_known_member_id=True)
    assert (asked.error, asked.member_id) == ("MEMBER_ID_REQUIRED", "m3")
    assert play.leave_classic("nobody", "b") == ["UNKNOWN_MEMBER_ID", "NONE"]
    assert play.any_group.type == "classic"
