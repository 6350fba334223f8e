"""Tests how `ClassicMembership` leaves: on unsubscribe, close or poll timeout."""

from __future__ import annotations

import pytest

from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.effects import Revoke, SendLeaveGroup
from kproto.client.groups.protocol_data import read_subscription
from kproto.client.groups.subscription import Subscription
from kproto.wire.errors import BrokerConnectionError

from ..memberships import MEMBER, T0, Walk

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


def test_close_revokes_and_then_sends_leavegroup() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.begin_leave("closed", walk.now, leaves=True, ends=True, until=walk.now)
    assert walk.its.identity(walk.now) is not None  # the user can still commit
    assert walk.revoke() == Revoke(frozenset({T0}), False, walk.now)
    step = walk.step()
    assert step == SendLeaveGroup(MEMBER, None, "closed", walk.now + 5.0)
    assert isinstance(step, SendLeaveGroup)
    old, new = step.request("g", 2), step.request("g", 5)
    assert (old.member_id, old.members) == (MEMBER, [])
    assert (new.member_id, new.members[0].member_id, new.members[0].reason) == (
        "",
        MEMBER,
        "closed",
    )
    walk.its.on_left(walk.now)
    assert walk.phase is FATAL
    assert (walk.its.member_id, walk.its.generation) == ("", -1)


def test_static_member_leaves_only_on_request() -> None:
    walk = Walk(instance_id="i")
    assert not walk.settings.leaves
    walk.to(STABLE, T0)
    walk.begin_leave(ends=True, leaves=False)
    walk.revoke()
    assert walk.phase is FATAL
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.begin_leave(ends=True, leaves=True)
    walk.revoke()
    step = walk.leave()
    assert (step.member_id, step.instance_id) == (MEMBER, "i")


def test_close_waits_for_the_member_id() -> None:
    """A member id that is assigned but not removed from the group delays the next rebalance."""
    walk = Walk().to(JOINING)
    walk.begin_leave(ends=True)
    assert walk.phase is JOINING
    assert walk.its.next_at(walk.now) == walk.now + 5.0
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    assert walk.phase is PREPARE_LEAVING
    walk.revoke()
    assert walk.leave().member_id == MEMBER
    assert walk.phase is FATAL


@pytest.mark.parametrize("came", ["nothing", "error", "generation"])
def test_close_while_joining_ends_with_or_without_a_response(came: str) -> None:
    walk = Walk().to(JOINING)
    walk.begin_leave(ends=True)
    if came == "nothing":
        walk.now += 5.0
        walk.its.tick(walk.now)
    elif came == "error":
        walk.its.failed(BrokerConnectionError("gone"), walk.now)
    else:
        walk.joined()
    assert walk.phase is PREPARE_LEAVING
    walk.revoke()
    if came == "generation":
        assert walk.leave().member_id == MEMBER
    assert walk.phase is FATAL


def test_joining_member_with_an_id_leaves_at_once() -> None:
    walk = Walk().to(JOINING)
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    walk.join()
    walk.begin_leave(ends=True)
    walk.revoke()
    assert walk.leave().member_id == MEMBER


def test_late_member_leaves_and_rejoins_on_the_next_poll() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.on_poll_timeout(walk.now)
    assert not walk.its.on_poll_timeout(walk.now)
    assert walk.its.identity(walk.now) is None
    assert walk.revoke()[:2] == (frozenset({T0}), True)
    step = walk.leave()
    assert "longer than 60000 ms" in step.reason
    assert walk.phase is UNSUBSCRIBED
    assert walk.its.awaits_poll
    assert walk.step() is None
    walk.its.on_poll(walk.now)
    walk.revoke()
    assert walk.join().member_id == ""


def test_late_static_member_lets_its_session_expire() -> None:
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.its.on_poll_timeout(walk.now)
    walk.revoke()
    assert walk.phase is UNSUBSCRIBED
    assert walk.its.next_at(walk.now) == float("inf")


def test_poll_while_a_late_member_leaves_makes_it_rejoin_after_the_leave() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_poll_timeout(walk.now)
    walk.revoke()
    walk.its.on_poll(walk.now)
    assert walk.phase is LEAVING
    walk.leave()
    assert walk.phase is REVOKING


