"""`ProducerBatch`: records of one partition, and the outcome of each of them."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from functools import partial
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NamedTuple,
    NoReturn,
    Self,
    SupportsIndex,
    TypeAlias,
)

from ...records import GrowingBatch, Record
from ...records.new_record import MAX_INT32
from ...wire.errors import KprotoError
from ..producer_record import ProducerRecord
from ..release import MAGIC_OF_BATCHES
from .acked_sends import AckedSends
from .done_callbacks import DoneCallbacks
from .errors import DeliveryError
from .producer_state import LAST_SEQUENCE, NO_PRODUCER_ID

__all__ = [
    "Ack",
    "BatchDelivery",
    "Delivery",
    "LateReads",
    "Outcome",
    "ProducerBatch",
    "Waiters",
]


class Ack(NamedTuple):
    """The partition, offset and timestamp of a stored record.

    A record of a transaction is stored before the transaction is committed, and stays in the log if
    the transaction is aborted.

    `offset` is -1 with acks=0, and if the batch was a duplicate and the broker did not send its
    offset. `timestamp` is in ms: the log append time if the topic uses it, otherwise the timestamp
    of the record; -1 for brokers before Kafka 0.10.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


#: The ack of a record; or its batch and position, if the record has failed or its batch was split.
Outcome: TypeAlias = "Ack | tuple[ProducerBatch, int]"


class LateReads:
    """Corrects the number of dropped records, because a caller may still read a dropped delivery.

    The producer drops deliveries of a failed batch to free memory: all deliveries before position
    `end` are dropped. `dropped` counts, by topic, the records whose failure no caller has read. If
    a caller reads the failure of a dropped delivery later, the records of the delivery are
    subtracted from `dropped`.
    """

    __slots__ = ("dropped", "end")

    def __init__(self, dropped: Counter[str]) -> None:
        self.dropped = dropped
        self.end = 0

    def on_read(self, topic: str, delivery: Delivery) -> None:
        """Subtracts the records of a dropped delivery, if its failure was not read before.

        Call it when a caller reads the failure of a delivery.
        """
        if not delivery.is_retrieved and delivery.position < self.end:
            self.dropped[topic] -= len(delivery.failed())


#: The position of a record; the futures of the calls of `send` that wait for this record and for
#: the records after it; and `first_call` and `indexes` of these calls (see `AckedSends`). A call
#: that was not collected has no `indexes`.
Waiters: TypeAlias = tuple[int, Sequence[asyncio.Future[Outcome]], int, Sequence[int]]

#: The `invalid` of most batches: an empty dict for each would take time and memory.
_NO_ERRORS: Final[Mapping[int, KprotoError]] = MappingProxyType({})


