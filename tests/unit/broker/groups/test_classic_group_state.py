"""Tests each event in each state of a classic group: its response and the next state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from kproto.broker.groups import (
    ClassicGroupState,
    JoinResult,
    LeavingMember,
    PendingResult,
    SyncResult,
)
from kproto.broker.groups.classic_group_state import PREVIOUS_STATES, Action, Event, action_for
from kproto.wire.errors import BrokerResponseError

from .classic_group_driver import Play, error_of, protocols

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState
STATES: Final = (EMPTY, PREPARING, COMPLETING, STABLE)


def in_state(state: ClassicGroupState) -> Play:
    """Returns a group in `state`; the member id `id` is pending.

    Unless the group is empty, its members are the leader `lead` and the static member `follow`.
    """
    play = Play()
    play.join(new_id="lead")
    play.join(new_id="follow", instance_id="i")
    play.join("lead")  # both are in generation 2, without an assignment
    play.join(new_id="id", requires_known_member_id=True)
    if state is COMPLETING:
        return play
    play.sync("lead", {"lead": b"L", "follow": b"F"})
    play.sync("follow", instance_id="i")
    if state is EMPTY:
        play.leave("lead", LeavingMember("", "i"), "id")
        play.join(new_id="id", requires_known_member_id=True)
    elif state is PREPARING:
        play.join("lead")
    assert play.state is state
    return play


Answer = PendingResult[JoinResult] | PendingResult[SyncResult] | str


def shown(answer: Answer) -> str:
    """Returns the error of the answer, or `waits` while it is pending."""
    if isinstance(answer, str):
        return answer
    return "waits" if answer.answer is None else answer.answer.error


#: The request for each event; the static member `follow` is instance `i`.
ACTS: Final[dict[Event, Callable[[Play], Answer]]] = {
    Event.MEMBER_JOINED: lambda it: it.join("id"),
    Event.LEADER_REJOINED: lambda it: it.join("lead"),
    Event.FOLLOWER_REJOINED_UNCHANGED: lambda it: it.join("follow", instance_id="i"),
    Event.REJOINED_WITH_CHANGES: lambda it: it.join(
        "follow", instance_id="i", protocols=protocols("range", metadata=b"other")
    ),
    Event.STATIC_MEMBER_REPLACED: lambda it: it.join(new_id="again", instance_id="i"),
    Event.STATIC_MEMBER_REPLACED_WITH_CHANGES: lambda it: _with_two_protocols(it).join(
        "", "sticky", "range", new_id="again", instance_id="i"
    ),
    Event.LEADER_SYNCED: lambda it: it.sync("lead"),
    Event.FOLLOWER_SYNCED: lambda it: it.sync("follow", instance_id="i"),
    Event.HEARTBEAT: lambda it: it.heartbeat("follow"),
    Event.MEMBERS_LEFT: lambda it: it.leave("follow")[0],
    Event.GROUP_DELETED: lambda it: error_of(lambda: it.group.check_deletable(it.now)),
}


def _with_two_protocols(play: Play) -> Play:
    """Makes both members support protocol `sticky`, too; the group still uses protocol `range`."""
    for member in play.group.members.values():
        member.protocols = protocols("range", "sticky")
    if "lead" in play.members:
        play.group.members["lead"].protocols = protocols("sticky", "range")
    return play


_UNKNOWN = ("UNKNOWN_MEMBER_ID", EMPTY)
#: Event → (response, next state) for Empty, PreparingRebalance, CompletingRebalance and Stable.
SEEN: Final = {
    # The first rebalance ends after a delay of 0 ms; later rebalances wait until members rejoin.
    Event.MEMBER_JOINED: (
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
    Event.FOLLOWER_REJOINED_UNCHANGED: (
        _UNKNOWN,
        ("waits", PREPARING),  # the pending member `id` has not joined yet
        ("NONE", COMPLETING),
        ("NONE", STABLE),
    ),
    Event.REJOINED_WITH_CHANGES: (
        _UNKNOWN,
        ("waits", PREPARING),
        ("waits", PREPARING),
        ("waits", PREPARING),
    ),
    Event.STATIC_MEMBER_REPLACED: (
        ("NONE", COMPLETING),  # it joins as a new member
        ("waits", PREPARING),
        ("waits", PREPARING),
        ("NONE", STABLE),
    ),
    Event.STATIC_MEMBER_REPLACED_WITH_CHANGES: (
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
    Event.FOLLOWER_SYNCED: (
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
    Event.MEMBERS_LEFT: (
        _UNKNOWN,
        ("NONE", PREPARING),
        ("NONE", PREPARING),
        ("NONE", PREPARING),
    ),
    Event.GROUP_DELETED: (
        ("NONE", EMPTY),
        ("NON_EMPTY_GROUP", PREPARING),
        ("NON_EMPTY_GROUP", COMPLETING),
        ("NON_EMPTY_GROUP", STABLE),
    ),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", ACTS)
def test_action_for_each_event_in_each_state(event: Event, state: ClassicGroupState) -> None:
    play = in_state(state)
    answer = ACTS[event](play)
    assert (shown(answer), play.state) == SEEN[event][STATES.index(state)]


def test_every_event_is_covered() -> None:
    by_time = {Event.SESSION_EXPIRED, Event.PENDING_MEMBER_EXPIRED}
    assert {*ACTS, *by_time} == set(Event)
    assert set(SEEN) == set(ACTS)


@pytest.mark.parametrize(
    # If the leader has joined again already, the rebalance completes without the member.
    ("state", "after"),
    [(PREPARING, COMPLETING), (COMPLETING, PREPARING), (STABLE, PREPARING)],
)
def test_expired_session_removes_member(state: ClassicGroupState, after: ClassicGroupState) -> None:
    play = in_state(state)
    for _ in range(2):
        play.wait(6_000)
        play.heartbeat("lead")
    assert "follow" not in play.members
    assert play.state is after


@pytest.mark.parametrize(
    ("state", "after"), [(EMPTY, EMPTY), (COMPLETING, COMPLETING), (STABLE, STABLE)]
)
def test_unused_member_id_expires(state: ClassicGroupState, after: ClassicGroupState) -> None:
    play = in_state(state)
    for _ in range(2):
        assert play.group.pending_ids == ("id",)
        play.wait(5_000)
        for member in play.members:
            play.heartbeat(member)
    assert play.group.pending_ids == ()
    assert play.state is after
    assert shown(play.join("id")) == "UNKNOWN_MEMBER_ID"


def test_expired_member_id_no_longer_delays_rebalance() -> None:
    play = in_state(PREPARING)
    follow = play.join("follow", instance_id="i")
    assert shown(follow) == "waits"
    play.wait(10_000)
    assert (shown(follow), play.state) == ("NONE", COMPLETING)


def test_table_respects_valid_previous_states() -> None:
    for event in Event:
        for state in STATES:
            if action_for(event, state) is Action.PREPARE_REBALANCE:
                assert state in PREVIOUS_STATES[PREPARING]
            if action_for(event, state) is Action.STORE_ASSIGNMENT:
                assert state in PREVIOUS_STATES[STABLE]
    with pytest.raises(ValueError, match="not in tuple"):
        action_for(Event.HEARTBEAT, DEAD)


def test_errors_have_messages() -> None:
    play = in_state(STABLE)
    with pytest.raises(BrokerResponseError, match="generation 2, not 7"):
        play.group.heartbeat("lead", None, 7, play.now)
