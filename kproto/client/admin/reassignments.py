"""Alters and lists reassignments of partitions: requests and results as plain data.

AlterPartitionReassignments (45) and ListPartitionReassignments (46, KIP-455).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ...messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from ...messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ...messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse
from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition
from .calls import PartCall, by_topic, error_in, outcome

__all__ = [
    "PartitionReassignment",
    "alter_reassignments_call",
    "list_reassignments_request",
    "listed_reassignments",
]


class PartitionReassignment(NamedTuple):
    """A reassignment in progress, as node ids: all replicas, and those added and removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def alter_reassignments_call(
    reassignments: Mapping[TopicPartition, Sequence[int] | None], *, may_change_factor: bool
) -> PartCall[TopicPartition, None]:
    """Returns the call that reassigns partitions; None cancels the reassignment of a partition.

    Without `may_change_factor` the controller refuses another number of replicas (KIP-860).
    """

    def build(tps: Sequence[TopicPartition], left_ms: int) -> AlterPartitionReassignmentsRequest:
        return AlterPartitionReassignmentsRequest(
            timeout_ms=left_ms,
            allow_replication_factor_change=may_change_factor,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=partition, replicas=reassignments[topic, partition]
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(tps).items()
            ],
        )

    def read(
        response: AlterPartitionReassignmentsResponse, tps: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KprotoError | None]:
        whole = error_in(response.error_code, "reassigning partitions", response.error_message)
        if whole is not None:
            return dict.fromkeys(tps, whole)
        return {
            (topic.name, each.partition_index): error_in(
                each.error_code,
                f"reassigning {topic.name}[{each.partition_index}]",
                each.error_message,
            )
            for topic in response.responses
            for each in topic.partitions
        }

    return PartCall(
        "reassigning partitions",
        build,
        read,
        changes=True,
        done_errors=frozenset({"NO_REASSIGNMENT_IN_PROGRESS"}),
    )


def list_reassignments_request(
    tps: Iterable[TopicPartition] | None, timeout_ms: int
) -> ListPartitionReassignmentsRequest:
    """Returns the request for the reassignments of partitions; None means all partitions."""
    topics = None
    if tps is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic(tps).items()
        ]
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)


def listed_reassignments(
    response: ListPartitionReassignmentsResponse,
) -> dict[TopicPartition, PartitionReassignment] | KprotoError:
    """Returns the reassignments of a response by partition, or its error."""
    return outcome(
        response.error_code,
        "listing reassignments",
        response.error_message,
        {
            (topic.name, each.partition_index): PartitionReassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        },
    )
