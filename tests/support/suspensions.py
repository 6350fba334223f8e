"""Cancels a coroutine at each point where it suspends, and checks that nothing is left.

`points` runs a scene many times, each in a new event loop. The first run cancels the coroutine
under test at its first suspension, the second run at its second suspension, and so on, until the
coroutine ends with fewer suspensions than the number of the run.

Without `late`, the coroutine is cancelled when it begins to wait. With `late`, the coroutine is
cancelled when the awaited result has arrived but the coroutine has not resumed; the coroutine must
not lose the result.

`turns` cancels the coroutine after a number of event loop iterations, so that other tasks are in
different states while the coroutine waits at one point.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import Any, Final, TypeVar

from .loops import open_sockets, pending_timers

__all__ = ["MOST_POINTS", "Cancel", "CancelAt", "points", "turns"]

C = TypeVar("C", bound="Cancel")

MOST_POINTS: Final = 200
"""More suspensions than any tested coroutine has, to detect a coroutine that never ends."""

MOST_TURNS: Final = 1_000

LONGEST_S: Final = 15.0

#: Event loop iterations after which all closed resources are released.
TURNS: Final = 10


class Cancel(ABC):
    """Runs a coroutine, and cancels the current task once before the coroutine ends.

    `number` selects the point of the cancellation: a suspension of the coroutine, or an event loop
    iteration. `reached` is True once the coroutine has reached this point.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.reached = False

    @abstractmethod
    async def _run(self, work: Awaitable[object]) -> None: ...

    async def run(self, work: Awaitable[object]) -> None:
        """Awaits `work`; if the task was cancelled meanwhile, checks that `work` ends as cancelled.

        A coroutine that swallows its cancellation would break `asyncio.timeout`.
        """
        try:
            await self._run(work)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert self.reached, "the task was cancelled from elsewhere"
            assert task is not None
            assert task.uncancel() == 0
        else:
            assert not self.reached, f"the coroutine swallowed the cancellation {self}"


class CancelAt(Cancel):
    """Cancels at suspension number `number`."""

    def __init__(self, number: int, *, late: bool) -> None:
        super().__init__(number)
        self.late = late
        self._count = 0

    def __str__(self) -> str:
        return f"at point {self.number}{', late' if self.late else ''}"

    async def _run(self, work: Awaitable[object]) -> None:
        await _Steps(self, work)

    def suspends(self, on: asyncio.Future[Any] | None) -> None:
        """Counts a suspension, and cancels the task at suspension number `number`.

        The coroutine waits for `on`, or yields to the event loop if `on` is None.
        """
        self._count += 1
        if self._count != self.number:
            return
        self.reached = True
        task = asyncio.current_task()
        assert task is not None
        if self.late and on is not None:
            on.add_done_callback(lambda _: task.cancel())
        else:
            task.cancel()


class _CancelAfter(Cancel):
    """Cancels after `number` event loop iterations."""

    def __str__(self) -> str:
        return f"after {self.number} loop iterations"

    async def _run(self, work: Awaitable[object]) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        is_over = False

        def count_down(left: int) -> None:
            if left > 0 and not is_over:
                loop.call_soon(count_down, left - 1)
            elif not is_over:
                self.reached = True
                task.cancel()

        loop.call_soon(count_down, self.number - 1)
        try:
            await work
        finally:
            is_over = True


class _Steps:
    """Awaits `work`, and reports each of its suspensions to `cancel`."""

    def __init__(self, cancel: CancelAt, work: Awaitable[object]) -> None:
        self._cancel = cancel
        self._work = work

    def __await__(self) -> Generator[Any, None, object]:
        steps = self._work.__await__()
        thrown: BaseException | None = None
        while True:
            try:
                waited = next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration as done:
                return done.value
            self._cancel.suspends(waited)
            thrown = None
            try:
                yield waited
            except BaseException as error:
                thrown = error


def points(scene: Callable[[CancelAt], Coroutine[Any, Any, None]], *, late: bool) -> int:
    """Runs `scene` once for each of its suspensions, and cancels each run at a different one.

    Returns the number of suspensions. Raises AssertionError, which names the suspension, if a run
    leaves a task, a socket, a timer or an unretrieved exception.
    """
    return _each(scene, (CancelAt(at, late=late) for at in range(1, MOST_POINTS + 1)))


def turns(scene: Callable[[Cancel], Coroutine[Any, Any, None]], *, step: int = 1) -> int:
    """Runs `scene` repeatedly, and cancels each run after a different number of loop iterations.

    These numbers are 1, 1 + `step`, 1 + 2 * `step` and so on. Returns the number of runs that were
    cancelled before they ended.

    Raises AssertionError, which names the iteration, if a run leaves a task, a socket, a timer or
    an unretrieved exception.
    """
    return _each(scene, (_CancelAfter(at) for at in range(1, MOST_TURNS, step)))


def _each(scene: Callable[[C], Coroutine[Any, Any, None]], cancels: Iterable[C]) -> int:
    gc.collect()  # releases objects of earlier tests, which must not be reported here
    for count, cancel in enumerate(cancels):
        try:
            _play(scene, cancel)
        except BaseException as error:
            error.add_note(f"cancelled {cancel}")
            raise
        if not cancel.reached:
            return count
    raise AssertionError(f"the coroutine does not end even if it is cancelled {cancel}")


def _play(scene: Callable[[C], Coroutine[Any, Any, None]], cancel: C) -> None:
    unseen: list[object] = []

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        async with asyncio.timeout(LONGEST_S):
            await scene(cancel)
        for _ in range(TURNS):
            await asyncio.sleep(0)

    hook = sys.unraisablehook
    sys.unraisablehook = lambda left: unseen.append((left.exc_value, left.err_msg, left.object))
    try:
        # asyncio's debug mode records a traceback for each call, which takes most of the time.
        with asyncio.Runner(debug=False) as runner:
            runner.run(play())
            loop = runner.get_loop()
            tasks = asyncio.all_tasks(loop)
            assert not tasks, f"tasks are left: {tasks}"
            timers = pending_timers(loop)
            assert not timers, f"timers are left: {timers}"
            sockets = open_sockets(loop)
            assert not sockets, f"sockets are left: {sockets}"
            gc.collect()
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert not unseen, f"exceptions that were never retrieved: {unseen}"
