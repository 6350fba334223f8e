"""`ProducerBatch`: records of one partition, and the outcome of each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from ...records import GrowingBatch, Record, encode_message_set
from ...records.new_record import MAX_INT32
from ...wire.errors import KprotoError
from ..release import MAGIC_OF_BATCHES
from .errors import DeliveryError
from .producer_state import LAST_SEQUENCE, NO_PRODUCER_ID
from .record_validation import ProducerRecord

__all__ = [
    "Ack",
    "BatchDelivery",
    "Delivery",
    "ProducerBatch",
]


class Ack(NamedTuple):
    """The partition, offset and timestamp of a stored record.

    `offset` is -1 if the batch was a duplicate and the broker did not send its offset. `timestamp`
    is in ms; it is the broker's if the topic has log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class ProducerBatch:
    """A batch of records; `content` has the records, which are encoded when they are appended.

    `future` is done with None when the batch is acked, or with the error when it has failed for
    good. Each caller that waits for one record has its own future in `waiters`, so that cancelling
    one caller does not affect the others. `deliveries` are the outcomes of records that no caller
    may be waiting for. `created_at`, and `ready_at`, when the batch stops lingering, are in seconds
    of the client's clock.

    `data` is the encoded batch. While it `has_sequence`, every attempt sends the same bytes, with
    the same `identity` and `sequence`, because the broker detects duplicates by identity and
    sequence. `send_index` numbers the batches of a partition in the order of their first attempts;
    -1 before that. A batch that was too large for the broker has `parts`, which are sent instead.
    """

    __slots__ = (
        "_decoded_records",
        "base_offset",
        "content",
        "created_at",
        "data",
        "deliveries",
        "future",
        "has_sequence",
        "identity",
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
        self._decoded_records: list[Record] = []
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
        self.waiters: list[asyncio.Future[None]] = []
        self.maybe_stored = False  # True if an earlier attempt may have stored it
        self.parent: ProducerBatch | None = None
        self.parts: list[ProducerBatch] = []

    @property
    def must_keep_sequence(self) -> bool:
        """True for a part of a batch that may be stored whole.

        With a new sequence its records could be stored twice.
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

    def forget_records(self) -> None:
        """Drops the records except for their timestamps, which the acks need."""
        self.content.forget()
        self._decoded_records = []

    def build(self, compression: str, magic: int = MAGIC_OF_BATCHES) -> None:
        """Encodes the batch, unless it is encoded already.

        A message set, of a `magic` before 2, has no sequence. Raises MissingCodecError. For a
        message set also raises EncodeError if a record has headers, and ConfigurationError for
        zstd.
        """
        if self.data is not None and self.magic == magic:
            return
        self.magic = magic
        if magic < MAGIC_OF_BATCHES:
            records = [
                (each.key, each.value, each.headers, each.timestamp) for each in self._records()
            ]
            self.data = encode_message_set(records, magic=magic, compression=compression)
        else:
            self.data = self.content.build(
                compression=compression,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.producer_epoch,
                base_sequence=self.sequence,
            )

    def split(
        self, new_future: Callable[[], asyncio.Future[KprotoError | None]]
    ) -> list[ProducerBatch]:
        """Returns two batches with half the records each, under the sequences of these records."""
        records = self._records()
        half = (len(records) + 1) // 2
        for first, some in ((0, records[:half]), (half, records[half:])):
            content = GrowingBatch()
            for record in some:
                content.append(
                    record.key, record.value, record.headers, record.timestamp, MAX_INT32
                )
            part = ProducerBatch(
                self.topic, self.partition, new_future(), content, self.created_at, self.ready_at
            )
            part.parent = self
            part.identity = self.identity
            part.sequence = self.sequence
            if self.sequence >= 0:
                part.sequence = (self.sequence + first) & LAST_SEQUENCE
            part.has_sequence = True
            part.send_index = self.send_index
            part.maybe_stored = self.maybe_stored
            self.parts.append(part)
        self._decoded_records = []
        self.data = None
        if self.parent is not None:
            self.forget_records()  # its parts and the whole batch have them
        return self.parts

    def _part_at(self, position: int) -> tuple[ProducerBatch, int]:
        """Returns the part of a split batch that has a record, and the record's position there."""
        batch = self
        while batch.parts:
            first = batch.parts[0].count
            if position < first:
                batch = batch.parts[0]
            else:
                batch, position = batch.parts[1], position - first
        return batch, position

    def failures(self) -> Iterator[int]:
        """Yields the positions of the records that failed, once `future` is done."""
        if self.parts:
            first, second = self.parts
            yield from first.failures()
            yield from (first.count + position for position in second.failures())
        elif self.future.result() is not None:
            yield from range(self.count)

    def failure(self, position: int) -> KprotoError | None:
        """Returns the error of a record; None if it was acked. `future` must be done."""
        return self._part_at(position)[0].future.result()

    def ack(self, position: int) -> Ack:
        """Returns the ack of one record."""
        if self.parts:
            part, within = self._part_at(position)
            return part.ack(within)
        offset = self.base_offset + position if self.base_offset >= 0 else -1
        timestamp = self.log_append_time
        if timestamp < 0 and self.magic:  # a message of magic 0 has none
            timestamp = self.content.timestamp_of(position)
        return Ack(self.topic, self.partition, offset, timestamp)

    def record_at(self, position: int) -> ProducerRecord:
        """Returns one record, so that the user can send it again."""
        record = self._records()[position]
        return ProducerRecord(
            record.value, record.key, tuple(record.headers), record.timestamp, self.partition
        )

    def _records(self) -> list[Record]:
        """Decodes the records, once."""
        if len(self._decoded_records) != self.content.count:
            self._decoded_records = self.content.records()
        return self._decoded_records


class Delivery:
    """The outcome of a record of `Producer.enqueue`: `ack = await delivery`.

    Awaiting it raises DeliveryError, which has the record, if the record has failed. It may be
    awaited at any time, and repeatedly.
    """

    __slots__ = ("_batch", "_position", "is_retrieved")

    def __init__(self, batch: ProducerBatch, position: int) -> None:
        self._batch = batch
        self._position = position
        self.is_retrieved = False  # the next flush raises failures that were not retrieved

    @property
    def done(self) -> bool:
        """True if the outcome is known."""
        return self._batch.future.done()

    @property
    def record(self) -> ProducerRecord:
        """The record, so that it can be sent again."""
        return self._batch.record_at(self._position)

    def __await__(self) -> Generator[Any, None, Ack]:
        self.is_retrieved = True
        return self._outcome().__await__()

    async def _outcome(self) -> Ack:
        try:
            await asyncio.shield(self._batch.future)
        except asyncio.CancelledError:
            self.is_retrieved = False  # the cancelled caller has not seen the outcome
            raise
        failure = self.failure()
        if failure is not None:
            raise failure from failure.cause
        return self._batch.ack(self._position)

    def failure(self) -> DeliveryError | None:
        """Returns the error of the delivery; None if the record was acked."""
        batch = self._batch
        cause = batch.failure(self._position)
        if cause is None:
            return None
        return DeliveryError(batch.topic, batch.partition, [self.record], cause)

    def __repr__(self) -> str:
        state = "done" if self.done else "in flight"
        return f"<delivery to {self._batch.topic}[{self._batch.partition}], {state}>"


class BatchDelivery(Delivery):
    """The outcome of a batch of `Producer.send_batch`.

    `await delivery` returns the `Ack` of its first record; the offsets of the other records follow
    in order. It raises DeliveryError, which has the failed records.
    """

    __slots__ = ()

    def __init__(self, batch: ProducerBatch) -> None:
        super().__init__(batch, 0)

    def failed(self) -> list[int]:
        """Returns the positions of the records that failed, once the outcome is known."""
        return list(self._batch.failures())

    def failure(self) -> DeliveryError | None:
        """Returns the error of a batch that has failed, in part or as a whole; None if it was
        acked.
        """
        batch, failed = self._batch, self.failed()
        if not failed:
            return None
        cause = batch.failure(failed[0])
        assert cause is not None  # it failed
        return DeliveryError(
            batch.topic, batch.partition, [batch.record_at(each) for each in failed], cause
        )
