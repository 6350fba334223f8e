"""`ShareLookAhead`: decides how many records the `run` of a share consumer acquires in advance.

The broker counts a delivery of each acquired record, also of a record that `run` releases because
no handler has started it when `run` stops. So a `run` with slow handlers acquires few records.
Does no I/O.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ShareLookAhead"]

#: With slow handlers, `run` holds this many records for each worker: one that its handler
#: processes, and one in advance.
_RECORDS_PER_WORKER: Final = 2

#: Fast handlers have as many records in advance as they process in this time, in seconds.
_LOOK_AHEAD_S: Final = 0.25
_SHORTEST_S: Final = 1e-6

#: The largest factor from one size to the next.
_GROWTH: Final = 4


class ShareLookAhead:
    """Adapts `size`, the number of records that `run` holds, in handlers and in a queue.

    `size` grows from two records for each of the `workers`, as long as handlers are fast and more
    records are available. From the largest size on, each fetch acquires as many records as the
    settings of the consumer say: `max_poll_records`, and whole batches.
    """

    __slots__ = ("_filled_at", "_largest", "_least", "_queued", "_workers", "size")

    def __init__(self, workers: int, max_poll_records: int) -> None:
        self._workers = workers
        self._least = self.size = workers * _RECORDS_PER_WORKER
        self._largest = max(max_poll_records, self._least * _RECORDS_PER_WORKER)
        self._filled_at = 0.0
        self._queued = 0

    @property
    def is_limited(self) -> bool:
        """True if fetches must acquire fewer records than the settings of the consumer say."""
        return self.size < self._largest

    @property
    def refill_at(self) -> int:
        """The number of queued records at which `run` fetches the next records."""
        return (self.size - self._workers) // 2 if self.is_limited else self._workers - 1

    def fetch_limit(self, held: int) -> int | None:
        """Returns how many records to acquire if `run` holds `held`; None for no own limit."""
        return max(1, self.size - held) if self.is_limited else None

    def on_filled(self, queued: int, now: float) -> None:
        """Notes the number of queued records after a fetch, at `now` in seconds of the clock."""
        self._queued, self._filled_at = queued, now

    def on_poll(self, queued: int, now: float, *, has_more: bool) -> None:
        """Adapts `size` before a fetch, by the records that handlers have started since the last.

        With `has_more` the last fetch has acquired as many records as it was allowed to.
        """
        started = self._queued - queued
        if started <= 0:
            return
        fitting = int(started * _LOOK_AHEAD_S / max(now - self._filled_at, _SHORTEST_S))
        if fitting < self.size:
            self.size = max(self._least, fitting)
        elif has_more:
            self.size = min(fitting, self.size * _GROWTH, self._largest)
