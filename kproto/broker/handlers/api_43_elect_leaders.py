"""ElectLeaders (43), v0 to v2.

v0      elects the preferred replicas as leaders (KIP-183)
v1      unclean elections, an error code for the whole request (KIP-460)
v2      flexible

A preferred election makes the first replica of a partition the leader. An unclean election makes a
live replica the leader if the partition has none. A request without partitions elects leaders of
all partitions, and its response omits partitions that need no election. The request requires ALTER
on the cluster.

Left out: the timeout of the request, because leaders are elected at once; the loss of records by an
unclean election, because all replicas share one log.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ...messages.elect_leaders_request import ElectLeadersRequest
from ...messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..leader_and_isr import LeaderAndIsr
from ..leader_election import elect_preferred, elect_unclean
from ..registry import handles

_NOT_NEEDED: Final = code_of("ELECTION_NOT_NEEDED")

_Elect = Callable[[LeaderAndIsr, Container[int]], LeaderAndIsr]

#: The election of each election type.
_ELECTIONS: Final[Mapping[int, _Elect]] = MappingProxyType({0: elect_preferred, 1: elect_unclean})


@handles(ElectLeadersRequest, versions=range(3))
def elect_leaders(
    context: Context, request: ElectLeadersRequest, version: int
) -> ElectLeadersResponse:
    """Elects leaders, and returns an error code for each partition."""
    requested = request.topic_partitions
    try:
        check_cluster(context, Operation.ALTER)
        elect = _ELECTIONS.get(request.election_type)
        if elect is None:
            raise api_error("INVALID_REQUEST", f"unknown election type {request.election_type}")
    except BrokerResponseError as error:
        return _refused(request, error)
    if requested is not None:
        return ElectLeadersResponse(
            replica_election_results=[
                ReplicaElectionResult(
                    topic=each.topic,
                    partition_result=_results(context, each.topic, each.partitions, elect),
                )
                for each in requested
            ]
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.name,
                partition_result=[
                    result
                    for result in _results(context, topic.name, range(len(topic.partitions)), elect)
                    if result.error_code != _NOT_NEEDED
                ],
            )
            for topic in context.cluster.topics
        ]
    )


def _results(
    context: Context, topic: str, partitions: Iterable[int], elect: _Elect
) -> list[PartitionResult]:
    results = []
    for index in partitions:
        result = PartitionResult(partition_id=index, error_message=None)
        try:
            _elect(context, topic, index, elect)
        except BrokerResponseError as error:
            result.error_code, result.error_message = error.code, error.detail
        results.append(result)
    return results


def _elect(context: Context, name: str, index: int, elect: _Elect) -> None:
    topic = context.cluster.topics.get(name)
    if topic is None:
        raise api_error("UNKNOWN_TOPIC_OR_PARTITION", f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        raise api_error("UNKNOWN_TOPIC_OR_PARTITION", f"No such partition as {name}-{index}")
    context.cluster.update_leader_and_isr(topic, index, elect)


def _refused(request: ElectLeadersRequest, error: BrokerResponseError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=index, error_code=error.code, error_message=error.detail
                    )
                    for index in each.partitions
                ],
            )
            for each in request.topic_partitions or ()
        ],
    )
