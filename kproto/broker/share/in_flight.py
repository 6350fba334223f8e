"""Holds the records in flight of a share partition: batches of offsets with state and lock.

As in Kafka, a batch has one `Delivery` for all of its offsets, until the offsets differ; then it
has a `Delivery` for each offset.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .record_state import TERMINAL, RecordState

__all__ = ["NO_MEMBER", "Delivery", "InFlightBatch", "InFlightBatches"]

#: The member id of records that no member has acquired.
NO_MEMBER = ""


@dataclass(slots=True)
class Delivery:
    """Holds state, delivery count, member and acquisition lock of one or more offsets.

    `lock_ms` is the time at which the lock expires, as `ClockReading.ms`; None without a lock.
    """

    state: RecordState
    count: int
    member_id: str = NO_MEMBER
    lock_ms: int | None = None

    @property
    def is_terminal(self) -> bool:
        """Returns True if the record is acknowledged or archived."""
        return self.state in TERMINAL

    def acquire(self, member_id: str, lock_ms: int) -> None:
        """Locks the records for a member, and counts the delivery."""
        self.state = RecordState.ACQUIRED
        self.count += 1
        self.member_id = member_id
        self.lock_ms = lock_ms

    def finish(self, state: RecordState) -> None:
        """Ends the lock, with the state `state`."""
        self.state = state
        self.member_id = NO_MEMBER
        self.lock_ms = None

    def restore(self, former: Delivery) -> None:
        """Takes over all values of `former`."""
        self.state, self.count = former.state, former.count
        self.member_id, self.lock_ms = former.member_id, former.lock_ms


@dataclass(slots=True)
class InFlightBatch:
    """Holds the offsets from `first` to `last`.

    `offsets` has the deliveries by offset; if it is None, `delivery` applies to all offsets.
    """

    first: int
    last: int
    delivery: Delivery
    offsets: dict[int, Delivery] | None = None

    @property
    def size(self) -> int:
        """Returns the number of offsets."""
        return self.last - self.first + 1

    def split(self) -> dict[int, Delivery]:
        """Returns the deliveries by offset, and tracks each offset from now on."""
        if self.offsets is None:
            self.offsets = {
                offset: replace(self.delivery) for offset in range(self.first, self.last + 1)
            }
        return self.offsets

    def parts(self) -> Iterator[tuple[int, int, Delivery]]:
        """Yields first offset, last offset and delivery: once, or for each tracked offset."""
        if self.offsets is None:
            yield self.first, self.last, self.delivery
        else:
            for offset, delivery in self.offsets.items():
                yield offset, offset, delivery

    def is_within(self, first: int, last: int) -> bool:
        """Returns True if all offsets are from `first` to `last`."""
        return first <= self.first and self.last <= last


@dataclass(slots=True)
class InFlightBatches:
    """Holds the batches of a share partition, ordered by offset."""

    _by_first: dict[int, InFlightBatch] = field(default_factory=dict)
    _firsts: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return (self._by_first[it] for it in tuple(self._firsts))

    @property
    def last(self) -> InFlightBatch:
        """Returns the batch with the highest offsets; there must be one."""
        return self._by_first[self._firsts[-1]]

    def add(self, batch: InFlightBatch) -> None:
        """Adds a batch; replaces a batch with the same first offset."""
        if batch.first not in self._by_first:
            insort(self._firsts, batch.first)
        self._by_first[batch.first] = batch

    def remove_before(self, offset: int) -> None:
        """Removes the batches whose offsets are all before `offset`."""
        while self._firsts and self._by_first[self._firsts[0]].last < offset:
            del self._by_first[self._firsts.pop(0)]

    def clear(self) -> None:
        """Removes all batches."""
        self._by_first.clear()
        self._firsts.clear()

    def floor(self, offset: int) -> InFlightBatch | None:
        """Returns the last batch that starts at or before `offset`; None if there is none."""
        at = bisect_right(self._firsts, offset)
        return self._by_first[self._firsts[at - 1]] if at else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Returns the batches whose first offset is from `first` to `last`."""
        start = bisect_right(self._firsts, first - 1)
        return [self._by_first[it] for it in self._firsts[start : bisect_right(self._firsts, last)]]
