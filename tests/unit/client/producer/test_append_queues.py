"""Tests calls that wait for metadata or buffer space: their order, and flush and close."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import (
    Client,
    ClientSettings,
    ConfigurationError,
    DeliveryError,
    ProducerRecord,
    RequestTimeoutError,
)
from kproto.broker import Broker
from kproto.broker.faults import Close
from kproto.client.producer.producer import Producer
from kproto.messages import MetadataRequest
from kproto.messages.produce_request import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, Stored, quick

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=20_000)


def delay_answers(broker: ScriptedBroker, request: Any) -> asyncio.Event:
    """Delays the broker's answers to `request` until the returned event is set."""
    release = asyncio.Event()
    answer = broker.answers[request]

    async def later(asked: ReceivedRequest) -> Any:
        await release.wait()
        return answer(asked)

    broker.answers[request] = later
    return release


async def loop_turn() -> None:
    """Lets the event loop run once, so that new tasks start."""
    await asyncio.sleep(0)


def numbered(count: int, name: str = "") -> list[bytes]:
    return [b"%s%03d" % (name.encode(), at) for at in range(count)]


# --- Order ---


async def test_slow_iterator_does_not_block_sending() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)

        def until_some_are_sent() -> Iterator[bytes]:
            end = time.monotonic() + 20
            while not broker.count(ProduceRequest):
                assert time.monotonic() < end, "records are sent while the iterator runs"
                time.sleep(0.002)  # iterates lazily, like a file
                yield b"many"
            yield b"last"

        async with client.producer() as producer:
            await client.topic("t")
            many = asyncio.create_task(producer.send_many("t", until_some_are_sent()))
            await loop_turn()
            await producer.send("t", b"after")
            assert len(await many) > 1
        assert stored.values() == [b"many"] * (len(many.result()) - 1) + [b"last", b"after"]


async def test_long_list_yields_to_other_tasks() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"")
            many = asyncio.create_task(producer.send_many("t", [b""] * 50_000))
            sent = broker.count(ProduceRequest)
            turns = 0
            while broker.count(ProduceRequest) == sent:
                await loop_turn()
                turns += 1
            assert turns > 1
            assert len(await many) == 50_000


async def test_send_many_waiting_for_buffer_space_is_not_overtaken() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(buffer_bytes=500) as producer:
            await producer.send("t", b"first")
            many = asyncio.create_task(producer.send_many("t", numbered(100, "a")))
            await loop_turn()
            await asyncio.gather(
                many,
                producer.send("t", b"b"),
                producer.send_many("t", iter(numbered(50, "c"))),
                producer.enqueue("t", b"d"),
            )
        assert stored.values() == [
            b"first",
            *numbered(100, "a"),
            b"b",
            *numbered(50, "c"),
            b"d",
        ]


async def test_send_many_waiting_for_a_partition_is_not_overtaken() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            broker.topics["t"] = 2
            release = delay_answers(broker, MetadataRequest)
            records: list[Any] = [b"1", ProducerRecord(b"of the new one", partition=1)]
            records += [ProducerRecord(value, partition=0) for value in (b"2", b"3")]
            many = asyncio.create_task(producer.send_many("t", records))
            await loop_turn()
            one = asyncio.create_task(producer.send("t", b"after", partition=0))
            await loop_turn()
            release.set()
            await asyncio.gather(many, one)
        assert stored.values(0) == [b"first", b"1", b"2", b"3", b"after"]


async def test_call_for_another_topic_does_not_wait() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"other": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
        client.producer() as producer,
    ):
        await client.topic("other")
        many = asyncio.create_task(producer.send_many("t", numbered(100)))
        await broker.until(lambda: clock.next_timer_ms == pytest.approx(1, rel=0.3))
        assert (await producer.send("other", b"x")).offset == 0
        assert not many.done()
        broker.topics["t"] = 1
        await clock.advance(2)
        assert len(await many) == 100


