"""Defines the states of a record in a share partition as a table (KIP-932).

| state | next states |
|---|---|
| AVAILABLE | ACQUIRED |
| ACQUIRED | AVAILABLE, ACKNOWLEDGED, ARCHIVED |
| ACKNOWLEDGED, ARCHIVED | none |

A record that is released, or whose acquisition lock expires, becomes AVAILABLE again, or ARCHIVED
if it has reached the delivery count limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

__all__ = ["ACKNOWLEDGED_STATES", "TERMINAL", "TRANSITIONS", "AcknowledgeType", "RecordState"]


class RecordState(IntEnum):
    """Names the states of a record; the values are the codes in records and responses."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """Names the acknowledge types of ShareFetch and ShareAcknowledge."""

    #: The offset has no record.
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    #: The acquisition lock starts again (KIP-1222).
    RENEW = 4


#: The states that may follow each state.
TRANSITIONS: Final[Mapping[RecordState, frozenset[RecordState]]] = MappingProxyType(
    {
        RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED}),
        RecordState.ACQUIRED: frozenset(
            {RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}
        ),
        RecordState.ACKNOWLEDGED: frozenset(),
        RecordState.ARCHIVED: frozenset(),
    }
)

#: The states in which the delivery of a record is complete.
TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})

#: The state of a record after each acknowledge type, except RENEW, which keeps the state.
ACKNOWLEDGED_STATES: Final[Mapping[AcknowledgeType, RecordState]] = MappingProxyType(
    {
        AcknowledgeType.GAP: RecordState.ARCHIVED,
        AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
        AcknowledgeType.RELEASE: RecordState.AVAILABLE,
        AcknowledgeType.REJECT: RecordState.ARCHIVED,
    }
)
