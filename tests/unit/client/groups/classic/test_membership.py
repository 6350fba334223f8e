"""Tests the state machine `ClassicMembership`: each call in each phase, without an event loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto.client.groups.classic.phases import TRANSITIONS, Event, Phase
from kproto.client.groups.effects import ApplyAssignment, Revoke
from kproto.client.groups.protocol_data import read_subscription
from kproto.client.groups.subscription import Subscription
from kproto.messages import JoinGroupResponse, SyncGroupResponse
from kproto.protocol.error_codes import code_of

from ..memberships import MEMBER, T0, T1, Walk, error
from . import test_membership_joining as joining
from . import test_membership_sessions as sessions

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

#: Calls and timeouts of the state machine, by name.
CALLS: dict[str, Callable[[Walk], object]] = {
    "request_rejoin": lambda walk: walk.its.request_rejoin("a test", walk.now),
    "other topic": lambda walk: walk.its.subscribe(Subscription.to("u"), walk.now),
    "unsubscribe": lambda walk: walk.its.subscribe(None, walk.now),
    "polled": lambda walk: walk.its.on_poll(walk.now),
    "late": lambda walk: walk.its.on_poll_timeout(walk.now),
    "closed": lambda walk: walk.begin_leave(ends=True),
    "silence": lambda walk: walk.its.tick(walk.now + 10.0),
    "moved": lambda walk: walk.its.on_coordinator_moved(walk.now),
    "failed": lambda walk: walk.its.fail(error("INVALID_GROUP_ID"), walk.now, leaves=True),
}

#: Phase -> call -> next phase; a call that is not listed leaves the phase unchanged.
NEXT_PHASES: dict[Phase, dict[str, Phase]] = {
    UNSUBSCRIBED: {"other topic": REVOKING, "polled": REVOKING, "closed": FATAL, "failed": FATAL},
    REVOKING: {
        "unsubscribe": PREPARE_LEAVING,
        "late": PREPARE_LEAVING,
        "closed": PREPARE_LEAVING,
        "failed": PREPARE_LEAVING,
    },
    JOINING: {"failed": PREPARE_LEAVING, "moved": JOINING},  # leaving waits for the member id
    LEADING: dict.fromkeys(("unsubscribe", "late", "closed", "failed"), PREPARE_LEAVING)
    | {"silence": REVOKING},
    SYNCING: dict.fromkeys(("unsubscribe", "late", "closed", "failed"), PREPARE_LEAVING)
    | {"silence": REVOKING, "moved": SYNCING},
    ASSIGNING: dict.fromkeys(("unsubscribe", "late", "closed", "failed"), PREPARE_LEAVING)
    | {"silence": REVOKING},
    STABLE: dict.fromkeys(("unsubscribe", "late", "closed", "failed"), PREPARE_LEAVING)
    | dict.fromkeys(("request_rejoin", "other topic", "silence"), REVOKING),
    PREPARE_LEAVING: {"silence": PREPARE_LEAVING, "failed": PREPARE_LEAVING},
    LEAVING: {},
    FATAL: {},
}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("call", CALLS)
def test_call_leads_to_its_next_phase(phase: Phase, call: str) -> None:
    walk = Walk().to(phase, T0)
    transition_count = walk.its.transition_count
    CALLS[call](walk)
    expected = NEXT_PHASES[phase].get(call)
    assert walk.phase is (expected or phase)
    # A step that began before `transition_count` changed is obsolete.
    assert (walk.its.transition_count != transition_count) == (expected is not None)


#: Heartbeat error -> phase -> next phase.
HEARTBEAT_ERRORS: dict[str, dict[Phase, Phase]] = {
    "REBALANCE_IN_PROGRESS": {STABLE: REVOKING},
    "ILLEGAL_GENERATION": {
        LEADING: REVOKING,
        SYNCING: REVOKING,
        ASSIGNING: REVOKING,
        STABLE: REVOKING,
        PREPARE_LEAVING: PREPARE_LEAVING,
    },
    "UNKNOWN_MEMBER_ID": {
        LEADING: REVOKING,
        SYNCING: REVOKING,
        ASSIGNING: REVOKING,
        STABLE: REVOKING,
        PREPARE_LEAVING: PREPARE_LEAVING,
    },
    "FENCED_INSTANCE_ID": dict.fromkeys(
        (LEADING, SYNCING, ASSIGNING, STABLE, PREPARE_LEAVING), PREPARE_LEAVING
    ),
    "GROUP_AUTHORIZATION_FAILED": dict.fromkeys(
        (LEADING, SYNCING, ASSIGNING, STABLE, PREPARE_LEAVING), PREPARE_LEAVING
    ),
    "NOT_COORDINATOR": {},
    "COORDINATOR_NOT_AVAILABLE": {},
    "COORDINATOR_LOAD_IN_PROGRESS": {},
}


@pytest.mark.parametrize("phase", [LEADING, SYNCING, ASSIGNING, STABLE, PREPARE_LEAVING])
@pytest.mark.parametrize("name", HEARTBEAT_ERRORS)
def test_heartbeat_error_leads_to_its_next_phase(phase: Phase, name: str) -> None:
    walk = Walk().to(phase, T0)
    transition_count = walk.its.transition_count
    walk.on_heartbeat_response(name)
    expected = HEARTBEAT_ERRORS[name].get(phase)
    assert walk.phase is (expected or phase)
    assert (walk.its.transition_count != transition_count) == (expected is not None)


def test_every_transition_of_the_table_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transition of the table occurs in the tests that this test calls."""
    walked: set[tuple[Phase, Event]] = set()
    before = Walk.__init__

    def spied(self: Walk, *args: object, **settings: object) -> None:
        before(self, *args, **settings)  # type: ignore[arg-type]
        go = self.its._transition

        def noted(event: Event) -> bool:
            phase = self.its.phase
            if (phase, event) in TRANSITIONS:
                walked.add((phase, event))
            return go(event)

        self.its._transition = noted  # type: ignore[method-assign]

    monkeypatch.setattr(Walk, "__init__", spied)
    for phase in Phase:
        for call in CALLS:
            test_call_leads_to_its_next_phase(phase, call)
    test_refused_syncgroup_keeps_owned_partitions_and_their_generation()
    sessions.test_revocation_turns_into_a_loss_when_the_member_is_unknown()
    joining.test_unknown_id_while_joining_is_replaced()
    joining.test_first_join_gets_an_id_and_then_a_generation()
    assert set(TRANSITIONS) == walked


