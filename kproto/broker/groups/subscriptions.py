"""The topics that a member of a consumer group reads, from what it says in JoinGroup.

Only the beginning of the embedded protocol is read, which all of its versions have in common: a
version, the topics and the user data (v0 of ConsumerProtocolSubscription). What ends before that
says nothing, as in Kafka.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from ...wire.faults import READ_FAULTS, WireFault
from ...wire.reading import read_array_length, read_nullable_bytes, read_string

__all__ = ["CONSUMER_PROTOCOL_TYPE", "subscribed_topics"]

#: The protocol type of consumers; others, such as Connect, say other things.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = struct.Struct(">h")


def subscribed_topics(all_metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None where what one says cannot be read."""
    topics: set[str] = set()
    try:
        for metadata in all_metadata:
            topics.update(_topics(metadata))
    except READ_FAULTS:
        return None
    return frozenset(topics)


def _topics(metadata: bytes) -> list[str]:
    (version,) = _VERSION.unpack_from(metadata)
    if version < 0:
        raise WireFault
    count, pos = read_array_length(metadata, _VERSION.size)
    topics = []
    for _ in range(count):
        topic, pos = read_string(metadata, pos)
        topics.append(topic)
    _, pos = read_nullable_bytes(metadata, pos)
    if pos > len(metadata):
        raise WireFault
    return topics
