"""What is kept of a group in the log: made of its members, and members made of it again."""

from __future__ import annotations

from .classic_members import Roster
from .clock_reading import Moment
from .group_metadata import GroupMetadata, MemberMetadata
from .members import Member, MemberProtocol

__all__ = ["fill", "metadata_of"]


def metadata_of(
    roster: Roster,
    generation: int,
    protocol_type: str | None,
    protocol: str | None,
    state_ms: int | None,
) -> GroupMetadata:
    """What is stored of a group. Of the protocols of a member only that of the generation is."""
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
        for it in roster.members.values()
    )
    return GroupMetadata(protocol_type, generation, protocol, roster.leader, state_ms, members)


def fill(roster: Roster, stored: GroupMetadata, now: Moment) -> None:
    """Let the stored members be those of a group; their sessions begin anew.

    The first leads where the record names no member that does.
    """
    for it in stored.members:
        member = Member(
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
        roster.add(member)
    if stored.leader in roster.members:
        roster.leader = stored.leader
