"""Tests `shielded`: its time limit after a cancellation, and the exceptions that it raises."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kproto import RequestTimeoutError
from kproto.client.core.tasks import shielded
from kproto.testing.clock import ManualClock


async def test_limit_after_an_earlier_cancellation_raises_request_timeout() -> None:
    clock = ManualClock()
    limits: list[float] = []
    calling = asyncio.create_task(
        shielded(
            asyncio.Event().wait(),
            clock,
            100,
            what="the close",
            is_cancelled=True,
            on_limit=lambda: limits.append(clock.monotonic()),
            rest_ms=50,
        )
    )
    await clock.advance(100)
    assert limits == [0.1]
    assert not calling.done()
    await clock.advance(50)
    with pytest.raises(RequestTimeoutError, match="the close did not end within 150 ms"):
        await calling


async def test_limit_of_a_cancelled_call_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = ManualClock()
    calling = asyncio.create_task(shielded(asyncio.Event().wait(), clock, 100, what="the close"))
    await clock.advance(0)
    calling.cancel()
    await clock.advance(0)
    assert not calling.done()
    await clock.advance(100)
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert "the close did not end within 100 ms" in caplog.text


async def test_result_before_the_limit_is_returned_and_no_timer_is_left() -> None:
    clock = ManualClock()

    async def work() -> int:
        await asyncio.sleep(0)
        return 1

    assert await shielded(work(), clock, 100, what="the close", is_cancelled=True) == 1
    assert clock.next_timer_ms is None


async def test_task_that_another_task_cancels_raises_cancelled_error() -> None:
    started = asyncio.Event()
    tasks: list[asyncio.Task[object] | None] = []

    async def work() -> None:
        tasks.append(asyncio.current_task())
        started.set()
        await asyncio.Event().wait()

    calling = asyncio.create_task(
        shielded(work(), ManualClock(), 100, what="the close", is_cancelled=True)
    )
    await started.wait()
    assert tasks[0] is not None
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
