"""Tests the clock that a test advances by hand, and the system clock."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from kproto import Client
from kproto.broker import Broker
from kproto.clock import SYSTEM_CLOCK
from kproto.testing.clock import ManualClock, PausableClock, SkewedClock


async def test_manual_time_changes_only_by_advance() -> None:
    clock = ManualClock(start_ms=1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    await clock.advance(1_500)
    assert (clock.now_ms(), clock.monotonic()) == (2_500, 1.5)


def test_manual_time_starts_at_the_system_time() -> None:
    before = SYSTEM_CLOCK.now_ms()
    assert before <= ManualClock().now_ms() <= SYSTEM_CLOCK.now_ms()


async def test_sleepers_wake_on_time_and_in_order() -> None:
    clock = ManualClock(start_ms=0)
    woken: list[tuple[str, int]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.now_ms()))

    async with asyncio.TaskGroup() as tasks:
        for name, seconds in (("late", 3.0), ("early", 1.0), ("also early", 1.0), ("now", 0.0)):
            tasks.create_task(sleeper(name, seconds))
        await asyncio.sleep(0)
        assert clock.next_timer_ms == 1_000
        await clock.advance(999)
        assert woken == [("now", 0)]
        await clock.advance(10_000)
    assert woken == [("now", 0), ("early", 1_000), ("also early", 1_000), ("late", 3_000)]
    assert clock.next_timer_ms is None


async def test_timers_set_during_an_advance_are_due_in_it() -> None:
    clock = ManualClock(start_ms=0)
    seen: list[int] = []

    async def again() -> None:
        for _ in range(3):
            await clock.sleep(1)
            seen.append(clock.now_ms())

    task = asyncio.create_task(again())
    await asyncio.sleep(0)
    await clock.advance(3_000)
    await task
    assert seen == [1_000, 2_000, 3_000]


async def test_a_sleeper_can_be_cancelled() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.next_timer_ms is None


async def test_a_timeout_ends_the_body_at_its_manual_time() -> None:
    clock = ManualClock()

    async def body() -> None:
        async with clock.timeout(2):
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await asyncio.sleep(0)
    await clock.advance(1_999)
    assert not task.done()
    await clock.advance(1)
    with pytest.raises(TimeoutError):
        await task


async def test_a_body_that_ends_in_time_leaves_no_timer() -> None:
    clock = ManualClock()
    seen: list[float | None] = []
    async with clock.timeout(2):
        seen.append(clock.next_timer_ms)
    seen.append(clock.next_timer_ms)
    assert seen == [2_000, None]
    await clock.advance(5_000)


async def test_a_cancelled_body_stays_cancelled() -> None:
    clock = ManualClock()

    async def body() -> None:
        async with clock.timeout(2):
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_system_clock_runs() -> None:
    before, begun = time.time_ns() // 1_000_000, time.monotonic()
    assert before <= SYSTEM_CLOCK.now_ms()
    assert begun <= SYSTEM_CLOCK.monotonic()
    called = asyncio.Event()
    SYSTEM_CLOCK.call_later(0.001, called.set)
    await called.wait()
    SYSTEM_CLOCK.call_later(60, called.set).cancel()
    await SYSTEM_CLOCK.sleep(0)
    with pytest.raises(TimeoutError):
        async with SYSTEM_CLOCK.timeout(0.001):
            await asyncio.Event().wait()


async def test_a_wrong_system_clock_changes_only_the_time_of_day() -> None:
    clock = SkewedClock(-5000)
    before, moved, after = (each.now_ms() for each in (SYSTEM_CLOCK, clock, SYSTEM_CLOCK))
    assert before <= moved + 5000 <= after
    clock.move(3_605_000)
    before, moved, after = (each.now_ms() for each in (SYSTEM_CLOCK, clock, SYSTEM_CLOCK))
    assert before <= moved - 3_600_000 <= after
    begun, its, ended = (each.monotonic() for each in (SYSTEM_CLOCK, clock, SYSTEM_CLOCK))
    assert begun <= its <= ended
    async with Broker(clock=clock) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
        async with client.producer() as producer:
            ack = await producer.send("t", b"from the future")
    assert ack.timestamp is not None
    assert before <= ack.timestamp - 3_600_000 <= SYSTEM_CLOCK.now_ms()


async def test_pausable_clock_runs_until_it_is_frozen() -> None:
    clock = PausableClock()
    assert not clock.is_frozen
    assert abs(clock.now_ms() - SYSTEM_CLOCK.now_ms()) < 1_000
    await clock.sleep(0.001)
    clock.freeze()
    before = clock.monotonic()
    await asyncio.sleep(0.002)
    assert (clock.is_frozen, clock.monotonic()) == (True, before)
    clock.resume()
    await clock.sleep(0.001)
    assert clock.monotonic() > before


async def test_timers_of_a_frozen_clock_fire_only_by_advance() -> None:
    clock = PausableClock(start_ms=0)
    fired: list[str] = []
    clock.call_later(0.001, lambda: fired.append("short"))
    clock.call_later(5, lambda: fired.append("long"))
    cancelled = clock.call_later(0.002, lambda: fired.append("cancelled"))
    cancelled.cancel()
    clock.freeze()
    await asyncio.sleep(0.005)
    assert fired == []
    await clock.advance(1_000)
    assert fired == ["short"]
    clock.resume()
    await clock.advance(10_000)  # a running clock can be set ahead too
    assert fired == ["short", "long"]
    assert not clock.is_frozen


async def test_timers_of_a_running_clock_fire_in_their_order() -> None:
    clock = PausableClock()
    fired: list[int] = []
    done = asyncio.Event()
    clock.call_later(0.004, done.set)
    for number in (3, 1, 2):
        clock.call_later(number / 1_000, partial(fired.append, number))
    await done.wait()
    assert fired == [1, 2, 3]
    with pytest.raises(TimeoutError):
        async with clock.timeout(0.001):
            await asyncio.sleep(60)


async def test_resumed_clock_fires_the_timers_that_are_left() -> None:
    clock = PausableClock()
    clock.freeze()
    clock.resume()
    clock.resume()  # no effect
    clock.freeze()
    done = asyncio.Event()
    clock.call_later(0.001, done.set)
    clock.resume()
    await done.wait()
