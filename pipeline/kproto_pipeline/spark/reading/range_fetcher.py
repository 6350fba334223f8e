"""Reading offset ranges ahead of whoever consumes them, on the loop of this process's clients.

Owns the fetching and the bound on how much may wait. A fetch is sent as soon as
the one before it has arrived, while those records are still being decoded and handed on. Errors
that time mends, such as a leader that changes, go through the client's retries. Of what arrives it
looks at the headers of batches alone, for the next offset. Knows nothing of Arrow or Spark.
"""

from __future__ import annotations

import asyncio
import logging
import queue
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

from ..client_pool import begin, shared_client
from ..planning.offset_ranges import DataLossError
from .fetch_sizes import first_fetch_bytes, record_fetch_size

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from kproto.client import Client
    from kproto.records import RecordBatch

    from ..options.option_table import ReadOptions
    from ..planning.offset_ranges import OffsetRange

__all__ = ["FetchedRecords", "fetch_ranges", "next_offset"]

logger = logging.getLogger("kproto.pipeline")

_OFFSET_OUT_OF_RANGE: Final = code_of("OFFSET_OUT_OF_RANGE")
_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")

#: From this version on, Fetch names a topic by its id, and brings nothing of another (KIP-516).
_FETCH_BY_ID: Final = 13

#: How many ranges are fetched at the same time: enough that the next has arrived when it is wanted.
_TOGETHER: Final = 8


class _TopicLostError(KprotoError):
    """The topic that was planned is deleted; there may be another of its name."""


class FetchedRecords(NamedTuple):
    """The `records` bytes of a fetch response, and the `offset` that was asked for.

    Records before it may stand in the bytes, and were in those of the response before. `aborted`
    are the transactions in them that were aborted, as `FetchedPartition` has them.
    """

    offset: int
    records: bytes
    aborted: tuple[tuple[int, int], ...] = ()


def fetch_ranges(
    options: ReadOptions, ranges: Iterable[OffsetRange]
) -> Generator[tuple[OffsetRange, FetchedRecords]]:
    """The fetch responses that cover each range, in order, with their range.

    Some ranges are fetched at the same time, and about `buffer_bytes` of them all wait for the
    consumer before fetching pauses. Closing the iterator ends the fetching; the connections are
    kept for the next ranges.

    Raises:
        DataLossError: the log no longer holds the range and the options ask to fail then.
        KprotoError: whatever the client raises; what time mends, when it has not within the
            client's `delivery_timeout_ms`.
    """
    left = deque(ranges)
    room = options.buffer_bytes // max(1, min(len(left), _TOGETHER))
    under_way: deque[_Ahead] = deque()
    try:
        while left or under_way:
            while left and len(under_way) < _TOGETHER:
                under_way.append(_Ahead(options, left.popleft(), room))
            for fetched in under_way[0].responses():
                yield under_way[0].wanted, fetched
            under_way.popleft().stop()
    finally:
        for ahead in under_way:
            ahead.stop()


