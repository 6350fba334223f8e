"""A thread beside that of the task: what is done to the rows while the next ones arrive.

Spark's JVM makes Arrow of rows as long as somebody takes it. A task that encodes in between would
let it stand, and then wait for it.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EncodingThread"]

T = TypeVar("T")

#: How many items may wait; each is some megabytes of rows.
_WAITING: Final = 2


class _NotWantedError(Exception):
    """Whoever gives has left."""


class EncodingThread(Generic[T]):
    """Calls `do` with each item that is given, one after the other, in a thread of its own.

    To be ended by `close`, whatever happens.
    """

    def __init__(self, do: Callable[[T], object]) -> None:
        self._do = do
        self._given: queue.Queue[T | None] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kproto-encoding", daemon=True)
        self._thread.start()

    def give(self, item: T) -> None:
        """Have it done; waits for room. Raises what `do` has raised for an earlier item."""
        if self._error is not None:
            raise self._error
        self._given.put(item)

    def finish(self) -> None:
        """Wait until all is done. Raises what `do` has raised."""
        self._end()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Do no more, and wait for what is being done; behind `finish` there is nothing."""
        if self._thread.is_alive():
            self._error = self._error or _NotWantedError()
            self._end()

    def _end(self) -> None:
        self._given.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._given.get()) is not None:
            if self._error is not None:
                continue  # what waits is dropped, so that nobody waits for room
            try:
                self._do(item)
            except BaseException as error:  # noqa: BLE001 - raised again in the giver's thread
                self._error = error
