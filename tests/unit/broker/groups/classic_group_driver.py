"""Drives a classic group with a manual clock; each request is one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kproto import BrokerResponseError
from kproto.broker.api_error import api_error
from kproto.broker.groups import (
    ClassicGroup,
    ClassicGroupLimits,
    ClassicGroupState,
    ClockReading,
    JoinRequest,
    JoinResult,
    LeavingMember,
    MemberProtocol,
    PendingResult,
    SyncRequest,
    SyncResult,
)
from kproto.broker.groups.group_metadata import GroupMetadata

__all__ = ["DATE_MS", "REBALANCE_MS", "SESSION_MS", "Play", "error_of", "protocols", "received"]

#: The time of the wall clock, in ms since the epoch, when `Play.ms` is 0.
DATE_MS: Final = 1_700_000_000_000
SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 60_000
NEW_MEMBER_MS: Final = 300_000


def protocols(*names: str, metadata: bytes = b"m") -> tuple[MemberProtocol, ...]:
    return tuple(MemberProtocol(name, metadata) for name in names)


def error_of(do: Callable[[], object]) -> str:
    """Returns the name of the raised error, or NONE."""
    try:
        do()
    except BrokerResponseError as error:
        return error.name
    return "NONE"


A = TypeVar("A")


def received(pending: PendingResult[A]) -> A | None:
    """Returns the result, or None while it is pending."""
    return pending.answer


class Play:
    """Drives one classic group with a manual clock; `ms` is the time of this clock.

    `stored` lists the writes of the group's state as text. `kept` is the group metadata of the last
    successful write, or None. If `refuses` is the name of an error, every write fails with that
    error. `wakes` counts how often the group has notified its watchers.
    """

    def __init__(
        self, *, delay_ms: int = 0, max_size: int = 1000, new_member_ms: int = NEW_MEMBER_MS
    ) -> None:
        self.ms = 0
        self.stored: list[str] = []
        self.refuses = ""
        self.wakes = 0
        self.limits = ClassicGroupLimits(delay_ms, new_member_ms, max_size)
        self.kept: GroupMetadata | None = None
        self.restore()
        self._ids = 0

    def restore(self) -> None:
        """Replaces the group by a new object with the last stored state.

        Another coordinator loads this state after a move.

        If nothing is stored, the group is new.
        """
        self.group = ClassicGroup("g", self.limits, self._store, self.now)
        self.group.watchers.add(self._wake)
        if self.kept is not None:
            self.group.restore(self.kept, self.now)

    def _store(self, group: ClassicGroup, now: ClockReading) -> None:
        assert now.ms <= self.ms
        if self.refuses:
            raise api_error(self.refuses, "there is no room")
        self.kept = kept = group.metadata
        state = "Stable" if kept.members else "Empty"
        members = " ".join(it.member_id for it in kept.members)
        self.stored.append(f"{state} {kept.generation} {members}".strip())

    def _wake(self) -> None:
        self.wakes += 1

    @property
    def now(self) -> ClockReading:
        return ClockReading(self.ms, DATE_MS + self.ms)

    @property
    def state(self) -> ClassicGroupState:
        return self.group.state

    @property
    def members(self) -> list[str]:
        return list(self.group.members)

    def wait(self, ms: int) -> None:
        """Advances the clock by `ms`, and handles the deadlines of the group."""
        self.ms += ms
        self.group.advance(self.now)

    def join(
        self, member_id: str = "", *names: str, new_id: str | None = None, **overrides: Any
    ) -> PendingResult[JoinResult]:
        """Joins, by default with protocol `range`; new member ids are m1, m2, …"""
        self._ids += not member_id and new_id is None
        fields: dict[str, Any] = {
            "protocol_type": "consumer",
            "protocols": protocols(*(names or ("range",))),
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            **overrides,
        }
        return self.group.join(
            JoinRequest(member_id, **fields),
            f"m{self._ids}" if new_id is None else new_id,
            self.now,
        )

    def rejoin(self, member_id: str) -> PendingResult[JoinResult]:
        """Joins again with the same subscription."""
        member = self.group.members[member_id]
        return self.join(
            member_id,
            protocol_type=self.group.protocol_type,
            protocols=member.protocols,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            instance_id=member.instance_id,
        )

    def sync(
        self, member_id: str, assignments: Mapping[str, bytes] | None = None, **overrides: Any
    ) -> PendingResult[SyncResult]:
        fields = {"generation": self.group.generation, **overrides}
        return self.group.sync(
            SyncRequest(member_id, assignments=assignments or {}, **fields), self.now
        )

    def heartbeat(
        self, member_id: str, generation: int | None = None, instance_id: str | None = None
    ) -> str:
        """Sends a heartbeat; returns the name of the error, or NONE."""
        wanted = self.group.generation if generation is None else generation
        return error_of(lambda: self.group.heartbeat(member_id, instance_id, wanted, self.now))

    def leave(self, *members: str | LeavingMember) -> list[str]:
        leaving = [LeavingMember(it) if isinstance(it, str) else it for it in members]
        return self.group.leave(leaving, self.now)

    def stable(self, *members: str, **overrides: Any) -> None:
        """Adds `members`, and makes the group stable; the first of `members` leads.

        The assignment of each member is its member id.
        """
        waiting = [self.join(new_id=name, **overrides) for name in members]
        waiting.extend(
            self.rejoin(name) for name in self.members if not self.group.members[name].pending_join
        )
        if waiting[-1].answer is None:
            self.wait((self.group.next_deadline_ms or self.ms) - self.ms)
        assert self.state == "CompletingRebalance"
        for name, member in self.group.members.items():
            assigned = {each: each.encode() for each in self.members}
            self.sync(name, assigned, instance_id=member.instance_id)
        assert self.state == "Stable"
