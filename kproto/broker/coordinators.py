"""Maps keys to partitions of internal topics, and finds the coordinators of topics without a log.

As in Kafka, the leader of a partition of an internal topic coordinates the keys that hash to it
(KIP-98, KIP-932). `__consumer_offsets` is a real topic (`groups.group_coordinator`). The topics of
transactions and shares have no log and are not listed, since nothing is stored yet. Their
partitions have replicas, ISRs and leaders, which move as those of all partitions do.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from ..wire.errors import KprotoError
from ..wire.uuid import Uuid
from .api_error import api_error
from .leader_and_isr import LeaderAndIsr

__all__ = [
    "INTERNAL_PARTITIONS",
    "CoordinatorType",
    "InternalTopicCoordinators",
    "check_share_key",
    "java_hash",
    "partition_of",
]

#: Partitions of each topic without a log: Kafka's default (transaction.state.log.num.partitions,
#: share.coordinator.state.topic.num.partitions).
INTERNAL_PARTITIONS: Final = 50

_PARTS_OF_SHARE_KEY: Final = 3
_LEAST_INT: Final = -0x8000_0000


class CoordinatorType(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class InternalTopicCoordinators:
    """The leaders of internal topics without a log; created by `place_replicas` at first use."""

    def __init__(self, place_replicas: Callable[[int], list[LeaderAndIsr]]) -> None:
        self._place_replicas = place_replicas
        self._partitions: dict[CoordinatorType, list[LeaderAndIsr]] = {}

    def of(self, kind: CoordinatorType, key: str) -> int:
        """Returns the id of the coordinator node, NO_LEADER if there is none."""
        if kind not in self._partitions:
            self._partitions[kind] = self._place_replicas(INTERNAL_PARTITIONS)
        return self._partitions[kind][partition_of(key, INTERNAL_PARTITIONS)].leader

    def change(self, elect: Callable[[LeaderAndIsr], LeaderAndIsr]) -> None:
        """Applies a leader election to each partition."""
        for kind, leader_and_isr in self._partitions.items():
            self._partitions[kind] = [elect(each) for each in leader_and_isr]


def java_hash(text: str) -> int:
    """Returns Java's `String.hashCode`: an int32 over the UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2])) & 0xFFFF_FFFF
    return value - (value >> 31 << 32)


def partition_of(key: str, partitions: int) -> int:
    """Returns the partition of an internal topic that a key belongs to."""
    value = java_hash(key)
    return 0 if value == _LEAST_INT else abs(value) % partitions


def check_share_key(key: str) -> None:
    """Raises INVALID_REQUEST unless it is `group:topicId:partition`."""
    parts = key.split(":")
    good = len(parts) == _PARTS_OF_SHARE_KEY and bool(parts[0].strip())
    if good:
        try:
            Uuid.parse(parts[1])
            int(parts[2])
        except (KprotoError, ValueError):
            good = False
    if not good:
        raise api_error("INVALID_REQUEST", f"{key!r} is not of the form group:topicId:partition")
