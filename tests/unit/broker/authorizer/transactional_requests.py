"""Builds requests of transactional id tx, one per required operation, and reads the results."""

from __future__ import annotations

from typing import Any, Final

from kproto.broker.context import Context
from kproto.broker.groups.committed_offsets import TopicPartition
from kproto.broker.groups.group_coordinator import OFFSETS_TOPIC
from kproto.broker.transactions.transaction_decisions import ProducerIdAndEpoch
from kproto.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.list_transactions_request import ListTransactionsRequest
from kproto.messages.produce_request import ProduceRequest
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.batches import batch_bytes
from tests.unit.broker.authorizer.authorized_requests import (
    HIDDEN,
    SEEN,
    error,
    named,
    produce,
    topic_id,
)

__all__ = [
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "describe_producers",
    "describe_transactions",
    "end_txn",
    "error_of_added_partition",
    "error_of_first_transaction",
    "error_of_marker",
    "list_transactions",
    "shown_topics_of_transaction",
    "shown_transactions",
    "transactional_produce",
    "txn_offset_commit",
    "write_txn_markers",
]

_FIRST_VERSION_OF_BROKERS: Final = 4
_FIRST_VERSION_BY_ID: Final = 6


def _begin(context: Context, topic: str = "t", partition: int = 0) -> ProducerIdAndEpoch:
    """Begins a transaction of id tx with one partition; returns the producer id and epoch."""
    coordinator, now = context.transaction_coordinator, context.now
    producer = coordinator.init_producer_id("tx", 60_000, None, now).producer
    added = frozenset({TopicPartition(topic, partition)})
    coordinator.add_partitions("tx", producer, added, now, 0)
    return producer


def transactional_produce(context: Context, version: int) -> ProduceRequest:
    producer = _begin(context)
    records = batch_bytes(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        is_transactional=True,
    )
    request = produce(records, "tx")(context, version)
    assert isinstance(request, ProduceRequest)
    return request


def add_partitions_to_txn(context: Context, version: int) -> AddPartitionsToTxnRequest:
    producer = _begin(context)
    topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
    if version < _FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=topics,
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def error_of_added_partition(answer: Any) -> str:
    if answer.error_code:
        return error(answer)
    topics = answer.results_by_topic_v3_and_below
    if answer.results_by_transaction:
        topics = answer.results_by_transaction[0].topic_results
    return named(topics[0].results_by_partition[0].partition_error_code)


def add_offsets_to_txn(context: Context, version: int) -> AddOffsetsToTxnRequest:
    producer = _begin(context)
    return AddOffsetsToTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id="g",
    )


def end_txn(context: Context, version: int) -> EndTxnRequest:
    producer = _begin(context)
    return EndTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=True,
    )


def write_txn_markers(context: Context, version: int) -> WriteTxnMarkersRequest:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0])
    marker = WritableTxnMarker(producer_id=1, producer_epoch=0, topics=[topic])
    return WriteTxnMarkersRequest(markers=[marker])


def error_of_marker(answer: Any) -> str:
    return named(answer.markers[0].topics[0].partitions[0].error_code)


def txn_offset_commit(context: Context, version: int) -> TxnOffsetCommitRequest:
    partition = context.group_coordinator.partition("g")
    assert partition is not None
    producer = _begin(context, OFFSETS_TOPIC, partition.index)
    name: dict[str, Any] = {"name": "t"}
    if version >= _FIRST_VERSION_BY_ID:
        name = {"topic_id": topic_id(context)}
    committed = TxnOffsetCommitRequestPartition(committed_offset=1)
    return TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(partitions=[committed], **name)],
    )


def describe_producers(context: Context, version: int) -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])


def describe_transactions(context: Context, version: int) -> DescribeTransactionsRequest:
    _begin(context)
    return DescribeTransactionsRequest(transactional_ids=["tx"])


def error_of_first_transaction(answer: Any) -> str:
    return error(answer.transaction_states[0])


def shown_topics_of_transaction(answer: Any) -> str:
    (transaction,) = answer.transaction_states
    if transaction.error_code:
        return error(transaction)
    return SEEN if transaction.topics else HIDDEN


def list_transactions(context: Context, version: int) -> ListTransactionsRequest:
    _begin(context)
    return ListTransactionsRequest()


def shown_transactions(answer: Any) -> str:
    return SEEN if answer.transaction_states else HIDDEN
