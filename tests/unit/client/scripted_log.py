"""Answers Fetch and ListOffsets of a scripted broker, from batches that a test provides.

A log can contain any bytes: control batches, aborted batches, gaps, malformed data. A fetch returns
whole batches up to its limits and cuts off the next batch, as brokers do; the first batch is always
whole.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any, Final

from kproto.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kproto.messages.fetch_request import FetchPartition
from kproto.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    PartitionData,
)
from kproto.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)
from kproto.messages.offset_for_leader_epoch_response import EpochEndOffset as EpochEnd
from kproto.messages.offset_for_leader_epoch_response import OffsetForLeaderTopicResult
from kproto.protocol.connection import ReceivedRequest
from kproto.records import RecordBatch, encode_batch
from kproto.wire.uuid import Uuid
from tests.unit.client.broker_sessions import BrokerSessions
from tests.unit.client.scripted_broker import ScriptedBroker

__all__ = ["ABORT", "COMMIT", "ScriptedLog", "batch", "marker"]

ABORT: Final = 0
COMMIT: Final = 1
_OUT_OF_RANGE: Final = 1


def batch(base_offset: int, values: Sequence[bytes], **settings: Any) -> bytes:
    """Returns a batch of these values; each value is also the key of its record."""
    records = [(value, value, (), 1000) for value in values]
    return encode_batch(records, base_offset=base_offset, **settings)


def marker(base_offset: int, kind: int, producer_id: int) -> bytes:
    """Returns the control batch that ends a transaction (KIP-98)."""
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
    return encode_batch(
        [(key, value, (), 1000)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


class ScriptedLog:
    """The logs of a broker's partitions."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.batches: dict[tuple[str, int], list[bytes]] = {}
        #: The next offset after each batch.
        self.following: dict[tuple[str, int], list[int]] = {}
        self.starts: dict[tuple[str, int], int] = {}
        self.stable: dict[tuple[str, int], int] = {}
        self.aborted: list[AbortedTransaction] = []
        self.fetches: list[FetchRequest] = []
        #: Error codes of the next fetches, one each; such a fetch returns no records.
        self.errors: list[int] = []
        #: Topic names by topic id.
        self.names: dict[Uuid, str] = {}
        #: Fetch sessions; a test sets a larger limit to allow some.
        self.sessions = BrokerSessions(room=0)
        #: Last leader epoch and its end offset, by partition; the log of a consumer with a later
        #: epoch diverges there.
        self.epochs: dict[tuple[str, int], tuple[int, int]] = {}
        self.asked_for_epochs: list[OffsetForLeaderEpochRequest] = []
        #: Additional fields of the partition responses, one dict per fetch.
        self.sayings: list[dict[str, Any]] = []
        #: Error codes by partition, for every fetch.
        self.failing: dict[tuple[str, int], int] = {}
        broker.answers[FetchRequest] = self.fetch
        broker.answers[ListOffsetsRequest] = self.list_offsets
        broker.answers[OffsetForLeaderEpochRequest] = self.epoch_ends

    def append(self, data: bytes, topic: str = "t", partition: int = 0) -> None:
        """Appends a batch to a partition's log."""
        self.batches.setdefault((topic, partition), []).append(data)
        following = self.following.setdefault((topic, partition), [])
        following.append(RecordBatch(data).next_offset)

    def damage(self, at: int, data: bytes, topic: str = "t", partition: int = 0) -> None:
        """Overwrites bytes of the last batch, from index `at` on."""
        batches = self.batches[topic, partition]
        batches[-1] = batches[-1][:at] + data + batches[-1][at + len(data) :]

    def end(self, tp: tuple[str, int]) -> int:
        """Returns the next offset after the last batch."""
        following = self.following.get(tp)
        return following[-1] if following else self.starts.get(tp, 0)

    async def fetch(self, asked: ReceivedRequest) -> FetchResponse:
        request = asked.message
        assert isinstance(request, FetchRequest)
        self.fetches.append(request)
        error = self.errors.pop(0) if self.errors else 0
        room = request.max_bytes

        def read(topic: str, topic_id: Uuid, wanted: FetchPartition) -> PartitionData:
            nonlocal room
            # The first batch of a response is always whole (KIP-74).
            is_first = room == request.max_bytes
            found = self._partition(
                (topic or self.names[topic_id], wanted.partition),
                wanted,
                error,
                request,
                room,
                is_first,
            )
            room -= len(found.records or b"")
            return found

        response = self.sessions.fetch(request, asked.version, read)
        found = [part for topic in response.responses for part in topic.partitions]
        empty = not any(part.records for part in found)
        if empty and not error and not response.error_code:
            await asyncio.sleep(request.max_wait_ms / 1000)
        return response

    def _partition(
        self,
        tp: tuple[str, int],
        wanted: Any,
        error: int,
        request: FetchRequest,
        room: int,
        is_first: bool,
    ) -> PartitionData:
        end = self.end(tp)
        start = self.starts.get(tp, 0)
        error = error or self.failing.get(tp, 0)
        if not error and not start <= wanted.fetch_offset <= end:
            error = _OUT_OF_RANGE
        data = b""
        diverging = EpochEndOffset()
        epoch, its_end = self.epochs.get(tp, (wanted.last_fetched_epoch, end))
        if wanted.last_fetched_epoch > epoch or (
            wanted.last_fetched_epoch >= 0 and (its_end < wanted.fetch_offset)
        ):
            diverging = EpochEndOffset(epoch=epoch, end_offset=its_end)
            error = 0
        elif not error:
            found = [
                stored
                for stored, following in zip(
                    self.batches.get(tp, []), self.following.get(tp, []), strict=True
                )
                if following > wanted.fetch_offset
            ]
            data = b"".join(found)
            least = len(found[0]) if found else 0
            most = min(wanted.partition_max_bytes, max(room, 0))
            # Like Kafka, later partitions return no records if their first batch does not fit.
            data = data[: max(least, most)] if is_first or most >= least else b""
        return PartitionData(
            partition_index=tp[1],
            error_code=error,
            high_watermark=end,
            last_stable_offset=self.stable.get(tp, end),
            log_start_offset=start,
            aborted_transactions=self.aborted if request.isolation_level else None,
            records=data,
            diverging_epoch=diverging,
            **(self.sayings.pop(0) if self.sayings else {}),
        )

    def epoch_ends(self, asked: ReceivedRequest) -> OffsetForLeaderEpochResponse:
        request = asked.message
        assert isinstance(request, OffsetForLeaderEpochRequest)
        self.asked_for_epochs.append(request)
        results = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                tp = (topic.topic, part.partition)
                epoch, end = self.epochs.get(tp, (part.leader_epoch, self.end(tp)))
                parts.append(EpochEnd(partition=part.partition, leader_epoch=epoch, end_offset=end))
            results.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=parts))
        return OffsetForLeaderEpochResponse(topics=results)

    def list_offsets(self, asked: ReceivedRequest) -> ListOffsetsResponse:
        request = asked.message
        assert isinstance(request, ListOffsetsRequest)
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                tp = (topic.name, part.partition_index)
                offset = self.starts.get(tp, 0)
                if part.timestamp == -1:
                    offset = self.end(tp)
                    if request.isolation_level:
                        offset = self.stable.get(tp, offset)
                parts.append(
                    ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, offset=offset
                    )
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=parts))
        return ListOffsetsResponse(topics=topics)
