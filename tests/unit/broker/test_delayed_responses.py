"""Tests `await_response`: it waits for changes until the deadline, and cleans up if cancelled."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

from kproto import broker
from kproto.broker.registry import Decision, DelayedResponse
from kproto.broker.session import await_response
from kproto.broker.watchable import Watchable
from kproto.messages.heartbeat_response import HeartbeatResponse
from kproto.testing.clock import ManualClock


class Question:
    """A delayed response; `ask` completes the response when `enough` is set or the time is over."""

    def __init__(self, clock: ManualClock, *things: Watchable, ms: float = 100) -> None:
        self.enough = False
        self.asked: list[bool] = []
        self.answer = HeartbeatResponse()
        self.wait = DelayedResponse(
            deadline=clock.monotonic() + ms / 1000, watched=things, try_complete=self.ask
        )

    def ask(self, time_is_over: bool) -> Decision:
        self.asked.append(time_is_over)
        return self.answer if self.enough or time_is_over else self.wait


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_complete_decision_is_returned_at_once() -> None:
    answer = HeartbeatResponse()
    assert await await_response(answer, ManualClock()) is answer
    assert await await_response(None, ManualClock()) is None


async def test_try_complete_is_called_after_each_change() -> None:
    clock, first, second = ManualClock(), Watchable(), Watchable()
    question = Question(clock, first, second)
    waiting = asyncio.create_task(await_response(question.wait, clock))
    await turns()
    assert question.asked == [], "nothing has changed yet"
    second.notify()
    await turns()
    assert question.asked == [False]
    question.enough = True
    first.notify()
    assert await waiting is question.answer
    assert question.asked == [False, False]
    assert (first.watchers, second.watchers, clock.next_timer_ms) == (set(), set(), None)


async def test_changes_of_one_loop_iteration_call_try_complete_once() -> None:
    clock, thing = ManualClock(), Watchable()
    question = Question(clock, thing)
    waiting = asyncio.create_task(await_response(question.wait, clock))
    await turns()
    for _ in range(3):
        thing.notify()
    await turns()
    assert question.asked == [False]
    waiting.cancel()


async def test_try_complete_is_called_at_the_deadline() -> None:
    clock, thing = ManualClock(), Watchable()
    question = Question(clock, thing, ms=100)
    waiting = asyncio.create_task(await_response(question.wait, clock))
    await clock.advance(50)
    thing.notify()
    await clock.advance(49)
    assert (question.asked, waiting.done()) == ([False], False)
    await clock.advance(1)
    assert await waiting is question.answer
    assert question.asked == [False, True]
    assert thing.watchers == set()


async def test_past_deadline_calls_try_complete_once() -> None:
    clock = ManualClock()
    question = Question(clock, ms=-5)
    waiting = asyncio.create_task(await_response(question.wait, clock))
    await clock.advance(0)
    assert await waiting is question.answer
    assert question.asked == [True]


async def test_delayed_response_may_follow_another() -> None:
    clock, members, assignment = ManualClock(), Watchable(), Watchable()
    later = Question(clock, assignment, ms=5_000)
    joining = DelayedResponse(
        deadline=1.0, watched=[members], try_complete=lambda time_is_over: later.wait
    )
    waiting = asyncio.create_task(await_response(joining, clock))
    await clock.advance(1_000)
    assert (len(members.watchers), len(assignment.watchers)) == (0, 1)
    await clock.advance(4_000)
    assert await waiting is later.answer
    assert later.asked == [True]


async def test_cancelled_wait_leaves_no_watcher_and_no_timer() -> None:
    clock, thing = ManualClock(), Watchable()
    waiting = asyncio.create_task(await_response(Question(clock, thing).wait, clock))
    await turns()
    assert len(thing.watchers) == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (thing.watchers, clock.next_timer_ms) == (set(), None)


async def test_failing_try_complete_leaves_no_watcher_and_no_timer() -> None:
    clock, thing = ManualClock(), Watchable()

    def fail(time_is_over: bool) -> Decision:
        raise ZeroDivisionError

    waiting = asyncio.create_task(
        await_response(DelayedResponse(deadline=1.0, watched=[thing], try_complete=fail), clock)
    )
    await turns()
    thing.notify()
    with pytest.raises(ZeroDivisionError):
        await waiting
    assert (thing.watchers, clock.next_timer_ms) == (set(), None)


@pytest.mark.slow
def test_broker_reads_time_from_its_clock_only() -> None:
    """Finds no use of the event loop's time in the broker's code.

    An import contract forbids the module `time`. `asyncio.wait` is allowed, because the broker
    passes no timeout to it.
    """
    timed = {"sleep", "timeout", "timeout_at", "wait_for", "call_later", "call_at", "time"}
    found = [
        f"{path.name}:{node.lineno}"
        for path in Path(broker.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in timed
        and not ast.unparse(node.value).endswith("clock")
    ]
    assert found == []
