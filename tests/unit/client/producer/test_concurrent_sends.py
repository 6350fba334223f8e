"""Tests calls of `send` that many coroutines make in one iteration of the event loop."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from kproto.broker.faults import ErrorCode
from kproto.client.producer.accumulator import RecordAccumulator
from kproto.client.producer.concurrent_sends import MAX_COLLECTED_BYTES
from kproto.messages import MetadataRequest, ProduceRequest
from kproto.protocol.connection import ReceivedRequest

KEYS = [b"key-%d" % number for number in range(7)]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list that gets, for each append of several records, the number of records."""
    found: list[int] = []
    add_run = RecordAccumulator.add_run

    def counting(self: RecordAccumulator, *arguments: Any) -> Any:
        batch, position, appended = add_run(self, *arguments)
        found.append(appended)
        return batch, position, appended

    monkeypatch.setattr(RecordAccumulator, "add_run", counting)
    return found


def stored(broker: Broker, partitions: int) -> dict[tuple[int, int], kproto.Record]:
    """Returns the records of topic t by partition and offset."""
    return {
        (partition, each.offset): each
        for partition in range(partitions)
        for each in broker.records("t", partition)
    }


def values_by_key(broker: Broker, partitions: int = 3) -> dict[bytes | None, list[bytes | None]]:
    found = defaultdict(list)
    for record in stored(broker, partitions).values():
        found[record.key].append(record.value)
    return dict(found)


def expected(values: list[bytes]) -> dict[bytes, list[bytes]]:
    return {key: values[at :: len(KEYS)] for at, key in enumerate(KEYS)}


@pytest.mark.parametrize("partitions", [1, 5, 40])
@pytest.mark.parametrize("partitioner", ["murmur2_random", "fnv1a"])
async def test_each_send_gets_the_ack_of_its_record(
    partitions: int, partitioner: Any, runs: list[int]
) -> None:
    values = [b"%d" % number for number in range(700)]
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions)
        async with client.producer(partitioner=partitioner) as producer:
            await producer.send("t", b"first", key=b"other")
            acks = await asyncio.gather(
                *(
                    producer.send("t", value, key=KEYS[at % len(KEYS)])
                    for at, value in enumerate(values)
                )
            )
        assert max(runs) > 10
        records = stored(broker, partitions)
        for ack, value in zip(acks, values, strict=True):
            record = records[ack.partition, ack.offset]
            assert (record.value, record.timestamp) == (value, ack.timestamp)
        found = values_by_key(broker, partitions)
        assert {key: found[key] for key in KEYS} == expected(values)


async def test_sends_to_many_partitions_continue_in_the_order_of_the_calls() -> None:
    continued: list[tuple[int, int]] = []

    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 40)
        async with client.producer() as producer:

            async def send(number: int) -> None:
                ack = await producer.send("t", b"v", key=b"key-%d" % number)
                continued.append((ack.partition, number))

            await producer.send("t", b"first", key=b"other")
            await asyncio.gather(*map(send, range(300)))
    (first, _), *_ = continued  # its batch is sent alone, so that another response acks the others
    calls = [number for partition, number in continued if partition != first]
    assert len(calls) > 250
    assert calls == sorted(calls)


async def test_cancelled_sends_do_not_change_the_acks_of_sends_to_other_partitions() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 40)
        async with client.producer() as producer:
            await producer.send("t", b"first", key=b"other")
            sends = [
                asyncio.create_task(producer.send("t", b"%d" % at, key=b"key-%d" % at))
                for at in range(300)
            ]
            await asyncio.sleep(0)
            for each in sends[::7]:
                each.cancel()
            results = await asyncio.gather(*sends, return_exceptions=True)
        records = stored(broker, 40)
        for at, result in enumerate(results):
            if at % 7 == 0:
                assert isinstance(result, asyncio.CancelledError)
            else:
                assert isinstance(result, kproto.Ack)
                assert records[result.partition, result.offset].value == b"%d" % at


async def test_acks_have_the_log_append_time() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 2, configs={"message.timestamp.type": "LogAppendTime"})
        async with client.producer() as producer:
            acks = await asyncio.gather(
                *(producer.send("t", b"v", key=KEYS[at % 7]) for at in range(70))
            )
        times = {place: each.timestamp for place, each in stored(broker, 2).items()}
        assert {(ack.partition, ack.offset): ack.timestamp for ack in acks} == times


async def test_records_of_other_calls_keep_their_order(runs: list[int]) -> None:
    """Each call first appends the collected records of its topic, and then its own records."""
    chance = random.Random(5)
    values = [b"%d" % number for number in range(500)]
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 3)
        broker.create_topic("u", 3)
        async with client.producer() as producer:
            await producer.send("t", b"0", key=KEYS[0])
            tasks: list[asyncio.Task[Any]] = []
            for at, value in enumerate(values[1:], 1):
                key = KEYS[at % len(KEYS)]
                call: Any
                match chance.randrange(20):
                    case 0:
                        call = producer.send("t", value, key=key, headers=[("h", b"")])
                    case 1:
                        call = producer.send("t", value, key=key, timestamp=5)
                    case 2:
                        call = producer.enqueue("t", value, key=key)
                    case 3:
                        call = producer.send_many("t", [kproto.ProducerRecord(value, key)])
                    case other:
                        if other == 4:
                            await asyncio.sleep(0)
                        call = producer.send("t", value, key=key)
                tasks += [asyncio.create_task(call)]
                tasks += [asyncio.create_task(producer.send("u", value, key=key))]
            await asyncio.gather(*tasks)
        assert max(runs) > 1
        assert values_by_key(broker) == expected(values)


