"""Tests that a client closes its producers and consumers, and loses no records."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

import kproto
from kproto.broker import Broker, SilentConnection, Slow
from kproto.messages import DescribeGroupsRequest, OffsetCommitRequest, ProduceRequest
from tests.support.cancelling import run_until_cancelled

SETTINGS = kproto.ClientSettings(error_flush_ms=200)


def values(broker: Broker, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


async def test_closing_the_client_sends_the_records_of_open_producers() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap) as client:
            producer = client.producer(linger_ms=60_000)
            deliveries = [await producer.enqueue("t", b"%d" % n) for n in range(10)]
        assert values(broker) == [b"%d" % n for n in range(10)]
        assert [(await each).offset for each in deliveries] == list(range(10))
        with pytest.raises(kproto.ConfigurationError, match="producer is closed"):
            await producer.enqueue("t", b"late")


@pytest.mark.parametrize("was_used", [False, True])
async def test_a_closed_client_creates_no_producer_or_consumer(was_used: bool) -> None:
    async with Broker() as broker:
        client = kproto.Client(broker.bootstrap)
        if was_used:
            await client.refresh()
        await client.close()
        with pytest.raises(kproto.ConfigurationError, match="the client is closed"):
            client.producer()
        with pytest.raises(kproto.ConfigurationError, match="the client is closed"):
            client.consumer("t")
        with pytest.raises(kproto.ConfigurationError, match="the client is closed"):
            client.consumer("t", group="billing")


async def test_closing_the_client_sends_the_records_of_a_dropped_producer() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap) as client:

            async def enqueue() -> None:
                await client.producer(linger_ms=60_000).enqueue("t", b"v")

            await asyncio.create_task(enqueue())
        assert values(broker) == [b"v"]


async def test_records_that_the_client_cannot_send_are_raised() -> None:
    """`DeliveryError.by_topic` has the records that were not sent, by topic."""
    async with Broker() as broker:
        for topic in ("t", "u"):
            broker.create_topic(topic)
        settings = kproto.ClientSettings(delivery_timeout_ms=300)
        client = kproto.Client(broker.bootstrap, settings)
        producer = client.producer()
        await producer.send("t", b"stored")
        await producer.send("u", b"stored")
        broker.control(SilentConnection(), request=ProduceRequest)
        await producer.enqueue("t", b"1")
        await producer.enqueue("u", b"2")
        await producer.enqueue("t", b"3")
        with pytest.raises(kproto.DeliveryError, match="3 records for t, u were not") as caught:
            await client.close()
        by_topic = caught.value.by_topic
        found = {topic: [each.value for each in its] for topic, its in by_topic.items()}
        assert found == {"t": [b"1", b"3"], "u": [b"2"]}


@pytest.mark.parametrize("ends_by", ["error", "cancellation"])
async def test_records_that_are_given_up_are_logged(
    ends_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A task group cancels the task of a producer, while the broker is silent."""
    caplog.set_level(logging.WARNING)
    producers: list[kproto.Producer] = []

    async def produce(client: kproto.Client, broker: Broker, enqueued: asyncio.Event) -> None:
        async with client.producer() as producer:
            producers.append(producer)
            await producer.send("t", b"stored")
            broker.control(SilentConnection(), request=ProduceRequest)
            for number in range(10):
                await producer.enqueue("t", b"%d" % number)
            enqueued.set()
            if ends_by == "error":
                raise LookupError("wrong")
            await asyncio.Event().wait()

    async with Broker() as broker, kproto.Client(broker.bootstrap, SETTINGS) as client:
        broker.create_topic("t")
        enqueued = asyncio.Event()

        async def run_tasks() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(produce(client, broker, enqueued))
                await enqueued.wait()
                if ends_by == "cancellation":
                    raise LookupError("wrong")

        with pytest.raises(ExceptionGroup) as caught:
            await run_tasks()
        assert caught.group_contains(LookupError)
    (logged,) = [each.getMessage() for each in caplog.records]
    assert logged.startswith("10 records for t[0] were not acknowledged: ")
    assert "`undelivered` of the producer" in logged
    undelivered = {topic: len(its) for topic, its in producers[0].undelivered.items()}
    assert undelivered == {"t": 10}


