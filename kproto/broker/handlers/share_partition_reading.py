"""Reads the share partitions of a ShareFetch, and acquires their records (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...messages.share_fetch_request import ShareFetchRequest
from ...records import RecordBatch
from ...wire.errors import BrokerResponseError
from ..context import Context
from ..groups import ClockReading
from ..share import (
    AcquiredRecords,
    AcquireMode,
    AcquireRequest,
    LogBatch,
    RecordState,
    SharePartition,
    SharePartitionConfig,
    SharePartitionKey,
    TopicIdPartition,
    acquire,
)
from ..storage.log import LogSlice
from ..storage.partition import Partition
from ..throttle import limit_fetch_bytes
from ..watchable import Watchable
from .share_acknowledgements import readable_topic

__all__ = ["SharePartitionRead", "ShareReader"]


@dataclass(slots=True)
class SharePartitionRead:
    """Holds the result of reading one share partition: acquired records, or an error."""

    tp: TopicIdPartition
    records: bytes | None = None
    acquired: list[AcquiredRecords] = field(default_factory=list)
    error: BrokerResponseError | None = None


class ShareReader:
    """Reads the partitions of one ShareFetch; may try several times until there are records.

    `mode` is the acquire mode, `partitions` are the partitions of the session. The partition with
    which the reader begins rotates with the session epoch.
    """

    def __init__(
        self,
        context: Context,
        request: ShareFetchRequest,
        mode: AcquireMode,
        partitions: Sequence[TopicIdPartition],
    ) -> None:
        self._context = context
        self._request = request
        self._mode = mode
        at = request.share_session_epoch % len(partitions)
        self._partitions = (*partitions[at:], *partitions[:at])
        self._group_id = request.group_id or ""
        self._failed: dict[TopicIdPartition, BrokerResponseError] = {}
        self._loaded: dict[TopicIdPartition, tuple[Partition, SharePartition]] = {}

    @property
    def _config(self) -> SharePartitionConfig:
        return self._context.share_partitions.config_of(self._group_id)

    @property
    def watched(self) -> list[Watchable]:
        """Returns the logs and share partitions whose changes can end the wait."""
        return [it for pair in self._loaded.values() for it in (pair[0].log, pair[1])]

    @property
    def next_deadline_ms(self) -> int | None:
        """Returns when the next acquisition lock expires, as `ClockReading.ms`; None if none is."""
        times = (shared.next_deadline_ms for _, shared in self._loaded.values())
        return min((it for it in times if it is not None), default=None)

    def advance(self, now: ClockReading) -> None:
        """Loads the share partitions, and ends their expired acquisition locks."""
        self._context.transaction_coordinator.advance(now)
        self._failed.clear()
        self._loaded.clear()
        for tp in self._partitions:
            try:
                topic = readable_topic(self._context, tp)
                partition = topic.after_cleanup(tp.partition, now.timestamp_ms)
                topic.check_leader(tp.partition, self._context.node_id)
                key = SharePartitionKey(self._group_id, *tp)
                shared = self._context.share_partitions.load(key, topic, partition, now)
            except BrokerResponseError as error:
                self._failed[tp] = error
            else:
                shared.advance(now)
                shared.on_log_start_moved(partition.log.start_offset)
                self._loaded[tp] = partition, shared

    def is_enough(self, now: ClockReading) -> bool:
        """Returns True if a partition has an error, or if `min_bytes` can be acquired.

        A released record counts with the record batches that follow it.
        """
        if self._failed:
            return True
        readable = 0
        for partition, shared in self._loaded.values():
            if shared.can_acquire:
                offset = shared.next_fetch_offset
                if offset < self._end(partition):
                    readable += partition.log.size_from(offset, self._end_limit(partition))
        return readable > 0 and readable >= self._request.min_bytes

    def read(self, now: ClockReading) -> list[SharePartitionRead]:
        """Acquires records in all partitions, within the limits of the request."""
        results = [SharePartitionRead(tp, error=it) for tp, it in self._failed.items()]
        able = [(tp, it) for tp, it in self._loaded.items() if it[1].can_acquire]
        most = limit_fetch_bytes(
            self._context, min(self._request.max_bytes, self._context.settings.fetch_max_bytes)
        )
        left = self._request.max_records
        for tp, (partition, shared) in able:
            read = SharePartitionRead(tp)
            try:
                self._read(read, partition, shared, most // len(able), left, now)
            except BrokerResponseError as error:
                read.error = error
            left -= sum(it.size for it in read.acquired)
            results.append(read)
        return results

    def _end_limit(self, partition: Partition) -> int | None:
        return partition.last_stable_offset if self._config.is_read_committed else None

    def _end(self, partition: Partition) -> int:
        limit = self._end_limit(partition)
        return partition.high_watermark if limit is None else limit

    def _read(
        self,
        read: SharePartitionRead,
        partition: Partition,
        shared: SharePartition,
        max_bytes: int,
        max_records: int,
        now: ClockReading,
    ) -> None:
        offset = shared.next_fetch_offset
        if offset >= self._end(partition):
            return
        found: LogSlice = partition.log.read(
            offset, max_bytes, at_least_one=True, end_offset=self._end_limit(partition)
        )
        request = AcquireRequest(
            self._request.member_id or "", self._mode, self._request.batch_size, max_records
        )
        batches = [LogBatch(it.base_offset, it.last_offset) for it in found.batches]
        acquired = acquire(shared, request, offset, batches, now.ms)
        if self._config.is_read_committed:
            acquired = _without_aborted(partition, shared, found.batches, acquired)
        if acquired:
            first, last = acquired[0].first, max(it.last for it in acquired)
            read.acquired = acquired
            read.records = b"".join(
                it.raw for it in found.batches if it.last_offset >= first and it.base_offset <= last
            )


def _without_aborted(
    partition: Partition,
    shared: SharePartition,
    batches: Sequence[RecordBatch],
    acquired: list[AcquiredRecords],
) -> list[AcquiredRecords]:
    """Archives the acquired records of aborted transactions; returns the other records."""
    if not batches:
        return acquired
    start, end = batches[0].base_offset, batches[-1].next_offset
    aborted = partition.producer_states.aborted_transactions(start, end)
    for batch in batches:
        if batch.is_control or not batch.is_transactional:
            continue
        if any(
            it.producer_id == batch.producer_id
            and it.first_offset <= batch.base_offset < it.last_offset
            for it in aborted
        ):
            shared.archive(batch.base_offset, batch.next_offset, RecordState.ACQUIRED)
            acquired = [
                part
                for it in acquired
                for part in (
                    it._replace(last=min(it.last, batch.base_offset - 1)),
                    it._replace(first=max(it.first, batch.next_offset)),
                )
                if part.first <= part.last
            ]
    return acquired