# Assignments


@pytest.mark.parametrize(
    ("name", "generation", "member_id"),
    [
        ("REBALANCE_IN_PROGRESS", 1, MEMBER),
        ("ILLEGAL_GENERATION", -1, MEMBER),
        ("UNKNOWN_MEMBER_ID", -1, ""),
    ],
)
def test_refused_syncgroup_makes_the_member_rejoin(
    name: str, generation: int, member_id: str
) -> None:
    walk = Walk().to(SYNCING)
    walk.sync_refused(name)
    assert walk.phase is REVOKING
    assert (walk.its.generation, walk.its.member_id) == (generation, member_id)
    walk.revoke()
    assert walk.join().member_id == member_id  # at once


def test_refused_syncgroup_keeps_owned_partitions_and_their_generation() -> None:
    """The next JoinGroup reports the owned partitions.

    KIP-568 adds the generation in which they were assigned.
    """
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0, T1)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.revoke()
    walk.join()
    walk.joined(2, protocol="cooperative-sticky")
    walk.sync_refused("REBALANCE_IN_PROGRESS")
    assert walk.revoke().partitions == frozenset()
    subscription = read_subscription(walk.join().protocols[0].metadata)
    assert (sorted(subscription.owned), subscription.generation) == ([T0, T1], 1)
    assert walk.join_sent is not None
    assert walk.join_sent.member_id == MEMBER


def test_partitions_of_a_topic_without_subscription_are_ignored_and_logged() -> None:
    walk = Walk().to(SYNCING)
    walk.synced(T0, ("u", 0))
    assert walk.apply().added == (T0,)
    assert any("not subscribed to" in text for _, text, _ in walk.its.log_lines)


def test_partitions_of_an_unsubscribed_topic_are_ignored() -> None:
    walk = Walk().to(SYNCING)
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.synced(T0)
    assert walk.apply().added == ()
    assert walk.phase is REVOKING  # and rejoins at once with the new subscription
    walk.revoke()
    assert list(read_subscription(walk.join().protocols[0].metadata).topics) == ["u"]
    assert not any("not subscribed to" in text for _, text, _ in walk.its.log_lines)


def test_malformed_assignment_is_fatal() -> None:
    walk = Walk().to(SYNCING)
    answer = SyncGroupResponse(
        protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\1"
    )
    walk.its.on_sync_response(answer, walk.now, walk.now)
    assert "ConsumerProtocolAssignment" in str(walk.its.error)


def test_empty_assignment_has_no_partitions() -> None:
    walk = Walk().to(SYNCING)
    answer = SyncGroupResponse(protocol_type="consumer", protocol_name="range")
    walk.its.on_sync_response(answer, walk.now, walk.now)
    assert walk.apply().added == ()


