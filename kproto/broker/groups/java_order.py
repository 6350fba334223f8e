"""In which order Java's hash maps and sets give what is in them, where a coordinator's choice hangs
on that: which protocol is taken of equals, which member is looked at first.

Owns the hashes of keys and the places of a `java.util.HashMap`. Plain functions on plain data. Keys
of one bucket come in the order in which they were put; Java makes a tree of eight or more of them,
which is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def in_timeline_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """The keys, put in one after the other, as Kafka's TimelineHashMap gives them.

    It grows where three quarters of its keys are more than its slots, and gives what came last into
    a slot first.
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
    """What `hashCode` of Kafka's Uuid gives, as bits of an int32."""
    mixed = int.from_bytes(value[:8], "big") ^ int.from_bytes(value[8:], "big")
    return (mixed >> _HALF ^ mixed) & _INT
