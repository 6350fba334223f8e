"""AddPartitionsToTxn (24), v0 to v5.

v0      adds partitions to the transaction of a producer (KIP-98)
v2      PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH in its place
v3      flexible
v4      for brokers: many transactions in one request, and a flag to verify only (KIP-890)
v5      TRANSACTION_ABORTABLE

If a partition does not exist, or the client may not write to its topic, no partition is added, and
the partitions without an error get OPERATION_NOT_ATTEMPTED. Versions from 4 on need CLUSTER_ACTION.

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ...messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnPartitionResultCollection,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTopicResultCollection,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows_cluster, check
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..groups.committed_offsets import TopicPartition
from ..registry import handles
from ..transactions.transaction_decisions import ProducerIdAndEpoch
from ..transactions.transaction_errors import code_known_to

_FIRST_VERSION_OF_BROKERS: Final = 4
_FIRST_VERSION_OF_FENCED: Final = 2
_NONE: Final = code_of("NONE")

#: The error code of each partition.
_Codes = dict[TopicPartition, int]


@handles(AddPartitionsToTxnRequest, versions=range(6))
def add_partitions_to_txn(
    context: Context, request: AddPartitionsToTxnRequest, version: int
) -> AddPartitionsToTxnResponse | None:
    """Adds the partitions of each transaction, or verifies them.

    As in Kafka, a request of v4 or later without transactions has no response.
    """
    if version < _FIRST_VERSION_OF_BROKERS:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        codes = _codes(context, transaction, version)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(codes))
    if not allows_cluster(context, Operation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(
            error_code=code_of(AUTHORIZATION_ERRORS[ResourceType.CLUSTER])
        )
    if not request.transactions:
        return None
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=_results(_codes(context, each, version)),
            )
            for each in request.transactions
        ]
    )


def _codes(context: Context, transaction: AddPartitionsToTxnTransaction, version: int) -> _Codes:
    partitions = [
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    ]
    transactional_id = transaction.transactional_id
    try:
        if version < _FIRST_VERSION_OF_BROKERS:
            check(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    except BrokerResponseError as error:
        return dict.fromkeys(partitions, error.code)
    wrong = _wrong_partitions(context, transaction.topics, version)
    if wrong:
        not_attempted = code_of("OPERATION_NOT_ATTEMPTED")
        return {tp: wrong.get(tp, not_attempted) for tp in partitions}
    try:
        return _added(context, transaction, partitions)
    except BrokerResponseError as error:
        return dict.fromkeys(partitions, code_known_to(error, version, _FIRST_VERSION_OF_FENCED))


def _wrong_partitions(
    context: Context, topics: Iterable[AddPartitionsToTxnTopic], version: int
) -> _Codes:
    """Returns the error codes of the partitions that do not exist or may not be written to."""
    wrong: _Codes = {}
    for topic in topics:
        for index in topic.partitions:
            try:
                if version < _FIRST_VERSION_OF_BROKERS:
                    check(context, Operation.WRITE, ResourceType.TOPIC, topic.name)
                found = context.cluster.topics.named(topic.name)
                if found.is_internal and version < _FIRST_VERSION_OF_BROKERS:
                    raise api_error(
                        AUTHORIZATION_ERRORS[ResourceType.TOPIC], "the topic is internal"
                    )
                found.partition(index)
            except BrokerResponseError as error:
                wrong[TopicPartition(topic.name, index)] = error.code
    return wrong


def _added(
    context: Context, transaction: AddPartitionsToTxnTransaction, partitions: list[TopicPartition]
) -> _Codes:
    """Adds or verifies partitions; returns their error codes.

    Raises INVALID_REQUEST, NOT_COORDINATOR, and the errors of the coordinator.
    """
    coordinator = context.transaction_coordinator
    transactional_id = transaction.transactional_id
    if not transactional_id:
        raise api_error("INVALID_REQUEST", "the transactional id is empty")
    coordinator.check_coordinator(context.node_id, transactional_id)
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    now = context.now
    if not transaction.verify_only:
        coordinator.add_partitions(transactional_id, producer, frozenset(partitions), now, 0)
        return dict.fromkeys(partitions, _NONE)
    codes: _Codes = {}
    for tp in partitions:
        try:
            coordinator.verify_partition(transactional_id, producer, tp, now)
            codes[tp] = _NONE
        except BrokerResponseError as error:
            if error.name != "TRANSACTION_ABORTABLE":
                raise
            codes[tp] = error.code
    return codes


def _results(codes: _Codes) -> AddPartitionsToTxnTopicResultCollection:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for tp, code in codes.items():
        by_topic.setdefault(tp.topic, []).append(
            AddPartitionsToTxnPartitionResult(
                partition_index=tp.partition, partition_error_code=code
            )
        )
    return AddPartitionsToTxnTopicResultCollection(
        AddPartitionsToTxnTopicResult(
            name=name,
            results_by_partition=AddPartitionsToTxnPartitionResultCollection(results),
        )
        for name, results in by_topic.items()
    )
