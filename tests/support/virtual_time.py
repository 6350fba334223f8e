"""Runs a coroutine in an event loop whose time advances only while no socket is ready.

`run_in_virtual_time` is for tests in which client and broker share the event loop: sockets of this
machine then deliver at once, and a wait of a minute takes no time. Client and broker use a
`LoopClock`.
"""

from __future__ import annotations

import asyncio
import os
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from kproto.clock import Clock

__all__ = ["LoopClock", "run_in_virtual_time"]

T = TypeVar("T")

#: The seconds by which each iteration of the event loop advances its time, so that a task that
#: only yields reaches its deadline.
_ITERATION_S: Final = 0.000_1

#: The time of day at the start of each loop, in ms since 1970.
_START_MS: Final = 1_700_000_000_000


class LoopClock(Clock):
    """The time of the running event loop."""

    def now_ms(self) -> int:
        return _START_MS + int(asyncio.get_running_loop().time() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class _Selector(selectors.DefaultSelector):
    """Returns the ready sockets; if no socket is ready, calls `advance` instead of waiting."""

    advance: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or timeout == 0:
            self.advance(_ITERATION_S)
            return ready
        if timeout is None:  # only another thread can wake the loop
            return super().select(None)
        os.sched_yield()  # the kernel may still deliver
        ready = super().select(0)
        if not ready:
            self.advance(timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now = 0.0
        selector = _Selector()
        selector.advance = self._advance
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def _advance(self, seconds: float) -> None:
        self._now += seconds


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine and returns its result; raises AssertionError if a task is left running."""
    with asyncio.Runner(debug=False, loop_factory=_Loop) as runner:
        result = runner.run(work)
        left = asyncio.all_tasks(runner.get_loop())
        assert not left, f"tasks are left: {left}"
        return result
