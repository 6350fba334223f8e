"""Encodes and decodes the user data of sticky members, as Kafka's own assignors do.

StickyAssignor sends the owned partitions by topic; version 1 adds the generation of the assignment.
CooperativeStickyAssignor sends only the generation: the subscription itself has the owned
partitions.
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
    "MemberData",
    "cooperative_member_data",
    "cooperative_user_data",
    "eager_member_data",
    "sticky_user_data",
]

_INT32: Final = struct.Struct(">i")


class MemberData(NamedTuple):
    """The partitions that a member owned, and the generation in which they were assigned.

    `generation` is None if the member sent no generation, NO_GENERATION if its user data is
    malformed.
    """

    partitions: Sequence[TopicPartition]
    generation: int | None


def sticky_user_data(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Returns the user data of an eager member that owned `partitions` in `generation`."""
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
    """Returns the user data of a cooperative sticky member: its generation."""
    return _INT32.pack(generation)


def eager_member_data(member: Subscription) -> MemberData:
    """Returns the partitions and the generation in the user data of an eager sticky member.

    Returns no partitions if the user data is missing or malformed.
    """
    data = member.user_data
    if not data:
        return MemberData((), None)
    try:
        partitions, at = _read_partitions(data)
    except (WireFault, IndexError, struct.error, UnicodeError):
        return MemberData((), NO_GENERATION)
    if at + _INT32.size > len(data):
        return MemberData(partitions, None)
    generation: int = _INT32.unpack_from(data, at)[0]
    return MemberData(partitions, generation)


def cooperative_member_data(member: Subscription) -> MemberData:
    """Returns the partitions that a cooperative sticky member owns, and their generation.

    The generation is taken from the subscription, or from the user data if the subscription has no
    generation.
    """
    if member.generation >= 0:
        return MemberData(member.owned, member.generation)
    data = member.user_data
    if data is None:
        return MemberData(member.owned, None)
    generation: int = NO_GENERATION
    if len(data) >= _INT32.size:
        generation = _INT32.unpack_from(data)[0]
    return MemberData(member.owned, generation)


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
