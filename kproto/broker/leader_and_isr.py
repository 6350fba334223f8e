"""Who leads a partition and who follows in step: plain data, which the cluster decides on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .replica_placement import Replicas

__all__ = ["NO_LEADER", "LeaderAndIsr"]

#: What Metadata says where nobody leads.
NO_LEADER: Final = -1


@dataclass(slots=True)
class LeaderAndIsr:
    """`leader` is a node id, or NO_LEADER; `in_sync` are the nodes that have all records (ISR).

    The leader epoch is the log's: see `LeaderEpochCache`.
    """

    replicas: Replicas
    leader: int
    in_sync: tuple[int, ...]

    @classmethod
    def first(cls, replicas: Replicas) -> LeaderAndIsr:
        """That of a new partition: the first replica leads, and all are in step."""
        return cls(replicas, replicas[0], replicas)
