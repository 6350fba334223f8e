"""Defines the metadata that a record of `__consumer_offsets` stores for a classic group.

Converts the members of a group to metadata, and metadata to members.
"""

from __future__ import annotations

from typing import NamedTuple

from .classic_members import ClassicMember, ClassicMembers, MemberProtocol
from .clock_reading import ClockReading

__all__ = ["GroupMetadata", "MemberMetadata", "metadata_of", "restore_members"]


class MemberMetadata(NamedTuple):
    """Holds a stored member; times are in ms, subscription and assignment are encoded."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """Holds a stored classic group.

    `protocol_type` is None if the group never had members. `state_ms` is the time at which the
    group entered its state, in ms since 1970; None if an old record does not have it.
    """

    protocol_type: str | None = None
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_ms: int | None = None
    members: tuple[MemberMetadata, ...] = ()


def metadata_of(
    group_members: ClassicMembers,
    generation: int,
    protocol_type: str | None,
    protocol: str | None,
    state_ms: int | None,
) -> GroupMetadata:
    """Returns the metadata of a group. Members have only the metadata of the selected protocol."""
    members = tuple(
        MemberMetadata(
            it.member_id,
            it.instance_id,
            it.client_id,
            it.client_host,
            it.rebalance_timeout_ms,
            it.session_timeout_ms,
            it.metadata(protocol),
            it.assignment,
        )
        for it in group_members.members.values()
    )
    return GroupMetadata(
        protocol_type, generation, protocol, group_members.leader, state_ms, members
    )


def restore_members(
    group_members: ClassicMembers, stored: GroupMetadata, now: ClockReading
) -> None:
    """Adds the stored members to a group and restarts their sessions.

    The first member becomes the leader if the record does not name a member as the leader.
    """
    for it in stored.members:
        member = ClassicMember(
            it.member_id,
            it.instance_id,
            it.client_id,
            it.client_host,
            it.session_timeout_ms,
            it.rebalance_timeout_ms,
            (MemberProtocol(stored.protocol or "", it.subscription),),
            it.assignment,
            deadline_ms=now.ms + it.session_timeout_ms,
        )
        group_members.add(member)
    if stored.leader in group_members.members:
        group_members.leader = stored.leader
