"""Defines the transition table of a member of a share group (KIP-932).

The member does not acknowledge its assignment: several members may have one partition, so the
coordinator does not wait for revocations. `membership` decides the effects of a phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..heartbeat_phases import COMMON_TRANSITIONS, Event, Phase

__all__ = ["HEARTBEATING", "TRANSITIONS"]

#: Phase and event -> the next phase. An event without an entry for the phase changes nothing.
TRANSITIONS: Final[Mapping[tuple[Phase, Event], Phase]] = MappingProxyType(
    {**COMMON_TRANSITIONS, (Phase.RECONCILING, Event.RECONCILED): Phase.STABLE}
)

#: Phases in which a member with an epoch sends heartbeats.
HEARTBEATING: Final = frozenset((Phase.RECONCILING, Phase.STABLE))