async def test_close_in_the_same_iteration_sends_the_collected_records(runs: list[int]) -> None:
    values = [b"%d" % number for number in range(70)]
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 3)
        producer = client.producer()
        await producer.send("t", b"first", key=b"other")
        sends = [
            asyncio.create_task(producer.send("t", value, key=KEYS[at % 7]))
            for at, value in enumerate(values)
        ]
        close = asyncio.create_task(producer.close())
        late = asyncio.create_task(producer.send("t", b"late", key=b"late"))
        with pytest.raises(kproto.ConfigurationError, match="closed"):
            await late
        await asyncio.gather(close, *sends)
        assert max(runs) > 1
        found = values_by_key(broker)
        assert {key: found[key] for key in KEYS} == expected(values)


async def test_flush_in_the_same_iteration_waits_for_the_collected_records() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 3)
        async with client.producer() as producer:
            await producer.send("t", b"first", key=b"other")
            sends = [
                asyncio.create_task(producer.send("t", b"v", key=KEYS[at % 7])) for at in range(70)
            ]
            flush = asyncio.create_task(producer.flush())
            await flush
            assert len(stored(broker, 3)) == 71
            await asyncio.gather(*sends)


async def test_cancelled_send_affects_no_other_send() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 3)
        async with client.producer() as producer:
            await producer.send("t", b"first", key=b"other")
            sends = [
                asyncio.create_task(producer.send("t", b"%d" % at, key=KEYS[at % 7]))
                for at in range(70)
            ]
            asyncio.get_running_loop().call_soon(sends[30].cancel)
            outcomes: Any = await asyncio.gather(*sends, return_exceptions=True)
            assert isinstance(outcomes.pop(30), asyncio.CancelledError)
            acked = {(each.partition, each.offset) for each in outcomes}
            assert acked < stored(broker, 3).keys()


async def test_each_send_gets_the_failure_of_its_record(runs: list[int]) -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 3)
        async with client.producer() as producer:
            await producer.send("t", b"first", key=b"other")
            broker.control(
                ErrorCode("TOPIC_AUTHORIZATION_FAILED", times=None), request=ProduceRequest
            )
            outcomes: Any = await asyncio.gather(
                *(producer.send("t", b"%d" % at, key=KEYS[at % 7]) for at in range(70)),
                return_exceptions=True,
            )
        assert max(runs) > 1
        for at, error in enumerate(outcomes):
            assert isinstance(error, kproto.DeliveryError)
            assert [(each.key, each.value) for each in error.records] == [
                (KEYS[at % 7], b"%d" % at)
            ]


async def test_unexpected_fault_is_raised_by_each_send(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 3)
        async with client.producer() as producer:
            await producer.send("t", b"first", key=b"other")

            def failing(*_: object) -> Any:
                raise MemoryError("no memory")

            monkeypatch.setattr(RecordAccumulator, "add_run", failing)
            faults: list[Any] = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
            outcomes: Any = await asyncio.gather(
                *(producer.send("t", b"%d" % at, key=KEYS[at % 7]) for at in range(70)),
                return_exceptions=True,
            )
            loop.set_exception_handler(None)
        assert [type(each) for each in faults] == [MemoryError]
        assert {type(each) for each in outcomes[-40:]} == {MemoryError}


@pytest.mark.parametrize("size", [10, 5_000])
async def test_memory_stays_within_the_buffer(size: int) -> None:
    """Records are collected only if they are small and the buffer has space."""
    buffer_bytes = 200_000
    assert buffer_bytes < MAX_COLLECTED_BYTES
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 3)
        async with client.producer(buffer_bytes=buffer_bytes, batch_bytes=10_000) as producer:
            most = 0

            async def send(at: int) -> None:
                nonlocal most
                await producer.send("t", bytes(size), key=KEYS[at % 7])
                most = max(most, producer._accumulator.buffered)

            await asyncio.gather(*(send(at) for at in range(200)))
            assert most <= buffer_bytes + 10_000
        assert len(stored(broker, 3)) == 200


async def test_collected_records_share_few_batches() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", 100)
        async with client.producer() as producer:
            await producer.send("t", b"first", key=b"other")
            await asyncio.gather(*(producer.send("t", b"v", key=b"%d" % at) for at in range(5_000)))
            queues = producer._accumulator.queues.values()
            assert sum(queue.next_send_index for queue in queues) <= 1 + 2 * 100


async def test_concurrent_calls_for_many_topics_share_a_metadata_request() -> None:
    topics = [f"t{number}" for number in range(200)]
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        for topic in topics:
            broker.create_topic(topic)
        asked: list[ReceivedRequest] = []
        broker.control(asked.append, request=MetadataRequest)
        async with client.producer() as producer:
            await asyncio.gather(*(producer.enqueue(topic, b"v") for topic in topics))
        # With eager tasks the first call sends its request before the other calls begin.
        assert 1 <= len(asked) <= 2
        assert all(len(broker.records(topic)) == 1 for topic in topics)
