"""Defines a member of a group of the consumer protocol, with subscription and current assignment.

A `ConsumerGroupMember` is immutable: to change a member, a new object replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from ....wire.uuid import Uuid
from ..classic_members import MemberProtocol

__all__ = [
    "JOIN_EPOCH",
    "LEAVE_EPOCH",
    "LEAVE_STATIC_EPOCH",
    "Assigned",
    "ClassicMemberMetadata",
    "ConsumerGroupMember",
    "MemberState",
    "Partitions",
    "partitions_of",
    "without_epochs",
]

#: The member epochs of requests to join, to leave, and to leave temporarily as a static member
#: (KIP-848).
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2

Partitions: TypeAlias = Mapping[Uuid, frozenset[int]]
"""Partitions by topic id."""

Assigned: TypeAlias = Mapping[Uuid, Mapping[int, int]]
"""By topic id and partition, the member epoch at which the partition was assigned (KIP-1251)."""


class MemberState(IntEnum):
    """Names the reconciliation states of a member; the values are the codes in its record."""

    STABLE = 0
    #: The member must revoke partitions; until it has, its member epoch does not change.
    UNREVOKED_PARTITIONS = 1
    #: The member waits for partitions that other members have not revoked yet.
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """Holds the data that only a classic member has: session timeout in ms, and protocols."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """Holds a member; `instance_id` is set for a static member.

    `topics` are the subscribed topic names, `regex` is the subscribed regular expression or "".
    `assigned` has the partitions that the member may own, `revoking` the partitions that the member
    must still revoke. `classic` is set for a member that uses the classic protocol.
    """

    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    revoking: Assigned = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Returns True if the member has its complete target assignment of `epoch`."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def without_epochs(assigned: Assigned) -> Partitions:
    """Returns the partitions without the member epochs."""
    return {topic_id: frozenset(its) for topic_id, its in assigned.items()}


def partitions_of(member: ConsumerGroupMember) -> Iterator[tuple[Uuid, int]]:
    """Yields all partitions that the member may still read.

    Also yields the partitions that the member must revoke.
    """
    for part in (member.assigned, member.revoking):
        for topic_id, its in part.items():
            for index in its:
                yield topic_id, index
