"""Reads and writes the records of KRaft's metadata log and of tiered storage's metadata topic.

The value of a record is three unsigned varints (frame version 1, record type, version of the
message), then the message. Source: Kafka's AbstractApiMessageSerde. `control_records` reads the
records of the log's control batches.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..messages.base import Message
from ..records import Record
from ..wire.errors import DecodeError, EncodeError
from ..wire.faults import READ_FAULTS
from ..wire.reading import read_uvarint
from .framing import (
    RecordTypes,
    decode_after_prefix,
    message_class,
    numbers_of,
    record_types_of,
    version_to_write,
)

__all__ = [
    "FRAME_VERSION",
    "METADATA_TOPICS",
    "MetadataRecord",
    "UnknownMetadataRecord",
    "decode_metadata_record",
    "encode_metadata_record",
]

#: The only frame version since Kafka 3.0; the KRaft preview in 2.8 had version 0.
FRAME_VERSION: Final = 1

#: The largest frame version, record type or message version: Kafka stores each in a short.
_LARGEST: Final = 32767

#: The name of the generated message class, by topic and record type.
METADATA_TOPICS: Final[RecordTypes] = {
    "__cluster_metadata": {
        0: "RegisterBrokerRecord",
        1: "UnregisterBrokerRecord",
        2: "TopicRecord",
        3: "PartitionRecord",
        4: "ConfigRecord",
        5: "PartitionChangeRecord",
        7: "FenceBrokerRecord",
        8: "UnfenceBrokerRecord",
        9: "RemoveTopicRecord",
        10: "DelegationTokenRecord",
        11: "UserScramCredentialRecord",
        12: "FeatureLevelRecord",
        14: "ClientQuotaRecord",
        15: "ProducerIdsRecord",
        17: "BrokerRegistrationChangeRecord",
        18: "AccessControlEntryRecord",
        19: "RemoveAccessControlEntryRecord",
        20: "NoOpRecord",
        21: "ZkMigrationStateRecord",
        22: "RemoveUserScramCredentialRecord",
        23: "BeginTransactionRecord",
        24: "EndTransactionRecord",
        25: "AbortTransactionRecord",
        26: "RemoveDelegationTokenRecord",
        27: "RegisterControllerRecord",
        28: "ClearElrRecord",
        29: "UnregisterControllerRecord",
    },
    "__remote_log_metadata": {
        0: "RemoteLogSegmentMetadataRecord",
        1: "RemoteLogSegmentMetadataUpdateRecord",
        2: "RemotePartitionDeleteMetadataRecord",
        3: "RemoteLogSegmentMetadataSnapshotRecord",
    },
}

#: The record types by the names of the message classes.
_TYPES: Final = numbers_of(METADATA_TOPICS)


class MetadataRecord(NamedTuple):
    """A message of the metadata log; `version` None means the latest stable version."""

    message: Message
    version: int | None = None


class UnknownMetadataRecord(NamedTuple):
    """A record whose type is not in METADATA_TOPICS; `value` is the whole encoded value.

    `api_key` is the number of the type, `version` is the version of the message.
    """

    api_key: int
    version: int
    value: bytes


def decode_metadata_record(
    record: Record, *, topic: str | None = None
) -> MetadataRecord | UnknownMetadataRecord:
    """Returns the message in the value of a record of `topic`.

    `topic` is by default the topic of the record. A record that was read from a file has no topic;
    then the default is `__cluster_metadata`. Returns an UnknownMetadataRecord for an unknown type;
    a caller that replays the log should then stop, as Kafka does.

    Raises DecodeError for a null value, a frame version other than 1, an unknown message version,
    and missing or extra bytes. The offset of the error counts from the start of the value. Raises
    ConfigurationError for a topic that is not in METADATA_TOPICS.
    """
    types = record_types_of(
        topic or record.topic or "__cluster_metadata", METADATA_TOPICS, "has no metadata records"
    )
    value = record.value
    if value is None:
        raise DecodeError(f"the metadata record at offset {record.offset} has no value")
    frame, pos = _number(value, 0, "frame version")
    if frame != FRAME_VERSION:
        raise DecodeError(
            f"a metadata record of frame version {frame}; only {FRAME_VERSION} is known", offset=0
        )
    api_key, pos = _number(value, pos, "type")
    version, pos = _number(value, pos, "version")
    name = types.get(api_key)
    if name is None:
        return UnknownMetadataRecord(api_key, version, value)
    return MetadataRecord(decode_after_prefix(message_class(name), value, pos, version), version)


def encode_metadata_record(record: MetadataRecord | UnknownMetadataRecord) -> bytes:
    """Returns the encoded value for a record; the key of such a record is null.

    Raises EncodeError if the message cannot be encoded, or if METADATA_TOPICS lacks its class.
    """
    if isinstance(record, UnknownMetadataRecord):
        return record.value
    message = record.message
    name = message._generated().__name__ if isinstance(message, Message) else ""
    if name not in _TYPES:
        raise EncodeError(f"{type(message).__name__} is not a message of a metadata log")
    version = version_to_write(message, record)
    body = message.encode(version)
    # Frame version, type and version are below 128, so the varint of each has one byte.
    return bytes((FRAME_VERSION, _TYPES[name], version)) + body


def _number(data: bytes, pos: int, what: str) -> tuple[int, int]:
    try:
        number, end = read_uvarint(data, pos)
    except READ_FAULTS:
        reason = f"the {what} of a metadata record is cut off, or longer than 5 bytes"
        raise DecodeError(reason, offset=pos) from None
    if number > _LARGEST:
        raise DecodeError(f"a {what} of {number}; at most {_LARGEST} is allowed", offset=pos)
    return number, end
