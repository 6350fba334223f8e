"""`FailedDeliveries`: failed deliveries that no caller has awaited, within a limit of bytes.

Plain data, without I/O. The next `flush` or `close` of the producer takes these deliveries, and
raises their failures.
"""

from __future__ import annotations

import logging
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import accumulate, chain
from typing import Final, NamedTuple, TypeAlias

from ...wire.errors import KprotoError
from ..observing.log_lines import log
from .batch import LateReads, ProducerBatch
from .errors import DeliveryError

__all__ = ["SETTLE_ITERATIONS", "FailedDeliveries"]

#: Calls a function in the next iteration of the event loop.
CallSoon: TypeAlias = Callable[[Callable[[], None]], object]

#: A delivery counts as awaited or not after this number of iterations of the event loop. By then
#: callbacks of `add_done_callback` (first iteration), a task that waits with `asyncio.wait`
#: (second), and with `wait_for` around it (fourth in Python 3.11), have read the failure.
SETTLE_ITERATIONS: Final = 5

#: If more batches than this are kept, the batches whose deliveries callers have all awaited are
#: released. The number is small, because a batch may be large. After a release, the next release
#: follows at twice the number of the remaining batches, so that releases are rare.
_MIN_RELEASE_COUNT: Final = 16


class _FailedBatch:
    """A failed batch, and its deliveries that no caller has awaited.

    `size_in_bytes` is the encoded size of the batch, without the records that were dropped.
    `largest_in_bytes` is the size of a batch that has only the largest record of this batch; 0
    before `find_largest`. The records of `send_batch` have one delivery, so they are dropped
    together, and count as one record.
    """

    __slots__ = (
        "_ends",
        "_largest_from",
        "batch",
        "deliveries",
        "largest_in_bytes",
        "size_in_bytes",
    )

    def __init__(self, batch: ProducerBatch) -> None:
        batch.compact()
        self.batch = batch
        self.deliveries = deque(batch.deliveries)
        self.size_in_bytes = batch.content.size_in_bytes
        self.largest_in_bytes = 0
        # Once a delivery is dropped: the ends of the records in the batch, and the size of the
        # largest record from each position on.
        self._ends: array[int] | None = None
        self._largest_from: array[int] | None = None

    @property
    def is_retrieved(self) -> bool:
        """True if callers have awaited all deliveries."""
        return all(each.is_retrieved for each in self.deliveries)

    def find_largest(self) -> None:
        """Sets `largest_in_bytes`; the records of `send_batch` count as one."""
        content = self.batch.content
        if self.batch.is_sealed or content.count == 1:
            self.largest_in_bytes = content.size_in_bytes
        else:
            sizes = content.record_sizes()
            self.largest_in_bytes = content.size_in_bytes - sum(sizes) + max(sizes)

    def unretrieved_records(self) -> list[int]:
        """Returns the positions of the failed records whose delivery no caller has awaited."""
        return [
            position
            for delivery in self.deliveries
            if not delivery.is_retrieved
            for position in delivery.failed()
        ]

    def failure(self) -> DeliveryError | None:
        """Returns the failures that no caller has awaited, as one error; None if there are none."""
        batch, positions = self.batch, self.unretrieved_records()
        if not positions:
            return None
        return batch.delivery_error(positions)

    def cause(self, position: int) -> KprotoError:
        """Returns the error of the record at `position`, which must have failed."""
        cause = self.batch.failure(position)
        assert cause is not None, "it failed"
        return cause

    def drop(self, excess: int, counts: Counter[str]) -> list[int]:
        """Drops the oldest deliveries of the batch, until its size is `excess` bytes smaller.

        Drops all deliveries if the batch has at most `excess` bytes, or has the records of a single
        call. Returns the positions of the failed records whose delivery was dropped before a caller
        has awaited it. The caller of `drop` must add their number to `counts`, the number of
        dropped records by topic. When a caller reads the failure of such a record later, the record
        is subtracted from `counts`.
        """
        content = self.batch.content
        late_reads = self.batch.late_reads
        if late_reads is None:
            late_reads = self.batch.late_reads = LateReads(counts)
        if excess >= self.size_in_bytes or self.batch.is_sealed:
            late_reads.end = self.batch.count
            dropped = self.unretrieved_records()
            self.deliveries.clear()
            self.size_in_bytes = self.largest_in_bytes = 0
            return dropped
        if self._ends is None or self._largest_from is None:
            sizes = content.record_sizes()
            self._ends = array("Q", accumulate(sizes))
            self._largest_from = array("Q", accumulate(reversed(sizes), max))
            self._largest_from.reverse()
        dropped = []
        remaining = self.size_in_bytes - excess
        while self.deliveries and self.size_in_bytes > remaining:
            delivery = self.deliveries.popleft()
            late_reads.end = delivery.position + 1
            self.size_in_bytes = content.size_in_bytes - self._ends[delivery.position]
            if not delivery.is_retrieved:
                dropped += delivery.failed()
        if not self.deliveries:
            self.size_in_bytes = self.largest_in_bytes = 0
        else:
            header = content.size_in_bytes - self._ends[-1]
            self.largest_in_bytes = header + self._largest_from[late_reads.end]
        return dropped


