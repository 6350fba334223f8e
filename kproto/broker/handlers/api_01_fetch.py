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
and the client goes on without one); followers; transactions, so never an aborted one;
`current_leader`, for whoever asked another node than the leader. Batches always come whole: where
Kafka cuts the last one at the limit, here it is not begun, and where Kafka fills up what became
shorter by converting it, here it is short.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from ...messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..authorizer import DENIED, Operation, ResourceType
from ..context import Context
from ..decisions import Decision, Wait
from ..refusal import refusal
from ..registry import handles
from ..rights import allows_cluster, check
from ..storage.log import LogSlice
from ..storage.partition import Partition
from ..storage.reading import FetchLimit
from ..throttle import most_to_fetch
from ..topics import Topic

#: The magic that a client of an old version reads; the others read batches.
_MAGIC_OF_MESSAGE_SETS: Final = {0: 0, 1: 0, 2: 1, 3: 1}
_FIRST_VERSION_OF_WHOLE_BATCHES: Final = 3
_FIRST_VERSION_BY_ID: Final = 13

_READ_COMMITTED: Final = 1
_NO_SESSION: Final = 0
#: Session epochs that ask for all partitions: without a session, and to open one.
_FULL_FETCHES: Final = (-1, 0)

_NOTHING: Final = LogSlice([], 0)


class PartitionRead(NamedTuple):
    """What was found of one partition: batches, or an error; `partition` is None for no such."""

    wanted: FetchPartition
    partition: Partition | None
    found: LogSlice
    error: BrokerResponseError | None


class Read(NamedTuple):
    """One look at all partitions of a request, in its order."""

    topics: list[tuple[FetchTopic, list[PartitionRead]]]

    def is_enough(self, min_bytes: int) -> bool:
        """Whether to answer at once: there is nothing to wait for, an error, or `min_bytes`."""
        if not self.topics:
            return True
        size = 0
        for _, parts in self.topics:
            for part in parts:
                if part.error is not None:
                    return True
                size += part.found.size
        return size >= min_bytes


@handles(FetchRequest, versions=range(19))
def fetch(context: Context, request: FetchRequest, version: int) -> Decision:
    """Answer once there are `min_bytes`, an error, or `max_wait_ms` have passed."""
    if request.session_epoch not in _FULL_FETCHES:
        return FetchResponse(error_code=code_of("FETCH_SESSION_ID_NOT_FOUND"))
    read = read_partitions(context, request, version)
    min_bytes = most_to_fetch(context, request.min_bytes)  # more would never come
    if request.max_wait_ms <= 0 or read.is_enough(min_bytes):
        return _response(request, version, read)

    def look_again(time_is_over: bool) -> Decision:
        read = read_partitions(context, request, version)
        if time_is_over or read.is_enough(min_bytes):
            return _response(request, version, read)
        return wait

    partitions = (part.partition for _, parts in read.topics for part in parts)
    wait = Wait(
        until=context.deadline(request.max_wait_ms),
        wake=[partition.log for partition in partitions if partition is not None],
        then=look_again,
    )
    return wait


def read_partitions(context: Context, request: FetchRequest, version: int) -> Read:
    """Read every partition, in the order of the request, within its limits."""
    limit = FetchLimit(
        most_to_fetch(context, min(request.max_bytes, context.settings.fetch_max_bytes)),
        at_least_one=version >= _FIRST_VERSION_OF_WHOLE_BATCHES,
    )
    return Read(
        [
            (
                topic,
                [
                    _read_partition(context, request, topic, wanted, version, limit)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _read_partition(
    context: Context,
    request: FetchRequest,
    topic: FetchTopic,
    wanted: FetchPartition,
    version: int,
    limit: FetchLimit,
) -> PartitionRead:
    partition: Partition | None = None
    try:
        found_topic = _find(context, request, topic, version)
        partition = found_topic.kept(wanted.partition, context.clock.now_ms())
        found_topic.check_leader(
            wanted.partition, context.endpoint.node_id, wanted.current_leader_epoch
        )
        if _is_from_follower(request):
            raise refusal("NOT_LEADER_OR_FOLLOWER", "this cluster has no followers")
        found = limit.read(partition.log, wanted.fetch_offset, wanted.partition_max_bytes)
    except BrokerResponseError as error:
        return PartitionRead(wanted, partition, _NOTHING, error)
    return PartitionRead(wanted, partition, found, None)


def _find(context: Context, request: FetchRequest, topic: FetchTopic, version: int) -> Topic:
    """The topic, if the client may read it; of a name it does not hear whether it is there."""
    topics = context.cluster.topics
    found = topics.with_id(topic.topic_id) if version >= _FIRST_VERSION_BY_ID else None
    name = topic.topic if found is None else found.name
    if not _is_from_follower(request):
        check(context, Operation.READ, ResourceType.TOPIC, name)
    elif not allows_cluster(context, Operation.CLUSTER_ACTION):
        raise refusal(DENIED[ResourceType.TOPIC], "followers are brokers of the cluster")
    return topics.named(name) if found is None else found


def _is_from_follower(request: FetchRequest) -> bool:
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


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
    if part.error is not None or part.partition is None:
        return _failed(part, part.error)
    try:
        records = _records(part, version)
    except BrokerResponseError as error:
        return _failed(part, error)
    return PartitionData(
        partition_index=part.wanted.partition,
        high_watermark=part.partition.high_watermark,
        last_stable_offset=part.partition.last_stable_offset,
        log_start_offset=part.partition.log.start_offset,
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
        aborted_transactions=[] if part.partition is None else None,
        records=b"",
    )
