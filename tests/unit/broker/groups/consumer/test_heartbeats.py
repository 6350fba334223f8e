"""Tests heartbeats of the consumer protocol: epochs, target and current assignments."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker.groups.consumer import ConsumerHeartbeat, validate_heartbeat
from kproto.broker.groups.consumer.persisted_state import ConsumerGroupState
from tests.unit.broker.groups.classic_group_driver import error_of

from .consumer_group_driver import ConsumerPlay

EMPTY, ASSIGNING, RECONCILING, STABLE, DEAD = ConsumerGroupState
ALL_OF_T = {"t": [0, 1, 2, 3, 4, 5]}


def test_single_member_gets_all_partitions() -> None:
    play = ConsumerPlay()
    assert play.join("a", "t") == ALL_OF_T
    assert (play.epochs["a"], play.group.state, play.group.persisted.epoch) == (2, STABLE, 2)
    assert play.beat("a") is None
    assert play.own("a", topics=["t"], rebalance_ms=1) == ALL_OF_T, (
        "a full request gets a full response"
    )


def test_partition_moves_after_its_owner_revoked_it() -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    assert play.join("b", "t") == {}
    assert (play.epochs["b"], play.group.state) == (3, RECONCILING)
    assert play.beat("b") is None
    assert play.beat("a") == {"t": [0, 1, 2]}
    assert play.epochs["a"] == 2, "until the owner has revoked it"
    assert play.beat("a", owned=ALL_OF_T) is None
    assert play.beat("b") is None
    assert play.own("a") is None
    assert (play.epochs["a"], play.beat("b")) == (3, {"t": [3, 4, 5]})
    assert play.group.state is STABLE


def test_partitions_of_members_that_leave_are_assigned_again() -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    play.join("b", "t")
    play.share("a", "b")
    play.leave("b")
    assert play.group.state is ASSIGNING
    assert play.own("a") == ALL_OF_T
    play.leave("a")
    assert (play.group.state, play.group.persisted.target_epoch) == (
        EMPTY,
        play.group.persisted.epoch,
    )
    assert error_of(lambda: play.beat("a", 5)) == "UNKNOWN_MEMBER_ID"
    assert error_of(lambda: play.beat("a", -1)) == "UNKNOWN_MEMBER_ID"


def test_created_and_deleted_topics_change_assignments() -> None:
    play = ConsumerPlay()
    assert play.join("a", "t", "new") == ALL_OF_T
    play.create("new", 2)
    assert play.beat("a") == {**ALL_OF_T, "new": [0, 1]}
    play.topics.remove(play.topics.named("t"))
    assert play.beat("a") == {"new": [0, 1]}


def test_unsubscribed_partitions_are_revoked_at_once() -> None:
    play = ConsumerPlay(assignment_interval_ms=10_000)
    play.join("a", "t", "u")
    assert play.beat("a", topics=["u"]) == {"u": [0, 1, 2]}
    assert play.group.state is ASSIGNING, "the assignor runs later"
    assert play.own("a") is None
    play.wait(10_000)
    play.own("a")
    assert play.group.state is STABLE


def test_assignment_interval_limits_target_assignments() -> None:
    play = ConsumerPlay(assignment_interval_ms=1_000)
    play.join("a", "t")
    assert play.join("b", "t") == {}
    assert (play.epochs["b"], play.group.state) == (2, ASSIGNING)
    play.wait(999)
    assert play.beat("a") is None
    play.wait(1)
    assert play.beat("a") == {"t": [0, 1, 2]}


def test_most_preferred_assignor_is_used() -> None:
    play = ConsumerPlay()
    play.join("a", "t", assignor="range")
    assert play.group.assignor == "range"
    play.join("b", "t")
    assert play.group.assignor == "range"
    before = play.group.persisted.epoch
    play.join("c", "t", assignor="uniform")
    assert (play.group.assignor, play.group.persisted.epoch) == ("uniform", before + 1)
    play.beat("c", assignor="range")
    assert (play.group.assignor, play.group.persisted.epoch) == ("range", before + 2)


def test_member_without_subscription_does_not_change_homogeneity() -> None:
    play = ConsumerPlay(assignors=("range",))
    play.join("a", "t")
    play.join("b")
    play.leave("b")  # a new epoch, for which no target assignment exists yet
    assert play.group.state == "Assigning"
    play.join("c")  # now it exists, computed as if all members had one subscription
    assert play.own("a") == {"t": [0, 1, 2]}
    # A changed subscription: the coordinator compares the members' subscriptions.
    assert play.beat("a", topics=["u"], owned={}) == {"u": [0, 1, 2]}


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        pytest.param(4, None, "FENCED_MEMBER_EPOCH", id="greater"),
        pytest.param(1, {}, "FENCED_MEMBER_EPOCH", id="long ago"),
        pytest.param(2, None, "FENCED_MEMBER_EPOCH", id="of before, and it says not what it holds"),
        pytest.param(2, {"t": [0, 3]}, "FENCED_MEMBER_EPOCH", id="of before, and it holds more"),
        pytest.param(2, {"u": []}, "FENCED_MEMBER_EPOCH", id="of before, and it holds another"),
        pytest.param(2, {"t": [0, 1]}, "NONE", id="of before, as the answer was lost"),
        pytest.param(3, None, "NONE", id="the right one"),
        pytest.param(0, {}, "NONE", id="it begins anew"),
    ],
)
def test_member_epochs_are_validated(epoch: int, owned: Any, error: str) -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    play.join("b", "t")
    play.share("a", "b")
    assert play.epochs["a"] == 3
    assert error_of(lambda: play.beat("a", epoch, owned=owned)) == error


def test_full_group_rejects_member() -> None:
    play = ConsumerPlay(max_size=2)
    play.join("a", "t")
    play.join("b", "t", instance_id="i")
    assert error_of(lambda: play.join("c", "t")) == "GROUP_MAX_SIZE_REACHED"
    assert error_of(lambda: play.join("c", "t", instance_id="i")) == "UNRELEASED_INSTANCE_ID"
    assert error_of(lambda: play.join("a", "t")) == "NONE"


def test_change_is_reverted_if_its_write_fails() -> None:
    play = ConsumerPlay()
    play.join("a", "t")
    before, log = play.group.persisted, list(play.log)
    play.refuses = "NOT_COORDINATOR"
    assert error_of(lambda: play.join("b", "t")) == "NOT_COORDINATOR"
    assert error_of(lambda: play.beat("a", -1)) == "NOT_COORDINATOR"
    assert (play.group.persisted, play.log) == (before, log)
    play.refuses = ""
    assert play.join("b", "t") == {}


def test_group_is_not_created_if_its_write_fails() -> None:
    play = ConsumerPlay()
    play.refuses = "NOT_COORDINATOR"
    assert error_of(lambda: play.join("a", "t")) == "NOT_COORDINATOR"
    assert play.groups.find("g", play.now) is None


FIRST: dict[str, Any] = {
    "member_id": "m",
    "epoch": 0,
    "rebalance_timeout_ms": 1,
    "topics": frozenset({"t"}),
    "owned": {},
}
LATER: dict[str, Any] = {"member_id": "m", "epoch": 1}


@pytest.mark.parametrize(
    ("asked", "version", "error"),
    [
        (FIRST, 0, "NONE"),
        (FIRST | {"topics": None, "regex": ""}, 1, "NONE"),
        (FIRST | {"member_id": ""}, 0, "NONE"),
        (FIRST | {"member_id": ""}, 1, "INVALID_REQUEST"),
        (FIRST | {"rebalance_timeout_ms": -1}, 1, "INVALID_REQUEST"),
        (FIRST | {"owned": None}, 1, "INVALID_REQUEST"),
        (FIRST | {"owned": {b"t" * 16: frozenset({0})}}, 1, "INVALID_REQUEST"),
        (FIRST | {"topics": None}, 1, "INVALID_REQUEST"),
        (FIRST | {"instance_id": " "}, 1, "INVALID_REQUEST"),
        (FIRST | {"rack": ""}, 1, "INVALID_REQUEST"),
        (FIRST | {"assignor": "sticky"}, 1, "UNSUPPORTED_ASSIGNOR"),
        (FIRST | {"assignor": "range"}, 1, "NONE"),
        (LATER, 0, "NONE"),
        (LATER | {"member_id": ""}, 0, "INVALID_REQUEST"),
        (LATER | {"epoch": -1, "member_id": ""}, 0, "INVALID_REQUEST"),
        (LATER | {"epoch": -2}, 1, "INVALID_REQUEST"),
        (LATER | {"epoch": -2, "instance_id": "i"}, 1, "NONE"),
        (LATER | {"epoch": -3}, 1, "INVALID_REQUEST"),
    ],
)
def test_invalid_heartbeat_is_rejected(asked: dict[str, Any], version: int, error: str) -> None:
    heartbeat = ConsumerHeartbeat(**asked)
    assert (
        error_of(lambda: validate_heartbeat("g", heartbeat, version, ("uniform", "range"))) == error
    )
    assert error_of(lambda: validate_heartbeat("", heartbeat, version, ("uniform", "range"))) in (
        "INVALID_REQUEST",
        error,
    )
