"""The table of phases of a member of the consumer protocol (KIP-848), row by row."""

from __future__ import annotations

from itertools import product

import pytest

from kproto.client.groups.consumer.phases import (
    ACCEPTING_COMMITS,
    HEARTBEATING,
    LEAVING_PHASES,
    TRANSITIONS,
    Event,
    Phase,
)


@pytest.mark.parametrize(("phase", "event"), list(product(Phase, Event)))
def test_every_row(phase: Phase, event: Event) -> None:
    """What comes of it is one of the phases; what ends a life leads where another may begin."""
    following = TRANSITIONS.get((phase, event))
    if phase is Phase.FATAL:
        assert following is None
    elif event is Event.LEAVE_REQUESTED:
        assert following in (None, Phase.PREPARE_LEAVING)
        assert (following is None) is (phase in LEAVING_PHASES)
    elif event is Event.FENCED:
        expected = {
            Phase.JOINING: Phase.JOINING,
            Phase.PREPARE_LEAVING: Phase.PREPARE_LEAVING,
        }.get(phase, Phase.FENCED if phase in HEARTBEATING else None)
        assert following is expected
    elif following is not None:
        assert following is not phase


def test_every_phase_is_reached_and_but_the_last_is_left() -> None:
    assert set(TRANSITIONS.values()) | {Phase.UNSUBSCRIBED} == set(Phase)
    assert {phase for phase, _ in TRANSITIONS} == set(Phase) - {Phase.FATAL}


def test_a_member_commits_whenever_it_has_an_epoch() -> None:
    """In contrast to a classic one, which waits for the end of a rebalance."""
    assert ACCEPTING_COMMITS == HEARTBEATING
    assert {Phase.PREPARE_LEAVING} == HEARTBEATING & LEAVING_PHASES
