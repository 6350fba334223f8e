"""Heartbeats, sessions and commits of a member: until when it is one, and who tells; no loop."""

from __future__ import annotations

import pytest

from kproto.client.core.retry import TICK_S
from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.effects import MemberIdentity, Revoke, Sync
from kproto.client.groups.group_errors import Meaning
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


def test_heartbeats_go_on_through_a_rebalance() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.heartbeat(walk.now) is None
    for _ in range(3):
        before = walk.now
        assert walk.on_heartbeat_response(took=0.0) is None
        assert walk.now == before + 1.0
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    for _ in range(30):  # something is in hands
        assert walk.on_heartbeat_response("REBALANCE_IN_PROGRESS") is Meaning.REBALANCE
        walk.its.tick(walk.now)
    assert walk.phase is REVOKING
    assert walk.its.identity(walk.now) == MemberIdentity("g", MEMBER, 1, None)
    walk.give_up()
    walk.join()
    assert walk.on_heartbeat_response("REBALANCE_IN_PROGRESS") is Meaning.REBALANCE
    assert walk.phase is JOINING


def test_a_generation_that_is_over_while_joining_is_the_next_one() -> None:
    """Its answer is under way; until then it counts that the broker was heard of before."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.give_up()
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
    assert walk.give_up()[:2] == (frozenset({T0}), True)
    assert walk.join().member_id == MEMBER


def test_a_session_counts_from_when_the_heartbeat_was_sent() -> None:
    walk = Walk().to(STABLE, T0)
    assert walk.its.assignment_valid_until == pytest.approx(110.0 - TICK_S)
    walk.on_heartbeat_response(took=0.8)
    assert walk.its.assignment_valid_until == pytest.approx(111.0 - TICK_S)
    walk.now = 110.9
    walk.its.tick(walk.now)
    assert walk.phase is STABLE
    assert walk.its.identity(walk.now) is not None
    walk.now = 111.0
    assert walk.its.identity(walk.now) is None  # before anybody has looked
    walk.its.tick(walk.now)
    assert walk.give_up()[:2] == (frozenset({T0}), True)
    request = walk.join()
    assert request.member_id == MEMBER  # the broker may have it yet
    told = read_subscription(request.protocols[0].metadata)
    assert (told.owned, told.generation) == ([], -1)


def test_a_lost_coordinator_costs_nothing_within_the_session() -> None:
    """Id and generation are kept, and heartbeats go to whoever coordinates next."""
    walk = Walk().to(STABLE, T0)
    meanings = []
    while walk.now < 106.0:
        request = walk.heartbeat()
        lost = BrokerConnectionError("gone")
        meanings.append(walk.its.on_heartbeat_response(request, lost, walk.now, walk.now))
        walk.its.tick(walk.now)
    assert set(meanings) == {Meaning.FIND_COORDINATOR}
    assert len(meanings) < 20  # with a wait between them
    assert walk.phase is STABLE
    walk.on_heartbeat_response()
    walk.its.tick(115.0)
    assert (walk.phase, walk.its.generation) == (STABLE, 1)


def test_what_is_in_hands_is_waited_for_until_joingroup_must_be_sent() -> None:
    """The rebalance began behind the last heartbeat that told of none; and a moment is left."""
    walk = Walk().to(STABLE, T0)
    walk.on_heartbeat_response(took=0.5)
    assert walk.its.assignment_valid_until == pytest.approx(111.0 - TICK_S)
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


def test_a_session_of_who_reads_on_is_not_longer_than_the_broker_counts_it() -> None:
    """The answer to a JoinGroup may be old when it is read, as after the loop stood still."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.give_up()
    walk.join()
    sent_at = walk.now
    walk.now += 9.0
    walk.joined(2, protocol="cooperative-sticky")
    assert walk.its.assignment_valid_until == pytest.approx(sent_at + 10.0 - TICK_S)
    step = walk.step()
    assert isinstance(step, Sync)
    eager = Walk().to(STABLE, T0)
    eager.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    eager.give_up()
    eager.join()
    eager.now += 50.0  # for the others
    eager.joined(2)
    assert eager.its.assignment_valid_until == pytest.approx(eager.now + 10.0 - TICK_S)


def test_nothing_is_taken_on_before_the_broker_surely_counts_the_session() -> None:
    """A member that its own clock put out may join the same generation: no session begins by it."""
    walk = Walk().to(STABLE, T0)
    walk.now += 20.0
    walk.its.tick(walk.now)
    walk.give_up()
    walk.join()
    walk.joined(1)
    walk.synced(T0)
    assert walk.its.phase is ASSIGNING
    assert walk.its.step(walk.now, ()) is None
    walk.on_heartbeat_response()
    step = walk.take_on()
    assert (step.revoked, step.added) == (frozenset(), (T0,))


