"""Being interrupted: Ctrl-C, and the signals by which a terminal or a service ends a program.

The first is a KeyboardInterrupt in the main thread; those behind it, while a program ends by it,
do nothing. Owns when it may come. Knows nothing of what is interrupted.
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

#: The exit code of a program that was interrupted, as shells have it.
INTERRUPTED: Final = 128 + signal.SIGINT

#: How often it is looked whether an interrupt has come.
_LOOK_S: Final = 0.1

#: Those that end a program, where the system has them.
_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _First:
    """A handler of signals: raises KeyboardInterrupt for the first that comes."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.came:
            self.came = True
            raise KeyboardInterrupt


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt as Ctrl-C does, unless they are ignored; once.

    What comes behind the first does nothing: whatever is tidied up then comes to its end.
    """
    with _first_interrupts():
        yield


def run_as_process(main: Callable[[], int]) -> NoReturn:
    """Run `main` as what this process is for, and end the process with the exit code it returns.

    What comes behind an interrupt does nothing then, up to the last moment of the process.
    """
    with _first_interrupts() as behind:
        code = main()
        if code == INTERRUPTED:
            behind.update(dict.fromkeys(behind, signal.SIG_IGN))
    sys.exit(code)


@contextmanager
def _first_interrupts() -> Iterator[dict[int, Any]]:
    """Gives the handlers of signals that will be there again at the end."""
    handler = _First()
    before: dict[int, Any] = {
        number: was
        for number in (signal.SIGINT, *_ENDING)
        if (was := signal.getsignal(number)) in (signal.SIG_DFL, signal.default_int_handler)
    }
    for number in before:
        signal.signal(number, handler)
    try:
        yield before
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def uninterrupted() -> Iterator[Sequence[int]]:
    """Let what is within come to its end; an interrupt that came meanwhile is raised behind it.

    Gives the signals that came so far.
    """
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    ours = [
        number
        for number, was in before.items()
        if was is signal.default_int_handler or isinstance(was, _First)
    ]
    for number in ours:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield came
    finally:
        for number in ours:
            signal.signal(number, before[number])
    for number in came[:1]:
        signal.raise_signal(number)


def enter_uninterrupted(closing: ExitStack, context: AbstractContextManager[T]) -> T:
    """What is begun, which `closing` is sure to end: no interrupt comes between."""
    with uninterrupted():
        return closing.enter_context(context)


def run_in_thread(work: Callable[[], T], cancel_work: Callable[[], object]) -> T:
    """What `work` returns; no interrupt reaches it.

    After one, `cancel_work` is called again and again until `work` has ended; then it is raised.
    """
    with uninterrupted() as came, ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        while not wait([working], timeout=_LOOK_S).done:
            if came:
                cancel_work()
    return working.result()


def run_coroutine_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, but that a second interrupt does not cut short what the first one cancels."""
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def run() -> T:
        task: asyncio.Task[T] = asyncio.ensure_future(coroutine)
        running.append((asyncio.get_running_loop(), task))
        return await task

    def cancel_once() -> None:
        if running:
            loop, task = running.pop()
            with suppress(RuntimeError):  # the loop is closed: it has ended
                loop.call_soon_threadsafe(task.cancel)

    return run_in_thread(lambda: asyncio.run(run()), cancel_once)
