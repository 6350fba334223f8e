"""Tests heartbeats, sessions and commits of `ClassicMembership`, without an event loop."""

from __future__ import annotations

import pytest

from kproto.client.core.group_errors import ErrorAction
from kproto.client.core.retry import TIMER_RESOLUTION_S
from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.effects import MemberIdentity, Revoke, SendSyncGroup
from kproto.client.groups.protocol_data import read_subscription
from kproto.wire.errors import BrokerConnectionError

from ..memberships import MEMBER, T0, Walk, error

(
    UNSUBSCRIBED,
    REVOKING,
    JOINING,
    LEADING,
    SYNCING,
    ASSIGNING,
    STABLE,
    PREPARE_LEAVING,
    LEAVING,
    FATAL,
) = Phase


def test_heartbeats_continue_through_a_rebalance() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.heartbeat(walk.now) is None
    for _ in range(3):
        before = walk.now
        assert walk.on_heartbeat_response(took=0.0) is None
        assert walk.now == before + 1.0
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    for _ in range(30):  # records are being processed
        assert walk.on_heartbeat_response("REBALANCE_IN_PROGRESS") is ErrorAction.REBALANCE
        walk.its.tick(walk.now)
    assert walk.phase is REVOKING
    assert walk.its.identity(walk.now) == MemberIdentity("g", MEMBER, 1, None)
    walk.revoke()
    walk.join()
    assert walk.on_heartbeat_response("REBALANCE_IN_PROGRESS") is ErrorAction.REBALANCE
    assert walk.phase is JOINING


