"""Tests the steady clock: if the machine pauses, the clock advances only by a short time."""

from __future__ import annotations

import asyncio
import time

import pytest

from kproto.clock import SYSTEM_CLOCK
from tests.support.steady_time import LONGEST_S, hold_up

#: A timer of uvloop may end so many seconds early.
EARLY_S = 0.001

pytestmark = pytest.mark.usefixtures("steady_time")


async def test_a_pause_takes_a_moment_of_the_steady_clock() -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    time.sleep(5 * LONGEST_S)  # noqa: ASYNC251 - as a machine that stands still
    assert loop.time() - begun < 2 * LONGEST_S


async def test_events_during_a_pause_precede_the_timeout() -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(3 * LONGEST_S), SYSTEM_CLOCK.timeout(3 * LONGEST_S):
        come = loop.create_future()
        loop.call_soon(loop.call_soon, come.set_result, None)
        time.sleep(5 * LONGEST_S)  # noqa: ASYNC251 - as a machine that stands still
        await come


async def test_a_wait_lasts_its_full_time() -> None:
    loop, begun = asyncio.get_running_loop(), time.monotonic()
    first = loop.time()
    await asyncio.sleep(5 * LONGEST_S)
    assert loop.time() - first >= 5 * LONGEST_S - EARLY_S
    assert time.monotonic() - begun >= 5 * LONGEST_S - EARLY_S
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(LONGEST_S):
            await asyncio.Event().wait()


async def test_hold_up_blocks_the_loop_on_its_own_clock() -> None:
    begun = asyncio.get_running_loop().time()
    hold_up(5 * LONGEST_S)
    assert asyncio.get_running_loop().time() - begun >= 5 * LONGEST_S


async def test_client_and_broker_use_the_clock_of_the_loop() -> None:
    loop = asyncio.get_running_loop()
    time.sleep(5 * LONGEST_S)  # noqa: ASYNC251 - as a machine that stands still
    before = loop.time()
    assert before <= SYSTEM_CLOCK.monotonic() <= loop.time()
