"""DescribeLogDirs (35), v0 to v5.

v0      the log directories of this node, and the sizes of its replicas (KIP-113)
v1      a throttled response is sent at once (KIP-219)
v2      flexible
v3      an error code for the whole response
v4      total and usable bytes of each directory (KIP-827)
v5      whether a directory is cordoned (KIP-1066)

The directories are those of `BrokerSettings.log_dirs`; their total size is
`BrokerSettings.max_stored_bytes`, which all directories of all nodes share. A request without
topics gets all replicas of this node. The request requires DESCRIBE on the cluster.

Left out: failed and cordoned directories, future replicas.
"""

from __future__ import annotations

from ...messages.describe_log_dirs_request import DescribeLogDirsRequest
from ...messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..topics import Topic


@handles(DescribeLogDirsRequest, versions=range(6))
def describe_log_dirs(
    context: Context, request: DescribeLogDirsRequest, version: int
) -> DescribeLogDirsResponse:
    """Returns the log directories of this node with its replicas."""
    try:
        check_cluster(context, Operation.DESCRIBE)
    except BrokerResponseError as error:
        return DescribeLogDirsResponse(error_code=error.code)
    topics = context.cluster.topics
    topics.apply_cleanup(context.clock.now_ms())
    requested: dict[Topic, list[int]] = {}
    if request.topics is None:
        requested = {topic: list(range(len(topic.partitions))) for topic in topics}
    else:
        for each in request.topics:
            topic = topics.get(each.topic)
            if topic is not None:
                requested[topic] = [it for it in each.partitions if it < len(topic.partitions)]
    limit = context.cluster.storage_limit
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=log_dir,
                topics=_topics(context, log_dir, requested),
                total_bytes=limit.limit,
                usable_bytes=max(0, limit.limit - limit.used),
            )
            for log_dir in context.settings.log_dirs
        ]
    )


def _topics(
    context: Context, log_dir: str, requested: dict[Topic, list[int]]
) -> list[DescribeLogDirsTopic]:
    node, log_dirs = context.node_id, context.settings.log_dirs
    found = []
    for topic, indexes in requested.items():
        partitions = [
            DescribeLogDirsPartition(
                partition_index=index, partition_size=topic.partition(index).log.size_in_bytes
            )
            for index in indexes
            if node in topic.partition(index).leader_and_isr.replicas
            and topic.partition(index).log_dir(node, log_dirs) == log_dir
        ]
        if partitions:
            found.append(DescribeLogDirsTopic(name=topic.name, partitions=partitions))
    return found
