"""`Producer`: sends records, and returns their acks.

`appender` appends records to the accumulator, `accumulator` batches them, `sender` sends batches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from ...records.type_variables import K, V
from ...unclosed import finalize, warn_unclosed
from ...wire.checks import check_whole_number
from ...wire.counted import counted, were
from ...wire.errors import ConfigurationError
from ..metadata.cluster_view import ClusterView
from ..observing.log_lines import log
from ..producer_record import (
    ContentMode,
    EncodedRecords,
    EventRecord,
    Headers,
    ProducerRecord,
    SupportsKafkaRecord,
    check_many,
    record_of_event,
)
from .accumulator import RecordAccumulator
from .acks import Acks
from .appender import RecordAppender
from .batch import Ack, BatchDelivery, Delivery
from .errors import DeliveryError
from .failed_deliveries import FailedDeliveries
from .old_brokers import check_transactions, check_two_phases, resolve_idempotence
from .producer_closer import ProducerCloser
from .producer_transactions import ProducerTransactions
from .sender import Sender
from .settings import ACKS_ALL, REMEMBERED_BATCHES, ProducerSettings
from .transactions.prepared_transaction import PreparedTransactionState
from .transactions.transaction import Transaction
from .transactions.transaction_manager import TransactionManager
from .unsent_elements import send_converted

__all__ = ["Producer"]


class Producer(Generic[K, V]):
    """Sends records, and waits for their acks by all in-sync replicas, or as `acks` says.

    `Client.producer` creates it; `settings` are its settings. Raises ConfigurationError for a
    setting that contradicts a setting of the client, or that the brokers do not support. In
    annotations, `Producer` sends bytes, and `Producer[str, Order]` keys and values for codecs.
    """

    if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
        __class_getitem__ = classmethod(GenericAlias)

    def __init__(
        self,
        view: ClusterView,
        settings: ProducerSettings,
    ) -> None:
        wanted = settings.idempotent if settings.required_acks == ACKS_ALL else False
        if settings.transactional_id is not None:
            check_transactions(view.settings.broker_version, settings.transactional_id)
            wanted = True
        idempotent = resolve_idempotence(view.settings.broker_version, settings.compression, wanted)
        if idempotent and settings.max_in_flight > REMEMBERED_BATCHES:
            raise ConfigurationError(
                f"max_in_flight is {settings.max_in_flight}; with idempotence it is "
                f"at most {REMEMBERED_BATCHES}, because brokers remember no more batches of a "
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
        manager = None
        if settings.transactional_id is not None:
            check_two_phases(
                is_wanted=settings.two_phase_commit,
                unstable_versions=view.settings.unstable_versions,
            )
            manager = TransactionManager(
                view.settings,
                settings.transactional_id,
                settings.transaction_timeout_ms,
                has_two_phases=settings.two_phase_commit,
            )
        self._accumulator = RecordAccumulator(
            view.settings,
            batch_bytes=settings.batch_bytes,
            linger_ms=settings.linger_ms,
            max_in_flight=settings.max_in_flight,
            idempotent=idempotent,
            failed_deliveries=FailedDeliveries(
                settings.max_undelivered_bytes,
                lambda each: asyncio.get_running_loop().call_soon(each),
            ),
            monotonic=view.clock.monotonic,
            new_future=lambda: asyncio.get_running_loop().create_future(),
            observer=view.observer,
            transaction=manager,
        )
        view.observer.producer(self._accumulator)
        self._sender = Sender(
            view,
            self._accumulator,
            compression=settings.compression,
            optional_idempotence=wanted is None,
            acks=settings.required_acks,
        )
        self._appender = RecordAppender(
            view,
            self._accumulator,
            self._sender,
            buffer_bytes=settings.buffer_bytes,
            partitioner=settings.partitioner,
            allow_auto_create_topics=settings.allow_auto_create_topics,
        )
        self._transactions: ProducerTransactions | None = None
        if manager is not None:
            self._transactions = ProducerTransactions(
                view,
                manager,
                self._accumulator,
                self._sender,
                self._appender.append_queues,
                self._send_buffered,
            )
            self._appender.check_may_send = self._transactions.check_may_send
        # While records are incomplete, tasks and timers of the sender keep the producer alive, so
        # that its client can close it.
        self._sender.owner = self
        #: The records by topic that failed when the producer was closed and no call could raise
        #: their error: its block ended with an exception, or `close` was cancelled.
        self.undelivered: dict[str, list[ProducerRecord]] = {}
        self._closer = ProducerCloser(
            view,
            self._accumulator,
            self._sender,
            self._appender,
            self._transactions,
            self.undelivered,
        )

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        _finalize(self._warn_of_unended)

    def _warn_of_unended(self) -> None:
        """Warns of records that were not acked, and of an open transaction."""
        accumulator = getattr(self, "_accumulator", None)  # None if `__init__` has failed
        if accumulator is None:
            return
        found = []
        counts = accumulator.incomplete_by_topic() + accumulator.failed_deliveries.count_by_topic()
        if counts:
            total = counts.total()
            what = f"{counted(total, 'record')} for {', '.join(sorted(counts))}"
            text = "%s %s not acknowledged, and their producer was not closed"
            log(logging.WARNING, text, what, were(total))
            found.append(f"{what} that {were(total)} not acknowledged")
        manager = accumulator.transaction
        if manager is not None and manager.is_open:
            what = f"an open transaction of transactional id {manager.transactional_id!r}"
            ends = f"stays open until transaction_timeout_ms ({manager.timeout_ms} ms)"
            log(logging.WARNING, "%s %s, because its producer was not closed", what, ends)
            found.append(f"{what}, which {ends},")
        if found:
            warn_unclosed(f"a producer with {' and '.join(found)}", self)

    @property
    def is_closed(self) -> bool:
        """True once `close` was called."""
        return self._appender.is_closed

    @property
    def transactional_id(self) -> str | None:
        """The transactional id; None for a producer without transactions."""
        return self.settings.transactional_id

    async def __aenter__(self) -> Self:
        if self._transactions is not None:
            self._view.loop_guard.check()
            try:
                await self._transactions.initialize()
            except BaseException:
                await self._close_after_error()
                raise
        return self

    def transaction(self) -> Transaction:
        """Returns a transaction, to be used with `async with`; see `Transaction`.

        The producer needs a `transactional_id`, and has one transaction at a time. The `async with`
        block of the producer requests the producer id when it begins; without this block, the first
        transaction does so. The request fences an earlier producer with the transactional id and
        aborts the open transaction of that producer. Raises ConfigurationError for a producer
        without a transactional id.
        """
        if self._transactions is None:
            raise ConfigurationError(
                "the producer has no transactional id: create it by "
                "Client.producer(transactional_id=…)"
            )
        return Transaction(self._transactions)

    @property
    def prepared_transaction(self) -> PreparedTransactionState | None:
        """The open transaction of an earlier producer; always None without `two_phase_commit`."""
        return None if self._transactions is None else self._transactions.prepared

    async def complete_transaction(self, state: PreparedTransactionState | None) -> bool | None:
        """Ends the open transaction of an earlier producer with the transactional id (KIP-939).

        Commits the transaction if `Transaction.prepare` has returned `state` for it; otherwise
        aborts the transaction. Returns True if the transaction is committed, False if it is
        aborted, and None if it had ended before this call. Raises the errors of the end of a
        transaction, and ConfigurationError for a producer without `two_phase_commit`.
        """
        if self._transactions is None or not self.settings.two_phase_commit:
            raise ConfigurationError("the producer has no two-phase commit: set two_phase_commit")
        return await self._transactions.complete(state)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await asyncio.sleep(0)  # lets tasks that the block has created call `send` first
        finally:
            if error is None:
                await self.close()
            else:
                try:
                    await self._close_after_error()
                except DeliveryError as failure:
                    error.add_note(f"besides: {failure}")

    async def _close_after_error(self, timeout_ms: int | None = None) -> None:
        """Closes the producer within `timeout_ms`, by default `error_flush_ms`.

        Logs the records that were not delivered, and raises DeliveryError with them.
        """
        self._view.loop_guard.check()
        await self._closer.close_after_error(timeout_ms)

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Refuses further calls, and sends all records of earlier calls.

        An earlier call may still wait for metadata or memory. Such a call has
        `delivery_timeout_ms`, at most `timeout_ms`, to append its remaining records. Records that
        are not appended or acked after `timeout_ms` fail, and the calls that send them raise
        DeliveryError. `close` raises DeliveryError as `flush` does. If an `async with` block ends
        with an exception, `timeout_ms` is `error_flush_ms`. If `close` is cancelled, once or
        repeatedly, it sends records for up to `error_flush_ms`, within `timeout_ms`, before it
        raises CancelledError.

        If another task already closes the producer, this call waits for the other close, up to
        `timeout_ms`. Cancelling this call during the wait does not affect the other close.
        """
        _check_timeout(timeout_ms)
        self._view.loop_guard.check()
        await self._closer.close(timeout_ms)

    async def flush(self, *, timeout_ms: int | None = None) -> None:
        """Waits until every record of all calls so far is acked or has failed.

        Also waits for records that a call has not appended yet, because the call waits for metadata
        or memory. Raises DeliveryError with the failed records of `enqueue` and `send_batch` whose
        delivery no caller has awaited; each failure is reported once. Raises RequestTimeoutError if
        a call or a record is incomplete after `timeout_ms`; the calls continue, and the records are
        still sent.
        """
        _check_timeout(timeout_ms)
        self._view.loop_guard.check()
        await self._closer.flush(timeout_ms)

    async def _send_buffered(self, timeout_ms: int | None = None) -> None:
        """Waits as `flush` does, but raises no error, because `close` raises it."""
        await self._closer.send_buffered(timeout_ms)

    async def send(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Ack:
        """Sends one record, and waits until it is acked.

        `timestamp` is in ms, now by default. If `partition` is None, the hash of the key determines
        the partition. Records without a key go to one partition until a batch is full or is sent,
        then to the next partition (KIP-480). The setting `partitioner` can change these rules.
        Concurrent calls share batches. If the call is cancelled, the record may still be sent.

        Raises DeliveryError, which has the record, if the record is not acked, for example because
        the topic does not exist. Raises EncodeError for values that cannot be encoded, or a
        partition that the topic does not have, and ConfigurationError once the producer is closed.
        """
        waiter = None
        if (
            self._appender.concurrent_sends
            and type(topic) is str
            and (sends := self._appender.concurrent_sends.get(topic)) is not None
            and type(value) is bytes
            and type(key) is bytes
            and timestamp is None
            and partition is None
            and not headers
            and asyncio.get_running_loop() is sends.loop
        ):
            waiter = sends.collect(key, value)
        if waiter is not None:
            outcome = await waiter
        else:
            record: Any = ProducerRecord(value, key, headers, timestamp, partition)
            batch, position = await self._appender.append(topic, record, is_single=True)
            if batch.future.done():
                outcome = (batch, position)
            else:
                waiter = asyncio.get_running_loop().create_future()
                batch.waiters.append((position, (waiter,), 0, ()))
                outcome = await waiter
        if isinstance(outcome, Ack):
            return outcome
        batch, position = outcome
        cause = batch.future.result() and batch.failure(position)
        if cause is not None:
            raise batch.delivery_error([position]) from cause
        return batch.ack(position)

    async def enqueue(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Appends one record, and does not wait for its ack; `await delivery` returns the `Ack`.

        Waits only until it can append the record: for metadata of the topic, and for memory. The
        next `flush` or `close` raises the failure of a delivery that no caller awaits. Raises the
        errors of `send`; DeliveryError only if the record cannot be appended.
        """
        record: Any = ProducerRecord(value, key, headers, timestamp, partition)
        return await self._enqueue(topic, record)

    async def _enqueue(self, topic: str, record: ProducerRecord) -> Delivery:
        batch, position = await self._appender.append(topic, record)
        delivery = Delivery(batch, position)
        batch.deliveries.append(delivery)
        return delivery

    async def send_event(
        self,
        topic: str,
        event: SupportsKafkaRecord,
        *,
        mode: ContentMode | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        **options: Any,
    ) -> Ack:
        """Sends an event as one record, and waits until it is acked.

        `event.to_kafka_record(mode, **options)` returns the record. For events of
        `kproto_cloudevents` the options are those of `to_kafka`: `key`, `key_mapper`, `headers`,
        `event_format`, `repeat_attributes`, `message_format`. An event that was read from a record
        is sent as the same record, with its key, unless `mode` or an option changes the record.

        Brokers before Kafka 0.11 cannot store headers (Kafka binding 1.3). For these brokers the
        default mode is structured, and the record has the event as JSON and no headers; a reader
        must then pass `mode="structured"`, or the profile `json_events`. The codecs of the producer
        do not apply to the event.

        Raises the error of an event that cannot be converted, EncodeError for an object that is no
        event, and the errors of `send`.
        """
        record = self._record_of_event(event, mode, timestamp, partition, options)
        if isinstance(record, EventRecord):
            return await (await self._enqueue(topic, record))
        value: Any
        key: Any
        value, key, headers, timestamp, partition = record
        send: Any = Producer.send  # not that of a subclass: codecs do not apply to events
        ack: Ack = await send(
            self, topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition
        )
        return ack

    async def send_events(
        self,
        topic: str,
        events: Iterable[SupportsKafkaRecord],
        *,
        mode: ContentMode | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        **options: Any,
    ) -> Acks:
        """Sends many events as `send_event` does; waits until all are acked.

        If an event of a list or another collection cannot be converted, no record is sent. An
        iterator is read while records are sent, so the events before the invalid event are sent.

        Raises TypeError if `events` is no iterable of events, for example if it is a mapping or a
        single event. Raises the error of an event that cannot be converted, as `send_event` does,
        and the errors of `send_many`.
        """
        check_many("events", events, one="event", of_one="send_event")
        convert = partial(self._records_of_events, mode, timestamp, partition, options)
        send_many: Any = Producer.send_many  # not that of a subclass
        return await send_converted(events, convert, partial(send_many, self, topic))

    def _records_of_events(
        self,
        mode: ContentMode | None,
        timestamp: int | None,
        partition: int | None,
        options: Mapping[str, Any],
        events: Iterable[SupportsKafkaRecord],
    ) -> Iterator[ProducerRecord]:
        """Yields the record of each event."""
        for each in events:
            yield self._record_of_event(each, mode, timestamp, partition, options)

    def _record_of_event(
        self,
        event: SupportsKafkaRecord,
        mode: ContentMode | None,
        timestamp: int | None,
        partition: int | None,
        options: Mapping[str, Any],
    ) -> ProducerRecord:
        """Returns the record of an event in the record format of the brokers.

        Returns an `EventRecord` if the client has not learned the record format yet.
        """
        magic = self._view.message_magic
        key, value, headers = record_of_event(event, mode, options, magic)
        if headers and not self._view.is_message_magic_known:
            record = EventRecord(value, key, headers, timestamp, partition)
            record.event, record.mode, record.options = event, mode, options
            return record
        return ProducerRecord(value, key, headers, timestamp, partition)

    async def send_many(
        self, topic: str, values: Iterable[V | ProducerRecord[K, V] | None]
    ) -> Acks:
        """Sends many records; waits until all are acked.

        An element is a value, or a `ProducerRecord` with key, headers and so on. Records of one
        partition keep their order, and the records of later calls for the topic follow them.
        If an element cannot be encoded, or if `values` itself raises, the call sends the records
        before that element, and waits for their acks. If the call is cancelled, appended records
        may still be sent.

        Raises TypeError if `values` is no iterable of records, for example if it is a mapping, a
        str or bytes. Raises the errors of `send`. A DeliveryError has every record that was read
        from `values` and not acked. An EncodeError names the index of the element, and its `unsent`
        has every element that was read and not sent; if records have failed, too, the EncodeError
        is the cause of a DeliveryError. After a record has failed, or the producer was closed, the
        call reads no further elements. If `values` is a collection such as a list, these errors
        also have its unread elements. If `values` is an iterator, it still yields its unread
        elements.
        """
        check_many("values", values, one="record", of_one="send")
        encoded: Iterable[Any] = values
        acks = Acks()
        try:
            await self._appender.append_many(topic, encoded, acks)
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

    def _encoded(
        self, topic: str, values: Iterable[V | ProducerRecord[K, V] | None]
    ) -> Iterable[Any]:
        """Returns the records of `values` with encoded keys and values: without codecs, `values`.

        The blocking client calls it, and reads the result in the thread that sends the records.
        """
        return values

    async def send_batch(
        self, topic: str, partition: int, records: EncodedRecords
    ) -> BatchDelivery:
        """Appends a batch of encoded records, for callers that encode many records at once.

        Waits only until it can append the batch, as `enqueue` does; `await delivery` returns the
        `Ack` of the batch's first record. The batch is compressed, gets its sequence and is sent as
        any other batch, after the earlier records of its partition. The next `flush` or `close`
        raises the failure of a delivery that no caller awaits.

        Raises EncodeError for a batch without records, an invalid timestamp, a partition that the
        topic does not have, or a record with headers for brokers before Kafka 0.11. Raises
        ConfigurationError if a hook needs each record, and once the producer is closed. If the
        batch cannot be appended, raises the cause, such as RequestTimeoutError, instead of
        DeliveryError.
        """
        batch = await self._appender.append_encoded(topic, partition, records)
        delivery = BatchDelivery(batch)
        batch.deliveries.append(delivery)
        return delivery

    async def _outcome(
        self, topic: str, acks: Acks, left: list[ProducerRecord]
    ) -> DeliveryError | None:
        """Waits until all appended records are acked or failed; returns one error for all failures.

        The error also has the records in `left`, which were not appended. Returns None if no
        appended record failed.
        """
        batches = acks.batches()
        if batches:
            await asyncio.wait([batch.future for batch in batches])
        for batch, _, cause in acks.failures():
            records, unknown = acks.failed_records()
            return DeliveryError(topic, batch.partition, records + left, cause, unknown=unknown)
        return None


def _check_timeout(timeout_ms: int | None) -> None:
    if timeout_ms is not None:
        check_whole_number("timeout_ms", timeout_ms, 0)