def test_member_that_subscribes_again_rejoins_with_the_new_topics() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.subscribe(None, walk.now)
    assert walk.revoke() == Revoke(frozenset({T0}), False, 159.0)
    assert walk.leave().reason == "the consumer has unsubscribed"
    assert walk.phase is UNSUBSCRIBED
    assert not walk.its.awaits_poll
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.revoke()
    assert list(read_subscription(walk.join().protocols[0].metadata).topics) == ["u"]


def rebalancing(phase: Phase, leads: bool) -> Walk:
    """Returns a cooperative member that owns T0 and is in `phase` of a rebalance."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.its.request_rejoin("a test", walk.now)
    walk.revoke()
    walk.join()
    if phase is not JOINING:
        walk.joined(2, leads=leads, protocol="cooperative-sticky")
    if leads and phase is SYNCING:
        walk.on_assignment_computed({MEMBER: [T0]})
    assert walk.phase is phase
    return walk


@pytest.mark.parametrize("phase", [JOINING, LEADING, SYNCING])
def test_unsubscribe_during_a_rebalance_commits_after_it(phase: Phase) -> None:
    """Brokers refuse commits between the JoinGroup response and the SyncGroup response.

    The rebalance waits for this member, so the member must complete the rebalance first.
    """
    walk = rebalancing(phase, leads=True)
    walk.its.subscribe(None, walk.now)
    assert walk.phase is phase
    if phase is JOINING:
        walk.joined(2, leads=True, protocol="cooperative-sticky")
    if walk.phase is LEADING:
        walk.on_assignment_computed({MEMBER: [T0]})
    walk.synced(T0, protocol="cooperative-sticky")
    assert walk.phase is PREPARE_LEAVING
    identity = walk.its.identity(walk.now)
    assert identity is not None
    assert identity.generation == 2
    assert walk.revoke() == Revoke(
        frozenset({T0}), False, walk.now + 59.0
    )  # counted from the last heartbeat
    walk.leave()


@pytest.mark.parametrize("phase", [JOINING, LEADING, SYNCING])
def test_unsubscribe_stops_waiting_for_a_long_rebalance(phase: Phase) -> None:
    walk = rebalancing(phase, leads=True)
    walk.its.subscribe(None, walk.now)
    assert walk.its.next_at(walk.now) <= walk.now + 5.0
    begun = walk.now
    walk.now += 5.0
    walk.its.tick(walk.now)
    assert walk.phase is PREPARE_LEAVING
    step = walk.revoke()
    assert (step.partitions, step.lost) == (frozenset({T0}), False)
    # If the broker accepts commits during the rebalance, the handler has its full time.
    assert step.until == (begun + 59.0 if phase is JOINING else walk.now + 5.0)


def test_unsubscribe_before_the_rejoin_sends_no_joingroup() -> None:
    """The member has no JoinGroup in flight, and no subscription to join with."""
    walk = rebalancing(JOINING, leads=False)
    walk.join_refused("COORDINATOR_LOAD_IN_PROGRESS")
    walk.its.subscribe(None, walk.now)
    step = walk.revoke()
    assert (step.partitions, step.lost) == (frozenset({T0}), False)
    walk.now = walk.its.next_at(walk.now)
    walk.leave()
    assert walk.phase is UNSUBSCRIBED


@pytest.mark.parametrize("came", ["REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "NOT_COORDINATOR"])
def test_member_leaves_when_the_awaited_rebalance_fails(came: str) -> None:
    walk = rebalancing(SYNCING, leads=False)
    walk.its.subscribe(None, walk.now)
    walk.sync_refused(came)
    assert walk.phase is PREPARE_LEAVING
    step = walk.revoke()
    assert (step.partitions, step.lost) == (frozenset({T0}), came == "ILLEGAL_GENERATION")
    assert walk.phase in (LEAVING, UNSUBSCRIBED)


def test_subscribe_while_leaving_makes_the_member_rejoin() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.subscribe(None, walk.now)
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.out()
    assert walk.phase is REVOKING


def test_close_while_leaving_ends_the_member() -> None:
    walk = Walk().to(PREPARE_LEAVING, T0)
    walk.its.begin_leave("closed", walk.now, leaves=True, ends=True, until=walk.now)
    step = walk.step()
    assert isinstance(step, Revoke)
    assert step.until == walk.now  # close allows no time for records in process
    walk.out()
    assert walk.phase is FATAL


def test_failed_leavegroup_lets_the_session_expire() -> None:
    walk = Walk().to(LEAVING)
    walk.its.failed(BrokerConnectionError("gone"), walk.now)
    assert walk.phase is UNSUBSCRIBED
