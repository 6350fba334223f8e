"""`Producer`: the face. Takes records, and tells what has become of them.

How a record comes to the accumulator is `giving`'s, what waits where the accumulator's, sending
the sender's.
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
from .accumulator import Accumulator
from .acks import Acks
from .appender import RecordAppender
from .batch import Ack, BatchDelivery, Delivery
from .errors import DeliveryError
from .old_brokers import check_old_brokers
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
    """Sends records and waits for their acknowledgement by all in-sync replicas.

    Made by `Client.producer`; `settings` are its settings. Raises ConfigurationError for a setting
    that its client or its brokers rule out.
    """

    def __init__(
        self,
        view: ClusterView,
        settings: ProducerSettings,
    ) -> None:
        is_optional = settings.idempotent is None
        idempotent = check_old_brokers(
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
                f"linger_ms is {settings.linger_ms}: records would be given up before they are "
                "sent; it must be below delivery_timeout_ms, which is "
                f"{view.settings.delivery_timeout_ms}"
            )
        self.settings = settings
        self._view = view
        self._now_ms = view.clock.now_ms
        self._accumulator = Accumulator(
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
            view, self._accumulator, compression=settings.compression, optional_identity=is_optional
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
            await asyncio.sleep(0)  # calls in tasks that the block has made come before its end
        finally:
            try:
                await self.close(timeout_ms=timeout_ms)
            except DeliveryError as failure:
                if error is None:
                    raise
                error.add_note(f"besides: {failure}")

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Refuse more calls, and send all that was given before. Failures belong to their calls.

        Calls that still wait for metadata or room, or have more to give, have `delivery_timeout_ms`
        to do so. What is not given or not acknowledged after `timeout_ms`, or when the close is
        cancelled, is given up: its senders get a DeliveryError. Raises DeliveryError as `flush`
        does. A block of `async with` that ends with an exception closes with `error_flush_ms`.
        """
        _check_time_out(timeout_ms)
        self._view.home.check()
        self._appender.is_closed = True
        limit_ms = self._view.settings.delivery_timeout_ms
        if timeout_ms is not None:
            limit_ms = min(limit_ms, timeout_ms)
        clock = self._view.clock
        begun = clock.monotonic()
        try:
            # What has not come about by then is told to whoever sent it.
            await self._within_timeout(limit_ms, self._calls_done())
            self._appender.append_queues.close()
            if timeout_ms is not None:
                timeout_ms = max(0, timeout_ms - round((clock.monotonic() - begun) * 1000))
            await self._within_timeout(timeout_ms, self._batches_completed())
        finally:
            self._appender.append_queues.close()
            await self._sender.close()
        self._raise_unretrieved()

    async def flush(self, *, timeout_ms: int | None = None) -> None:
        """Wait until every record of the calls made so far is acknowledged or has failed.

        Such a call counts to the last record of its list or iterator, also where it still waits
        for metadata or room. Raises DeliveryError with the records of `enqueue` that failed and
        whose delivery nobody has awaited; each is told once. Raises RequestTimeoutError after
        `timeout_ms`; the calls go on, and what was given stays under way.
        """
        _check_time_out(timeout_ms)
        self._view.home.check()
        if not await self._within_timeout(timeout_ms, self._calls_done_and_batches_completed()):
            waiting = len(self._appender.append_queues.tickets())
            calls = f", and {waiting} calls have more to give" if waiting else ""
            raise RequestTimeoutError(
                f"{self._accumulator.incomplete_records} records were not acknowledged{calls} "
                f"within {timeout_ms} ms"
            )
        self._raise_unretrieved()

    async def _within_timeout(self, timeout_ms: int | None, waiting: Awaitable[None]) -> bool:
        """Wait, for no longer than that; True when what is waited for has come about."""
        if timeout_ms is None:
            await waiting
            return True
        try:
            async with self._view.clock.timeout(timeout_ms / 1000):
                await waiting
        except TimeoutError:
            return False
        return True

    async def _calls_done_and_batches_completed(self) -> None:
        await self._calls_done()
        await self._batches_completed()

    async def _calls_done(self) -> None:
        """Wait until those who wait now have given their records, or have failed to."""
        places = self._appender.append_queues.tickets()
        if places:
            self._appender.stop_lingering()
            await asyncio.wait([place.left() for place in places])

    async def _batches_completed(self) -> None:
        """Wait for the outcome of all that was given."""
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
        """Send one record and wait until it is acknowledged.

        `timestamp` in ms, now by default. Without `partition` the key decides, and without a key
        the records of one batch go to a partition chosen in turn. Calls that run at the same time
        share batches. When cancelled, the record may still be sent.

        Raises DeliveryError, which holds the record, also for a topic that the cluster does not
        have; EncodeError for a value that no record can hold, or a partition that the topic does
        not have; ConfigurationError when it is called once the producer is closed.
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
        """Give one record and wait for no more than room for it; `await delivery` gives the `Ack`.

        A delivery that nobody awaits is told by the next `flush` or `close`, if it fails. Raises
        what `send` raises, but for DeliveryError.
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
        """Send an event as one record and wait until it is acknowledged.

        The event says itself what record it is: `event.to_kafka_record(mode, **options)`. For
        those of `kproto_cloudevents` the options are `to_kafka`'s: `key`, `key_mapper`,
        `headers`, `event_format`, `repeat_attributes`, `message_format`. An event that was read
        from a record goes out as the same record, with its key.

        Raises what the event raises when it cannot be written, EncodeError for what is no event,
        and else what `send` raises.
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
        """Send many events, each as `send_event` does; waits until all are acknowledged.

        Of a list or another collection nothing is sent where one of them cannot be written. Of an
        iterator, which is read as the records go out, what stands before that one is sent.

        Raises what `send_event` raises for one that cannot be written, and else what `send_many`
        raises.
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
        """Send many records; waits until all are acknowledged.

        An element is a value, or a `ProducerRecord` with key, headers and the like. Records of
        one partition keep their order; what later calls give to the topic comes behind the last
        of them. What stands before an element that no record can hold, or before a failure of
        `values` itself, is sent and waited for; when cancelled, what was given already may still
        be sent.

        Raises DeliveryError, which holds every record that was taken and not acknowledged, and
        else what `send` raises; an EncodeError says which element it is about. Once some have
        failed, or the producer has closed, no more are taken: those of a list are in the error, an
        iterator still has them.
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
        """Give a batch of records that are encoded already, for who encodes many at once.

        Waits for no more than room for it; `await delivery` gives the `Ack` of its first record.
        The batch is compressed, numbered and sent as any other, behind what was given to its
        partition before. A delivery that nobody awaits is told by the next `flush` or `close`, if
        it fails.

        Raises what `enqueue` raises; EncodeError also for a partition that the topic does not have,
        and ConfigurationError where a hook wants to see each record, or for brokers before 0.11.
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
        """Wait for the outcome of all records; returns what went wrong with them, if anything.

        The error then has those that were not given, too.
        """
        batches = acks.batches()
        if batches:
            await asyncio.wait([batch.future for batch in batches])
        for batch, _, cause in acks.failures():
            return DeliveryError(topic, batch.partition, acks.undelivered() + left, cause)
        return None


def _check_time_out(timeout_ms: int | None) -> None:
    if timeout_ms is not None:
        check_whole_number("timeout_ms", timeout_ms, 0)
