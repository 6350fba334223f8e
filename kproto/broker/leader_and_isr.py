"""Defines the leader and the in-sync replicas (ISR) of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .replica_placement import Replicas

__all__ = ["NO_LEADER", "LeaderAndIsr"]

#: The leader id in Metadata if a partition has no leader.
NO_LEADER: Final = -1


@dataclass(slots=True)
class LeaderAndIsr:
    """Holds the node ids of a partition's replicas, leader (or NO_LEADER) and ISR (`in_sync`).

    During a reassignment, `replicas` includes `adding` and `removing`. The leader epoch is stored
    with the log: see `LeaderEpochCache`.
    """

    replicas: Replicas
    leader: int
    in_sync: tuple[int, ...]
    adding: Replicas = ()
    removing: Replicas = ()

    @classmethod
    def first(cls, replicas: Replicas) -> LeaderAndIsr:
        """Returns the state of a new partition: all replicas are in sync, and the first leads."""
        return cls(replicas, replicas[0], replicas)
