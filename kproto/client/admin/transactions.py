"""Describes, lists, aborts and fences transactions: requests and results as plain data.

ListTransactions (66), DescribeTransactions (65), WriteTxnMarkers (27, KIP-664) and InitProducerId
(22, KIP-588). `producers` has DescribeProducers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...messages.describe_transactions_request import DescribeTransactionsRequest
from ...messages.describe_transactions_response import DescribeTransactionsResponse
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...messages.list_transactions_request import ListTransactionsRequest
from ...messages.list_transactions_response import ListTransactionsResponse
from ...messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ...messages.write_txn_markers_response import WriteTxnMarkersResponse
from ...wire.errors import ConfigurationError, KprotoError, ProtocolError
from ..metadata.cluster import TopicPartition
from .calls import PartCall, error_in, outcome

__all__ = [
    "AbortTransactionSpec",
    "ProducerIdAndEpoch",
    "TransactionDescription",
    "TransactionListing",
    "abort_request",
    "aborted",
    "describe_transactions_call",
    "fence_request",
    "fenced",
    "list_transactions_request",
    "listed_transactions",
]


class TransactionListing(NamedTuple):
    """A transactional id; `state` is a state such as "Ongoing" or "CompleteCommit".

    `coordinator` is the node id of its coordinator.
    """

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int | None = None


class TransactionDescription(NamedTuple):
    """The state of a transactional id; `coordinator` is a node id.

    `started_ms` is the start of the transaction in ms since 1970; None if there was none.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]
    coordinator: int | None = None


class AbortTransactionSpec(NamedTuple):
    """An open transaction of a partition, as `describe_producers` shows it.

    `coordinator_epoch` is the epoch of the last marker, -1 if there is none.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = -1


class ProducerIdAndEpoch(NamedTuple):
    """The producer id and the epoch that a fenced transactional id has now."""

    producer_id: int
    epoch: int


def list_transactions_request(
    states: Iterable[str],
    producer_ids: Iterable[int],
    running_longer_than_ms: int,
    pattern: str | None,
) -> ListTransactionsRequest:
    """Returns the request for transactional ids; the duration -1 and the pattern None match all."""
    return ListTransactionsRequest(
        state_filters=states,
        producer_id_filters=producer_ids,
        duration_filter=running_longer_than_ms,
        transactional_id_pattern=pattern,
    )


def listed_transactions(
    response: ListTransactionsResponse,
) -> list[TransactionListing] | KprotoError:
    """Returns the transactional ids of a broker, or the error of the response.

    Returns ConfigurationError for a state that the broker does not know.
    """
    if response.unknown_state_filters:
        unknown = ", ".join(map(repr, response.unknown_state_filters))
        return ConfigurationError(f"the broker knows no state of transactions {unknown}")
    return outcome(
        response.error_code,
        "listing transactions",
        None,
        [
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ],
    )


def describe_transactions_call() -> PartCall[str, TransactionDescription]:
    """Returns the call that describes transactional ids."""

    def read(
        response: DescribeTransactionsResponse, ids: Sequence[str]
    ) -> dict[str, TransactionDescription | KprotoError]:
        return {
            each.transactional_id: outcome(
                each.error_code,
                f"describing transactional id {each.transactional_id!r}",
                None,
                TransactionDescription(
                    each.transactional_id,
                    each.transaction_state,
                    each.producer_id,
                    each.producer_epoch,
                    each.transaction_timeout_ms,
                    each.transaction_start_time_ms if each.transaction_start_time_ms >= 0 else None,
                    tuple((topic.topic, at) for topic in each.topics for at in topic.partitions),
                ),
            )
            for each in response.transaction_states
        }

    return PartCall(
        "describing transactions",
        build=lambda ids, left_ms: DescribeTransactionsRequest(transactional_ids=ids),
        read=read,
        parts_of=lambda request: request.transactional_ids,
        with_broker=lambda found, node: found._replace(coordinator=node),
    )


def abort_request(spec: AbortTransactionSpec) -> WriteTxnMarkersRequest:
    """Returns the request that writes an abort marker into one partition."""
    topic = WritableTxnMarkerTopic(name=spec.topic, partition_indexes=[spec.partition])
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=spec.producer_id,
                producer_epoch=spec.producer_epoch,
                coordinator_epoch=max(spec.coordinator_epoch, 0),
                transaction_result=False,
                topics=[topic],
            )
        ]
    )


def aborted(response: WriteTxnMarkersResponse, spec: AbortTransactionSpec) -> KprotoError | None:
    """Returns the error of a response, None if the marker was written."""
    action = (
        f"aborting the transaction of producer {spec.producer_id} in {spec.topic}[{spec.partition}]"
    )
    for marker in response.markers:
        for topic in marker.topics:
            for each in topic.partitions:
                return error_in(each.error_code, action)
    return ProtocolError(f"{action}: the response to WriteTxnMarkers lacks the partition")


def fence_request(transactional_id: str, timeout_ms: int) -> InitProducerIdRequest:
    """Returns the request that fences the producers of a transactional id.

    `timeout_ms` is the transaction timeout of the id until a producer sets another.
    """
    return InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )


def fenced(
    response: InitProducerIdResponse, transactional_id: str
) -> ProducerIdAndEpoch | KprotoError:
    """Returns the `ProducerIdAndEpoch` of a response, or its error."""
    return outcome(
        response.error_code,
        f"fencing the producers of {transactional_id!r}",
        None,
        ProducerIdAndEpoch(response.producer_id, response.producer_epoch),
    )
