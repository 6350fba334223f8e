"""Defines the members of a classic group, their requests and results, and protocol selection.

`ClassicMembers` tracks the members, the static members, the leader, and the member ids that were
sent with MEMBER_ID_REQUIRED.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from ...protocol.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from ...wire.errors import BrokerResponseError, DecodeError
from ..api_error import api_error
from ..coordinators import java_hash
from .classic_group_state import ClassicGroupState
from .java_order import bucket, grown_size

__all__ = [
    "NO_ERROR",
    "ClassicMember",
    "ClassicMembers",
    "JoinRequest",
    "JoinResult",
    "JoinResultMember",
    "LeavingMember",
    "MemberProtocol",
    "PendingJoin",
    "PendingResult",
    "PendingSync",
    "ProtocolsOf",
    "SyncRequest",
    "SyncResult",
    "select_protocol",
    "subscribed_topics",
]

R = TypeVar("R")

#: The name of error code 0.
NO_ERROR: Final = "NONE"


class MemberProtocol(NamedTuple):
    """Holds a protocol that a member supports, such as the assignor `range`, and its metadata."""

    name: str
    metadata: bytes


ProtocolsOf: TypeAlias = Mapping[str, tuple[MemberProtocol, ...]]
"""The protocols of members by member id."""


# Requests


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """Holds a JoinGroup; `member_id` is "" for a new member.

    If `requires_known_member_id` is True, a new dynamic member gets its member id with
    MEMBER_ID_REQUIRED (KIP-394, since v4). If `supports_skipping_assignment` is True, the response
    to a restarted static leader may have skip_assignment (KIP-814, since v9).
    """

    member_id: str
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    reason: str = ""
    requires_known_member_id: bool = False
    supports_skipping_assignment: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the protocols in the order of preference."""
        return tuple(protocol.name for protocol in self.protocols)

    def with_reason(self, event: str) -> str:
        """Returns `event` for the log, with the member's reason in parentheses if set (KIP-800)."""
        return f"{event} ({self.reason})" if self.reason else event


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """Holds a SyncGroup; protocol type and name are None before v5 (KIP-559)."""

    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)

    def matches_protocol(self, protocol_type: str | None, protocol: str | None) -> bool:
        """Returns True if the arguments equal the protocol type and protocol of the request.

        A value that is None, in the request or as an argument, is not compared.
        """
        pairs = (self.protocol_type, protocol_type), (self.protocol, protocol)
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


