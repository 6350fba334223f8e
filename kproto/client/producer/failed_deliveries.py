"""`FailedDeliveries`: failed deliveries that no caller has awaited, within a limit of memory.

Plain data, without I/O. The next `flush` or `close` of the producer takes them and raises their
failures.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from typing import Final, NamedTuple

from ...wire.errors import KprotoError
from ..observing.log_lines import log
from .batch import Delivery, ProducerBatch
from .errors import DeliveryError

__all__ = ["FailedDeliveries"]

#: The initial number of batches from which batches whose deliveries were all awaited are released.
#: It is small, because a batch may be large. After a release it is twice the number of remaining
#: batches, so that releases are rare.
_MIN_RELEASE_COUNT: Final = 16

#: The approximate memory of a failed batch in bytes, in addition to its records and deliveries.
_BATCH_BYTES: Final = 2_048

#: The approximate memory of a delivery in bytes.
_DELIVERY_BYTES: Final = 128


class _FailedBatch(NamedTuple):
    """A failed batch, its deliveries, and their approximate memory in bytes."""

    batch: ProducerBatch
    deliveries: list[Delivery]
    size_in_bytes: int


class _FirstDropped(NamedTuple):
    """The topic, partition and error of the first record that was dropped."""

    topic: str
    partition: int
    cause: KprotoError


class FailedDeliveries:
    """Keeps failed deliveries until a caller has awaited them, or until `take`.

    If they need more memory than `limit_bytes`, the oldest batches are dropped, and the records of
    the dropped deliveries are counted by topic in `dropped`. One WARNING reports the first drop;
    the next one follows only after a `take`.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.dropped: Counter[str] = Counter()
        self._batches: deque[_FailedBatch] = deque()
        self._size_in_bytes = 0
        self._release_count = _MIN_RELEASE_COUNT
        self._added_bytes = 0  # since the last release
        self._first_dropped: _FirstDropped | None = None

    def __len__(self) -> int:
        return sum(len(each.deliveries) for each in self._batches)

    @property
    def size_in_bytes(self) -> int:
        """The approximate memory of the kept deliveries and their batches, in bytes."""
        return self._size_in_bytes

    def add(self, batch: ProducerBatch) -> None:
        """Keeps the deliveries of a batch that has failed, even if a caller awaits them.

        The await may still be cancelled, and then the caller does not learn of the failure.
        """
        if not batch.deliveries:
            return
        batch.compact()
        size = batch.content.size_in_bytes + _BATCH_BYTES + _DELIVERY_BYTES * len(batch.deliveries)
        self._batches.append(_FailedBatch(batch, batch.deliveries, size))
        self._size_in_bytes += size
        self._added_bytes += size
        is_over = self._size_in_bytes > self.limit_bytes
        # A release reads all batches. So it waits until many bytes were added since the last one.
        if len(self._batches) > self._release_count or (
            is_over and 2 * self._added_bytes > self.limit_bytes
        ):
            self._release_retrieved()
        while self._size_in_bytes > self.limit_bytes:
            self._drop_oldest()

    def take(self) -> DeliveryError | None:
        """Removes the deliveries; returns their failures as one error, None if there are none.

        The error omits the failures that a caller has awaited. Its `dropped` has the number of
        dropped records by topic.
        """
        batches, self._batches = self._batches, deque()
        dropped, self.dropped = self.dropped, Counter()
        first, self._first_dropped = self._first_dropped, None
        self._size_in_bytes = self._added_bytes = 0
        self._release_count = _MIN_RELEASE_COUNT
        failures = (
            delivery.failure()
            for each in batches
            for delivery in each.deliveries
            if not delivery.is_retrieved
        )
        found = [failure for failure in failures if failure is not None]
        if first is not None:
            found.insert(0, DeliveryError(*first[:2], [], first.cause, {}, dropped))
        return DeliveryError.joined(found)

    def count_by_topic(self) -> Counter[str]:
        """Returns the number of failed records by topic that no caller has awaited."""
        counts = Counter(self.dropped)
        for each in self._batches:
            unretrieved = (delivery for delivery in each.deliveries if not delivery.is_retrieved)
            counts[each.batch.topic] += sum(delivery.failed_count() for delivery in unretrieved)
        return counts

    def _release_retrieved(self) -> None:
        """Releases batches of which a caller has awaited each delivery."""
        self._batches = deque(
            each
            for each in self._batches
            if not all(delivery.is_retrieved for delivery in each.deliveries)
        )
        self._size_in_bytes = sum(each.size_in_bytes for each in self._batches)
        self._added_bytes = 0
        self._release_count = max(_MIN_RELEASE_COUNT, 2 * len(self._batches))

    def _drop_oldest(self) -> None:
        """Drops the oldest batch.

        Counts its failed records whose deliveries no caller has awaited.
        """
        batch, deliveries, size = self._batches.popleft()
        self._size_in_bytes -= size
        unretrieved = [each for each in deliveries if not each.is_retrieved]
        count = sum(each.failed_count() for each in unretrieved)
        if not count:
            return
        self.dropped[batch.topic] += count
        if self._first_dropped is None:
            cause = next(each for each in map(batch.failure, batch.failures()) if each is not None)
            self._first_dropped = _FirstDropped(batch.topic, batch.partition, cause)
            self._warn(count)

    def _warn(self, dropped: int) -> None:
        """Logs a warning at the first drop, with the number and topics of all failed records."""
        topics = {each.batch.topic for each in self._batches} | self.dropped.keys()
        log(
            logging.WARNING,
            "%d records for %s have failed, and no caller has awaited their deliveries. They exceed"
            " undelivered_bytes (%d): the producer drops the oldest ones. The next flush or close"
            " raises DeliveryError: by_topic has the other records, dropped the numbers of dropped"
            " ones",
            len(self) + dropped,
            ", ".join(sorted(topics)),
            self.limit_bytes,
        )
