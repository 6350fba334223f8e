"""Tests that a transaction is aborted if it is cancelled once or repeatedly, at any time."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kproto import (
    Client,
    ConfigurationError,
    Delivery,
    FatalTransactionError,
    Producer,
    Transaction,
    TransactionAbortedError,
)
from kproto.broker import Cluster
from kproto.broker.faults import Delay
from kproto.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kproto.messages.base import Request
from kproto.protocol.connection import ReceivedRequest
from tests.support.cancelling import KINDS, run_until_cancelled
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    committed,
    scene,
    state_of,
)
from tests.unit.client.scripted_broker import quick

QUICK = quick(
    metadata_wait_ms=300, delivery_timeout_ms=3_000, error_flush_ms=1_000, cancelled_close_ms=2_000
)


async def transaction(producer: Producer, *values: bytes) -> None:
    async with producer.transaction() as opened:
        for value in values:
            await producer.send("t", value)
        await opened.commit_offsets({("t", 0): len(values)}, group_id="g")


def signal(event: asyncio.Event, ms: int = 50) -> Callable[[ReceivedRequest], Delay]:
    """Returns a control function that sets `event`, and delays the request by `ms`."""

    def delay(request: ReceivedRequest) -> Delay:
        event.set()
        return Delay(ms)

    return delay


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "request_class",
    [AddPartitionsToTxnRequest, ProduceRequest, TxnOffsetCommitRequest],
    ids=lambda each: each.__name__,
)
async def test_cancelled_block_is_aborted(
    version: int, kind: str, request_class: type[Request[Any]]
) -> None:
    if version == 2 and request_class is AddPartitionsToTxnRequest:
        return
    async with scene(version, QUICK) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            await transaction(producer, b"1")
            received = asyncio.Event()

            broker.control(signal(received), request=request_class, times=1)
            await run_until_cancelled(transaction(producer, b"2", b"3"), received, kind)
            assert await state_of(client) == "CompleteAbort"
            await transaction(producer, b"4")
        assert await committed(client) == [b"1", b"4"]


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
async def test_commit_that_is_cancelled_after_end_txn_completes(version: int, kind: str) -> None:
    async with scene(version, QUICK) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            received = asyncio.Event()

            broker.control(signal(received), request=EndTxnRequest, times=1)
            await run_until_cancelled(transaction(producer, b"1"), received, kind)
            assert await committed(client) == [b"1"]
            await transaction(producer, b"2")
        assert await committed(client) == [b"1", b"2"]


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
async def test_abort_after_a_cancelled_commit_raises_that_it_is_committed(
    version: int, kind: str
) -> None:
    async with scene(version, QUICK) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            received = asyncio.Event()
            opened = producer.transaction()

            async def block() -> None:
                async with opened:
                    await producer.send("t", b"1")

            broker.control(signal(received), request=EndTxnRequest, times=1)
            await run_until_cancelled(block(), received, kind)
            with pytest.raises(ConfigurationError, match="is committed"):
                await opened.abort()
        assert await committed(client) == [b"1"]


@BOTH_VERSIONS
@pytest.mark.parametrize(("slow", "is_committed"), [(ProduceRequest, False), (EndTxnRequest, True)])
async def test_outcome_after_a_timeout(
    version: int, slow: type[Request[Any]], *, is_committed: bool
) -> None:
    async with scene(version, QUICK) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            await transaction(producer, b"1")
            opened = producer.transaction()
            broker.control(lambda _: Delay(1_000), request=slow, times=1)
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(0.5), opened:
                    await producer.enqueue("t", b"2")
            assert opened.is_committed is is_committed
            notes = getattr(caught.value.__cause__, "__notes__", [])
            assert notes == (["the transaction is committed"] if is_committed else [])
        assert await committed(client) == ([b"1", b"2"] if is_committed else [b"1"])


@pytest.mark.slow
@BOTH_VERSIONS
async def test_outcome_is_unknown_if_the_response_of_a_cancelled_commit_is_lost(
    version: int,
) -> None:
    async with scene(version, QUICK) as (broker, client):
        producer = client.producer(transactional_id=ID)
        await transaction(producer, b"1")
        opened = producer.transaction()
        broker.control(lambda _: Delay(60_000), request=EndTxnRequest)
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.2), opened:
                await producer.send("t", b"2")
        assert opened.is_committed is None
        assert caught.value.__cause__ is not None
        assert "it is unknown" in caught.value.__cause__.__notes__[-1]
        with pytest.raises(FatalTransactionError, match="unknown whether"):
            await transaction(producer, b"3")
        await producer.close()


@BOTH_VERSIONS
async def test_transaction_that_has_not_begun_cannot_be_aborted(version: int) -> None:
    async with scene(version, QUICK) as (broker, client):
        producer = client.producer(transactional_id=ID)
        received = asyncio.Event()
        opened = producer.transaction()

        async def block() -> None:
            async with opened:
                await producer.send("t", b"1")

        broker.control(signal(received), request=InitProducerIdRequest, times=1)
        task = asyncio.create_task(block())
        await received.wait()
        with pytest.raises(ConfigurationError, match="async with"):
            await opened.abort()
        await task
        await producer.close()
        assert await committed(client) == [b"1"]


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
async def test_commit_that_is_cancelled_while_records_are_sent_is_aborted(
    version: int, kind: str
) -> None:
    async with scene(version, QUICK) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            received = asyncio.Event()

            async def block() -> None:
                async with producer.transaction():
                    await producer.enqueue("t", b"1")

            broker.control(signal(received), request=ProduceRequest, times=1)
            await run_until_cancelled(block(), received, kind)
            assert await state_of(client) == "CompleteAbort"
            await transaction(producer, b"2")
        assert await committed(client) == [b"2"]


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_begin_leaves_the_producer_usable(version: int, kind: str) -> None:
    async with scene(version, QUICK) as (broker, client):
        received = asyncio.Event()

        broker.control(signal(received), request=InitProducerIdRequest, times=1)
        producer = client.producer(transactional_id=ID)
        await run_until_cancelled(transaction(producer, b"1"), received, kind)
        await transaction(producer, b"2")
        await producer.close()
        assert await committed(client) == [b"2"]


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
async def test_cancellation_is_bounded_if_the_coordinator_does_not_answer(
    version: int, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = quick(
        metadata_wait_ms=300,
        delivery_timeout_ms=30_000,
        error_flush_ms=100,
        cancelled_close_ms=100,
    )
    async with scene(version, settings) as (broker, client):
        producer = client.producer(transactional_id=ID)
        started = asyncio.Event()

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                started.set()
                await asyncio.sleep(60)

        control = broker.control(signal(asyncio.Event(), 60_000), request=EndTxnRequest)
        await run_until_cancelled(block(), started, kind)
        [text] = [text for text in caplog.messages if "the abort of a transaction" in text]
        assert "another close" not in text
        assert "a new producer with the transactional id starts once" in text
        with pytest.raises(FatalTransactionError, match="not confirmed"):
            await transaction(producer, b"2")
        broker.remove_control(control)
        await producer.close()
        # The connection of the first client still waits for its delayed response.
        async with Client(broker.bootstrap, QUICK) as other:
            async with other.producer(transactional_id=ID) as successor:
                await transaction(successor, b"3")
            assert await committed(other) == [b"3"]


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
async def test_cancellation_is_bounded_if_the_leader_does_not_answer(
    version: int, kind: str
) -> None:
    settings = quick(
        metadata_wait_ms=300,
        delivery_timeout_ms=30_000,
        error_flush_ms=1_000,
        cancelled_close_ms=100,
    )
    async with scene(version, settings, nodes=2, partitions=2) as (cluster, client):
        assert isinstance(cluster, Cluster)
        producer = client.producer(transactional_id=ID)
        await transaction(producer, b"1")
        node = cluster.coordinator(ID, "transaction")
        partition = next(at for at in (0, 1) if cluster.leader("t", at) != node)
        sent = asyncio.Event()

        def delay(request: ReceivedRequest) -> Delay | None:
            message = request.message
            assert isinstance(message, ProduceRequest)
            if message.topic_data[0].partition_data[0].index != partition:
                return None
            sent.set()
            return Delay(60_000)

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"2", partition=1 - partition)
                await producer.send("t", b"3", partition=partition)

        control = cluster.control(delay, request=ProduceRequest)
        await run_until_cancelled(block(), sent, kind)
        assert await state_of(client) == "CompleteAbort"
        cluster.remove_control(control)
        if version == 2:
            await transaction(producer, b"4")
        else:  # the producer had to be fenced, so that the late request is refused
            with pytest.raises(FatalTransactionError, match="was fenced"):
                await transaction(producer, b"4")
        await producer.close()


@BOTH_VERSIONS
@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_close_aborts_the_open_transaction(version: int, kind: str) -> None:
    async with scene(version, QUICK) as (broker, observer):
        client = Client(broker.bootstrap, QUICK)
        await client.refresh([])
        producer = client.producer(transactional_id=ID)
        received = asyncio.Event()

        broker.control(signal(received), request=EndTxnRequest, times=1)

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                await run_until_cancelled(client.close(), received, kind)

        with pytest.raises(TransactionAbortedError, match="closed"):
            await block()
        assert await state_of(observer) == "CompleteAbort"


@BOTH_VERSIONS
async def test_abort_at_any_iteration_of_a_commit_reports_the_outcome(version: int) -> None:
    """Another task aborts the transaction 0 to 59 loop iterations after the ack of the record."""
    are_aborted = []
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:

        async def is_aborted(transaction: Transaction, iterations: int) -> bool:
            for _ in range(iterations):
                await asyncio.sleep(0)
            try:
                await transaction.abort()
            except ConfigurationError:
                return False
            return True

        for iterations in range(60):
            aborts: list[asyncio.Task[bool]] = []
            transaction = producer.transaction()
            call = functools.partial(is_aborted, transaction, iterations)

            def start_abort(
                _: Delivery,
                call: Callable[[], Coroutine[None, None, bool]] = call,
                aborts: list[asyncio.Task[bool]] = aborts,
            ) -> None:
                aborts.append(asyncio.create_task(call()))

            async with transaction:
                delivery = await producer.enqueue("t", b"%d" % iterations)
                delivery.add_done_callback(start_abort)
            are_aborted.append(await aborts[0])
        found = await committed(client)
    assert found == [b"%d" % number for number, aborted in enumerate(are_aborted) if not aborted]
    assert set(are_aborted) == {True, False}
