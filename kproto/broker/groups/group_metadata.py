"""What is kept of a group and its members in the record of `__consumer_offsets`. Plain data."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GroupMetadata", "MemberMetadata"]


class MemberMetadata(NamedTuple):
    """A member as it is stored: times in ms, its subscription in the chosen protocol, as bytes."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A group as it is stored.

    `protocol_type` is None for a group that has had none, `state_ms` is when it came into its
    state, None where an old record does not say.
    """

    protocol_type: str | None = None
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_ms: int | None = None
    members: tuple[MemberMetadata, ...] = ()
