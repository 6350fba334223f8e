"""Tests two-phase commit of a producer (KIP-939) on the embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kproto import (
    Client,
    ConfigurationError,
    FatalTransactionError,
    PreparedTransactionState,
    Producer,
    ProducerFencedError,
    TransactionAbortedError,
)
from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.broker.faults import CutFrame, ErrorCode
from kproto.messages import EndTxnRequest, InitProducerIdRequest, ProduceRequest
from tests.support.suspensions import CancelAt, points
from tests.unit.client.producer.transactions.transactional import (
    ID,
    QUICK,
    Scene,
    committed,
    scene,
    state_of,
)

SETTINGS = replace(QUICK, unstable_versions=True)

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@asynccontextmanager
async def two_phase_scene(version: int, *, enable: bool = True) -> AsyncIterator[Scene]:
    settings = BrokerSettings(
        transaction_version=version,
        unstable_versions=True,
        transaction_two_phase_commit_enable=enable,
    )
    async with scene(version, SETTINGS, broker_settings=settings) as found:
        yield found


def producer_of(client: Client) -> Producer:
    return client.producer(transactional_id=ID, transaction_timeout_ms=50, two_phase_commit=True)


async def prepare(producer: Producer, value: bytes, prepared: asyncio.Future[str]) -> None:
    """Prepares a transaction and then waits forever, like a program that was stopped."""
    async with producer.transaction() as transaction:
        await producer.enqueue("t", value)
        await transaction.commit_offsets({("t", 0): 7}, group_id="g")
        prepared.set_result(str(await transaction.prepare()))
        await asyncio.Event().wait()


@asynccontextmanager
async def stopped_program(bootstrap: str, value: bytes) -> AsyncIterator[str]:
    """Runs a program that stops after `prepare`; yields the state that it has stored."""
    client = Client(bootstrap, SETTINGS)
    prepared: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    producer = producer_of(client)
    task = asyncio.create_task(prepare(producer, value, prepared))
    try:
        yield await prepared
    finally:
        task.cancel()
        await asyncio.wait([task])
        await producer.close()
        await client.close()


async def committed_offset(client: Client) -> int | None:
    async with client.consumer([("t", 0)], group="g", auto_commit=False) as consumer:
        found = (await consumer.committed(("t", 0)))["t", 0]
        return None if found is None else found.offset


@VERSIONS
async def test_prepared_transaction_is_committed_by_the_end_of_its_block(version: int) -> None:
    async with two_phase_scene(version) as (_, client), producer_of(client) as producer:
        for number in (1, 2):
            async with producer.transaction() as transaction:
                await producer.enqueue("t", b"%d" % number)
                state = await transaction.prepare()
                assert PreparedTransactionState.parse(str(state)) == state
                with pytest.raises(ConfigurationError, match="prepared"):
                    await producer.send("t", b"x")
                with pytest.raises(ConfigurationError, match="prepared"):
                    await transaction.commit_offsets({("t", 0): 1}, group_id="g")
                await asyncio.sleep(0.1)  # longer than its timeout
        assert await committed(client) == [b"1", b"2"]
        assert producer.prepared_transaction is None
        assert await producer.complete_transaction(state) is None


@VERSIONS
async def test_exception_after_prepare_aborts(version: int) -> None:
    async with two_phase_scene(version) as (_, client), producer_of(client) as producer:

        async def block() -> None:
            async with producer.transaction() as transaction:
                await producer.enqueue("t", b"1")
                await transaction.prepare()
                raise ValueError("the database has failed")

        with pytest.raises(ValueError, match="database"):
            await block()
        async with producer.transaction():
            await producer.send("t", b"2")
        assert await committed(client) == [b"2"]


@VERSIONS
@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("fault", ["none", "response lost", "restarted twice"])
async def test_new_producer_completes_the_transaction(
    version: int, is_stored: bool, fault: str
) -> None:
    async with (
        two_phase_scene(version) as (broker, client),
        stopped_program(broker.bootstrap, b"1") as stored,
    ):
        if fault == "response lost":
            broker.control(CutFrame(0), request=InitProducerIdRequest, times=1)
            broker.control(CutFrame(0), request=EndTxnRequest, times=1)
        elif fault == "restarted twice":
            async with producer_of(client) as producer:
                assert str(producer.prepared_transaction) == stored
        async with producer_of(client) as producer:
            assert str(producer.prepared_transaction) == stored
            with pytest.raises(ConfigurationError, match="complete_transaction"):
                async with producer.transaction():
                    raise AssertionError("the transaction has begun")
            state = PreparedTransactionState.parse(stored) if is_stored else None
            assert await producer.complete_transaction(state) is is_stored
            assert await state_of(client) == ("CompleteCommit" if is_stored else "CompleteAbort")
            assert await committed(client) == ([b"1"] if is_stored else [])
            assert await committed_offset(client) == (7 if is_stored else None)
            assert await producer.complete_transaction(state) is None
            async with producer.transaction():
                await producer.send("t", b"2")
        assert await committed(client) == ([b"1", b"2"] if is_stored else [b"2"])


@VERSIONS
async def test_stopped_producer_is_fenced_by_its_successor(version: int) -> None:
    async with two_phase_scene(version) as (broker, client):
        async with producer_of(client) as producer, producer.transaction() as transaction:
            await producer.enqueue("t", b"0")
            await transaction.prepare()
        first = producer_of(client)

        async def block() -> None:
            async with first.transaction() as transaction:
                await first.enqueue("t", b"1")
                state = await transaction.prepare()
                async with (
                    Client(broker.bootstrap, SETTINGS) as other,
                    producer_of(other) as next_one,
                ):
                    assert await next_one.complete_transaction(state) is True

        with pytest.raises(ProducerFencedError):
            await block()
        assert await committed(client) == [b"0", b"1"]


@VERSIONS
async def test_failed_record_aborts_instead_of_prepare(version: int) -> None:
    async with two_phase_scene(version) as (broker, client), producer_of(client) as producer:
        broker.control(ErrorCode("INVALID_RECORD"), request=ProduceRequest)

        async def block() -> None:
            async with producer.transaction() as transaction:
                await producer.enqueue("t", b"1")
                await transaction.prepare()

        with pytest.raises(TransactionAbortedError, match="INVALID_RECORD"):
            await block()
        async with producer.transaction():
            await producer.send("t", b"2")
        assert await committed(client) == [b"2"]


async def test_broker_without_the_setting_refuses() -> None:
    async with two_phase_scene(2, enable=False) as (_, client):
        with pytest.raises(Exception, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            async with producer_of(client):
                raise AssertionError("it has begun")


async def test_broker_without_unstable_versions_is_an_error() -> None:
    async with scene(2, SETTINGS) as (_, client):
        with pytest.raises(FatalTransactionError, match="InitProducerId v6"):
            async with producer_of(client):
                raise AssertionError("it has begun")


async def test_settings_without_what_two_phase_commit_needs_are_refused() -> None:
    async with scene(2) as (_, client), client.producer(transactional_id="other") as plain:
        with pytest.raises(ConfigurationError, match="unstable_versions"):
            producer_of(client)
        with pytest.raises(ConfigurationError, match="transactional_id"):
            client.producer(two_phase_commit=True)
        with pytest.raises(ConfigurationError, match="two_phase_commit"):
            await plain.complete_transaction(None)
        async with plain.transaction() as transaction:
            with pytest.raises(ConfigurationError, match="two_phase_commit"):
                await transaction.prepare()


@pytest.mark.parametrize("text", ["", "7", "7:", ":1", "-1:-1", "7:1:2", "7:x", "7:32768"])
def test_text_that_is_no_prepared_transaction_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="producer_id:epoch"):
        PreparedTransactionState.parse(text)


# --- Cancelled calls: the database has committed, so the transaction must not be aborted ---


async def committed_in_the_end(broker: Broker | Cluster, client: Client, state: str) -> bool:
    """Completes the transaction if it is still open; returns True if it is committed."""
    async with Client(broker.bootstrap, SETTINGS) as other, producer_of(other) as successor:
        await successor.complete_transaction(PreparedTransactionState.parse(state))
        return await committed(client) == [b"1"]


@pytest.mark.parametrize("late", [False, True])
def test_cancelled_completion_does_not_abort(late: bool) -> None:
    async def play(cancel: CancelAt) -> None:
        async with (
            two_phase_scene(2) as (broker, client),
            stopped_program(broker.bootstrap, b"1") as state,
        ):
            producer = producer_of(client)
            try:
                await cancel.run(
                    producer.complete_transaction(PreparedTransactionState.parse(state))
                )
            finally:
                await producer.close()
            assert await committed_in_the_end(broker, client, state)

    assert points(play, late=late) > 1


@pytest.mark.parametrize("late", [False, True])
def test_cancelled_end_of_a_prepared_block_does_not_abort(late: bool) -> None:
    async def play(cancel: CancelAt) -> None:
        async with two_phase_scene(2) as (broker, client), producer_of(client) as producer:
            transaction = producer.transaction()
            await transaction.__aenter__()
            await producer.enqueue("t", b"1")
            state = str(await transaction.prepare())
            await cancel.run(transaction.__aexit__(None, None, None))
            await producer.close()
            assert await committed_in_the_end(broker, client, state)

    assert points(play, late=late) > 0