class ProducerBatch:
    """A batch of records; `content` has the records, which are encoded when they are appended.

    `future` is done with None when the batch is acked, or with the error when it has failed for
    good. Each caller that waits for one record has its own future in `waiters`, so that cancelling
    one caller does not affect other callers. `deliveries` are the outcomes for callers of `enqueue`
    and `send_batch`, which may await them later or never. The batch stops lingering at `ready_at`.
    `created_at` and `ready_at` are in seconds of the client's clock.

    `data` is the encoded batch. While the batch `has_sequence`, every attempt sends the same bytes,
    with the same `identity` (producer id and epoch) and base `sequence`: the broker detects
    duplicates by `identity` and `sequence`. `send_index` numbers the batches of a partition in the
    order of their first attempts; it is -1 before the first attempt. A batch that was too large for
    the broker has `parts`, which are sent instead.
    """

    __slots__ = (
        "_invalid_positions",
        "base_offset",
        "content",
        "created_at",
        "data",
        "deliveries",
        "done_callbacks",
        "future",
        "has_sequence",
        "identity",
        "invalid",
        "is_sealed",
        "late_reads",
        "log_append_time",
        "magic",
        "maybe_stored",
        "parent",
        "partition",
        "parts",
        "ready_at",
        "send_index",
        "sequence",
        "topic",
        "waiters",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        future: asyncio.Future[KprotoError | None],
        content: GrowingBatch,
        created_at: float = 0.0,
        ready_at: float = 0.0,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.content = content
        self.future = future
        self.created_at = created_at
        self.ready_at = ready_at
        self.base_offset = -1
        self.log_append_time = -1
        self.identity = NO_PRODUCER_ID
        self.sequence = -1
        self.has_sequence = False
        self.send_index = -1
        self.magic = MAGIC_OF_BATCHES
        self.data: bytes | None = None
        self.deliveries: list[Delivery] = []
        #: The callbacks of the batch's deliveries; None if no callback was added.
        self.done_callbacks: DoneCallbacks | None = None
        self.late_reads: LateReads | None = None  # once deliveries of a failed batch are dropped
        self.waiters: list[Waiters] = []
        self.maybe_stored = False  # True if a broker may have stored it in an earlier attempt
        self.parent: ProducerBatch | None = None
        self.parts: Sequence[ProducerBatch] = ()
        #: The errors of records that a broker refused, by their positions (KIP-467).
        self.invalid: Mapping[int, KprotoError] = _NO_ERRORS
        self._invalid_positions: Sequence[int] = ()
        self.is_sealed = False  # True if it accepts no more records: the records of one call

    @property
    def must_keep_sequence(self) -> bool:
        """True for a part of a split batch if a broker may have stored the batch before the split.

        With a new sequence number, the records of such a part could be stored twice.
        """
        return self.parent is not None and self.maybe_stored

    def clear_sequence(self) -> None:
        """Removes the sequence of a batch that no broker has stored."""
        self.has_sequence = False
        self.maybe_stored = False
        self.data = None

    @property
    def count(self) -> int:
        """The number of records of the batch."""
        return self.content.count

    def compact(self) -> None:
        """Reduces the memory of the records: keeps their encoded bytes only, in one piece."""
        self.content.compact()

    def forget_records(self) -> None:
        """Drops the records except for their timestamps, which the acks need."""
        self.content.forget()

    def split(
        self, new_future: Callable[[], asyncio.Future[KprotoError | None]]
    ) -> list[ProducerBatch]:
        """Splits the batch; returns its `parts`, two batches with half of the records each.

        Each part keeps the sequence numbers of its records.
        """
        records = self.content.records()
        half = (len(records) + 1) // 2
        parts = [self._part(records[:half], new_future), self._part(records[half:], new_future)]
        for part, first in zip(parts, (0, half), strict=True):
            part.identity = self.identity
            part.sequence = self.sequence
            if self.sequence >= 0:
                part.sequence = (self.sequence + first) & LAST_SEQUENCE
            part.has_sequence = True
            part.maybe_stored = self.maybe_stored
        self._set_parts(parts)
        return parts

    def split_off(
        self,
        invalid: Mapping[int, KprotoError],
        new_future: Callable[[], asyncio.Future[KprotoError | None]],
    ) -> ProducerBatch | None:
        """Fails the records whose indexes are the keys of `invalid`, each with its error.

        Moves the valid records to a new batch, which becomes the only batch in `parts`, and returns
        it; returns None if all records are invalid. The new batch has no sequence, because no
        broker has stored the records.
        """
        self.invalid = dict(sorted(invalid.items()))
        self._invalid_positions = list(self.invalid)
        records = self.content.records()
        valid = [each for at, each in enumerate(records) if at not in self.invalid]
        if not valid:
            return None
        part = self._part(valid, new_future)
        self._set_parts([part])
        return part

    def _part(
        self,
        records: Iterable[Record],
        new_future: Callable[[], asyncio.Future[KprotoError | None]],
    ) -> ProducerBatch:
        content = GrowingBatch()
        for record in records:
            content.append(record.key, record.value, record.headers, record.timestamp, MAX_INT32)
        part = ProducerBatch(
            self.topic, self.partition, new_future(), content, self.created_at, self.ready_at
        )
        part.parent = self
        part.send_index = self.send_index
        return part

    def _set_parts(self, parts: list[ProducerBatch]) -> None:
        self.parts = parts
        self.data = None
        if self.parent is not None:
            self.forget_records()  # the parts, and the batch that was split first, have them

    def _part_at(self, position: int) -> tuple[ProducerBatch, int]:
        """Returns the part of a split batch that has a record, and the record's position in it.

        Returns this batch and `position` if the batch was not split. If the broker has refused the
        record as invalid before a split, the record is in no part: returns the batch that was then
        split, and the position in that batch.
        """
        batch = self
        while batch.parts and position not in batch.invalid:
            position -= bisect_left(batch._invalid_positions, position)
            for part in batch.parts:
                batch = part
                if position < part.count:
                    break
                position -= part.count
        return batch, position

    def failures(self) -> Iterator[int]:
        """Yields the positions of the records that failed, in order; `future` must be done."""
        if not self.parts and not self.invalid:
            if self.future.result() is not None:
                yield from range(self.count)
            return
        for position in range(self.count):
            if self.failure(position) is not None:
                yield position

    def failure(self, position: int) -> KprotoError | None:
        """Returns the error of a record; None if it was acked. `future` must be done."""
        batch, within = self._part_at(position)
        return batch.invalid.get(within) or batch.future.result()

    def may_be_stored(self, position: int) -> bool:
        """Returns True if a broker may have stored a record, which has failed."""
        batch, within = self._part_at(position)
        return batch.maybe_stored and within not in batch.invalid

    def delivery_error(self, positions: Sequence[int]) -> DeliveryError:
        """Returns the error of the records at `positions`, at least one, which have failed."""
        cause = self.failure(positions[0])
        assert cause is not None  # it failed
        records = [self.record_at(each) for each in positions]
        pairs = zip(records, positions, strict=True)
        unknown = [record for record, at in pairs if self.may_be_stored(at)]
        return DeliveryError(self.topic, self.partition, records, cause, unknown=unknown)

    def ack(self, position: int) -> Ack:
        """Returns the ack of one record, which a broker must have acked."""
        if self.parts:
            part, within = self._part_at(position)
            return part.ack(within)
        offset = self.base_offset + position if self.base_offset >= 0 else -1
        timestamp = self.log_append_time
        if timestamp < 0 and self.magic:  # a message of magic 0 has none
            timestamp = self.content.timestamp_of(position)
        return Ack(self.topic, self.partition, offset, timestamp)

    def wake_waiters(self, acked: AckedSends[Outcome] | None = None) -> None:
        """Sets the futures of the callers that wait for one record; `future` must be done.

        The calls of `send` that the batch acks, and that were collected, are added to `acked` if it
        is not None: its `wake` sets their futures.
        """
        is_acked = self.future.result() is None and not self.parts and not self.invalid
        topic, partition, base_offset = self.topic, self.partition, self.base_offset
        timestamp = self.log_append_time
        if timestamp < 0 and self.magic:
            timestamp = self.content.only_timestamp
        has_all = is_acked and base_offset >= 0 and (timestamp >= 0 or not self.magic)
        new = tuple.__new__  # creates an Ack in two thirds of the time of `Ack`
        outcomes: Sequence[Outcome]
        for first, waiters, first_call, indexes in self.waiters:
            positions = range(first, first + len(waiters))
            if has_all:  # as `ack` does, in less time
                outcomes = [
                    new(Ack, (topic, partition, base_offset + position, timestamp))
                    for position in positions
                ]
            elif is_acked:
                outcomes = [self.ack(position) for position in positions]
            else:
                outcomes = [(self, position) for position in positions]
            if acked is not None and is_acked and indexes:
                acked.add(first_call, indexes, waiters, outcomes)
                continue
            for waiter, outcome in zip(waiters, outcomes, strict=True):
                if not waiter.done():
                    waiter.set_result(outcome)
        self.waiters.clear()

    def record_at(self, position: int) -> ProducerRecord:
        """Returns the record at `position` in the batch, so that the user can send it again."""
        record = self.content.record_at(position)
        return ProducerRecord(
            record.value, record.key, tuple(record.headers), record.timestamp, self.partition
        )


if TYPE_CHECKING:
    # For type checkers a delivery is a future, because `asyncio.wait` is declared for futures only.
    _FutureOfAck = asyncio.Future[Ack]
else:
    _FutureOfAck = object


class Delivery(_FutureOfAck):
    """The outcome of a record of `Producer.enqueue`: `ack = await delivery`.

    Awaiting it raises DeliveryError, which has the record, if the record has failed. A delivery may
    be awaited at any time, and repeatedly.

    A delivery has the methods of an `asyncio.Future` that read its outcome, so `asyncio.wait`,
    `gather`, `as_completed` and `wait_for` accept it. A delivery cannot be cancelled. The failure
    counts as reported once a caller has awaited the delivery, or has called `result` or
    `exception`; otherwise the next `flush` raises it.
    """

    # It is no subclass of `asyncio.Future` at run time: creating a future for each record would
    # take longer than appending the record.
    __slots__ = ("_batch", "is_retrieved", "position")

    def __init__(self, batch: ProducerBatch, position: int) -> None:
        self._batch = batch
        self.position = position  # the index of the record in the batch
        self.is_retrieved = False  # the next flush raises failures that were not retrieved

    def done(self) -> bool:
        """Returns True if the outcome is known."""
        return self._batch.future.done()

    def cancelled(self) -> bool:
        """Returns False: a delivery cannot be cancelled."""
        return False

    def cancel(self, msg: object = None) -> bool:
        """Cancels nothing, and returns False: the record is sent all the same."""
        return False

    def result(self) -> Ack:
        """Returns the ack; raises DeliveryError if the record has failed.

        Raises asyncio.InvalidStateError if the outcome is not known yet.
        """
        failure = self.exception()
        if failure is not None:
            raise failure from failure.cause
        return self._batch.ack(self.position)

    def exception(self) -> DeliveryError | None:
        """Returns the error of the delivery; None if the record was acked.

        Raises asyncio.InvalidStateError if the outcome is not known yet.
        """
        if not self._batch.future.done():
            raise asyncio.InvalidStateError(f"{self!r}: the outcome is not known yet")
        if self._batch.late_reads is not None:
            self._batch.late_reads.on_read(self._batch.topic, self)
        self.is_retrieved = True
        return self.failure()

    def add_done_callback(
        self, fn: Callable[[Self], object], /, *, context: Context | None = None
    ) -> None:
        """Calls `fn` with this delivery once the outcome is known, in the client's event loop.

        `fn` is called in a later iteration of the event loop, even if the outcome is known already.
        """
        batch = self._batch
        if batch.done_callbacks is None:
            batch.done_callbacks = DoneCallbacks(batch.future)
        batch.done_callbacks.add(self, fn, context)

    def remove_done_callback(self, fn: Callable[[Self], object], /) -> int:
        """Removes `fn` as often as `add_done_callback` has added it; returns how often."""
        callbacks = self._batch.done_callbacks
        return 0 if callbacks is None else callbacks.remove(self, fn)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Returns the event loop of the producer."""
        return self._batch.future.get_loop()

    @property
    def record(self) -> ProducerRecord:
        """The record of this delivery, for example to send it again."""
        return self._batch.record_at(self.position)

    def __await__(self) -> Generator[Any, None, Ack]:
        if self._batch.late_reads is not None:
            self._batch.late_reads.on_read(self._batch.topic, self)
        self.is_retrieved = True
        return self._outcome().__await__()

    async def _outcome(self) -> Ack:
        future = self._batch.future
        if not future.done():
            waiter = future.get_loop().create_future()
            wake = partial(_wake, waiter)
            self.add_done_callback(wake)
            try:
                await waiter
            except asyncio.CancelledError:
                self.is_retrieved = False  # the cancelled caller has not seen the outcome
                raise
            finally:
                self.remove_done_callback(wake)
        return self.result()

    def failure(self) -> DeliveryError | None:
        """Returns the error of the delivery; None if the record was acked.

        Call it only once the delivery is `done()`.
        """
        failed = self.failed()
        return self._batch.delivery_error(failed) if failed else None

    def failed(self) -> list[int]:
        """Returns the index of the record in its batch, as a list, if the record has failed.

        Returns an empty list otherwise. Call it only once the delivery is `done()`.
        """
        return [] if self._batch.failure(self.position) is None else [self.position]

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raises TypeError, because the delivery belongs to an event loop."""
        raise TypeError("a delivery belongs to an event loop: await it, and pickle its ack instead")

    def __repr__(self) -> str:
        state = "done" if self.done() else "in flight"
        return f"<delivery to {self._batch.topic}[{self._batch.partition}], {state}>"


def _wake(waiter: asyncio.Future[None], _: object) -> None:
    if not waiter.done():
        waiter.set_result(None)


class BatchDelivery(Delivery):
    """The outcome of a batch of `Producer.send_batch`.

    `await delivery` returns the `Ack` of the batch's first record; the offsets of the other records
    follow in order. If records have failed, `await delivery` raises DeliveryError, which has these
    records.
    """

    __slots__ = ()

    def __init__(self, batch: ProducerBatch) -> None:
        super().__init__(batch, 0)

    def failed(self) -> list[int]:
        """Returns the indexes of the failed records in the batch.

        Call it only once the delivery is `done()`.
        """
        return list(self._batch.failures())

    def failure(self) -> DeliveryError | None:
        """Returns the error of the failed records; None if all records were acked.

        Call it only once the delivery is `done()`.
        """
        failed = self.failed()
        return self._batch.delivery_error(failed) if failed else None
