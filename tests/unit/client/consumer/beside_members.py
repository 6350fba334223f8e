"""Defines the events that happen while a consumer's coroutine is cancelled.

Another member joins or leaves, the group coordinator moves or stops, or nothing happens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from tests.unit.client.consumer.member_scenes import Scene

__all__ = ["BESIDE", "Beside"]


@dataclass(frozen=True)
class Beside:
    """An event that happens while the consumer under test is cancelled.

    `begin` starts the event. `others` is the number of members that joined before the consumer
    under test. Each rebalance callback takes `callbacks_s` seconds of the clock.
    """

    begin: Callable[[Scene], Awaitable[None]]
    others: int = 0
    callbacks_s: float = 0.0


async def nothing(scene: Scene) -> None:
    """Does nothing: the consumer under test is the only member."""


async def joins(scene: Scene) -> None:
    scene.stage.other()
    await scene.await_rebalance()


async def leaves(scene: Scene) -> None:
    for other in scene.stage.others:
        other.stop.set()
    await scene.await_rebalance()


async def moves(scene: Scene) -> None:
    scene.stage.move_coordinator()


async def moves_in_a_rebalance(scene: Scene) -> None:
    await joins(scene)
    scene.stage.move_coordinator()


async def stops(scene: Scene) -> None:
    scene.stage.stop_coordinator()


BESIDE: Final = {
    "alone": Beside(nothing),
    "another joins": Beside(joins),
    "another joins, callbacks wait": Beside(joins, callbacks_s=0.4),
    "another leaves": Beside(leaves, others=1),
    "the coordinator moves": Beside(moves),
    "another joins, the coordinator moves": Beside(moves_in_a_rebalance),
    "the coordinator stops": Beside(stops),
}
