"""Sends the requests of transactional id tx, whose producer id is 0, over a socket."""

from __future__ import annotations

from typing import Any

from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.protocol.error_codes import error_code
from tests.support.batches import batch_bytes
from tests.support.embedded import ThreadedBroker
from tests.support.raw_connection import RawConnection

__all__ = ["add", "end", "error", "init", "name", "produce", "state"]


def name(code: int) -> str:
    return error_code(code).name


def error(answer: Any) -> str:
    return name(answer.error_code)


def init(
    connection: RawConnection, version: int = 5, transactional_id: str | None = "tx", **fields: Any
) -> tuple[str, int, int]:
    request = InitProducerIdRequest(
        **{"transactional_id": transactional_id, "transaction_timeout_ms": 60_000, **fields}
    )
    answer = connection.exchange(request, version)
    return error(answer), answer.producer_id, answer.producer_epoch


def add(
    connection: RawConnection,
    version: int = 3,
    *partitions: tuple[str, int],
    transactional_id: str = "tx",
    epoch: int = 0,
    producer_id: int = 0,
    verify_only: bool = False,
) -> dict[str, str]:
    """Sends AddPartitionsToTxn; returns the error of each partition."""
    topics = [
        AddPartitionsToTxnTopic(
            name=topic, partitions=[index for name, index in partitions if name == topic]
        )
        for topic in dict.fromkeys(topic for topic, _ in partitions)
    ]
    if version < 4:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        results = connection.exchange(request, version).results_by_topic_v3_and_below
    else:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=topics,
        )
        answer = connection.exchange(AddPartitionsToTxnRequest(transactions=[transaction]), version)
        assert error(answer) == "NONE"
        (result,) = answer.results_by_transaction
        assert result.transactional_id == transactional_id
        results = result.topic_results
    return {
        f"{topic.name}-{it.partition_index}": name(it.partition_error_code)
        for topic in results
        for it in topic.results_by_partition
    }


def produce(
    broker: ThreadedBroker,
    connection: RawConnection,
    version: int = 12,
    *,
    topic: str = "t",
    epoch: int = 0,
    sequence: int = 0,
    transactional_id: str | None = "tx",
    is_transactional: bool = True,
) -> str:
    records = batch_bytes(
        producer_id=0,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )
    named: dict[str, Any] = {"name": topic}
    if version >= 13:
        named = {"topic_id": broker.topic_id(topic)}
    request = ProduceRequest(
        acks=-1,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(partition_data=[PartitionProduceData(records=records)], **named)
        ],
    )
    ((found,),) = (it.partition_responses for it in connection.exchange(request, version).responses)
    return error(found)


def end(connection: RawConnection, version: int = 4, epoch: int = 0, **fields: Any) -> Any:
    given = {
        "transactional_id": "tx",
        "producer_id": 0,
        "producer_epoch": epoch,
        "committed": True,
        **fields,
    }
    return connection.exchange(EndTxnRequest(**given), version)


def state(connection: RawConnection) -> str:
    request = DescribeTransactionsRequest(transactional_ids=["tx"])
    (found,) = connection.exchange(request, 0).transaction_states
    return found.transaction_state or error(found)
