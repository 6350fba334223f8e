"""Defines the phases and the transition table of a classic member.

Each row of the table names its KIPs. `membership` decides the effects of a phase.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from ...core.group_errors import GroupRequest

__all__ = [
    "ACCEPTING_COMMITS",
    "HEARTBEATING",
    "LEAVING_PHASES",
    "REBALANCING",
    "REQUESTS",
    "TRANSITIONS",
    "Event",
    "Phase",
]


class Phase(Enum):
    """The phase of a classic member, from the subscription to its end."""

    UNSUBSCRIBED = "in no group"
    REVOKING = "revoking partitions that it may not keep in a rebalance"
    JOINING = "JoinGroup is in flight"
    LEADING = "computing the assignment as the leader"
    SYNCING = "SyncGroup is in flight"
    ASSIGNING = "applying its assignment"
    STABLE = "in a generation"
    PREPARE_LEAVING = "revoking all partitions, before it leaves"
    LEAVING = "LeaveGroup is in flight"
    FATAL = "ended"


class Event(Enum):
    """An event that may change the phase."""

    SUBSCRIBED = "the consumer has subscribed"
    REBALANCE = "a rebalance starts, by the broker or by this member"
    REVOKED = "the partitions are revoked"
    JOINED = "the group has a generation, and another leader"
    ELECTED_LEADER = "the group has a generation, and this member leads"
    ASSIGNMENT_COMPUTED = "the assignment is computed"
    SYNCED = "the response to SyncGroup has the assignment"
    ASSIGNMENT_APPLIED = "the assignment is applied"
    LOST = "the generation or the member id is invalid, or may be"
    COORDINATOR_MOVED = "another broker is the coordinator"
    LEAVE_REQUESTED = "the member must leave, and may rejoin later"
    LEFT = "LeaveGroup was answered, has failed, or is not needed"
    CLOSED = "the member has left and will not rejoin"


_P: TypeAlias = Phase
_E: TypeAlias = Event

#: Phase and event -> the next phase. An event without an entry for the phase changes nothing. A
#: transition to the same phase restarts the phase: the running effect is outdated.
TRANSITIONS: Final[dict[tuple[Phase, Event], Phase]] = {
    (_P.UNSUBSCRIBED, _E.SUBSCRIBED): _P.REVOKING,
    (_P.UNSUBSCRIBED, _E.CLOSED): _P.FATAL,
    # Before they join, eager members revoke all partitions, cooperative members only those of
    # topics that they do not subscribe to any more (KIP-429).
    (_P.REVOKING, _E.REVOKED): _P.JOINING,
    (_P.REVOKING, _E.LOST): _P.REVOKING,  # partitions in revocation are lost
    (_P.REVOKING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    # The broker holds JoinGroup until all members have joined (KIP-62). An event REBALANCE in the
    # meantime changes nothing: the member joins that rebalance.
    (_P.JOINING, _E.JOINED): _P.SYNCING,
    (_P.JOINING, _E.ELECTED_LEADER): _P.LEADING,
    (_P.JOINING, _E.LOST): _P.REVOKING,
    (_P.JOINING, _E.COORDINATOR_MOVED): _P.JOINING,
    (_P.JOINING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.LEADING, _E.ASSIGNMENT_COMPUTED): _P.SYNCING,
    (_P.LEADING, _E.LOST): _P.REVOKING,
    (_P.LEADING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.SYNCING, _E.SYNCED): _P.ASSIGNING,
    (_P.SYNCING, _E.REBALANCE): _P.REVOKING,  # an error of SyncGroup (KIP-568)
    (_P.SYNCING, _E.LOST): _P.REVOKING,
    (_P.SYNCING, _E.COORDINATOR_MOVED): _P.SYNCING,
    (_P.SYNCING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    # A rebalance waits until the assignment is applied; so does the second rebalance, in which
    # other members get the partitions that a cooperative member revoked (KIP-429).
    (_P.ASSIGNING, _E.ASSIGNMENT_APPLIED): _P.STABLE,
    (_P.ASSIGNING, _E.LOST): _P.REVOKING,
    (_P.ASSIGNING, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.STABLE, _E.REBALANCE): _P.REVOKING,
    (_P.STABLE, _E.LOST): _P.REVOKING,
    (_P.STABLE, _E.LEAVE_REQUESTED): _P.PREPARE_LEAVING,
    (_P.PREPARE_LEAVING, _E.REVOKED): _P.LEAVING,
    (_P.PREPARE_LEAVING, _E.LOST): _P.PREPARE_LEAVING,
    (_P.LEAVING, _E.LEFT): _P.UNSUBSCRIBED,
    (_P.LEAVING, _E.CLOSED): _P.FATAL,
}

#: Phases in which a member with a generation sends heartbeats. The member also sends heartbeats
#: while it joins: a response shows that the broker is alive and knows the member.
HEARTBEATING: Final = frozenset(
    (
        _P.REVOKING,
        _P.JOINING,
        _P.LEADING,
        _P.SYNCING,
        _P.ASSIGNING,
        _P.STABLE,
        _P.PREPARE_LEAVING,
    )
)

#: Phases in which a member can commit: brokers refuse commits between the responses to JoinGroup
#: and to SyncGroup.
ACCEPTING_COMMITS: Final = frozenset(
    (_P.REVOKING, _P.JOINING, _P.ASSIGNING, _P.STABLE, _P.PREPARE_LEAVING)
)

#: Phases from JoinGroup to the response to SyncGroup.
REBALANCING: Final = frozenset((_P.JOINING, _P.LEADING, _P.SYNCING))

#: Phases of a member that is in no group or is about to leave.
LEAVING_PHASES: Final = frozenset((_P.UNSUBSCRIBED, _P.PREPARE_LEAVING, _P.LEAVING, _P.FATAL))

#: The request of each phase that sends one.
REQUESTS: Final = {
    _P.JOINING: GroupRequest.JOIN,
    _P.LEADING: GroupRequest.TOPICS,
    _P.SYNCING: GroupRequest.SYNC,
    _P.LEAVING: GroupRequest.LEAVE,
}
