"""Tests that repeated cancellations of an `async with` block have the effect of one.

A cancel scope of anyio cancels its tasks again in each iteration of the event loop until they end.
FastAPI and Starlette end their tasks in this way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import kproto
from kproto.broker import Broker, SilentConnection
from kproto.client.metadata.cluster import TopicPartition
from kproto.messages import DescribeGroupsRequest, OffsetCommitRequest, ProduceRequest
from tests.support.cancelling import KINDS, run_until_cancelled
from tests.unit.client.processing.orders import SETTINGS, TOPIC, Orders, orders

COUNT = 100
P0 = (TOPIC, 0)

every_kind = pytest.mark.parametrize("kind", KINDS)


async def members(it: Orders) -> list[Any]:
    """Returns the members that the coordinator has in the group."""
    described = await it.client.request(DescribeGroupsRequest(groups=["billing"]))
    return list(described.groups[0].members)


def stored(broker: Broker) -> int:
    return sum(1 for _ in broker.records("t"))


@every_kind
@pytest.mark.parametrize("closed_by", ["its block", "close", "the client"])
async def test_cancelled_producer_sends_enqueued_records(kind: str, closed_by: str) -> None:
    ready = asyncio.Event()
    async with Broker() as broker:
        broker.create_topic("t")

        async def fill(producer: kproto.Producer) -> None:
            for number in range(COUNT):
                await producer.enqueue("t", b"%d" % number)
            ready.set()
            await asyncio.Event().wait()

        async def work() -> None:
            async with kproto.Client(broker.bootstrap) as client:
                if closed_by == "its block":
                    async with client.producer(linger_ms=60_000) as producer:
                        await fill(producer)
                elif closed_by == "close":
                    producer = client.producer(linger_ms=60_000)
                    try:
                        await fill(producer)
                    finally:
                        await producer.close()
                else:
                    await fill(client.producer(linger_ms=60_000))

        await run_until_cancelled(work(), ready, kind)
        assert stored(broker) == COUNT
        await until_closed(lambda: broker.connections == 0)


@every_kind
async def test_cancelled_producer_reports_records_that_no_broker_acks(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    ready = asyncio.Event()
    producers: list[kproto.Producer] = []
    settings = kproto.ClientSettings(error_flush_ms=50)
    async with Broker() as broker:
        broker.create_topic("t")

        async def work() -> None:
            async with (
                kproto.Client(broker.bootstrap, settings) as client,
                client.producer() as producer,
            ):
                producers.append(producer)
                await producer.send("t", b"stored")
                broker.control(SilentConnection(), request=ProduceRequest)
                await producer.enqueue("t", b"lost")
                ready.set()
                await asyncio.Event().wait()

        await run_until_cancelled(work(), ready, kind)
    assert [each.value for each in producers[0].undelivered["t"]] == [b"lost"]
    assert caplog.text.count("1 record for t[0] was not") == 1


@every_kind
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_cancelled_iteration_commits_processed_records_and_leaves(
    kind: str, protocol: Any
) -> None:
    ready = asyncio.Event()
    async with orders(COUNT) as it:

        async def work() -> None:
            read = 0
            async with it.consumer(group_protocol=protocol) as consumer:
                async for _ in consumer:
                    read += 1
                    if read == COUNT:
                        asyncio.get_running_loop().call_soon(ready.set)

        await run_until_cancelled(work(), ready, kind)
        if protocol == "classic":
            assert await members(it) == []
        assert await it.committed(0) == [COUNT]  # a group with members would refuse


@every_kind
async def test_cancelled_close_commits_and_leaves(kind: str) -> None:
    ready = asyncio.Event()
    async with orders(3) as it:

        async def work() -> None:
            consumer = it.consumer()
            records = aiter(consumer)
            for _ in range(3):
                await anext(records)
            ready.set()
            await consumer.close()

        await run_until_cancelled(work(), ready, kind)
        assert await members(it) == []
        assert await it.committed(0) == [2]


@every_kind
@pytest.mark.parametrize("order", ["partition", "key"])
async def test_cancelled_run_finishes_records_in_flight_commits_and_leaves(
    kind: str, order: Any
) -> None:
    ready, may_end = asyncio.Event(), asyncio.Event()
    async with orders(9) as it:

        async def handle(record: kproto.Record) -> None:
            if record.offset == 4:
                ready.set()
                asyncio.get_running_loop().call_later(0.05, may_end.set)
                await may_end.wait()
            it.note(record)

        async def work() -> None:
            async with it.consumer() as consumer:
                await consumer.run(handle, order=order, workers=1)

        await run_until_cancelled(work(), ready, kind)
        assert it.handled.count((0, 4)) == 1
        assert await members(it) == []
        assert await it.committed(0) == [len(it.handled)]


@every_kind
async def test_cancelled_run_cancels_handlers_after_the_drain_timeout(kind: str) -> None:
    ready = asyncio.Event()
    async with orders(9) as it:

        async def handle(record: kproto.Record) -> None:
            if record.offset == 4:
                ready.set()
                await asyncio.Event().wait()
            it.note(record)

        async def work() -> None:
            async with it.consumer() as consumer:
                await consumer.run(handle, drain_timeout_ms=50)

        await run_until_cancelled(work(), ready, kind)
        assert await members(it) == []
        assert await it.committed(0) == [4]


@every_kind
async def test_cancelled_run_sends_dead_letters(kind: str) -> None:
    ready = asyncio.Event()
    async with orders(1) as it:

        async def handle(record: kproto.Record) -> None:
            ready.set()
            await asyncio.sleep(0.02)
            raise ValueError

        async def work() -> None:
            async with it.consumer() as consumer:
                await consumer.run(handle, retries=0, dead_letter_topic="orders.dead")

        await run_until_cancelled(work(), ready, kind)
        assert it.broker.end_offset("orders.dead", 0) == 1
        assert await it.committed(0) == [1]


@every_kind
async def test_callback_that_does_not_return_is_cancelled(kind: str) -> None:
    """The callback has `error_flush_ms` + `cancelled_close_ms` to end; then the member leaves."""
    ready = asyncio.Event()
    cancelled: list[list[TopicPartition]] = []
    settings = replace(SETTINGS, error_flush_ms=20, cancelled_close_ms=30)
    async with orders(1, settings=settings) as it:

        async def on_revoked(tps: list[TopicPartition]) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(tps)
                raise

        async def work() -> None:
            made = it.consumer(on_revoked=on_revoked, group_protocol="classic")
            async with made as consumer:
                await anext(aiter(consumer))
                ready.set()
                await asyncio.Event().wait()

        await run_until_cancelled(work(), ready, kind)
        assert cancelled == [[P0]]
        assert await members(it) == []
        assert await it.committed(0) == [None]
    assert cancelled == [[P0]], "the close of the client calls no callback again"


@pytest.mark.usefixtures("steady_time")
@pytest.mark.parametrize("ends", ["when cancelled", "later"])
@every_kind
async def test_cancelled_block_cancels_the_handlers_of_a_run_of_another_task(
    kind: str, ends: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler has the same time limit as a rebalance callback; then the member leaves."""
    ready, may_end = asyncio.Event(), asyncio.Event()
    settings = replace(SETTINGS, error_flush_ms=200, cancelled_close_ms=30)
    async with orders(9, settings=settings) as it:
        tasks: list[asyncio.Task[Any]] = []

        async def handle(record: kproto.Record) -> None:
            if record.offset == 4:
                ready.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    if ends == "later":
                        await may_end.wait()
            it.note(record)

        async def work() -> None:
            async with it.consumer(group_protocol="classic") as consumer:
                run = consumer.run(handle, commit_interval_ms=60_000, drain_timeout_ms=600_000)
                tasks.append(asyncio.create_task(run))
                await asyncio.Event().wait()

        await run_until_cancelled(work(), ready, kind)
        assert await members(it) == []
        assert await it.committed(0) == [4]
        assert "the handlers of run() are cancelled" in caplog.text
        assert tasks[0].done() == (ends == "when cancelled")
        may_end.set()
        assert (await tasks[0]).handled == 4


