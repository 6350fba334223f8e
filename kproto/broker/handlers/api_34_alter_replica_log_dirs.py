"""AlterReplicaLogDirs (34), v0 to v2.

v0      moves replicas of this node to another log directory (KIP-113)
v1      a throttled response is sent at once (KIP-219)
v2      flexible

The directories are those of `BrokerSettings.log_dirs`. A move is complete at once. The request
requires ALTER on the cluster.

Left out: future replicas, which copy the records of a replica that moves.
"""

from __future__ import annotations

from ...messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from ...messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles


@handles(AlterReplicaLogDirsRequest, versions=range(3))
def alter_replica_log_dirs(
    context: Context, request: AlterReplicaLogDirsRequest, version: int
) -> AlterReplicaLogDirsResponse:
    """Moves replicas to other log directories, and returns an error code for each partition."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for log_dir in request.dirs:
        for topic in log_dir.topics:
            for index in topic.partitions:
                result = AlterReplicaLogDirPartitionResult(partition_index=index)
                try:
                    check_cluster(context, Operation.ALTER)
                    _move(context, topic.name, index, log_dir.path)
                except BrokerResponseError as error:
                    result.error_code = error.code
                results.setdefault(topic.name, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def _move(context: Context, name: str, index: int, path: str) -> None:
    if path not in context.settings.log_dirs:
        raise api_error(
            "LOG_DIR_NOT_FOUND",
            f"there is no log directory {path!r}; there are {', '.join(context.settings.log_dirs)}",
        )
    partition = context.cluster.topics.named(name).partition(index)
    if context.node_id not in partition.leader_and_isr.replicas:
        raise api_error(
            "REPLICA_NOT_AVAILABLE", f"broker {context.node_id} has no replica of {name}-{index}"
        )
    partition.log_dirs[context.node_id] = path
