"""DescribeProducers (61), v0 to v0.

v0      the active producers of partitions, with their epochs, sequences and transactions (KIP-664)

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_producers_request import DescribeProducersRequest
from ...messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from ...messages.describe_producers_response import ProducerState as DescribedProducer
from ...wire.errors import BrokerResponseError
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import handles
from ..storage.partition import Partition

_NONE: Final = -1


@handles(DescribeProducersRequest, versions=range(1))
def describe_producers(
    context: Context, request: DescribeProducersRequest, _version: int
) -> DescribeProducersResponse:
    """Returns the producers of each partition that the node leads."""
    context.transaction_coordinator.advance(context.now)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _partition(context, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(context: Context, name: str, index: int) -> PartitionResponse:
    try:
        check(context, Operation.READ, ResourceType.TOPIC, name)
        topic = context.cluster.topics.named(name)
        topic.check_leader(index, context.node_id)
        partition = topic.partition(index)
        expiration_ms = topic.config_at(context.node_id).producer_id_expiration_ms
        partition.producer_states.expire(context.clock.now_ms() - expiration_ms)
    except BrokerResponseError as error:
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=error.detail
        )
    return PartitionResponse(partition_index=index, active_producers=_producers(partition))


def _producers(partition: Partition) -> list[DescribedProducer]:
    found = []
    for producer_id, producer in partition.producer_states.producers.items():
        last = producer.batches[-1] if producer.batches else None
        found.append(
            DescribedProducer(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=_NONE if last is None else last.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=_NONE
                if producer.txn_first_offset is None
                else producer.txn_first_offset,
            )
        )
    return found