class LeavingMember(NamedTuple):
    """Names a member in a LeaveGroup; an admin client may send only the instance id."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


# Results


class JoinResultMember(NamedTuple):
    """Holds a member in the leader's JoinGroup response, with its metadata for the protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """Holds the result of a JoinGroup; `error` is an error name. Only the leader gets `members`."""

    member_id: str
    error: str = NO_ERROR
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinResultMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Holds the result of a SyncGroup; `error` is an error name."""

    error: str = NO_ERROR
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class PendingResult(Generic[R]):
    """Holds the result of a delayed JoinGroup or SyncGroup; `answer` is None until complete."""

    __slots__ = ("answer",)

    def __init__(self, answer: R | None = None) -> None:
        self.answer = answer


PendingJoin: TypeAlias = PendingResult[JoinResult]
PendingSync: TypeAlias = PendingResult[SyncResult]


# Members


@dataclass(slots=True, eq=False)
class ClassicMember:
    """Holds a member; `instance_id` is set for a static member (KIP-345), None for a dynamic one.

    `protocols` are in the order of preference. `deadline_ms` is the time at which the session
    expires, as `ClockReading.ms`; None if the session expired while a response to the member was
    delayed, because such a member stays in the group. `is_new` is True until the first generation
    of the member. Until then the response to the member's JoinGroup is delayed, the member sends no
    heartbeats, and its timeout is `ClassicGroupLimits.new_member_join_timeout_ms` instead of the
    session timeout.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    deadline_ms: int | None = None
    pending_join: PendingJoin | None = field(default=None, repr=False)
    pending_sync: PendingSync | None = field(default=None, repr=False)

    @classmethod
    def joining(cls, member_id: str, request: JoinRequest, deadline_ms: int) -> ClassicMember:
        """Returns a new member.

        The group removes the member at `deadline_ms` if the member has no generation by then.
        """
        return cls(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocols,
            is_new=True,
            deadline_ms=deadline_ms,
        )

    def reset_session(self, now_ms: int) -> None:
        """Sets `deadline_ms` to `now_ms` (`ClockReading.ms`) plus the session timeout."""
        self.deadline_ms = now_ms + self.session_timeout_ms

    @property
    def is_waiting(self) -> bool:
        """Returns True if the response to a JoinGroup or SyncGroup of the member is delayed."""
        return self.pending_join is not None or self.pending_sync is not None

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """Returns the names of the supported protocols in the order of preference."""
        return tuple(protocol.name for protocol in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """Returns the member's metadata for a protocol; empty if the protocol is not supported."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def await_join(self, request: JoinRequest) -> PendingJoin:
        """Updates protocols and timeouts from a JoinGroup.

        Returns the pending result of the JoinGroup. If an earlier JoinGroup of the member is still
        delayed, both JoinGroups get the same result.
        """
        self.protocols = request.protocols
        self.rebalance_timeout_ms = request.rebalance_timeout_ms
        self.session_timeout_ms = request.session_timeout_ms
        if self.pending_join is None:
            self.pending_join = PendingResult()
        return self.pending_join


class ClassicMembers:
    """Holds the members of one group, in the order in which they joined."""

    def __init__(self) -> None:
        self.members: Final[dict[str, ClassicMember]] = {}
        #: The member ids of static members by instance id.
        self.static_ids: Final[dict[str, str]] = {}
        #: When each member id that was sent with MEMBER_ID_REQUIRED expires, as `ClockReading.ms`.
        self.pending: Final[dict[str, int]] = {}
        #: The member ids of members that have not sent SyncGroup in this generation.
        self.pending_sync: Final[set[str]] = set()
        self.leader: str | None = None
        #: Whether a pending result was completed since the group last notified its watchers.
        self.has_completed_results = False

    def clear(self) -> None:
        """Removes all members and all pending member ids."""
        self.members.clear()
        self.static_ids.clear()
        self.pending.clear()
        self.pending_sync.clear()
        self.leader = None
        self.has_completed_results = False

    def add(self, member: ClassicMember) -> None:
        """Adds a member; the first member becomes the leader."""
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Removes a member or a pending member id; does nothing for an unknown member id.

        Completes the member's delayed requests with UNKNOWN_MEMBER_ID. If the member was the
        leader, the oldest remaining member becomes the leader.
        """
        self.pending.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self.complete_join(member, JoinResult("", "UNKNOWN_MEMBER_ID"))
            self.complete_sync(member, SyncResult("UNKNOWN_MEMBER_ID"))
            if member.instance_id is not None:
                self.static_ids.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, member: ClassicMember, new_id: str) -> ClassicMember:
        """Replaces a static member by a new member `new_id`; returns the new member (KIP-345).

        The new member has the assignment of `member`, and is the leader if `member` was the leader.
        """
        replaced = ClassicMember(
            new_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.protocols,
            member.assignment,
        )
        self.swap(member, replaced)
        return replaced

    def swap(self, member: ClassicMember, other: ClassicMember) -> None:
        """Replaces `member` by `other`; if `member` was the leader, `other` becomes the leader.

        If the group still waits for the SyncGroup of `member`, it waits for the SyncGroup of
        `other` instead. Kafka differs: it continues to wait for the SyncGroup of `member`, and
        starts a rebalance at the deadline.
        """
        leads = self.leader == member.member_id
        del self.members[member.member_id]
        self.add(other)
        if leads:
            self.leader = other.member_id
        if member.member_id in self.pending_sync:
            self.pending_sync.remove(member.member_id)
            self.pending_sync.add(other.member_id)

    def complete_join(self, member: ClassicMember, result: JoinResult) -> None:
        """Completes the pending JoinGroup of a member, if there is one."""
        pending, member.pending_join = member.pending_join, None
        if pending is not None:
            pending.answer = result
            self.has_completed_results = True

    def complete_sync(self, member: ClassicMember, result: SyncResult) -> bool:
        """Completes the pending SyncGroup of a member; returns True if there was one."""
        pending, member.pending_sync = member.pending_sync, None
        if pending is not None:
            pending.answer = result
            self.has_completed_results = True
        return pending is not None

    def expect_sync(self) -> None:
        """Marks all members: each must still send SyncGroup in the new generation."""
        self.pending_sync.clear()
        self.pending_sync.update(self.members)

    def fail_pending(self, error: str) -> None:
        """Completes the delayed requests of all members with `error`; the members stay."""
        for member in self.members.values():
            self.complete_join(member, JoinResult(member.member_id, error))
            self.complete_sync(member, SyncResult(error))

    @property
    def next_deadline_ms(self) -> int | None:
        """Returns the time at which the next session or pending member id expires.

        The time is a `ClockReading.ms`. Returns None if there is no session and no pending member
        id.
        """
        sessions = (it.deadline_ms for it in self.members.values() if it.deadline_ms is not None)
        return min((*self.pending.values(), *sessions), default=None)

    def check(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Returns the member with `member_id`; checks its instance id if `instance_id` is not None.

        Raises UNKNOWN_MEMBER_ID, and FENCED_INSTANCE_ID if another member has the instance id.
        """
        if instance_id is not None:
            known = self.static_ids.get(instance_id)
            if known is None:
                raise _unknown_instance(instance_id)
            if known != member_id:
                raise api_error(
                    "FENCED_INSTANCE_ID", f"another member has the instance id {instance_id!r} now"
                )
        member = self.members.get(member_id)
        if member is None:
            raise api_error("UNKNOWN_MEMBER_ID", f"there is no member {member_id!r}")
        return member

    def id_to_remove(self, member_id: str, instance_id: str | None) -> str:
        """Returns the member id, or the pending member id, that a LeaveGroup names.

        The instance id alone is enough for a static member. Raises the errors of `check`.
        """
        if member_id in self.pending:
            return member_id
        if member_id:
            return self.check(member_id, instance_id).member_id
        known = None if instance_id is None else self.static_ids.get(instance_id)
        if known is None:
            raise _unknown_instance(instance_id)
        return known

    def has_capacity(self, state: ClassicGroupState, max_size: int, member_id: str) -> bool:
        """Returns True if a member may join a group of at most `max_size` members (KIP-389).

        An Empty group accepts any member. In PreparingRebalance, only members that have joined
        count, so the last members to join are refused. In other states all members count, and a
        known member may always join.
        """
        member = self.members.get(member_id)
        if state is ClassicGroupState.EMPTY:
            return True
        if state is ClassicGroupState.PREPARING_REBALANCE:
            has_joined = member is not None and member.pending_join is not None
            return has_joined or self.joined < max_size
        return member is not None or len(self.members) < max_size

    def supports_protocols_of(
        self, request: JoinRequest, state: ClassicGroupState, protocol_type: str | None
    ) -> bool:
        """Returns True if the request has a protocol that all members support.

        The request must also have the group's `protocol_type`. For an Empty group, any protocol
        type and any protocol are enough.
        """
        if state is ClassicGroupState.EMPTY:
            return bool(request.protocol_type and request.protocols)
        supported = [set(member.protocol_names) for member in self.members.values()]
        return request.protocol_type == protocol_type and any(
            all(name in its for its in supported) for name in request.names
        )

    def elect_leader(self) -> bool:
        """Keeps the leader if it has joined; else elects the first member that has joined.

        Returns False if no member has joined.
        """
        if self.leader is None:
            return False
        if self.members[self.leader].pending_join is not None:
            return True
        for member in self.members.values():
            if member.pending_join is not None:
                self.leader = member.member_id
                return True
        return False

    @property
    def joined(self) -> int:
        """Returns how many members have joined the current rebalance."""
        return sum(member.pending_join is not None for member in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        """Returns True if all members have joined, and no pending member id is left."""
        return self.joined == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """Returns the longest rebalance timeout of the members in ms; 0 without members."""
        return max((0, *(it.rebalance_timeout_ms for it in self.members.values())))

    def join_result_members(self, protocol: str | None) -> tuple[JoinResultMember, ...]:
        """Returns the members with their metadata for `protocol`, for the leader's JoinGroup."""
        return tuple(
            JoinResultMember(member.member_id, member.instance_id, member.metadata(protocol))
            for member in self.members.values()
        )

    def subscribed(self, protocol_type: str | None, protocol: str | None) -> frozenset[str] | None:
        """Returns the topics to which at least one member subscribes.

        Returns None if the members are not consumers, if no protocol is selected, or if a
        subscription cannot be decoded.
        """
        if protocol_type != PROTOCOL_TYPE or (self.members and not protocol):
            return None
        return subscribed_topics(it.metadata(protocol) for it in self.members.values())

    def select_protocol(self) -> str:
        """Returns the protocol of the next generation, by the votes of the members."""
        return select_protocol(member.protocol_names for member in self.members.values())


def _unknown_instance(instance_id: str | None) -> BrokerResponseError:
    return api_error("UNKNOWN_MEMBER_ID", f"no member has the instance id {instance_id!r}")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Returns the topics of all subscriptions; None if a subscription cannot be decoded.

    Decodes the fields of version 0, with which all versions begin, as Kafka's coordinator does.
    """
    try:
        decoded = [
            decode_subscription(data, highest=0, may_end_early=False) for data in subscriptions
        ]
    except DecodeError:
        return None
    return frozenset(topic for subscription in decoded for topic in subscription.topics)


def select_protocol(members: Iterable[Sequence[str]]) -> str:
    """Returns the protocol that most members vote for; `members` are each member's protocol names.

    Each member votes for the first of its protocols that all members support. Of protocols with
    equal votes, the first in the iteration order of a Java HashMap is selected, as in Kafka. Raises
    ValueError if no protocol is supported by all members.
    """
    names_of_members = list(members)
    common = (
        set.intersection(*(set(names) for names in names_of_members)) if names_of_members else set()
    )
    votes = Counter(
        next(name for name in names if name in common) for names in names_of_members if common
    )
    buckets = grown_size(len(votes))
    most = max(votes.values())
    tied = [name for name, count in votes.items() if count == most]
    return min(tied, key=lambda name: bucket(java_hash(name), buckets))
