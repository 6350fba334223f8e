"""Tests `ShareMembership` step by step and heartbeat by heartbeat, without an event loop."""

from __future__ import annotations

import pytest

from kproto.client.core.group_errors import ErrorAction
from kproto.client.groups.effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    PrepareHeartbeat,
    ResolveTopicNames,
    Revoke,
)
from kproto.client.groups.heartbeat_phases import Event, Phase
from kproto.client.groups.share.phases import TRANSITIONS
from kproto.client.groups.subscription import Subscription
from kproto.wire.errors import BrokerConnectionError, UnsupportedVersionError

from .share_walks import IDS, T0, T1, ShareWalk, share_answer

#: The phases of a member of a share group, which acknowledges no assignment.
PHASES = set(Phase) - {Phase.ACKNOWLEDGING}


def test_first_assignment_is_applied_without_an_acknowledgement() -> None:
    walk = ShareWalk()
    assert walk.step() == PrepareHeartbeat(Subscription.to("t"))
    assert not walk.its.heartbeat_due(walk.now)  # not before the subscription is prepared
    walk.prepare()
    walk.answered(5, [T0, T1])
    phases = [walk.phase]
    assert walk.apply() == ApplyAssignment(frozenset(), (T0, T1), walk.now)
    assert [*phases, walk.phase] == [Phase.RECONCILING, Phase.STABLE]
    assert walk.step() is None
    assert walk.its.next_at(walk.now) == pytest.approx(walk.now - 0.1 + 1.0)
    assert walk.its.identity(walk.now) is None  # a share group commits no offsets


def test_first_heartbeat_has_all_fields_and_later_ones_only_changes() -> None:
    walk = ShareWalk().to(Phase.JOINING)
    first = walk.beat().request
    assert (first.member_epoch, first.rack_id, first.subscribed_topic_names) == (0, "r1", ["t"])
    walk.its.on_heartbeat_response(walk.beat(), share_answer(3, [T0]), walk.now)
    walk.apply()
    later = walk.answered(3)
    assert (later.member_epoch, later.rack_id, later.subscribed_topic_names) == (3, None, None)
    walk.its.subscribe(Subscription.to(["t", "u"]), walk.now)
    assert walk.answered(4).subscribed_topic_names == ["t", "u"]


def test_failed_heartbeat_makes_the_next_one_have_all_fields() -> None:
    walk = ShareWalk().to(Phase.STABLE, T0)
    assert walk.refused(BrokerConnectionError("lost")) is ErrorAction.FIND_COORDINATOR
    assert walk.phase is Phase.STABLE
    assert walk.beat().request.subscribed_topic_names == ["t"]


def test_changed_assignment_removes_and_adds_in_one_step() -> None:
    walk = ShareWalk().to(Phase.STABLE, T0)
    walk.answered(6, [T1])
    assert walk.phase is Phase.RECONCILING
    assert walk.apply() == ApplyAssignment(frozenset([T0]), (T1,), walk.now)


def test_unknown_topic_id_is_resolved_by_a_metadata_refresh() -> None:
    walk = ShareWalk().to(Phase.JOINING)
    del walk.topics["t"]
    walk.answered(5, [T0])
    assert walk.step() == ResolveTopicNames(frozenset([IDS["t"]]))
    walk.topics["t"] = IDS["t"]
    walk.its.on_resolved(walk.now)
    assert walk.apply().added == (T0,)


@pytest.mark.parametrize("name", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"])
def test_fenced_member_drops_its_partitions_and_rejoins_with_the_same_id(name: str) -> None:
    walk = ShareWalk().to(Phase.STABLE, T0)
    member_id = walk.its.member_id
    assert walk.refused(name) is ErrorAction.MEMBER_UNKNOWN
    assert walk.phase is Phase.FENCED
    assert walk.revoke() == Revoke(frozenset([T0]), True, walk.now)
    walk.prepare()
    assert (walk.beat().request.member_epoch, walk.its.member_id) == (0, member_id)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("GROUP_ID_NOT_FOUND", "the id of a group of another kind"),
        ("INCONSISTENT_GROUP_PROTOCOL", "the id of a group of another kind"),
        ("UNSUPPORTED_VERSION", "share groups disabled"),
        ("GROUP_AUTHORIZATION_FAILED", "READ on the group"),
        ("TOPIC_AUTHORIZATION_FAILED", "all subscribed topics: t"),
        ("GROUP_MAX_SIZE_REACHED", "group.share.max.size"),
        ("INVALID_REQUEST", "why"),
    ],
)
def test_permanent_error_of_a_join_ends_the_member(name: str, words: str) -> None:
    walk = ShareWalk().to(Phase.JOINING)
    assert walk.refused(name) is ErrorAction.FAIL
    assert words in str(walk.its.error)
    walk.revoke()
    assert isinstance(walk.step(), LeaveByHeartbeat)
    walk.its.on_left(walk.now)
    assert walk.its.has_ended