def test_who_reads_on_stops_when_the_broker_may_have_put_him_out_of_the_rebalance() -> None:
    """KIP-429: the session lives on by heartbeats, while JoinGroup has not arrived."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0)
    walk.on_heartbeat_response()
    calm_at = walk.now
    for _ in range(30):
        walk.now += 2.0
        walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
        if walk.its.phase is REVOKING:
            walk.give_up()
    assert calm_at + 59.0 < walk.its.assignment_valid_until < calm_at + 60.0


def test_heartbeats_hear_of_a_rebalance_before_it_ends() -> None:
    """It waits for max_poll_interval_ms; who has not joined by then is put out, and reads on."""
    walk = Walk(max_poll_interval_ms=900).to(STABLE, T0)
    for _ in range(5):
        before = walk.now
        assert walk.on_heartbeat_response(took=0.0) is None
        assert walk.now == pytest.approx(before + 0.3)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    assert walk.phase is REVOKING


def test_who_hears_of_nothing_stops_when_a_rebalance_may_have_ended_without_him() -> None:
    walk = Walk(max_poll_interval_ms=3_000).to(STABLE, T0)
    walk.on_heartbeat_response(took=0.0)
    until = walk.now + 3.0 - TICK_S
    assert walk.its.assignment_valid_until == pytest.approx(until)
    walk.now = until + TICK_S
    walk.its.tick(walk.now)
    assert walk.give_up()[:2] == (frozenset({T0}), True)
    assert walk.join().member_id == MEMBER


def test_who_has_given_up_all_waits_for_a_rebalance_as_long_as_his_session_lives() -> None:
    """Others may be slower than he may be himself."""
    walk = Walk(max_poll_interval_ms=3_000).to(STABLE, T0)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.give_up()
    walk.join()
    for _ in range(30):
        walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
        walk.its.tick(walk.now)
    assert walk.phase is JOINING


def test_an_answer_for_another_generation_tells_nothing() -> None:
    walk = Walk().to(STABLE, T0)
    request = walk.heartbeat()
    walk.its.request_rejoin("a test", walk.now)
    walk.give_up()
    walk.join()
    walk.joined(2)
    turn = walk.its.turn
    walk.its.on_heartbeat_response(request, error("UNKNOWN_MEMBER_ID"), walk.now, walk.now)
    assert (walk.its.turn, walk.its.member_id) == (turn, MEMBER)


def test_what_is_lost_while_it_is_given_up() -> None:
    walk = Walk().to(STABLE, T0)
    walk.its.request_rejoin("a test", walk.now)
    turn = walk.its.turn
    walk.on_heartbeat_response("UNKNOWN_MEMBER_ID")
    assert walk.its.turn != turn
    step = walk.step()
    assert isinstance(step, Revoke)
    assert step.lost
    assert walk.its.identity(walk.now) is None


def test_a_rebalance_while_the_assignment_is_carried_out_comes_behind_it() -> None:
    walk = Walk(assignors=("cooperative-sticky",)).to(ASSIGNING, T0)
    assert walk.on_heartbeat_response("REBALANCE_IN_PROGRESS") is Meaning.REBALANCE
    assert walk.phase is ASSIGNING
    walk.take_on()
    assert walk.phase is REVOKING


def unsure() -> Walk:
    """A member that waits for its first generation, with an id."""
    walk = Walk().to(JOINING)
    walk.join_refused("MEMBER_ID_REQUIRED", MEMBER)
    walk.join()
    return walk


@pytest.mark.parametrize("name", ["ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "NOT_COORDINATOR"])
def test_who_waits_for_a_first_generation_asks_if_it_is_known(name: str) -> None:
    walk = unsure()
    turn = walk.its.turn
    for _ in range(20):
        request = walk.heartbeat()
        assert (request.member_id, request.generation_id) == (MEMBER, -1)
        walk.its.on_heartbeat_response(request, error(name), walk.now, walk.now)
        walk.its.tick(walk.now)
    assert walk.now == 120.0
    assert (walk.phase, walk.its.turn) == (JOINING, turn)


def test_who_is_not_known_any_more_joins_again_with_its_id() -> None:
    """What becomes of the id says the answer to JoinGroup, so that no ghost is made."""
    walk = unsure()
    turn = walk.its.turn
    walk.on_heartbeat_response("UNKNOWN_MEMBER_ID")
    assert (walk.phase, walk.its.turn) == (JOINING, turn + 1)
    assert walk.join().member_id == MEMBER
    walk.join_refused("UNKNOWN_MEMBER_ID")
    walk.give_up()
    assert walk.join().member_id == ""
    assert walk.its.heartbeat(walk.now + 100.0) is None  # without an id there is nothing to ask


def test_what_ends_a_member_while_it_asks() -> None:
    walk = unsure()
    walk.on_heartbeat_response("GROUP_AUTHORIZATION_FAILED")
    assert walk.phase is PREPARE_LEAVING


def test_an_answer_to_that_question_is_of_no_use_once_it_has_joined() -> None:
    walk = unsure()
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
def test_what_a_refused_commit_tells(name: str, phase: Phase) -> None:
    walk = Walk().to(STABLE, T0)
    identity = walk.its.identity(walk.now)
    assert identity is not None
    walk.its.on_commit_refused(error(name), identity._replace(generation=0), walk.now)
    walk.its.on_commit_refused(error(name), identity._replace(member_id="other"), walk.now)
    assert walk.phase is STABLE
    walk.its.on_commit_refused(error(name), identity, walk.now)
    assert walk.phase is phase


def test_who_can_commit_in_which_phase() -> None:
    able = {
        phase
        for phase in Phase
        if (walk := Walk().to(phase, T0)).its.identity(walk.now) is not None
    }
    assert able == {ASSIGNING, STABLE, PREPARE_LEAVING}
    walk = Walk().to(STABLE, T0)
    walk.its.request_rejoin("a test", walk.now)
    assert walk.its.identity(walk.now) is not None  # while it gives up
    walk.give_up()
    assert walk.its.identity(walk.now) is not None  # the generation is the last one yet
