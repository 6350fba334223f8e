"""The effects that `SubscriptionState` returns, and the protocol of their handler. Does no I/O.

Fetches are no effects: `FetchPlan` lists them. The handler of a group consumer starts each effect
immediately, exactly once. A plain consumer has no use for effects, and ignores them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from ..metadata.cluster import TopicPartition

__all__ = ["ConnectToLeaders", "Effect", "EffectHandler", "FetchEffect"]


class FetchEffect(Enum):
    """Effects without arguments."""

    WAKE_POLL = "make the poll that waits for records plan its fetches again"
    LOOK_UP_POSITIONS = "look up committed or start offsets of INITIALIZING partitions"
    CANCEL_LOOKUP = "cancel the look-up, because all its partitions are revoked or moved"
    COMMIT_NOW = "commit a start offset at once, because a later member would start elsewhere"
    TOPICS_CHANGED = "tell the member that a topic has other partitions: it may rejoin"


class ConnectToLeaders(NamedTuple):
    """Opens connections to the leaders of newly assigned partitions during position look-ups."""

    tps: list[TopicPartition]


Effect: TypeAlias = FetchEffect | ConnectToLeaders


class EffectHandler(Protocol):
    """Carries out effects, with tasks and connections; consumers implement it."""

    def on_metadata(self) -> None:
        """Compares new metadata with the subscription state, and starts look-ups of positions."""
        ...

    def apply(self, effects: Iterable[Effect]) -> None:
        """Starts each of the effects; waits for none of them."""
        ...
