"""`Producer`: sends records, and returns their acks.

`appender` appends records to the accumulator, `accumulator` batches them, `sender` sends batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable
from types import TracebackType
from typing import Any, Literal, Self

from ...records import GrowingBatch
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, EncodeError, RequestTimeoutError
from ..metadata.cluster_view import ClusterView
from .accumulator import RecordAccumulator
from .acks import Acks
from .appender import RecordAppender
from .batch import Ack, BatchDelivery, Delivery
from .errors import DeliveryError
from .old_brokers import resolve_idempotence
from .record_validation import (
    EncodedRecords,
    Headers,
    ProducerRecord,
    SupportsKafkaRecord,
    checked_timestamp,
    record_of_event,
)
from .sender import Sender
from .settings import REMEMBERED_BATCHES, ProducerSettings

__all__ = ["Producer"]


class Producer:
    """Sends records, and waits for their acks by all in-sync replicas.

    `Client.producer` creates it; `settings` are its settings. Raises ConfigurationError for a
    setting that contradicts those of its client, or that its brokers do not support.
    """

    def __init__(
        self,
        view: ClusterView,
        settings: ProducerSettings,
    ) -> None:
        is_optional = settings.idempotent is None
        idempotent = resolve_idempotence(
            view.settings.broker_version, settings.compression, settings.idempotent
        )
        if idempotent and settings.max_in_flight > REMEMBERED_BATCHES:
            raise ConfigurationError(
                f"max_in_flight is {settings.max_in_flight}; with idempotence it is "
                f"{REMEMBERED_BATCHES} at the most, as brokers remember no more batches of a "
                "producer"
            )
        if settings.linger_ms >= view.settings.delivery_timeout_ms:
            raise ConfigurationError(
                f"linger_ms is {settings.linger_ms}: records would expire before they are "
                "sent; it must be below delivery_timeout_ms, which is "
                f"{view.settings.delivery_timeout_ms}"
            )
        self.settings = settings
        self._view = view
        self._now_ms = view.clock.now_ms
        self._accumulator = RecordAccumulator(
            view.settings,
            batch_bytes=settings.batch_bytes,
            linger_ms=settings.linger_ms,
            max_in_flight=settings.max_in_flight,
            idempotent=idempotent,
            monotonic=view.clock.monotonic,
            new_future=lambda: asyncio.get_running_loop().create_future(),
            observer=view.observer,
        )
        view.observer.producer(self._accumulator)
        self._sender = Sender(
            view,
            self._accumulator,
            compression=settings.compression,
            optional_idempotence=is_optional,
        )
        self._appender = RecordAppender(
            view, self._accumulator, self._sender, buffer_bytes=settings.buffer_bytes
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        timeout_ms = None if error is None else self._view.settings.error_flush_ms
        try:
            await asyncio.sleep(0)  # lets tasks that the block has created call `send` first
        finally:
            try:
                await self.close(timeout_ms=timeout_ms)
            except DeliveryError as failure:
                if error is None:
                    raise
                error.add_note(f"besides: {failure}")

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Refuses further calls, and sends all records of earlier calls.

        Calls that wait for metadata or memory, or have more records, have `delivery_timeout_ms` to
        append their records. Records that are not appended or acked after `timeout_ms`, or when the
        close is cancelled, fail: their own calls raise DeliveryError. `close` raises DeliveryError
        as `flush` does. If an `async with` block ends with an exception, `timeout_ms` is
        `error_flush_ms`.
        """
        _check_timeout(timeout_ms)
        self._view.loop_guard.check()
        self._appender.is_closed = True
        limit_ms = self._view.settings.delivery_timeout_ms
        if timeout_ms is not None:
            limit_ms = min(limit_ms, timeout_ms)
        clock = self._view.clock
        started_at = clock.monotonic()
        try:
            # If the time is over, the calls whose records are incomplete raise the error.
            await self._within_timeout(limit_ms, self._until_calls_done())
            self._appender.append_queues.close()
            if timeout_ms is not None:
                timeout_ms = max(0, timeout_ms - round((clock.monotonic() - started_at) * 1000))
            await self._within_timeout(timeout_ms, self._until_batches_completed())
        finally:
            self._appender.append_queues.close()
            await self._sender.close()
        self._raise_unretrieved()

    async def flush(self, *, timeout_ms: int | None = None) -> None:
        """Waits until every record of all calls so far is acked or has failed.

        A call counts with all records of its list or iterator, even if it still waits for metadata
        or memory. Raises DeliveryError with the failed records of `enqueue` whose delivery no
        caller has awaited; each is reported once. Raises RequestTimeoutError after `timeout_ms`;
        calls and records in flight continue.
        """
        _check_timeout(timeout_ms)
        self._view.loop_guard.check()
        if not await self._within_timeout(timeout_ms, self._until_all_completed()):
            waiting = len(self._appender.append_queues.tickets())
            calls = f", and {waiting} calls have more records" if waiting else ""
            raise RequestTimeoutError(
                f"{self._accumulator.incomplete_records} records were not acknowledged{calls} "
                f"within {timeout_ms} ms"
            )
        self._raise_unretrieved()

    async def _within_timeout(self, timeout_ms: int | None, waiting: Awaitable[None]) -> bool:
        """Waits for at most `timeout_ms`; returns True if `waiting` has ended."""
        if timeout_ms is None:
            await waiting
            return True
        try:
            async with self._view.clock.timeout(timeout_ms / 1000):
                await waiting
        except TimeoutError:
            return False
        return True

    async def _until_all_completed(self) -> None:
        await self._until_calls_done()
        await self._until_batches_completed()

    async def _until_calls_done(self) -> None:
        """Waits until the calls that wait now have appended their records, or have failed."""
        tickets = self._appender.append_queues.tickets()
        if tickets:
            self._appender.stop_lingering()
            await asyncio.wait([ticket.removal() for ticket in tickets])

    async def _until_batches_completed(self) -> None:
        """Waits for the outcome of all appended records."""
        if self._accumulator.incomplete:
            self._appender.stop_lingering()
            await asyncio.wait(set(self._accumulator.incomplete))

    def _raise_unretrieved(self) -> None:
        failed = self._accumulator.unretrieved_failures()
        if failed:
            first = failed[0]
            records = [record for failure in failed for record in failure.records]
            raise DeliveryError(first.topic, first.partition, records, first.cause) from first.cause

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Ack:
        """Sends one record, and waits until it is acked.

        `timestamp` is in ms, now by default. Without `partition` the hash of the key chooses it.
        Without a key the records of one batch go to one partition, and the next batch to the next
        partition (KIP-480). Concurrent calls share batches. If the call is cancelled, the record
        may still be sent.

        Raises DeliveryError, which has the record, also for a topic that does not exist;
        EncodeError for values that cannot be encoded, or a partition that the topic does not have;
        and ConfigurationError once the producer is closed.
        """
        record = ProducerRecord(value, key, headers, timestamp, partition)
        batch, position = await self._appender.append(topic, record, is_single=True)
        if not batch.future.done():
            waiter = asyncio.get_running_loop().create_future()
            batch.waiters.append(waiter)
            await waiter
        cause = batch.future.result() and batch.failure(position)
        if cause is not None:
            raise DeliveryError(
                topic, batch.partition, [batch.record_at(position)], cause
            ) from cause
        return batch.ack(position)

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Appends one record, and waits for memory only; `await delivery` returns the `Ack`.

        The next `flush` or `close` raises the failure of a delivery that no caller awaits. Raises
        the same errors as `send`, and DeliveryError only if the record cannot be appended.
        """
        record = ProducerRecord(value, key, headers, timestamp, partition)
        batch, position = await self._appender.append(topic, record)
        delivery = Delivery(batch, position)
        batch.deliveries.append(delivery)
        return delivery

    async def send_event(
        self,
        topic: str,
        event: SupportsKafkaRecord,
        *,
        mode: Literal["binary", "structured"] | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        **options: Any,
    ) -> Ack:
        """Sends an event as one record, and waits until it is acked.

        The event makes the record: `event.to_kafka_record(mode, **options)`. For events of
        `kproto_cloudevents` the options are those of `to_kafka`: `key`, `key_mapper`, `headers`,
        `event_format`, `repeat_attributes`, `message_format`. An event that was read from a record
        is sent as the same record, with its key.

        Raises the error of an event that cannot be written, EncodeError for an object that is no
        event, and the errors of `send`.
        """
        key, value, headers = record_of_event(event, mode, options)
        return await self.send(
            topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition
        )

    async def send_events(
        self,
        topic: str,
        events: Iterable[SupportsKafkaRecord],
        *,
        mode: Literal["binary", "structured"] | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        **options: Any,
    ) -> Acks:
        """Sends many events as `send_event` does; waits until all are acked.

        If an event of a list or another collection cannot be written, nothing is sent. An iterator
        is read while records are sent, so the events before the broken one are sent.

        Raises the error of an event that cannot be written, as `send_event` does, and the errors of
        `send_many`.
        """
        if hasattr(events, "to_kafka_record"):
            raise EncodeError("events is one event: give a list of them, or use send_event")
        records = (
            ProducerRecord(value, key, headers, timestamp, partition)
            for key, value, headers in (record_of_event(each, mode, options) for each in events)
        )
        return await self.send_many(
            topic, list(records) if isinstance(events, Collection) else records
        )

    async def send_many(self, topic: str, values: Iterable[bytes | ProducerRecord | None]) -> Acks:
        """Sends many records; waits until all are acked.

        An element is a value, or a `ProducerRecord` with key, headers and so on. Records of one
        partition keep their order; records of later calls to the topic follow the last of them. If
        an element cannot be encoded, or if `values` itself raises, the records before it are sent,
        and the call waits for them. If the call is cancelled, appended records may still be sent.

        Raises DeliveryError, which has every record read from `values` that has no ack, and the
        errors of `send`; an EncodeError names its element. Once a record has failed, or the
        producer is closed, no further records are read. Then the error has the remaining records of
        a list; an iterator keeps them.
        """
        if isinstance(values, ProducerRecord):
            raise EncodeError("values is one record: give a list of them, or use send")
        acks = Acks()
        try:
            await self._appender.append_many(topic, values, acks)
        except Exception as error:
            left = error.records if isinstance(error, DeliveryError) else []
            failure = await self._outcome(topic, acks, left)
            if failure is None:
                raise
            raise failure from error
        failure = await self._outcome(topic, acks, [])
        if failure is not None:
            raise failure from failure.cause
        return acks

    async def send_batch(
        self, topic: str, partition: int, records: EncodedRecords
    ) -> BatchDelivery:
        """Appends a batch of encoded records, for callers that encode many records at once.

        Waits for memory only; `await delivery` returns the `Ack` of the batch's first record. The
        batch is compressed, gets its sequence and is sent as any other batch, after the earlier
        records of its partition. The next `flush` or `close` raises the failure of a delivery that
        no caller awaits.

        Raises the errors of `enqueue`; EncodeError also for a partition that the topic does not
        have, and ConfigurationError if a hook needs each record, or for brokers before 0.11.
        """
        if records.count < 1 or not records.data:
            raise EncodeError("a batch wants one record at least")
        timestamp = self._now_ms() if records.timestamp is None else records.timestamp
        content = GrowingBatch.of_encoded(records.data, records.count, checked_timestamp(timestamp))
        batch = await self._appender.append_encoded(topic, partition, content)
        delivery = BatchDelivery(batch)
        batch.deliveries.append(delivery)
        return delivery

    async def _outcome(
        self, topic: str, acks: Acks, left: list[ProducerRecord]
    ) -> DeliveryError | None:
        """Waits for the outcome of all records; returns one error of those that failed.

        The error has also the records in `left`, which were not appended. None if all were acked.
        """
        batches = acks.batches()
        if batches:
            await asyncio.wait([batch.future for batch in batches])
        for batch, _, cause in acks.failures():
            return DeliveryError(topic, batch.partition, acks.undelivered() + left, cause)
        return None


def _check_timeout(timeout_ms: int | None) -> None:
    if timeout_ms is not None:
        check_whole_number("timeout_ms", timeout_ms, 0)
