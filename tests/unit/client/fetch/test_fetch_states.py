"""Tests the table of fetch state transitions; a transition that is not listed is an error."""

from __future__ import annotations

from itertools import product

import pytest

from kproto.client.fetch.partition_state import (
    NO_POSITION,
    TRANSITIONS,
    FetchState,
    FetchStateEvent,
    TopicPartitionState,
)
from kproto.client.settings import ClientSettings

SETTINGS = ClientSettings()


def in_state(fetch_state: FetchState) -> TopicPartitionState:
    state = TopicPartitionState(("t", 0), SETTINGS)
    state.fetch_state = fetch_state
    return state


@pytest.mark.parametrize(("event", "fetch_state"), list(product(FetchStateEvent, FetchState)))
def test_a_transition_without_an_entry_is_an_error(
    event: FetchStateEvent, fetch_state: FetchState
) -> None:
    state = in_state(fetch_state)
    after = TRANSITIONS[event].get(fetch_state)
    if after is None:
        with pytest.raises(RuntimeError, match=f"{event.name} is no transition of"):
            state.transition(event)
        assert state.fetch_state is fetch_state
    else:
        state.transition(event)
        assert state.fetch_state is after


def test_every_event_has_a_row_and_every_state_is_left() -> None:
    assert TRANSITIONS.keys() == set(FetchStateEvent)
    left = {
        before
        for row in TRANSITIONS.values()
        for before, after in row.items()
        if before is not after
    }
    assert left == set(FetchState)


def test_a_partition_with_a_position_is_fetched_at_once() -> None:
    assert TopicPartitionState(("t", 0), SETTINGS, position=5).fetch_state is FetchState.FETCHING
    new = TopicPartitionState(("t", 0), SETTINGS)
    assert new.fetch_state is FetchState.INITIALIZING
    new.set_position(7)
    assert (new.fetch_state, new.position) == (FetchState.FETCHING, 7)


def test_a_position_behind_the_end_is_reset_to_the_end_if_that_is_preferred() -> None:
    state = TopicPartitionState(("t", 0), SETTINGS, position=9)
    state.await_reset("earliest")
    assert not state.reset(2, after_end="latest")
    assert (state.fetch_state, state.position) == (FetchState.AWAIT_RESET, 9)
    assert state.reset(6, after_end="latest")
    assert (state.fetch_state, state.position) == (FetchState.FETCHING, 6)


def test_position_after_the_end_is_reset_to_a_time_or_to_the_end() -> None:
    state = TopicPartitionState(("t", 0), SETTINGS, position=9)
    state.await_reset("earliest")
    assert not state.reset(2, after_end=1_000)
    strategies = [state.reset_strategy]
    assert not state.reset(NO_POSITION, after_end=1_000)  # no record is that new
    strategies.append(state.reset_strategy)
    assert strategies == [1_000, "latest"]
    assert state.reset(6, after_end=1_000)
    assert (state.fetch_state, state.position) == (FetchState.FETCHING, 6)


def test_a_position_that_the_log_start_has_overtaken_skips_what_is_gone() -> None:
    state = TopicPartitionState(("t", 0), SETTINGS, position=3)
    state.await_reset("earliest")
    assert state.reset(8, after_end="latest")
    assert (state.fetch_state, state.position) == (FetchState.FETCHING, 8)


def test_reset_or_truncation_moves_the_initial_offset_back() -> None:
    for move in ("reset", "truncate"):
        state = TopicPartitionState(("t", 0), SETTINGS, position=9)
        state.initial_offset = 9
        assert not state.may_commit(3, position=9)
        if move == "reset":
            state.await_reset("earliest")
            assert state.reset(2, after_end="earliest")
        else:
            state.truncate_to(2, last_epoch=0, log_end=4)
        assert state.may_commit(3, position=9)
        assert not state.may_commit(1, position=9)
