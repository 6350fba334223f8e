"""Provides event-loop time that does not advance while the machine is stalled.

A busy machine can stall a process for longer than a test's timeout. With the fixture `steady_time`,
a stall counts for at most `LONGEST_S` in event loops and in code that uses their time. An awaited
task then runs before its timeout expires. All other times are unchanged.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any, Final
from weakref import WeakKeyDictionary

import pytest

from kproto.clock import Clock

from .loops import replaceable_loops

__all__ = ["LONGEST_S", "hold_up", "steady_time"]

#: The most seconds that count between two readings of a loop's clock.
LONGEST_S: Final = 0.02

#: The longest single wait of a selector in seconds; a longer wait is split, and so counts in full.
_TICK_S: Final = 0.01


@pytest.fixture
def steady_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps stalls of the machine from using up the timeouts of a test and its client."""
    for loops in replaceable_loops():
        monkeypatch.setattr(loops, "time", _SteadyTime())
    monkeypatch.setattr(Clock, "monotonic", _monotonic)
    selector = selectors.DefaultSelector
    whole = selector.select

    def ticking(self: Any, timeout: float | None = None) -> Any:
        return whole(self, _TICK_S if timeout is None else min(timeout, _TICK_S))

    monkeypatch.setattr(selector, "select", ticking)


def hold_up(seconds: float) -> None:
    """Blocks the running event loop until `loop.time()` has advanced by `seconds`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        time.sleep(_TICK_S)


class _SteadyTime:
    """Replaces the method `time` of every event loop."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Any, tuple[float, float]] = WeakKeyDictionary()

    def __get__(self, loop: Any, owner: type | None = None) -> Any:
        return self if loop is None else lambda: self.of(loop)

    def of(self, loop: Any) -> float:
        """Returns the loop's time in seconds; counts at most `LONGEST_S` between two readings."""
        now = time.monotonic()
        seen, passed = self._seen.get(loop, (now, now))
        passed += min(now - seen, LONGEST_S)
        self._seen[loop] = now, passed
        return passed


def _monotonic(_: Clock) -> float:
    """Returns the running loop's time, so that `Clock` and the loop have the same time."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
