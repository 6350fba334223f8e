"""Tests a transaction's first write while the previous transaction's markers are written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import FatalTransactionError
from kproto.broker.faults import Close, ControlFunction, CutFrame, Delay, ErrorCode
from kproto.client.producer.transactions import transaction_driver
from kproto.client.producer.transactions.transaction_requests import (
    AddPartitions,
    CommitOffsets,
    DescribeTransaction,
    TransactionRequest,
    result_of,
)
from kproto.messages import DescribeTransactionsRequest, EndTxnRequest
from kproto.messages.base import Response
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.errors import KprotoError, UnsupportedVersionError
from tests.unit.client.producer.transactions.driven_manager import (
    LOST,
    OTHER,
    TP,
    Driven,
    S,
    error,
    offsets,
)
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    committed,
    scene,
    state_of,
)


def second_transaction() -> Driven:
    """Returns a manager of transaction version 2 that has begun its second transaction."""
    driven = Driven(2).begun()
    assert not driven.manager.needs_partition(TP, driven.now)  # there is no last transaction
    driven.with_partition().ended()
    driven.manager.begin(driven.now)
    return driven


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
def test_a_batch_waits_for_the_markers_of_the_last_transaction(state: str) -> None:
    driven = second_transaction()
    manager = driven.manager
    assert manager.next_request() is None  # nothing is to be written
    assert manager.needs_partition(TP, driven.now)
    manager.add_partitions([TP])
    driven.send(DescribeTransaction())
    driven.describe(state)
    assert manager.needs_partition(TP, driven.now)
    driven.send(DescribeTransaction())
    driven.describe("CompleteCommit")
    assert not manager.needs_partition(TP, driven.now)
    assert manager.next_request() is None


def test_the_state_is_requested_at_growing_intervals_for_20_ms_at_most() -> None:
    driven = second_transaction()
    began, times = driven.now, list[float]()
    driven.manager.add_partitions([TP])
    while driven.manager.next_request() is not None:
        driven.send(DescribeTransaction())
        times.append(driven.now - began)
        driven.describe("PrepareCommit")
    assert times == pytest.approx([0, 0, 0, 0, 0.001, 0.003, 0.007, 0.015])
    assert not driven.manager.needs_partition(TP, driven.now)


def test_partitions_are_added_again_at_growing_intervals_in_version_1() -> None:
    driven = Driven().begun()
    began, times = driven.now, list[float]()
    driven.manager.add_partitions([TP])
    for _ in range(10):
        driven.send(AddPartitions((TP,)))
        times.append(driven.now - began)
        driven.answer(p0="CONCURRENT_TRANSACTIONS")
    assert times == pytest.approx([0, 0, 0, 0, 0.001, 0.003, 0.007, 0.015, 0.031, 0.051])


def test_a_late_batch_is_sent_without_a_request_of_the_state() -> None:
    driven = second_transaction()
    assert driven.manager.needs_partition(TP, driven.now + 0.019)
    assert not driven.manager.needs_partition(TP, driven.now + 0.02)


def test_offsets_wait_for_the_markers_of_the_last_transaction() -> None:
    driven = second_transaction()
    commit = offsets()
    driven.manager.commit_offsets(commit)
    driven.send(DescribeTransaction())
    driven.describe("CompleteCommit")
    driven.send(CommitOffsets(commit))
    driven.answer()
    assert not driven.manager.is_pending(commit)


def test_without_a_write_no_transaction_is_ended_after_a_request_of_the_state() -> None:
    driven = second_transaction()
    driven.manager.add_partitions([TP])
    driven.send(DescribeTransaction())
    driven.manager.begin_abort()
    driven.describe("PrepareCommit")
    driven.manager.end()
    assert driven.has(S.READY)


@pytest.mark.parametrize(
    ("fault", "asks_again"),
    [
        (LOST, True),
        (error("COORDINATOR_LOAD_IN_PROGRESS"), True),
        (error("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), False),
        (UnsupportedVersionError("no DescribeTransactions"), False),
    ],
)
def test_a_failed_request_of_the_state_delays_no_batch(
    fault: KprotoError, asks_again: bool
) -> None:
    driven = second_transaction()
    manager = driven.manager
    manager.add_partitions([TP])
    driven.send(DescribeTransaction())
    driven.fail(fault)
    assert driven.has(S.IN_TRANSACTION)
    assert not manager.needs_partition(TP, driven.now)
    manager.on_batch_sent()
    driven.ended()
    manager.begin(driven.now)
    assert manager.needs_partition(TP, driven.now) is asks_again


def test_partitions_that_are_being_added_are_reported_once() -> None:
    driven = Driven().begun()
    changes: list[TransactionRequest | None] = []
    driven.manager.on_change = lambda: changes.append(driven.manager.next_request())
    driven.manager.add_partitions([TP])
    driven.manager.add_partitions([TP])
    driven.send(AddPartitions((TP,)))
    driven.manager.add_partitions([TP])
    assert changes == [AddPartitions((TP,))]
    driven.manager.add_partitions([OTHER, TP])
    assert len(changes) == 2


# --- With a broker ---


def lose_request(request: ReceivedRequest) -> Close:
    """Closes the connection before the request is handled."""
    return Close()


@pytest.mark.parametrize(
    "fault",
    [
        ErrorCode("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ErrorCode("COORDINATOR_LOAD_IN_PROGRESS"),
        ErrorCode("NOT_COORDINATOR"),
        CutFrame(0),
        lose_request,
    ],
    ids=["no rights", "load", "moved", "response lost", "request lost"],
)
async def test_transactions_are_committed_without_the_state_of_the_last_one(
    fault: ControlFunction,
) -> None:
    async with scene(2) as (broker, client):
        broker.control(fault, request=DescribeTransactionsRequest)
        async with client.producer(transactional_id=ID) as producer:
            for value in (b"1", b"2", b"3"):
                async with producer.transaction():
                    await producer.send("t", value)
        assert await committed(client) == [b"1", b"2", b"3"]


@BOTH_VERSIONS
async def test_internal_error_of_a_response_is_reported_to_the_loop_and_fails_the_commit(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))

    def broken(request: TransactionRequest, response: Response) -> Any:
        raise ZeroDivisionError("a bug")

    async with scene(version) as (_, client):
        producer = client.producer(transactional_id=ID)
        transaction = producer.transaction()
        await transaction.__aenter__()
        await producer.send("t", b"1")
        monkeypatch.setattr(transaction_driver, "result_of", broken)
        with pytest.raises(FatalTransactionError, match="an internal error: ZeroDivisionError"):
            await transaction.__aexit__(None, None, None)
        monkeypatch.setattr(transaction_driver, "result_of", result_of)
        await producer.close()
    assert [type(each["exception"]) for each in faults] == [ZeroDivisionError]


async def test_response_after_the_close_has_no_effect() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    async with scene(2) as (broker, client):
        producer = client.producer(transactional_id=ID)
        transaction = producer.transaction()
        await transaction.__aenter__()
        await producer.send("t", b"1")
        is_received = asyncio.Event()

        def hold(request: ReceivedRequest) -> Delay:
            is_received.set()
            return Delay(100)

        broker.control(hold, request=EndTxnRequest)
        committing = asyncio.create_task(transaction.__aexit__(None, None, None))
        await is_received.wait()
        await producer.close(timeout_ms=0)
        with pytest.raises(FatalTransactionError, match="unknown whether"):
            await committing
        assert await state_of(client) == "CompleteCommit"  # its response follows that of EndTxn
        assert await committed(client) == [b"1"]
    assert faults == []
