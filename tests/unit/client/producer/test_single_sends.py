"""Tests the fast path of `send`.

The fast path writes a single record to the socket at once if no earlier record is waiting.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto.client import Client, ClientSettings, DeliveryError
from kproto.client.producer import requests
from kproto.client.producer import sender as sender_module
from kproto.messages import ProduceRequest
from kproto.records import read_batches
from kproto.testing.clock import ManualClock
from kproto.wire.errors import KprotoError, RequestTimeoutError
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, Stored, produced

QUICK = ClientSettings(retry_backoff_ms=1, retry_backoff_max_ms=5)


def requests_in_flight(client: Client) -> int:
    return sum(connection.in_flight for connection in client._view._pool._open.values())


async def test_single_send_is_in_flight_at_its_first_wait_without_a_task() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            await asyncio.sleep(0)
            tasks = asyncio.all_tasks()
            sending = producer.send("t", b"second")
            waiter = sending.send(None)  # runs to its first wait
            assert requests_in_flight(client) == 1
            assert asyncio.all_tasks() == tasks
            assert waiter is not None
            await broker.until(lambda: stored.values() == [b"first", b"second"])
            sending.close()


async def test_later_sends_share_a_request() -> None:
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"warm", partition=0)
            before = broker.count(ProduceRequest)
            await asyncio.gather(
                *(producer.send("t", b"%d" % at, partition=at % 3) for at in range(90))
            )
            assert broker.count(ProduceRequest) - before == 3, (
                "partition 0; then 1 and 2; then the rest of 0"
            )
        for partition in range(3):
            values = [b"%d" % at for at in range(partition, 90, 3)]
            assert [value for value in stored.values(partition) if value != b"warm"] == values


async def test_send_with_linger_waits_for_others() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
    ):
        stored = Stored(broker)
        async with client.producer(linger_ms=100) as producer:
            sending = asyncio.gather(*(producer.send("t", b"%d" % at) for at in range(3)))
            await broker.until(lambda: clock.next_timer_ms == 100)
            assert broker.count(ProduceRequest) == 0
            await clock.advance(100)
            await sending
        assert stored.values() == [b"0", b"1", b"2"]
        assert broker.count(ProduceRequest) == 1


async def test_retry_has_the_same_bytes() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        sent: list[bytes] = []
        faults: list[Any] = [HANG_UP, 7, 6]  # lost, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER

        def answer(asked: Any) -> Any:
            sent.append(asked.message.topic_data[0].partition_data[0].records)
            if not faults:
                return stored.answer(asked)
            fault = faults.pop(0)
            return fault if fault == HANG_UP else produced(asked, error_code=fault)

        async with client.producer() as producer:
            await producer.send("t", b"first")
            broker.answers[ProduceRequest] = answer
            ack = await producer.send("t", b"second")
        assert ack.offset == 1
        assert len(sent) == 4
        assert len(set(sent)) == 1
        (batch,) = read_batches(sent[0])
        assert batch.base_sequence == 1
        assert stored.values() == [b"first", b"second"]


async def test_cancelled_send_is_stored_and_affects_no_other() -> None:
    release = asyncio.Event()
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")

            async def answer(asked: Any) -> Any:
                await release.wait()
                return stored.answer(asked)

            broker.answers[ProduceRequest] = answer
            sending = asyncio.create_task(producer.send("t", b"second"))
            await broker.until(lambda: broker.count(ProduceRequest) == 2)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            later = asyncio.create_task(producer.send("t", b"third"))
            release.set()
            assert (await later).offset == 2
            assert producer._accumulator.buffered == 0
        assert stored.values() == [b"first", b"second", b"third"]


async def test_single_send_fails_at_the_delivery_timeout() -> None:
    clock = ManualClock()
    settings = ClientSettings(delivery_timeout_ms=1_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            await clock.advance(1_500)  # the timer of the first send has fired
            await producer.send("t", b"second")
            await clock.advance(1_500)
            broker.answers[ProduceRequest] = lambda asked: None
            sending = asyncio.create_task(producer.send("t", b"third"))
            await broker.until(lambda: broker.count(ProduceRequest) == 3)
            await clock.advance(990)
            assert not sending.done()
            await clock.advance(20)
            with pytest.raises(DeliveryError) as raised:
                await sending
            assert isinstance(raised.value.cause, RequestTimeoutError)
            assert [record.value for record in raised.value.records] == [b"third"]
            await producer.close(timeout_ms=0)


async def test_response_after_the_close_is_ignored() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    release = asyncio.Event()
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        producer = client.producer()
        await producer.send("t", b"first")

        async def answer(asked: Any) -> Any:
            await release.wait()
            return stored.answer(asked)

        broker.answers[ProduceRequest] = answer
        sending = asyncio.create_task(producer.send("t", b"second"))
        await broker.until(lambda: broker.count(ProduceRequest) == 2)
        await producer.close(timeout_ms=0)
        with pytest.raises(DeliveryError, match="the producer was closed before that"):
            await sending
        release.set()
        await broker.until(lambda: not requests_in_flight(client))
        assert stored.values() == [b"first", b"second"]
    assert faults == []


async def test_internal_error_is_reported_to_the_loop_and_fails_the_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a bug")

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            monkeypatch.setattr(sender_module, "partition_responses", broken)
            with pytest.raises(
                DeliveryError, match="an internal error before that: ZeroDivisionError"
            ) as raised:
                await producer.send("t", b"second")
            assert [record.value for record in raised.value.records] == [b"second"]
            assert type(raised.value.cause) is KprotoError
            monkeypatch.setattr(sender_module, "partition_responses", requests.partition_responses)
            await producer.send("t", b"third")
    assert [type(fault["exception"]) for fault in faults] == [ZeroDivisionError]