async def test_error_in_the_block_of_a_client_limits_the_flush(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with Broker() as broker:
        broker.create_topic("t")
        producers: list[kproto.Producer] = []

        async def fail() -> None:
            async with kproto.Client(broker.bootstrap, SETTINGS) as client:
                producer = client.producer(linger_ms=10)
                producers.append(producer)
                await producer.send("t", b"stored")
                broker.control(SilentConnection(), request=ProduceRequest)
                await producer.enqueue("t", b"1")
                raise LookupError

        with pytest.raises(LookupError) as caught:
            await fail()
        assert any("1 record for t[0] was not" in note for note in caught.value.__notes__)
        assert "1 record for t[0] was not" in caplog.text
        assert [each.value for each in producers[0].undelivered["t"]] == [b"1"]


async def test_closing_the_client_commits_and_leaves_the_group() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap) as other:
            async with other.producer() as producer:
                await producer.send_many("t", [b"1", b"2", b"3"])
            async with kproto.Client(broker.bootstrap) as client:
                records = aiter(client.consumer("t", group="g"))
                assert (await anext(records)).value == b"1"
                assert (await anext(records)).value == b"2"
            described = await other.request(DescribeGroupsRequest(groups=["g"]))
            assert described.groups[0].members == []
            async with other.consumer([("t", 0)], group="g") as consumer:
                committed = (await consumer.committed())["t", 0]
        assert committed is not None
        assert committed.offset == 1  # the second record was in flight
        with pytest.raises(StopAsyncIteration):
            await anext(records)


async def test_producers_send_before_consumers_commit() -> None:
    """Otherwise an offset could be committed although the output of its record is not stored."""
    order: list[str] = []
    async with Broker() as broker:
        for topic in ("in", "out"):
            broker.create_topic(topic)
        client = kproto.Client(broker.bootstrap)
        async with client.producer() as producer:
            await producer.send_many("in", [b"1", b"2"])
        records = aiter(client.consumer("in", group="g"))
        outputs = client.producer(linger_ms=60_000)
        await anext(records)
        await outputs.enqueue("out", b"from 1")
        await anext(records)
        for request in (ProduceRequest, OffsetCommitRequest):
            broker.control(partial(note, order, request.__name__), request=request)
        await client.close()
        assert values(broker, "out") == [b"from 1"]
    assert order == ["ProduceRequest", "OffsetCommitRequest"]


def note(order: list[str], name: str, request: object) -> None:
    order.append(name)


async def test_handlers_cannot_close_their_client() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        client = kproto.Client(broker.bootstrap)
        async with client.producer() as producer:
            await producer.send("t", b"v")

        async def handle(record: kproto.Record) -> None:
            await client.close()

        with pytest.raises(kproto.ConfigurationError, match="a handler cannot close its consumer"):
            async with client.consumer("t", group="g") as consumer:
                await consumer.run(handle, retries=0)


