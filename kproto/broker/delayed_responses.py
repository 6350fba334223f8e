"""Waiting, the one place in the broker where a request does: for a change, or for the time.

Knows decisions and the clock; neither what is waited for nor who waits. A wait lives in the task
of its connection and ends with it.
"""

from __future__ import annotations

import asyncio

from ..clock import Clock
from ..messages.base import Response
from .decisions import Decision, Wait

__all__ = ["await_response"]


async def await_response(decision: Decision, clock: Clock) -> Response | None:
    """Ask again and again until the decision is no `Wait`.

    Several changes of one turn of the loop are one reason to ask. When this is cancelled, or the
    asking raises, no watcher and no timer is left.
    """
    while isinstance(decision, Wait):
        decision = await _next(decision, clock)
    return decision


async def _next(wait: Wait, clock: Clock) -> Decision:
    """What comes after `wait`."""
    changed = asyncio.Event()
    over = False

    def time_is_over() -> None:
        nonlocal over
        over = True
        changed.set()

    for watched in wait.wake:
        watched.watchers.add(changed.set)
    timer = clock.call_later(max(0.0, wait.until - clock.monotonic()), time_is_over)
    try:
        while True:
            await changed.wait()
            changed.clear()
            decision = wait.then(over)
            if decision is not wait:
                return decision
    finally:
        timer.cancel()
        for watched in wait.wake:
            watched.watchers.discard(changed.set)
