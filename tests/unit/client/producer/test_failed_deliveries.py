"""Tests failed deliveries that no caller has awaited: kept for the next flush, up to a limit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from kproto.broker import Broker, ErrorCode
from kproto.client import Client, DeliveryError
from kproto.client.producer.batch import BatchDelivery, Delivery, ProducerBatch
from kproto.client.producer.failed_deliveries import FailedDeliveries
from kproto.messages import ProduceRequest
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.records import GrowingBatch

DENIED = error_of_code(code_of("TOPIC_AUTHORIZATION_FAILED"), "denied")
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
    failed = FailedDeliveries(20_000)
    for at in range(30):
        topic = "u" if at % 2 else "t"
        failed.add(failed_batch(loop, b"%d" % at, b"x" * 1_000, topic=topic))
        assert failed.size_in_bytes <= 20_000
    error = failed.take()
    assert error is not None
    kept = [each.value for each in error.records if each.value and len(each.value) < 1_000]
    assert kept == [b"%d" % at for at in range(30 - len(kept), 30)]
    assert 3 < len(kept) < 10
    assert sum(error.dropped.values()) == 2 * (30 - len(kept))
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
    """A broker refused one record of the batch, and stored the others (KIP-467)."""
    failed = FailedDeliveries(0)
    batch = failed_batch(loop, b"1", b"2", b"3")
    (part,) = filter(None, [batch.split_off({1: DENIED}, loop.create_future)])
    part.future.set_result(None)
    failed.add(batch)
    error = failed.take()
    assert error is not None
    assert (error.dropped, error.cause) == ({"t": 1}, DENIED)


def test_compact_records_need_less_memory(loop: asyncio.AbstractEventLoop) -> None:
    batch = failed_batch(loop, *[b"%d" % at for at in range(100)])
    assert len(batch.content.parts) == 200
    batch.compact()
    assert len(batch.content.parts) == 1
    assert batch.record_at(99).value == b"99"


async def test_flush_reports_dropped_records() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(FAULT, request=ProduceRequest)
        producer = client.producer(undelivered_bytes=10_000, batch_bytes=1_000)
        for at in range(20):
            await producer.enqueue("t", b"%02d" % at * 1_000)
        with pytest.raises(DeliveryError, match="18 failed records for t were dropped") as raised:
            await producer.flush()
        found = [each.value[:2] for each in raised.value.by_topic["t"] if each.value]
        assert (found, raised.value.dropped) == ([b"18", b"19"], {"t": 18})
        await producer.flush()
        await producer.close()


async def test_close_after_an_error_logs_the_dropped_records(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        broker.control(FAULT, request=ProduceRequest)
        producer = client.producer(undelivered_bytes=0)

        async def enqueue() -> None:
            async with producer:
                await producer.enqueue("t", b"lost")
                raise RuntimeError("of the block")

        with pytest.raises(RuntimeError) as raised:
            await enqueue()
    assert "1 failed records for t were dropped" in raised.value.__notes__[0]
    assert any("1 failed records for t were dropped" in each.message for each in caplog.records)
    assert producer.undelivered == {}
