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
    "Coordinators",
    "check_share_key",
    "java_hash",
    "partition_of",
]

#: Of each of those without logs: Kafka's default (transaction.state.log.num.partitions,
#: share.coordinator.state.topic.num.partitions).
INTERNAL_PARTITIONS: Final = 50

_PARTS_OF_SHARE_KEY: Final = 3
_LEAST_INT: Final = -0x8000_0000


class CoordinatorType(IntEnum):
    """What a key is of, as FindCoordinator says it."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Coordinators:
    """The leaders of internal topics without logs, placed by `place` when first asked for."""

    def __init__(self, place: Callable[[int], list[LeaderAndIsr]]) -> None:
        self._place = place
        self._led: dict[CoordinatorType, list[LeaderAndIsr]] = {}

    def of(self, kind: CoordinatorType, key: str) -> int:
        """The id of the node; NO_LEADER where nobody leads."""
        if kind not in self._led:
            self._led[kind] = self._place(INTERNAL_PARTITIONS)
        return self._led[kind][partition_of(key, INTERNAL_PARTITIONS)].leader

    def change(self, decide: Callable[[LeaderAndIsr], LeaderAndIsr]) -> None:
        """Let a decision count for each partition."""
        for kind, leader_and_isr in self._led.items():
            self._led[kind] = [decide(each) for each in leader_and_isr]


def java_hash(text: str) -> int:
    """What Java's `String.hashCode` gives: an int32 over the UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2])) & 0xFFFF_FFFF
    return value - (value >> 31 << 32)


def partition_of(key: str, partitions: int) -> int:
    """The partition of an internal topic to which a key belongs."""
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
