"""The states of a classic group, and the table of what each event leads to in each of them.

Source: the KIPs named beside the rows, and what a coordinator of Kafka 4.4.0 does. Knows no member
and no time; `group` carries out what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = [
    "PREVIOUS_STATES",
    "Action",
    "ClassicGroupState",
    "Event",
    "JoinDeadline",
    "SyncDeadline",
    "action_for",
]


class ClassicGroupState(StrEnum):
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


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicGroupState

#: The states that a group may come from into each. It is loaded into Empty or Stable.
PREVIOUS_STATES: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = MappingProxyType(
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
    MEMBER_JOINED = "a new member"
    #: A JoinGroup of a member that leads.
    LEADER_REJOINED = "the leader joins again"
    #: A JoinGroup of a member that follows, with the protocols and metadata that it had.
    FOLLOWER_REJOINED_UNCHANGED = "a member joins again, unchanged"
    #: A JoinGroup of a member with other protocols or metadata.
    REJOINED_WITH_CHANGES = "a member joins again, changed"
    #: A JoinGroup of a static member without an id (KIP-345) that leaves the protocol as it is.
    STATIC_MEMBER_REPLACED = "a static member in place of its former self"
    #: The same where the group would choose another protocol now.
    STATIC_MEMBER_REPLACED_WITH_CHANGES = "a static member in place of its former self, changed"
    #: A SyncGroup of the leader.
    LEADER_SYNCED = "the leader's assignment"
    #: A SyncGroup of another member.
    FOLLOWER_SYNCED = "a member asks for its assignment"
    HEARTBEAT = "a heartbeat"
    #: A LeaveGroup of members, or of ids that were given to somebody who has not joined.
    MEMBERS_LEFT = "members left"
    #: The session of a member is over.
    SESSION_EXPIRED = "a session is over"
    #: An id that was given to somebody who has not joined with it in time.
    PENDING_MEMBER_EXPIRED = "a member id was not used"
    #: A DeleteGroups.
    GROUP_DELETED = "the group is deleted"


class Action(Enum):
    """What is done."""

    #: Members join again, and the generation is over.
    PREPARE_REBALANCE = "a rebalance begins"
    #: The next generation begins if all have joined; not in a first rebalance, which is delayed.
    MAYBE_COMPLETE_JOIN = "go on when all have joined"
    #: The same, in a first rebalance too.
    MAYBE_COMPLETE_JOIN_WITHOUT_DELAY = "go on when all have joined, the first time too"
    #: JoinGroup or SyncGroup is answered with what the group is now.
    RESPOND = "tell what is"
    #: The same without a rebalance; the new member id is stored (KIP-814 from v9 on).
    RESPOND_TO_REPLACED_MEMBER = "tell what is, of the new member id"
    #: The request waits.
    WAIT_FOR_LEADER = "wait for the leader"
    #: The assignment is taken, and all that wait for it are answered.
    STORE_ASSIGNMENT = "assign"
    #: The session goes on from now.
    RESET_SESSION = "the session goes on"
    #: The same, and the answer is REBALANCE_IN_PROGRESS.
    RESET_SESSION_AND_REJOIN = "the session goes on, and the member shall join again"
    REMOVE = "the group goes"
    NOTHING = "nothing"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    NON_EMPTY_GROUP = "NON_EMPTY_GROUP"


_UNKNOWN: Final = Action.UNKNOWN_MEMBER_ID

#: By event, in the order Empty, PreparingRebalance, CompletingRebalance, Stable.
_TABLE: Final[Mapping[Event, tuple[Action, Action, Action, Action]]] = MappingProxyType(
    {
        # KIP-62, KIP-134 (the delay of a first rebalance)
        Event.MEMBER_JOINED: (
            Action.PREPARE_REBALANCE,
            Action.MAYBE_COMPLETE_JOIN,
            Action.PREPARE_REBALANCE,
            Action.PREPARE_REBALANCE,
        ),
        # KIP-62: a leader that joins again has seen topics change; a follower lost its answer
        Event.LEADER_REJOINED: (
            _UNKNOWN,
            Action.MAYBE_COMPLETE_JOIN,
            Action.RESPOND,
            Action.PREPARE_REBALANCE,
        ),
        Event.FOLLOWER_REJOINED_UNCHANGED: (
            _UNKNOWN,
            Action.MAYBE_COMPLETE_JOIN,
            Action.RESPOND,
            Action.RESPOND,
        ),
        Event.REJOINED_WITH_CHANGES: (
            _UNKNOWN,
            Action.MAYBE_COMPLETE_JOIN,
            Action.PREPARE_REBALANCE,
            Action.PREPARE_REBALANCE,
        ),
        # KIP-345; while the leader assigns, it does so to the id that is no more
        Event.STATIC_MEMBER_REPLACED: (
            _UNKNOWN,
            Action.MAYBE_COMPLETE_JOIN,
            Action.PREPARE_REBALANCE,
            Action.RESPOND_TO_REPLACED_MEMBER,
        ),
        Event.STATIC_MEMBER_REPLACED_WITH_CHANGES: (
            _UNKNOWN,
            Action.MAYBE_COMPLETE_JOIN,
            Action.PREPARE_REBALANCE,
            Action.PREPARE_REBALANCE,
        ),
        Event.LEADER_SYNCED: (
            _UNKNOWN,
            Action.REBALANCE_IN_PROGRESS,
            Action.STORE_ASSIGNMENT,
            Action.RESPOND,
        ),
        Event.FOLLOWER_SYNCED: (
            _UNKNOWN,
            Action.REBALANCE_IN_PROGRESS,
            Action.WAIT_FOR_LEADER,
            Action.RESPOND,
        ),
        Event.HEARTBEAT: (
            _UNKNOWN,
            Action.RESET_SESSION_AND_REJOIN,
            Action.RESET_SESSION,
            Action.RESET_SESSION,
        ),
        Event.MEMBERS_LEFT: (
            Action.NOTHING,
            Action.MAYBE_COMPLETE_JOIN,
            Action.PREPARE_REBALANCE,
            Action.PREPARE_REBALANCE,
        ),
        Event.SESSION_EXPIRED: (
            Action.NOTHING,
            Action.MAYBE_COMPLETE_JOIN_WITHOUT_DELAY,
            Action.PREPARE_REBALANCE,
            Action.PREPARE_REBALANCE,
        ),
        # KIP-394
        Event.PENDING_MEMBER_EXPIRED: (
            Action.NOTHING,
            Action.MAYBE_COMPLETE_JOIN_WITHOUT_DELAY,
            Action.NOTHING,
            Action.NOTHING,
        ),
        # KIP-229
        Event.GROUP_DELETED: (
            Action.REMOVE,
            Action.NON_EMPTY_GROUP,
            Action.NON_EMPTY_GROUP,
            Action.NON_EMPTY_GROUP,
        ),
    }
)
_COLUMNS: Final = (_EMPTY, _PREPARING, _COMPLETING, _STABLE)


def action_for(event: Event, state: ClassicGroupState) -> Action:
    """What an event leads to. Raises ValueError for Dead, of which nothing is asked."""
    return _TABLE[event][_COLUMNS.index(state)]


class JoinDeadline(NamedTuple):
    """When a rebalance stops waiting for JoinGroup, in ms by `ClockReading.ms`.

    The first rebalance of a group is delayed, and again while members join, until `left_ms` of the
    rebalance timeout are used up (KIP-134): Kafka's InitialDelayedJoin.
    """

    ends_ms: int
    is_first: bool = False
    delay_ms: int = 0
    left_ms: int = 0

    @classmethod
    def first(cls, now_ms: int, delay_ms: int, timeout_ms: int) -> JoinDeadline:
        """Returns the deadline of the first rebalance of an empty group."""
        return cls(now_ms + delay_ms, True, delay_ms, max(timeout_ms - delay_ms, 0))

    def extended(self, delay_ms: int) -> JoinDeadline | None:
        """Returns the deadline after one more delay; None if it may not be extended."""
        if not (self.is_first and self.left_ms):
            return None
        delay_ms = min(delay_ms, self.left_ms)
        left_ms = max(self.left_ms - self.delay_ms, 0)
        return JoinDeadline(self.ends_ms + delay_ms, True, delay_ms, left_ms)


class SyncDeadline(NamedTuple):
    """When a generation stops waiting for SyncGroup, in ms by `ClockReading.ms`."""

    ends_ms: int
    generation: int
