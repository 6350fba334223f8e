"""Tests clients, producers, consumers and brokers that a program drops without `close`."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import subprocess
import sys
import warnings
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import pytest

import kproto
from kproto.broker import Broker, SilentConnection
from kproto.messages import DescribeGroupsRequest, ListOffsetsRequest, ProduceRequest
from tests.support.embedded import threaded_broker

SETTINGS = kproto.ClientSettings(api_timeout_ms=1_000, retry_backoff_ms=10)

Use = Callable[[kproto.Client], Awaitable[object]]


@contextmanager
def collected() -> Iterator[None]:
    """Collects garbage only at the end of the block."""
    gc.collect()
    gc.disable()
    try:
        yield
        gc.collect()
    finally:
        gc.enable()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - garbage collection has no event to wait for
        await asyncio.sleep(0.001)


def warns(what: str) -> Any:
    """Checks that the block emits the ResourceWarning of `what`."""
    return pytest.warns(
        ResourceWarning, match=re.escape(f"{what} was not closed: use `async with`")
    )


async def until_left(client: kproto.Client) -> None:
    while await members(client):  # noqa: ASYNC110 - garbage collection has no event to wait for
        await asyncio.sleep(0.001)


async def members(client: kproto.Client) -> int:
    described = await client.request(DescribeGroupsRequest(groups=["billing"]))
    return len(described.groups[0].members)


async def committed(client: kproto.Client) -> int | None:
    async with client.consumer([("t", 0)], group="billing") as consumer:
        found = (await consumer.committed(("t", 0)))["t", 0]
    return None if found is None else found.offset


async def poll_two(client: kproto.Client, **given: Any) -> kproto.GroupConsumer:
    """Returns a group consumer; its first record is processed, and its second is in flight."""
    consumer = client.consumer("t", group="billing", group_protocol="classic", **given)
    while not await consumer.poll(1_000, max_records=1):
        pass
    assert await consumer.poll(1_000, max_records=1)
    return consumer


@pytest.fixture
async def broker() -> Any:
    async with Broker() as broker:
        broker.create_topic("t", 1)
        async with kproto.Client(broker.bootstrap) as client, client.producer() as producer:
            await producer.send_many("t", [b"0", b"1", b"2"])
        yield broker


@pytest.mark.parametrize("refers", [False, True], ids=["no callback", "a callback refers to it"])
async def test_dropped_member_warns_and_leaves_its_group(broker: Broker, refers: bool) -> None:
    revoked: list[Any] = []

    async def forget(client: kproto.Client) -> weakref.ref[Any]:
        consumers: list[Any] = []

        async def on_revoked(tps: Any) -> None:
            revoked.append(tps)
            await consumers[0].commit()

        consumers.append(await poll_two(client, on_revoked=on_revoked if refers else None))
        return weakref.ref(consumers[0])

    async with kproto.Client(broker.bootstrap) as other:
        client = kproto.Client(broker.bootstrap, SETTINGS)
        with warns("a consumer of the group 'billing'"), collected():
            dropped = await forget(client)
            assert await members(other) == 1
        await until_left(other)
        assert await committed(other) == 1
        assert revoked == ([[("t", 0)]] if refers else [])
        await client.close()
        gc.collect()
        assert dropped() is None
    await until(lambda: broker.connections == 0)


async def test_iteration_dropped_with_its_member_calls_on_revoked(broker: Broker) -> None:
    """The callback refers to the iteration and to the member, so all three are freed at once."""
    revoked: list[Any] = []

    async def forget(client: kproto.Client) -> None:
        parts: list[Any] = []

        async def on_revoked(tps: Any) -> None:
            assert parts
            revoked.append(tps)

        parts.append(await poll_two(client, on_revoked=on_revoked))
        parts.append(aiter(parts[0]))
        await anext(parts[1])

    async with kproto.Client(broker.bootstrap, SETTINGS) as client:
        with collected():
            await forget(client)
    assert revoked == [[("t", 0)]]


@pytest.mark.parametrize("how", ["iteration", "polled", "error"])
async def test_client_waits_until_a_dropped_member_has_left(broker: Broker, how: str) -> None:
    """The consumer is in a reference cycle.

    Garbage collection then clears weak references to the consumer before it frees the consumer.
    """

    async def forget(client: kproto.Client) -> None:
        consumer: Any = await poll_two(client)
        if how == "iteration":
            await anext(aiter(consumer))
        consumer.cycle = consumer

    async def work() -> None:
        async with kproto.Client(broker.bootstrap, SETTINGS) as client:
            with collected():
                await forget(client)
            if how == "error":
                raise LookupError

    async with kproto.Client(broker.bootstrap) as other:
        assert await committed(other) is None
        tasks = asyncio.all_tasks()
        with warnings.catch_warnings(), suppress(LookupError):
            warnings.simplefilter("ignore", ResourceWarning)
            await work()
        assert asyncio.all_tasks() <= tasks
        assert await members(other) == 0
        assert await committed(other) == (2 if how == "iteration" else 1)


async def test_dropped_client_with_a_member_leaves_no_connection(broker: Broker) -> None:
    async def forget() -> None:
        await poll_two(kproto.Client(broker.bootstrap, SETTINGS))

    with warns("a consumer of the group 'billing'"), collected():
        await forget()
        assert broker.connections
    with warns(f"a client of {broker.bootstrap}"):
        while broker.connections:
            gc.collect()  # the member holds the client until it has left
            await asyncio.sleep(0.001)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_dropped_member_that_left_after_the_poll_interval_warns(broker: Broker) -> None:
    """A dropped member that exceeded the poll interval has left the group, but must still warn.

    The member waits for the next poll. No pending request and no session timer holds a reference to
    the member.
    """
    given = {"max_poll_interval_ms": 100, "heartbeat_interval_ms": 20}

    async with kproto.Client(broker.bootstrap) as other:
        client = kproto.Client(broker.bootstrap, SETTINGS)
        with warns("a consumer of the group 'billing'"), collected():
            await poll_two(client, **given)
            await until_left(other)
        await client.close()


async def test_dropped_consumer_of_a_manual_assignment_warns(broker: Broker) -> None:
    async def forget(client: kproto.Client) -> None:
        consumer = client.consumer([("t", 0)], group="billing", auto_commit=False)
        assert await consumer.poll(1_000)

    client = kproto.Client(broker.bootstrap, SETTINGS)
    with warns("a consumer of the group 'billing'"), collected():
        await forget(client)
    await client.close()


async def test_dropped_consumer_without_group_warns_and_closes_its_connection(
    broker: Broker,
) -> None:
    async def forget(client: kproto.Client) -> None:
        assert await client.consumer("t", max_wait_ms=60_000).poll(1_000)

    async with kproto.Client(broker.bootstrap, SETTINGS) as client:
        with warns("a consumer of t"), collected():
            await forget(client)
        await until(lambda: broker.connections == 1)


@pytest.mark.parametrize("iterates", [False, True])
async def test_consumer_dropped_during_its_start_look_up_ends_it(
    broker: Broker, iterates: bool
) -> None:
    """A consumer that was polled warns; an iteration that is dropped closes its consumer."""

    async def forget(client: kproto.Client) -> None:
        consumer = client.consumer("t")
        if iterates:
            with suppress(TimeoutError):
                await asyncio.wait_for(anext(aiter(consumer)), 0.01)
        else:
            assert await consumer.poll(10) == {}
        await asyncio.sleep(0)  # the loop holds the frame of the timeout until its next iteration

    async with kproto.Client(broker.bootstrap, SETTINGS) as client:
        await client.refresh()
        tasks = asyncio.all_tasks()
        broker.control(SilentConnection(), request=ListOffsetsRequest)
        with nullcontext() if iterates else warns("a consumer of t"), collected():
            await forget(client)
        async with asyncio.timeout(10):
            await until(lambda: asyncio.all_tasks() <= tasks and broker.connections == 1)


async def test_dropped_iterations_do_not_warn(broker: Broker) -> None:
    async with kproto.Client(broker.bootstrap, SETTINGS) as client:
        with collected():
            async for _ in client.consumer("t"):
                break
            async for _ in client.consumer("t", group="billing"):
                break
            in_cycle: list[Any] = [aiter(client.consumer("t"))]
            in_cycle.append(in_cycle)
            await anext(in_cycle[0])
            del in_cycle
        await until(lambda: broker.connections == 1)


async def test_closed_parts_do_not_warn(broker: Broker) -> None:
    with collected():
        async with kproto.Client(broker.bootstrap, SETTINGS) as client:
            consumers = [await poll_two(client), client.consumer("t")]
            await consumers[1].poll(1_000)
            producer = client.producer(linger_ms=60_000)
            await producer.enqueue("t", b"3")
        del client, producer, consumers


def test_member_of_a_closed_loop_warns() -> None:
    async def poll(bootstrap: str) -> kproto.GroupConsumer:
        return await poll_two(kproto.Client(bootstrap, SETTINGS))

    def forget(bootstrap: str) -> None:
        consumer = asyncio.run(poll(bootstrap))
        with collected():
            del consumer

    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic("t", 1))
        asyncio.run(_fill(broker.bootstrap))
        # uvloop warns of connections that are open when the loop is closed. If its warning is an
        # error, uvloop does not close the connection, and waits for its end forever.
        with pytest.warns(ResourceWarning) as warned:
            forget(broker.bootstrap)
    texts = {str(each.message) for each in warned}
    assert any("a consumer of the group 'billing' was not closed" in text for text in texts)
    assert any(f"a client of {broker.bootstrap} was not closed" in text for text in texts)


async def _fill(bootstrap: str) -> None:
    async with kproto.Client(bootstrap) as client, client.producer() as producer:
        await producer.send_many("t", [b"0", b"1", b"2"])


async def test_dropped_producer_reports_failed_records(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    settings = replace(SETTINGS, delivery_timeout_ms=50, request_timeout_ms=40)

    async def forget(client: kproto.Client) -> weakref.ref[kproto.Producer]:
        producer = client.producer()
        await producer.send("t", b"stored")
        broker.control(SilentConnection(), request=ProduceRequest)
        failed = [await producer.enqueue("t", b"%d" % number) for number in range(3)]
        await asyncio.wait([each._batch.future for each in failed])
        return weakref.ref(producer)

    async with kproto.Client(broker.bootstrap, settings) as client:
        with warns("a producer with 3 records for t that were not acknowledged"):
            dropped = await forget(client)
            while dropped() is not None:  # its timers hold it for a while
                gc.collect()
                await asyncio.sleep(0.001)
    assert "3 records for t were not acknowledged, and their producer" in caplog.text


async def test_dropped_producer_reports_its_open_transaction(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async def forget(client: kproto.Client) -> weakref.ref[kproto.Producer]:
        producer = client.producer(transactional_id="billing-1", transaction_timeout_ms=7_000)
        await producer.transaction().__aenter__()
        await producer.send("t", b"written")
        return weakref.ref(producer)

    settings = replace(SETTINGS, delivery_timeout_ms=1_000, request_timeout_ms=900)
    text = "an open transaction of transactional id 'billing-1'"
    ends = "stays open until transaction_timeout_ms (7000 ms)"
    async with kproto.Client(broker.bootstrap, settings) as client:
        with warns(f"a producer with {text}, which {ends},"):
            dropped = await forget(client)
            while dropped() is not None:  # its timers hold it for a while
                gc.collect()
                await asyncio.sleep(0.001)
    assert f"{text} {ends}, because its producer was not closed" in caplog.text


async def test_dropped_producer_without_an_open_transaction_does_not_warn(broker: Broker) -> None:
    with collected():
        async with kproto.Client(broker.bootstrap, SETTINGS) as client:
            producer = client.producer(transactional_id="billing-1")
            async with producer.transaction():
                await producer.send("t", b"committed")
            transaction = producer.transaction()
            await transaction.__aenter__()
            await producer.send("t", b"aborted")
            await transaction.abort()
        del client, producer, transaction


def test_producer_of_a_closed_loop_reports_enqueued_records(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def forget(bootstrap: str) -> None:
        client = kproto.Client(bootstrap, SETTINGS)
        producer = client.producer(linger_ms=60_000)
        for number in range(5):
            await producer.enqueue("t", b"%d" % number)

    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic("t", 1))
        with pytest.warns(ResourceWarning) as warned, collected():
            asyncio.run(forget(broker.bootstrap))
    texts = [str(each.message) for each in warned]
    assert any("a producer with 5 records for t that were not ack" in text for text in texts)
    assert caplog.record_tuples == [
        (
            "kproto.client",
            logging.WARNING,
            "5 records for t were not acknowledged, and their producer was not closed",
        )
    ]


#: Leaves everything open until the interpreter exits: a module holds it.
PROGRAM = """
import asyncio
import kproto
from kproto.broker import Broker

async def main():
    broker = Broker()
    await broker.start()
    broker.create_topic("t", 1)
    client = kproto.Client(broker.bootstrap)
    producer = client.producer(linger_ms=60_000)
    await producer.enqueue("t", b"v")
    consumer = client.consumer("t", group="billing")
    await consumer.poll(10)
    return broker, client, producer, consumer

left = asyncio.run(main())
"""


def test_exit_of_the_interpreter_reports_lost_records_and_raises_nothing() -> None:
    for options, expected in ([], False), (["-W", "always::ResourceWarning"], True):
        command = [sys.executable, *options, "-c", PROGRAM]
        environment = {**os.environ, "PYTHONDEVMODE": ""}  # it shows each ResourceWarning
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert "1 record for t was not acknowledged" in ended.stderr
        assert "Exception ignored" not in ended.stderr
        assert ("ResourceWarning: a consumer of the group 'billing'" in ended.stderr) == expected
        assert ("ResourceWarning: an embedded broker at" in ended.stderr) == expected
