"""One member of a group of the consumer protocol: what it said, and how far it has followed.

Plain data that does not change: another state of a member is another `ConsumerGroupMember`.
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
    "places",
    "without_epochs",
]

#: Member epochs of a request that mean something: KIP-848.
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2

Partitions: TypeAlias = Mapping[Uuid, frozenset[int]]
"""Partitions by the id of their topic."""

Assigned: TypeAlias = Mapping[Uuid, Mapping[int, int]]
"""The same, and of each the member epoch at which it was assigned (KIP-1251)."""


class MemberState(IntEnum):
    """How far a member is with its assignment, by the numbers of the record."""

    STABLE = 0
    #: It has partitions to give up, and stays at its epoch until then.
    UNREVOKED_PARTITIONS = 1
    #: It waits for partitions that others have not given up.
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What a member of the classic protocol has besides: its session, in ms, and its protocols."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """`instance_id` is that of a static member; `regex` is empty for a member without one.

    `assigned` is what the member may hold, `revoking` what it has yet to give up. `classic` is of a
    member that goes by the classic protocol, None for the others.
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
        """Whether it has all that was meant for it at that epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def without_epochs(assigned: Assigned) -> Partitions:
    """The partitions alone."""
    return {topic_id: frozenset(its) for topic_id, its in assigned.items()}


def places(member: ConsumerGroupMember) -> Iterator[tuple[Uuid, int]]:
    """All that a member may still read, what it has yet to give up too."""
    for part in (member.assigned, member.revoking):
        for topic_id, its in part.items():
            for index in its:
                yield topic_id, index
