"""In which order Java's hash maps and sets give what is in them, where a coordinator's choice hangs
on that: which protocol is taken of equals, which member is looked at first.

Owns the hashes of keys and the places of a `java.util.HashMap`. Plain functions on plain data. Keys
of one bucket come in the order in which they were put; Java makes a tree of eight or more of them,
which is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeVar

__all__ = ["bucket", "copied_size", "grown_size", "in_java_order", "in_timeline_order", "uuid_hash"]

K = TypeVar("K")

#: Java's HashMap: its first size, and how full it gets before that is doubled.
_BUCKETS: Final = 16
_FULL: Final = 0.75

#: Kafka's hash table: its first size, and what spreads the hashes.
_SLOTS: Final = 2
_FIBONACCI: Final = -7046029254386353131
_LONG_BITS: Final = 64
_LONG: Final = (1 << _LONG_BITS) - 1

_HALF: Final = 32
_INT: Final = 0xFFFF_FFFF


def grown_size(count: int) -> int:
    """The buckets of a map into which so many keys were put one after the other."""
    buckets = _BUCKETS
    while count > buckets * _FULL:
        buckets *= 2
    return buckets


def copied_size(count: int) -> int:
    """The same of `new HashSet(collection)`, which makes itself larger from the start."""
    wanted = max(int(count / _FULL) + 1, _BUCKETS)
    return 1 << (wanted - 1).bit_length()


def bucket(value: int, buckets: int) -> int:
    """The bucket of a hash: a HashMap mixes its higher bits into the lower ones."""
    value &= _INT
    return (value ^ value >> 16) & (buckets - 1)


def in_java_order(keys: Iterable[K], hash_of: Callable[[K], int], size: int) -> list[K]:
    """The keys as a map of `size` buckets gives them."""
    return sorted(keys, key=lambda key: bucket(hash_of(key), size))


def in_timeline_order(keys: Collection[K], hash_of: Callable[[K], int]) -> list[K]:
    """The keys as Kafka's TimelineHashMap gives them, which grows from two slots on."""
    slots = _SLOTS
    while len(keys) > slots * _FULL:
        slots *= 2
    shift = _LONG_BITS + 1 - slots.bit_length()
    return sorted(keys, key=lambda key: (hash_of(key) * _FIBONACCI & _LONG) >> shift)


def uuid_hash(value: bytes) -> int:
    """What `hashCode` of Kafka's Uuid gives, as bits of an int32."""
    mixed = int.from_bytes(value[:8], "big") ^ int.from_bytes(value[8:], "big")
    return (mixed >> _HALF ^ mixed) & _INT
