"""`Producer`: gathers records into batches and sends each until it is acknowledged.

One lane a partition: its batches go one after the other, so that the order holds through every
retry. With `idempotent` (the default) each batch carries a producer id and a sequence number, and
the broker drops what it has already (KIP-98).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

from ..messages.init_producer_id_request import InitProducerIdRequest
from ..messages.produce_request import ProduceRequest
from ..protocol.error_codes import code_of, error_code, raise_for_code
from ..records import codec_for_name, encode_batch
from ..wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    EncodeError,
    KprotoError,
    RequestTimeoutError,
)
from .backoff import backoff_s
from .partitioner import partition_of_key
from .producing import (
    BATCH_OVERHEAD_BYTES,
    Ack,
    Acks,
    Batch,
    CompressionName,
    DeliveryError,
    Headers,
    ProduceAction,
    ProducerRecord,
    SupportsKafkaRecord,
    highest_produce_version,
    produce_action,
    produce_request,
    produced_partition,
)

if TYPE_CHECKING:
    from .client import Client
    from .cluster import TopicInfo

__all__ = ["Producer"]

#: What a record takes besides its key, value and headers, in bytes, as batches are measured.
RECORD_OVERHEAD_BYTES = 16

#: What a header takes besides its name and value.
HEADER_OVERHEAD_BYTES = 6

#: Behind the largest sequence number comes 0 (KIP-98).
_LAST_SEQUENCE: Final = 0x7FFFFFFF

_LAST_TIMESTAMP: Final = 0x7FFFFFFFFFFFFFFF

_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")


class _Identity(NamedTuple):
    """A producer id and epoch; -1 for a producer that is not idempotent."""

    producer_id: int
    producer_epoch: int


class _Lane:
    """The batches that wait for one partition."""

    __slots__ = ("batches", "identity", "partition", "sequence", "task", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.identity = _Identity(-1, -1)
        self.sequence = 0
        self.task: asyncio.Task[None] | None = None


class Producer:
    """Sends records and waits for their acknowledgement by all in-sync replicas.

    Made by `Client.producer`. `batch_bytes` bounds a batch before compression: brokers refuse one
    over 1,048,588 bytes by default. A larger record travels alone. `buffer_bytes` bounds what
    waits here; `send_many` takes its time when that is reached. Raises ConfigurationError for a
    compression that is not known, MissingCodecError for one that needs a package.
    """

    def __init__(
        self,
        client: Client,
        *,
        compression: CompressionName,
        batch_bytes: int,
        buffer_bytes: int,
        idempotent: bool,
    ) -> None:
        if batch_bytes < 1 or buffer_bytes < 1:
            raise ConfigurationError("batch_bytes and buffer_bytes must be at least 1")
        codec = codec_for_name(compression)
        codec.compress(b"", codec.default_level)  # a missing package is told now, not by a send
        self._client = client
        self._compression = compression
        self._batch_bytes = batch_bytes
        self._buffer_bytes = buffer_bytes
        self._idempotent = idempotent
        self._identity: _Identity | None = None if idempotent else _Identity(-1, -1)
        self._identifying = asyncio.Lock()
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self._sticky: dict[str, int] = {}
        self._unsettled: set[asyncio.Future[KprotoError | None]] = set()
        self._buffered = 0
        self._drained = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what waits, then refuse more. Failures belong to the `send` that gave the record.

        When cancelled, what waits is given up: its `send` raises DeliveryError.
        """
        self._closed = True
        try:
            await self.flush()
        finally:
            tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def flush(self) -> None:
        """Wait until every record given so far is acknowledged or has failed."""
        if self._unsettled:
            await asyncio.wait(set(self._unsettled))

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

        Raises DeliveryError, which holds the record; EncodeError for a value that no record can
        hold; BrokerResponseError for a topic that the cluster does not have; ConfigurationError
        once the producer is closed.
        """
        record = ProducerRecord(value, key, headers, timestamp, partition)
        info = await self._topic(topic)
        batch, position = self._put(info, record, self._chooser(info), _now_ms())
        cause = await asyncio.shield(batch.future)
        if cause is not None:
            raise DeliveryError(topic, batch.partition, [batch.given(position)], cause) from cause
        return batch.ack(position)

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

        Raises what the event raises when it cannot be written, and else what `send` raises.
        """
        key, value, headers = event.to_kafka_record(mode, **options)
        return await self.send(
            topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition
        )

    async def send_many(self, topic: str, values: Iterable[bytes | ProducerRecord | None]) -> Acks:
        """Send many records; waits until all are acknowledged.

        An element is a value, or a `ProducerRecord` with key, headers and the like. Records of
        one partition keep their order. What stands before an element that no record can hold, or
        before a failure of `values` itself, is sent and waited for; when cancelled, what was
        given already may still be sent.

        Raises DeliveryError, which holds every record that was not acknowledged, and else what
        `send` raises.
        """
        info = await self._topic(topic)
        choose = self._chooser(info)
        acks = Acks()
        try:
            for value in values:
                record = value if isinstance(value, ProducerRecord) else ProducerRecord(value)
                acks.add(*self._put(info, record, choose, _now_ms()))
                if self._buffered > self._buffer_bytes:
                    await self._until_drained()
        except Exception as error:
            failure = await self._settled(topic, acks)
            if failure is not None:
                raise failure from error
            raise
        failure = await self._settled(topic, acks)
        if failure is not None:
            raise failure from failure.cause
        return acks

    async def _settled(self, topic: str, acks: Acks) -> DeliveryError | None:
        """Wait for the outcome of all records; returns what went wrong with them, if anything."""
        batches = acks.batches()
        if batches:
            await asyncio.wait([batch.future for batch in batches])
        for batch in batches:
            cause = batch.future.result()
            if cause is not None:
                return DeliveryError(topic, batch.partition, acks.undelivered(), cause)
        return None

    # From records to lanes

    async def _topic(self, topic: str) -> TopicInfo:
        self._raise_if_closed()
        # A broker that is away for a moment is no reason to fail: it is none for a batch either.
        return await self._client.retrying(lambda: self._client.topic(topic), responses=False)

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ConfigurationError("the producer is closed; records can no longer be sent")

    def _chooser(self, info: TopicInfo) -> Callable[[bytes | None], int]:
        """The function from a key to a partition; without a key only to one that has a leader."""
        partitions = list(info.partitions)
        if len(partitions) == 1:
            only = partitions[0]
            return lambda key: only
        led = [part.partition for part in info.partitions.values() if part.leader >= 0]
        led = led or partitions

        def choose(key: bytes | None) -> int:
            if key is not None:
                return partition_of_key(key, partitions)
            return led[self._sticky.get(info.name, 0) % len(led)]

        return choose

    def _put(
        self,
        info: TopicInfo,
        record: ProducerRecord,
        choose: Callable[[bytes | None], int],
        now: int,
    ) -> tuple[Batch, int]:
        """Add a record to the open batch of its partition; returns the batch and the position.

        What could not be written is refused here, so that it does not spoil a batch of others.
        """
        self._raise_if_closed()
        value, key, headers, timestamp, partition = record
        if value is not None and type(value) is not bytes:
            value = _as_bytes("value", value)
        if key is not None and type(key) is not bytes:
            key = _as_bytes("key", key)
        size = RECORD_OVERHEAD_BYTES + len(value or b"") + len(key or b"")
        if headers:
            headers, header_size = _checked_headers(headers)
            size += header_size
        if timestamp is None:
            timestamp = now
        elif type(timestamp) is not int or not 0 <= timestamp <= _LAST_TIMESTAMP:
            raise EncodeError(f"timestamp {timestamp!r} of a record is no time in ms since 1970")
        if partition is None:
            partition = choose(key)
        elif partition not in info.partitions:
            raise EncodeError(f"topic {info.name!r} has no partition {partition!r}")
        lane = self._lanes.get((info.name, partition))
        if lane is None:
            lane = self._lanes[info.name, partition] = _Lane(info.name, partition)
        batch = lane.batches[-1] if lane.batches else None
        if batch is None or (batch.size + size > self._batch_bytes and batch.records):
            if batch is not None:
                self._turn_sticky(info.name)
            batch = self._open_batch(lane)
        batch.records.append((key, value, headers, timestamp))
        batch.size += size
        self._buffered += size
        return batch, len(batch.records) - 1

    def _open_batch(self, lane: _Lane) -> Batch:
        batch = Batch(lane.topic, lane.partition, asyncio.get_running_loop().create_future())
        self._unsettled.add(batch.future)
        batch.future.add_done_callback(self._unsettled.discard)
        lane.batches.append(batch)
        if lane.task is None:
            lane.task = asyncio.create_task(self._drain(lane))
        return batch

    def _turn_sticky(self, topic: str) -> None:
        """Let records without key go to the next partition from now on (KIP-480)."""
        self._sticky[topic] = self._sticky.get(topic, 0) + 1

    async def _until_drained(self) -> None:
        """Wait until no more than half of the buffer is taken."""
        while self._buffered > self._buffer_bytes // 2:
            self._drained.clear()
            await self._drained.wait()

    # From lanes to brokers

    async def _drain(self, lane: _Lane) -> None:
        """Deliver the batches of a lane in order, until none is left."""
        batch: Batch | None = None
        try:
            await asyncio.sleep(0)  # records given in this turn of the loop join the first batch
            while lane.batches:
                batch = lane.batches.popleft()
                self._turn_sticky(lane.topic)
                try:
                    await self._deliver(lane, batch)
                except KprotoError as error:
                    # Which sequence number the broker has is unknown: a new producer id has none.
                    self._identity = None if self._idempotent else self._identity
                    self._settle(batch, error)
                else:
                    self._settle(batch, None)
        finally:
            lane.task = None
            left = [*lane.batches] if batch is None else [batch, *lane.batches]
            lane.batches.clear()
            for given_up in left:  # none, unless the task was cancelled
                self._settle(given_up, KprotoError("the producer was closed before that"))

    def _settle(self, batch: Batch, error: KprotoError | None) -> None:
        """Tell who waits for a batch what has become of it."""
        if not batch.future.done():
            batch.future.set_result(error)
            self._buffered -= batch.size - BATCH_OVERHEAD_BYTES
            self._drained.set()

    async def _deliver(self, lane: _Lane, batch: Batch) -> None:
        """Send one batch until the broker has it. Raises the error that ended the attempts."""
        settings = self._client.settings
        deadline = time.monotonic() + settings.delivery_timeout_ms / 1000
        data: bytes | None = None
        attempt = 0
        while True:
            error: KprotoError | None
            try:
                if data is None:
                    data = await self._encode(lane, batch)
                action, error = await self._attempt(batch, data)
            except (BrokerConnectionError, RequestTimeoutError) as lost:
                action, error = ProduceAction.REFRESH, lost
            except BrokerResponseError as refused:
                if not refused.retriable and refused.code != _NO_LEADER:
                    raise
                action, error = ProduceAction.REFRESH, refused
            if error is None:
                lane.sequence = (lane.sequence + len(batch.records)) & _LAST_SEQUENCE
                return
            attempt += 1
            wait = backoff_s(settings, attempt)
            if action is ProduceAction.FAIL or time.monotonic() + wait > deadline:
                raise error
            if action is ProduceAction.REFRESH:
                self._client.cluster.forget([batch.topic])
            await asyncio.sleep(wait)

    async def _encode(self, lane: _Lane, batch: Batch) -> bytes:
        """The batch as bytes; they stay the same through every attempt."""
        if self._identity is None:
            async with self._identifying:
                if self._identity is None:
                    self._identity = await self._identify()
        if lane.identity != self._identity:
            lane.identity = self._identity
            lane.sequence = 0
        return encode_batch(
            batch.records,
            compression=self._compression,
            producer_id=lane.identity.producer_id,
            producer_epoch=lane.identity.producer_epoch,
            base_sequence=lane.sequence if self._idempotent else -1,
        )

    async def _identify(self) -> _Identity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answer = await self._client.request(request)
        raise_for_code(answer.error_code, "asking for a producer id")
        return _Identity(answer.producer_id, answer.producer_epoch)

    async def _attempt(self, batch: Batch, data: bytes) -> tuple[ProduceAction, KprotoError | None]:
        """Send a batch once; returns what to do next and why, or DONE and no error."""
        leader = await self._client.leader(batch.topic, batch.partition)
        info = await self._client.topic(batch.topic)
        connection = await self._client.connection(leader)
        version = connection.version_of(ProduceRequest, highest_produce_version(info))
        # The broker gives up first, and says so.
        timeout_ms = self._client.settings.request_timeout_ms * 3 // 4
        request = produce_request(info, batch.partition, data, timeout_ms)
        answer = produced_partition(await connection.request(request, version=version))
        action = produce_action(answer.error_code)
        if action is ProduceAction.DONE:
            batch.base_offset = answer.base_offset
            batch.log_append_time = answer.log_append_time_ms
            return action, None
        code = error_code(answer.error_code)
        reason = f"producing to {batch.topic}[{batch.partition}]"
        if answer.error_message:
            reason += f": {answer.error_message}"
        return action, BrokerResponseError(code.code, code.name, reason, retriable=code.retriable)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _as_bytes(what: str, value: object) -> bytes:
    """A copy of a bytes-like value, which its owner may change. Raises EncodeError."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise EncodeError(f"the {what} of a record is bytes or None, not {type(value).__name__}")


def _checked_headers(headers: Headers) -> tuple[Headers, int]:
    """The headers as a tuple, and their size in bytes. Raises EncodeError."""
    try:
        found = tuple(headers)
        size = 0
        for name, value in found:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is no str")
            size += HEADER_OVERHEAD_BYTES + (len(name) if name.isascii() else len(name.encode()))
            if value is not None:
                size += len(value if type(value) is bytes else _as_bytes("header", value))
    except (AttributeError, TypeError, ValueError) as error:
        raise EncodeError(
            f"headers of a record are pairs of str and bytes or None: {error}"
        ) from None
    return found, size
