"""Answers the requests for the states of share partitions (83 to 87, KIP-932).

Brokers send these requests to the share coordinator. The client needs CLUSTER_ACTION; without it,
each partition gets the error. A request with an empty group id, or with a topic without partitions,
gets an empty response, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ...wire.errors import BrokerResponseError
from ...wire.uuid import Uuid
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..share import ShareCoordinator, SharePartitionKey

__all__ = ["share_state_results"]


class RequestedPartition(Protocol):
    """A partition of a request."""

    partition: int


class PartitionResult(Protocol):
    """The result of a partition, in a response."""

    error_code: int
    error_message: str | None


P = TypeVar("P", bound=RequestedPartition)
P_co = TypeVar("P_co", bound=RequestedPartition, covariant=True)
R = TypeVar("R", bound=PartitionResult)
R_co = TypeVar("R_co", bound=PartitionResult, covariant=True)
R_contra = TypeVar("R_contra", bound=PartitionResult, contravariant=True)
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class RequestedTopic(Protocol[P_co]):
    """A topic of a request."""

    @property
    def topic_id(self) -> Uuid: ...
    @property
    def partitions(self) -> Sequence[P_co]: ...


class ShareStateRequest(Protocol[P_co]):
    """A request with the API key 83, 84, 85, 86 or 87."""

    @property
    def group_id(self) -> str: ...
    @property
    def topics(self) -> Sequence[RequestedTopic[P_co]]: ...


class NewPartitionResult(Protocol[R_co]):
    """The class of the results of partitions."""

    def __call__(self, *, partition: int) -> R_co: ...


class NewTopicResult(Protocol[R_contra, T_co]):
    """The class of the results of topics."""

    def __call__(self, *, topic_id: Uuid, partitions: Sequence[R_contra]) -> T_co: ...


def share_state_results(
    context: Context,
    request: ShareStateRequest[P],
    new_topic_result: NewTopicResult[R, T],
    new_partition_result: NewPartitionResult[R],
    answer: Callable[[ShareCoordinator, SharePartitionKey, P, R], None],
) -> list[T]:
    """Returns the results of the topics of a request, each with an error code for each partition.

    `answer` reads or changes the state of one partition, and fills its result; its
    BrokerResponseError becomes the error code and error message of the partition.
    """
    denial: int | None = None
    try:
        check_cluster(context, Operation.CLUSTER_ACTION)
    except BrokerResponseError as error:
        denial = error.code
    is_complete = request.group_id and all(topic.partitions for topic in request.topics)
    if denial is None and not is_complete:
        return []
    coordinator = context.cluster.share_coordinator
    results: list[T] = []
    for topic in request.topics:
        partitions: list[R] = []
        for requested in topic.partitions:
            result = new_partition_result(partition=requested.partition)
            partitions.append(result)
            if denial is not None:
                result.error_code = denial
                continue
            key = SharePartitionKey(request.group_id, topic.topic_id, requested.partition)
            try:
                coordinator.check_coordinator(context.node_id, key)
                answer(coordinator, key, requested, result)
            except BrokerResponseError as error:
                result.error_code, result.error_message = error.code, error.detail
        results.append(new_topic_result(topic_id=topic.topic_id, partitions=partitions))
    return results
