"""Provides uvloop's event loop with a replaceable clock and lists of timers and connections.

uvloop's own timers use the machine's clock. A timer of `SteadyUvloop` follows the method `time`,
which `tests.support.steady_time` replaces.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final
from weakref import WeakSet

import uvloop

__all__ = ["SteadyUvloop"]

#: The longest timer of uvloop in seconds; a longer time is split, and so counts in full.
_TICK_S: Final = 0.01

#: A timer can call back up to this many seconds early, because uvloop rounds to ms.
_ROUNDED_S: Final = 0.001


class SteadyUvloop(uvloop.Loop):
    """uvloop's event loop, with timers that follow the method `time` if a test replaces it."""

    def __init__(self) -> None:
        super().__init__()
        self._timers: WeakSet[_Timer] = WeakSet()
        self._transports: list[Any] = []  # those of TLS have no weak references

    def time(self) -> float:
        """Returns the loop's time in seconds."""
        return float(super().time())

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> Any:
        """Calls `callback` after `delay` seconds of `time`."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> Any:
        """Calls `callback` when `time` has reached `when`."""
        timer = _Timer(self, when, callback, args, context)
        self._timers.add(timer)
        return timer

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Connects as uvloop does, and remembers the transport for `open_transports`."""
        transport, protocol = await super().create_connection(*args, **kwargs)
        self._transports.append(transport)
        return transport, protocol

    def pending_timers(self) -> list[object]:
        """Returns the timers that have neither called back nor been cancelled."""
        return [timer for timer in self._timers if timer.is_pending]

    def open_transports(self) -> list[object]:
        """Returns the transports of `create_connection` that are not closed."""
        return [transport for transport in self._transports if not transport.is_closing()]


class _Timer:
    """A scheduled call, with the methods of `asyncio.TimerHandle` that asyncio uses."""

    def __init__(
        self,
        loop: SteadyUvloop,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self._loop = loop
        self._when = when
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._start(when - loop.time())

    def __repr__(self) -> str:
        return f"<timer at {self._when:.3f} of {self._callback!r}>"

    @property
    def is_pending(self) -> bool:
        return self._callback is not None

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self._handle.cancel()
        self._end()

    def cancelled(self) -> bool:
        return bool(self._handle.cancelled())

    def _end(self) -> None:
        self._callback, self._args = None, ()

    def _start(self, seconds: float) -> None:
        self._handle = uvloop.Loop.call_later(
            self._loop, min(seconds, _TICK_S), self._tick, context=self._context
        )

    def _tick(self) -> None:
        left = self._when - self._loop.time()
        if left >= _ROUNDED_S:
            self._start(left)
            return
        callback, args = self._callback, self._args
        self._end()
        if callback is not None:
            callback(*args)
