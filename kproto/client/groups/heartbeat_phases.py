"""Defines the phases, the events and the epochs of members that join by heartbeats.

They are members of the consumer protocol (KIP-848) and of share groups (KIP-932); the phases have
the names of Java's consumer. `consumer.phases` and `share.phases` add the transitions in which the
protocols differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

__all__ = ["COMMON_TRANSITIONS", "JOIN_EPOCH", "LEAVE_EPOCH", "LEAVING_PHASES", "Event", "Phase"]

#: The member epochs of a heartbeat that joins or leaves.
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1


class Phase(Enum):
    """The phases of a member; a member of a share group is never ACKNOWLEDGING."""

    UNSUBSCRIBED = "in no group"
    JOINING = "sending epoch 0 until the coordinator returns another epoch"
    RECONCILING = "revoking and adding partitions to match the assignment"
    ACKNOWLEDGING = "acknowledging the owned partitions by a heartbeat"
    STABLE = "reading the assigned partitions"
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

#: Phase and event -> the next phase, for both protocols. An event without an entry for the phase
#: changes nothing. A transition to the same phase restarts the phase: the running effect is
#: outdated.
COMMON_TRANSITIONS: Final[Mapping[tuple[Phase, Event], Phase]] = MappingProxyType(
    {
        (_P.UNSUBSCRIBED, _E.SUBSCRIBED): _P.JOINING,
        (_P.UNSUBSCRIBED, _E.CLOSED): _P.FATAL,
        (_P.JOINING, _E.JOINED): _P.RECONCILING,
        (_P.JOINING, _E.FENCED): _P.JOINING,
        (_P.JOINING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
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
)

#: Phases of a member that is in no group or is about to leave.
LEAVING_PHASES: Final = frozenset(
    (_P.UNSUBSCRIBED, _P.PREPARE_LEAVING, _P.LEAVING, _P.STALE, _P.FATAL)
)
