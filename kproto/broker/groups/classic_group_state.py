"""Defines the states of a classic group, and the table of actions by event and state.

Source: the KIPs in the comments of the table, and a coordinator of Kafka 4.4.0. `classic_group`
executes the actions.
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
    """Names the states of a classic group, as DescribeGroups and ListGroups return them."""

    #: The group has no members; it may have committed offsets.
    EMPTY = "Empty"
    #: The members must join again; JoinGroup responses are delayed.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: The leader computes the assignments; SyncGroup responses are delayed.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: The assignments are stored; SyncGroup returns them.
    STABLE = "Stable"
    #: The group does not exist, or was deleted.
    DEAD = "Dead"


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicGroupState

#: The valid previous states of each state. A group that is loaded starts in Empty or Stable.
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
    """Names the events that may change the state of a group."""

    #: A JoinGroup of a new member. The request has no member id, or the member id that the member
    #: got with MEMBER_ID_REQUIRED (KIP-394).
    MEMBER_JOINED = "a new member"
    #: A JoinGroup of the leader with the same protocols and metadata as before.
    LEADER_REJOINED = "the leader joins again"
    #: A JoinGroup of a follower with the same protocols and metadata as before.
    FOLLOWER_REJOINED_UNCHANGED = "a member joins again, unchanged"
    #: A JoinGroup of a member with changed protocols or metadata.
    REJOINED_WITH_CHANGES = "a member joins again, changed"
    #: A JoinGroup of a known static member without a member id, after a restart (KIP-345). In a
    #: Stable group, the votes of the members still select the protocol of the generation.
    STATIC_MEMBER_REPLACED = "a restarted static member"
    #: A JoinGroup as in STATIC_MEMBER_REPLACED, but the votes now select another protocol.
    STATIC_MEMBER_REPLACED_WITH_CHANGES = "a restarted static member with changes"
    #: A SyncGroup of the leader.
    LEADER_SYNCED = "the leader's assignment"
    #: A SyncGroup of a follower.
    FOLLOWER_SYNCED = "a member requests its assignment"
    HEARTBEAT = "a heartbeat"
    #: A LeaveGroup of members, or of member ids that have not joined yet.
    MEMBERS_LEFT = "members left"
    #: The session of a member expired.
    SESSION_EXPIRED = "a session expired"
    #: A member id from MEMBER_ID_REQUIRED was not used within the session timeout.
    PENDING_MEMBER_EXPIRED = "a member id was not used"
    #: A DeleteGroups.
    GROUP_DELETED = "the group is deleted"


class Action(Enum):
    """Names the actions that `action_for` returns."""

    #: Start a rebalance: the members must join again.
    PREPARE_REBALANCE = "a rebalance begins"
    #: Start the next generation if all members have joined. In a first rebalance, wait for
    #: group.initial.rebalance.delay.ms.
    MAYBE_COMPLETE_JOIN = "start the generation when all members have joined"
    #: As MAYBE_COMPLETE_JOIN, but do not wait for the delay in a first rebalance.
    MAYBE_COMPLETE_JOIN_WITHOUT_DELAY = (
        "start the generation when all members have joined, without a delay"
    )
    #: Respond to JoinGroup or SyncGroup with the current generation.
    RESPOND = "respond with the generation"
    #: Respond as RESPOND does, and store the member id that replaces the former member id. From v9
    #: on, the JoinGroup response can set skip_assignment (KIP-814).
    RESPOND_TO_REPLACED_MEMBER = "respond with the generation, and store the new member id"
    #: Delay the SyncGroup response of a follower until the leader's SyncGroup.
    WAIT_FOR_LEADER = "wait for the leader"
    #: Store the assignments, and respond to all delayed SyncGroups.
    STORE_ASSIGNMENT = "assign"
    #: Reset the session timeout of the member.
    RESET_SESSION = "reset the session timeout"
    #: Reset the session timeout of the member, and respond with REBALANCE_IN_PROGRESS.
    RESET_SESSION_AND_REJOIN = "reset the session timeout; the member must join again"
    REMOVE = "delete the group"
    NOTHING = "nothing"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    NON_EMPTY_GROUP = "NON_EMPTY_GROUP"


_UNKNOWN: Final = Action.UNKNOWN_MEMBER_ID

#: The actions by event, in the states Empty, PreparingRebalance, CompletingRebalance, Stable.
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
        # KIP-345: in CompletingRebalance the leader's assignment would have the former member id
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
    """Holds the time `ends_ms` at which a rebalance stops waiting for JoinGroup.

    `ends_ms` is a `ClockReading.ms`. `is_first` is True for the rebalance of an Empty group. This
    rebalance waits for `delay_ms`. If members have joined during a delay, it waits for one more
    delay, like Kafka's InitialDelayedJoin (KIP-134). `remaining_ms` is the part of the rebalance
    timeout that is left for further delays.
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
        """Returns a deadline that is later by `delay_ms`, or by `remaining_ms` if that is less.

        Returns None if the rebalance is not the first one, or if no time remains.
        """
        if not (self.is_first and self.remaining_ms):
            return None
        delay_ms = min(delay_ms, self.remaining_ms)
        remaining_ms = max(self.remaining_ms - self.delay_ms, 0)
        return JoinDeadline(self.ends_ms + delay_ms, True, delay_ms, remaining_ms)


class SyncDeadline(NamedTuple):
    """Holds the time by which the members of `generation` must send SyncGroup.

    The time `ends_ms` is a `ClockReading.ms`.
    """

    ends_ms: int
    generation: int