class _Ahead:
    """The fetching of one range. `responses` and `stop` belong to the consumer's thread."""

    def __init__(self, options: ReadOptions, wanted: OffsetRange, buffer_bytes: int) -> None:
        self.wanted = wanted
        self._options = options
        self._buffer_bytes = buffer_bytes
        # Bounded by bytes, through `_room`. None is the end, an exception the failure.
        self._arrived: queue.SimpleQueue[FetchedRecords | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._waiting_bytes = 0
        self._idle_since: float | None = None  # when the first of some empty responses came
        self._room = asyncio.Event()
        self._room.set()
        self._work = begin(self._run())

    def stop(self) -> None:
        """Cancel what is still under way and wait until it has ended."""
        self._work.end()

    def responses(self) -> Iterator[FetchedRecords]:
        while (item := self._arrived.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            self._work.tell(self._release, len(item.records))

    async def _run(self) -> None:
        try:
            await self._fetch_all()
        except asyncio.CancelledError:
            # By `stop`, when nobody takes it any more; or the clients were closed meanwhile.
            self._arrived.put(BrokerConnectionError(f"{self.wanted}: the client was closed"))
            raise
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer's thread
            self._arrived.put(error)
        else:
            self._arrived.put(None)

    async def _fetch_all(self) -> None:
        async with shared_client(self._options.client, retry=True) as client:
            try:
                await self._fetch_range(client)
            except _TopicLostError as lost:
                if self._options.fail_on_data_loss:
                    raise self._lost(str(lost)) from lost.__cause__
                logger.warning("%s: %s; the rest of the range is passed over", self.wanted, lost)

    async def _fetch_range(self, client: Client) -> None:
        position = self.wanted.start
        most = first_fetch_bytes(self.wanted, self._options.max_partition_fetch_bytes)
        while position < self.wanted.end:
            await self._room.wait()
            fetched = await self._fetch(client, position, most)
            most = self._options.max_partition_fetch_bytes
            if fetched is None:
                position = await self._passed_over(client, position)
                continue
            try:
                following = next_offset(fetched.records, position, self.wanted.end)
            except CorruptBatchError:
                self._deliver(position, fetched)  # the good batches in front of it
                raise
            if following > position:
                self._deliver(position, fetched)
                record_fetch_size(
                    self.wanted.topic, fetched.records, following - position, following
                )
                position = following
                self._idle_since = None
            elif fetched.records:
                for _ in read_batches(fetched.records):
                    pass  # What is broken may only say that it lies before: that comes first.
                raise ProtocolError(
                    f"{self.wanted}: all that the fetch from offset {position} brought lies "
                    "before it, and would be brought again"
                )
            elif fetched.high_watermark < self.wanted.end and await self._is_cut(client):
                return
            else:
                self._check_idle(client, position)

    async def _fetch(
        self, client: Client, position: int, max_bytes: int
    ) -> FetchedPartition | None:
        """One fetch response of the topic that was planned; None when its log lacks the offset.

        Raises:
            _TopicLostError: it is deleted, whether or not there is another of its name.
        """
        topic, partition = self.wanted.topic, self.wanted.partition

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
                # Of which topic that was: the one known since, or asked for now where the fetch
                # went by name.
                is_by_name = fetched is None or fetched.topic_id == ZERO_UUID
                if self.wanted.topic_id != ZERO_UUID and is_by_name:
                    client.cluster.forget([topic])
                await self._check_topic(client)
            except KprotoError:
                self._idle_since = None  # the time of retries is no time of silence
                raise
            return fetched

        return await client.retrying(fetch)

    async def _check_topic(self, client: Client) -> None:
        """Raise _TopicLostError if what is known of the topic says that it is not the planned one.

        One that the brokers do not know is gone when they still do not after `topic_timeout_ms`.
        """
        wanted = self.wanted
        try:
            found = (await client.topic(wanted.topic)).topic_id
            if found != wanted.topic_id:
                # What the client has kept may be older than the plan.
                client.cluster.forget([wanted.topic])
                found = (await client.topic(wanted.topic)).topic_id
        except BrokerResponseError as error:
            if error.code != _NO_SUCH_TOPIC:
                raise
            raise _TopicLostError("the topic is deleted") from error
        if found != wanted.topic_id and ZERO_UUID not in (found, wanted.topic_id):
            raise _TopicLostError(
                f"the topic was deleted and made anew: its id is {found}, and was "
                f"{wanted.topic_id} when the read was planned; load() again reads the new one"
            )

    async def _passed_over(self, client: Client, position: int) -> int:
        """Where to go on when the log no longer has `position`: where it begins now.

        Raises:
            DataLossError: the options ask to fail then.
        """
        if self._options.fail_on_data_loss:
            raise self._lost(f"offset {position} is out of range: the log was cut since")
        part = (self.wanted.topic, self.wanted.partition)
        first = (await client.list_offsets({part: "earliest"}))[part]
        # A log that ends before was cut: nothing of the range is left.
        return first if first > position else self.wanted.end

    async def _is_cut(self, client: Client) -> bool:
        """Whether the log ends before the range, and not only what its leader may give out yet.

        The high watermark of a new leader may lag; for the end of the log it waits then (KIP-207).

        Raises:
            DataLossError: it does, and the options ask to fail then.
        """
        part = (self.wanted.topic, self.wanted.partition)
        end = (await client.list_offsets({part: "latest"}))[part]
        if end < self.wanted.end and self._options.fail_on_data_loss:
            raise self._lost(f"the log was cut since: it now ends at {end}")
        return end < self.wanted.end

    def _check_idle(self, client: Client, position: int) -> None:
        """Raise RequestTimeoutError when nothing but empty responses came for too long."""
        now = time.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        if (now - self._idle_since) * 1000 > client.settings.request_timeout_ms:
            raise RequestTimeoutError(f"{self.wanted}: nothing arrived from {position} on")

    def _lost(self, what: str) -> DataLossError:
        return DataLossError(
            f"{self.wanted}: {what}. Set failOnDataLoss to false to pass over what was planned "
            "and is lost"
        )

    def _deliver(self, offset: int, fetched: FetchedPartition) -> None:
        self._waiting_bytes += len(fetched.records)
        if self._waiting_bytes >= self._buffer_bytes:
            self._room.clear()
        self._arrived.put(FetchedRecords(offset, fetched.records, fetched.aborted))

    def _release(self, size: int) -> None:
        self._waiting_bytes -= size
        if self._waiting_bytes < self._buffer_bytes:
            self._room.set()


def next_offset(records: bytes, fetched_from: int, end: int | None = None) -> int:
    """The offset to fetch from next: the last whole batch's last offset + 1.

    That is true for compacted and for control batches too. Without a batch it is `fetched_from`.
    Behind a batch that reaches `end` batches are looked at only if offsets before it are lacking:
    compaction takes them, but they may also stand there, in a wrong order.

    Raises:
        CorruptBatchError: no batch stands where one must, the first one is cut, or offsets do not
            rise from one batch to the next.
    """
    following: int | None = None
    lacking = False
    batches = read_batches(records, check_crc=False, whole_first=True)
    for batch in batches:
        before = fetched_from if following is None else following
        lacking = lacking or batch.base_offset > before
        following = checked_next_offset(batch, following)
        if end is not None and following >= end:
            if lacking:
                _check_order_behind(batches, following)
            break
    return fetched_from if following is None else max(fetched_from, following)


def _check_order_behind(batches: Iterator[RecordBatch], following: int) -> None:
    """Raise CorruptBatchError for a batch that goes back; no other fault is asked for there."""
    while True:
        try:
            batch = next(batches, None)
        except CorruptBatchError:
            return
        if batch is None:
            return
        following = checked_next_offset(batch, following)
