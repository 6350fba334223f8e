"""Describes the producers of partitions: request and result as plain data.

DescribeProducers (61, KIP-664).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from ...messages.describe_producers_response import DescribeProducersResponse
from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition
from .calls import PartCall, by_topic, outcome

__all__ = ["ProducerState", "describe_producers_call"]


class ProducerState(NamedTuple):
    """A producer that has written to a partition.

    `transaction_start_offset` is None without an open transaction, and `coordinator_epoch` without
    a marker. `last_timestamp_ms` is the time of its last batch; -1 if it is unknown.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


def describe_producers_call() -> PartCall[TopicPartition, tuple[ProducerState, ...]]:
    """Returns the call that describes the producers of partitions."""

    def build(tps: Sequence[TopicPartition], left_ms: int) -> DescribeProducersRequest:
        return DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=partitions)
                for topic, partitions in by_topic(tps).items()
            ]
        )

    def read(
        response: DescribeProducersResponse, tps: Sequence[TopicPartition]
    ) -> dict[TopicPartition, tuple[ProducerState, ...] | KprotoError]:
        return {
            (topic.name, each.partition_index): outcome(
                each.error_code,
                f"describing the producers of {topic.name}[{each.partition_index}]",
                each.error_message,
                tuple(
                    ProducerState(
                        it.producer_id,
                        it.producer_epoch,
                        it.last_sequence,
                        it.last_timestamp,
                        it.coordinator_epoch if it.coordinator_epoch >= 0 else None,
                        it.current_txn_start_offset if it.current_txn_start_offset >= 0 else None,
                    )
                    for it in each.active_producers
                ),
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return PartCall(
        "describing producers",
        build,
        read,
        parts_of=lambda request: [
            (topic.name, at) for topic in request.topics for at in topic.partition_indexes
        ],
        awaits_topics=True,
    )
