"""The user data of sticky members, as Kafka's own assignors write and read it.

StickyAssignor: what the member read, by topic, and since version 1 of which generation that was.
CooperativeStickyAssignor: the generation alone; what is owned stands in the subscription itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ....wire.faults import WireFault
from ....wire.reading import read_array_length, read_numbers, read_string
from ....wire.writing import write_array_length, write_numbers, write_string
from ...metadata.cluster import TopicPartition
from .subscriptions import NO_GENERATION, Subscription

__all__ = [
    "Owned",
    "cooperative_user_data",
    "owned_cooperatively",
    "owned_eagerly",
    "sticky_user_data",
]

_INT32: Final = struct.Struct(">i")


class Owned(NamedTuple):
    """What a member read, and of which generation that was; None where it does not know."""

    partitions: Sequence[TopicPartition]
    generation: int | None


def sticky_user_data(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """What an eager sticky member tells of what it read."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    parts: list[bytes] = []
    write_array_length(parts.append, len(by_topic))
    for topic, numbers in by_topic.items():
        write_string(parts.append, topic)
        write_array_length(parts.append, len(numbers))
        write_numbers(parts.append, numbers, "i")
    parts.append(_INT32.pack(generation))
    return b"".join(parts)


def cooperative_user_data(generation: int) -> bytes:
    """What a cooperative sticky member tells: its generation."""
    return _INT32.pack(generation)


def owned_eagerly(member: Subscription) -> Owned:
    """What an eager sticky member read; bytes that are not its form are as if there were none."""
    data = member.user_data
    if not data:
        return Owned((), None)
    try:
        partitions, at = _read_partitions(data)
    except (WireFault, IndexError, struct.error, UnicodeError):
        return Owned((), NO_GENERATION)
    if at + _INT32.size > len(data):
        return Owned(partitions, None)
    generation: int = _INT32.unpack_from(data, at)[0]
    return Owned(partitions, generation)


def owned_cooperatively(member: Subscription) -> Owned:
    """What a cooperative sticky member reads."""
    if member.generation >= 0:
        return Owned(member.owned, member.generation)
    data = member.user_data
    if data is None:
        return Owned(member.owned, None)
    generation: int = NO_GENERATION
    if len(data) >= _INT32.size:
        generation = _INT32.unpack_from(data)[0]
    return Owned(member.owned, generation)


def _read_partitions(data: bytes) -> tuple[list[TopicPartition], int]:
    found: list[TopicPartition] = []
    topics, at = read_array_length(data, 0)
    for _ in range(topics):
        topic, at = read_string(data, at)
        count, at = read_array_length(data, at)
        partitions, at = read_numbers(data, at, count, "i")
        found += [(topic, partition) for partition in partitions]
    if at > len(data):
        raise WireFault
    return found, at
