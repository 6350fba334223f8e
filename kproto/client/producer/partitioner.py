"""Chooses the partition of a record by the hash of its key, as Kafka's own clients do.

Records without a key go to one partition until a batch of the topic is full or is sent (KIP-480).
They go only to partitions that have a leader, if there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..metadata.cluster import TopicInfo

__all__ = ["TopicPartitioner", "make_partitioner", "murmur2", "partition_of_key"]

#: The number of keys in the cache of hashes: keys repeat, and a hash costs one microsecond for two
#: bytes of the key.
REMEMBERED_KEYS = 16_384

#: Longer keys are not cached: keys that repeat are short, and large keys would fill memory.
REMEMBERED_KEY_BYTES = 256

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Returns the 32-bit MurmurHash2 of `data` with the seed of Kafka's Java client."""
    size = len(data)
    hashed = _SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        hashed = hashed * _MULTIPLIER & _MASK ^ word
    if size > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15


@lru_cache(maxsize=REMEMBERED_KEYS)
def _positive_hash(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF


def partition_of_key(key: bytes, partitions: Sequence[int]) -> int:
    """Returns the partition of `key`.

    `partitions` are all partitions of the topic, in ascending order.
    """
    if len(partitions) == 1:
        return partitions[0]
    if len(key) > REMEMBERED_KEY_BYTES:
        return partitions[(murmur2(key) & 0x7FFFFFFF) % len(partitions)]
    return partitions[_positive_hash(bytes(key)) % len(partitions)]


class TopicPartitioner(NamedTuple):
    """Chooses partitions of a topic.

    `info` is the metadata of the topic. `partition_of` returns the partition of a record by its
    key; None is a record without a key.
    """

    info: TopicInfo
    partition_of: Callable[[bytes | None], int]


def make_partitioner(info: TopicInfo, sticky_moves: Mapping[str, int]) -> TopicPartitioner:
    """Returns the partitioner of a topic.

    `sticky_moves` counts, by topic, how often keyless records have moved to the next partition
    (KIP-480).
    """
    partitions = list(info.partitions)
    if len(partitions) == 1:
        only = partitions[0]
        return TopicPartitioner(info, lambda key: only)
    with_leader = [each.partition for each in info.partitions.values() if each.leader >= 0]
    with_leader = with_leader or partitions

    def partition_of(key: bytes | None) -> int:
        if key is not None:
            return partition_of_key(key, partitions)
        return with_leader[sticky_moves.get(info.name, 0) % len(with_leader)]

    return TopicPartitioner(info, partition_of)
