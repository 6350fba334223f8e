"""Maps keys to partitions of internal topics, and finds the coordinators of keys.

As in Kafka, a key hashes to a partition of an internal topic, and the leader of that partition
coordinates the key (KIP-98, KIP-932). `groups.group_coordinator` stores records in the topic
`__consumer_offsets`, `transactions.transaction_coordinator` in `__transaction_state`, and
`share.share_coordinator` in `__share_group_state`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..wire.errors import KprotoError
from ..wire.uuid import Uuid
from .api_error import api_error

__all__ = [
    "CoordinatorType",
    "check_share_key",
    "java_hash",
    "partition_of",
]

_PARTS_OF_SHARE_KEY: Final = 3
_LEAST_INT: Final = -0x8000_0000


class CoordinatorType(IntEnum):
    """Names the key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


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