# Eager and cooperative


def test_eager_member_revokes_all_partitions_first() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    assert walk.revoke() == Revoke(frozenset({T0, T1}), False, 159.0)
    subscription = read_subscription(walk.join().protocols[0].metadata)
    assert (subscription.owned, subscription.generation) == ([], 1)
    walk.joined(2)
    walk.synced(T1)
    assert walk.apply().added == (T1,)


def test_cooperative_member_keeps_its_partitions_through_a_rebalance() -> None:
    """The member revokes only a partition that moves to another member (KIP-429).

    A second rebalance then assigns this partition.
    """
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0, T1)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    assert walk.revoke().partitions == frozenset()
    subscription = read_subscription(walk.join().protocols[0].metadata)
    assert (sorted(subscription.owned), subscription.generation) == ([T0, T1], 1)
    walk.joined(2, protocol="cooperative-sticky")
    walk.synced(T0, protocol="cooperative-sticky")
    assert walk.apply() == ApplyAssignment(frozenset({T1}), (), walk.now + 59.0)
    assert walk.phase is REVOKING
    assert walk.revoke().partitions == frozenset()
    subscription = read_subscription(walk.join().protocols[0].metadata)
    assert (subscription.owned, subscription.generation) == ([T0], 2)
    assert walk.join_sent is not None
    assert "revoked for other members" in (walk.join_sent.reason or "")
    walk.joined(3, protocol="cooperative-sticky")
    walk.synced(T0, protocol="cooperative-sticky")
    assert walk.apply() == ApplyAssignment(frozenset(), (), walk.now + 59.0)
    assert walk.phase is STABLE


def test_unsubscribed_partitions_are_revoked_before_joining() -> None:
    walk = Walk(assignors=("cooperative-sticky",))
    walk.its.subscribe(Subscription.to(["t", "u"]), walk.now)
    walk.to(STABLE, T0, ("u", 0))
    walk.its.subscribe(Subscription.to("u"), walk.now)
    assert walk.revoke().partitions == frozenset({T0})


def test_member_is_eager_unless_all_assignors_are_cooperative() -> None:
    assert not Walk(assignors=("range", "cooperative-sticky")).settings.cooperative
    assert Walk(assignors=("cooperative-sticky",)).settings.cooperative
    walk = Walk(assignors=("range", "cooperative-sticky"))
    walk.revoke()
    assert [each.name for each in walk.join().protocols] == ["range", "cooperative-sticky"]


def test_user_data_of_an_assignor_holds_its_own_last_assignment() -> None:
    """As in Java, an assignor ignores generations in which the group used another assignor."""
    walk = Walk(assignors=("sticky", "cooperative-sticky", "range"))
    walk.revoke()
    data = {each.name: read_subscription(each.metadata) for each in walk.join().protocols}
    assert data["sticky"].user_data is None
    assert data["cooperative-sticky"].user_data == b"\xff\xff\xff\xff"
    assert data["range"].user_data is None
    walk.joined(4, protocol="sticky")
    walk.synced(T0, protocol="sticky")
    walk.apply()
    walk.its.request_rejoin("a test", walk.now)
    walk.revoke()
    data = {each.name: read_subscription(each.metadata) for each in walk.join().protocols}
    expected = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\0\0\0\4"
    assert data["sticky"].user_data == expected
    assert data["cooperative-sticky"].user_data == b"\xff\xff\xff\xff"


# Reasons


def test_rejoin_reason_is_sent_once_and_truncated() -> None:
    """KIP-800 adds the reason to JoinGroup; of several reasons the first is sent."""
    walk = Walk().to(STABLE, T0)
    walk.its.request_rejoin("x" * 1_000, walk.now)
    walk.its.request_rejoin("another", walk.now)
    walk.revoke()
    assert walk.join().reason == "x" * 255
    walk.joined(2)
    walk.synced(T0)
    walk.apply()
    assert walk.phase is STABLE


def test_subscription_changed_while_joining_starts_another_rebalance() -> None:
    walk = Walk().to(JOINING)
    walk.its.subscribe(Subscription.to(["t", "u"]), walk.now)
    walk.joined()
    walk.synced(T0)
    walk.apply()
    assert walk.phase is REVOKING
    walk.revoke()
    assert list(read_subscription(walk.join().protocols[0].metadata).topics) == ["t", "u"]


def test_unknown_error_code_is_fatal() -> None:
    walk = Walk().to(JOINING)
    walk.its.on_join_response(JoinGroupResponse(error_code=9_999), walk.now, walk.now)
    assert "UNKNOWN_CODE_9999" in str(walk.its.error)
    assert code_of("NONE") == 0
