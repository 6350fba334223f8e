"""What members of the classic protocol say and are told of topics: the embedded consumer protocol.

ConsumerProtocolSubscription and ConsumerProtocolAssignment, each behind an int16 with its version,
as Kafka's ConsumerProtocol reads and writes them; a newer one is read as the highest that is known.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from ....messages.base import Message
from ....messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from ....messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ....wire.errors import DecodeError
from ....wire.uuid import Uuid
from ...topics import Topics
from ..java_order import grown_size, in_java_order, uuid_hash
from .members import Partitions

__all__ = ["Subscription", "assignment_bytes", "read_assignment", "read_subscription"]

_VERSION: Final = struct.Struct(">h")

M = TypeVar("M", bound=Message)


class Subscription(NamedTuple):
    """What a member says in JoinGroup; `owned` is what it holds."""

    topics: frozenset[str]
    rack: str | None
    owned: Partitions


def read_subscription(data: bytes, topics: Topics) -> Subscription:
    """Raises DecodeError."""
    told = _read(ConsumerProtocolSubscription, data)
    owned = _by_id(((it.topic, it.partitions) for it in told.owned_partitions), topics)
    return Subscription(frozenset(told.topics), told.rack_id or None, owned)


def read_assignment(data: bytes, topics: Topics) -> tuple[Partitions, bytes]:
    """What a leader says in SyncGroup, and the bytes of its assignor. Raises DecodeError.

    No bytes at all are nothing.
    """
    told = _read(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()
    assigned = _by_id(((it.topic, it.partitions) for it in told.assigned_partitions), topics)
    return assigned, told.user_data or b""


def assignment_bytes(partitions: Partitions, topics: Topics, subscription: bytes) -> bytes:
    """What a member is told that said this; topics that are gone are left out."""
    (version,) = _VERSION.unpack_from(subscription)
    version = min(version, ConsumerProtocolAssignment.LATEST_STABLE)
    assigned = [
        TopicPartition(topic=topics.name_of(topic_id), partitions=sorted(partitions[topic_id]))
        for topic_id in in_java_order(partitions, uuid_hash, grown_size(len(partitions)))
        if topics.name_of(topic_id)
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return _VERSION.pack(version) + message.encode(version)


def _by_id(told: Iterable[tuple[str, Iterable[int]]], topics: Topics) -> Partitions:
    """Partitions by the ids of topics, where they came by name; what is not there is left out."""
    found: dict[Uuid, frozenset[int]] = {}
    for name, its in told:
        topic = topics.get(name)
        if topic is not None:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(its)
    return found


def _read(message: type[M], data: bytes) -> M:
    if len(data) < _VERSION.size:
        raise DecodeError("too few bytes for the version", message=message.__name__, offset=0)
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"there is no version {version}", message=message.__name__, offset=0)
    return message.decode_from(data, _VERSION.size, min(version, message.LATEST_STABLE))[0]
