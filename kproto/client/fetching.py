"""Fetch requests and responses as plain data: what to ask, what came, what an error means."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ..messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from ..messages.fetch_response import FetchResponse, PartitionData
from ..protocol.error_codes import code_of
from ..records import MAX_DECOMPRESSED_BYTES, RecordBatch
from ..wire.uuid import ZERO_UUID
from .admin import TopicPartition
from .cluster import TopicInfo

__all__ = [
    "FETCH_BYTES",
    "AbortedTransactions",
    "FetchAction",
    "FetchedPartition",
    "fetch_action",
    "fetch_request",
    "fetched_partitions",
    "highest_fetch_version",
    "response_bytes",
]

#: Room for one partition in a fetch response, in bytes; a larger first batch is sent whole.
FETCH_BYTES: Final = 1_048_576

#: The key of a control record: its version and type (ControlRecordType).
_CONTROL_KEY: Final = struct.Struct(">hh")
_ABORT: Final = 0

#: From this version on, Fetch names topics by id alone (KIP-516).
_BY_TOPIC_ID: Final = 13


class FetchedPartition(NamedTuple):
    """What a fetch of one partition brought: `records` are batches, the last perhaps cut."""

    records: bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class FetchAction(Enum):
    """What to do about the error code of a partition in a fetch response."""

    REFRESH = "ask for metadata, then fetch again"
    RESET = "find a new position, then fetch again"
    RETRY = "fetch again"
    FAIL = "tell the user"


_ACTIONS: Final = {
    "FENCED_LEADER_EPOCH": FetchAction.REFRESH,
    "FETCH_SESSION_TOPIC_ID_ERROR": FetchAction.REFRESH,
    "INCONSISTENT_TOPIC_ID": FetchAction.REFRESH,
    "KAFKA_STORAGE_ERROR": FetchAction.REFRESH,
    "LEADER_NOT_AVAILABLE": FetchAction.REFRESH,
    "NOT_LEADER_OR_FOLLOWER": FetchAction.REFRESH,
    "OFFSET_NOT_AVAILABLE": FetchAction.RETRY,
    "OFFSET_OUT_OF_RANGE": FetchAction.RESET,
    "REPLICA_NOT_AVAILABLE": FetchAction.REFRESH,
    "UNKNOWN_LEADER_EPOCH": FetchAction.RETRY,
    "UNKNOWN_TOPIC_ID": FetchAction.REFRESH,
    "UNKNOWN_TOPIC_OR_PARTITION": FetchAction.REFRESH,
}

_BY_CODE: Final = {code_of(name): action for name, action in _ACTIONS.items()}


def fetch_action(code: int) -> FetchAction:
    """What to do about an error code."""
    return _BY_CODE.get(code, FetchAction.FAIL)


def fetch_request(
    positions: Mapping[TopicPartition, int],
    topics: Mapping[str, TopicInfo],
    *,
    max_bytes: int,
    partition_bytes: int,
    min_bytes: int,
    max_wait_ms: int,
    read_committed: bool,
) -> FetchRequest:
    """One fetch of every partition in `positions`, which one broker leads, without a session."""
    grouped: dict[str, list[FetchPartition]] = {}
    for (topic, partition), offset in positions.items():
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=partition_bytes
        )
        grouped.setdefault(topic, []).append(wanted)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(read_committed),
        topics=[
            FetchTopic(topic=name, topic_id=topics[name].topic_id, partitions=wanted)
            for name, wanted in grouped.items()
        ],
    )


def response_bytes(partition_bytes: int, partitions: int, max_frame_bytes: int) -> int:
    """Room for a whole fetch response in bytes: every partition's, as far as a frame may hold it.

    Half of the frame is left for a first batch that comes whole however large, and for the rest.
    """
    return min(partition_bytes * partitions, max(max_frame_bytes // 2, 1))


def highest_fetch_version(topics: Iterable[TopicInfo]) -> int | None:
    """The version not to exceed: topics whose id is unknown can be fetched by name only."""
    if any(topic.topic_id == ZERO_UUID for topic in topics):
        return _BY_TOPIC_ID - 1
    return None


def fetched_partitions(
    response: FetchResponse, topics: Mapping[str, TopicInfo]
) -> Iterator[tuple[TopicPartition, PartitionData]]:
    """The partitions of a response by name; those of topics that nobody asked for are left out."""
    names = {info.topic_id: name for name, info in topics.items() if info.topic_id != ZERO_UUID}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id)
        if name is not None:
            for data in topic.partitions:
                yield (name, data.partition_index), data


class AbortedTransactions:
    """Which batches of one fetched partition belong to aborted transactions (KIP-98).

    The broker names the producer of each and where it began; its abort marker ends it.
    """

    def __init__(self, data: PartitionData) -> None:
        begun = sorted(
            (entry.first_offset, entry.producer_id) for entry in data.aborted_transactions or ()
        )
        self._waiting = deque(begun)
        self._active: set[int] = set()

    def hides(self, batch: RecordBatch) -> bool:
        """True when no reader that wants committed records alone may see `batch`."""
        while self._waiting and self._waiting[0][0] <= batch.last_offset:
            self._active.add(self._waiting.popleft()[1])
        return batch.is_transactional and batch.producer_id in self._active

    def see_marker(
        self, batch: RecordBatch, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    ) -> None:
        """Take note of a control batch: an abort marker ends the transaction of its producer."""
        for record in batch.records(max_decompressed_bytes=max_decompressed_bytes):
            key = record.key or b""
            if len(key) >= _CONTROL_KEY.size and _CONTROL_KEY.unpack_from(key)[1] == _ABORT:
                self.hides(batch)
                self._active.discard(batch.producer_id)