async def test_cancelled_close_reports_the_records_that_it_could_not_send(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The close is cancelled again and again, as by a cancel scope of anyio."""
    caplog.set_level(logging.WARNING)
    async with Broker() as broker:
        broker.create_topic("t")
        client = kproto.Client(broker.bootstrap, SETTINGS)
        producer = client.producer()
        await producer.send("t", b"stored")
        broker.control(SilentConnection(), request=ProduceRequest)
        await producer.enqueue("t", b"lost")
        closing = asyncio.create_task(client.close())
        while not closing.done():
            await asyncio.sleep(0.01)
            closing.cancel()
        assert closing.cancelled()
    assert "1 record for t[0] was not" in caplog.text
    assert [each.value for each in producer.undelivered["t"]] == [b"lost"]
    assert producer.is_closed


async def test_cancelled_close_delivers_what_it_can() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        client = kproto.Client(broker.bootstrap)
        producer = client.producer(linger_ms=60_000)
        await producer.enqueue("t", b"v")
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert values(broker) == [b"v"]


async def test_cancelled_client_closes_producers_after_consumers_that_exceed_the_limit() -> None:
    """A rebalance callback enqueues a record, and then does not return within the time limit."""
    settings = kproto.ClientSettings(error_flush_ms=30, cancelled_close_ms=20)
    async with Broker() as broker:
        broker.create_topic("t")
        producers: list[kproto.Producer] = []
        ready = asyncio.Event()

        async def on_revoked(tps: object) -> None:
            await producers[0].enqueue("t", b"late")
            await asyncio.Event().wait()

        async def work() -> None:
            async with kproto.Client(broker.bootstrap, settings) as client:
                producers.append(client.producer(linger_ms=60_000))
                await producers[0].enqueue("t", b"first")
                consumer = client.consumer("t", group="g", on_revoked=on_revoked)
                await consumer.poll(0)
                while not consumer.assignment:
                    await consumer.poll(10)
                ready.set()
                await asyncio.Event().wait()

        await run_until_cancelled(work(), ready, "once")
        assert producers[0].is_closed
        assert b"first" in values(broker)
        undelivered = producers[0].undelivered.get("t", ())
        assert b"late" in [*values(broker), *(each.value for each in undelivered)]


async def test_client_waits_for_a_producer_that_is_closing() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap) as client:
            producer = client.producer(linger_ms=100)
            for number in range(5):
                await producer.enqueue("t", b"%d" % number)
            closing = asyncio.create_task(producer.close())
            await asyncio.sleep(0)
        await closing
        assert len(values(broker)) == 5


async def test_cancelled_close_of_a_producer_does_not_disturb_a_close_of_another_task() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap) as client:
            producer = client.producer()
            await producer.send("t", b"1")
            broker.control(Slow(100), request=ProduceRequest)
            delivery = await producer.enqueue("t", b"2")
            closing = asyncio.create_task(producer.close())
            await asyncio.sleep(0)
            other = asyncio.create_task(producer.close())
            await asyncio.sleep(0)
            other.cancel()
            await asyncio.wait([other])
            assert other.cancelled()
            assert not closing.done()
            await closing
            assert (await delivery).offset == 1


async def test_close_of_a_producer_ends_a_longer_close_of_another_task() -> None:
    """Both calls of close end when the timeout of the second call is over."""
    async with Broker() as broker:
        broker.create_topic("t")
        async with kproto.Client(broker.bootstrap) as client:
            producer = client.producer()
            await producer.send("t", b"stored")
            broker.control(SilentConnection(), request=ProduceRequest)
            delivery = await producer.enqueue("t", b"lost")
            closing = asyncio.create_task(producer.close())
            await asyncio.sleep(0)
            outcomes = await asyncio.gather(
                producer.close(timeout_ms=20), closing, return_exceptions=True
            )
            assert [type(each) for each in outcomes if each] == [kproto.DeliveryError]
            with pytest.raises(kproto.DeliveryError):
                await delivery


async def test_close_takes_its_time_only_once() -> None:
    loop = asyncio.get_running_loop()
    async with Broker() as broker:
        broker.create_topic("t")
        client = kproto.Client(broker.bootstrap)
        producer = client.producer()
        await producer.send("t", b"stored")
        broker.control(SilentConnection(), request=ProduceRequest)
        await producer.enqueue("t", b"lost")
        began = loop.time()
        with pytest.raises(kproto.DeliveryError):
            await client.close(timeout_ms=1_000)
        assert 0.9 < loop.time() - began < 1.8
