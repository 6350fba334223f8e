"""DeleteRecords (21), v0 to v2.

v1      a throttled response is sent at once (KIP-219)
v2      flexible

Offset -1 stands for the high watermark. As in Kafka, a request with an offset below the log start
offset succeeds and deletes nothing. Records of topics that are only compacted (POLICY_VIOLATION)
and of internal topics (INVALID_TOPIC_EXCEPTION) cannot be deleted.

Left out: the timeout of the request. All replicas share one log, so the request does not wait for
followers.
"""

from __future__ import annotations

from typing import Final

from ...messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from ...messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles

_HIGH_WATERMARK: Final = -1
_NO_OFFSET: Final = -1


@handles(DeleteRecordsRequest, versions=range(3))
def delete_records(
    context: Context, request: DeleteRecordsRequest, version: int
) -> DeleteRecordsResponse:
    """Moves the log start offsets. If a request names a partition twice, its last entry applies."""
    requested: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            requested.setdefault(topic.name, {})[partition.partition_index] = partition
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[_delete(context, name, partition) for partition in its.values()],
            )
            for name, its in requested.items()
        ]
    )


def _delete(
    context: Context, name: str, requested: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    index = requested.partition_index
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_OFFSET)
    try:
        check(context, Operation.DELETE, ResourceType.TOPIC, name)
        topic = context.cluster.topics.named(name)
        partition = topic.after_cleanup(index, context.clock.now_ms())
        if topic.is_internal:
            raise api_error(
                "INVALID_TOPIC_EXCEPTION", f"topic {name!r} is an internal topic of Kafka"
            )
        topic.check_leader(index, context.node_id)
        if "delete" not in topic.config["cleanup.policy"]:
            raise api_error(
                "POLICY_VIOLATION", f"the cleanup.policy of topic {name!r} does not include delete"
            )
        before = requested.offset
        if before == _HIGH_WATERMARK:
            before = partition.high_watermark
        if before < 0:
            raise api_error("OFFSET_OUT_OF_RANGE", f"offset {before} is below 0")
        partition.log.delete_before(before)
        result.low_watermark = partition.log.start_offset
    except BrokerResponseError as error:
        result.error_code = error.code
    return result
