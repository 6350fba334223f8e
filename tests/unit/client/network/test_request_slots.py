"""Tests in which order calls get request slots, and that a cancelled call loses no slot."""

from __future__ import annotations

import asyncio
import random

import pytest

from kproto.client.network.request_slots import RequestSlots


async def loop_turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def free(slots: RequestSlots) -> int:
    """Returns the number of free slots, by acquiring and releasing them."""
    count = 0
    while slots.try_acquire():
        count += 1
    for _ in range(count):
        slots.release()
    return count


async def test_slots_are_limited() -> None:
    slots = RequestSlots(2)
    assert [slots.try_acquire() for _ in range(3)] == [True, True, False]
    slots.release()
    async with slots:
        assert not slots.try_acquire()
    assert free(slots) == 1


async def test_slots_are_granted_in_the_order_of_the_calls() -> None:
    slots = RequestSlots(1)
    order: list[int] = []

    async def work(number: int) -> None:
        async with slots:
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*map(work, range(5)))
    assert order == list(range(5))
    assert free(slots) == 1


async def test_released_slot_goes_to_the_waiting_call() -> None:
    slots = RequestSlots(1)
    assert slots.try_acquire()
    waiting = asyncio.create_task(slots.acquire())
    await loop_turns()
    slots.release()
    assert not slots.try_acquire()
    await waiting
    slots.release()
    assert free(slots) == 1


@pytest.mark.parametrize("granted", [False, True])
async def test_cancelled_call_passes_its_slot_to_the_next(granted: bool) -> None:
    slots = RequestSlots(1)
    assert slots.try_acquire()
    cancelled, next_one = (asyncio.create_task(slots.acquire()) for _ in range(2))
    await loop_turns()
    if granted:
        slots.release()
    cancelled.cancel()
    await loop_turns()
    assert next_one.done() is granted
    if not granted:
        slots.release()
    await next_one
    slots.release()
    assert free(slots) == 1


@pytest.mark.parametrize("seed", range(20))
async def test_cancelled_calls_neither_lose_nor_create_slots(seed: int) -> None:
    draw = random.Random(seed)
    slots = RequestSlots(3)
    in_use = most = 0

    async def work() -> None:
        nonlocal in_use, most
        async with slots:
            in_use += 1
            most = max(most, in_use)
            try:
                await loop_turns(draw.randrange(4))
            finally:
                in_use -= 1

    tasks = []
    for _ in range(200):
        tasks.append(asyncio.create_task(work()))
        if draw.random() < 0.4:
            draw.choice(tasks).cancel()
        if draw.random() < 0.5:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (in_use, most, free(slots)) == (0, 3, 3)
