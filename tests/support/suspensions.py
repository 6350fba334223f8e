"""Cancels a coroutine at each point at which it waits, and looks at what it leaves behind.

`points` runs a scene again and again, in a loop of its own each time, and has it cancelled at the
first, the second, ... point at which the coroutine under test suspends, until it comes to its end
before that. Two moments of each point count: as the coroutine begins to wait, and `late`: what it
waits for has come, and it has not run yet, so that who drops the result loses it.

`turns` cancels it after so many turns of the loop: for what goes on in tasks of its own while the
coroutine waits at one point.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import Any, Final, TypeVar

__all__ = ["MOST_POINTS", "Cancel", "CancelAt", "points", "turns"]

C = TypeVar("C", bound="Cancel")

MOST_POINTS: Final = 200
"""More than any coroutine has; one that never ends is found by it."""

MOST_TURNS: Final = 1_000

LONGEST_S: Final = 15.0

#: Turns of the loop after which everything that was closed is gone.
TURNS: Final = 10


class Cancel(ABC):
    """Runs coroutines; the task of the one is cancelled when its moment is `reached`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.reached = False

    @abstractmethod
    async def _run(self, work: Awaitable[object]) -> None: ...

    async def run(self, work: Awaitable[object]) -> None:
        """Await `work`, which must be cancelled once its moment is reached.

        A coroutine that goes on as if nothing was would make `asyncio.timeout` lie.
        """
        try:
            await self._run(work)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert self.reached, "it was cancelled by somebody else"
            assert task is not None
            assert task.uncancel() == 0
        else:
            assert not self.reached, f"it swallowed the cancellation {self}"


class CancelAt(Cancel):
    """Cancels at the suspension number `number`."""

    def __init__(self, number: int, *, late: bool) -> None:
        super().__init__(number)
        self.late = late
        self._count = 0

    def __str__(self) -> str:
        return f"at point {self.number}{', late' if self.late else ''}"

    async def _run(self, work: Awaitable[object]) -> None:
        await _Steps(self, work)

    def suspends(self, on: asyncio.Future[Any] | None) -> None:
        """The coroutine waits for `on`, or lets the loop turn."""
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
    """Cancels after `number` turns of the loop."""

    def __str__(self) -> str:
        return f"after {self.number} turns"

    async def _run(self, work: Awaitable[object]) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        is_over = False

        def turned(left: int) -> None:
            if left > 0 and not is_over:
                loop.call_soon(turned, left - 1)
            elif not is_over:
                self.reached = True
                task.cancel()

        loop.call_soon(turned, self.number - 1)
        try:
            await work
        finally:
            is_over = True


class _Steps:
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
    """Play `scene` for each point; returns how many there are.

    Raises AssertionError, which names the point, where a task, a socket or a timer is left, or an
    exception that nobody has seen.
    """
    return _each(scene, (CancelAt(at, late=late) for at in range(1, MOST_POINTS + 1)))


def turns(scene: Callable[[Cancel], Coroutine[Any, Any, None]], *, step: int = 1) -> int:
    """The same for each turn of the loop, or for every so many."""
    return _each(scene, (_CancelAfter(at) for at in range(1, MOST_TURNS, step)))


def _each(scene: Callable[[C], Coroutine[Any, Any, None]], cancels: Iterable[C]) -> int:
    gc.collect()  # what others have left is not told of here
    for count, cancel in enumerate(cancels):
        try:
            _play(scene, cancel)
        except BaseException as error:
            error.add_note(f"cancelled {cancel}")
            raise
        if not cancel.reached:
            return count
    raise AssertionError(f"it has not come to its end when it is cancelled {cancel}")


def _play(scene: Callable[[C], Coroutine[Any, Any, None]], cancel: C) -> None:
    unseen: list[object] = []

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        async with asyncio.timeout(LONGEST_S):
            await scene(cancel)
        for _ in range(TURNS):
            await asyncio.sleep(0)

    hook = sys.unraisablehook
    sys.unraisablehook = lambda told: unseen.append((told.exc_value, told.err_msg, told.object))
    try:
        # Debugging asyncio notes where each call comes from, which takes most of the time.
        with asyncio.Runner(debug=False) as runner:
            runner.run(play())
            loop: Any = runner.get_loop()
            tasks = asyncio.all_tasks(loop)
            assert not tasks, f"tasks are left: {tasks}"
            timers = [handle for handle in loop._scheduled if not handle.cancelled()]
            assert not timers, f"timers are left: {timers}"
            own = loop._ssock.fileno()
            sockets = [key for key in loop._selector.get_map().values() if key.fd != own]
            assert not sockets, f"sockets are left: {sockets}"
            gc.collect()
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert not unseen, f"exceptions that nobody has seen: {unseen}"
