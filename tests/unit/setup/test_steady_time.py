"""Time of which no pause uses up more than a moment."""

from __future__ import annotations

import asyncio
import time

import pytest

from kproto.clock import SYSTEM_CLOCK
from tests.support.steady_time import LONGEST_S, hold_up

pytestmark = pytest.mark.usefixtures("steady_time")


async def test_a_pause_counts_for_a_moment() -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    time.sleep(5 * LONGEST_S)  # noqa: ASYNC251 - as a machine that stands still
    assert loop.time() - begun < 2 * LONGEST_S


async def test_what_came_meanwhile_is_before_the_end_of_its_time() -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(3 * LONGEST_S), SYSTEM_CLOCK.timeout(3 * LONGEST_S):
        come = loop.create_future()
        loop.call_soon(loop.call_soon, come.set_result, None)
        time.sleep(5 * LONGEST_S)  # noqa: ASYNC251 - as a machine that stands still
        await come


async def test_a_wait_lasts_as_long_as_ever() -> None:
    loop, begun = asyncio.get_running_loop(), time.monotonic()
    first = loop.time()
    await asyncio.sleep(5 * LONGEST_S)
    assert loop.time() - first >= 5 * LONGEST_S
    assert time.monotonic() - begun >= 5 * LONGEST_S
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(LONGEST_S):
            await asyncio.Event().wait()


async def test_a_loop_can_be_held_up_by_its_own_time() -> None:
    begun = asyncio.get_running_loop().time()
    hold_up(5 * LONGEST_S)
    assert asyncio.get_running_loop().time() - begun >= 5 * LONGEST_S


async def test_the_clock_of_client_and_broker_goes_by_the_loop() -> None:
    loop = asyncio.get_running_loop()
    time.sleep(5 * LONGEST_S)  # noqa: ASYNC251 - as a machine that stands still
    before = loop.time()
    assert before <= SYSTEM_CLOCK.monotonic() <= loop.time()
