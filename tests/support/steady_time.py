"""Time that passes over what the machine stood still.

A busy machine pauses a process for longer than a test gives a request or a wait. To the loops of a
test that is made `steady_time`, and to whoever goes by them, no pause is longer than `LONGEST_S`:
what was awaited gets its turns before its time is over. All else lasts as long as ever.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any, Final
from weakref import WeakKeyDictionary

import pytest

from kproto.clock import Clock

__all__ = ["LONGEST_S", "hold_up", "steady_time"]

#: What counts of the time between two looks of a loop at its clock, at most.
LONGEST_S: Final = 0.02

#: A wait for bytes is cut into such, so that all of it counts.
_TICK_S: Final = 0.01


@pytest.fixture
def steady_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause of the machine uses up the time that a test, or its client, gives."""
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", _SteadyTime())
    monkeypatch.setattr(Clock, "monotonic", _monotonic)
    selector = selectors.DefaultSelector
    whole = selector.select

    def ticking(self: Any, timeout: float | None = None) -> Any:
        return whole(self, _TICK_S if timeout is None else min(timeout, _TICK_S))

    monkeypatch.setattr(selector, "select", ticking)


def hold_up(seconds: float) -> None:
    """Hold up the running loop until so long has passed by its own time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        time.sleep(_TICK_S)


class _SteadyTime:
    """The method `time` of every loop."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Any, tuple[float, float]] = WeakKeyDictionary()

    def __get__(self, loop: Any, owner: type | None = None) -> Any:
        return self if loop is None else lambda: self.of(loop)

    def of(self, loop: Any) -> float:
        """Seconds since some moment, without the pauses since the loop was first asked."""
        now = time.monotonic()
        seen, passed = self._seen.get(loop, (now, now))
        passed += min(now - seen, LONGEST_S)
        self._seen[loop] = now, passed
        return passed


def _monotonic(_: Clock) -> float:
    """The time of the loop that asks, so that both are the same."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