async def test_cancelled_send_many_does_not_block_the_next_call() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        release = delay_answers(broker, ProduceRequest)
        async with client.producer(buffer_bytes=500) as producer:
            many = asyncio.create_task(producer.send_many("t", numbered(100)))
            await broker.until(lambda: broker.count(ProduceRequest) == 1)
            one = asyncio.create_task(producer.send("t", b"after"))
            await loop_turn()
            many.cancel()
            release.set()
            await one
        assert stored.values()[-1] == b"after"
        assert stored.values()[:-1] == numbered(100)[: len(stored.values()) - 1]


async def test_timeout_names_the_endless_earlier_call() -> None:
    clock = ManualClock()
    settings = ClientSettings(delivery_timeout_ms=3_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        Stored(broker)
        producer = client.producer(buffer_bytes=500)
        many = asyncio.create_task(producer.send_many("t", iter(lambda: b"endless", b"")))
        await broker.until(lambda: broker.count(ProduceRequest) >= 1)
        behind = asyncio.create_task(producer.send("t", b"behind"))
        await loop_turn()
        for _ in range(3):
            await clock.advance(1_000)
            before = broker.count(ProduceRequest)
            await broker.until(lambda: broker.count(ProduceRequest) > before + 3)  # noqa: B023
        with pytest.raises(DeliveryError, match=r"an earlier call .* 3000 ms") as raised:
            await behind
        assert raised.value.records[0].value == b"behind"
        assert not many.done()
        await producer.close(timeout_ms=0)
        with pytest.raises(DeliveryError, match="the producer was closed"):
            await many


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_records_of_a_partition_keep_the_order_of_the_calls(seed: int) -> None:
    asyncio.run(play(random.Random(seed)))


async def play(chance: random.Random) -> None:
    """Calls a producer's `send`, `enqueue`, `send_many` and `flush` at random, and checks the log.

    Some calls wait for memory, lose their connection or are cancelled. Each partition must store
    its records in the order of the calls; only records of cancelled calls may be missing.
    """
    topics = {"t": chance.choice([1, 2]), "u": 1}
    expected: dict[tuple[str, int], list[bytes]] = {}
    cancelled_values: set[bytes] = set()
    calls: list[asyncio.Task[object]] = []
    async with Broker() as broker, Client(broker.bootstrap, QUICK) as client:
        for name, partitions in topics.items():
            broker.create_topic(name, partitions)
        faults = chance.choice([0.0, 0.3])
        broker.control(
            lambda asked: Close(chance.random() < 0.5) if chance.random() < faults else None,
            times=10,
        )
        async with client.producer(
            buffer_bytes=chance.choice([1, 200, 1_000, 33_554_432]),
            batch_bytes=chance.choice([1, 150, 1_000]),
        ) as producer:
            for number in range(chance.randint(2, 12)):
                topic = chance.choice(["t", "t", "u"])
                partition = chance.randrange(topics[topic])
                values = numbered(chance.choice([1, 1, 5, 40]), f"{number}-")
                expected.setdefault((topic, partition), []).extend(values)
                call = a_call(producer, chance, topic, partition, values)
                calls.append(asyncio.create_task(call))
                if chance.random() < 0.7:
                    await turns(chance)
                if chance.random() < 0.1:
                    cancelled_values.update(values)
                    calls[-1].cancel()
                if chance.random() < 0.1:
                    calls.append(asyncio.create_task(producer.flush()))
            if chance.random() < 0.5:
                await asyncio.gather(*calls, return_exceptions=True)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        found = {tp: [record.value for record in broker.records(*tp)] for tp in expected}
    assert not [each for each in outcomes if isinstance(each, Exception)]
    for tp, values in expected.items():
        stored = found[tp]
        assert stored == [each for each in values if each in stored], (
            "stored in the order of the calls"
        )
        assert cancelled_values.issuperset(set(values) - set(stored))


async def a_call(
    producer: Producer, chance: random.Random, topic: str, partition: int, values: list[bytes]
) -> object:
    if len(values) == 1:
        if chance.random() < 0.5:
            return await producer.send(topic, values[0], partition=partition)
        return await producer.enqueue(topic, values[0], partition=partition)
    records = [ProducerRecord(value, partition=partition) for value in values]
    return await producer.send_many(topic, iter(records) if chance.random() < 0.5 else records)


async def turns(chance: random.Random) -> None:
    for _ in range(chance.choice([0, 1, 2, 10])):
        await loop_turn()


# --- Flush and close ---


async def one_send(producer: Producer) -> object:
    return await producer.send("t", b"000")


async def one_enqueue(producer: Producer) -> object:
    return await producer.enqueue("t", b"000")


async def a_list(producer: Producer) -> object:
    return await producer.send_many("t", numbered(50))


async def an_iterator(producer: Producer) -> object:
    return await producer.send_many("t", iter(numbered(50)))


Call = Callable[[Producer], Awaitable[object]]
CALLS: list[Call] = [one_send, one_enqueue, a_list, an_iterator]


def count_of(call: Call) -> int:
    return 50 if call in (a_list, an_iterator) else 1


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("ending", ["flush", "close", "block"])
@pytest.mark.parametrize("waits_for", [MetadataRequest, ProduceRequest])
async def test_waiting_records_are_sent_before_flush_or_close_returns(
    call: Call, ending: str, waits_for: Any
) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        producer = client.producer(buffer_bytes=500, linger_ms=10_000)
        before = []
        if waits_for is ProduceRequest:
            await client.topic("t")
            before = [b"full"]
        release = delay_answers(broker, waits_for)

        async def block() -> None:
            async with producer:
                calls.append(asyncio.ensure_future(call(producer)))

        calls: list[asyncio.Future[object]] = []
        if before:
            calls.append(asyncio.create_task(producer.send("t", b"full".ljust(600))))
            await loop_turn()
        if ending == "block":
            end = asyncio.create_task(block())
        else:
            calls.append(asyncio.ensure_future(call(producer)))
            await loop_turn()
            end = asyncio.create_task(getattr(producer, ending)())
        await broker.until(lambda: broker.count(waits_for) > (waits_for is MetadataRequest))
        assert not end.done()
        release.set()
        await end
        assert all(each.done() for each in calls)
        await asyncio.gather(*calls)
        assert stored.values()[len(before) :] == numbered(count_of(call))
        await producer.close()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("waits_for", [MetadataRequest, ProduceRequest])
async def test_close_that_times_out_fails_waiting_calls_with_their_records(
    call: Call, waits_for: Any
) -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
    ):
        producer = client.producer(buffer_bytes=500)
        full: asyncio.Task[object] | None = None
        if waits_for is ProduceRequest:
            await client.topic("t")
        broker.answers[waits_for] = lambda asked: None
        if waits_for is ProduceRequest:
            full = asyncio.create_task(producer.send("t", bytes(600)))
            await loop_turn()
        waiting = asyncio.ensure_future(call(producer))
        await loop_turn()
        closing = asyncio.create_task(producer.close(timeout_ms=300))
        await clock.advance(299)
        assert not closing.done()
        with pytest.raises(ConfigurationError, match="the producer is closed"):
            await call(producer)
        await clock.advance(1)
        await closing
        with pytest.raises(DeliveryError, match="the producer was closed") as raised:
            await waiting
        taken = 0 if call is an_iterator else count_of(call)
        assert [record.value for record in raised.value.records] == numbered(taken)
        if full is not None:
            with pytest.raises(DeliveryError, match="the producer was closed"):
                await full


