"""Tests faults of the requests of transactions: error codes, lost responses, and their effects."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import Broker, ErrorCode, LoseResponses
from kproto.broker.groups import ClockReading
from kproto.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.base import Request
from kproto.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.list_transactions_request import ListTransactionsRequest
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.write_txn_markers_request import WriteTxnMarkersRequest
from kproto.protocol.error_codes import error_code
from tests.support.embedded import ThreadedBroker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.unit.broker.raw_transactions import add, end, error, init, produce, state

LOADING = "COORDINATOR_LOAD_IN_PROGRESS"

#: A transaction in a request of a broker.
OF_BROKERS = AddPartitionsToTxnTransaction(
    transactional_id="tx", topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])]
)


@pytest.fixture(autouse=True)
def _topics(broker: ThreadedBroker, connection: RawConnection) -> None:
    """Creates topic t of two partitions and topic u, and the coordinators of tx and group g."""
    broker.call(lambda it: (it.create_topic("t", partitions=2), it.create_topic("u")))
    connection.exchange(FindCoordinatorRequest(key="g"), 0)
    connection.exchange(FindCoordinatorRequest(key="tx", key_type=1), 1)


def name(code: int) -> str:
    return error_code(code).name


def txn_offset_commit(*partitions: tuple[str, int]) -> TxnOffsetCommitRequest:
    topics = [
        TxnOffsetCommitRequestTopic(
            name=topic,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=5, committed_metadata=""
                )
            ],
        )
        for topic, index in partitions
    ]
    return TxnOffsetCommitRequest(
        transactional_id="tx", group_id="g", producer_id=0, producer_epoch=0, topics=topics
    )


def epoch(broker: Broker) -> int:
    """Returns the producer epoch of transactional id tx."""
    metadata = broker._cluster.transaction_coordinator.find("tx", ClockReading(0, 0))
    assert metadata is not None
    return metadata.epoch


def partitions_of_transaction(connection: RawConnection) -> list[str]:
    request = DescribeTransactionsRequest(transactional_ids=["tx"])
    (found,) = connection.exchange(request, 0).transaction_states
    return [f"{topic.topic}-{index}" for topic in found.topics for index in topic.partitions]


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        *((InitProducerIdRequest(transactional_id="tx"), version) for version in range(6)),
        *(
            (AddOffsetsToTxnRequest(transactional_id="tx", group_id="g"), version)
            for version in AddOffsetsToTxnRequest.VALID_VERSIONS
        ),
        *(
            (EndTxnRequest(transactional_id="tx"), version)
            for version in EndTxnRequest.VALID_VERSIONS
        ),
        *((AddPartitionsToTxnRequest(transactions=[OF_BROKERS]), version) for version in (4, 5)),
        *(
            (ListTransactionsRequest(), version)
            for version in ListTransactionsRequest.VALID_VERSIONS
        ),
    ],
    ids=lambda it: type(it).__name__ if isinstance(it, Request) else f"v{it}",
)
def test_error_code_is_at_the_top_level(
    broker: ThreadedBroker, connection: RawConnection, request_: Request[Any], version: int
) -> None:
    broker.call(lambda it: it.control(ErrorCode(LOADING), request=type(request_)))
    assert error(connection.exchange(request_, version)) == LOADING
    assert state(connection) == "TRANSACTIONAL_ID_NOT_FOUND", "the request has no effect"


@pytest.mark.parametrize("version", range(4))
def test_error_code_of_added_partitions(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    init(connection)
    broker.call(lambda it: it.control(ErrorCode(LOADING), request=AddPartitionsToTxnRequest))
    found = add(connection, version, ("t", 0), ("t", 1), ("u", 0))
    assert found == {"t-0": LOADING, "t-1": LOADING, "u-0": LOADING}
    assert state(connection) == "Empty"
    wrong = {"t": [1]}
    broker.call(
        lambda it: it.control(ErrorCode(LOADING, topics=wrong), request=AddPartitionsToTxnRequest)
    )
    found = add(connection, version, ("t", 0), ("t", 1), ("u", 0))
    assert found == {"t-0": "NONE", "t-1": LOADING, "u-0": "NONE"}
    assert partitions_of_transaction(connection) == ["t-0", "u-0"]


def test_error_code_of_the_whole_request_from_brokers(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    init(connection)
    broker.call(lambda it: it.control(ErrorCode(LOADING), request=AddPartitionsToTxnRequest))
    answer = connection.exchange(AddPartitionsToTxnRequest(transactions=[OF_BROKERS]), 5)
    assert (error(answer), answer.results_by_transaction) == (LOADING, [])


@pytest.mark.parametrize("version", [5])
def test_error_code_of_committed_offsets(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    init(connection)
    broker.call(
        lambda it: it.control(ErrorCode(LOADING, topics={"t": [1]}), request=TxnOffsetCommitRequest)
    )
    answer = connection.exchange(txn_offset_commit(("t", 0), ("t", 1), ("u", 0)), version)
    found = {
        (topic.name, it.partition_index): error(it)
        for topic in answer.topics
        for it in topic.partitions
    }
    assert found == {("t", 0): "NONE", ("t", 1): LOADING, ("u", 0): "NONE"}


def test_error_code_of_described_partitions_and_ids(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    broker.call(lambda it: it.control(ErrorCode(LOADING), request=DescribeProducersRequest))
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0, 1])])
    (topic,) = connection.exchange(request, 0).topics
    assert [error(it) for it in topic.partitions] == [LOADING, LOADING]
    init(connection)
    broker.call(
        lambda it: it.control(
            ErrorCode(LOADING, topics=["other"]), request=DescribeTransactionsRequest
        )
    )
    wanted = DescribeTransactionsRequest(transactional_ids=["tx", "other"])
    found = connection.exchange(wanted, 0).transaction_states
    assert {it.transactional_id: error(it) for it in found} == {"tx": "NONE", "other": LOADING}


def test_write_txn_markers_needs_a_control_function(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    control = broker.call(lambda it: it.control(ErrorCode(LOADING), request=WriteTxnMarkersRequest))
    with pytest.raises(ClosedByBrokerError):
        connection.exchange(WriteTxnMarkersRequest(), 1)
    assert "cannot set an error code in the response to WriteTxnMarkersRequest v1" in str(
        control.fault
    )


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [4, 5])
def test_end_is_repeated_after_a_lost_response(
    broker: ThreadedBroker, connection: RawConnection, version: int, *, commit: bool
) -> None:
    init(connection)
    add(connection, 3, ("t", 0))
    assert produce(broker, connection) == "NONE"
    broker.call(lambda it: it.control(LoseResponses(), request=EndTxnRequest, times=1))
    request = EndTxnRequest(
        transactional_id="tx", producer_id=0, producer_epoch=0, committed=commit
    )
    with RawConnection(broker.bootstrap) as other:
        other.send(request, version)
        broker.until(lambda it: it.end_offset("t") == 2)
    assert state(connection) == ("CompleteCommit" if commit else "CompleteAbort")
    answer = end(connection, version, committed=commit)
    bumped = (0, 1) if version >= 5 else (-1, -1)
    assert (error(answer), answer.producer_id, answer.producer_epoch) == ("NONE", *bumped)
    assert broker.call(lambda it: it.end_offset("t")) == 2, "the marker is not written again"


def test_init_is_repeated_after_a_lost_response(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    assert init(connection) == ("NONE", 0, 0)
    broker.call(lambda it: it.control(LoseResponses(), request=InitProducerIdRequest, times=1))
    request = InitProducerIdRequest(
        transactional_id="tx", transaction_timeout_ms=60_000, producer_id=0, producer_epoch=0
    )
    with RawConnection(broker.bootstrap) as other:
        other.send(request, 5)
        broker.until(lambda it: epoch(it) == 1)
    assert init(connection, producer_id=0, producer_epoch=0) == ("NONE", 0, 1)
    assert init(connection) == ("NONE", 0, 2), "without an epoch it is no repetition"
