"""Converts subscriptions and assignments of a group between plain data and bytes.

`kproto.protocol.consumer_protocol` has the codec. The codec writes the highest version, as Kafka's
client does. This version has the owned partitions (KIP-429), their generation (KIP-792) and the
rack (KIP-881).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ...messages.consumer_protocol_assignment import TopicPartition as Assigned
from ...messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ...messages.consumer_protocol_subscription import TopicPartition as Owned
from ...protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ..metadata.cluster import TopicPartition
from .assignors.subscriptions import NO_GENERATION, Subscription, java_sorted

__all__ = [
    "assignment_bytes",
    "read_assignment",
    "read_subscription",
    "subscription_bytes",
]


def subscription_bytes(subscription: Subscription) -> bytes:
    """Returns the encoded subscription without the instance id, which is a field of JoinGroup."""
    owned = _by_topic(subscription.owned)
    return encode_subscription(
        ConsumerProtocolSubscription(
            topics=java_sorted(subscription.topics),
            user_data=subscription.user_data,
            owned_partitions=[
                Owned(topic=topic, partitions=sorted(owned[topic])) for topic in java_sorted(owned)
            ],
            generation_id=subscription.generation,
            rack_id=subscription.rack or None,  # an empty string means no rack
        )
    )


def read_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """Returns the subscription in `data` from a member; `instance_id` is the member's instance id.

    Raises DecodeError.
    """
    sent = decode_subscription(data)
    owned = [(each.topic, number) for each in sent.owned_partitions for number in each.partitions]
    generation = max(sent.generation_id, NO_GENERATION)
    return Subscription(
        tuple(sent.topics), owned, generation, sent.rack_id or None, instance_id, sent.user_data
    )


def assignment_bytes(tps: Iterable[TopicPartition]) -> bytes:
    """Returns the bytes of the assignment of one member, which the leader sends in SyncGroup."""
    return encode_assignment(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                Assigned(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(tps).items()
            ]
        )
    )


def read_assignment(data: bytes) -> list[TopicPartition]:
    """Returns the assigned partitions without duplicates; an empty list for empty bytes.

    Raises DecodeError.
    """
    sent = decode_assignment(data)
    tps = ((each.topic, at) for each in sent.assigned_partitions for at in each.partitions)
    return list(dict.fromkeys(tps))


def _by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in tps:
        found.setdefault(topic, []).append(partition)
    return found
