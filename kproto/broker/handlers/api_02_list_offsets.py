"""ListOffsets (2), v0 to v11.

v0      a list of offsets: the log end, and the starts of segments, newest first
v1      one offset and its timestamp (KIP-79)
v2      isolation level (KIP-98), throttle time; for read_committed, the log ends at the last stable
        offset
v4      leader epoch (KIP-320)
v6      flexible
v7      timestamp -3, the record with the largest timestamp (KIP-734)
v8      timestamp -4, the start of the local log (KIP-405)
v9      timestamp -5, the end of the log in remote storage (KIP-1005)
v10     a timeout for remote storage (KIP-1075)
v11     timestamp -6, the first offset not yet in remote storage (KIP-1023)

Left out: remote storage, segments. Timestamp -4 returns the log start offset, -5 and -6 return no
offset. v0 lists only the log end and the log start.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from ...messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles
from ..storage.offset_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LARGEST_TIMESTAMP,
    LATEST,
    LATEST_TIERED,
    fetch_offset_by_timestamp,
    legacy_offsets_before,
)
from ..topics import Topic

#: The replica id of debugging consumers, to which followers respond, too.
_DEBUGGING: Final = -2

_READ_COMMITTED: Final = 1

#: The first version that supports each special timestamp.
_FIRST_VERSION: Final = {
    LATEST: 0,
    EARLIEST: 0,
    LARGEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


@handles(ListOffsetsRequest, versions=range(12))
def list_offsets(
    context: Context, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    """Returns the offset of each partition for the requested timestamp.

    As in Kafka 4, a partition that the request names more than once gets one INVALID_REQUEST, and
    all partitions of a topic are in one element of the response. In v0, which Kafka 4 lacks, a
    partition that the request names twice gets two responses, as in Kafka 3.9.
    """
    context.transaction_coordinator.advance(context.now)
    times = Counter(
        (topic.name, requested.partition_index)
        for topic in request.topics
        for requested in topic.partitions
    )
    seen: set[tuple[str, int]] = set()
    answered: list[ListOffsetsTopicResponse] = []
    by_name: dict[str, ListOffsetsTopicResponse] = {}
    for topic in request.topics:
        response = by_name.get(topic.name)
        if response is None or version == 0:
            response = by_name[topic.name] = ListOffsetsTopicResponse(name=topic.name)
            answered.append(response)
        for requested in topic.partitions:
            tp = topic.name, requested.partition_index
            if tp in seen and version > 0:
                continue
            seen.add(tp)
            response.partitions.append(
                _partition(context, request, *tp, requested, version, times[tp])
            )
    return ListOffsetsResponse(topics=answered)


def _partition(
    context: Context,
    request: ListOffsetsRequest,
    topic: str,
    index: int,
    requested: ListOffsetsPartition,
    version: int,
    times: int,
) -> ListOffsetsPartitionResponse:
    timestamp = requested.timestamp
    response = ListOffsetsPartitionResponse(partition_index=index)
    try:
        check(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
        if times > 1 and version > 0:
            raise api_error("INVALID_REQUEST", "the partition is named more than once")
        if version > 0:
            _check_timestamp(timestamp, version)
        found_topic = context.cluster.topics.named(topic)
        partition = found_topic.after_cleanup(index, context.clock.now_ms())
        log = partition.log
        _check_replica(context, found_topic, requested, request.replica_id)
        if version == 0:
            response.old_style_offsets = legacy_offsets_before(
                log, timestamp, requested.max_num_offsets, context.clock.now_ms()
            )
        else:
            end_offset = log.end_offset
            if request.isolation_level == _READ_COMMITTED:
                end_offset = partition.last_stable_offset
            found = fetch_offset_by_timestamp(log, timestamp, end_offset)
            response.offset, response.timestamp = found.offset, found.timestamp
            if version >= 4:
                response.leader_epoch = found.leader_epoch
    except BrokerResponseError as error:
        response.error_code = error.code
    return response


def _check_replica(
    context: Context, topic: Topic, requested: ListOffsetsPartition, replica_id: int
) -> None:
    """Checks that the node leads the partition, and checks the leader epoch.

    For a debugging consumer (replica id -2), the node may be any replica. Raises
    NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH or FENCED_LEADER_EPOCH.
    """
    index, epoch = requested.partition_index, requested.current_leader_epoch
    node_id = context.node_id
    if replica_id == _DEBUGGING and node_id in topic.partition(index).leader_and_isr.replicas:
        topic.check_epoch(index, epoch)
    else:
        topic.check_leader(index, node_id, epoch)


def _check_timestamp(timestamp: int, version: int) -> None:
    if timestamp < 0 and version < _FIRST_VERSION.get(timestamp, version + 1):
        raise api_error(
            "UNSUPPORTED_VERSION", f"ListOffsets v{version} has no timestamp {timestamp}"
        )
