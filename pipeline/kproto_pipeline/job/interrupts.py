"""Handles interrupts: Ctrl-C, and the signals by which a terminal or a service ends a program.

The first signal raises KeyboardInterrupt in the main thread; later ones, while the program ends, do
nothing. Blocks can defer an interrupt.
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

#: The exit code of an interrupted program, as in shells.
INTERRUPTED: Final = 128 + signal.SIGINT

#: The interval of checking for a deferred interrupt, in seconds.
_POLL_INTERVAL_S: Final = 0.1

#: The signals that end a program, if the system has them.
_END_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class _FirstSignalHandler:
    """A signal handler that raises KeyboardInterrupt for the first signal."""

    def __init__(self) -> None:
        self.arrived = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.arrived:
            self.arrived = True
            raise KeyboardInterrupt


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP interrupt as Ctrl-C does, unless they are ignored; once.

    Signals after the first do nothing, so that cleanup completes.
    """
    with _first_signal_interrupts():
        yield


def run_as_process(main: Callable[[], int]) -> NoReturn:
    """Runs `main`, and exits the process with the exit code that it returns.

    After an interrupt, signals do nothing until the process has ended.
    """
    with _first_signal_interrupts() as previous:
        code = main()
        if code == INTERRUPTED:
            previous.update(dict.fromkeys(previous, signal.SIG_IGN))
    sys.exit(code)


@contextmanager
def _first_signal_interrupts() -> Iterator[dict[int, Any]]:
    """Yields the previous signal handlers, which are restored at the end of the block."""
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
    """Defers interrupts until the block has ended, and raises them then.

    Yields the signals that have arrived so far.
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
    """Enters a context on an exit stack, with no interrupt between entering and registering it."""
    with uninterrupted():
        return closing.enter_context(context)


def run_in_thread(work: Callable[[], T], cancel_work: Callable[[], object]) -> T:
    """Runs `work` in a thread of its own, where no interrupt reaches it, and returns its result.

    After an interrupt, calls `cancel_work` repeatedly until `work` has ended, and raises it then.
    """
    with uninterrupted() as arrived, ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        while not wait([working], timeout=_POLL_INTERVAL_S).done:
            if arrived:
                cancel_work()
    return working.result()


def run_coroutine_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs `asyncio.run` in a thread, so that a second interrupt does not abort a cancellation."""
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def run() -> T:
        task: asyncio.Task[T] = asyncio.ensure_future(coroutine)
        running.append((asyncio.get_running_loop(), task))
        return await task

    def cancel_once() -> None:
        if running:
            loop, task = running.pop()
            with suppress(RuntimeError):  # the loop is closed, so the task has ended
                loop.call_soon_threadsafe(task.cancel)

    return run_in_thread(lambda: asyncio.run(run()), cancel_once)
