"""What members and their leader tell each other, as bytes: subscriptions and assignments.

An int16 with the version stands in front of each, ConsumerProtocolSubscription or
ConsumerProtocolAssignment behind it. Written is the highest version, as Kafka's ConsumerProtocol
does (KIP-429 owned partitions, KIP-792 their generation, KIP-881 the rack); read is any, a newer
one as the highest that is known, with what it adds left alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, TypeVar

from ...messages.base import Message
from ...messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ...messages.consumer_protocol_assignment import TopicPartition as Assigned
from ...messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ...messages.consumer_protocol_subscription import TopicPartition as Owned
from ...wire.errors import DecodeError
from ..metadata.cluster import TopicPartition
from .assignors.subscriptions import NO_GENERATION, Subscription, java_sorted

__all__ = [
    "PROTOCOL_TYPE",
    "assignment_bytes",
    "read_assignment",
    "read_subscription",
    "subscription_bytes",
]

#: The kind of group that consumers are.
PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = struct.Struct(">h")

M = TypeVar("M", bound=Message)


def subscription_bytes(subscription: Subscription) -> bytes:
    """What a member says in JoinGroup; its instance id stands elsewhere."""
    owned = _by_topic(subscription.owned)
    return _written(
        ConsumerProtocolSubscription(
            topics=java_sorted(subscription.topics),
            user_data=subscription.user_data,
            owned_partitions=[
                Owned(topic=topic, partitions=sorted(owned[topic])) for topic in java_sorted(owned)
            ],
            generation_id=subscription.generation,
            rack_id=subscription.rack or None,  # an empty one is none
        )
    )


def read_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """What another member said. Raises DecodeError."""
    told = _read(ConsumerProtocolSubscription, data)
    owned = [(each.topic, number) for each in told.owned_partitions for number in each.partitions]
    generation = max(told.generation_id, NO_GENERATION)
    return Subscription(
        tuple(told.topics), owned, generation, told.rack_id or None, instance_id, told.user_data
    )


def assignment_bytes(places: Iterable[TopicPartition]) -> bytes:
    """What the leader says in SyncGroup of one member."""
    return _written(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                Assigned(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(places).items()
            ]
        )
    )


def read_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions that the leader gave, each once; no bytes are none. Raises DecodeError."""
    if not data:
        return []
    told = _read(ConsumerProtocolAssignment, data)
    places = ((each.topic, at) for each in told.assigned_partitions for at in each.partitions)
    return list(dict.fromkeys(places))


def _by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def _written(message: Message) -> bytes:
    version = message.LATEST_STABLE
    return _VERSION.pack(version) + message.encode(version)


def _read(message: type[M], data: bytes) -> M:
    if len(data) < _VERSION.size:
        raise DecodeError(
            f"{len(data)} bytes are too few for the version", message=message.__name__, offset=0
        )
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"there is no version {version}", message=message.__name__, offset=0)
    return message.decode_from(data, _VERSION.size, min(version, message.LATEST_STABLE))[0]
