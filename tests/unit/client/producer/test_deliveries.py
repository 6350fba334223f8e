"""Tests that asyncio's functions accept a delivery of `enqueue` in place of a future."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kproto import Client, Delivery, DeliveryError, Producer
from kproto.broker import Broker, ErrorCode
from kproto.messages import ProduceRequest


@asynccontextmanager
async def enqueued(
    count: int, *, refused: str = ""
) -> AsyncIterator[tuple[Producer, list[Delivery]]]:
    """Yields a producer, and the deliveries of `count` records, each in a batch of its own."""
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        if refused:
            broker.control(ErrorCode("TOPIC_AUTHORIZATION_FAILED"), request=ProduceRequest)
        producer = client.producer(batch_bytes=1)
        yield producer, [await producer.enqueue("t", b"%d" % at) for at in range(count)]


async def test_wait_returns_the_deliveries() -> None:
    async with enqueued(10) as (_, deliveries):
        done, pending = await asyncio.wait(deliveries)
        assert done == {*deliveries}
        assert not pending
        assert [each.result().offset for each in deliveries] == list(range(10))


@pytest.mark.parametrize("when", [asyncio.FIRST_COMPLETED, asyncio.FIRST_EXCEPTION])
async def test_wait_ends_at_the_first_delivery(when: str) -> None:
    async with enqueued(10, refused="first") as (_, deliveries):
        done, pending = await asyncio.wait(deliveries, return_when=when)
        assert deliveries[0] in done
        assert done | pending == {*deliveries}
        assert isinstance(deliveries[0].exception(), DeliveryError)
        await asyncio.wait(deliveries)


async def test_wait_accepts_deliveries_of_one_batch() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t")
        async with client.producer() as producer:
            deliveries = [await producer.enqueue("t", b"") for _ in range(3)]
            done, _ = await asyncio.wait([*deliveries, *deliveries])
            assert done == {*deliveries}


async def test_gather_returns_the_acks() -> None:
    async with enqueued(10) as (_, deliveries):
        acks = await asyncio.gather(*deliveries)
        assert [ack.offset for ack in acks] == list(range(10))


async def test_gather_returns_failures() -> None:
    async with enqueued(3, refused="first") as (producer, deliveries):
        first, *others = await asyncio.gather(*deliveries, return_exceptions=True)
        assert isinstance(first, DeliveryError)
        assert others == [("t", 0, at, ack.timestamp) for at, ack in enumerate(others)]  # type: ignore[union-attr]
        await producer.flush()  # each failure was retrieved


async def test_as_completed_yields_the_acks() -> None:
    async with enqueued(5) as (_, deliveries):
        offsets = [(await each).offset for each in asyncio.as_completed(deliveries)]
        assert sorted(offsets) == list(range(5))


async def test_wait_for_returns_the_ack() -> None:
    async with enqueued(1) as (_, (delivery,)):
        assert (await asyncio.wait_for(delivery, 60)).offset == 0


async def test_callback_gets_the_delivery_once() -> None:
    called: list[Delivery] = []
    removed: list[Delivery] = []
    async with enqueued(2) as (producer, deliveries):
        for each in deliveries:
            each.add_done_callback(called.append)
            each.add_done_callback(removed.append)
        assert [each.remove_done_callback(removed.append) for each in deliveries] == [1, 1]
        await producer.flush()
        late = asyncio.Event()
        deliveries[0].add_done_callback(lambda delivery: late.set())
        await late.wait()
        assert called == deliveries
        assert not removed


async def test_outcome_is_not_known_before_the_ack() -> None:
    async with enqueued(1) as (producer, (delivery,)):
        for read in (delivery.result, delivery.exception):
            with pytest.raises(asyncio.InvalidStateError, match="the outcome is not known yet"):
                read()
        assert not delivery.done()
        assert not delivery.cancel()
        await producer.flush()
        assert delivery.done()
        assert not delivery.cancelled()
        assert delivery.exception() is None
        assert delivery.get_loop() is asyncio.get_running_loop()


async def test_flush_raises_a_failure_that_was_only_waited_for() -> None:
    async with enqueued(2, refused="first") as (producer, deliveries):
        await asyncio.wait(deliveries)
        with pytest.raises(DeliveryError) as raised:
            await producer.flush()
        assert [each.value for each in raised.value.records] == [b"0"]


@pytest.mark.parametrize("way", ["result", "exception"])
async def test_flush_omits_a_failure_that_was_read(way: str) -> None:
    async with enqueued(2, refused="first") as (producer, deliveries):
        await asyncio.wait(deliveries)
        if way == "exception":
            assert isinstance(deliveries[0].exception(), DeliveryError)
        else:
            with pytest.raises(DeliveryError):
                deliveries[0].result()
        await producer.flush()


async def test_callback_that_raises_affects_no_other_delivery() -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: reported.append(str(context.get("exception")))
    )
    async with enqueued(2) as (producer, deliveries):

        def fails(delivery: Delivery) -> None:
            raise LookupError("of the callback")

        deliveries[0].add_done_callback(fails)
        await producer.flush()
        assert [(await each).offset for each in deliveries] == [0, 1]
    assert reported == ["of the callback"]
