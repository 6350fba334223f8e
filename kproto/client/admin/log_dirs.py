"""Describes log directories, and moves replicas between them: requests and results as plain data.

DescribeLogDirs (35) and AlterReplicaLogDirs (34, KIP-113).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ...messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from ...messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from ...messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition
from .calls import by_topic, error_in

__all__ = [
    "LogDirDescription",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "TopicPartitionReplica",
    "alter_log_dirs_request",
    "altered_log_dirs",
    "by_broker",
    "describe_log_dirs_request",
    "described_log_dirs",
    "replica_log_dir",
]


class TopicPartitionReplica(NamedTuple):
    """A replica: a partition on the broker with the node id `broker`."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}] on broker {self.broker}"


class ReplicaInfo(NamedTuple):
    """A replica in a log directory.

    `offset_lag` is the number of offsets that it is behind: a future replica behind the current
    replica, and another behind the high watermark. A future replica replaces the current replica
    once it has caught up.
    """

    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory; `error` is KAFKA_STORAGE_ERROR if it is offline, else None.

    The sizes of the volume are None before Kafka 3.3 (KIP-827). No new replica is placed in a
    cordoned directory (Kafka 4.3, KIP-1066).
    """

    error: KprotoError | None
    replicas: dict[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool


class ReplicaLogDirInfo(NamedTuple):
    """The log directory of a replica, and the directory to which it moves; None if there is none.

    The lags are as in `ReplicaInfo`; None without a directory.
    """

    current_dir: str | None = None
    current_offset_lag: int | None = None
    future_dir: str | None = None
    future_offset_lag: int | None = None


def describe_log_dirs_request(tps: Iterable[TopicPartition] | None) -> DescribeLogDirsRequest:
    """Returns the request for the log directories of a broker; None means all its partitions."""
    if tps is None:
        return DescribeLogDirsRequest(topics=None)
    return DescribeLogDirsRequest(
        topics=[
            DescribableLogDirTopic(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(tps).items()
        ]
    )


def described_log_dirs(
    response: DescribeLogDirsResponse,
) -> dict[str, LogDirDescription] | KprotoError:
    """Returns the log directories of a broker by path, or the error of the response."""
    error = error_in(response.error_code, "describing log directories")
    if error is not None:
        return error
    return {each.log_dir: _log_dir(each) for each in response.results}


def _log_dir(each: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        error_in(each.error_code, f"describing log directory {each.log_dir}"),
        {
            (topic.name, part.partition_index): ReplicaInfo(
                part.partition_size, part.offset_lag, part.is_future_key
            )
            for topic in each.topics
            for part in topic.partitions
        },
        each.total_bytes if each.total_bytes >= 0 else None,
        each.usable_bytes if each.usable_bytes >= 0 else None,
        each.is_cordoned,
    )


def replica_log_dir(
    log_dirs: Mapping[str, LogDirDescription], tp: TopicPartition
) -> ReplicaLogDirInfo:
    """Returns the directories of a replica among those of its broker."""
    found = ReplicaLogDirInfo()
    for path, log_dir in log_dirs.items():
        replica = log_dir.replicas.get(tp)
        if replica is None:
            continue
        if replica.is_future:
            found = found._replace(future_dir=path, future_offset_lag=replica.offset_lag)
        else:
            found = found._replace(current_dir=path, current_offset_lag=replica.offset_lag)
    return found


def by_broker(
    replicas: Iterable[TopicPartitionReplica],
) -> dict[int, list[TopicPartitionReplica]]:
    """Groups replicas by broker."""
    found: dict[int, list[TopicPartitionReplica]] = {}
    for each in replicas:
        found.setdefault(each.broker, []).append(each)
    return found


def alter_log_dirs_request(
    paths: Mapping[TopicPartitionReplica, str], replicas: Sequence[TopicPartitionReplica]
) -> AlterReplicaLogDirsRequest:
    """Returns the request that moves `replicas` of one broker to their paths."""
    by_path: dict[str, list[TopicPartition]] = {}
    for each in replicas:
        by_path.setdefault(paths[each], []).append((each.topic, each.partition))
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=topic, partitions=partitions)
                    for topic, partitions in by_topic(tps).items()
                ],
            )
            for path, tps in by_path.items()
        ]
    )


def altered_log_dirs(
    response: AlterReplicaLogDirsResponse, broker: int
) -> dict[TopicPartitionReplica, KprotoError | None]:
    """Returns the error of each replica of a broker, None if the move was accepted."""
    return {
        TopicPartitionReplica(topic.topic_name, each.partition_index, broker): error_in(
            each.error_code,
            f"moving {topic.topic_name}[{each.partition_index}] on broker {broker}",
        )
        for topic in response.results
        for each in topic.partitions
    }
