"""Tests callbacks of deliveries: the number of comparisons, the order, and errors."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from kproto import Delivery
from kproto.client.producer.batch import ProducerBatch
from kproto.records import GrowingBatch


class CountingCallback:
    """A callback that counts the comparisons of all its copies, which are equal."""

    comparisons = 0

    def __init__(self, called: list[object]) -> None:
        self.called = called

    def __call__(self, delivery: object) -> None:
        self.called.append(delivery)

    def __eq__(self, other: object) -> bool:
        CountingCallback.comparisons += 1
        return isinstance(other, CountingCallback)

    __hash__ = object.__hash__


def deliveries_of_one_batch(count: int) -> tuple[asyncio.Future[None], list[Delivery]]:
    """Returns the future of a batch, and the deliveries of its `count` records."""
    content = GrowingBatch()
    for _ in range(count):
        content.append(None, b"", (), 0, 1 << 20)
    future = asyncio.get_running_loop().create_future()
    batch = ProducerBatch("t", 0, future, content)
    return future, [Delivery(batch, at) for at in range(count)]


async def test_removing_a_callback_is_compared_with_those_of_its_delivery_only() -> None:
    _, deliveries = deliveries_of_one_batch(200)
    called: list[object] = []
    CountingCallback.comparisons = 0
    for each in deliveries:
        each.add_done_callback(CountingCallback(called))
    removed = [each.remove_done_callback(CountingCallback(called)) for each in deliveries]
    assert removed == [1] * 200
    assert CountingCallback.comparisons == 200


async def test_cancelled_waits_leave_no_callback() -> None:
    """`asyncio.wait` and `await` remove their callbacks of a batch that is still in flight."""
    future, deliveries = deliveries_of_one_batch(50)
    done, pending = await asyncio.wait(deliveries, timeout=0)
    assert (done, pending) == (set(), {*deliveries})
    awaiting = asyncio.gather(*deliveries)
    await asyncio.sleep(0)
    awaiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await awaiting
    callbacks = deliveries[0]._batch.done_callbacks
    assert callbacks is not None
    assert callbacks.positions == set()
    assert not any(each.is_retrieved for each in deliveries)
    future.set_result(None)
    assert len(await asyncio.gather(*deliveries)) == 50


async def test_callbacks_run_in_the_order_in_which_they_were_added() -> None:
    future, deliveries = deliveries_of_one_batch(3)
    called: list[tuple[str, Delivery]] = []
    for name, at in (("a", 2), ("b", 0), ("c", 2), ("d", 1)):

        def append(delivery: Delivery, name: str = name) -> None:
            called.append((name, delivery))

        deliveries[at].add_done_callback(append)
    future.set_result(None)
    assert not called
    await asyncio.sleep(0)
    assert called == [
        ("a", deliveries[2]),
        ("b", deliveries[0]),
        ("c", deliveries[2]),
        ("d", deliveries[1]),
    ]


async def test_other_callbacks_of_the_delivery_remain_after_a_removal() -> None:
    future, (delivery,) = deliveries_of_one_batch(1)
    called: list[str] = []
    removed: list[Delivery] = []
    delivery.add_done_callback(removed.append)
    delivery.add_done_callback(lambda _: called.append("kept"))
    delivery.add_done_callback(removed.append)
    assert delivery.remove_done_callback(removed.append) == 2
    assert delivery.remove_done_callback(removed.append) == 0
    future.set_result(None)
    await asyncio.sleep(0)
    assert (called, removed) == (["kept"], [])


async def test_callback_runs_in_its_context() -> None:
    variable = ContextVar("variable", default="")
    future, deliveries = deliveries_of_one_batch(2)
    seen: list[str] = []
    for each in deliveries:
        variable.set(f"context {each.position}")
        each.add_done_callback(lambda _: seen.append(variable.get()))
    variable.set("later")
    future.set_result(None)
    await asyncio.sleep(0)
    assert seen == ["context 0", "context 1"]


def test_callbacks_after_an_interrupt_run_when_the_loop_runs_again() -> None:
    loop = asyncio.new_event_loop()
    called: list[Delivery] = []

    def interrupt(_: Delivery) -> None:
        raise KeyboardInterrupt

    async def scene() -> list[Delivery]:
        future, deliveries = deliveries_of_one_batch(2)
        deliveries[0].add_done_callback(interrupt)
        deliveries[1].add_done_callback(called.append)
        future.set_result(None)
        return deliveries

    async def settle() -> None:
        await asyncio.sleep(0)

    try:
        task = loop.create_task(scene())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait_for(asyncio.sleep(60), 60))
        loop.run_until_complete(settle())
        assert called == [task.result()[1]]
    finally:
        for each in asyncio.all_tasks(loop):
            each.cancel()
        loop.run_until_complete(settle())
        loop.close()
