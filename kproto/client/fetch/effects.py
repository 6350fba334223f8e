"""The effects that `SubscriptionState` returns, and the shell that carries them out. Plain data.

What is due at each broker is a `FetchPlan`; the effects here are due at once, and once.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from ..metadata.cluster import TopicPartition

__all__ = ["ConnectToLeaders", "Effect", "FetchShell", "Signal"]


class Signal(Enum):
    """Effects without arguments."""

    WAKE_POLL = "the poll that waits for records looks again"
    LOOK_UP_POSITIONS = "the committed offsets or start offsets of INITIALIZING partitions"
    CANCEL_LOOK_UP = "all partitions of the look-up are revoked or moved: another one may begin"
    COMMIT_NOW = "a start offset is committed at once, as a later member would start elsewhere"
    TOPICS_CHANGED = "a subscribed topic has other partitions: the member is told"


class ConnectToLeaders(NamedTuple):
    """Connections to the leaders of newly assigned partitions, while positions are looked up."""

    tps: list[TopicPartition]


Effect: TypeAlias = Signal | ConnectToLeaders


class FetchShell(Protocol):
    """Carries out effects, with tasks and connections: a consumer."""

    def on_metadata(self) -> None:
        """Compares the metadata with the subscription state, and starts look-ups of positions."""
        ...

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Begins each of the effects; waits for none."""
        ...
