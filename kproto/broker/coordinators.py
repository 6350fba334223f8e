"""Maps keys to partitions of internal topics, and finds the coordinators of keys.

As in Kafka, a key hashes to a partition of an internal topic, and the leader of that partition
coordinates the key (KIP-98, KIP-932). `groups.group_coordinator` and
`transactions.transaction_coordinator` store records in the topics `__consumer_offsets` and
`__transaction_state`. The partitions of `__share_group_state` have replicas, ISRs and leaders, but
no log, because this broker stores no share groups. Metadata does not list this topic.
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

#: Partition count of `__share_group_state`: Kafka's default of
#: share.coordinator.state.topic.num.partitions.
INTERNAL_PARTITIONS: Final = 50

_PARTS_OF_SHARE_KEY: Final = 3
_LEAST_INT: Final = -0x8000_0000


class CoordinatorType(IntEnum):
    """Names the key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class InternalTopicCoordinators:
    """Holds leader and ISR of each partition of `__share_group_state`.

    The cluster keeps no log of this internal topic.

    `leaders_and_isrs` takes the partition count of an internal topic, and returns leader and ISR of
    each of its partitions. The first lookup of a key in the topic calls `leaders_and_isrs`.
    """

    def __init__(self, leaders_and_isrs: Callable[[int], list[LeaderAndIsr]]) -> None:
        self._leaders_and_isrs = leaders_and_isrs
        self._partitions: dict[CoordinatorType, list[LeaderAndIsr]] = {}

    def of(self, kind: CoordinatorType, key: str) -> int:
        """Returns the node id of the coordinator of `key`; NO_LEADER if there is none."""
        if kind not in self._partitions:
            self._partitions[kind] = self._leaders_and_isrs(INTERNAL_PARTITIONS)
        return self._partitions[kind][partition_of(key, INTERNAL_PARTITIONS)].leader

    def change(self, elect: Callable[[LeaderAndIsr], LeaderAndIsr]) -> None:
        """Replaces leader and ISR of each partition by the result of `elect`.

        Does nothing if `of` has not looked up any key yet.
        """
        for kind, leader_and_isr in self._partitions.items():
            self._partitions[kind] = [elect(each) for each in leader_and_isr]


def java_hash(text: str) -> int:
    """Returns the result of Java's `String.hashCode`, an int32."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2])) & 0xFFFF_FFFF
    return value - (value >> 31 << 32)


def partition_of(key: str, partitions: int) -> int:
    """Returns the partition that `key` hashes to: an index from 0 to `partitions` - 1."""
    value = java_hash(key)
    return 0 if value == _LEAST_INT else abs(value) % partitions


def check_share_key(key: str) -> None:
    """Raises INVALID_REQUEST if the format of `key` is not `group:topicId:partition`."""
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
