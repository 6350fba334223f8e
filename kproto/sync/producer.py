"""`Producer` without `await`.

`python -m tools.sync` writes this module from `kproto/client/producer/producer.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..client.producer.acks import Acks
from ..client.producer.batch import Ack
from ..client.producer.settings import ProducerSettings
from ..client.producer.transactions.prepared_transaction import PreparedTransactionState
from ..client.producer_record import (
    ContentMode,
    EncodedRecords,
    Headers,
    ProducerRecord,
    SupportsKafkaRecord,
    check_many,
)
from ..records.type_variables import K, V
from .deliveries import BatchDelivery, Delivery
from .iterator_sends import send_iterator, send_records
from .producer_wrapper import ProducerWrapper
from .transaction import Transaction

__all__ = ["Producer"]


class Producer(ProducerWrapper[K, V]):
    """Sends records, and waits for their acks by all in-sync replicas, or as `acks` says.

    `Client.producer` creates it; `settings` are its settings. Raises ConfigurationError for a
    setting that contradicts a setting of the client, or that the brokers do not support. In
    annotations, `Producer` sends bytes, and `Producer[str, Order]` keys and values for codecs.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
        __class_getitem__ = classmethod(GenericAlias)

    @property
    def settings(self) -> ProducerSettings:
        """The settings."""
        return self._wrapped.settings

    @property
    def undelivered(self) -> dict[str, list[ProducerRecord]]:
        """The records by topic that have failed, and whose error no call has raised."""
        return self._wrapped.undelivered

    @property
    def is_closed(self) -> bool:
        """True once `close` was called."""
        return self._read(lambda: self._wrapped.is_closed)

    @property
    def transactional_id(self) -> str | None:
        """The transactional id; None for a producer without transactions."""
        return self._read(lambda: self._wrapped.transactional_id)

    def __enter__(self) -> Self:
        self._call(self._wrapped.__aenter__)
        return self

    def transaction(self) -> Transaction:
        """Returns a transaction, to be used with `with`; see `Transaction`.

        The producer needs a `transactional_id`, and has one transaction at a time. The `with` block
        of the producer requests the producer id when it begins; without this block, the first
        transaction does so. The request fences an earlier producer with the transactional id and
        aborts the open transaction of that producer. Raises ConfigurationError for a producer
        without a transactional id.
        """
        return Transaction(self._binding, self._call_plain(self._wrapped.transaction))

    @property
    def prepared_transaction(self) -> PreparedTransactionState | None:
        """The open transaction of an earlier producer; always None without `two_phase_commit`."""
        return self._read(lambda: self._wrapped.prepared_transaction)

    def complete_transaction(self, state: PreparedTransactionState | None) -> bool | None:
        """Ends the open transaction of an earlier producer with the transactional id (KIP-939).

        Commits the transaction if `Transaction.prepare` has returned `state` for it; otherwise
        aborts the transaction. Returns True if the transaction is committed, False if it is
        aborted, and None if it had ended before this call. Raises the errors of the end of a
        transaction, and ConfigurationError for a producer without `two_phase_commit`.
        """
        return self._call(self._wrapped.complete_transaction, state)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(lambda: self._wrapped.__aexit__(kind, error, traceback))

    def close(self, *, timeout_ms: int | None = None) -> None:
        """Refuses further calls, and sends all records of earlier calls.

        An earlier call may still wait for metadata or memory. Such a call has
        `delivery_timeout_ms`, at most `timeout_ms`, to append its remaining records. Records that
        are not appended or acked after `timeout_ms` fail, and the calls that send them raise
        DeliveryError. `close` raises DeliveryError as `flush` does. If an `with` block ends with an
        exception, `timeout_ms` is `error_flush_ms`. If Ctrl-C interrupts `close`, the event loop's
        thread sends records for up to `error_flush_ms`, within `timeout_ms`, while the call raises
        KeyboardInterrupt.

        If another thread already closes the producer, this call waits for the other close, up to
        `timeout_ms`. An interruption of this call during the wait does not affect the other close.
        """
        self._end(lambda: self._wrapped.close(timeout_ms=timeout_ms))

    def flush(self, *, timeout_ms: int | None = None) -> None:
        """Waits until every record of all calls so far is acked or has failed.

        Also waits for records that a call has not appended yet, because the call waits for metadata
        or memory. Raises DeliveryError with the failed records of `enqueue` and `send_batch` whose
        delivery no caller has read; each failure is reported once. Raises RequestTimeoutError if a
        call or a record is incomplete after `timeout_ms`; the calls continue, and the records are
        still sent.
        """
        self._call(self._wrapped.flush, timeout_ms=timeout_ms)

    def send(
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
        Concurrent calls share batches. If Ctrl-C interrupts the call, the record may still be sent.

        Raises DeliveryError, which has the record, if the record is not acked, for example because
        the topic does not exist. Raises EncodeError for values that cannot be encoded, or a
        partition that the topic does not have, and ConfigurationError once the producer is closed.
        """
        return self._call(
            self._wrapped.send,
            topic,
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )

    def enqueue(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Appends one record, and does not wait for its ack; `delivery.result()` returns the `Ack`.

        Waits only until it can append the record: for metadata of the topic, and for memory. The
        next `flush` or `close` raises the failure of a delivery that no caller reads. Raises the
        errors of `send`; DeliveryError only if the record cannot be appended.
        """
        return Delivery(
            self._binding,
            self._call(
                self._wrapped.enqueue,
                topic,
                value,
                key=key,
                headers=headers,
                timestamp=timestamp,
                partition=partition,
            ),
        )

    def send_event(
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
        return self._call(
            self._wrapped.send_event,
            topic,
            event,
            mode=mode,
            timestamp=timestamp,
            partition=partition,
            **options,
        )

    def send_events(
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
        wrapped = self._wrapped
        if not isinstance(events, Collection):
            check_many("events", events, one="event", of_one="send_event")
            convert = partial(wrapped._records_of_events, mode, timestamp, partition, options)
            return send_iterator(self._call, wrapped, topic, events, convert)
        return self._call(
            wrapped.send_events,
            topic,
            events,
            mode=mode,
            timestamp=timestamp,
            partition=partition,
            **options,
        )

    def send_many(self, topic: str, values: Iterable[V | ProducerRecord[K, V] | None]) -> Acks:
        """Sends many records; waits until all are acked.

        An element is a value, or a `ProducerRecord` with key, headers and so on. Records of one
        partition keep their order, and the records of later calls for the topic follow them. If an
        element cannot be encoded, or if `values` itself raises, the call sends the records before
        that element, and waits for their acks. If Ctrl-C interrupts the call, appended records may
        still be sent.

        Raises TypeError if `values` is no iterable of records, for example if it is a mapping, a
        str or bytes. Raises the errors of `send`. A DeliveryError has every record that was read
        from `values` and not acked. An EncodeError names the index of the element, and its `unsent`
        has every element that was read and not sent; if records have failed, too, the EncodeError
        is the cause of a DeliveryError. After a record has failed, or the producer was closed, the
        call reads no further elements. If `values` is a collection such as a list, these errors
        also have its unread elements. If `values` is an iterator, it still yields its unread
        elements.
        """
        return send_records(self._call, self._wrapped, topic, values)

    def send_batch(self, topic: str, partition: int, records: EncodedRecords) -> BatchDelivery:
        """Appends a batch of encoded records, for callers that encode many records at once.

        Waits only until it can append the batch, as `enqueue` does; `delivery.result()` returns the
        `Ack` of the batch's first record. The batch is compressed, gets its sequence and is sent as
        any other batch, after the earlier records of its partition. The next `flush` or `close`
        raises the failure of a delivery that no caller reads.

        Raises EncodeError for a batch without records, an invalid timestamp, a partition that the
        topic does not have, or a record with headers for brokers before Kafka 0.11. Raises
        ConfigurationError if a hook needs each record, and once the producer is closed. If the
        batch cannot be appended, raises the cause, such as RequestTimeoutError, instead of
        DeliveryError.
        """
        return BatchDelivery(
            self._binding, self._call(self._wrapped.send_batch, topic, partition, records)
        )
