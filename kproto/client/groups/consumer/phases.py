"""Defines the phases and the transition table of a member of the consumer protocol.

The phases are those of KIP-848, with the names of Java's consumer. `membership` decides the effects
of a phase.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["ACCEPTING_COMMITS", "HEARTBEATING", "LEAVING_PHASES", "TRANSITIONS", "Event", "Phase"]


class Phase(Enum):
    """The phases of a member of the consumer protocol."""

    UNSUBSCRIBED = "in no group"
    JOINING = "sending epoch 0 until the coordinator returns another epoch"
    RECONCILING = "revoking and adding partitions to match the assignment"
    ACKNOWLEDGING = "acknowledging the owned partitions by a heartbeat"
    STABLE = "owning the assignment, which is acknowledged"
    FENCED = "losing all partitions, before it rejoins"
    PREPARE_LEAVING = "revoking all partitions, before it leaves"
    LEAVING = "the last heartbeat is in flight"
    STALE = "in no group until the next poll, because no poll came in time"
    FATAL = "ended"


class Event(Enum):
    """An event that may change the phase."""

    SUBSCRIBED = "the consumer has subscribed"
    JOINED = "the coordinator returned an epoch"
    ASSIGNED = "the assignment differs from the owned partitions"
    RECONCILED = "the partitions are revoked and added"
    ACKNOWLEDGED = "the coordinator knows the owned partitions"
    FENCED = "the epoch or the member id is invalid, or may be"
    REVOKED = "all partitions are revoked"
    LEAVE_REQUESTED = "the member must leave, and may rejoin later"
    LEFT = "the last heartbeat was answered, has failed, or is not needed"
    LEFT_STALE = "LEFT, and no poll came since a missed poll interval"
    CLOSED = "the member has left and will not rejoin"


_P: TypeAlias = Phase
_E: TypeAlias = Event

#: Phase and event -> the next phase. An event without an entry for the phase changes nothing. A
#: transition to the same phase restarts the phase: the running effect is outdated.
TRANSITIONS: Final[dict[tuple[Phase, Event], Phase]] = {
    (_P.UNSUBSCRIBED, _E.SUBSCRIBED): _P.JOINING,
    (_P.UNSUBSCRIBED, _E.CLOSED): _P.FATAL,
    (_P.JOINING, _E.JOINED): _P.RECONCILING,
    (_P.JOINING, _E.FENCED): _P.JOINING,
    (_P.JOINING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    # The member first applies and acknowledges the current assignment, because the coordinator
    # waits for that; a newer assignment follows (KIP-848).
    (_P.RECONCILING, _E.RECONCILED): _P.ACKNOWLEDGING,
    (_P.RECONCILING, _E.FENCED): _P.FENCED,
    (_P.RECONCILING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.ACKNOWLEDGING, _E.ACKNOWLEDGED): _P.STABLE,
    (_P.ACKNOWLEDGING, _E.FENCED): _P.FENCED,
    (_P.ACKNOWLEDGING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.STABLE, _E.ASSIGNED): _P.RECONCILING,
    (_P.STABLE, _E.FENCED): _P.FENCED,
    (_P.STABLE, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.FENCED, _E.REVOKED): _P.JOINING,
    (_P.FENCED, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.PREPARE_LEAVING, _E.FENCED): _P.PREPARE_LEAVING,  # partitions in revocation are lost
    (_P.PREPARE_LEAVING, _E.REVOKED): _P.LEAVING,
    (_P.LEAVING, _E.LEFT): _P.UNSUBSCRIBED,
    (_P.LEAVING, _E.LEFT_STALE): _P.STALE,
    (_P.LEAVING, _E.CLOSED): _P.FATAL,
    (_P.STALE, _E.SUBSCRIBED): _P.JOINING,
    (_P.STALE, _E.CLOSED): _P.FATAL,
}

#: Phases in which a member with an epoch sends heartbeats.
HEARTBEATING: Final = frozenset((_P.RECONCILING, _P.ACKNOWLEDGING, _P.STABLE, _P.PREPARE_LEAVING))

#: Phases in which a member can commit: those with an epoch.
ACCEPTING_COMMITS: Final = HEARTBEATING

#: Phases of a member that is in no group or is about to leave.
LEAVING_PHASES: Final = frozenset(
    (_P.UNSUBSCRIBED, _P.PREPARE_LEAVING, _P.LEAVING, _P.STALE, _P.FATAL),
)
