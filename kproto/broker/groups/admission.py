"""Whether a group takes in who wants to join: the most it may have, and its protocols (KIP-389);
and what a member asks for as it joins again.

Decides on states and the roster alone; knows no time.
"""

from __future__ import annotations

from .answers import Awaited, JoinAnswer
from .asked import Joining
from .classic_group_state import GroupState
from .classic_members import Roster
from .members import Member

__all__ = ["asks", "has_room", "supports"]


def has_room(roster: Roster, state: GroupState, max_size: int, member_id: str) -> bool:
    """Whether one more may join; those who join last are left out."""
    member = roster.members.get(member_id)
    if state is GroupState.EMPTY:
        return True
    if state is GroupState.PREPARING_REBALANCE:
        has_joined = member is not None and member.joining is not None
        return has_joined or roster.joined < max_size
    return member is not None or len(roster.members) < max_size


def supports(roster: Roster, state: GroupState, protocol_type: str | None, asked: Joining) -> bool:
    """Whether a group of that protocol type could go by a protocol of the member."""
    if state is GroupState.EMPTY:
        return bool(asked.protocol_type and asked.protocols)
    return asked.protocol_type == protocol_type and roster.supports_one_of(asked.names)


def asks(member: Member, asked: Joining) -> Awaited[JoinAnswer]:
    """Note what a member asks for now. One that asks twice is answered twice, with the same."""
    member.protocols = asked.protocols
    member.rebalance_timeout_ms = asked.rebalance_timeout_ms
    member.session_timeout_ms = asked.session_timeout_ms
    if member.joining is None:
        member.joining = Awaited()
    return member.joining
