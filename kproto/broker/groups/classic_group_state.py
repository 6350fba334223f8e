"""The states of a classic group, and the table of actions by event and state.

Source: the KIPs beside the rows, and a coordinator of Kafka 4.4.0. Knows no member and no clock;
`classic_group` runs the actions.
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
    """The states of a classic group, by the names of DescribeGroups and ListGroups."""

    #: The group has no members; it is kept for its offsets.
    EMPTY = "Empty"
    #: Members join again; JoinGroup requests wait.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: The leader computes the assignment; SyncGroup requests wait.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: Every member can fetch its assignment.
    STABLE = "Stable"
    #: The group does not exist, or was deleted.
    DEAD = "Dead"


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicGroupState

#: The valid previous states of each state. A group is loaded into Empty or Stable.
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
    """The events of a group."""

    #: A JoinGroup of a new member, with a member id from MEMBER_ID_REQUIRED (KIP-394) or without.
    MEMBER_JOINED = "a new member"
    #: A JoinGroup of the leader.
    LEADER_REJOINED = "the leader joins again"
    #: A JoinGroup of a follower with the same protocols and metadata as before.
    FOLLOWER_REJOINED_UNCHANGED = "a member joins again, unchanged"
    #: A JoinGroup of a member with changed protocols or metadata.
    REJOINED_WITH_CHANGES = "a member joins again, changed"
    #: A JoinGroup of a static member without a member id (KIP-345) that keeps the group's protocol.
    STATIC_MEMBER_REPLACED = "a restarted static member"
    #: The same, if the group would now select another protocol.
    STATIC_MEMBER_REPLACED_WITH_CHANGES = "a restarted static member with changes"
    #: A SyncGroup of the leader.
    LEADER_SYNCED = "the leader's assignment"
    #: A SyncGroup of a follower.
    FOLLOWER_SYNCED = "a member asks for its assignment"
    HEARTBEAT = "a heartbeat"
    #: A LeaveGroup of members or of pending member ids.
    MEMBERS_LEFT = "members left"
    #: The session of a member expired.
    SESSION_EXPIRED = "a session expired"
    #: A pending member id was not used in time.
    PENDING_MEMBER_EXPIRED = "a member id was not used"
    #: A DeleteGroups.
    GROUP_DELETED = "the group is deleted"


class Action(Enum):
    """The action that the table has for an event in a state."""

    #: The generation ends, and the members must join again.
    PREPARE_REBALANCE = "a rebalance begins"
    #: The next generation starts if all members have joined; a first rebalance waits for its delay.
    MAYBE_COMPLETE_JOIN = "start the generation when all members have joined"
    #: The same, in a first rebalance too.
    MAYBE_COMPLETE_JOIN_WITHOUT_DELAY = (
        "start the generation when all members have joined, without a delay"
    )
    #: JoinGroup or SyncGroup is answered with the current generation.
    RESPOND = "respond with the generation"
    #: The same without a rebalance; the new member id is stored (KIP-814 from v9 on).
    RESPOND_TO_REPLACED_MEMBER = "respond with the generation, and store the new member id"
    #: The request waits.
    WAIT_FOR_LEADER = "wait for the leader"
    #: The assignment is stored, and all waiting SyncGroup requests are answered.
    STORE_ASSIGNMENT = "assign"
    #: The session timeout of the member is reset.
    RESET_SESSION = "reset the session timeout"
    #: The same, and the response is REBALANCE_IN_PROGRESS.
    RESET_SESSION_AND_REJOIN = "reset the session timeout; the member must join again"
    REMOVE = "delete the group"
    NOTHING = "nothing"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    NON_EMPTY_GROUP = "NON_EMPTY_GROUP"


_UNKNOWN: Final = Action.UNKNOWN_MEMBER_ID

#: By event; the columns are Empty, PreparingRebalance, CompletingRebalance, Stable.
_TABLE: Final[Mapping[Event, tuple[Action, Action, Action, Action]]] = MappingProxyType(
    {
        # KIP-62, KIP-134 (delay of the first rebalance)
        Event.MEMBER_JOINED: (
            Action.PREPARE_REBALANCE,
            Action.MAYBE_COMPLETE_JOIN,
            Action.PREPARE_REBALANCE,
            Action.PREPARE_REBALANCE,
        ),
        # KIP-62: the leader joins again if topics changed, a follower if it lost its response
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
        # KIP-345; an assignment in progress would name the replaced member id
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
    """Returns the action for an event in a state. Raises ValueError for Dead."""
    return _TABLE[event][_COLUMNS.index(state)]


class JoinDeadline(NamedTuple):
    """The time at which a rebalance stops waiting for JoinGroup, as `ClockReading.ms`.

    The first rebalance of a group is delayed, and delayed again while members join, until
    `remaining_ms` of the rebalance timeout have passed (KIP-134): Kafka's InitialDelayedJoin.
    """

    ends_ms: int
    is_first: bool = False
    delay_ms: int = 0
    remaining_ms: int = 0

    @classmethod
    def first(cls, now_ms: int, delay_ms: int, timeout_ms: int) -> JoinDeadline:
        """Returns the deadline of the first rebalance of an empty group."""
        return cls(now_ms + delay_ms, True, delay_ms, max(timeout_ms - delay_ms, 0))

    def extended(self, delay_ms: int) -> JoinDeadline | None:
        """Returns the deadline after one more delay; None if it may not be extended."""
        if not (self.is_first and self.remaining_ms):
            return None
        delay_ms = min(delay_ms, self.remaining_ms)
        remaining_ms = max(self.remaining_ms - self.delay_ms, 0)
        return JoinDeadline(self.ends_ms + delay_ms, True, delay_ms, remaining_ms)


class SyncDeadline(NamedTuple):
    """The time at which a generation stops waiting for SyncGroup, as `ClockReading.ms`."""

    ends_ms: int
    generation: int
