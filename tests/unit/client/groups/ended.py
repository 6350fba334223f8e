"""Ends a member of either protocol after each turn of the event loop, and checks what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tests.support.group_owner import Reading
from tests.support.suspensions import CancelAt, points

__all__ = ["at_each_turn", "ended_after"]


async def ended_after(turns: int, ends: str, group: Any, member: Any, reading: Reading) -> None:
    """Starts a member, lets the event loop turn `turns` times, and ends the member by `ends`."""
    member.start()
    for _ in range(turns):
        await asyncio.sleep(0)
    if ends == "leave":
        await member.leave(True)
        assert reading.places == set()
        assert reading.error is None
        assert group.member_id is None


def at_each_turn(scene: Callable[[int], Awaitable[None]], steps: Iterable[int]) -> None:
    """Plays a scene for each number of turns; checks that no task and no warning is left."""
    for turns in steps:

        async def run(cancel: CancelAt, turns: int = turns) -> None:
            await scene(turns)  # the scene ends by itself; `points` checks for tasks

        try:
            assert points(run, late=False) == 0
        except BaseException as error:
            error.add_note(f"ended after {turns} turns")
            raise
