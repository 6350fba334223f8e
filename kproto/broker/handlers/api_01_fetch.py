"""Fetch (1), v0 to v18.

v0-v2   message sets, of magic 0 in v0 and v1 and of magic 1 from v2 on; a batch over the size limit
        is not returned; v1 throttle time
v3      size limit of the whole response, and the first batch comes however large (KIP-74)
v4      record batches, isolation level, aborted transactions, last stable offset (KIP-98)
v5      log start offset (KIP-107)
v7      fetch sessions (KIP-227)
v9      current leader epoch (KIP-320)
v10     the client reads zstd (KIP-110); older ones get such batches too, as from Kafka
v11     rack of the consumer, preferred replica (KIP-392)
v12     flexible; last fetched epoch, diverging epoch (KIP-595); current leader
v13     topics by id (KIP-516)
v15     replica state in place of replica id (KIP-903)
v16     addresses of leaders (KIP-951)
v17-18  directory id and high watermark of a follower (KIP-853, KIP-1166)

For v0-v3 batches are converted down as Kafka up to 3.9 does it (4.0 no longer takes these
versions): headers are lost, and a batch compressed with zstd is UNSUPPORTED_COMPRESSION_TYPE.

Left out: sessions (every answer has session id 0, as a broker's whose cache of sessions is full,
and the client goes on without one); followers; transactions, so never an aborted one; leaders
other than this broker. Batches always come whole: where Kafka cuts the last one at the limit, here
it is not begun, and where Kafka fills up what became shorter by converting it, here it is short.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from ...messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from ...messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..log import LogSlice, PartitionLog
from ..refusal import refusal
from ..registry import handles
from ..state import BrokerState
from ..topics import Topic
from ._leader_epoch import check_leader_epoch

#: The magic that a client of an old version reads; the others read batches.
_MAGIC_OF_MESSAGE_SETS: Final = {0: 0, 1: 0, 2: 1, 3: 1}
_FIRST_VERSION_OF_WHOLE_BATCHES: Final = 3
_FIRST_VERSION_BY_ID: Final = 13

_READ_COMMITTED: Final = 1
_NO_SESSION: Final = 0
#: Session epochs that ask for all partitions: without a session, and to open one.
_FULL_FETCHES: Final = (-1, 0)


class PartitionRead(NamedTuple):
    """What was found of one partition: batches, or an error; `log` is None for an unknown one."""

    wanted: FetchPartition
    log: PartitionLog | None
    found: LogSlice
    error: BrokerResponseError | None


class Read(NamedTuple):
    """One look at all partitions of a request, in its order."""

    topics: list[tuple[FetchTopic, list[PartitionRead]]]

    @property
    def size(self) -> int:
        """Bytes of records."""
        return sum(part.found.size for _, parts in self.topics for part in parts)

    @property
    def failed(self) -> bool:
        """Whether any partition has an error."""
        return any(part.error for _, parts in self.topics for part in parts)

    @property
    def logs(self) -> list[PartitionLog]:
        """The logs that were looked at."""
        return [part.log for _, parts in self.topics for part in parts if part.log is not None]


@handles(FetchRequest, versions=range(19))
async def fetch(state: BrokerState, request: FetchRequest, version: int) -> FetchResponse:
    """Answer once there are `min_bytes`, an error, or `max_wait_ms` have passed."""
    if request.session_epoch not in _FULL_FETCHES:
        return FetchResponse(error_code=code_of("FETCH_SESSION_ID_NOT_FOUND"))
    read = read_partitions(state, request, version)
    if request.max_wait_ms > 0 and not is_enough(read, request):
        read = await _wait(state, request, version, read)
    return _response(request, version, read)


async def _wait(state: BrokerState, request: FetchRequest, version: int, read: Read) -> Read:
    """Look again after each append, until it is enough or the time is over."""
    changed = asyncio.Event()
    logs = read.logs
    for log in logs:
        log.watchers.add(changed.set)
    try:
        async with asyncio.timeout(request.max_wait_ms / 1000):
            while not is_enough(read, request):
                await changed.wait()
                changed.clear()
                read = read_partitions(state, request, version)
    except TimeoutError:
        pass
    finally:
        for log in logs:
            log.watchers.discard(changed.set)
    return read


def is_enough(read: Read, request: FetchRequest) -> bool:
    """Whether a fetch is answered at once."""
    return not read.topics or read.failed or read.size >= request.min_bytes


def read_partitions(state: BrokerState, request: FetchRequest, version: int) -> Read:
    """Read every partition, in the order of the request, within its limits."""
    left = min(request.max_bytes, state.settings.fetch_max_bytes)
    at_least_one = version >= _FIRST_VERSION_OF_WHOLE_BATCHES
    topics = []
    for topic in request.topics:
        parts = []
        for wanted in topic.partitions:
            limit = min(wanted.partition_max_bytes, left)
            part = _read_partition(state, request, topic, wanted, version, limit, at_least_one)
            if part.found.size:
                left = max(0, left - part.found.size)
                at_least_one = False
            parts.append(part)
        topics.append((topic, parts))
    return Read(topics)


def _read_partition(
    state: BrokerState,
    request: FetchRequest,
    topic: FetchTopic,
    wanted: FetchPartition,
    version: int,
    limit: int,
    at_least_one: bool,
) -> PartitionRead:
    nothing = LogSlice([], 0)
    log: PartitionLog | None = None
    try:
        log = _topic(state, topic, version).partition(wanted.partition).log
        if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
            raise refusal("NOT_LEADER_OR_FOLLOWER", "this cluster has no followers")
        check_leader_epoch(wanted.current_leader_epoch)
        found = log.read(wanted.fetch_offset, limit, at_least_one=at_least_one)
    except BrokerResponseError as error:
        return PartitionRead(wanted, log, nothing, error)
    return PartitionRead(wanted, log, found, None)


def _topic(state: BrokerState, topic: FetchTopic, version: int) -> Topic:
    if version >= _FIRST_VERSION_BY_ID:
        return state.topics.with_id(topic.topic_id)
    return state.topics.named(topic.topic)


def _response(request: FetchRequest, version: int, read: Read) -> FetchResponse:
    committed = request.isolation_level == _READ_COMMITTED
    return FetchResponse(
        session_id=_NO_SESSION,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_partition(part, committed, version) for part in parts],
            )
            for topic, parts in read.topics
        ],
    )


def _partition(part: PartitionRead, committed: bool, version: int) -> PartitionData:
    if part.error is not None or part.log is None:
        return _failed(part, part.error)
    try:
        records = _records(part, version)
    except BrokerResponseError as error:
        return _failed(part, error)
    return PartitionData(
        partition_index=part.wanted.partition,
        high_watermark=part.log.end_offset,
        last_stable_offset=part.log.end_offset,
        log_start_offset=part.log.start_offset,
        aborted_transactions=[] if committed else None,
        records=records,
    )


def _records(part: PartitionRead, version: int) -> bytes:
    magic = _MAGIC_OF_MESSAGE_SETS.get(version)
    if magic is None:
        return part.found.join()
    return part.found.join_as_message_set(magic, part.wanted.fetch_offset)


def _failed(part: PartitionRead, error: BrokerResponseError | None) -> PartitionData:
    return PartitionData(
        partition_index=part.wanted.partition,
        error_code=error.code if error else 0,
        high_watermark=-1,
        aborted_transactions=[] if part.log is None else None,
        records=b"",
    )
