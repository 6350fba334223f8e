"""Chooses the partition of a record: by the hash of its key, at random, or by a user's function.

By default the partition is chosen as by Kafka's Java client (`murmur2_random`). The other named
partitioners are those of librdkafka. Records without a key go to one partition until a batch of the
topic is full or is sent (KIP-480), unless the partitioner says otherwise. Records without a key go
only to partitions that have a leader, if there are such partitions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias
from zlib import crc32

from ...wire.counted import counted
from ...wire.errors import EncodeError
from ..metadata.cluster import TopicInfo
from .murmur2 import murmur2, murmur2_of_keys

__all__ = [
    "PARTITIONER_NAMES",
    "Partitioner",
    "PartitionerName",
    "TopicPartitioner",
    "fnv1a",
    "make_partitioner",
    "partition_of_key",
]

#: The number of keys in the cache of hashes: keys repeat, and a hash costs one microsecond for two
#: bytes of the key.
REMEMBERED_KEYS = 16_384

#: Longer keys are not cached: keys that repeat are short, and large keys would fill memory.
REMEMBERED_KEY_BYTES = 256

#: A function of the topic, the key, all partitions of the topic in ascending order, and those of
#: them that have a leader; it returns one of the partitions.
Partitioner: TypeAlias = Callable[[str, bytes | None, Sequence[int], Sequence[int]], int]

#: The partitioners of librdkafka (its property `partitioner`). `murmur2_random` chooses as Kafka's
#: Java client does.
PartitionerName: TypeAlias = Literal[
    "murmur2_random",
    "murmur2",
    "consistent_random",
    "consistent",
    "fnv1a_random",
    "fnv1a",
    "random",
]

_MASK = 0xFFFFFFFF

_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


def fnv1a(data: bytes) -> int:
    """Returns the absolute value of the signed 32-bit FNV-1a hash of `data`.

    librdkafka (`rd_fnv1a`) and Sarama's hash partitioner compute the same value.
    """
    hashed = _FNV_OFFSET
    for octet in data:
        hashed = (hashed ^ octet) * _FNV_PRIME & _MASK
    return (1 << 32) - hashed if hashed >> 31 else hashed


def _positive_murmur2(data: bytes) -> int:
    return murmur2(data) & 0x7FFFFFFF


_positive_hash = lru_cache(maxsize=REMEMBERED_KEYS)(_positive_murmur2)
_remembered_fnv1a = lru_cache(maxsize=REMEMBERED_KEYS)(fnv1a)


def partition_of_key(key: bytes, partitions: Sequence[int]) -> int:
    """Returns the partition of `key`.

    `partitions` are all partitions of the topic, in ascending order.
    """
    if len(partitions) == 1:
        return partitions[0]
    if len(key) > REMEMBERED_KEY_BYTES:
        return partitions[_positive_murmur2(key) % len(partitions)]
    return partitions[_positive_hash(bytes(key)) % len(partitions)]


def _fnv1a_partition(key: bytes, partitions: Sequence[int]) -> int:
    hashed = fnv1a(key) if len(key) > REMEMBERED_KEY_BYTES else _remembered_fnv1a(key)
    return partitions[hashed % len(partitions)]


def _crc32_partition(key: bytes, partitions: Sequence[int]) -> int:
    return partitions[crc32(key) % len(partitions)]


class _Named(NamedTuple):
    """A partitioner of librdkafka.

    `partition_of_key` is None if the partition of every record is random. Records without a key get
    the partition of an empty key if `hashes_null` is True, and otherwise the sticky partition. With
    `is_empty_sticky` an empty key counts as no key.
    """

    partition_of_key: Callable[[bytes, Sequence[int]], int] | None
    hashes_null: bool = False
    is_empty_sticky: bool = False


_NAMED: Final[Mapping[str, _Named]] = {
    "murmur2_random": _Named(partition_of_key),
    "murmur2": _Named(partition_of_key, hashes_null=True),
    "consistent_random": _Named(_crc32_partition, is_empty_sticky=True),
    "consistent": _Named(_crc32_partition, hashes_null=True),
    "fnv1a_random": _Named(_fnv1a_partition),
    "fnv1a": _Named(_fnv1a_partition, hashes_null=True),
    "random": _Named(None),
}

#: The names of the named partitioners.
PARTITIONER_NAMES: Final = tuple(_NAMED)


class TopicPartitioner(NamedTuple):
    """Chooses partitions of a topic.

    `info` is the metadata of the topic. `partition_of` returns the partition for the key of a
    record, which may be None. `partition_of` raises EncodeError if the user's partitioner fails. If
    `is_per_record` is True, the key does not determine the partition, so each record needs its own
    call of `partition_of`. `partitions_of_keys` returns the partitions of many keys; None if the
    partitioner has no such function.
    """

    info: TopicInfo
    partition_of: Callable[[bytes | None], int]
    is_per_record: bool = False
    partitions_of_keys: Callable[[Sequence[bytes]], list[int]] | None = None


def make_partitioner(
    info: TopicInfo,
    sticky_moves: Mapping[str, int],
    partitioner: PartitionerName | Partitioner = "murmur2_random",
) -> TopicPartitioner:
    """Returns the partitioner of a topic.

    `sticky_moves` counts, by topic, how often keyless records have moved to the next partition
    (KIP-480).
    """
    partitions = list(info.partitions)
    with_leader = [each.partition for each in info.partitions.values() if each.leader >= 0]
    with_leader = with_leader or partitions
    if not isinstance(partitioner, str):
        return TopicPartitioner(
            info, _user_function(partitioner, info, partitions, with_leader), is_per_record=True
        )
    if len(partitions) == 1:
        only = partitions[0]
        return TopicPartitioner(
            info, lambda key: only, partitions_of_keys=lambda keys: [only] * len(keys)
        )
    of_key, hashes_null, is_empty_sticky = _NAMED[partitioner]
    if of_key is None:
        choose = random.Random().choice  # noqa: S311 - it protects nothing
        return TopicPartitioner(info, lambda key: choose(with_leader), is_per_record=True)

    def partition_of(key: bytes | None) -> int:
        if key or (key is not None and not is_empty_sticky):
            return of_key(key, partitions)
        if hashes_null:
            return of_key(b"", partitions)
        return with_leader[sticky_moves.get(info.name, 0) % len(with_leader)]

    if of_key is not partition_of_key:
        return TopicPartitioner(info, partition_of)

    def partitions_of_keys(keys: Sequence[bytes]) -> list[int]:
        count = len(partitions)
        return [partitions[(each & 0x7FFFFFFF) % count] for each in murmur2_of_keys(keys)]

    return TopicPartitioner(info, partition_of, partitions_of_keys=partitions_of_keys)


def _user_function(
    function: Partitioner, info: TopicInfo, partitions: Sequence[int], with_leader: Sequence[int]
) -> Callable[[bytes | None], int]:
    """Returns a function that calls the user's `function` for keys of one topic.

    The returned function raises EncodeError if `function` raises an exception or returns no
    partition of the topic.
    """
    everything, available = tuple(partitions), tuple(with_leader)

    def partition_of(key: bytes | None) -> int:
        try:
            found = function(info.name, key, everything, available)
        except Exception as error:
            raise EncodeError(
                f"the partitioner raised {error!r} for {_described(info.name, key)}"
            ) from error
        if type(found) is not int or found not in info.partitions:
            raise EncodeError(
                f"the partitioner returned {found!r:.80} for {_described(info.name, key)}; it must "
                "return a partition of the topic, which has "
                f"{counted(len(everything), 'partition')}"
            )
        return found

    return partition_of


def _described(topic: str, key: bytes | None) -> str:
    """Describes a record by its topic and the size of its key. The key may be confidential."""
    size = "no key" if key is None else f"a key of {len(key)} bytes"
    return f"a record for topic {topic!r} with {size}"
