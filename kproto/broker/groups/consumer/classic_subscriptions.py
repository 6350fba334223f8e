"""Decodes and encodes the subscriptions and assignments of members of the classic protocol.

Uses `kproto.protocol.consumer_protocol`, and converts between topic names and topic ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from ....protocol.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    subscription_version,
)
from ....wire.uuid import Uuid
from ...topics import Topics
from ..java_order import grown_size, in_java_order, uuid_hash
from .consumer_group_member import Partitions

__all__ = ["Subscription", "assignment_bytes", "read_assignment", "read_subscription"]


class Subscription(NamedTuple):
    """Holds the subscription in a JoinGroup; `owned` are the partitions that the member owns."""

    topics: frozenset[str]
    rack: str | None
    owned: Partitions


def read_subscription(data: bytes, topics: Topics) -> Subscription:
    """Decodes the subscription of a member; `owned` omits topics that do not exist.

    Raises DecodeError if `data` cannot be decoded.
    """
    decoded = decode_subscription(data)
    owned = _by_id(((it.topic, it.partitions) for it in decoded.owned_partitions), topics)
    return Subscription(frozenset(decoded.topics), decoded.rack_id or None, owned)


def read_assignment(data: bytes, topics: Topics) -> tuple[Partitions, bytes]:
    """Decodes an assignment; returns its partitions and the leader's user data.

    Empty `data` is an empty assignment. Raises DecodeError if `data` cannot be decoded.
    """
    decoded = decode_assignment(data)
    assigned = _by_id(((it.topic, it.partitions) for it in decoded.assigned_partitions), topics)
    return assigned, decoded.user_data or b""


def assignment_bytes(partitions: Partitions, topics: Topics, subscription: bytes) -> bytes:
    """Encodes an assignment in the version of the member's subscription; omits deleted topics."""
    assigned = [
        TopicPartition(topic=topics.name_of(topic_id), partitions=sorted(partitions[topic_id]))
        for topic_id in in_java_order(partitions, uuid_hash, grown_size(len(partitions)))
        if topics.name_of(topic_id)
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return encode_assignment(message, subscription_version(subscription))


def _by_id(decoded: Iterable[tuple[str, Iterable[int]]], topics: Topics) -> Partitions:
    """Returns partitions by topic id, without topics that do not exist."""
    found: dict[Uuid, frozenset[int]] = {}
    for name, its in decoded:
        topic = topics.get(name)
        if topic is not None:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(its)
    return found
