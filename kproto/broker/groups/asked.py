"""What members ask of a group: JoinGroup, SyncGroup and LeaveGroup as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .members import MemberProtocol

__all__ = ["Joining", "Leaving", "Syncing"]


@dataclass(frozen=True, slots=True)
class Joining:
    """A JoinGroup. `member_id` is empty for one that is none yet.

    `needs_member_id`: a new dynamic member is given an id first (KIP-394, v4). `may_skip`: a static
    leader may be told not to assign (KIP-814, v9).
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
    needs_member_id: bool = False
    may_skip: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the protocols, in the order of preference."""
        return tuple(protocol.name for protocol in self.protocols)

    def because(self, what: str) -> str:
        """What has happened, with the reason that the member gives."""
        return f"{what} ({self.reason})" if self.reason else what


@dataclass(frozen=True, slots=True)
class Syncing:
    """A SyncGroup; protocol type and name are None before v5 (KIP-559)."""

    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)

    def is_of(self, protocol_type: str | None, protocol: str | None) -> bool:
        """Whether it fits a generation of these; what one side does not know fits all (KIP-559)."""
        pairs = (self.protocol_type, protocol_type), (self.protocol, protocol)
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


class Leaving(NamedTuple):
    """One of a LeaveGroup: by member id, or by instance id alone, as an administrator does."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""
