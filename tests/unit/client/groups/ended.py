"""A member that is ended at each turn of the loop, of either protocol: nothing is left of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tests.support.group_owner import Reading
from tests.support.suspensions import CancelAt, points

__all__ = ["at_each_turn", "ended_after"]


async def ended_after(turns: int, ends: str, group: Any, member: Any, reading: Reading) -> None:
    """Start a member, and end it so many turns of the loop later."""
    member.start()
    for _ in range(turns):
        await asyncio.sleep(0)
    if ends == "leave":
        await member.leave(True)
        assert reading.places == set()
        assert reading.error is None
        assert group.member_id is None


def at_each_turn(scene: Callable[[int], Awaitable[None]], steps: Iterable[int]) -> None:
    """Play a scene for each number of turns: by its end there is no task, and no warning."""
    for turns in steps:

        async def run(cancel: CancelAt, turns: int = turns) -> None:
            await scene(turns)  # it is ended by itself, and looked at as after a cancellation

        try:
            assert points(run, late=False) == 0
        except BaseException as error:
            error.add_note(f"ended after {turns} turns")
            raise
