"""How long members have to join, and to ask for their assignments. Times are `Moment.ms`."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["JoinPhase", "SyncPhase"]


class JoinPhase(NamedTuple):
    """When the members have had long enough to join.

    A first rebalance is put off by its delay, and again while more come, until `left_ms` of the
    rebalance timeout are used up (KIP-134).
    """

    ends_ms: int
    is_first: bool = False
    delay_ms: int = 0
    left_ms: int = 0

    @classmethod
    def first(cls, now_ms: int, delay_ms: int, timeout_ms: int) -> JoinPhase:
        """That of a group in which nobody was."""
        return cls(now_ms + delay_ms, True, delay_ms, max(timeout_ms - delay_ms, 0))

    def put_off(self, delay_ms: int) -> JoinPhase | None:
        """The same, by one more delay; None where it cannot be."""
        if not (self.is_first and self.left_ms):
            return None
        delay_ms = min(delay_ms, self.left_ms)
        left_ms = max(self.left_ms - self.delay_ms, 0)
        return JoinPhase(self.ends_ms + delay_ms, True, delay_ms, left_ms)


class SyncPhase(NamedTuple):
    """When the members of a generation have had long enough for SyncGroup."""

    ends_ms: int
    generation: int
