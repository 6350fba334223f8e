"""`Acks`: the acks of many records; each `Ack` is created when a caller reads it."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, overload

from ...wire.errors import KprotoError
from ..producer_record import ProducerRecord
from .batch import Ack, ProducerBatch

__all__ = ["Acks"]


class Acks(Sequence[Ack]):
    """A sequence of `Ack`, in the order of the records.

    The sequence equals a list of the same acks. Copying or pickling the sequence gives a list.
    `Acks` stores runs: consecutive records in one batch. Run `i` has the records from index
    `_starts[i]` up to `_starts[i + 1]`, exclusive. `_runs[i]` is the batch, and the position of the
    run's first record in the batch. If a chunk was appended by partition, its runs are in the order
    of the appends, which `add_order` sets.
    """

    __hash__ = None  # type: ignore[assignment]  # as that of a list; mypy refuses this idiom

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._runs: list[tuple[ProducerBatch, int]] = []
        self._chunk_starts: list[int] = []
        self._orders: list[array[int]] = []
        self._inverses: dict[int, array[int]] = {}  # by chunk, once a caller has needed it
        self._last: ProducerBatch | None = None
        self._offset = 0  # the index of a record minus its position in `_last`
        self._count = 0

    def add(self, batch: ProducerBatch, position: int) -> None:
        """Adds the next record, which is in `batch` at `position`."""
        self.add_run(self._count, batch, position)
        self._count += 1

    def add_run(self, start: int, batch: ProducerBatch, position: int) -> None:
        """Adds a run of records: record `start`, and the records after it.

        Record `start` is at `position` in `batch`; the other records of the run follow it in
        `batch`. The run ends where the next run starts, or at the count that `set_count` sets.
        """
        if batch is not self._last or start - position != self._offset:
            self._starts.append(start)
            self._runs.append((batch, position))
            self._last = batch
            self._offset = start - position

    def add_order(self, start: int, order: Sequence[int]) -> None:
        """Stores the order of the appends of a chunk, which differs from the order of its records.

        `start` is the index of the first record of the chunk, and `order` has the indexes in the
        chunk in the order of the appends. For a run of the chunk, `start` in `add_run` counts in
        the order of the appends.
        """
        self._chunk_starts.append(start)
        self._orders.append(array("I", order))

    def _rank_of(self, index: int) -> int:
        """Returns the place of a record in the order of the appends."""
        chunk = bisect_right(self._chunk_starts, index) - 1
        if chunk < 0:
            return index
        start, order = self._chunk_starts[chunk], self._orders[chunk]
        if index - start >= len(order):
            return index
        inverse = self._inverses.get(chunk)
        if inverse is None:
            inverse = self._inverses[chunk] = array("I", bytes(4 * len(order)))
            for rank, at in enumerate(order):
                inverse[at] = rank
        return start + inverse[index - start]

    def _index_of(self, rank: int) -> int:
        """Returns the index of the record at a place in the order of the appends."""
        chunk = bisect_right(self._chunk_starts, rank) - 1
        if chunk < 0:
            return rank
        start, order = self._chunk_starts[chunk], self._orders[chunk]
        return rank if rank - start >= len(order) else start + order[rank - start]

    def set_count(self, count: int) -> None:
        """Sets the total number of records; the last run of records ends at this number."""
        self._count = count

    def batches(self, first_run: int = 0) -> list[ProducerBatch]:
        """Returns the batches of the records from run `first_run` on, each once."""
        return list({id(batch): batch for batch, _ in self._runs[first_run:]}.values())

    @property
    def run_count(self) -> int:
        """The number of runs."""
        return len(self._runs)

    def failures(self) -> Iterator[tuple[ProducerBatch, int, KprotoError]]:
        """Yields batch, position and error of each failed record, in the order of the records."""
        found = self._failures_as_appended()
        if self._orders:
            ranked = [(self._index_of(rank), failure) for rank, failure in found]
            ranked.sort(key=itemgetter(0))
            yield from (failure for _, failure in ranked)
        else:
            yield from (failure for _, failure in found)

    def _failures_as_appended(self) -> Iterator[tuple[int, tuple[ProducerBatch, int, KprotoError]]]:
        """Yields the failures with their places in the order of the appends."""
        bounds = pairwise([*self._starts, self._count])
        for (batch, first), (start, end) in zip(self._runs, bounds, strict=True):
            if batch.future.done() and batch.future.result() is not None:
                for at in range(first, first + end - start):
                    cause = batch.failure(at)
                    if cause is not None:
                        yield start + at - first, (batch, at, cause)

    def failed_records(self) -> tuple[list[ProducerRecord], list[ProducerRecord]]:
        """Returns the failed records in order, and those of them that a broker may have stored."""
        records, unknown = [], []
        for batch, at, _ in self.failures():
            records.append(record := batch.record_at(at))
            if batch.may_be_stored(at):
                unknown.append(record)
        return records, unknown

    def undelivered(self) -> list[ProducerRecord]:
        """Returns the records that failed, in the order in which they were sent."""
        return self.failed_records()[0]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Ack: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ack]: ...
    def __getitem__(self, index: int | slice) -> Ack | list[Ack]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._count))]
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(f"there are {self._count} acknowledgements, and none at {index}")
        if self._orders:
            at = self._rank_of(at)
        run = bisect_right(self._starts, at) - 1
        batch, first = self._runs[run]
        return batch.ack(first + at - self._starts[run])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Acks | list):
            return NotImplemented
        return self is other or (len(self) == len(other) and [*self] == [*other])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies the acks as a list: batches belong to an event loop."""
        return list, ([*self],)

    def __repr__(self) -> str:
        return f"<{self._count} acknowledgements>"
