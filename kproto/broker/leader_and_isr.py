"""The leader and the in-sync replicas of a partition. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .replica_placement import Replicas

__all__ = ["NO_LEADER", "LeaderAndIsr"]

#: The leader id in Metadata if a partition has no leader.
NO_LEADER: Final = -1


@dataclass(slots=True)
class LeaderAndIsr:
    """A partition's replicas, its leader (a node id or NO_LEADER) and its ISR (`in_sync`).

    The log has the leader epoch: see `LeaderEpochCache`.
    """

    replicas: Replicas
    leader: int
    in_sync: tuple[int, ...]

    @classmethod
    def first(cls, replicas: Replicas) -> LeaderAndIsr:
        """Returns the state of a new partition: the first replica leads, and all are in sync."""
        return cls(replicas, replicas[0], replicas)
