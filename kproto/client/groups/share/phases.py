"""Defines the phases and the transition table of a member of a share group (KIP-932).

The phases are those of the consumer protocol without the acknowledgement of an assignment: several
members may have one partition, so the coordinator does not wait for revocations. `membership`
decides the effects of a phase.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["HEARTBEATING", "LEAVING_PHASES", "TRANSITIONS", "Event", "Phase"]


class Phase(Enum):
    """The phases of a member of a share group."""

    UNSUBSCRIBED = "in no group"
    JOINING = "sending epoch 0 until the coordinator returns another epoch"
    RECONCILING = "removing and adding partitions to match the assignment"
    STABLE = "reading the assigned partitions"
    FENCED = "dropping all partitions, before it rejoins"
    PREPARE_LEAVING = "dropping all partitions, before it leaves"
    LEAVING = "the last heartbeat is in flight"
    STALE = "in no group until the next poll, because no poll came in time"
    FATAL = "ended"


class Event(Enum):
    """An event that may change the phase."""

    SUBSCRIBED = "the consumer has subscribed"
    JOINED = "the coordinator returned an epoch"
    ASSIGNED = "the assignment differs from the partitions of the consumer"
    RECONCILED = "the partitions are removed and added"
    FENCED = "the epoch or the member id is invalid"
    REVOKED = "all partitions are dropped"
    LEAVE_REQUESTED = "the member must leave, and may rejoin later"
    LEFT = "the last heartbeat was answered, has failed, or is not needed"
    LEFT_STALE = "LEFT, and no poll came since a missed poll interval"
    CLOSED = "the member has left and will not rejoin"


_P: TypeAlias = Phase
_E: TypeAlias = Event

#: Phase and event -> the next phase. An event without an entry for the phase changes nothing.
TRANSITIONS: Final[dict[tuple[Phase, Event], Phase]] = {
    (_P.UNSUBSCRIBED, _E.SUBSCRIBED): _P.JOINING,
    (_P.UNSUBSCRIBED, _E.CLOSED): _P.FATAL,
    (_P.JOINING, _E.JOINED): _P.RECONCILING,
    (_P.JOINING, _E.FENCED): _P.JOINING,
    (_P.JOINING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.RECONCILING, _E.RECONCILED): _P.STABLE,
    (_P.RECONCILING, _E.FENCED): _P.FENCED,
    (_P.RECONCILING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.STABLE, _E.ASSIGNED): _P.RECONCILING,
    (_P.STABLE, _E.FENCED): _P.FENCED,
    (_P.STABLE, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.FENCED, _E.REVOKED): _P.JOINING,
    (_P.FENCED, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.PREPARE_LEAVING, _E.REVOKED): _P.LEAVING,
    (_P.LEAVING, _E.LEFT): _P.UNSUBSCRIBED,
    (_P.LEAVING, _E.LEFT_STALE): _P.STALE,
    (_P.LEAVING, _E.CLOSED): _P.FATAL,
    (_P.STALE, _E.SUBSCRIBED): _P.JOINING,
    (_P.STALE, _E.CLOSED): _P.FATAL,
}

#: Phases in which a member with an epoch sends heartbeats.
HEARTBEATING: Final = frozenset((_P.RECONCILING, _P.STABLE))

#: Phases of a member that is in no group or is about to leave.
LEAVING_PHASES: Final = frozenset(
    (_P.UNSUBSCRIBED, _P.PREPARE_LEAVING, _P.LEAVING, _P.STALE, _P.FATAL)
)
