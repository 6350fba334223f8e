"""Tests transactions that one client leaves open, and another client ends."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest

import kproto
from kproto.wire.errors import ConfigurationError
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    QUICK,
    Scene,
    committed,
    scene,
    state_of,
    written,
)


async def leave_open(found: Scene, *values: bytes, **offsets: int) -> kproto.OpenTransaction:
    async with (
        kproto.Client(found.broker.bootstrap, QUICK) as other,
        other.producer(transactional_id=ID) as producer,
        producer.transaction() as transaction,
    ):
        await producer.send_many("t", values)
        for group_id, offset in offsets.items():
            its = kproto.CommittedOffset(offset, -1, "rows=2")
            await transaction.commit_offsets({("t", 0): its}, group_id=group_id)
        opened = await transaction.leave_open()
    assert transaction.is_committed is None
    return opened


@BOTH_VERSIONS
async def test_another_client_commits(version: int) -> None:
    async with scene(version) as found:
        opened = await leave_open(found, b"1", b"2", g=7)
        client = found.client
        assert await state_of(client) == "Ongoing"
        assert await committed(client) == []
        assert pickle.loads(pickle.dumps(opened)) == copy.copy(opened)
        for _ in range(2):  # again, as after a lost response
            await client.end_transaction(opened, committed=True)
            assert await committed(client) == [b"1", b"2"]
        offsets = await client.committed_offsets("g")
        assert offsets == {("t", 0): kproto.CommittedOffset(7, -1, "rows=2")}


@BOTH_VERSIONS
async def test_another_client_aborts(version: int) -> None:
    async with scene(version) as found:
        opened = await leave_open(found, b"1", g=7)
        client = found.client
        for _ in range(2):
            await client.end_transaction(opened, committed=False)
        assert await committed(client) == []
        assert await written(client) == [b"1"]
        assert await client.committed_offsets("g") == {}
        with pytest.raises(kproto.FatalTransactionError):
            await client.end_transaction(opened, committed=True)
        assert await committed(client) == []


@BOTH_VERSIONS
async def test_new_producer_aborts_what_was_left_open(version: int) -> None:
    async with scene(version) as found:
        opened = await leave_open(found, b"1")
        async with found.client.producer(transactional_id=ID) as producer:
            with pytest.raises(
                kproto.ProducerFencedError, match=r"transaction_timeout_ms \(60000\)"
            ):
                await found.client.end_transaction(opened, committed=True)
            async with producer.transaction():
                await producer.send("t", b"2")
        assert await committed(found.client) == [b"2"]


@BOTH_VERSIONS
async def test_producer_accepts_nothing_more(version: int) -> None:
    async with scene(version) as found:
        async with found.client.producer(transactional_id=ID) as producer:
            async with producer.transaction() as transaction:
                await producer.enqueue("t", b"1")
                opened = await transaction.leave_open()
                with pytest.raises(kproto.FatalTransactionError, match="left open for another"):
                    await producer.send("t", b"2")
                with pytest.raises(ConfigurationError, match="has ended"):
                    await transaction.leave_open()
                await transaction.abort()  # has no effect
            with pytest.raises(kproto.FatalTransactionError, match="close the producer"):
                await producer.transaction().__aenter__()
        assert await state_of(found.client) == "Ongoing"
        await found.client.end_transaction(opened, committed=True)
        assert await committed(found.client) == [b"1"]


@BOTH_VERSIONS
async def test_exception_after_leave_open_does_not_abort(version: int) -> None:
    async with scene(version) as found:
        opened: list[kproto.OpenTransaction] = []

        async def block() -> None:
            async with (
                found.client.producer(transactional_id=ID) as producer,
                producer.transaction() as transaction,
            ):
                await producer.send("t", b"1")
                opened.append(await transaction.leave_open())
                raise ValueError("x")

        with pytest.raises(ValueError, match="x"):
            await block()
        await found.client.end_transaction(opened[0], committed=True)
        assert await committed(found.client) == [b"1"]


async def test_empty_or_failed_transactions_are_not_left_open() -> None:
    async with scene(2) as found, found.client.producer(transactional_id=ID) as producer:

        async def block(*values: bytes) -> None:
            async with producer.transaction() as transaction:
                for value in values:
                    await producer.enqueue("t", value)
                await transaction.leave_open()

        with pytest.raises(ConfigurationError, match="nothing to leave open"):
            await block()
        with pytest.raises(kproto.TransactionAbortedError, match="MESSAGE_TOO_LARGE"):
            await block(b"1", bytes(2_000_000))
        assert await state_of(found.client) == "CompleteAbort"
        async with producer.transaction():
            await producer.send("t", b"2")
        assert await committed(found.client) == [b"2"]


async def test_cancelled_leave_open_aborts() -> None:
    async with scene(2) as found, found.client.producer(transactional_id=ID) as producer:

        async def block() -> None:
            async with producer.transaction() as transaction:
                await producer.enqueue("t", b"1")
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
                await transaction.leave_open()

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(block())
        async with producer.transaction():
            await producer.send("t", b"2")
        assert await committed(found.client) == [b"2"]


async def test_coordinator_moves_before_the_end() -> None:
    async with scene(2, nodes=3) as found:
        opened = await leave_open(found, b"1")
        cluster = found.broker
        assert isinstance(cluster, kproto.broker.Cluster)
        node = await coordinator_of(found.client)
        await cluster.stop_broker(node)
        await found.client.end_transaction(opened, committed=True)
        assert await committed(found.client) == [b"1"]


async def coordinator_of(client: kproto.Client) -> int:
    return await client._view.transaction_coordinator(ID)


async def test_offsets_are_committed_with_metadata() -> None:
    async with scene(2) as found:
        client = found.client
        its = kproto.CommittedOffset(5, 3, "tasks=4")
        await client.commit_offsets("g", {("t", 0): its})
        assert await client.committed_offsets("g") == {("t", 0): its}
        await client.commit_offsets("g", {("t", 0): 6})
        assert await client.committed_offsets("g") == {("t", 0): kproto.CommittedOffset(6, -1, "")}
        assert await client.committed_offsets("other") == {}
        for wrong in (
            kproto.CommittedOffset(-1, -1, ""),
            kproto.CommittedOffset(1, -2, ""),
            kproto.CommittedOffset(1, -1, None),  # type: ignore[arg-type]
        ):
            with pytest.raises(ConfigurationError, match=r"\('t', 0\)"):
                await client.commit_offsets("g", {("t", 0): wrong})
