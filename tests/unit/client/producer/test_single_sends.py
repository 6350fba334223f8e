"""A send that nothing stands before goes out in its own turn; all that holds for others holds."""

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


def requests_under_way(client: Client) -> int:
    return sum(len(connection._waiting) for connection in client._view._pool._open.values())


async def test_it_is_under_way_when_send_first_waits_and_needs_no_task() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            await asyncio.sleep(0)
            tasks = asyncio.all_tasks()
            sending = producer.send("t", b"second")
            waiter = sending.send(None)  # up to its first wait
            assert requests_under_way(client) == 1
            assert asyncio.all_tasks() == tasks
            assert waiter is not None
            await broker.until(lambda: stored.values() == [b"first", b"second"])
            sending.close()


async def test_those_behind_it_go_together() -> None:
    async with ScriptedBroker({"t": 3}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"warm", partition=0)
            before = broker.count(ProduceRequest)
            await asyncio.gather(
                *(producer.send("t", b"%d" % at, partition=at % 3) for at in range(90))
            )
            assert broker.count(ProduceRequest) - before == 3, "0; then 1 and 2; then the rest of 0"
        for partition in range(3):
            values = [b"%d" % at for at in range(partition, 90, 3)]
            assert [value for value in stored.values(partition) if value != b"warm"] == values


async def test_with_linger_it_waits_for_others() -> None:
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


async def test_it_goes_again_with_the_same_bytes() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        sent: list[bytes] = []
        troubles: list[Any] = [HANG_UP, 7, 6]  # lost, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER

        def answer(asked: Any) -> Any:
            sent.append(asked.message.topic_data[0].partition_data[0].records)
            if not troubles:
                return stored.answer(asked)
            trouble = troubles.pop(0)
            return trouble if trouble == HANG_UP else produced(asked, error_code=trouble)

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


async def test_a_cancelled_send_is_stored_and_harms_nobody() -> None:
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


async def test_it_has_the_time_of_a_delivery() -> None:
    clock = ManualClock()
    settings = ClientSettings(delivery_timeout_ms=1_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            await clock.advance(1_500)  # its timer has passed
            await producer.send("t", b"second")
            await clock.advance(1_500)
            broker.answers[ProduceRequest] = lambda asked: None
            sending = asyncio.create_task(producer.send("t", b"third"))
            await broker.until(lambda: broker.count(ProduceRequest) == 3)
            await clock.advance(990)
            assert not sending.done()
            await clock.advance(20)
            with pytest.raises(DeliveryError) as told:
                await sending
            assert isinstance(told.value.cause, RequestTimeoutError)
            assert [record.value for record in told.value.records] == [b"third"]
            await producer.close(timeout_ms=0)


async def test_an_answer_behind_the_close_is_nobodys() -> None:
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
        await broker.until(lambda: not requests_under_way(client))
        assert stored.values() == [b"first", b"second"]
    assert faults == []


async def test_a_fault_of_our_own_is_told_to_the_loop_and_to_the_sender(
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
            monkeypatch.setattr(sender_module, "produced_partitions", broken)
            with pytest.raises(
                DeliveryError, match="a fault of its own: ZeroDivisionError"
            ) as told:
                await producer.send("t", b"second")
            assert [record.value for record in told.value.records] == [b"second"]
            assert type(told.value.cause) is KprotoError
            monkeypatch.setattr(sender_module, "produced_partitions", requests.produced_partitions)
            await producer.send("t", b"third")
    assert [type(fault["exception"]) for fault in faults] == [ZeroDivisionError]
