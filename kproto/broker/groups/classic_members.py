"""Members of a classic group: their requests and pending results, the leader, the group's protocol.

`ClassicMembers` tracks the static members, the leader, and the member ids returned with
MEMBER_ID_REQUIRED. Plain data without states and without a clock.
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
    "LeaveRequest",
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
    """A protocol that a member supports, such as the assignor `range`, and its metadata."""

    name: str
    metadata: bytes


ProtocolsOf: TypeAlias = Mapping[str, tuple[MemberProtocol, ...]]
"""The protocols of members by member id."""


# Requests


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A JoinGroup; `member_id` is empty for a new member.

    With `requires_known_member_id` a new dynamic member first gets its member id (KIP-394, v4).
    With `supports_skipping_assignment` a static leader may skip the assignment (KIP-814, v9).
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
        """Returns the event, with the member's reason in parentheses if it has one (KIP-800)."""
        return f"{event} ({self.reason})" if self.reason else event


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A SyncGroup; protocol type and name are None before v5 (KIP-559)."""

    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)

    def matches_protocol(self, protocol_type: str | None, protocol: str | None) -> bool:
        """Returns whether type and name are those of the generation; None matches any (KIP-559)."""
        pairs = (self.protocol_type, protocol_type), (self.protocol, protocol)
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


class LeaveRequest(NamedTuple):
    """One member of a LeaveGroup: by member id, or by instance id alone if an admin removes it."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


# Results


class JoinResultMember(NamedTuple):
    """A member in the leader's JoinGroup response, with its metadata for the selected protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The result of JoinGroup; `error` names an error code, the leader alone gets `members`."""

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
    """The result of SyncGroup; `error` is the name of an error code."""

    error: str = NO_ERROR
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class PendingResult(Generic[R]):
    """The result of a JoinGroup or SyncGroup that waits; `answer` is None until it is complete."""

    __slots__ = ("answer",)

    def __init__(self, answer: R | None = None) -> None:
        self.answer = answer


PendingJoin: TypeAlias = PendingResult[JoinResult]
PendingSync: TypeAlias = PendingResult[SyncResult]


