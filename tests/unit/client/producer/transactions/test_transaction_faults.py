"""Tests transactions under faults of the broker: each error code of each API, lost responses.

After each test the coordinator has no open transaction, and only committed records are read.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from kproto import (
    Client,
    Delivery,
    DeliveryError,
    FatalTransactionError,
    KprotoError,
    Producer,
    ProducerFencedError,
    Transaction,
    TransactionAbortedError,
)
from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.broker.faults import Close, ControlFunction, CutFrame, Delay, ErrorCode
from kproto.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kproto.messages.base import Request
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    committed,
    scene,
    state_of,
)
from tests.unit.client.scripted_broker import quick

#: The requests of a transaction in the order in which they are sent.
REQUESTS: tuple[type[Request[Any]], ...] = (
    FindCoordinatorRequest,
    InitProducerIdRequest,
    AddPartitionsToTxnRequest,
    ProduceRequest,
    AddOffsetsToTxnRequest,
    TxnOffsetCommitRequest,
    EndTxnRequest,
)

#: The requests that a client sends only before transaction version 2.
ONLY_IN_VERSION_1 = (AddPartitionsToTxnRequest, AddOffsetsToTxnRequest)


async def run_transaction(producer: Producer, *values: bytes, offset: int = 0) -> None:
    """Sends values and commits an offset in one transaction."""
    async with producer.transaction() as transaction:
        for value in values:
            await producer.send("t", value)
        if offset:
            await transaction.commit_offsets({("t", 0): offset}, group_id="g")


async def committed_offset(client: Client) -> int | None:
    """Returns the committed offset of the group `g`."""
    async with client.consumer([("t", 0)], group="g", auto_commit=False) as consumer:
        found = (await consumer.committed(("t", 0)))["t", 0]
        return None if found is None else found.offset


# --- Faults that pass ---


def lose_request(request: ReceivedRequest) -> Close:
    """Closes the connection before the request is handled."""
    return Close()


FAULTS: dict[str, list[ControlFunction]] = {
    "response lost": [CutFrame(0)],
    "request lost": [lose_request],
    "twice lost": [CutFrame(0), CutFrame(0)],
    "both": [CutFrame(0), lose_request],
}


@BOTH_VERSIONS
@pytest.mark.parametrize("request_class", REQUESTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("fault", FAULTS)
async def test_lost_request_or_response_is_repeated(
    version: int, request_class: type[Request[Any]], fault: str
) -> None:
    async with scene(version) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            await run_transaction(producer, b"1", offset=1)
        for outcome in FAULTS[fault]:
            broker.control(outcome, request=request_class, times=1)
        async with client.producer(transactional_id=ID) as producer:
            await run_transaction(producer, b"2", b"3", offset=3)
            await run_transaction(producer, b"4", offset=4)
        assert await committed(client) == [b"1", b"2", b"3", b"4"]
        assert await committed_offset(client) == 4
        assert await state_of(client) == "CompleteCommit"


@BOTH_VERSIONS
@pytest.mark.parametrize("request_class", REQUESTS, ids=lambda each: each.__name__)
async def test_lost_response_before_an_abort_leaves_nothing_open(
    version: int, request_class: type[Request[Any]]
) -> None:
    async with scene(version) as (broker, client):
        broker.control(CutFrame(0), request=request_class, times=1)
        async with client.producer(transactional_id=ID) as producer:

            async def block() -> None:
                async with producer.transaction() as transaction:
                    await producer.send("t", b"1")
                    await transaction.commit_offsets({("t", 0): 1}, group_id="g")
                    raise ValueError("x")

            with pytest.raises(ValueError, match="x"):
                await block()
            assert await state_of(client) == "CompleteAbort"
            await run_transaction(producer, b"2", offset=2)
        assert await committed(client) == [b"2"]
        assert await committed_offset(client) == 2


RETRIED = {
    FindCoordinatorRequest: ["COORDINATOR_NOT_AVAILABLE"],
    InitProducerIdRequest: [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
    ],
    AddPartitionsToTxnRequest: [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ],
    ProduceRequest: ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"],
    AddOffsetsToTxnRequest: ["NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS"],
    TxnOffsetCommitRequest: [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ],
    EndTxnRequest: [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
    ],
}


@BOTH_VERSIONS
@pytest.mark.parametrize(
    ("request_class", "name"),
    [(each, name) for each, names in RETRIED.items() for name in names],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
async def test_retriable_error_is_retried(
    version: int, request_class: type[Request[Any]], name: str
) -> None:
    async with scene(version) as (broker, client):
        broker.control(ErrorCode(name, 2), request=request_class)
        async with client.producer(transactional_id=ID) as producer:
            await run_transaction(producer, b"1", b"2", offset=2)
            await run_transaction(producer, b"3", offset=3)
        assert await committed(client) == [b"1", b"2", b"3"]
        assert await committed_offset(client) == 3


@BOTH_VERSIONS
async def test_coordinator_that_moves_between_all_requests(version: int) -> None:
    async with scene(version, nodes=3) as (cluster, client):
        assert isinstance(cluster, Cluster)
        topic = "__transaction_state"
        moves = 0

        def move(request: ReceivedRequest) -> None:
            nonlocal moves
            if request.name in names and topic in cluster.topics:
                moves += 1
                for partition in range(len(cluster.topics[topic].partitions)):
                    leader = cluster.leader(topic, partition)
                    if moves % 3 != 2:  # otherwise no request would ever reach its coordinator
                        cluster.move_leader(topic, partition, (leader + 1) % 3)

        names = {each.__name__ for each in REQUESTS[1:]}
        async with client.producer(transactional_id=ID) as producer:
            cluster.control(move)
            for number in range(4):
                await run_transaction(producer, b"%d" % number, offset=number + 1)
        assert await committed(client) == [b"0", b"1", b"2", b"3"]
        assert await committed_offset(client) == 4
        assert moves > 8


@BOTH_VERSIONS
async def test_broker_that_restarts_in_the_middle_of_a_transaction(version: int) -> None:
    async with scene(version, nodes=3) as (cluster, client):
        assert isinstance(cluster, Cluster)
        async with client.producer(transactional_id=ID) as producer:
            await run_transaction(producer, b"1")
            async with producer.transaction():
                await producer.send("t", b"2")
                node = cluster.coordinator(ID, "transaction")
                await cluster.stop_broker(node)
                await producer.send("t", b"3")
            await cluster.start_broker(node)
            await run_transaction(producer, b"4")
        assert await committed(client) == [b"1", b"2", b"3", b"4"]


@BOTH_VERSIONS
async def test_batches_in_flight_keep_their_order_through_retries(version: int) -> None:
    async with scene(version) as (broker, client):
        async with client.producer(transactional_id=ID, batch_bytes=200) as producer:
            await run_transaction(producer, b"first")
            broker.control(ErrorCode("NOT_LEADER_OR_FOLLOWER", 4), request=ProduceRequest)
            broker.control(CutFrame(0), request=ProduceRequest, times=1)
            values = [b"%d" % at * 50 for at in range(10)]
            async with producer.transaction():
                await asyncio.gather(*(producer.send("t", value) for value in values))
        assert await committed(client) == [b"first", *values]


# --- Errors that abort ---

ABORTABLE = {
    ProduceRequest: [
        "UNKNOWN_PRODUCER_ID",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "TRANSACTION_ABORTABLE",
        "INVALID_TXN_STATE",
        "INVALID_PRODUCER_EPOCH",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_RECORD",
        "UNKNOWN_SERVER_ERROR",
    ],
    TxnOffsetCommitRequest: [
        "GROUP_AUTHORIZATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
        "STALE_MEMBER_EPOCH",
        "TRANSACTION_ABORTABLE",
        "OFFSET_METADATA_TOO_LARGE",
        "INVALID_GROUP_ID",
    ],
    EndTxnRequest: ["TRANSACTION_ABORTABLE", "UNKNOWN_PRODUCER_ID"],
    AddPartitionsToTxnRequest: [
        "TOPIC_AUTHORIZATION_FAILED",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_PRODUCER_ID",
        "UNKNOWN_SERVER_ERROR",
    ],
    AddOffsetsToTxnRequest: ["GROUP_AUTHORIZATION_FAILED", "TRANSACTION_ABORTABLE"],
}


@BOTH_VERSIONS
@pytest.mark.parametrize(
    ("request_class", "name"),
    [(each, name) for each, names in ABORTABLE.items() for name in names],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
async def test_abortable_error_aborts_and_the_producer_continues(
    version: int, request_class: type[Request[Any]], name: str
) -> None:
    if version == 2 and request_class in ONLY_IN_VERSION_1:
        return
    async with scene(version) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            await run_transaction(producer, b"1", offset=1)
            broker.control(ErrorCode(name), request=request_class)
            with pytest.raises((DeliveryError, TransactionAbortedError), match=name):
                await run_transaction(producer, b"2", b"3", offset=3)
            assert await state_of(client) in ("CompleteAbort", "CompleteCommit", "Empty")
            assert await committed_offset(client) == 1
            await run_transaction(producer, b"4", offset=4)
        assert await committed(client) == [b"1", b"4"]
        assert await committed_offset(client) == 4
        assert await state_of(client) == "CompleteCommit"


FATAL = {
    InitProducerIdRequest: ["INVALID_TRANSACTION_TIMEOUT", "INVALID_REQUEST", "PRODUCER_FENCED"],
    ProduceRequest: ["PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"],
    TxnOffsetCommitRequest: [
        "INVALID_PRODUCER_EPOCH",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
    ],
    EndTxnRequest: [
        "INVALID_PRODUCER_EPOCH",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNKNOWN_SERVER_ERROR",
    ],
    AddPartitionsToTxnRequest: ["INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"],
    AddOffsetsToTxnRequest: ["PRODUCER_FENCED", "INVALID_TXN_STATE"],
}


@BOTH_VERSIONS
@pytest.mark.parametrize(
    ("request_class", "name"),
    [(each, name) for each, names in FATAL.items() for name in names],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
async def test_fatal_error_ends_the_producer_and_a_new_one_continues(
    version: int, request_class: type[Request[Any]], name: str
) -> None:
    if version == 2 and request_class in ONLY_IN_VERSION_1:
        return
    async with scene(version) as (broker, client):
        broker.control(ErrorCode(name), request=request_class)
        producer = client.producer(transactional_id=ID)
        with pytest.raises((DeliveryError, FatalTransactionError), match=name):
            await run_transaction(producer, b"1", offset=1)
        is_fenced = name in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
        with pytest.raises(ProducerFencedError if is_fenced else FatalTransactionError):
            await run_transaction(producer, b"2")
        await producer.close()
        async with client.producer(transactional_id=ID) as other:
            await run_transaction(other, b"3", offset=3)
        assert await committed(client) == [b"3"]
        assert await committed_offset(client) == 3


@BOTH_VERSIONS
async def test_missing_rights_at_the_start_may_be_granted_later(version: int) -> None:
    async with scene(version) as (broker, client):
        broker.control(
            ErrorCode("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), request=InitProducerIdRequest
        )
        producer = client.producer(transactional_id=ID)
        with pytest.raises(KprotoError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await run_transaction(producer, b"1")
        await run_transaction(producer, b"2")
        await producer.close()
        assert await committed(client) == [b"2"]


@BOTH_VERSIONS
async def test_topic_that_is_deleted_in_the_middle_aborts_the_transaction(version: int) -> None:
    settings = quick(metadata_wait_ms=200, delivery_timeout_ms=600)
    async with scene(version, settings) as (broker, client):
        broker.create_topic("gone")
        async with client.producer(transactional_id=ID) as producer:

            async def block() -> None:
                async with producer.transaction():
                    await producer.send("t", b"1")
                    await producer.send("gone", b"2")
                    broker.delete_topic("gone")
                    await producer.enqueue("gone", b"3")

            with pytest.raises(TransactionAbortedError, match=r"gone|UNKNOWN_TOPIC|ack"):
                await block()
            await run_transaction(producer, b"4")
        assert await committed(client) == [b"4"]


@BOTH_VERSIONS
@pytest.mark.parametrize(
    "offsets", [{("missing", 0): 1}, {("t", 7): 1}], ids=["unknown topic", "unknown partition"]
)
async def test_offsets_of_unknown_partitions_abort_the_transaction(
    version: int, offsets: dict[tuple[str, int], int]
) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:

        async def block() -> None:
            async with producer.transaction() as transaction:
                await producer.send("t", b"1")
                await transaction.commit_offsets(offsets, group_id="g")

        with pytest.raises(TransactionAbortedError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await block()
        await run_transaction(producer, b"2")
        assert await committed(client) == [b"2"]


# --- Records in doubt ---


@BOTH_VERSIONS
async def test_late_produce_request_is_awaited_before_the_abort(version: int) -> None:
    settings = quick(metadata_wait_ms=300, delivery_timeout_ms=100, request_timeout_ms=2_000)
    async with scene(version, settings) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            await run_transaction(producer, b"1")
            order: list[str] = []

            def note(request: ReceivedRequest) -> Delay | None:
                order.append(request.name)
                return Delay(300) if request.name == "ProduceRequest" else None

            control = broker.control(note, times=1, request=ProduceRequest)
            broker.control(note, request=EndTxnRequest)
            with pytest.raises(DeliveryError, match="delivery_timeout_ms"):
                await run_transaction(producer, b"2")
            broker.remove_control(control)
            assert order == ["ProduceRequest", "EndTxnRequest"]
            assert broker.end_offset("t") == 4  # a record and its marker, twice
            await run_transaction(producer, b"3")
        assert await committed(client) == [b"1", b"3"]
        assert await state_of(client) == "CompleteCommit"


@BOTH_VERSIONS
async def test_commit_without_a_response_is_in_doubt_and_committed(version: int) -> None:
    settings = quick(metadata_wait_ms=300, delivery_timeout_ms=300)
    async with scene(version, settings) as (broker, client):
        producer = client.producer(transactional_id=ID)
        async with producer.transaction():
            await producer.send("t", b"1")
        broker.control(CutFrame(0), request=EndTxnRequest)
        transaction = producer.transaction()
        with pytest.raises(FatalTransactionError, match="unknown whether"):
            async with transaction:
                await producer.send("t", b"2")
        with pytest.raises(FatalTransactionError, match="unknown whether"):
            await transaction.abort()
        await producer.close()
        async with client.producer(transactional_id=ID):
            assert await committed(client) == [b"1", b"2"]


async def test_old_coordinator_cannot_bump_the_epoch() -> None:
    settings = BrokerSettings(release="2.0")
    async with scene(0, broker_settings=settings) as (broker, client):
        assert isinstance(broker, Broker)
        producer = client.producer(transactional_id=ID)
        await run_transaction(producer, b"1")
        broker.control(ErrorCode("UNKNOWN_PRODUCER_ID"), request=ProduceRequest)
        with pytest.raises(DeliveryError) as raised:
            await run_transaction(producer, b"2")
        assert (
            "older than Kafka 2.5" in raised.value.__notes__[0]
            or "before Kafka 2.5" in (raised.value.__notes__[0])
        )
        await producer.close()
        async with client.producer(transactional_id=ID) as other:
            await run_transaction(other, b"3")
        assert await committed(client) == [b"1", b"3"]


@BOTH_VERSIONS
async def test_close_during_a_failing_commit_leaves_nothing_open(version: int) -> None:
    async with scene(version) as (broker, client):
        producer = client.producer(transactional_id=ID)
        received = asyncio.Event()

        def delay(request: ReceivedRequest) -> Delay:
            received.set()
            return Delay(100)

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                broker.control(delay, request=ProduceRequest, times=1)
                broker.control(ErrorCode("INVALID_RECORD"), request=ProduceRequest)
                await producer.enqueue("t", b"2")

        task = asyncio.create_task(block())
        await received.wait()
        with suppress(DeliveryError):  # either task may raise it
            await producer.close()
        with pytest.raises(TransactionAbortedError):
            await task
        assert await state_of(client) == "CompleteAbort"
        assert await committed(client) == []


@BOTH_VERSIONS
async def test_close_during_a_commit_does_not_hide_the_abort(version: int) -> None:
    async with scene(version, nodes=2, partitions=2) as (broker, client):
        producer = client.producer(transactional_id=ID)
        failed = asyncio.Event()

        def delay_second_partition(request: ReceivedRequest) -> Delay | None:
            assert isinstance(request.message, ProduceRequest)
            found = {
                each.index for topic in request.message.topic_data for each in topic.partition_data
            }
            return Delay(200) if found == {1} else None

        def on_failed(delivery: Delivery) -> None:
            assert delivery.exception() is not None
            failed.set()

        async def block() -> None:
            async with producer.transaction():
                for partition in range(2):
                    await producer.send("t", b"1", partition=partition)
                broker.control(ErrorCode("INVALID_RECORD", topics={"t": [0]}))
                broker.control(delay_second_partition, request=ProduceRequest, times=1)
                delivery = await producer.enqueue("t", b"2", partition=0)
                delivery.add_done_callback(on_failed)
                await producer.enqueue("t", b"3", partition=1)

        task = asyncio.create_task(block())
        await failed.wait()
        await producer.close()
        with pytest.raises(TransactionAbortedError):
            await task
        assert await state_of(client) == "CompleteAbort"
        assert await committed(client) == []


@BOTH_VERSIONS
async def test_abort_of_another_task_leaves_the_next_transaction_alone(version: int) -> None:
    async with scene(version) as (broker, client), client.producer(transactional_id=ID) as producer:
        aborts: list[asyncio.Task[None]] = []

        def start_abort(transaction: Transaction) -> None:
            aborts.append(asyncio.create_task(transaction.abort()))

        for number in range(3):
            broker.control(lambda _: Delay(20), request=ProduceRequest, times=1)
            transaction = producer.transaction()
            async with transaction:
                await producer.enqueue("t", b"aborted")
                asyncio.get_running_loop().call_soon(start_abort, transaction)
            async with producer.transaction():
                await producer.send("t", b"%d" % number)
        await asyncio.gather(*aborts)
        assert await committed(client) == [b"0", b"1", b"2"]
