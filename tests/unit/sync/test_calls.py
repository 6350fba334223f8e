"""Tests the calls that the event loop's thread carries out for the calling threads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from kproto.sync.loop_thread import LoopThread

CALLS = 50


class Client:
    """Keeps the event loop of a thread running."""

    is_closing = False
    close_limit_s = 1.0

    async def close_at_exit(self) -> None: ...


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    running, client = LoopThread(), Client()
    running.add(client)
    yield running
    running.call_plain(running.remove, client)
    running.join()


async def returned(value: int) -> int:
    return value


def test_call_that_does_not_wait_takes_one_iteration_of_the_event_loop(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread.call(returned, 0, undo=None)
    count = 0
    select = thread._selector.select

    def counted(timeout: float | None = None) -> Any:
        nonlocal count
        count += 1
        return select(timeout)

    monkeypatch.setattr(thread._selector, "select", counted)
    for number in range(CALLS):
        assert thread.call(returned, number, undo=None) == number
    assert count <= CALLS + 1


def test_call_runs_in_a_task_and_in_the_context_of_its_thread(thread: LoopThread) -> None:
    variable = ContextVar("variable", default="")

    async def seen() -> list[tuple[str, bool]]:
        found = []
        for _ in range(2):
            found.append((variable.get(), asyncio.current_task() is not None))
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        variable.set("of the task")
        return found

    variable.set("of the thread")
    assert thread.call(seen, undo=None) == [("of the thread", True)] * 2
    assert variable.get() == "of the thread"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), LookupError("missing")])
@pytest.mark.parametrize("waits", [False, True])
def test_exception_reaches_the_caller_and_the_event_loop_goes_on(
    thread: LoopThread, error: BaseException, *, waits: bool
) -> None:
    async def fail() -> None:
        if waits:
            await asyncio.sleep(0)
        raise error

    with pytest.raises(type(error)):
        thread.call(fail, undo=None)
    assert thread.call(returned, 5, undo=None) == 5


def test_call_that_waits_is_refused_once_the_event_loop_has_ended() -> None:
    thread, client = LoopThread(), Client()
    thread.add(client)

    async def end() -> None:
        thread.remove(client)
        await asyncio.sleep(60)

    with pytest.raises(ValueError, match="the client was closed during the call"):
        thread.call(end, undo=None)
    thread.join()
