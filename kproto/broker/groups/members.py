"""One member of a classic group: who it is, what it supports, what it was assigned, what it awaits.

Plain data, which `roster` and `group` change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from .answers import Awaited, JoinAnswer, SyncAnswer

__all__ = ["Member", "MemberProtocol", "ProtocolsOf"]


class MemberProtocol(NamedTuple):
    """A protocol that a member supports, such as an assignor, and what it says for it."""

    name: str
    metadata: bytes


ProtocolsOf: TypeAlias = Mapping[str, tuple[MemberProtocol, ...]]
"""The protocols of members, by their ids."""


@dataclass(slots=True, eq=False)
class Member:
    """`instance_id` is that of a static member (KIP-345), None for a dynamic one.

    `protocols` are in the order of preference. `deadline_ms` is when the session is over, by the
    clock of `Moment.ms`; None while a request of the member waits, which counts as being alive.
    A member `is_new` until its first generation: it knows its id only then, cannot send heartbeats
    before, and so is not kept for longer than `GroupLimits.new_member_join_timeout_ms`.
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
    joining: Awaited[JoinAnswer] | None = field(default=None, repr=False)
    syncing: Awaited[SyncAnswer] | None = field(default=None, repr=False)

    @property
    def is_waiting(self) -> bool:
        """Whether a JoinGroup or SyncGroup of it waits for its answer."""
        return self.joining is not None or self.syncing is not None

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """What it supports, in the order of preference."""
        return tuple(protocol.name for protocol in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """What it says for a protocol; nothing for one that it does not support."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")
