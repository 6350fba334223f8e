"""Reads and writes the embedded consumer protocol: subscriptions and assignments as bytes.

Kafka's class is `ConsumerProtocol`. JoinGroup carries a ConsumerProtocolSubscription, and SyncGroup
carries a ConsumerProtocolAssignment. An int16 with the version precedes the message. A version
newer than the highest known version is read as the highest known version; the bytes that the newer
version adds are ignored.

Some clients, such as kafka-go and older releases of sarama, write version 1 without the
OwnedPartitions of version 1. So a message may end before any field except the first; the missing
fields have their defaults, as in sarama and franz-go. Kafka's Java client refuses such a message.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Final, TypeVar

from ..messages.base import Message
from ..messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ..messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ..wire.errors import DecodeError

__all__ = [
    "PROTOCOL_TYPE",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "subscription_version",
]

#: The protocol type of consumer groups; Kafka Connect and other users of groups have their own.
PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = struct.Struct(">h")
_NULL_BYTES: Final = struct.pack(">i", -1)

M = TypeVar("M", ConsumerProtocolAssignment, ConsumerProtocolSubscription)


def encode_subscription(
    subscription: ConsumerProtocolSubscription,
    version: int = ConsumerProtocolSubscription.LATEST_STABLE,
) -> bytes:
    """Returns the bytes of a subscription, by default in the latest version, as in Kafka's client.

    If `version` is above the latest stable version, the bytes have the latest stable version.
    """
    return _encode(subscription, version)


def decode_subscription(
    data: bytes,
    highest: int = ConsumerProtocolSubscription.LATEST_STABLE,
    *,
    may_end_early: bool = True,
) -> ConsumerProtocolSubscription:
    """Returns the subscription in the bytes. Raises DecodeError for invalid bytes.

    A version above `highest` is read as `highest`. With `highest=0` only the topics and the user
    data are read; every version begins with them. With `may_end_early=False` the bytes must have
    all fields of the version, as in Kafka's Java classes.
    """
    return _decode(ConsumerProtocolSubscription, data, highest, may_end_early)


def subscription_version(data: bytes) -> int:
    """Returns the version of a subscription, even an unknown newer version.

    Raises DecodeError if the bytes have no valid version.
    """
    return _version(ConsumerProtocolSubscription, data)


def encode_assignment(
    assignment: ConsumerProtocolAssignment, version: int = ConsumerProtocolAssignment.LATEST_STABLE
) -> bytes:
    """Returns the bytes of an assignment.

    If `version` is above the latest stable version, the bytes have the latest stable version.
    """
    return _encode(assignment, version)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Returns the assignment in the bytes; an empty assignment if `data` is empty.

    Raises DecodeError for invalid bytes.
    """
    if not data:
        return ConsumerProtocolAssignment()
    return _decode(ConsumerProtocolAssignment, data, ConsumerProtocolAssignment.LATEST_STABLE, True)


def _encode(message: Message, version: int) -> bytes:
    version = min(version, message.LATEST_STABLE)
    return _VERSION.pack(version) + message.encode(version)


def _decode(message: type[M], data: bytes, highest: int, may_end_early: bool) -> M:
    version = min(_version(message, data), highest)
    try:
        return message.decode_from(data, _VERSION.size, version)[0]
    except DecodeError:
        read = _read_to_the_end(message, data, version) if may_end_early else None
        if read is None:
            raise
        return read


def _read_to_the_end(message: type[M], data: bytes, version: int) -> M | None:
    """Returns the message in bytes that end between two fields; None if they end inside a field.

    Each version adds fields after those of the previous version. So bytes that end before these
    fields are a complete message of the previous version. The bytes may also end before the user
    data, the last field of version 0; the user data are then null.
    """
    for older in range(version - 1, -1, -1):
        with suppress(DecodeError):
            read, end = message.decode_from(data, _VERSION.size, older)
            if end == len(data):
                return read
    with suppress(DecodeError):
        read, end = message.decode_from(data + _NULL_BYTES, _VERSION.size, 0)
        if end == len(data) + len(_NULL_BYTES) and read.user_data is None:
            return read
    return None


def _version(message: type[Message], data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError(
            f"{len(data)} bytes are too few for the version", message=message.__name__, offset=0
        )
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise DecodeError(f"there is no version {version}", message=message.__name__, offset=0)
    return version
