"""Reads and writes the records of coordinators: one message for the key, one for the value.

Coordinators store records in `__consumer_offsets`, `__transaction_state` and `__share_group_state`.
The key begins with an int16, which Kafka 4 calls the record type and Kafka 3.9 calls the version of
the key; the numbers are the same. The value begins with an int16 version, and is null in a
tombstone. Source: Kafka's CoordinatorRecordSerde and MessageUtil.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from ..messages.base import Message
from ..records import Record
from ..wire.errors import DecodeError, EncodeError
from .framing import (
    RecordTypes,
    decode_after_prefix,
    message_class,
    numbers_of,
    record_types_of,
    version_to_write,
)

__all__ = [
    "COORDINATOR_TOPICS",
    "CoordinatorRecord",
    "UnknownCoordinatorRecord",
    "decode_coordinator_record",
    "encode_coordinator_record",
]

_INT16: Final = Struct(">h")

#: The name of each record type, by topic and number. The generated classes of key and value are
#: named `{name}Key` and `{name}Value`. Kafka dropped number 9 after 3.9.
COORDINATOR_TOPICS: Final[RecordTypes] = {
    "__consumer_offsets": {
        0: "LegacyOffsetCommit",
        1: "OffsetCommit",
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        9: "ShareGroupPartitionMetadata",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    },
    "__transaction_state": {0: "TransactionLog"},
    "__share_group_state": {0: "ShareSnapshot", 1: "ShareUpdate"},
}

#: The number of each record type, by name.
_NUMBERS: Final = numbers_of(COORDINATOR_TOPICS)


class CoordinatorRecord(NamedTuple):
    """A record of a coordinator; `value` is None in a tombstone.

    `version` is the version of the value, None in a tombstone. If `version` is None in a record
    with a value, `encode_coordinator_record` writes the latest stable version.
    """

    key: Message
    value: Message | None = None
    version: int | None = None


class UnknownCoordinatorRecord(NamedTuple):
    """A record of a type that is not in COORDINATOR_TOPICS; key and value stay encoded.

    `api_key` is the number of the type.
    """

    api_key: int
    key: bytes
    value: bytes | None


def decode_coordinator_record(
    record: Record, *, topic: str | None = None
) -> CoordinatorRecord | UnknownCoordinatorRecord:
    """Returns the key and value of a record of `topic` (default: the topic of the record).

    Returns an UnknownCoordinatorRecord for an unknown type, which Kafka's coordinators skip. Raises
    DecodeError for a null key, an unknown version, and missing or extra bytes. The offset of the
    error counts from the start of the key or value that the error names. Raises ConfigurationError
    for a topic that is not in COORDINATOR_TOPICS.
    """
    types = record_types_of(topic or record.topic, COORDINATOR_TOPICS, "is no coordinator's topic")
    number = _leading_int16(record.key, record, "key")
    assert record.key is not None
    name = types.get(number)
    if name is None:
        return UnknownCoordinatorRecord(number, record.key, record.value)
    key_class = message_class(f"{name}Key")
    key = decode_after_prefix(key_class, record.key, _INT16.size, key_class.LATEST_STABLE)
    if record.value is None:
        return CoordinatorRecord(key)
    version = _leading_int16(record.value, record, "value")
    value = decode_after_prefix(message_class(f"{name}Value"), record.value, _INT16.size, version)
    return CoordinatorRecord(key, value, version)


def encode_coordinator_record(
    record: CoordinatorRecord | UnknownCoordinatorRecord,
) -> tuple[bytes, bytes | None]:
    """Returns the encoded key and value; the value of a tombstone is None.

    Raises EncodeError if a message cannot be encoded, if the key is not the key of a coordinator
    record, or if key and value are of different record types.
    """
    if isinstance(record, UnknownCoordinatorRecord):
        return record.key, record.value
    key_name = _name_of(record.key)
    name = key_name.removesuffix("Key")
    if name == key_name or name not in _NUMBERS:
        raise EncodeError(f"{key_name} is not the key of a coordinator's record")
    key = _INT16.pack(_NUMBERS[name]) + record.key.encode(record.key.LATEST_STABLE)
    if record.value is None:
        return key, None
    if _name_of(record.value) != f"{name}Value":
        raise EncodeError(f"{key_name} needs {name}Value, not {_name_of(record.value)}")
    version = version_to_write(record.value, record)
    body = record.value.encode(version)
    return key, _INT16.pack(version) + body


def _leading_int16(data: bytes | None, record: Record, what: str) -> int:
    if data is None or len(data) < _INT16.size:
        size_text = "is null" if data is None else f"has {len(data)} bytes"
        raise DecodeError(
            f"the {what} of the coordinator record at offset {record.offset} {size_text}; "
            "it begins with an int16"
        )
    number: int = _INT16.unpack_from(data)[0]
    return number


def _name_of(message: object) -> str:
    if not isinstance(message, Message):
        raise EncodeError(f"a message is wanted, not {type(message).__name__}")
    return message._generated().__name__