async def test_cancelled_close_whose_commit_is_not_answered_warns_of_no_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ready, is_handled = asyncio.Event(), asyncio.Event()
    settings = replace(SETTINGS, error_flush_ms=20, cancelled_close_ms=30)
    async with orders(1, settings=settings) as it:

        async def handle(record: kproto.Record) -> None:
            is_handled.set()

        async def work() -> None:
            async with it.consumer(group_protocol="classic") as consumer:
                run = asyncio.create_task(consumer.run(handle, commit_interval_ms=60_000))
                await is_handled.wait()
                it.broker.control(SilentConnection(), request=OffsetCommitRequest)
                ready.set()
                try:
                    await consumer.close()
                finally:
                    await run

        await run_until_cancelled(work(), ready, "once")
    assert "processed offsets were not committed at the end of run()" in caplog.text
    assert "the handlers of run() are cancelled" not in caplog.text


@pytest.mark.parametrize("closed_by", ["consumer", "client"])
async def test_later_close_limits_a_callback_that_does_not_return(closed_by: str) -> None:
    """The first close, and the task that completes it, are cancelled before the member leaves."""
    calls = 0
    settings = replace(SETTINGS, error_flush_ms=20, cancelled_close_ms=30)
    async with orders(1, settings=settings) as it:

        async def on_revoked(tps: list[TopicPartition]) -> None:
            nonlocal calls
            calls += 1
            await asyncio.Event().wait()

        consumer = it.consumer(on_revoked=on_revoked, group_protocol="classic")
        await consumer.poll(10_000)
        await consumer.poll(0)
        closing = asyncio.create_task(consumer.close())
        while not calls:  # noqa: ASYNC110 - the callback never returns
            await asyncio.sleep(0)
        tasks = asyncio.all_tasks()
        closing.cancel()
        while calls < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - tasks:  # the task that completes the close
            task.cancel()
        await asyncio.wait([closing])
        assert len(await members(it)) == 1
        await (consumer if closed_by == "consumer" else it.client).close()
        assert calls == 3
        if closed_by == "consumer":
            assert await members(it) == []


