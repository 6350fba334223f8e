"""How a member leaves: for a time or for good, told to or by itself; no loop."""

from __future__ import annotations

import pytest

from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.effects import Leave, Revoke
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


def test_leaving_in_order() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.begin_leave("closed", walk.now, leaves=True, ends=True, until=walk.now)
    assert walk.its.identity(walk.now) is not None  # to commit by
    assert walk.give_up() == Revoke(frozenset({T0}), False, walk.now)
    step = walk.step()
    assert step == Leave(MEMBER, None, "closed", walk.now + 5.0)
    assert isinstance(step, Leave)
    old, new = step.request("g", 2), step.request("g", 5)
    assert (old.member_id, old.members) == (MEMBER, [])
    assert (new.member_id, new.members[0].member_id, new.members[0].reason) == (
        "",
        MEMBER,
        "closed",
    )
    walk.its.left(walk.now)
    assert walk.phase is FATAL
    assert (walk.its.member_id, walk.its.generation) == ("", -1)


def test_who_is_static_stays_unless_told() -> None:
    walk = Walk(instance_id="i")
    assert not walk.settings.leaves
    walk.to(STABLE, T0)
    walk.begin_leave(ends=True, leaves=False)
    walk.give_up()
    assert walk.phase is FATAL
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.begin_leave(ends=True, leaves=True)
    walk.give_up()
    step = walk.leave()
    assert (step.member_id, step.instance_id) == (MEMBER, "i")


def test_closing_waits_for_the_member_id() -> None:
    """An id that the broker has given and nobody gives back holds up the group."""
    walk = Walk().to(JOINING)
    walk.begin_leave(ends=True)
    assert walk.phase is JOINING
    assert walk.its.next_at(walk.now) == walk.now + 5.0
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    assert walk.phase is PREPARE_LEAVING
    walk.give_up()
    assert walk.leave().member_id == MEMBER
    assert walk.phase is FATAL


@pytest.mark.parametrize("came", ["nothing", "error", "generation"])
def test_closing_while_joining_otherwise(came: str) -> None:
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
    walk.give_up()
    if came == "generation":
        assert walk.leave().member_id == MEMBER
    assert walk.phase is FATAL


def test_who_joins_with_an_id_leaves_at_once() -> None:
    walk = Walk().to(JOINING)
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    walk.join()
    walk.begin_leave(ends=True)
    walk.give_up()
    assert walk.leave().member_id == MEMBER


def test_who_is_late_leaves_and_comes_back() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.on_poll_timeout(walk.now)
    assert not walk.its.on_poll_timeout(walk.now)
    assert walk.its.identity(walk.now) is None
    assert walk.give_up()[:2] == (frozenset({T0}), True)
    step = walk.leave()
    assert "longer than 60000 ms" in step.reason
    assert walk.phase is UNSUBSCRIBED
    assert walk.its.awaits_poll
    assert walk.step() is None
    walk.its.on_poll(walk.now)
    walk.give_up()
    assert walk.join().member_id == ""


def test_a_static_member_that_is_late_lets_its_session_end() -> None:
    walk = Walk(instance_id="i").to(STABLE, T0)
    walk.its.on_poll_timeout(walk.now)
    walk.give_up()
    assert walk.phase is UNSUBSCRIBED
    assert walk.its.next_at(walk.now) == float("inf")


def test_who_is_asked_for_while_it_leaves_comes_back_behind_that() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.on_poll_timeout(walk.now)
    walk.give_up()
    walk.its.on_poll(walk.now)
    assert walk.phase is LEAVING
    walk.leave()
    assert walk.phase is REVOKING


def test_unsubscribing_and_subscribing_again() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.subscribe(None, walk.now)
    assert walk.give_up() == Revoke(frozenset({T0}), False, 159.0)
    assert walk.leave().reason == "the consumer has unsubscribed"
    assert walk.phase is UNSUBSCRIBED
    assert not walk.its.awaits_poll
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.give_up()
    assert list(read_subscription(walk.join().protocols[0].metadata).topics) == ["u"]


def rebalancing(phase: Phase, leads: bool) -> Walk:
    """A cooperative member that reads T0 and is in that phase of the next rebalance."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.its.request_rejoin("a test", walk.now)
    walk.give_up()
    walk.join()
    if phase is not JOINING:
        walk.joined(2, leads=leads, protocol="cooperative-sticky")
    if leads and phase is SYNCING:
        walk.on_assignment_computed({MEMBER: [T0]})
    assert walk.phase is phase
    return walk


@pytest.mark.parametrize("phase", [JOINING, LEADING, SYNCING])
def test_what_was_kept_is_committed_behind_the_rebalance_under_way(phase: Phase) -> None:
    """Between JoinGroup and SyncGroup brokers take no commit, and wait for this very member."""
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
    assert walk.give_up() == Revoke(frozenset({T0}), False, walk.now + 59.0)  # a heartbeat early
    walk.leave()


@pytest.mark.parametrize("phase", [JOINING, LEADING, SYNCING])
def test_a_rebalance_that_lasts_is_not_waited_for_any_longer(phase: Phase) -> None:
    walk = rebalancing(phase, leads=True)
    walk.its.subscribe(None, walk.now)
    assert walk.its.next_at(walk.now) <= walk.now + 5.0
    begun = walk.now
    walk.now += 5.0
    walk.its.tick(walk.now)
    assert walk.phase is PREPARE_LEAVING
    step = walk.give_up()
    assert (step.partitions, step.lost) == (frozenset({T0}), False)
    # Where commits are taken meanwhile what is in hand has all of its time.
    assert step.until == (begun + 59.0 if phase is JOINING else walk.now + 5.0)


def test_who_unsubscribes_before_it_joins_again_does_not_join() -> None:
    """No answer is under way for which it could wait, and there is nothing to join with."""
    walk = rebalancing(JOINING, leads=False)
    walk.join_refused("COORDINATOR_LOAD_IN_PROGRESS")
    walk.its.subscribe(None, walk.now)
    step = walk.give_up()
    assert (step.partitions, step.lost) == (frozenset({T0}), False)
    walk.now = walk.its.next_at(walk.now)
    walk.leave()
    assert walk.phase is UNSUBSCRIBED


@pytest.mark.parametrize("came", ["REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "NOT_COORDINATOR"])
def test_who_waits_to_leave_leaves_when_the_rebalance_fails(came: str) -> None:
    walk = rebalancing(SYNCING, leads=False)
    walk.its.subscribe(None, walk.now)
    walk.sync_refused(came)
    assert walk.phase is PREPARE_LEAVING
    step = walk.give_up()
    assert (step.partitions, step.lost) == (frozenset({T0}), came == "ILLEGAL_GENERATION")
    assert walk.phase in (LEAVING, UNSUBSCRIBED)


def test_subscribing_again_while_it_leaves() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.subscribe(None, walk.now)
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.out()
    assert walk.phase is REVOKING


def test_closing_what_is_leaving_already_ends_it() -> None:
    walk = Walk().to(PREPARE_LEAVING, T0)
    walk.its.begin_leave("closed", walk.now, leaves=True, ends=True, until=walk.now)
    step = walk.step()
    assert isinstance(step, Revoke)
    assert step.until == walk.now  # nothing is waited for any more
    walk.out()
    assert walk.phase is FATAL


def test_a_leave_that_fails_is_left_to_the_session() -> None:
    walk = Walk().to(LEAVING)
    walk.its.failed(BrokerConnectionError("gone"), walk.now)
    assert walk.phase is UNSUBSCRIBED