# Members


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member; `instance_id` is that of a static member (KIP-345), None for a dynamic member.

    `protocols` are in the order of preference. `deadline_ms` is the time at which the session
    expires, as `ClockReading.ms`; it is None while a request of the member waits, because a waiting
    request keeps the session alive. A member `is_new` until its first generation: before that it
    does not know its member id and cannot send heartbeats, so that it has the timeout
    `ClassicGroupLimits.new_member_join_timeout_ms` instead.
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
        """Returns a new member, which must get its first generation by the deadline."""
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
        """Resets the session timeout."""
        self.deadline_ms = now_ms + self.session_timeout_ms

    @property
    def is_waiting(self) -> bool:
        """Returns whether a JoinGroup or SyncGroup of the member waits for its response."""
        return self.pending_join is not None or self.pending_sync is not None

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """Returns the names of the supported protocols in the order of preference."""
        return tuple(protocol.name for protocol in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """Returns the metadata for a protocol, empty if the member does not support it."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def await_join(self, request: JoinRequest) -> PendingJoin:
        """Stores protocols and timeouts of a JoinGroup; returns its pending result.

        A repeated JoinGroup shares the pending result.
        """
        self.protocols = request.protocols
        self.rebalance_timeout_ms = request.rebalance_timeout_ms
        self.session_timeout_ms = request.session_timeout_ms
        if self.pending_join is None:
            self.pending_join = PendingResult()
        return self.pending_join


class ClassicMembers:
    """The members of one group in the order in which they joined."""

    def __init__(self) -> None:
        self.members: Final[dict[str, ClassicMember]] = {}
        #: The member ids of static members by instance id.
        self.static_ids: Final[dict[str, str]] = {}
        #: Member ids that were returned with MEMBER_ID_REQUIRED, and when they expire (ms).
        self.pending: Final[dict[str, int]] = {}
        #: Members that have not sent SyncGroup in this generation.
        self.pending_sync: Final[set[str]] = set()
        self.leader: str | None = None
        #: Whether a pending result was completed since this was last reset.
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
        """Removes a member or a pending member id.

        If the leader is removed, the oldest remaining member becomes the leader.

        Pending results of the member are completed with UNKNOWN_MEMBER_ID.
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
        """Returns a static member under a new member id; a leader stays the leader (KIP-345)."""
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
        """Replaces a member by another one, which becomes the leader if the first was."""
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
        """Completes the pending SyncGroup of a member; returns whether there was one."""
        pending, member.pending_sync = member.pending_sync, None
        if pending is not None:
            pending.answer = result
            self.has_completed_results = True
        return pending is not None

    def expect_sync(self) -> None:
        """Records that all members must send SyncGroup in the new generation."""
        self.pending_sync.clear()
        self.pending_sync.update(self.members)

    def fail_pending(self, error: str) -> None:
        """Completes all pending results with the error; the members stay."""
        for member in self.members.values():
            self.complete_join(member, JoinResult(member.member_id, error))
            self.complete_sync(member, SyncResult(error))

    @property
    def next_deadline_ms(self) -> int | None:
        """Returns when the next session or pending member id expires; None for never."""
        sessions = (it.deadline_ms for it in self.members.values() if it.deadline_ms is not None)
        return min((*self.pending.values(), *sessions), default=None)

    def check(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Returns the member.

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

        A static member may be named by its instance id alone. Raises what `check` raises.
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
        """Returns whether a member may join a group of at most `max_size` members (KIP-389).

        During a rebalance the members that join last are rejected.
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
        """Returns whether the group, of that protocol type, can use a protocol of the request."""
        if state is ClassicGroupState.EMPTY:
            return bool(request.protocol_type and request.protocols)
        supported = [set(member.protocol_names) for member in self.members.values()]
        return request.protocol_type == protocol_type and any(
            all(name in its for its in supported) for name in request.names
        )

    def elect_leader(self) -> bool:
        """Elects a leader among the members that have joined: the current leader if it has joined.

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
        """Returns how many members have joined and wait for the next generation."""
        return sum(member.pending_join is not None for member in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        """Returns whether all members have joined and no member id is pending."""
        return self.joined == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """Returns the longest rebalance timeout of the members."""
        return max((0, *(it.rebalance_timeout_ms for it in self.members.values())))

    def join_result_members(self, protocol: str | None) -> tuple[JoinResultMember, ...]:
        """Returns the members as the leader's JoinGroup response lists them."""
        return tuple(
            JoinResultMember(member.member_id, member.instance_id, member.metadata(protocol))
            for member in self.members.values()
        )

    def subscribed(self, protocol_type: str | None, protocol: str | None) -> frozenset[str] | None:
        """Returns the topics of all subscriptions.

        Returns None if the members are not consumers, or if a subscription cannot be read.
        """
        if protocol_type != PROTOCOL_TYPE or (self.members and not protocol):
            return None
        return subscribed_topics(it.metadata(protocol) for it in self.members.values())

    def select_protocol(self) -> str:
        """Returns the protocol of the next generation."""
        return select_protocol(member.protocol_names for member in self.members.values())


def _unknown_instance(instance_id: str | None) -> BrokerResponseError:
    return api_error("UNKNOWN_MEMBER_ID", f"no member has the instance id {instance_id!r}")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Returns the topics of all subscriptions; None if a subscription cannot be read.

    Reads version 0, which begins every version, as Kafka's coordinator does.
    """
    try:
        decoded = [decode_subscription(data, highest=0) for data in subscriptions]
    except DecodeError:
        return None
    return frozenset(topic for subscription in decoded for topic in subscription.topics)


def select_protocol(members: Iterable[Sequence[str]]) -> str:
    """Returns the protocol that most members vote for, from the protocol names of each member.

    Each member votes for the first of its protocols that all members support. Of protocols with the
    same number of votes, the first in the order of a Java HashMap is selected, as in Kafka. Raises
    ValueError if the members have no protocol in common.
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
