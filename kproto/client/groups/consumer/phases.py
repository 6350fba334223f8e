"""Defines the transition table of a member of the consumer protocol (KIP-848).

`membership` decides the effects of a phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..heartbeat_phases import COMMON_TRANSITIONS, Event, Phase

__all__ = ["ACCEPTING_COMMITS", "HEARTBEATING", "TRANSITIONS"]

#: Phase and event -> the next phase. An event without an entry for the phase changes nothing.
TRANSITIONS: Final[Mapping[tuple[Phase, Event], Phase]] = MappingProxyType(
    {
        **COMMON_TRANSITIONS,
        # The member first applies and acknowledges the current assignment, because the coordinator
        # waits for that; a newer assignment follows.
        (Phase.RECONCILING, Event.RECONCILED): Phase.ACKNOWLEDGING,
        (Phase.ACKNOWLEDGING, Event.ACKNOWLEDGED): Phase.STABLE,
        (Phase.ACKNOWLEDGING, Event.FENCED): Phase.FENCED,
        (Phase.ACKNOWLEDGING, Event.LEAVE_REQUESTED): Phase.PREPARE_LEAVING,
        # The partitions in revocation are lost.
        (Phase.PREPARE_LEAVING, Event.FENCED): Phase.PREPARE_LEAVING,
    }
)

#: Phases in which a member with an epoch sends heartbeats.
HEARTBEATING: Final = frozenset(
    (Phase.RECONCILING, Phase.ACKNOWLEDGING, Phase.STABLE, Phase.PREPARE_LEAVING)
)

#: Phases in which a member can commit: those with an epoch.
ACCEPTING_COMMITS: Final = HEARTBEATING
