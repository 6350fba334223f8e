"""Ends new members of either protocol after different numbers of event loop iterations.

Checks that each member leaves no task and no warning behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tests.support.recording_listener import RecordingListener
from tests.support.suspensions import CancelAt, points

__all__ = ["at_each_turn", "ended_after"]


async def ended_after(
    turns: int, ends: str, group: Any, member: Any, listener: RecordingListener
) -> None:
    """Starts a member, and lets the event loop run `turns` iterations.

    If `ends` is "leave", the member then leaves, and must have no partitions and no error.
    """
    member.start()
    for _ in range(turns):
        await asyncio.sleep(0)
    if ends == "leave":
        await member.leave(True)
        assert listener.partitions == set()
        assert listener.error is None
        assert group.member_id is None


def at_each_turn(scene: Callable[[int], Awaitable[None]], steps: Iterable[int]) -> None:
    """Runs `scene` with each number in `steps`; checks that no task and no warning is left."""
    for turns in steps:

        async def run(cancel: CancelAt, turns: int = turns) -> None:
            await scene(turns)  # the scene ends by itself; `points` checks for tasks

        try:
            assert points(run, late=False) == 0
        except BaseException as error:
            error.add_note(f"ended after {turns} turns")
            raise
