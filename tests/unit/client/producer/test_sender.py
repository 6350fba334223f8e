"""Tests the sender: Produce requests, requests in flight, linger and `enqueue`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import (
    Client,
    ClientSettings,
    ConfigurationError,
    Delivery,
    DeliveryError,
    EncodeError,
    ProducerRecord,
    RequestTimeoutError,
)
from kproto.broker import Broker
from kproto.client.producer import sender as sender_module
from kproto.client.producer.requests import produce_error
from kproto.messages import InitProducerIdRequest, MetadataRequest
from kproto.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kproto.messages.produce_request import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, Stored, produced, quick

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=2_000)


def partitions(asked: ReceivedRequest) -> list[tuple[str, int]]:
    """Returns the partitions of a Produce request."""
    request = asked.message
    assert isinstance(request, ProduceRequest)
    return [(t.name, part.index) for t in request.topic_data for part in t.partition_data]


async def test_request_has_the_ready_batches_of_all_partitions_of_a_broker() -> None:
    async with ScriptedBroker({"t": 3, "u": 2}) as broker, Client(broker.bootstrap) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await asyncio.gather(
                producer.send_many("t", [ProducerRecord(b"", partition=at) for at in range(3)]),
                producer.send_many("u", [ProducerRecord(b"", partition=at) for at in range(2)]),
            )
        sent = [got for got in broker.asked if isinstance(got.message, ProduceRequest)]
        assert sorted(partitions(sent[0])) == [("t", 0), ("t", 1), ("t", 2), ("u", 0), ("u", 1)]
        assert len(sent) == 1
        assert len(stored.batches) == 5


async def test_each_broker_gets_the_partitions_that_it_leads() -> None:
    def metadata(asked: ReceivedRequest) -> MetadataResponse:
        response = one.metadata(asked)
        response.brokers.append(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=two.port))
        for topic in response.topics:
            for part in topic.partitions:
                part.leader_id = part.partition_index % 2
        return response

    async with ScriptedBroker({"t": 4}) as one, ScriptedBroker({"t": 4}) as two:
        one.answers[MetadataRequest] = two.answers[MetadataRequest] = metadata
        async with Client(one.bootstrap, QUICK) as client, client.producer() as producer:
            await producer.send_many("t", [ProducerRecord(b"", partition=at) for at in range(4)])
        for node, broker in enumerate((one, two)):
            (asked,) = [got for got in broker.asked if isinstance(got.message, ProduceRequest)]
            assert sorted(at for _, at in partitions(asked)) == [node, node + 2]


async def test_five_requests_are_in_flight_once_the_first_is_acknowledged() -> None:
    """The scripted broker answers the requests of a connection one after another."""
    release = asyncio.Event()
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        store = stored.answer

        async def answer(asked: ReceivedRequest) -> Any:
            if stored.batches:
                await release.wait()
            return store(asked)

        broker.answers[ProduceRequest] = answer
        async with client.producer(batch_bytes=1_000) as producer:
            sending = asyncio.create_task(producer.send_many("t", [bytes(900)] * 20))
            await broker.until(lambda: broker.count(ProduceRequest) == 2)
            connection = await client.connection(0)
            await broker.until(lambda: connection.in_flight == 5)
            await asyncio.sleep(0.01)
            assert connection.in_flight == 5
            release.set()
            acks = await sending
        assert [ack.offset for ack in acks] == list(range(20))
        assert [batch.base_sequence for *_, batch in stored.batches] == list(range(20))


async def test_order_is_kept_when_connections_with_several_requests_are_lost() -> None:
    lost = 0
    async with ScriptedBroker({"t": 2}) as broker, Client(broker.bootstrap, QUICK) as client:
        log: dict[tuple[int, int], list[bytes | None]] = {}

        def answer(asked: ReceivedRequest) -> Any:
            nonlocal lost
            request = asked.message
            assert isinstance(request, ProduceRequest)
            if lost < 12 and len(broker.asked) % 5 == 0:
                lost += 1
                return HANG_UP
            return leader.answer(asked)

        leader = Sequenced(broker, log)
        broker.answers[ProduceRequest] = answer
        async with client.producer(batch_bytes=200) as producer:
            values = [b"%d" % at for at in range(400)]
            await producer.send_many("t", [ProducerRecord(v, partition=0) for v in values])
        assert leader.values == values
        assert lost == 12


class Sequenced:
    """Stores batches in sequence, reports duplicates of the last five batches, refuses others.

    The rules are those of KIP-98.
    """

    def __init__(self, broker: ScriptedBroker, log: dict[tuple[int, int], Any]) -> None:
        self.values: list[bytes | None] = []
        self.known: list[range] = []
        self.on_ack = Stored(broker)

    def answer(self, asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, ProduceRequest)
        response = self.on_ack.answer(asked)
        ((_, _, batch),) = self.on_ack.batches[-1:]
        numbers = range(batch.base_sequence, batch.base_sequence + batch.record_count)
        part = response.responses[0].partition_responses[0]
        if numbers in self.known[-5:]:
            part.error_code = 46
        elif self.known and numbers.start != self.known[-1].stop:
            part.error_code = 45
        else:
            self.known.append(numbers)
            self.values += [record.value for record in batch.records()]
        return response


# --- Linger ---


async def test_batch_lingers_by_the_clock() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
    ):
        stored = Stored(broker)
        async with client.producer(linger_ms=20) as producer:
            await client.topic("t")
            first = asyncio.create_task(producer.send("t", b"1"))
            await clock.advance(19)
            second = asyncio.create_task(producer.send("t", b"2"))
            await asyncio.sleep(0.01)
            assert broker.count(ProduceRequest) == broker.count(InitProducerIdRequest) == 0
            await clock.advance(1)
            assert [(await task).offset for task in (first, second)] == [0, 1]
            third = asyncio.create_task(producer.send("t", b"3"))
            await asyncio.sleep(0)
            await producer.flush()
            assert third.done() or (await third).offset == 2
        assert [batch.record_count for *_, batch in stored.batches] == [2, 1]


# --- enqueue ---


async def test_enqueue_returns_a_delivery_at_once() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            deliveries = [await producer.enqueue("t", b"%d" % at) for at in range(10)]
            assert all(isinstance(delivery, Delivery) for delivery in deliveries)
            assert not any(delivery.done() for delivery in deliveries)
            assert repr(deliveries[0]) == "<delivery to t[0], in flight>"
            acks = await asyncio.gather(*deliveries)
            assert [ack.offset for ack in acks] == list(range(10))
            assert (await deliveries[3]).offset == 3, "a delivery can be awaited repeatedly"
            assert deliveries[3].done()
            assert deliveries[3].record.value == b"3"
        assert broker.count(ProduceRequest) == 1


async def test_enqueue_waits_only_for_buffer_space() -> None:
    release = asyncio.Event()
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        store = stored.answer

        async def answer(asked: ReceivedRequest) -> Any:
            await release.wait()
            return store(asked)

        broker.answers[ProduceRequest] = answer
        async with client.producer(buffer_bytes=1_000) as producer:
            enqueued = 0

            async def enqueue_all() -> None:
                nonlocal enqueued
                for at in range(40):
                    await producer.enqueue("t", b"%03d" % at * 30)
                    enqueued += 1

            enqueuing = asyncio.create_task(enqueue_all())
            await broker.until(lambda: broker.count(ProduceRequest) == 1)
            await asyncio.sleep(0.01)
            assert enqueued == 1_000 // (90 + 16) + 1
            release.set()
            await enqueuing
        assert [value[:3] for value in stored.values() if value] == [b"%03d" % n for n in range(40)]


async def test_flush_raises_an_unretrieved_failure() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=29)
        producer = client.producer()
        seen = await producer.enqueue("t", b"seen")
        await producer.enqueue("t", b"lost", key=b"k")
        with pytest.raises(DeliveryError, match="TOPIC_AUTHORIZATION_FAILED"):
            await seen
        with pytest.raises(DeliveryError, match=r"1 record for t\[0\].*TOPIC_AUTH") as raised:
            await producer.flush()
        assert [(record.value, record.key) for record in raised.value.records] == [(b"lost", b"k")]
        await producer.flush()
        await producer.enqueue("t", b"again")
        with pytest.raises(DeliveryError):
            await producer.close()


async def test_error_of_a_block_notes_the_failed_records() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=29)

        async def block() -> None:
            async with client.producer() as producer:
                await producer.enqueue("t", b"lost")
                raise RuntimeError("of the block")

        with pytest.raises(RuntimeError, match="of the block") as raised:
            await block()
        assert "1 record for t[0] was not acknowledged" in raised.value.__notes__[0]


async def test_closed_producer_refuses_enqueue() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        producer = client.producer()
        await producer.close()
        with pytest.raises(ConfigurationError, match="the producer is closed"):
            await producer.enqueue("t", b"")


# --- The order of calls ---


async def test_calls_keep_their_order_when_metadata_is_late() -> None:
    answers = 0

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)

        def metadata(asked: ReceivedRequest) -> Any:
            nonlocal answers
            answers += 1
            return HANG_UP if answers <= 3 else broker.metadata(asked)

        broker.answers[MetadataRequest] = metadata
        async with client.producer() as producer:
            sending = []
            for at in range(20):
                sending.append(asyncio.create_task(producer.send("t", b"%d" % at)))
                await asyncio.sleep(0.001)
            await asyncio.gather(*sending)
        assert stored.values() == [b"%d" % at for at in range(20)]


async def test_calls_keep_their_order_when_the_buffer_is_full() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(buffer_bytes=100, batch_bytes=150) as producer:
            await asyncio.gather(*(producer.send("t", b"%03d" % at) for at in range(200)))
        assert stored.values() == [b"%03d" % at for at in range(200)]


async def test_cancelled_waiting_call_does_not_block_the_next() -> None:
    release = asyncio.Event()
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)

        async def metadata(asked: ReceivedRequest) -> Any:
            await release.wait()
            return broker.metadata(asked)

        broker.answers[MetadataRequest] = metadata
        async with client.producer() as producer:
            sending = [asyncio.create_task(producer.send("t", b"%d" % at)) for at in range(4)]
            await broker.until(lambda: broker.count(MetadataRequest) == 2)
            sending[0].cancel()
            sending[2].cancel()
            release.set()
            await asyncio.gather(*sending, return_exceptions=True)
        assert stored.values() == [b"1", b"3"]


async def test_metadata_is_refreshed_before_an_unknown_partition_is_refused() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"")
            broker.topics["t"] = 3
            assert (await producer.send("t", b"", partition=2)).partition == 2
            broker.topics["t"] = 4
            acks = await producer.send_many("t", [b"", ProducerRecord(b"", partition=3)])
            assert acks[1].partition == 3
            with pytest.raises(EncodeError, match="no partition 9"):
                await producer.send("t", b"", partition=9)


async def test_call_waiting_for_a_partition_is_not_overtaken() -> None:
    release = asyncio.Event()
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            await producer.send("t", b"zeroth", partition=0)
            broker.topics["t"] = 2

            async def metadata(asked: ReceivedRequest) -> Any:
                await release.wait()
                return broker.metadata(asked)

            broker.answers[MetadataRequest] = metadata
            requests = broker.count(MetadataRequest)
            first = asyncio.create_task(producer.send("t", b"first", partition=1))
            await broker.until(lambda: broker.count(MetadataRequest) > requests)
            second = asyncio.create_task(producer.send("t", b"second", partition=0))
            third = asyncio.create_task(producer.send("t", b"third", partition=1))
            await asyncio.sleep(0.01)
            assert len(stored.batches) == 1
            release.set()
            await asyncio.gather(first, second, third)
        assert stored.values(1) == [b"first", b"third"]


async def test_full_buffer_ends_the_linger() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
    ):
        stored = Stored(broker)
        async with client.producer(linger_ms=1_000, buffer_bytes=1_000) as producer:
            sending = asyncio.create_task(producer.send_many("t", [bytes(100)] * 30))
            await broker.until(lambda: len(stored.values()) >= 20)
            assert clock.monotonic() == 0
            await broker.until(lambda: (clock.next_timer_ms or 0) > 0)
            await clock.advance(1_000)
            assert len(await sending) == 30


async def test_acknowledged_batch_frees_its_bytes() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        Stored(broker)
        async with client.producer() as producer:
            acks = await producer.send_many(
                "t", [ProducerRecord(bytes(9), timestamp=at) for at in range(5)]
            )
        assert [ack.timestamp for ack in acks] == list(range(5))
        (batch,) = acks.batches()
        assert (batch.data, batch.content.parts) == (None, [])


async def test_close_cancelled_twice_fails_all_waiting_calls() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: None
        producer = client.producer(batch_bytes=80)
        sending = [asyncio.create_task(producer.send("t", b"%d" % at)) for at in range(3)]
        await broker.until(lambda: broker.count(ProduceRequest) == 1)
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        for _ in range(2):
            closing.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(closing, return_exceptions=True)
        async with asyncio.timeout(5):
            outcomes = await asyncio.gather(*sending, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [DeliveryError] * 3


async def test_delivery_whose_wait_was_cancelled_is_raised_at_close() -> None:
    release = asyncio.Event()
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:

        async def answer(asked: ReceivedRequest) -> Any:
            await release.wait()
            return produced(asked, error_code=29)

        broker.answers[ProduceRequest] = answer
        producer = client.producer()
        delivery = await producer.enqueue("t", b"lost")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await delivery
        release.set()
        with pytest.raises(DeliveryError) as raised:
            await producer.close()
        assert raised.value.records[0].value == b"lost"


@pytest.mark.slow
async def test_error_has_every_record_that_was_not_sent() -> None:
    """The batch of one record fails; the partition of the other record never gets into metadata."""
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=29)
        async with client.producer() as producer:
            await client.topic("t")

            def records() -> Any:
                yield b"a"
                broker.answers[MetadataRequest] = lambda asked: HANG_UP
                yield ProducerRecord(b"b", partition=7)

            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", records())
        assert [record.value for record in raised.value.records] == [b"a", b"b"]


async def test_send_many_stops_at_the_first_failure_and_leaves_the_rest() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=29)
        async with client.producer(batch_bytes=200, buffer_bytes=500) as producer:
            values = [b"%03d" % at for at in range(100)]
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", values)
            assert [record.value for record in raised.value.records] == values
            assert str(raised.value).startswith("100 records for t[0] were not acknowledged")
            left = iter(values)
            with pytest.raises(DeliveryError) as raised:
                await producer.send_many("t", left)
            assert [record.value for record in raised.value.records] + list(left) == values


async def test_wait_for_buffer_space_ends_at_the_delivery_timeout() -> None:
    clock = ManualClock()
    settings = ClientSettings(delivery_timeout_ms=3_000)
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        broker.answers[ProduceRequest] = lambda asked: None
        producer = client.producer(buffer_bytes=10)
        await client.topic("t")
        producer._accumulator.buffered = 1_000_000  # never released
        sending = asyncio.create_task(producer.send("t", b"kept"))
        await clock.advance(2_999)
        assert not sending.done()
        await clock.advance(1)
        with pytest.raises(DeliveryError, match="the buffer was full for 3000 ms") as raised:
            await sending
        assert raised.value.records[0].value == b"kept"
        await producer.close()


# --- Too large for the broker ---


async def test_oversized_batch_is_split() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        store = stored.answer

        def answer(asked: ReceivedRequest) -> Any:
            request = asked.message
            assert isinstance(request, ProduceRequest)
            (part,) = request.topic_data[0].partition_data
            return (
                produced(asked, error_code=10) if len(part.records or b"") > 700 else store(asked)
            )

        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            values = [b"%03d" % at * 30 for at in range(40)]
            acks = await producer.send_many("t", values)
            assert [ack.offset for ack in acks] == list(range(40))
            assert stored.values() == values
            too_large = bytes(1_000)
            with pytest.raises(DeliveryError, match="MESSAGE_TOO_LARGE") as raised:
                await producer.send_many("t", [b"before", too_large, b"after"])
            assert [record.value for record in raised.value.records] == [too_large]
        assert stored.values()[-2:] == [b"before", b"after"]


# --- Timeouts of flush and close ---


async def test_flush_and_close_end_at_their_timeout() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
    ):
        broker.answers[ProduceRequest] = lambda asked: None
        producer = client.producer()
        delivery = await producer.enqueue("t", b"kept")
        await broker.until(lambda: broker.count(ProduceRequest) == 1)
        flushing = asyncio.create_task(producer.flush(timeout_ms=300))
        await clock.advance(299)
        assert not flushing.done()
        await clock.advance(1)
        with pytest.raises(RequestTimeoutError, match=r"1 record was not .* within 300 ms"):
            await flushing
        assert not delivery.done()
        closing = asyncio.create_task(producer.close(timeout_ms=200))
        await clock.advance(200)
        with pytest.raises(DeliveryError, match="the producer was closed") as raised:
            await closing
        assert raised.value.records[0].value == b"kept"


async def test_error_of_a_block_is_raised_after_a_bounded_flush() -> None:
    clock = ManualClock()
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK, clock=clock) as client,
    ):
        broker.answers[ProduceRequest] = lambda asked: None

        async def block() -> None:
            async with client.producer() as producer:
                await producer.enqueue("t", b"lost")
                await broker.until(lambda: broker.count(ProduceRequest) == 1)
                left.set()
                raise RuntimeError("of the block")

        left = asyncio.Event()
        running = asyncio.create_task(block())
        await left.wait()
        await clock.advance(QUICK.error_flush_ms)
        with pytest.raises(RuntimeError, match="of the block") as raised:
            await running
        assert "1 record for t[0] was not acknowledged" in raised.value.__notes__[0]


# --- Settings ---


@pytest.mark.parametrize(
    "wrong",
    [
        {"linger_ms": -1},
        {"max_in_flight": 0},
        {"max_in_flight": 6},
        {"max_in_flight": 0, "idempotent": False},
        {"linger_ms": ClientSettings().delivery_timeout_ms},
    ],
    ids=str,
)
async def test_invalid_bounds_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Client("localhost:1").producer(**wrong)


async def test_request_size_is_limited() -> None:
    settings = quick(metadata_wait_ms=100, delivery_timeout_ms=2_000, max_request_bytes=1_000)
    async with ScriptedBroker({"t": 10}) as broker, Client(broker.bootstrap, settings) as client:
        stored = Stored(broker)
        async with client.producer() as producer:
            records = [ProducerRecord(bytes(400), partition=at) for at in range(10)]
            await producer.send_many("t", records)
        sent = [got for got in broker.asked if isinstance(got.message, ProduceRequest)]
        assert [len(partitions(got)) for got in sent] == [2] * 5
        assert len(stored.batches) == 10


async def test_large_batches_of_several_partitions_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker reads more slowly than the producer writes, so some batches must wait."""
    codes: list[int] = []

    def noted(answer: Any, batch: Any) -> Any:
        codes.append(answer.error_code)
        return produce_error(answer, batch)

    monkeypatch.setattr(sender_module, "produce_error", noted)
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=3)
        async with client.producer() as producer:
            await producer.send_many("t", [bytes(1000)] * 20_000)
        assert sum(broker.end_offset("t", partition) for partition in range(3)) == 20_000
    assert set(codes) == {0}
    assert len(codes) > 15
