"""Slots: in the order of asking, none lost to who is cancelled, none given to who comes between."""

from __future__ import annotations

import asyncio
import random

import pytest

from kproto.client.network.request_slots import RequestSlots


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def free(slots: RequestSlots) -> int:
    """How many can be taken; they are given back."""
    count = 0
    while slots.try_acquire():
        count += 1
    for _ in range(count):
        slots.release()
    return count


async def test_as_many_as_there_are() -> None:
    slots = RequestSlots(2)
    assert [slots.try_acquire() for _ in range(3)] == [True, True, False]
    slots.release()
    async with slots:
        assert not slots.try_acquire()
    assert free(slots) == 1


async def test_who_asked_first_has_it_first() -> None:
    slots = RequestSlots(1)
    order: list[int] = []

    async def work(number: int) -> None:
        async with slots:
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*map(work, range(5)))
    assert order == list(range(5))
    assert free(slots) == 1


async def test_nobody_comes_between_who_gave_it_back_and_who_waits() -> None:
    slots = RequestSlots(1)
    assert slots.try_acquire()
    waiting = asyncio.create_task(slots.take())
    await turns()
    slots.release()
    assert not slots.try_acquire()
    await waiting
    slots.release()
    assert free(slots) == 1


@pytest.mark.parametrize("handed_over", [False, True])
async def test_who_is_cancelled_leaves_it_to_the_next(handed_over: bool) -> None:
    slots = RequestSlots(1)
    assert slots.try_acquire()
    cancelled, next_one = (asyncio.create_task(slots.take()) for _ in range(2))
    await turns()
    if handed_over:
        slots.release()
    cancelled.cancel()
    await turns()
    assert next_one.done() is handed_over
    if not handed_over:
        slots.release()
    await next_one
    slots.release()
    assert free(slots) == 1


@pytest.mark.parametrize("seed", range(20))
async def test_none_is_lost_or_made_whoever_is_cancelled(seed: int) -> None:
    draw = random.Random(seed)
    slots = RequestSlots(3)
    held = most = 0

    async def work() -> None:
        nonlocal held, most
        async with slots:
            held += 1
            most = max(most, held)
            try:
                await turns(draw.randrange(4))
            finally:
                held -= 1

    tasks = []
    for _ in range(200):
        tasks.append(asyncio.create_task(work()))
        if draw.random() < 0.4:
            draw.choice(tasks).cancel()
        if draw.random() < 0.5:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (held, most, free(slots)) == (0, 3, 3)