class _FirstDropped(NamedTuple):
    """The topic, partition and error of the first record that was dropped."""

    topic: str
    partition: int
    cause: KprotoError


class FailedDeliveries:
    """Keeps failed deliveries until a caller has awaited them, or until `take`.

    Counts encoded bytes, as the record accumulator does for `buffer_bytes`. If the kept batches
    have more than `limit_bytes`, the oldest records are dropped. Like `buffer_bytes`, the limit may
    be exceeded by one record, the largest that is kept: with equal limits all buffered records can
    be kept. With a limit of 0, all records are dropped.

    `dropped` has the number of dropped records by topic, except records whose failure a caller has
    read since the drop. A WARNING reports the first drop of a delivery without callbacks; the next
    WARNING can follow only after a `take`. The content of a batch remains in memory until its last
    delivery is dropped, so the memory may exceed the limit by one batch.

    With `call_soon`, a delivery is dropped after `SETTLE_ITERATIONS` iterations of the event loop
    at the earliest, so that tasks and callbacks can read its failure first. If `call_soon` is None,
    a delivery can be dropped as soon as it has failed.
    """

    def __init__(self, limit_bytes: int, call_soon: CallSoon | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.dropped: Counter[str] = Counter()
        self._call_soon = call_soon
        self._is_scheduled = False
        # Batches that were added in the last iterations of the event loop, by iteration. The last
        # list is that of the present iteration, which counts only once it has ended.
        self._recent: deque[list[_FailedBatch]] = deque([] for _ in range(SETTLE_ITERATIONS + 1))
        self._batches: deque[_FailedBatch] = deque()
        self._size_in_bytes = 0  # of `_batches`
        # Of `_batches`, each with larger records than all later ones: the first has the largest.
        self._with_largest: deque[_FailedBatch] = deque()
        self._release_count = _MIN_RELEASE_COUNT
        self._added_bytes = 0  # since the last release
        self._first_dropped: _FirstDropped | None = None
        self._has_warned = False  # since the last `take`

    def __len__(self) -> int:
        return sum(len(each.deliveries) for each in self._kept())

    @property
    def size_in_bytes(self) -> int:
        """The encoded bytes of the kept batches, without the records that were dropped."""
        return sum(each.size_in_bytes for each in self._kept())

    @property
    def is_settling(self) -> bool:
        """True if a batch failed in the last iterations of the event loop.

        Tasks and callbacks may still read such a failure.
        """
        return any(self._recent)

    def add(self, batch: ProducerBatch) -> None:
        """Keeps the deliveries of a batch that has failed, even if a caller awaits them.

        The await may still be cancelled, and then the caller does not learn of the failure.
        """
        if not batch.deliveries:
            return
        failed = _FailedBatch(batch)
        if self._call_soon is None:
            self._keep([failed])
            return
        self._recent[-1].append(failed)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._on_iteration)

    def take(self) -> DeliveryError | None:
        """Removes the deliveries; returns their failures as one error, None if there are none.

        The error omits the failures that a caller has awaited. `dropped` of the error has the
        number of dropped records by topic.
        """
        failures = [each.failure() for each in self._kept()]
        dropped, self.dropped = +self.dropped, Counter()
        first, self._first_dropped = self._first_dropped, None
        self._has_warned = False
        for recent in self._recent:
            recent.clear()
        self._batches.clear()
        self._with_largest.clear()
        self._size_in_bytes = self._added_bytes = 0
        self._release_count = _MIN_RELEASE_COUNT
        found = [failure for failure in failures if failure is not None]
        if first is not None and dropped:
            found.insert(0, DeliveryError(*first[:2], [], first.cause, {}, dropped))
        return DeliveryError.joined(found)

    def count_by_topic(self) -> Counter[str]:
        """Returns, by topic, the number of failed records whose delivery no caller has awaited.

        Includes the records that were dropped because of the limit of bytes.
        """
        counts = Counter(self.dropped)
        for each in self._kept():
            counts[each.batch.topic] += len(each.unretrieved_records())
        return +counts

    def _kept(self) -> Iterable[_FailedBatch]:
        return chain(self._batches, *self._recent)

    def _on_iteration(self) -> None:
        """Processes the batches that failed `SETTLE_ITERATIONS` iterations of the event loop ago.

        Keeps the batches whose deliveries no caller has awaited yet, up to the limit of bytes.
        """
        self._is_scheduled = False
        settled = self._recent.popleft()
        self._recent.append([])
        self._keep(settled)
        if self.is_settling and self._call_soon is not None:
            self._is_scheduled = True
            self._call_soon(self._on_iteration)

    def _keep(self, batches: Iterable[_FailedBatch]) -> None:
        """Keeps the batches that have unretrieved deliveries.

        If the batches exceed `limit_bytes`, drops the records of the oldest batches.
        """
        for each in batches:
            if each.is_retrieved:
                continue
            self._batches.append(each)
            self._size_in_bytes += each.size_in_bytes
            self._added_bytes += each.size_in_bytes
            each.find_largest()
            self._add_largest(each)
        # A release reads all batches. So it waits until many bytes were added since the last one.
        if len(self._batches) > self._release_count or (
            self._excess() > 0 and 2 * self._added_bytes > self.limit_bytes
        ):
            self._release_retrieved()
        if self._excess() > 0:
            self._drop_oldest()

    def _excess(self) -> int:
        """Returns the number of bytes beyond the limit; 0 or less if the limit is not exceeded.

        The limit is `limit_bytes` plus the size of the largest record; 0 if `limit_bytes` is 0.
        """
        if not self.limit_bytes or not self._with_largest:
            return self._size_in_bytes - self.limit_bytes
        return self._size_in_bytes - self.limit_bytes - self._with_largest[0].largest_in_bytes

    def _add_largest(self, batch: _FailedBatch) -> None:
        """Adds the latest batch to `_with_largest`, which finds the largest record that is kept.

        Removes from `_with_largest` the earlier batches whose largest record is not larger than the
        largest record of `batch`.
        """
        largest = self._with_largest
        while largest and largest[-1].largest_in_bytes <= batch.largest_in_bytes:
            largest.pop()
        largest.append(batch)

    def _update_largest(self) -> None:
        """Updates `_with_largest` after records of the oldest batch were dropped."""
        largest = self._with_largest
        first = largest[0]
        is_largest = len(largest) == 1 or first.largest_in_bytes > largest[1].largest_in_bytes
        if not first.deliveries or not is_largest:
            largest.popleft()

    def _release_retrieved(self) -> None:
        """Releases each batch whose deliveries have all been awaited by callers."""
        self._batches = deque(each for each in self._batches if not each.is_retrieved)
        self._size_in_bytes = sum(each.size_in_bytes for each in self._batches)
        self._with_largest.clear()
        for each in self._batches:
            self._add_largest(each)
        self._added_bytes = 0
        self._release_count = max(_MIN_RELEASE_COUNT, 2 * len(self._batches))

    def _drop_oldest(self) -> None:
        """Drops the oldest records beyond the limit.

        Adds to `dropped` the failed records among them, except those whose delivery a caller has
        awaited. Logs one warning at the first drop of a failed record without a callback.
        """
        is_unawaited = False
        while (excess := self._excess()) > 0:
            oldest = self._batches[0]
            size = oldest.size_in_bytes
            dropped = oldest.drop(excess, self.dropped)
            self._size_in_bytes -= size - oldest.size_in_bytes
            self._update_largest()
            if not oldest.deliveries:
                self._batches.popleft()
            if not dropped:
                continue
            batch = oldest.batch
            callbacks = batch.done_callbacks
            awaited = set() if callbacks is None else callbacks.positions
            positions = [0] if batch.is_sealed else dropped  # a batch of one call has one delivery
            is_unawaited = is_unawaited or not awaited.issuperset(positions)
            self.dropped[batch.topic] += len(dropped)
            if self._first_dropped is None:
                self._first_dropped = _FirstDropped(
                    batch.topic, batch.partition, oldest.cause(dropped[0])
                )
        if is_unawaited and not self._has_warned:
            self._has_warned = True
            self._warn()

    def _warn(self) -> None:
        """Logs a warning at the first drop, with the number and topics of all failed records."""
        unretrieved = self.count_by_topic()
        log(
            logging.WARNING,
            "%d records for %s have failed, and no caller has awaited their deliveries. They exceed"
            " undelivered_bytes (%d): the producer drops the oldest ones. The next flush or close"
            " raises DeliveryError: by_topic has the other records, dropped the numbers of dropped"
            " ones",
            unretrieved.total(),
            ", ".join(sorted(unretrieved)),
            self.limit_bytes,
        )