async def test_close_fails_waiting_calls_and_keeps_cancelled_ones_cancelled() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        producer = client.producer()
        broker.answers[MetadataRequest] = lambda asked: None

        async def waiting() -> int:
            with pytest.raises(DeliveryError, match="the producer was closed"):
                await producer.send("t", b"")
            await loop_turn()
            task = asyncio.current_task()
            return -1 if task is None else task.cancelling()

        failed = asyncio.create_task(waiting())
        cancelled = asyncio.create_task(producer.send("t", b""))
        both = asyncio.create_task(producer.send("t", b""))
        await loop_turn()
        cancelled.cancel()
        closing = asyncio.create_task(producer.close(timeout_ms=0))
        await loop_turn()
        both.cancel()
        await asyncio.wait([failed, cancelled, both, closing])
        assert failed.result() == 0
        assert cancelled.cancelled()
        assert both.cancelled()


async def test_record_of_an_interrupted_list_is_acknowledged_or_in_the_error() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        store = stored.answer
        broker.answers[ProduceRequest] = lambda asked: (
            store(asked) if len(stored.batches) < 5 else None
        )
        producer = client.producer(buffer_bytes=500, batch_bytes=100)
        values = numbered(200)
        sending = asyncio.create_task(producer.send_many("t", values))
        await broker.until(lambda: broker.count(ProduceRequest) > 5)
        await producer.close(timeout_ms=0)
        with pytest.raises(DeliveryError, match="the producer was closed") as raised:
            await sending
        assert stored.values()
        assert stored.values() + [record.value for record in raised.value.records] == values


