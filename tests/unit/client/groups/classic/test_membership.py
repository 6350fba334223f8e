"""A member of a classic group as a state machine: each phase and what may happen in it, no loop."""

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

#: What happens, by a word.
HAPPENINGS: dict[str, Callable[[Walk], object]] = {
    "request_rejoin": lambda walk: walk.its.request_rejoin("a test", walk.now),
    "other topic": lambda walk: walk.its.subscribe(Subscription.to("u"), walk.now),
    "unsubscribe": lambda walk: walk.its.subscribe(None, walk.now),
    "asked": lambda walk: walk.its.on_poll(walk.now),
    "late": lambda walk: walk.its.on_poll_timeout(walk.now),
    "closed": lambda walk: walk.begin_leave(ends=True),
    "silence": lambda walk: walk.its.tick(walk.now + 10.0),
    "moved": lambda walk: walk.its.on_coordinator_moved(walk.now),
    "failed": lambda walk: walk.its.fail(error("INVALID_GROUP_ID"), walk.now, leaves=True),
}

#: Phase -> happening -> next phase; what is not there changes nothing.
GRID: dict[Phase, dict[str, Phase]] = {
    UNSUBSCRIBED: {"other topic": REVOKING, "asked": REVOKING, "closed": FATAL, "failed": FATAL},
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
@pytest.mark.parametrize("happening", HAPPENINGS)
def test_what_happens_in_a_phase(phase: Phase, happening: str) -> None:
    walk = Walk().to(phase, T0)
    turn = walk.its.turn
    HAPPENINGS[happening](walk)
    expected = GRID[phase].get(happening)
    assert walk.phase is (expected or phase)
    # A step that was under way in another turn is pointless.
    assert (walk.its.turn != turn) == (expected is not None)


#: What a heartbeat is answered, and where the member is then.
BEATS: dict[str, dict[Phase, Phase]] = {
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
@pytest.mark.parametrize("name", BEATS)
def test_what_a_heartbeat_tells(phase: Phase, name: str) -> None:
    walk = Walk().to(phase, T0)
    turn = walk.its.turn
    walk.on_heartbeat_response(name)
    expected = BEATS[name].get(phase)
    assert walk.phase is (expected or phase)
    assert (walk.its.turn != turn) == (expected is not None)


def test_every_row_of_the_table_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is there because something takes it."""
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
        for happening in HAPPENINGS:
            test_what_happens_in_a_phase(phase, happening)
    test_a_refused_sync_is_another_rebalance()
    sessions.test_what_is_lost_while_it_is_given_up()
    joining.test_an_id_that_counts_no_more_while_joining()
    joining.test_the_first_way_into_a_group()
    assert set(TRANSITIONS) == walked


# The assignment


@pytest.mark.parametrize(
    ("name", "generation", "member_id"),
    [
        ("REBALANCE_IN_PROGRESS", 1, MEMBER),
        ("ILLEGAL_GENERATION", -1, MEMBER),
        ("UNKNOWN_MEMBER_ID", -1, ""),
    ],
)
def test_what_a_refused_sync_leaves(name: str, generation: int, member_id: str) -> None:
    walk = Walk().to(SYNCING)
    walk.sync_refused(name)
    assert walk.phase is REVOKING
    assert (walk.its.generation, walk.its.member_id) == (generation, member_id)
    walk.give_up()
    assert walk.join().member_id == member_id  # at once


def test_a_refused_sync_is_another_rebalance() -> None:
    """KIP-568: what is read and since when stays as it is, and so it is told."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0, T1)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    walk.give_up()
    walk.join()
    walk.joined(2, protocol="cooperative-sticky")
    walk.sync_refused("REBALANCE_IN_PROGRESS")
    assert walk.give_up().partitions == frozenset()
    told = read_subscription(walk.join().protocols[0].metadata)
    assert (sorted(told.owned), told.generation) == ([T0, T1], 1)
    assert walk.asked is not None
    assert walk.asked.member_id == MEMBER


def test_partitions_of_a_topic_that_nobody_subscribed_to() -> None:
    walk = Walk().to(SYNCING)
    walk.synced(T0, ("u", 0))
    assert walk.take_on().added == (T0,)
    assert any("not subscribed to" in text for _, text, _ in walk.its.news)


def test_partitions_of_a_topic_that_was_unsubscribed_meanwhile() -> None:
    walk = Walk().to(SYNCING)
    walk.its.subscribe(Subscription.to("u"), walk.now)
    walk.synced(T0)
    assert walk.take_on().added == ()
    assert walk.phase is REVOKING  # and at once joins for the other
    walk.give_up()
    assert list(read_subscription(walk.join().protocols[0].metadata).topics) == ["u"]
    assert not any("not subscribed to" in text for _, text, _ in walk.its.news)


def test_an_assignment_that_cannot_be_read() -> None:
    walk = Walk().to(SYNCING)
    answer = SyncGroupResponse(
        protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\1"
    )
    walk.its.on_sync_response(answer, walk.now, walk.now)
    assert "ConsumerProtocolAssignment" in str(walk.its.error)


def test_no_bytes_are_no_partitions() -> None:
    walk = Walk().to(SYNCING)
    answer = SyncGroupResponse(protocol_type="consumer", protocol_name="range")
    walk.its.on_sync_response(answer, walk.now, walk.now)
    assert walk.take_on().added == ()


# Eager and cooperative


def test_an_eager_member_gives_up_all_first() -> None:
    walk = Walk().to(STABLE, T0, T1)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    assert walk.give_up() == Revoke(frozenset({T0, T1}), False, 159.0)
    told = read_subscription(walk.join().protocols[0].metadata)
    assert (told.owned, told.generation) == ([], 1)
    walk.joined(2)
    walk.synced(T1)
    assert walk.take_on().added == (T1,)


def test_a_cooperative_member_reads_on() -> None:
    """KIP-429: what it has to give up others get in a second rebalance, which it begins."""
    walk = Walk(assignors=("cooperative-sticky",)).to(STABLE, T0, T1)
    walk.on_heartbeat_response("REBALANCE_IN_PROGRESS")
    assert walk.give_up().partitions == frozenset()
    told = read_subscription(walk.join().protocols[0].metadata)
    assert (sorted(told.owned), told.generation) == ([T0, T1], 1)
    walk.joined(2, protocol="cooperative-sticky")
    walk.synced(T0, protocol="cooperative-sticky")
    assert walk.take_on() == ApplyAssignment(frozenset({T1}), (), walk.now + 59.0)
    assert walk.phase is REVOKING
    assert walk.give_up().partitions == frozenset()
    told = read_subscription(walk.join().protocols[0].metadata)
    assert (told.owned, told.generation) == ([T0], 2)
    assert walk.asked is not None
    assert "given up" in (walk.asked.reason or "")
    walk.joined(3, protocol="cooperative-sticky")
    walk.synced(T0, protocol="cooperative-sticky")
    assert walk.take_on() == ApplyAssignment(frozenset(), (), walk.now + 59.0)
    assert walk.phase is STABLE


def test_what_is_not_wanted_any_more_is_given_up_before_joining() -> None:
    walk = Walk(assignors=("cooperative-sticky",))
    walk.its.subscribe(Subscription.to(["t", "u"]), walk.now)
    walk.to(STABLE, T0, ("u", 0))
    walk.its.subscribe(Subscription.to("u"), walk.now)
    assert walk.give_up().partitions == frozenset({T0})


def test_eager_unless_all_assignors_cooperate() -> None:
    assert not Walk(assignors=("range", "cooperative-sticky")).settings.cooperative
    assert Walk(assignors=("cooperative-sticky",)).settings.cooperative
    walk = Walk(assignors=("range", "cooperative-sticky"))
    walk.give_up()
    assert [each.name for each in walk.join().protocols] == ["range", "cooperative-sticky"]


def test_each_assignor_is_told_what_the_member_got_by_it() -> None:
    """As Java's assignors remember it; the generation of another means nothing to one."""
    walk = Walk(assignors=("sticky", "cooperative-sticky", "range"))
    walk.give_up()
    data = {each.name: read_subscription(each.metadata) for each in walk.join().protocols}
    assert data["sticky"].user_data is None
    assert data["cooperative-sticky"].user_data == b"\xff\xff\xff\xff"
    assert data["range"].user_data is None
    walk.joined(4, protocol="sticky")
    walk.synced(T0, protocol="sticky")
    walk.take_on()
    walk.its.request_rejoin("a test", walk.now)
    walk.give_up()
    data = {each.name: read_subscription(each.metadata) for each in walk.join().protocols}
    expected = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\0\0\0\4"
    assert data["sticky"].user_data == expected
    assert data["cooperative-sticky"].user_data == b"\xff\xff\xff\xff"


# Reasons


def test_reasons_are_told_and_bounded() -> None:
    """KIP-800; the first of several counts, and each once."""
    walk = Walk().to(STABLE, T0)
    walk.its.request_rejoin("x" * 1_000, walk.now)
    walk.its.request_rejoin("another", walk.now)
    walk.give_up()
    assert walk.join().reason == "x" * 255
    walk.joined(2)
    walk.synced(T0)
    walk.take_on()
    assert walk.phase is STABLE


def test_what_is_wanted_while_joining_comes_in_the_next_round() -> None:
    walk = Walk().to(JOINING)
    walk.its.subscribe(Subscription.to(["t", "u"]), walk.now)
    walk.joined()
    walk.synced(T0)
    walk.take_on()
    assert walk.phase is REVOKING
    walk.give_up()
    assert list(read_subscription(walk.join().protocols[0].metadata).topics) == ["t", "u"]


def test_codes_that_no_release_knows() -> None:
    walk = Walk().to(JOINING)
    walk.its.on_join_response(JoinGroupResponse(error_code=9_999), walk.now, walk.now)
    assert "UNKNOWN_CODE_9999" in str(walk.its.error)
    assert code_of("NONE") == 0
