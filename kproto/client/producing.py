"""Produce requests and responses as plain data: batches, acknowledgements, what an error means."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, overload

from ..messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from ..messages.produce_response import PartitionProduceResponse, ProduceResponse
from ..protocol.error_codes import code_of
from ..wire.errors import KprotoError, ProtocolError
from ..wire.uuid import ZERO_UUID
from .cluster import TopicInfo

__all__ = [
    "Ack",
    "Acks",
    "Batch",
    "CompressionName",
    "DeliveryError",
    "ProduceAction",
    "ProducerRecord",
    "SupportsKafkaRecord",
    "highest_produce_version",
    "produce_action",
    "produce_request",
    "produced_partition",
]

CompressionName: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

#: The isr must have it: the only setting with which an acknowledged record is safe.
ACKS_ALL: Final = -1

#: The header of a record batch, in bytes.
BATCH_OVERHEAD_BYTES: Final = 61

#: From this version on, Produce names topics by id alone (KIP-516).
_BY_TOPIC_ID: Final = 13


class ProducerRecord(NamedTuple):
    """A record to send. `timestamp` in ms, None for now; `partition` None to choose by the key."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


class SupportsKafkaRecord(Protocol):
    """Something that can say what record it is: an event of `kproto_cloudevents`, or your own."""

    def to_kafka_record(
        self, mode: Literal["binary", "structured"] | None = None, **options: Any
    ) -> tuple[bytes | None, bytes | None, Headers]:
        """Key, value and headers of the record."""
        ...


class Ack(NamedTuple):
    """Where a record was stored. `offset` is -1 when the broker had it already and did not say;
    `timestamp` in ms, the broker's where the topic has log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class Batch:
    """Records that travel together to one partition, and where they were stored.

    A record is held as (key, value, headers, timestamp in ms). `size` is an estimate in bytes,
    before compression. `future` is done when the batch is acknowledged, then with None, or has
    failed for good, then with the error that ended the attempts.
    """

    __slots__ = (
        "base_offset",
        "future",
        "log_append_time",
        "partition",
        "records",
        "size",
        "topic",
    )

    def __init__(
        self, topic: str, partition: int, future: asyncio.Future[KprotoError | None]
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.records: list[tuple[bytes | None, bytes | None, Headers, int]] = []
        self.size = BATCH_OVERHEAD_BYTES
        self.future = future
        self.base_offset = -1
        self.log_append_time = -1

    def ack(self, position: int) -> Ack:
        """The acknowledgement of one record of the batch."""
        offset = self.base_offset + position if self.base_offset >= 0 else -1
        timestamp = self.log_append_time
        if timestamp < 0:
            timestamp = self.records[position][3]
        return Ack(self.topic, self.partition, offset, timestamp)

    def given(self, position: int) -> ProducerRecord:
        """One record of the batch as a user can send it again."""
        key, value, headers, timestamp = self.records[position]
        return ProducerRecord(value, key, headers, timestamp, self.partition)


class Acks(Sequence[Ack]):
    """The acknowledgements of many records, in the order in which the records were given.

    A sequence of `Ack`, each made when it is asked for. Held as runs: from index `starts[i]` on
    the records stand in `runs[i]`, a batch, from a position in it on.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._runs: list[tuple[Batch, int]] = []
        self._last: Batch | None = None
        self._following = 0  # the position in `_last` that continues its run
        self._count = 0

    def add(self, batch: Batch, position: int) -> None:
        """Take note of where the next record stands."""
        if batch is not self._last or position != self._following:
            self._starts.append(self._count)
            self._runs.append((batch, position))
            self._last = batch
        self._following = position + 1
        self._count += 1

    def batches(self) -> list[Batch]:
        """The batches that hold the records, each once."""
        return list({id(batch): batch for batch, _ in self._runs}.values())

    def undelivered(self) -> list[ProducerRecord]:
        """The records of batches that have failed, in order."""
        found: list[ProducerRecord] = []
        ends = [*self._starts[1:], self._count]
        for (batch, first), start, end in zip(self._runs, self._starts, ends, strict=True):
            if batch.future.done() and batch.future.result() is not None:
                found += [batch.given(first + at) for at in range(end - start)]
        return found

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
        run = bisect_right(self._starts, at) - 1
        batch, first = self._runs[run]
        return batch.ack(first + at - self._starts[run])

    def __repr__(self) -> str:
        return f"<{self._count} acknowledgements>"


class DeliveryError(KprotoError):
    """Records that were not acknowledged. Nothing is lost: those of this call are in `records`.

    Each says its partition and its timestamp, so that it can be sent again as it is. `topic`,
    `partition` and `cause` say where the first of them was to go, and why it is not there.
    Whether the broker has stored them is unknown after a time-out or a lost connection.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        records: Sequence[ProducerRecord],
        cause: KprotoError,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.records = list(records)
        self.cause = cause
        super().__init__(
            f"{len(self.records)} records for {topic}[{partition}] were not acknowledged: {cause}"
        )


class ProduceAction(Enum):
    """What to do about the error code of a partition in a produce response."""

    DONE = "the broker has the records"
    RETRY = "send the same bytes again"
    REFRESH = "ask for metadata, then send the same bytes again"
    FAIL = "tell the user"


_ACTIONS: Final = {
    "CORRUPT_MESSAGE": ProduceAction.RETRY,  # on the way: what is sent again may arrive whole
    "DUPLICATE_SEQUENCE_NUMBER": ProduceAction.DONE,
    "KAFKA_STORAGE_ERROR": ProduceAction.REFRESH,
    "LEADER_NOT_AVAILABLE": ProduceAction.REFRESH,
    "NETWORK_EXCEPTION": ProduceAction.REFRESH,
    "NONE": ProduceAction.DONE,
    "NOT_ENOUGH_REPLICAS": ProduceAction.RETRY,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": ProduceAction.RETRY,
    "NOT_LEADER_OR_FOLLOWER": ProduceAction.REFRESH,
    "REQUEST_TIMED_OUT": ProduceAction.RETRY,
    "THROTTLING_QUOTA_EXCEEDED": ProduceAction.RETRY,
    "UNKNOWN_TOPIC_ID": ProduceAction.REFRESH,
    "UNKNOWN_TOPIC_OR_PARTITION": ProduceAction.REFRESH,
}

_BY_CODE: Final = {code_of(name): action for name, action in _ACTIONS.items()}


def produce_action(code: int) -> ProduceAction:
    """What to do about an error code."""
    return _BY_CODE.get(code, ProduceAction.FAIL)


def produce_request(
    topic: TopicInfo, partition: int, records: bytes, timeout_ms: int
) -> ProduceRequest:
    """The request that appends one batch."""
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=ACKS_ALL,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[data])
        ],
    )


def highest_produce_version(topic: TopicInfo) -> int:
    """The version not to exceed: from 13 on topics are named by id alone (KIP-516)."""
    return _BY_TOPIC_ID - 1 if topic.topic_id == ZERO_UUID else _BY_TOPIC_ID


def produced_partition(response: ProduceResponse) -> PartitionProduceResponse:
    """The answer for the one partition that was asked. Raises ProtocolError without one."""
    for topic in response.responses:
        for data in topic.partition_responses:
            return data
    raise ProtocolError("the response to a Produce names no partition")