def test_coordinator_without_share_groups_ends_the_member() -> None:
    walk = ShareWalk()
    error = UnsupportedVersionError("no share groups")
    assert walk.its.failed(error, walk.now) is ErrorAction.FAIL
    walk.revoke()
    assert walk.its.has_ended  # no heartbeat was sent, so no leave is necessary
    assert walk.its.error is error


def test_retriable_error_of_a_join_is_retried_after_a_backoff() -> None:
    walk = ShareWalk().to(Phase.JOINING)
    assert walk.refused("COORDINATOR_LOAD_IN_PROGRESS") is ErrorAction.RETRY
    assert [walk.phase] == [Phase.JOINING]
    assert not walk.its.heartbeat_due(walk.now)
    walk.answered(5, [T0])
    assert walk.phase is Phase.RECONCILING


def test_late_member_leaves_and_rejoins_on_the_next_poll() -> None:
    walk = ShareWalk().to(Phase.STALE, T0)
    assert walk.its.awaits_poll
    assert walk.step() is None
    walk.its.on_poll(walk.now)
    assert walk.phase is Phase.JOINING


def test_response_to_a_former_membership_is_ignored() -> None:
    walk = ShareWalk().to(Phase.STABLE, T0)
    beat = walk.beat()
    walk.its.begin_leave("closed", walk.now, leaves=True, ends=True)
    assert walk.its.on_heartbeat_response(beat, share_answer(9, [T1]), walk.now) is None
    assert walk.its.epoch == 5


def test_leaving_member_sends_the_leave_epoch() -> None:
    walk = ShareWalk().to(Phase.LEAVING, T0)
    step = walk.step()
    assert isinstance(step, LeaveByHeartbeat)
    assert step.epoch == -1


def test_member_without_partitions_sends_heartbeats_more_often() -> None:
    walk = ShareWalk().to(Phase.JOINING)
    walk.answered(5, [], interval_ms=5_000)
    walk.apply()
    assert walk.its.heartbeat_due(walk.now)  # the answer took 0.1 s
    waits = []
    for _ in range(5):
        walk.answered(5, interval_ms=5_000)
        waits.append(round(walk.its.next_at(walk.now) - (walk.now - 0.1), 3))
    assert waits == [0.2, 0.4, 0.8, 1.0, 1.0]
    walk.answered(6, [T0], interval_ms=5_000)
    walk.apply()
    assert walk.its.next_at(walk.now) == pytest.approx(walk.now - 0.1 + 5.0)


def test_interval_is_a_third_of_the_poll_interval_at_most() -> None:
    walk = ShareWalk(max_poll_interval_ms=900).to(Phase.JOINING)
    walk.answered(5, [T0], interval_ms=5_000)
    assert walk.its.interval_ms == 300


def test_every_phase_is_entered_and_left() -> None:
    entered = {after for (before, _), after in TRANSITIONS.items() if after is not before}
    assert entered == PHASES
    assert {before for before, _ in TRANSITIONS} == PHASES - {Phase.FATAL}
    assert {event for _, event in TRANSITIONS} == set(Event) - {Event.ACKNOWLEDGED}


@pytest.mark.parametrize("phase", [each for each in Phase if each in PHASES - {Phase.UNSUBSCRIBED}])
def test_close_ends_the_member_in_every_phase(phase: Phase) -> None:
    walk = ShareWalk() if phase is Phase.JOINING else ShareWalk().to(phase, T0)
    walk.its.begin_leave("closed", walk.now, leaves=True, ends=True)
    for _ in range(3):
        step = walk.step()
        if isinstance(step, Revoke):
            walk.its.on_revoked(walk.now)
        elif isinstance(step, LeaveByHeartbeat):
            walk.its.on_left(walk.now)
    assert walk.its.has_ended
