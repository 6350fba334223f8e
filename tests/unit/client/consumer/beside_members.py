"""What goes on beside a consumer as it is cancelled: others come and go, and coordinators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from tests.unit.client.consumer.member_scenes import Scene

__all__ = ["BESIDE", "Beside"]


@dataclass(frozen=True)
class Beside:
    """`begin` begins it; `others` were there before, and callbacks take `callbacks_s`."""

    begin: Callable[[Scene], Awaitable[None]]
    others: int = 0
    callbacks_s: float = 0.0


async def nothing(scene: Scene) -> None:
    """It is alone."""


async def joins(scene: Scene) -> None:
    scene.stage.other()
    await scene.hears_of_a_rebalance()


async def leaves(scene: Scene) -> None:
    for other in scene.stage.others:
        other.stop.set()
    await scene.hears_of_a_rebalance()


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
