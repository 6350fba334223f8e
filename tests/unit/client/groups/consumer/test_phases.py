"""Tests the phase table of a consumer protocol member (KIP-848), row by row."""

from __future__ import annotations

from itertools import product

import pytest

from kproto.client.groups.consumer.phases import (
    ACCEPTING_COMMITS,
    HEARTBEATING,
    TRANSITIONS,
)
from kproto.client.groups.heartbeat_phases import LEAVING_PHASES, Event, Phase


@pytest.mark.parametrize(("phase", "event"), list(product(Phase, Event)))
def test_each_transition_leads_to_a_valid_phase(phase: Phase, event: Event) -> None:
    """LEAVE_REQUESTED leads to PREPARE_LEAVING unless the member already leaves.

    FENCED does not change the phases JOINING and PREPARE_LEAVING. From all other phases with
    heartbeats, FENCED leads to the phase FENCED. All other events that have a transition change the
    phase. FATAL has no transitions.
    """
    next_phase = TRANSITIONS.get((phase, event))
    if phase is Phase.FATAL:
        assert next_phase is None
    elif event is Event.LEAVE_REQUESTED:
        assert next_phase in (None, Phase.PREPARE_LEAVING)
        assert (next_phase is None) is (phase in LEAVING_PHASES)
    elif event is Event.FENCED:
        expected = {
            Phase.JOINING: Phase.JOINING,
            Phase.PREPARE_LEAVING: Phase.PREPARE_LEAVING,
        }.get(phase, Phase.FENCED if phase in HEARTBEATING else None)
        assert next_phase is expected
    elif next_phase is not None:
        assert next_phase is not phase


def test_each_phase_can_be_entered_and_left_except_the_last() -> None:
    assert set(TRANSITIONS.values()) | {Phase.UNSUBSCRIBED} == set(Phase)
    assert {phase for phase, _ in TRANSITIONS} == set(Phase) - {Phase.FATAL}


def test_member_commits_whenever_it_has_an_epoch() -> None:
    """A classic member, in contrast, cannot commit while it joins or syncs."""
    assert ACCEPTING_COMMITS == HEARTBEATING
    assert {Phase.PREPARE_LEAVING} == HEARTBEATING & LEAVING_PHASES
