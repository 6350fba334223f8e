"""Handles interrupts: Ctrl-C, SIGTERM and SIGHUP.

The first signal raises KeyboardInterrupt in the main thread; later signals, while the program ends,
are ignored. `uninterrupted` defers an interrupt.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from contextlib import AbstractContextManager, ExitStack
    from types import FrameType

__all__ = [
    "INTERRUPTED",
    "enter_uninterrupted",
    "run_as_process",
    "run_coroutine_in_thread",
    "run_in_thread",
    "signals_as_interrupts",
    "uninterrupted",
]

T = TypeVar("T")

#: The exit code of an interrupted program, as in a shell.
INTERRUPTED: Final = 128 + signal.SIGINT

#: The interval in seconds of checking for a deferred interrupt.
_POLL_INTERVAL_S: Final = 0.1

#: The signals that end a program, besides Ctrl-C; Windows lacks SIGHUP.
_END_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class _FirstSignalHandler:
    """A signal handler that raises KeyboardInterrupt at the first signal only."""

    def __init__(self) -> None:
        self.arrived = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.arrived:
            self.arrived = True
            raise KeyboardInterrupt


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Makes the first SIGINT, SIGTERM or SIGHUP in the block raise KeyboardInterrupt.

    Ignores later signals, so that cleanup completes. Does not change signals that are ignored or
    have another handler.
    """
    with _first_signal_interrupts():
        yield


def run_as_process(main: Callable[[], int]) -> NoReturn:
    """Runs `main`, and exits the process with the exit code that it returns.

    After an interrupt, signals are ignored until the process has ended.
    """
    with _first_signal_interrupts() as previous:
        code = main()
        if code == INTERRUPTED:
            previous.update(dict.fromkeys(previous, signal.SIG_IGN))
    sys.exit(code)


@contextmanager
def _first_signal_interrupts() -> Iterator[dict[int, Any]]:
    """Handles the signals with a `_FirstSignalHandler` until the block ends.

    Yields a dict with the replaced handler of each signal. The end of the block restores the
    handlers that the dict still has.
    """
    handler = _FirstSignalHandler()
    before: dict[int, Any] = {
        number: previous_handler
        for number in (signal.SIGINT, *_END_SIGNALS)
        if (previous_handler := signal.getsignal(number))
        in (signal.SIG_DFL, signal.default_int_handler)
    }
    for number in before:
        signal.signal(number, handler)
    try:
        yield before
    finally:
        for number, previous_handler in before.items():
            signal.signal(number, previous_handler)


@contextmanager
def uninterrupted() -> Iterator[Sequence[int]]:
    """Defers the signals that raise KeyboardInterrupt until the end of the block.

    Yields the list of the signals that have arrived. After the block, raises the first of these
    signals again, unless the block has raised an exception.
    """
    arrived: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_END_SIGNALS)}
    interrupting = [
        number
        for number, previous_handler in before.items()
        if previous_handler is signal.default_int_handler
        or isinstance(previous_handler, _FirstSignalHandler)
    ]
    for number in interrupting:
        signal.signal(number, lambda number, frame: arrived.append(number))
    try:
        yield arrived
    finally:
        for number in interrupting:
            signal.signal(number, before[number])
    for number in arrived[:1]:
        signal.raise_signal(number)


def enter_uninterrupted(closing: ExitStack, context: AbstractContextManager[T]) -> T:
    """Enters `context`, and registers its exit on `closing`; returns what `context` returns.

    Defers interrupts until the exit is registered, so that `closing` always exits `context`.
    """
    with uninterrupted():
        return closing.enter_context(context)


def run_in_thread(work: Callable[[], T], cancel_work: Callable[[], object]) -> T:
    """Runs `work` in a separate thread, which no interrupt reaches, and returns its result.

    After an interrupt, calls `cancel_work` every 0.1 s until `work` has ended, then raises the
    interrupt.
    """
    with uninterrupted() as arrived, ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        while not wait([working], timeout=_POLL_INTERVAL_S).done:
            if arrived:
                cancel_work()
    return working.result()


def run_coroutine_in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs the coroutine that `work` returns in a separate thread, and returns its result.

    The first interrupt cancels the coroutine, and is raised after the coroutine has ended. Later
    interrupts do nothing. The thread calls `work` and awaits the coroutine; no interrupt reaches
    the thread between the call and the await.
    """
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def run() -> T:
        task: asyncio.Task[T] = asyncio.ensure_future(work())
        running.append((asyncio.get_running_loop(), task))
        return await task

    def cancel_once() -> None:
        if running:
            loop, task = running.pop()
            with suppress(RuntimeError):  # the loop is closed, so the task has ended
                loop.call_soon_threadsafe(task.cancel)

    return run_in_thread(lambda: asyncio.run(run()), cancel_once)
