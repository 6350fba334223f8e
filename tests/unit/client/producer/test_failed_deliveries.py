"""Tests failed deliveries that no caller awaited: up to a limit, the next flush reports them."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto import Client, ConfigurationError, Delivery, DeliveryError, Producer
from kproto.broker import Broker, ErrorCode, SilentConnection
from kproto.client.producer.batch import BatchDelivery, ProducerBatch
from kproto.client.producer.failed_deliveries import SETTLE_ITERATIONS, FailedDeliveries
from kproto.client.producer.settings import ProducerSettings
from kproto.messages import ProduceRequest
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.records import GrowingBatch
from tests.support.examples import examples
from tests.unit.client.producer.accumulators import accumulator
from tests.unit.client.producer.test_encoded_batches import TWO

DENIED = error_of_code(code_of("TOPIC_AUTHORIZATION_FAILED"), "denied")
BATCH_HEADER_BYTES = 61
FAULT = ErrorCode("TOPIC_AUTHORIZATION_FAILED", None)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def failed_batch(
    loop: asyncio.AbstractEventLoop, *values: bytes, topic: str = "t", is_one_call: bool = False
) -> ProducerBatch:
    """Returns a failed batch of `values`.

    The batch has a `Delivery` for each value, or one `BatchDelivery` if `is_one_call` is true.
    """
    content = GrowingBatch()
    for value in values:
        content.append(None, value, (), 0, 1 << 20)
    batch = ProducerBatch(topic, 0, loop.create_future(), content)
    batch.future.set_result(DENIED)
    batch.deliveries = [Delivery(batch, at) for at in range(len(values))]
    if is_one_call:
        batch.deliveries = [BatchDelivery(batch)]
        batch.is_sealed = True
    return batch


def taken(failed: FailedDeliveries) -> list[bytes | None]:
    failure = failed.take()
    return [] if failure is None else [each.value for each in failure.records]


def test_a_failure_that_no_caller_has_awaited_is_taken_once(
    loop: asyncio.AbstractEventLoop,
) -> None:
    failed = FailedDeliveries(1 << 20)
    batch = failed_batch(loop, b"1", b"2")
    batch.deliveries[0].is_retrieved = True
    failed.add(batch)
    assert taken(failed) == [b"2"]
    assert taken(failed) == []
    assert failed.size_in_bytes == 0


def test_batches_whose_deliveries_were_awaited_are_released(
    loop: asyncio.AbstractEventLoop,
) -> None:
    failed = FailedDeliveries(1 << 30)
    for at in range(1_000):
        batch = failed_batch(loop, b"%d" % at)
        batch.deliveries[0].is_retrieved = at % 100 != 0
        failed.add(batch)
        assert len(failed) <= 40
    assert taken(failed) == [b"%d" % at for at in range(0, 1_000, 100)]


def test_the_oldest_failures_beyond_the_limit_are_dropped_and_counted(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    failed = FailedDeliveries(6_000)
    for at in range(30):
        topic = "u" if at % 2 else "t"
        failed.add(failed_batch(loop, b"%d" % at, b"x" * 1_000, topic=topic))
        assert failed.size_in_bytes <= 7_100
    error = failed.take()
    assert error is not None
    records = (record for at in range(30) for record in (b"%d" % at, b"x" * 1_000))
    by_topic = [record.value for topic in error.by_topic.values() for record in topic]
    kept = [record.value for record in error.records]
    assert kept == [*records][-len(kept) :]
    assert len(by_topic) == len(kept) == 12
    assert sum(error.dropped.values()) == 60 - len(kept)
    assert error.cause is DENIED
    dropped = sum(error.dropped.values())
    assert f"besides, {dropped} failed records for t, u were dropped" in str(error)
    (warning,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "records for t, u have failed" in warning.message
    assert "by_topic has the other records" in warning.message


def test_the_next_drop_after_a_take_is_reported_again(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    failed = FailedDeliveries(0)
    for _ in range(2):
        failed.add(failed_batch(loop, b"1", b"2", b"3", is_one_call=True))
        failed.add(failed_batch(loop, b"4", topic="u"))
        error = failed.take()
        assert error is not None
        assert (error.dropped, error.records, error.by_topic) == ({"t": 3, "u": 1}, [], {})
    assert failed.take() is None
    assert [each.message[:22] for each in caplog.records] == ["3 records for t have f"] * 2


def test_awaited_failures_beyond_the_limit_are_not_counted(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    failed = FailedDeliveries(50_000)
    failed.add(failed_batch(loop, b"unretrieved"))
    for _ in range(100):
        batch = failed_batch(loop, bytes(10_000))
        batch.deliveries[0].is_retrieved = True
        failed.add(batch)
        assert failed.size_in_bytes <= 50_000
    error = failed.take()
    assert error is not None
    assert ([each.value for each in error.records], error.dropped) == ([b"unretrieved"], {})
    assert not caplog.records


def test_acknowledged_records_of_a_dropped_batch_are_not_counted(
    loop: asyncio.AbstractEventLoop,
) -> None:
    """A broker refused a batch for one record, and stored the resent other records (KIP-467)."""
    failed = FailedDeliveries(0)
    batch = failed_batch(loop, b"1", b"2", b"3")
    (part,) = filter(None, [batch.split_off({1: DENIED}, loop.create_future)])
    part.future.set_result(None)
    failed.add(batch)
    error = failed.take()
    assert error is not None
    assert (error.dropped, error.cause) == ({"t": 1}, DENIED)


@pytest.mark.parametrize("sizes", [[1], [100], [1, 100, 10], [10] * 20 + [5_000], [400, 0]])
@pytest.mark.parametrize("batch_bytes", [1, 200, 10_000])
@pytest.mark.parametrize("partitions", [1, 3])
def test_all_records_of_a_full_buffer_are_kept_if_the_limits_are_equal(
    loop: asyncio.AbstractEventLoop, sizes: list[int], batch_bytes: int, partitions: int
) -> None:
    """As in `RecordAppender`, the last record may make the buffer larger than `buffer_bytes`."""
    limit = 4_000
    made = accumulator(loop, batch_bytes=batch_bytes)
    made.failed_deliveries.limit_bytes = limit
    count = 0
    while made.buffered <= limit:
        value = bytes(sizes[count % len(sizes)])
        batch, position = made.add("t", count % partitions, None, value, (), 0)
        batch.deliveries.append(Delivery(batch, position))
        count += 1
    made.abort(DENIED)
    error = made.failed_deliveries.take()
    assert error is not None
    assert (len(error.records), error.dropped) == (count, {})


def test_the_oldest_records_of_a_batch_are_dropped(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    failed = FailedDeliveries(50_000)
    batch = failed_batch(loop, *[b"%03d" % at + bytes(302) for at in range(300)])
    failed.add(batch)
    assert 50_000 < failed.size_in_bytes <= 50_000 + 61 + 312
    kept = failed.size_in_bytes // 311
    failed.add(failed_batch(loop, *[b"new" + bytes(302)] * 10))
    error = failed.take()
    assert error is not None
    numbers = [each.value[:3] for each in error.records if each.value]
    assert numbers[-10:] == [b"new"] * 10
    assert numbers[:-10] == [b"%03d" % at for at in range(300 - len(numbers) + 10, 300)]
    assert kept - 2 <= len(numbers) <= kept
    assert error.dropped == {"t": 310 - len(numbers)}
    assert len(caplog.records) == 1
    assert batch.record_at(0).value == b"000" + bytes(302)  # for a caller that has the delivery


def test_records_of_other_calls_are_dropped_with_the_records_before_them(
    loop: asyncio.AbstractEventLoop,
) -> None:
    """The batch also has records of `send`, which have no delivery."""
    failed = FailedDeliveries(1_200)
    batch = failed_batch(loop, *[b"%02d" % at * 50 for at in range(20)])
    batch.deliveries = [each for each in batch.deliveries if each.position in (3, 8, 12)]
    batch.deliveries[0].is_retrieved = True
    failed.add(batch)
    assert 1_100 < failed.size_in_bytes < 1_400
    error = failed.take()
    assert error is not None
    assert [each.value for each in error.records] == [b"12" * 50]
    assert error.dropped == {"t": 1}


def test_a_batch_without_deliveries_is_released_after_its_last_drop(
    loop: asyncio.AbstractEventLoop,
) -> None:
    failed = FailedDeliveries(100)
    batch = failed_batch(loop, *[bytes(100)] * 20)
    batch.deliveries = batch.deliveries[:2]
    failed.add(batch)
    assert (len(failed), failed.size_in_bytes, failed.dropped) == (0, 0, {"t": 2})


def test_the_newest_record_is_kept_if_it_exceeds_the_limit(
    loop: asyncio.AbstractEventLoop,
) -> None:
    failed = FailedDeliveries(100)
    failed.add(failed_batch(loop, b"1", b"2" * 1_000, is_one_call=True))
    assert len(failed) == 1
    failed.add(failed_batch(loop, b"3" * 1_000, b"4" * 1_000))
    assert taken(failed) == [b"4" * 1_000]


@pytest.mark.parametrize("is_in_a_batch", [True, False])
def test_the_limit_is_exceeded_only_while_the_large_record_is_kept(
    loop: asyncio.AbstractEventLoop, is_in_a_batch: bool
) -> None:
    failed = FailedDeliveries(5_000)
    if is_in_a_batch:
        failed.add(failed_batch(loop, bytes(100_000), b"1" * 1_000, b"2" * 500))
    else:
        failed.add(failed_batch(loop, bytes(100_000)))
    assert len(failed) == (3 if is_in_a_batch else 1)
    for _ in range(3):
        failed.add(failed_batch(loop, b"3" * 1_000))
    assert failed.size_in_bytes > 100_000
    for _ in range(20):
        failed.add(failed_batch(loop, b"4" * 1_000))
    assert 5_000 < failed.size_in_bytes < 5_000 + 1_100
    for _ in range(40):
        failed.add(failed_batch(loop, b"5" * 100))
    assert 5_000 < failed.size_in_bytes < 5_000 + 300
    assert taken(failed) == [b"5" * 100] * 30


@given(
    st.lists(st.lists(st.integers(0, 3_000), min_size=1, max_size=5), max_size=30),
    st.sets(st.integers(0, 29)),
)
@settings(max_examples=examples(100))
def test_the_limit_may_be_exceeded_by_the_largest_kept_record(
    batches: list[list[int]], retrieved: set[int]
) -> None:
    failed = FailedDeliveries(4_000)
    with closing(asyncio.new_event_loop()) as loop:
        for at, sizes in enumerate(batches):
            batch = failed_batch(loop, *map(bytes, sizes))
            failed.add(batch)
            for each in batch.deliveries:
                each.is_retrieved = at in retrieved
            kept = [
                size
                for each in failed._kept()
                for size in each.batch.content.record_sizes()[each.deliveries[0].position :]
            ]
            assert failed.size_in_bytes <= 4_000 + max(kept, default=0) + BATCH_HEADER_BYTES


def test_compact_records_need_less_memory(loop: asyncio.AbstractEventLoop) -> None:
    batch = failed_batch(loop, *[b"%d" % at for at in range(100)])
    assert len(batch.content.parts) == 200
    batch.compact()
    assert len(batch.content.parts) == 1
    assert batch.record_at(99).value == b"99"


@pytest.mark.parametrize("is_settling", [True, False])
def test_a_kept_batch_does_not_grow_when_a_failure_is_read(
    loop: asyncio.AbstractEventLoop, is_settling: bool
) -> None:
    scheduled: list[Callable[[], None]] = []
    failed = FailedDeliveries(1 << 20, scheduled.append if is_settling else None)
    batch = failed_batch(loop, *[b"%d" % at * 10 for at in range(2_000)])
    failed.add(batch)
    assert failed.is_settling is is_settling
    tracemalloc.start()
    try:
        assert isinstance(batch.deliveries[7].exception(), DeliveryError)
        while scheduled:
            scheduled.pop()()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < failed.size_in_bytes
    assert batch.deliveries[7].record.value == b"7" * 10


async def test_flush_reports_dropped_records() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(FAULT, request=ProduceRequest)
        producer = client.producer(undelivered_bytes=5_000, batch_bytes=1_000)
        for at in range(20):
            await producer.enqueue("t", b"%02d" % at * 1_000)
        with pytest.raises(DeliveryError, match="17 failed records for t were dropped") as raised:
            await producer.flush()
        found = [each.value[:2] for each in raised.value.by_topic["t"] if each.value]
        assert (found, raised.value.dropped) == ([b"17", b"18", b"19"], {"t": 17})
        await producer.flush()
        await producer.close()


@pytest.mark.parametrize(
    ("limit_bytes", "kept", "ending"),
    [
        (10_000, 3, "; `undelivered` of the producer has the records"),
        (1_000, 2, "; `undelivered` of the producer has the other 2"),
        (0, 0, "were dropped, because no caller had awaited their deliveries (undelivered_bytes)"),
    ],
)
async def test_close_after_an_error_logs_the_dropped_records(
    caplog: pytest.LogCaptureFixture, limit_bytes: int, kept: int, ending: str
) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(FAULT, request=ProduceRequest)
        producer = client.producer(undelivered_bytes=limit_bytes)

        async def enqueue() -> None:
            async with producer:
                for at in range(3):
                    await producer.enqueue("t", b"%d" % at * 700)
                raise RuntimeError("of the block")

        with pytest.raises(RuntimeError) as raised:
            await enqueue()
    (text,) = (each.message for each in caplog.records if each.message.endswith(ending))
    for each in (raised.value.__notes__[0], text):
        assert (f"{3 - kept} failed records for t were dropped" in each) is (kept < 3)
    undelivered = [each.value for its in producer.undelivered.values() for each in its]
    assert undelivered == [b"%d" % at * 700 for at in range(3 - kept, 3)]


class Enqueued:
    """A producer whose records a broker refuses, and a delivery for each of ten batches."""

    def __init__(self, producer: Producer, deliveries: list[Delivery]) -> None:
        self.producer = producer
        self.deliveries = deliveries

    async def flush(self) -> list[bytes | None]:
        """Flushes; returns the values of the records that the flush reports."""
        try:
            await self.producer.flush()
        except DeliveryError as error:
            return [each.value for each in error.records] + [b"dropped"] * len(error.dropped)
        return []


@asynccontextmanager
async def enqueued(**options: Any) -> AsyncIterator[Enqueued]:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(FAULT, request=ProduceRequest)
        await client.topic("t")
        producer = client.producer(batch_bytes=1, **options)
        deliveries = [await producer.enqueue("t", b"%d" % at * 100) for at in range(10)]
        yield Enqueued(producer, deliveries)
        await producer.close()


def read(deliveries: Iterable[Delivery]) -> None:
    for each in deliveries:
        assert isinstance(each.exception(), DeliveryError)


async def wait_and_read(deliveries: list[Delivery]) -> None:
    done, _ = await asyncio.wait(deliveries)
    read(done)


async def wait_for_and_read(deliveries: list[Delivery]) -> None:
    done, _ = await asyncio.wait_for(asyncio.wait(deliveries), 60)
    read(done)


async def gather(deliveries: list[Delivery]) -> None:
    await asyncio.gather(*deliveries, return_exceptions=True)


async def await_one_by_one(deliveries: list[Delivery]) -> None:
    for each in deliveries:
        with pytest.raises(DeliveryError):
            await each


async def add_callbacks(deliveries: list[Delivery]) -> None:
    for each in deliveries:
        each.add_done_callback(lambda done: read([done]))


@pytest.mark.parametrize(
    "caller", [wait_and_read, wait_for_and_read, gather, await_one_by_one, add_callbacks]
)
@pytest.mark.parametrize("ends_by", ["flush", "close"])
async def test_failures_that_a_caller_awaits_are_not_dropped(
    caller: Callable[[list[Delivery]], Awaitable[None]],
    ends_by: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with enqueued(undelivered_bytes=0) as made:
        waiting = asyncio.ensure_future(caller(made.deliveries))
        await (made.producer.flush() if ends_by == "flush" else made.producer.close())
        await waiting
    assert not caplog.records


@pytest.mark.parametrize("has_callback", [True, False])
async def test_a_dropped_batch_with_a_callback_is_reported_at_the_next_flush(
    has_callback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(FAULT, request=ProduceRequest)
        producer = client.producer(undelivered_bytes=0)
        delivery = await producer.send_batch("t", 0, TWO)
        if has_callback:
            delivery.add_done_callback(lambda _: None)
        with pytest.raises(DeliveryError, match="2 failed records for t were dropped"):
            await producer.flush()
        assert [each.levelname for each in caplog.records] == ["WARNING"] * (not has_callback)
        await producer.close()


async def test_a_failure_whose_callback_does_not_read_it_is_reported() -> None:
    async with enqueued() as made:
        called: list[Delivery] = []
        for each in made.deliveries:
            each.add_done_callback(called.append)
        assert await made.flush() == [b"%d" % at * 100 for at in range(10)]
        assert called == made.deliveries
        assert await made.flush() == []


async def test_awaited_failures_drop_no_older_ones() -> None:
    async with enqueued(undelivered_bytes=500) as made:
        await add_callbacks(made.deliveries[1:])
        assert await made.flush() == [b"0" * 100]


async def test_failures_at_a_close_with_a_timeout_are_read_by_callbacks_first() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        await client.topic("t")
        broker.control(SilentConnection(), request=ProduceRequest)
        producer = client.producer()
        deliveries = [await producer.enqueue("t", b"%d" % at) for at in range(3)]
        await add_callbacks(deliveries[:2])
        with pytest.raises(DeliveryError) as raised:
            await producer.close(timeout_ms=50)
        assert [each.value for each in raised.value.records] == [b"2"]


async def test_unread_failures_are_dropped_without_a_flush() -> None:
    async with enqueued(undelivered_bytes=0) as made:
        failed = made.producer._accumulator.failed_deliveries
        await asyncio.wait(made.deliveries)
        for _ in range(SETTLE_ITERATIONS + 1):
            await asyncio.sleep(0)
        assert (len(failed), failed.dropped) == (0, {"t": 10})
        with pytest.raises(DeliveryError, match="10 failed records for t were dropped"):
            await made.producer.flush()


async def test_dropped_failures_that_a_caller_reads_later_are_not_reported() -> None:
    async with enqueued(undelivered_bytes=0) as made:
        await made.producer._closer.until_batches_completed()
        assert made.producer._accumulator.failed_deliveries.dropped == {"t": 10}
        for each in made.deliveries[:8]:
            with pytest.raises(DeliveryError):
                await each
        read(made.deliveries[:9])
        with pytest.raises(DeliveryError, match="1 failed records for t were dropped"):
            await made.producer.flush()
        read(made.deliveries)
        assert await made.flush() == []


@pytest.mark.parametrize(("limit", "expected"), [(None, 5_000), (0, 0), (7, 7)])
def test_undelivered_bytes_are_those_of_the_buffer_by_default(
    limit: int | None, expected: int
) -> None:
    settings = ProducerSettings(buffer_bytes=5_000, undelivered_bytes=limit)
    assert settings.max_undelivered_bytes == expected


@pytest.mark.parametrize("limit", [-1, 1.5, "7"])
def test_invalid_undelivered_bytes_are_refused(limit: Any) -> None:
    with pytest.raises(ConfigurationError, match="undelivered_bytes"):
        ProducerSettings(undelivered_bytes=limit)
