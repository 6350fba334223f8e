"""Each row of the table of states, in each state, as it is seen from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from kproto.broker.groups import Awaited, GroupState, JoinAnswer, Leaving, SyncAnswer
from kproto.broker.groups.classic_group_state import CAME_FROM, Event, Then, then
from kproto.wire.errors import BrokerResponseError

from .classic_group_driver import Play, error_of, protocols

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
STATES: Final = (EMPTY, PREPARING, COMPLETING, STABLE)


def in_state(state: GroupState) -> Play:
    """Of two members that have been there, `lead` and static `follow`; `id` was given away."""
    play = Play()
    play.join(new_id="lead")
    play.join(new_id="follow", instance_id="i")
    play.join("lead")  # both are in generation 2 now, and nobody has its assignment
    play.join(new_id="id", needs_member_id=True)
    if state is COMPLETING:
        return play
    play.sync("lead", {"lead": b"L", "follow": b"F"})
    play.sync("follow", instance_id="i")
    if state is EMPTY:
        play.leave("lead", Leaving("", "i"), "id")
        play.join(new_id="id", needs_member_id=True)
    elif state is PREPARING:
        play.join("lead")
    assert play.state is state
    return play


Answer = Awaited[JoinAnswer] | Awaited[SyncAnswer] | str


def shown(answer: Answer) -> str:
    """An error, `waits`, or NONE."""
    if isinstance(answer, str):
        return answer
    return "waits" if answer.answer is None else answer.answer.error


#: What makes each event happen; the other static member that is there is instance `i`.
ACTS: Final[dict[Event, Callable[[Play], Answer]]] = {
    Event.NEW_MEMBER: lambda it: it.join("id"),
    Event.LEADER_REJOINED: lambda it: it.join("lead"),
    Event.SAME_REJOINED: lambda it: it.join("follow", instance_id="i"),
    Event.CHANGED_REJOINED: lambda it: it.join(
        "follow", instance_id="i", protocols=protocols("range", metadata=b"other")
    ),
    Event.REPLACED: lambda it: it.join(new_id="again", instance_id="i"),
    Event.REPLACED_CHANGED: lambda it: _with_two_protocols(it).join(
        "", "sticky", "range", new_id="again", instance_id="i"
    ),
    Event.LEADER_SYNCED: lambda it: it.sync("lead"),
    Event.SYNCED: lambda it: it.sync("follow", instance_id="i"),
    Event.HEARTBEAT: lambda it: it.heartbeat("follow"),
    Event.LEFT: lambda it: it.leave("follow")[0],
    Event.DELETED: lambda it: error_of(lambda: it.group.check_deletable(it.now)),
}


def _with_two_protocols(play: Play) -> Play:
    """Both support sticky too, and range is what they go by."""
    for member in play.group.members.values():
        member.protocols = protocols("range", "sticky")
    if "lead" in play.members:
        play.group.members["lead"].protocols = protocols("sticky", "range")
    return play


_UNKNOWN = ("UNKNOWN_MEMBER_ID", EMPTY)
#: Answer and state after it, from Empty, PreparingRebalance, CompletingRebalance, Stable.
SEEN: Final = {
    # A first rebalance waits for its delay, of 0 here; another for those who have not joined.
    Event.NEW_MEMBER: (
        ("NONE", COMPLETING),
        ("waits", PREPARING),
        ("waits", PREPARING),
        ("waits", PREPARING),
    ),
    Event.LEADER_REJOINED: (
        _UNKNOWN,
        ("waits", PREPARING),
        ("NONE", COMPLETING),
        ("waits", PREPARING),
    ),
    Event.SAME_REJOINED: (
        _UNKNOWN,
        ("waits", PREPARING),  # for `id`, which was given to somebody
        ("NONE", COMPLETING),
        ("NONE", STABLE),
    ),
    Event.CHANGED_REJOINED: (
        _UNKNOWN,
        ("waits", PREPARING),
        ("waits", PREPARING),
        ("waits", PREPARING),
    ),
    Event.REPLACED: (
        ("NONE", COMPLETING),  # it is a new member
        ("waits", PREPARING),
        ("waits", PREPARING),
        ("NONE", STABLE),
    ),
    Event.REPLACED_CHANGED: (
        ("NONE", COMPLETING),
        ("waits", PREPARING),
        ("waits", PREPARING),
        ("waits", PREPARING),
    ),
    Event.LEADER_SYNCED: (
        _UNKNOWN,
        ("REBALANCE_IN_PROGRESS", PREPARING),
        ("NONE", STABLE),
        ("NONE", STABLE),
    ),
    Event.SYNCED: (
        _UNKNOWN,
        ("REBALANCE_IN_PROGRESS", PREPARING),
        ("waits", COMPLETING),
        ("NONE", STABLE),
    ),
    Event.HEARTBEAT: (
        _UNKNOWN,
        ("REBALANCE_IN_PROGRESS", PREPARING),
        ("NONE", COMPLETING),
        ("NONE", STABLE),
    ),
    Event.LEFT: (
        _UNKNOWN,
        ("NONE", PREPARING),
        ("NONE", PREPARING),
        ("NONE", PREPARING),
    ),
    Event.DELETED: (
        ("NONE", EMPTY),
        ("NON_EMPTY_GROUP", PREPARING),
        ("NON_EMPTY_GROUP", COMPLETING),
        ("NON_EMPTY_GROUP", STABLE),
    ),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", ACTS)
def test_what_is_asked_in_each_state(event: Event, state: GroupState) -> None:
    play = in_state(state)
    answer = ACTS[event](play)
    assert (shown(answer), play.state) == SEEN[event][STATES.index(state)]


def test_every_event_is_played() -> None:
    by_time = {Event.SESSION_OVER, Event.PENDING_OVER}
    assert {*ACTS, *by_time} == set(Event)
    assert set(SEEN) == set(ACTS)


@pytest.mark.parametrize(
    # Where the leader has joined again already, it goes on alone.
    ("state", "after"),
    [(PREPARING, COMPLETING), (COMPLETING, PREPARING), (STABLE, PREPARING)],
)
def test_a_session_that_is_over(state: GroupState, after: GroupState) -> None:
    play = in_state(state)
    for _ in range(2):
        play.wait(6_000)
        play.heartbeat("lead")
    assert "follow" not in play.members
    assert play.state is after


@pytest.mark.parametrize(
    ("state", "after"), [(EMPTY, EMPTY), (COMPLETING, COMPLETING), (STABLE, STABLE)]
)
def test_an_id_that_nobody_used(state: GroupState, after: GroupState) -> None:
    play = in_state(state)
    for _ in range(2):
        assert play.group.pending_ids == ("id",)
        play.wait(5_000)
        for member in play.members:
            play.heartbeat(member)
    assert play.group.pending_ids == ()
    assert play.state is after
    assert shown(play.join("id")) == "UNKNOWN_MEMBER_ID"


def test_an_id_that_nobody_used_holds_up_the_others_no_longer() -> None:
    play = in_state(PREPARING)
    follow = play.join("follow", instance_id="i")
    assert shown(follow) == "waits"
    play.wait(10_000)
    assert (shown(follow), play.state) == ("NONE", COMPLETING)


def test_the_table_keeps_to_the_ways_between_states() -> None:
    for event in Event:
        for state in STATES:
            if then(event, state) is Then.REBALANCE:
                assert state in CAME_FROM[PREPARING]
            if then(event, state) is Then.ASSIGN:
                assert state in CAME_FROM[STABLE]
    with pytest.raises(ValueError, match="not in tuple"):
        then(Event.HEARTBEAT, DEAD)


def test_errors_have_details_for_people() -> None:
    play = in_state(STABLE)
    with pytest.raises(BrokerResponseError, match="generation 2, not 7"):
        play.group.heartbeat("lead", None, 7, play.now)
