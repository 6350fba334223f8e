"""Runs an embedded broker, or a client, in a thread with an event loop of its own.

Each `LoopThread` opens one object for one `with` block, in an event loop of its own. This differs
from `kproto.sync.loop_thread`, whose event loop all blocking clients of a process share: that one
also handles forks, Ctrl-C during a call and the exit of the interpreter, and runs handlers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from .unclosed import call_in_loop
from .wire.errors import ConfigurationError

__all__ = ["LoopThread"]

B = TypeVar("B")
T = TypeVar("T")

#: How long a call waits for the broker's thread. A call takes microseconds; a control function of
#: a test that never returns would block the thread for ever.
_CALL_TIMEOUT_S: Final = 60.0

_BLOCKED_LOOP: Final = (
    "the call blocked the event loop of its thread, and clients in this loop could not go on: in "
    "an async test, run the call in a thread, by `await asyncio.to_thread(…)`"
)


class LoopThread(Generic[B]):
    """Opens the object that `make` returns in a thread, within `with`; `name` names the object.

    `make` is called in the thread. `with` gives the `LoopThread`, and raises the errors of opening
    the object. At the end of the block the object is closed, and the thread has ended.
    """

    def __init__(
        self, make: Callable[[], AbstractAsyncContextManager[B]], name: str = "embedded broker"
    ) -> None:
        self._make = make
        self._name = name
        self._started: Future[tuple[B, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._serve_until_stopped, name=f"kproto {name}")

    def _serve_until_stopped(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        stop = asyncio.Event()
        async with self._make() as opened:
            self._started.set_result((opened, asyncio.get_running_loop(), stop))
            await stop.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._started.result()
        except BaseException:  # the start failed, or Ctrl-C ended the wait for it
            self._stop_when_started()
            self._thread.join()
            raise
        return self

    def _stop_when_started(self) -> None:
        def stop(started: Future[tuple[B, asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
            if started.exception() is None:
                _, loop, event = started.result()
                call_in_loop(loop, event.set)

        self._started.add_done_callback(stop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop_when_started()
        self._thread.join()

    def call(self, function: Callable[[B], T]) -> T:
        """Calls `function` with the object in the thread, and returns its result.

        Raises what `function` raises. Raises ConfigurationError in the thread itself, such as in a
        control function of a broker, and after the end of the block.
        """
        opened, loop, _ = self._running()
        result: Future[T] = Future()

        def call() -> None:
            try:
                result.set_result(function(opened))
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                result.set_exception(error)

        loop.call_soon_threadsafe(call)
        return result.result(_CALL_TIMEOUT_S)

    def run(
        self, function: Callable[[B], Coroutine[Any, Any, T]], timeout_s: float = _CALL_TIMEOUT_S
    ) -> T:
        """Awaits the coroutine of `function` in the thread, and returns its result.

        Raises what `function` raises, TimeoutError after `timeout_s`, and ConfigurationError as
        `call` does.
        """
        opened, loop, _ = self._running()
        future = asyncio.run_coroutine_threadsafe(function(opened), loop)
        try:
            return future.result(timeout_s)
        except TimeoutError as error:
            if _has_running_loop():
                error.add_note(_BLOCKED_LOOP)
            raise
        finally:
            future.cancel()  # without effect on a future that is done

    def _running(self) -> tuple[B, asyncio.AbstractEventLoop, asyncio.Event]:
        if threading.current_thread() is self._thread:
            raise ConfigurationError(
                f"the thread of the {self._name} called itself, and would wait for ever: call the "
                f"{self._name} from the test, not from a control function"
            )
        if not self._thread.is_alive():
            raise ConfigurationError(f"the {self._name} does not run: call it within `with`")
        return self._started.result()


def _has_running_loop() -> bool:
    """Returns True if the calling thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