async def test_records_whose_partition_stays_unknown_are_in_the_error() -> None:
    settings = quick(metadata_wait_ms=50, delivery_timeout_ms=100)
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, settings) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            broker.answers[MetadataRequest] = lambda asked: HANG_UP
            records = [ProducerRecord(b"%d" % at, partition=at) for at in range(4)]
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", records)
        failed = [record.value for record in raised.value.records]
        assert stored.values()[1:] + failed == [record.value for record in records]


async def test_close_waits_for_an_iterator_no_longer_than_the_delivery_timeout() -> None:
    clock = ManualClock()
    settings = ClientSettings(delivery_timeout_ms=3_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        Stored(broker)
        taken: list[bytes] = []

        def endless() -> Iterator[bytes]:
            while True:
                taken.append(b"%d" % len(taken))
                yield taken[-1]

        producer = client.producer(buffer_bytes=500)
        many = asyncio.create_task(producer.send_many("t", endless()))
        await broker.until(lambda: broker.count(ProduceRequest) >= 1)
        closing = asyncio.create_task(producer.close())
        await loop_turn()
        for ms in (1_000, 1_000, 999):
            await clock.advance(ms)
            before = broker.count(ProduceRequest)
            await broker.until(lambda: broker.count(ProduceRequest) > before + 3)  # noqa: B023
        assert not closing.done()
        await clock.advance(1)
        await closing
        with pytest.raises(DeliveryError, match="the producer was closed") as raised:
            await many
        assert raised.value.records == []


async def test_flush_that_times_out_counts_waiting_records_and_calls() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
    ):
        stored = Stored(broker)
        release = delay_answers(broker, ProduceRequest)
        async with client.producer(buffer_bytes=100) as producer:
            await client.topic("t")
            sending = [asyncio.create_task(producer.send("t", bytes(100))) for _ in range(3)]
            await loop_turn()
            flushing = asyncio.create_task(producer.flush(timeout_ms=50))
            await clock.advance(50)
            words = "1 record was not acknowledged within 50 ms, and 2 calls have more records"
            with pytest.raises(RequestTimeoutError, match=words):
                await flushing
            release.set()
            await asyncio.gather(*sending)
        assert len(stored.values()) == 3


@pytest.mark.parametrize("timeout_ms", ["x", -1, 1.5, True])
async def test_invalid_timeout_is_refused_without_effect(timeout_ms: Any) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            for end in (producer.flush, producer.close):
                with pytest.raises(ConfigurationError, match="timeout_ms"):
                    await end(timeout_ms=timeout_ms)
            await producer.send("t", b"still open")
