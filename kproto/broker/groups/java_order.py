"""Computes the iteration order of Java's hash maps and sets.

Results of Kafka's coordinator depend on this order, for example which of several protocols with
equal votes is selected, and which member an assignor processes first. Implements the buckets of a
`java.util.HashMap`; the keys of a bucket are in the order of insertion. Java's trees for buckets
with more than eight keys are not implemented. `in_timeline_order` computes the order of Kafka's own
TimelineHashMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

__all__ = ["bucket", "copied_size", "grown_size", "in_java_order", "in_timeline_order", "uuid_hash"]

K = TypeVar("K")

#: Java's HashMap: its initial size and its load factor.
_BUCKETS: Final = 16
_FULL: Final = 0.75

#: Kafka's TimelineHashMap: its initial size, and the multiplier that spreads the hashes.
_SLOTS: Final = 2
_FIBONACCI: Final = -7046029254386353131
_LONG_BITS: Final = 64
_LONG: Final = (1 << _LONG_BITS) - 1

_HALF: Final = 32
_INT: Final = 0xFFFF_FFFF


def grown_size(count: int) -> int:
    """Returns the number of buckets of a HashMap after `count` insertions."""
    buckets = _BUCKETS
    while count > buckets * _FULL:
        buckets *= 2
    return buckets


def copied_size(count: int) -> int:
    """Returns the number of buckets of `new HashSet(collection)` for `count` elements.

    The number may be larger than after `count` insertions into an empty set.
    """
    buckets = max(int(count / _FULL) + 1, _BUCKETS)
    return 1 << (buckets - 1).bit_length()


def bucket(value: int, buckets: int) -> int:
    """Returns the bucket index of a hash; a HashMap mixes the higher bits into the lower bits."""
    value &= _INT
    return (value ^ value >> 16) & (buckets - 1)


def in_java_order(keys: Iterable[K], hash_of: Callable[[K], int], size: int) -> list[K]:
    """Returns the keys in the iteration order of a HashMap with `size` buckets.

    `keys` are in the order of insertion; `hash_of` returns Java's hash of a key.
    """
    return sorted(keys, key=lambda key: bucket(hash_of(key), size))


def in_timeline_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Returns the keys in the iteration order of Kafka's TimelineHashMap.

    `keys` are in the order of insertion. The number of slots doubles when it is below three
    quarters of the number of keys. Within a slot, the key that was inserted last comes first.
    """
    slots: list[list[K]] = [[] for _ in range(_SLOTS)]

    def put(key: K) -> None:
        shift = _LONG_BITS + 1 - len(slots).bit_length()
        slots[(hash_of(key) * _FIBONACCI & _LONG) >> shift].append(key)

    for count, key in enumerate(keys, 1):
        if count * _FULL > len(slots):
            former = [it for slot in slots for it in slot]
            slots = [[] for _ in range(2 * len(slots))]
            for it in former:
                put(it)
        put(key)
    return [it for slot in slots for it in reversed(slot)]


def uuid_hash(value: bytes) -> int:
    """Returns `hashCode` of Kafka's Uuid, as an unsigned number of 32 bits."""
    mixed = int.from_bytes(value[:8], "big") ^ int.from_bytes(value[8:], "big")
    return (mixed >> _HALF ^ mixed) & _INT
