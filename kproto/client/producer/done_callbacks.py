"""`DoneCallbacks`: the callbacks of the deliveries of one batch, by the position of the record.

The deliveries of a batch share a future. If each delivery added its callbacks to that future, the
removal of a callback would compare it with the callbacks of all deliveries. Here a callback is
compared only with the callbacks of its own delivery, so `asyncio.wait` over n deliveries takes O(n)
comparisons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from itertools import chain
from typing import Any, NamedTuple, Protocol

__all__ = ["DoneCallbacks"]


class _Delivery(Protocol):
    """A delivery: `position` is the index of its record in the batch."""

    position: int


class _Callback(NamedTuple):
    """Calls `function` with `delivery` in `context`; callbacks run in the order of `number`."""

    number: int
    function: Callable[[Any], object]
    delivery: _Delivery
    context: Context


class DoneCallbacks:
    """The callbacks that run when `future`, the outcome of a batch, is done.

    As with callbacks of the future itself, they run in the iteration of the event loop after
    `future` is done, in the order in which they were added.
    """

    __slots__ = ("_by_position", "_count", "_future", "positions")

    def __init__(self, future: asyncio.Future[Any]) -> None:
        #: The positions of the deliveries to which callbacks were added that were not removed, even
        #: if these callbacks have already run.
        self.positions: set[int] = set()
        self._by_position: dict[int, list[_Callback]] = {}
        self._count = 0
        self._future = future
        if not future.done():
            future.add_done_callback(self._run)

    def add(
        self, delivery: _Delivery, function: Callable[[Any], object], context: Context | None = None
    ) -> None:
        """Adds a callback of a delivery.

        The callback runs in `context`, by default in a copy of the caller's context. If the future
        is done, the callback runs in the next iteration of the event loop.
        """
        position = delivery.position
        self.positions.add(position)
        if self._future.done():
            self._future.get_loop().call_soon(function, delivery, context=context)
            return
        self._count += 1
        callback = _Callback(self._count, function, delivery, context or copy_context())
        self._by_position.setdefault(position, []).append(callback)

    def remove(self, delivery: _Delivery, function: Callable[[Any], object]) -> int:
        """Removes the callbacks of a delivery that equal `function`; returns their number."""
        position = delivery.position
        callbacks = self._by_position.get(position)
        if not callbacks:
            return 0
        kept = [each for each in callbacks if each.function != function]
        if kept:
            self._by_position[position] = kept
        else:
            del self._by_position[position]
            self.positions.discard(position)
        return len(callbacks) - len(kept)

    def _run(self, future: asyncio.Future[Any]) -> None:
        """Calls the callbacks; the exception handler of the event loop gets their exceptions.

        If a callback raises KeyboardInterrupt or SystemExit, the exception ends the event loop, as
        in any callback. The event loop calls the other callbacks when it runs again.
        """
        loop = future.get_loop()
        callbacks = sorted(chain.from_iterable(self._by_position.values()))
        self._by_position = {}
        for at, (_, function, delivery, context) in enumerate(callbacks):
            try:
                context.run(function, delivery)
            except Exception as error:  # noqa: BLE001 - the exception handler gets it
                loop.call_exception_handler(
                    {"message": f"Exception in callback {function!r}", "exception": error}
                )
            except BaseException:
                for _, later, its_delivery, its_context in callbacks[at + 1 :]:
                    loop.call_soon(later, its_delivery, context=its_context)
                raise