def test_illegal_generation_while_joining_ends_the_session_on_time() -> None:
    """The JoinGroup response is pending; meanwhile the session of the old generation expires."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.revoke()
    walk.join()
    until = walk.its.assignment_valid_until
    assert walk.on_heartbeat_response("ILLEGAL_GENERATION") is None
    assert walk.phase is JOINING
    assert walk.its.assignment_valid_until == until
    while walk.its.next_at(walk.now) < until:
        walk.on_heartbeat_response("ILLEGAL_GENERATION", took=0.0)
        walk.its.tick(walk.now)
        assert walk.phase is JOINING
    walk.now = until
    walk.its.tick(walk.now)
    assert walk.phase is REVOKING
    assert walk.revoke()[:2] == (frozenset({T0}), True)
    assert walk.join().member_id == MEMBER


def test_session_starts_when_the_heartbeat_is_sent() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.assignment_valid_until == pytest.approx(110.0 - TIMER_RESOLUTION_S)
    walk.on_heartbeat_response(took=0.8)
    assert walk.its.assignment_valid_until == pytest.approx(111.0 - TIMER_RESOLUTION_S)
    walk.now = 110.9
    walk.its.tick(walk.now)
    assert walk.phase is STABLE
    assert walk.its.identity(walk.now) is not None
    walk.now = 111.0
    assert walk.its.identity(walk.now) is None  # even before the next tick
    walk.its.tick(walk.now)
    assert walk.revoke()[:2] == (frozenset({T0}), True)
    request = walk.join()
    assert request.member_id == MEMBER  # the broker may still know the member
    subscription = read_subscription(request.protocols[0].metadata)
    assert (subscription.owned, subscription.generation) == ([], -1)


def test_membership_survives_a_lost_coordinator_within_the_session() -> None:
    """The member keeps its id and generation, and sends heartbeats to the next coordinator."""
    walk = Walk().to(STABLE, T0)
    meanings = []
    while walk.now < 106.0:
        request = walk.heartbeat()
        lost = BrokerConnectionError("gone")
        meanings.append(walk.its.on_heartbeat_response(request, lost, walk.now, walk.now))
        walk.its.tick(walk.now)
    assert set(meanings) == {ErrorAction.FIND_COORDINATOR}
    assert len(meanings) < 20  # with a wait between them
    assert walk.phase is STABLE
    walk.on_heartbeat_response()
    walk.its.tick(115.0)
    assert (walk.phase, walk.its.generation) == (STABLE, 1)


def test_records_in_process_may_delay_joingroup_until_its_deadline() -> None:
    """The rebalance began after the last heartbeat that was answered without an error.

    The deadline is max_poll_interval_ms after this heartbeat, less a margin for JoinGroup.
    """
    walk = Walk().to(STABLE, T0)
    walk.on_heartbeat_response(took=0.5)
    assert walk.its.assignment_valid_until == pytest.approx(111.0 - TIMER_RESOLUTION_S)
    walk.now += 5.0
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    step = walk.step()
    assert isinstance(step, Revoke)
    assert step.until == 101.0 + 60.0 - 1.0
    short = Walk(max_poll_interval_ms=500).to(STABLE, T0)
    short.now += 3.0
    short.its.request_rejoin("a test", short.now)
    step = short.step()
    assert isinstance(step, Revoke)
    assert step.until == short.now


def test_session_of_a_cooperative_member_starts_when_joingroup_is_sent() -> None:
    """The JoinGroup response may be read late, for example after the event loop was blocked.

    An eager member's session starts when the response is read.
    """
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.revoke()
    walk.join()
    sent_at = walk.now
    walk.now += 9.0
    walk.joined(2, protocol="cooperative-sticky")
    assert walk.its.assignment_valid_until == pytest.approx(sent_at + 10.0 - TIMER_RESOLUTION_S)
    step = walk.step()
    assert isinstance(step, SendSyncGroup)
    eager = Walk().to(STABLE, T0)
    eager.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    eager.revoke()
    eager.join()
    eager.now += 50.0  # the time in which the other members join
    eager.joined(2)
    assert eager.its.assignment_valid_until == pytest.approx(eager.now + 10.0 - TIMER_RESOLUTION_S)


def test_second_rebalance_has_a_timeout_of_its_own() -> None:
    """A stalled member delays two rebalances in a row, each by less than max_poll_interval_ms.

    The heartbeats during the first rebalance show that the first rebalance has not ended. So the
    second rebalance, and its timeout, start after these heartbeats.
    """
    walk = Walk(assignors=("cooperative-sticky",), max_poll_interval_ms=20_000).to(STABLE, T0)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.revoke()
    walk.join()
    for _ in range(15):
        walk.on_heartbeat_response("REBALANCE_IN_PROGRESS", took=0.0)
    still_joining_at = walk.now
    walk.joined(2, protocol="cooperative-sticky")
    until = still_joining_at + 20.0 - TIMER_RESOLUTION_S
    assert walk.its.assignment_valid_until == pytest.approx(
        still_joining_at + 10.0 - TIMER_RESOLUTION_S  # the session
    )
    walk.step()
    walk.sync_refused("REBALANCE_IN_PROGRESS")
    walk.revoke()
    walk.join()
    for _ in range(15):
        while (request := walk.its.heartbeat(walk.now)) is None:
            walk.now += 0.5
        rebalances = error("REBALANCE_IN_PROGRESS")
        walk.its.on_heartbeat_response(request, rebalances, walk.now, walk.now)
        walk.its.tick(walk.now)
    assert walk.phase is JOINING
    assert walk.its.assignment_valid_until == pytest.approx(until)


def test_assignment_is_applied_only_after_a_heartbeat_confirms_the_session() -> None:
    """A member whose session expired by its own clock may rejoin the same generation.

    The broker starts no new session for such a rejoin.
    """
    walk = Walk().to(STABLE, T0)
    walk.now += 20.0
    walk.its.tick(walk.now)
    walk.revoke()
    walk.join()
    walk.joined(1)
    walk.synced(T0)
    assert walk.its.phase is ASSIGNING
    assert walk.its.step(walk.now, ()) is None
    walk.on_heartbeat_response()
    step = walk.apply()
    assert (step.revoked, step.added) == (frozenset(), (T0,))


def test_cooperative_member_stops_when_the_rebalance_may_have_ended() -> None:
    """Heartbeats keep the session of a cooperative member alive without its JoinGroup (KIP-429).

    The broker ends the rebalance after max_poll_interval_ms, and may then assign the partitions to
    other members.
    """
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.on_heartbeat_response()
    last_stable_at = walk.now
    for _ in range(30):
        walk.now += 2.0
        walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
        if walk.its.phase is REVOKING:
            walk.revoke()
    assert last_stable_at + 59.0 < walk.its.assignment_valid_until < last_stable_at + 60.0


def test_heartbeat_interval_is_shorter_than_a_rebalance() -> None:
    """A short max_poll_interval_ms shortens the heartbeat interval.

    The broker removes a member that has not rejoined within max_poll_interval_ms after the start of
    a rebalance. So the member must learn of the rebalance in time.
    """
    walk = Walk(max_poll_interval_ms=900).to(STABLE, T0)
    for _ in range(5):
        before = walk.now
        assert walk.on_heartbeat_response(took=0.0) is None
        assert walk.now == pytest.approx(before + 0.3)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    assert walk.phase is REVOKING


def test_member_without_responses_stops_when_a_rebalance_may_have_ended() -> None:
    walk = Walk(max_poll_interval_ms=3_000).to(STABLE, T0)
    walk.on_heartbeat_response(took=0.0)
    until = walk.now + 3.0 - TIMER_RESOLUTION_S
    assert walk.its.assignment_valid_until == pytest.approx(until)
    walk.now = until + TIMER_RESOLUTION_S
    walk.its.tick(walk.now)
    assert walk.revoke()[:2] == (frozenset({T0}), True)
    assert walk.join().member_id == MEMBER


def test_member_without_partitions_waits_for_a_rebalance_while_its_session_lasts() -> None:
    """Other members may have a longer max_poll_interval_ms."""
    walk = Walk(max_poll_interval_ms=3_000).to(STABLE, T0)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.revoke()
    walk.join()
    for _ in range(30):
        walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
        walk.its.tick(walk.now)
    assert walk.phase is JOINING


def test_response_for_another_generation_is_ignored() -> None:
    walk = Walk().to(STABLE, T0)
    request = walk.heartbeat()
    walk.its.request_rejoin("a test", walk.now)
    walk.revoke()
    walk.join()
    walk.joined(2)
    transition_count = walk.its.transition_count
    walk.its.on_heartbeat_response(request, error("UNKNOWN_MEMBER_ID"), walk.now, walk.now)
    assert (walk.its.transition_count, walk.its.member_id) == (transition_count, MEMBER)


def test_revocation_turns_into_a_loss_when_the_member_is_unknown() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.request_rejoin("a test", walk.now)
    transition_count = walk.its.transition_count
    walk.on_heartbeat_response("UNKNOWN_MEMBER_ID")
    assert walk.its.transition_count != transition_count
    step = walk.step()
    assert isinstance(step, Revoke)
    assert step.lost
    assert walk.its.identity(walk.now) is None


def test_rebalance_during_an_assignment_follows_it() -> None:
    walk = Walk(assignors=("cooperative-sticky",)).to(ASSIGNING, T0)
    assert walk.on_heartbeat_response("REBALANCE_IN_PROGRESS") is ErrorAction.REBALANCE
    assert walk.phase is ASSIGNING
    walk.apply()
    assert walk.phase is REVOKING


def awaiting_first_generation() -> Walk:
    """Returns a member that has an id and waits for its first generation."""
    walk = Walk().to(JOINING)
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    walk.join()
    return walk


@pytest.mark.parametrize("name", ["ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "NOT_COORDINATOR"])
def test_member_without_a_generation_sends_heartbeats(name: str) -> None:
    walk = awaiting_first_generation()
    transition_count = walk.its.transition_count
    for _ in range(20):
        request = walk.heartbeat()
        assert (request.member_id, request.generation_id) == (MEMBER, -1)
        walk.its.on_heartbeat_response(request, error(name), walk.now, walk.now)
        walk.its.tick(walk.now)
    assert walk.now == 120.0
    assert (walk.phase, walk.its.transition_count) == (JOINING, transition_count)


def test_unknown_member_rejoins_with_its_id() -> None:
    """The JoinGroup response shows whether the id is still valid.

    If the id is still valid, a join with a new id would leave an abandoned member in the group.
    """
    walk = awaiting_first_generation()
    transition_count = walk.its.transition_count
    walk.on_heartbeat_response("UNKNOWN_MEMBER_ID")
    assert (walk.phase, walk.its.transition_count) == (JOINING, transition_count + 1)
    assert walk.join().member_id == MEMBER
    walk.join_refused("UNKNOWN_MEMBER_ID")
    walk.revoke()
    assert walk.join().member_id == ""
    assert walk.its.heartbeat(walk.now + 100.0) is None  # a member without an id sends no heartbeat


def test_fatal_heartbeat_error_ends_a_joining_member() -> None:
    walk = awaiting_first_generation()
    walk.on_heartbeat_response("GROUP_AUTHORIZATION_FAILED")
    assert walk.phase is PREPARE_LEAVING


def test_heartbeat_error_from_before_the_join_is_ignored() -> None:
    walk = awaiting_first_generation()
    request = walk.heartbeat()
    walk.joined()
    walk.its.on_heartbeat_response(request, error("UNKNOWN_MEMBER_ID"), walk.now, walk.now)
    assert (walk.phase, walk.its.member_id) == (SYNCING, MEMBER)


# Commits


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("UNKNOWN_MEMBER_ID", REVOKING),
        ("ILLEGAL_GENERATION", REVOKING),
        ("REBALANCE_IN_PROGRESS", REVOKING),
        ("FENCED_INSTANCE_ID", PREPARE_LEAVING),
        ("NOT_COORDINATOR", STABLE),
        ("OFFSET_METADATA_TOO_LARGE", STABLE),
        ("GROUP_AUTHORIZATION_FAILED", STABLE),
    ],
)
def test_refused_commit_changes_the_phase(name: str, phase: Phase) -> None:
    walk = Walk().to(STABLE, T0)
    identity = walk.its.identity(walk.now)
    assert identity is not None
    walk.its.on_commit_refused(error(name), identity._replace(generation=0), walk.now)
    walk.its.on_commit_refused(error(name), identity._replace(member_id="other"), walk.now)
    assert walk.phase is STABLE
    walk.its.on_commit_refused(error(name), identity, walk.now)
    assert walk.phase is phase


def test_member_commits_in_these_phases_only() -> None:
    committing = {
        phase
        for phase in Phase
        if (walk := Walk().to(phase, T0)).its.identity(walk.now) is not None
    }
    assert committing == {ASSIGNING, STABLE, PREPARE_LEAVING}
    walk = Walk().to(STABLE, T0)
    walk.its.request_rejoin("a test", walk.now)
    assert walk.its.identity(walk.now) is not None  # while it revokes
    walk.revoke()
    assert walk.its.identity(walk.now) is not None  # the last generation is still valid