@pytest.mark.parametrize("closed_by", ["consumer", "client"])
async def test_later_close_that_exceeds_its_limit_raises_request_timeout(closed_by: str) -> None:
    """The callback ignores its first cancellation. Nothing cancels the later close."""
    calls = 0
    settings = replace(SETTINGS, error_flush_ms=20, cancelled_close_ms=30)
    async with orders(1, settings=settings) as it:

        async def on_revoked(tps: list[TopicPartition]) -> None:
            nonlocal calls
            calls += 1
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.Event().wait()

        client = kproto.Client(it.broker.bootstrap, settings)
        consumer = client.consumer(TOPIC, group="billing", on_revoked=on_revoked)
        await consumer.poll(10_000)
        closing = asyncio.create_task(consumer.close())
        while not calls:  # noqa: ASYNC110 - the callback never returns
            await asyncio.sleep(0)
        tasks = asyncio.all_tasks()
        for _ in range(2):  # the callback ignores the first one
            closing.cancel()
            await asyncio.sleep(0)
        while calls < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        while not closing.done():  # ends the task that completes the close before its limit
            for task in asyncio.all_tasks() - tasks:
                task.cancel()
            await asyncio.sleep(0)
        assert closing.cancelled()
        with pytest.raises(kproto.RequestTimeoutError, match="group 'billing' did not end within"):
            await (consumer if closed_by == "consumer" else client).close()
        assert calls == 3
        await client.close()  # calls no callback again


@every_kind
async def test_callback_may_wait_in_a_cancelled_block(kind: str) -> None:
    ready = asyncio.Event()
    saved: list[list[TopicPartition]] = []
    async with orders(1) as it:

        async def on_revoked(tps: list[TopicPartition]) -> None:
            await asyncio.sleep(0.02)
            saved.append(tps)

        async def work() -> None:
            async with it.consumer(on_revoked=on_revoked) as consumer:
                await anext(aiter(consumer))
                ready.set()
                await asyncio.Event().wait()

        await run_until_cancelled(work(), ready, kind)
        assert await members(it) == []
    assert saved == [[P0]]


@every_kind
async def test_cancelled_consumer_without_group_closes_its_connections(kind: str) -> None:
    ready = asyncio.Event()
    async with orders(1) as it:

        async def work() -> None:
            async with it.client.consumer(TOPIC, max_wait_ms=5_000) as consumer:
                async for _ in consumer:
                    asyncio.get_running_loop().call_soon(ready.set)

        before = it.broker.connections
        await run_until_cancelled(work(), ready, kind)
        await until_closed(lambda: it.broker.connections == before)


async def until_closed(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the broker has no event to wait for
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("first", [1, 2, 5])
async def test_cancellation_later_than_the_next_iterations_is_a_second_one(first: int) -> None:
    """Cancellations in successive loop iterations count as one; a later one ends the drain."""
    async with orders(9) as it:
        ready = asyncio.Event()

        async def handle(record: kproto.Record) -> None:
            if record.offset == 4:
                ready.set()
                await asyncio.Event().wait()
            it.note(record)

        async with it.consumer() as consumer:
            running = asyncio.create_task(consumer.run(handle, drain_timeout_ms=600_000))
            await ready.wait()
            for _ in range(first):
                running.cancel()
                await asyncio.sleep(0)
            for _ in range(10):
                await asyncio.sleep(0)
            assert not running.done()
            running.cancel()
            await asyncio.wait([running])
            assert running.cancelled()
        assert await it.committed(0) == [4]
