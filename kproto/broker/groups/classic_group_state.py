"""The states of a classic group, and the table of what each event leads to in each of them.

Source: the KIPs named beside the rows, and what a coordinator of Kafka 4.4.0 does. Knows no member
and no time; `group` carries out what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final

__all__ = ["CAME_FROM", "Event", "GroupState", "Then", "then"]


class GroupState(StrEnum):
    """What a group is doing, by the names of DescribeGroups and ListGroups."""

    #: Nobody is a member; the group is kept for its offsets.
    EMPTY = "Empty"
    #: Members join again; JoinGroup waits.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: The leader assigns; SyncGroup waits.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: Every member can have its assignment.
    STABLE = "Stable"
    #: There is no such group, or none any more.
    DEAD = "Dead"


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = GroupState

#: The states that a group may come from into each. It is loaded into Empty or Stable.
CAME_FROM: Final[Mapping[GroupState, frozenset[GroupState]]] = MappingProxyType(
    {
        _EMPTY: frozenset({_PREPARING}),
        _PREPARING: frozenset({_EMPTY, _COMPLETING, _STABLE}),
        _COMPLETING: frozenset({_PREPARING}),
        _STABLE: frozenset({_COMPLETING}),
        _DEAD: frozenset({_EMPTY}),
    }
)


class Event(Enum):
    """What happens to a group."""

    #: A JoinGroup of a member that was none, with an id that it was given (KIP-394) or without.
    NEW_MEMBER = "a new member"
    #: A JoinGroup of a member that leads.
    LEADER_REJOINED = "the leader joins again"
    #: A JoinGroup of a member that follows, with the protocols and metadata that it had.
    SAME_REJOINED = "a member joins again, unchanged"
    #: A JoinGroup of a member with other protocols or metadata.
    CHANGED_REJOINED = "a member joins again, changed"
    #: A JoinGroup of a static member without an id (KIP-345) that leaves the protocol as it is.
    REPLACED = "a static member in place of its former self"
    #: The same where the group would choose another protocol now.
    REPLACED_CHANGED = "a static member in place of its former self, changed"
    #: A SyncGroup of the leader.
    LEADER_SYNCED = "the leader's assignment"
    #: A SyncGroup of another member.
    SYNCED = "a member asks for its assignment"
    HEARTBEAT = "a heartbeat"
    #: A LeaveGroup of members, or of ids that were given to somebody who has not joined.
    LEFT = "members left"
    #: The session of a member is over.
    SESSION_OVER = "a session is over"
    #: An id that was given to somebody who has not joined with it in time.
    PENDING_OVER = "a member id was not used"
    #: A DeleteGroups.
    DELETED = "the group is deleted"


class Then(Enum):
    """What is done."""

    #: Members join again, and the generation is over.
    REBALANCE = "a rebalance begins"
    #: The next generation begins if all have joined; not in a first rebalance, which is delayed.
    GATHER = "go on when all have joined"
    #: The same, in a first rebalance too.
    GATHER_AT_ONCE = "go on when all have joined, the first time too"
    #: JoinGroup or SyncGroup is answered with what the group is now.
    TELL = "tell what is"
    #: The same without a rebalance; the new member id is stored (KIP-814 from v9 on).
    TELL_REPLACED = "tell what is, of the new member id"
    #: The request waits.
    AWAIT = "wait for the leader"
    #: The assignment is taken, and all that wait for it are answered.
    ASSIGN = "assign"
    #: The session goes on from now.
    LIVE_ON = "the session goes on"
    #: The same, and the answer is REBALANCE_IN_PROGRESS.
    CALL_BACK = "the session goes on, and the member shall join again"
    REMOVE = "the group goes"
    NOTHING = "nothing"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    NON_EMPTY_GROUP = "NON_EMPTY_GROUP"


_UNKNOWN: Final = Then.UNKNOWN_MEMBER_ID

#: By event, in the order Empty, PreparingRebalance, CompletingRebalance, Stable.
_TABLE: Final[Mapping[Event, tuple[Then, Then, Then, Then]]] = MappingProxyType(
    {
        # KIP-62, KIP-134 (the delay of a first rebalance)
        Event.NEW_MEMBER: (Then.REBALANCE, Then.GATHER, Then.REBALANCE, Then.REBALANCE),
        # KIP-62: a leader that joins again has seen topics change; a follower lost its answer
        Event.LEADER_REJOINED: (_UNKNOWN, Then.GATHER, Then.TELL, Then.REBALANCE),
        Event.SAME_REJOINED: (_UNKNOWN, Then.GATHER, Then.TELL, Then.TELL),
        Event.CHANGED_REJOINED: (_UNKNOWN, Then.GATHER, Then.REBALANCE, Then.REBALANCE),
        # KIP-345; while the leader assigns, it does so to the id that is no more
        Event.REPLACED: (_UNKNOWN, Then.GATHER, Then.REBALANCE, Then.TELL_REPLACED),
        Event.REPLACED_CHANGED: (_UNKNOWN, Then.GATHER, Then.REBALANCE, Then.REBALANCE),
        Event.LEADER_SYNCED: (_UNKNOWN, Then.REBALANCE_IN_PROGRESS, Then.ASSIGN, Then.TELL),
        Event.SYNCED: (_UNKNOWN, Then.REBALANCE_IN_PROGRESS, Then.AWAIT, Then.TELL),
        Event.HEARTBEAT: (_UNKNOWN, Then.CALL_BACK, Then.LIVE_ON, Then.LIVE_ON),
        Event.LEFT: (Then.NOTHING, Then.GATHER, Then.REBALANCE, Then.REBALANCE),
        Event.SESSION_OVER: (
            Then.NOTHING,
            Then.GATHER_AT_ONCE,
            Then.REBALANCE,
            Then.REBALANCE,
        ),
        # KIP-394
        Event.PENDING_OVER: (Then.NOTHING, Then.GATHER_AT_ONCE, Then.NOTHING, Then.NOTHING),
        # KIP-229
        Event.DELETED: (
            Then.REMOVE,
            Then.NON_EMPTY_GROUP,
            Then.NON_EMPTY_GROUP,
            Then.NON_EMPTY_GROUP,
        ),
    }
)
_COLUMNS: Final = (_EMPTY, _PREPARING, _COMPLETING, _STABLE)


def then(event: Event, state: GroupState) -> Then:
    """What an event leads to. Raises ValueError for Dead, of which nothing is asked."""
    return _TABLE[event][_COLUMNS.index(state)]
