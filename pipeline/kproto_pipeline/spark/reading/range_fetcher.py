"""Fetches offset ranges on the client loop, before the task reads them.

Sends the next fetch when the previous response has arrived, while the task still decodes that
response, and limits the bytes of unread responses. The client retries retriable errors, such as a
leader change. This module parses only the headers of batches, to find the next fetch position. It
imports neither Arrow nor Spark.

A task of a stream may read 1,000 records of a log that has millions of records. A fetch of full
size would return megabytes of other records in each micro-batch. Therefore the size of a range is
estimated from the record sizes of earlier fetches of its topic. The first fetch of a range requests
about twice this size, and later fetches request the full size. If there were no earlier fetches of
the topic, the first fetch requests the full size, too.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import struct
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from kproto.client import FetchedPartition
from kproto.protocol.error_codes import code_of
from kproto.records import checked_next_offset, read_batches
from kproto.wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    CorruptBatchError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from kproto.wire.uuid import ZERO_UUID

from ..client_pool import shared_client, start_on_loop
from ..planning.offset_ranges import DataLossError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from kproto.client import Client
    from kproto.records import RecordBatch

    from ..options.option_table import ReadOptions
    from ..planning.offset_ranges import OffsetRange

__all__ = ["FetchedBytes", "fetch_ranges", "first_fetch_bytes", "next_offset", "record_fetch_size"]

logger = logging.getLogger("kproto.pipeline")

_OFFSET_OUT_OF_RANGE: Final = code_of("OFFSET_OUT_OF_RANGE")
_UNKNOWN_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")

#: The maximum number of ranges that are fetched at once: enough that the task never waits for the
#: next range.
_MAX_CONCURRENT_RANGES: Final = 8

#: The minimum bytes that the first fetch of a range requests: a few batches, even if recent records
#: were small.
_MIN_FIRST_FETCH_BYTES: Final = 64 << 10

#: The maximum number of topics with a recorded size. If there are more topics, all sizes are
#: cleared.
_MAX_SIZED_TOPICS: Final = 1_000

_OFFSET_AND_LENGTH: Final = struct.Struct(">qi")

#: By topic: bytes per offset in the last fetch. Used only in the thread of the client loop.
_bytes_of_offset: dict[str, float] = {}


class _TopicDeletedError(KprotoError):
    """The planned topic was deleted; it may have been recreated under the same name."""


class FetchedBytes(NamedTuple):
    """The fetch offset of a response, and the bytes of its record batches.

    `records` may begin with records before `offset`, because brokers return whole batches.
    `aborted` has the first offset and the producer id of each aborted transaction.
    """

    offset: int
    records: bytes
    aborted: tuple[tuple[int, int], ...] = ()


def fetch_ranges(
    options: ReadOptions, ranges: Iterable[OffsetRange]
) -> Generator[tuple[OffsetRange, FetchedBytes]]:
    """Yields the fetch responses that cover each range, in order, each with its range.

    Fetches up to eight ranges at once. Fetching pauses while about `buffer_bytes` of responses wait
    for the task. Closing the generator cancels the fetches; the connections stay open for the next
    ranges.

    Raises:
        DataLossError: with `fail_on_data_loss`, the log no longer has the range.
        KprotoError: any error of the client; a retriable error is raised after the client has
        retried for `api_timeout_ms`.
    """
    remaining = deque(ranges)
    each_bytes = options.buffer_bytes // max(1, min(len(remaining), _MAX_CONCURRENT_RANGES))
    fetches: deque[_RangeFetch] = deque()
    try:
        while remaining or fetches:
            while remaining and len(fetches) < _MAX_CONCURRENT_RANGES:
                fetches.append(_RangeFetch(options, remaining.popleft(), each_bytes))
            for fetched in fetches[0].responses():
                yield fetches[0].offset_range, fetched
            fetches.popleft().stop()
    finally:
        for fetch in fetches:
            fetch.stop()


class _RangeFetch:
    """Fetches one range on the client loop; the task's thread calls `responses` and `stop`."""

    def __init__(self, options: ReadOptions, offset_range: OffsetRange, buffer_bytes: int) -> None:
        self.offset_range = offset_range
        self._options = options
        self._buffer_bytes = buffer_bytes
        # `_has_capacity` limits the queued bytes. None marks the end of the responses. An exception
        # is the error that ended the fetch.
        self._responses: queue.SimpleQueue[FetchedBytes | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._waiting_bytes = 0
        self._idle_since: float | None = None  # time of the first consecutive empty response
        self._has_capacity = asyncio.Event()
        self._has_capacity.set()
        self._task = start_on_loop(self._run())

    def stop(self) -> None:
        """Cancels the fetch, and waits until it has ended."""
        self._task.cancel()

    def responses(self) -> Iterator[FetchedBytes]:
        """Yields the responses in offset order. Raises the error that ended the fetch."""
        while (item := self._responses.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            self._task.call_soon(self._release, len(item.records))

    async def _run(self) -> None:
        try:
            await self._fetch_all()
        except asyncio.CancelledError:
            # `stop` cancelled this task, so nothing reads the queue, or the clients were closed.
            self._responses.put(
                BrokerConnectionError(f"{self.offset_range}: the client was closed")
            )
            raise
        except BaseException as error:  # noqa: BLE001 - raised again in the task's thread
            self._responses.put(error)
        else:
            self._responses.put(None)

    async def _fetch_all(self) -> None:
        async with shared_client(self._options.client, retry=True) as client:
            try:
                await self._fetch_range(client)
            except _TopicDeletedError as lost:
                if self._options.fail_on_data_loss:
                    raise self._data_loss(str(lost)) from lost.__cause__
                logger.warning("%s: %s; the rest of the range is skipped", self.offset_range, lost)

    async def _fetch_range(self, client: Client) -> None:
        position = self.offset_range.start
        most = first_fetch_bytes(self.offset_range, self._options.max_partition_fetch_bytes)
        while position < self.offset_range.end:
            await self._has_capacity.wait()
            fetched = await self._fetch(client, position, most)
            most = self._options.max_partition_fetch_bytes
            if fetched is None:
                position = await self._reset_position(client, position)
                continue
            try:
                following = next_offset(fetched.records, position, self.offset_range.end)
            except CorruptBatchError:
                self._deliver(position, fetched)  # the task first reads the valid batches
                raise
            if following > position:
                self._deliver(position, fetched)
                record_fetch_size(
                    self.offset_range.topic, fetched.records, following - position, following
                )
                position = following
                self._idle_since = None
            elif fetched.records:
                for _ in read_batches(fetched.records):
                    pass  # raises if a batch is corrupt, because its offset may then be wrong
                raise ProtocolError(
                    f"{self.offset_range}: all records of the fetch from offset {position} lie "
                    "before that offset, so the next fetch would return them again"
                )
            elif fetched.high_watermark < self.offset_range.end and await self._is_truncated(
                client
            ):
                return
            else:
                self._check_idle(client, position)

    async def _fetch(
        self, client: Client, position: int, max_bytes: int
    ) -> FetchedPartition | None:
        """Fetches at `position`; returns None if the position is out of range.

        Raises:
            _TopicDeletedError: the planned topic was deleted; it may have been recreated.
        """
        topic, partition = self.offset_range.topic, self.offset_range.partition

        async def fetch() -> FetchedPartition | None:
            fetched = None
            try:
                await self._check_topic(client)
                try:
                    fetched = await client.fetch(
                        topic,
                        partition,
                        position,
                        max_bytes=max_bytes,
                        max_wait_ms=self._options.fetch_max_wait_ms,
                        read_committed=self._options.read_committed,
                    )
                except BrokerResponseError as error:
                    if error.code != _OFFSET_OUT_OF_RANGE:
                        raise
                # A fetch by name may have read a recreated topic: compare the present topic id.
                is_by_name = fetched is None or fetched.topic_id == ZERO_UUID
                if self.offset_range.topic_id != ZERO_UUID and is_by_name:
                    client.cluster.forget([topic])
                await self._check_topic(client)
            except KprotoError:
                self._idle_since = None  # an error is not an empty response
                raise
            return fetched

        return await client.retrying(fetch)

    async def _check_topic(self, client: Client) -> None:
        """Raises _TopicDeletedError if the topic is missing or has another id than planned.

        An id of zeros is unknown, and equals any other id. A topic is missing if the brokers do not
        know it for `metadata_wait_ms`.
        """
        offset_range = self.offset_range
        try:
            found = (await client.topic(offset_range.topic)).topic_id
            if found != offset_range.topic_id:
                # The client's metadata may be older than the plan: request it again.
                client.cluster.forget([offset_range.topic])
                found = (await client.topic(offset_range.topic)).topic_id
        except BrokerResponseError as error:
            if error.code != _UNKNOWN_TOPIC:
                raise
            raise _TopicDeletedError("the topic is deleted") from error
        if found != offset_range.topic_id and ZERO_UUID not in (found, offset_range.topic_id):
            raise _TopicDeletedError(
                f"the topic was deleted and recreated: its id is {found}, and was "
                f"{offset_range.topic_id} when the read was planned; call load() again to read the "
                "new topic"
            )

    async def _reset_position(self, client: Client, position: int) -> int:
        """Returns the next fetch position after OFFSET_OUT_OF_RANGE at `position`.

        This is the log start offset if it is above `position`, otherwise the end of the range.

        Raises:
            DataLossError: `fail_on_data_loss` is set.
        """
        if self._options.fail_on_data_loss:
            raise self._data_loss(
                f"offset {position} is out of range: the log was truncated after planning"
            )
        part = (self.offset_range.topic, self.offset_range.partition)
        first = (await client.list_offsets({part: "earliest"}))[part]
        # If the log does not start after `position`, it was truncated and ends before it.
        return first if first > position else self.offset_range.end

    async def _is_truncated(self, client: Client) -> bool:
        """Returns True if the log now ends before the end of the range.

        A high watermark below the end of the range proves nothing, because the high watermark of a
        new leader may lag. While it lags, the leader answers ListOffsets with OFFSET_NOT_AVAILABLE,
        which the client retries (KIP-207).

        Raises:
            DataLossError: instead of returning True, if `fail_on_data_loss` is set.
        """
        part = (self.offset_range.topic, self.offset_range.partition)
        end = (await client.list_offsets({part: "latest"}))[part]
        if end < self.offset_range.end and self._options.fail_on_data_loss:
            raise self._data_loss(f"the log was truncated after planning: it now ends at {end}")
        return end < self.offset_range.end

    def _check_idle(self, client: Client, position: int) -> None:
        """Raises RequestTimeoutError if responses have been empty for `request_timeout_ms`."""
        now = time.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        if (now - self._idle_since) * 1000 > client.settings.request_timeout_ms:
            raise RequestTimeoutError(
                f"{self.offset_range}: no records arrived from offset {position} on"
            )

    def _data_loss(self, what: str) -> DataLossError:
        return DataLossError(
            f"{self.offset_range}: {what}. Set failOnDataLoss to false to skip lost records"
        )

    def _deliver(self, offset: int, fetched: FetchedPartition) -> None:
        self._waiting_bytes += len(fetched.records)
        if self._waiting_bytes >= self._buffer_bytes:
            self._has_capacity.clear()
        self._responses.put(FetchedBytes(offset, fetched.records, fetched.aborted))

    def _release(self, size: int) -> None:
        self._waiting_bytes -= size
        if self._waiting_bytes < self._buffer_bytes:
            self._has_capacity.set()


def next_offset(records: bytes, fetched_from: int, end: int | None = None) -> int:
    """Returns the next fetch position: the offset after the first batch that reaches `end`.

    If no batch reaches `end`, returns the offset after the last complete batch. A batch ends at its
    last offset even if compaction removed the record at that offset. Returns `fetched_from` if
    there is no batch, or if all batches end before `fetched_from`. If offsets are missing before
    the batch that reaches `end`, the later batches are checked as well: compaction leaves gaps, but
    no later batch may have lower offsets.

    Raises:
        CorruptBatchError: the bytes are not a batch, the first batch is incomplete, or offsets do
        not rise from one batch to the next.
    """
    following: int | None = None
    missing = False
    batches = read_batches(records, check_crc=False, whole_first=True)
    for batch in batches:
        before = fetched_from if following is None else following
        missing = missing or batch.base_offset > before
        following = checked_next_offset(batch, following)
        if end is not None and following >= end:
            if missing:
                _check_order_after(batches, following)
            break
    return fetched_from if following is None else max(fetched_from, following)


def _check_order_after(batches: Iterator[RecordBatch], following: int) -> None:
    """Raises CorruptBatchError if a batch has lower offsets than the previous batch.

    Ignores all other faults.
    """
    while True:
        try:
            batch = next(batches, None)
        except CorruptBatchError:
            return
        if batch is None:
            return
        following = checked_next_offset(batch, following)


def first_fetch_bytes(offset_range: OffsetRange, most: int) -> int:
    """Returns the bytes to request in the first fetch of a range, up to `most`.

    Returns `most` if no fetch of the topic has been recorded.
    """
    each = _bytes_of_offset.get(offset_range.topic)
    if each is None:
        return most
    return min(most, _MIN_FIRST_FETCH_BYTES + int(2 * each * offset_range.size))


def record_fetch_size(topic: str, records: bytes, offsets: int, end: int) -> None:
    """Stores the bytes per offset of a topic, to estimate the size of later first fetches.

    `records` is the content of a Fetch response. Only the batches that begin before the offset
    `end` count; together they have `offsets` offsets.
    """
    at = 0
    while at + _OFFSET_AND_LENGTH.size <= len(records):
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(records, at)
        if base_offset >= end or length < 0:
            break
        at += _OFFSET_AND_LENGTH.size + length
    if len(_bytes_of_offset) >= _MAX_SIZED_TOPICS:
        _bytes_of_offset.clear()
    _bytes_of_offset[topic] = min(at, len(records)) / offsets
