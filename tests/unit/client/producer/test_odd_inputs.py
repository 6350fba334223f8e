"""Tests unusual arguments: no record is lost, and each error names its cause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from kproto import Client, DeliveryError, EncodeError, ProducerRecord
from kproto.messages import MetadataRequest, ProduceRequest
from tests.support.steady_time import hold_up
from tests.unit.client.scripted_broker import ScriptedBroker, Stored, produced, quick

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=300)


class OneShot:
    """A collection that can be iterated only once, like a progress bar."""

    def __init__(self, count: int) -> None:
        self.left = iter([b"%d" % at for at in range(count)])
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[bytes]:
        return self.left

    def __contains__(self, value: object) -> bool:
        raise AssertionError("membership is never tested")


async def test_one_shot_collection_is_returned_whole_in_the_error() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)

        def answer(asked: Any) -> Any:
            return stored.answer(asked) if len(stored.batches) < 3 else produced(asked, 29)

        broker.answers[ProduceRequest] = answer
        async with client.producer(batch_bytes=200, buffer_bytes=400) as producer:
            values = OneShot(200)
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", values)
        failed = [record.value for record in raised.value.records]
        assert stored.values() + failed == [b"%d" % at for at in range(200)]
        assert list(values.left) == []


async def test_endless_collection_is_returned_up_to_its_length() -> None:
    class Endless(OneShot):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                yield b"v"

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, 29)
        async with client.producer(batch_bytes=200, buffer_bytes=400) as producer:
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", Endless(50))
        assert 50 <= len(raised.value.records) <= 150


async def test_headers_of_an_iterator_survive_a_metadata_refresh() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"first")
            broker.topics["t"] = 2
            headers: Any = ((name, b"1") for name in "ab")
            await producer.send("t", b"second", headers=headers, partition=1)
        (record,) = stored.batches[-1][2].records()
        assert record.headers == [("a", b"1"), ("b", b"1")]


@pytest.mark.slow
async def test_timeout_names_the_earlier_call_and_not_the_buffer() -> None:
    def blocking() -> Iterator[bytes]:
        yield b"1"
        hold_up(0.02)
        yield b"2"  # the producer pauses here; the other call waits
        hold_up(0.5)
        yield b"3"

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"warm")
            many = asyncio.create_task(producer.send_many("t", blocking()))
            behind = asyncio.create_task(producer.send("t", b"behind"))
            with pytest.raises(DeliveryError, match="an earlier call had not appended all"):
                await behind
            await asyncio.wait([many])
            many.exception()


@pytest.mark.parametrize("wrong", [True, 0.0, "0", b"0"])
async def test_invalid_partition_number_is_refused(wrong: Any) -> None:
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        async with client.producer() as producer:
            with pytest.raises(EncodeError, match="is no whole number"):
                await producer.send("t", b"v", partition=wrong)
            with pytest.raises(EncodeError, match=r"element 0.*is no whole number"):
                await producer.send_many("t", [ProducerRecord(b"v", partition=wrong)])
        assert broker.count(ProduceRequest) == 0


async def async_values() -> AsyncIterator[bytes]:
    yield b"v"


NO_RECORDS: list[tuple[Any, str]] = [
    (ProducerRecord(b"v", b"k"), "values is one record: pass a list of records, or use send"),
    ({b"k": b"v"}, "values is a mapping, whose keys are no records: pass a list of records"),
    ("text", "values is a single str: pass a list of records, or use send for one record"),
    (b"bytes", "values is a single bytes"),
    (bytearray(b"bytes"), "values is a single bytearray"),
    (memoryview(b"bytes"), "values is a single memoryview"),
    (5, "values is of type int"),
    (None, "values is of type NoneType"),
    (async_values(), "values is an async iterator: collect its records in a list"),
]


@pytest.mark.parametrize(("values", "match"), NO_RECORDS)
async def test_values_that_are_no_records_are_refused_by_send_many(values: Any, match: str) -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        async with client.producer() as producer:
            with pytest.raises(TypeError, match=match):
                await producer.send_many("t", values)
            with pytest.raises(TypeError, match="event"):
                await producer.send_events("t", values)
        assert broker.count(MetadataRequest) <= 1


async def test_mapping_as_headers_is_refused() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        producer = client.producer()
        headers: Any = {"a": b"b"}
        async with producer:
            with pytest.raises(EncodeError, match=r"pass list\(headers\.items\(\)\)"):
                await producer.send("t", b"v", headers=headers)


async def test_batch_expired_before_the_connection_opens_is_not_sent_empty() -> None:
    """The batch of the first partition expires while the connection is opening."""
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"warm", partition=0)
            release = asyncio.Event()
            connect = client._view._pool._connect

            async def slow(key: Any) -> Any:
                await release.wait()
                return await connect(key)

            client._view._pool._connect = slow  # type: ignore[method-assign]
            broker.hang_up()
            await broker.until(lambda: not broker.writers)
            await asyncio.sleep(0)
            first = asyncio.create_task(producer.send("t", b"first", partition=0))
            await asyncio.sleep(0.2)
            second = asyncio.create_task(producer.send("t", b"second", partition=1))
            with pytest.raises(DeliveryError):
                await first
            release.set()
            await asyncio.wait([second])
            second.exception()
        assert None not in stored.values(0) + stored.values(1)
        assert all(batch.record_count for *_, batch in stored.batches)


async def test_header_pair_may_be_an_iterator() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            pair: Any = iter(("a", b"1"))
            await producer.send("t", b"v", headers=[pair])
            with pytest.raises(EncodeError, match="pairs of str and bytes"):
                await producer.send("t", b"v", headers=[pair])
        (record,) = stored.batches[0][2].records()
        assert record.headers == [("a", b"1")]


async def test_large_retrieved_failures_are_released() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, 29)
        async with client.producer() as producer:
            for _ in range(100):
                delivery = await producer.enqueue("t", bytes(10_000))
                with pytest.raises(DeliveryError):
                    await delivery
                assert len(producer._accumulator.failed_deliveries) <= 17
