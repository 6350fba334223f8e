"""Encodes rows in a separate thread, while the task's thread receives the next rows.

Spark's JVM converts rows to Arrow while the task reads them. If the task encoded between two reads,
the JVM and the task would wait for each other in turn.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EncodingThread"]

T = TypeVar("T")

#: The maximum number of queued items; an item is some megabytes of rows.
_MAX_QUEUED: Final = 2


class _ClosedError(Exception):
    """The task's thread closed the queue."""


class EncodingThread(Generic[T]):
    """Calls `encode` with each submitted item, in order, in a separate thread.

    The caller must call `close`, even after an error.
    """

    def __init__(self, encode: Callable[[T], object]) -> None:
        self._encode = encode
        self._queue: queue.Queue[T | None] = queue.Queue(_MAX_QUEUED)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kproto-encoding", daemon=True)
        self._thread.start()

    def submit(self, item: T) -> None:
        """Queues an item; blocks while the queue is full. Raises the error of an earlier item."""
        if self._error is not None:
            raise self._error
        self._queue.put(item)

    def finish(self) -> None:
        """Waits until all items are encoded. Raises the first error of `encode`."""
        self._join()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Drops queued items, and waits for the current item; does nothing after `finish`."""
        if self._thread.is_alive():
            self._error = self._error or _ClosedError()
            self._join()

    def _join(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._error is not None:
                continue  # drops queued items, so that `submit` does not block
            try:
                self._encode(item)
            except BaseException as error:  # noqa: BLE001 - raised again in the task's thread
                self._error = error
