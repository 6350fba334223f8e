"""Reads and writes the records of control batches as generated messages.

The key is an int16 version and an int16 type (ControlRecordTypeSchema). The value of an abort or
commit marker is an int16 version and an EndTxnMarker. The values of KRaft's types are messages
whose first field is the version. Source: Kafka's ControlRecordType, EndTransactionMarker and
ControlRecordUtils.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple

from ..messages.base import Message
from ..records import Record
from ..wire.errors import DecodeError, EncodeError
from .framing import decode_after_prefix, message_class

__all__ = [
    "ControlRecord",
    "ControlRecordType",
    "decode_control_record",
    "encode_control_record",
]

_INT16: Final = Struct(">h")
_KEY: Final = Struct(">hh")


class ControlRecordType(IntEnum):
    """The types of control records. KIP-98, KIP-595, KIP-630, KIP-853."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


#: The name of the generated class of the value, by type.
_CLASSES: Final[dict[int, str]] = {
    ControlRecordType.ABORT: "EndTxnMarker",
    ControlRecordType.COMMIT: "EndTxnMarker",
    ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}

_MARKERS: Final = frozenset({ControlRecordType.ABORT, ControlRecordType.COMMIT})


class ControlRecord(NamedTuple):
    """A control record.

    - `type`: a ControlRecordType, or an int for an unknown type, whose `message` is None.
    - `version`: the version of the value. If it is None, `encode_control_record` writes version 0
      for an abort or commit marker, and the `version` field of the message for other types.
    - `unread`: the bytes that a version above the highest known version appends to the message. For
      an unknown type, `unread` is the whole value, None for null.
    - `key_version`: the version of the key.
    - `unread_key`: the bytes of the key after the known fields.
    """

    type: int
    message: Message | None = None
    version: int | None = None
    unread: bytes | None = b""
    key_version: int = 0
    unread_key: bytes = b""


def decode_control_record(record: Record) -> ControlRecord:
    """Returns the type and message of a record of a control batch.

    As in Kafka, an unknown type is not an error. A key or value of a version above the highest
    known version is read as the highest known version, and the extra bytes are kept. Raises
    DecodeError if the key, or the value of a known type, is null, too short, of a negative version,
    or longer than its version allows. Also raises it for an invalid message.
    """
    key, value = record.key, record.value
    if key is None or len(key) < _KEY.size:
        size_text = "is null" if key is None else f"has {len(key)} bytes"
        raise _wrong(record, f"its key {size_text}; a control record's has {_KEY.size}")
    key_version, number = _KEY.unpack_from(key)
    unread_key = key[_KEY.size :]
    if key_version < 0 or (key_version == 0 and unread_key):
        raise _wrong(record, f"its key has version {key_version} and {len(key)} bytes")
    if number not in _CLASSES:
        return ControlRecord(number, None, None, value, key_version, unread_key)
    kind = ControlRecordType(number)
    if value is None or len(value) < _INT16.size:
        size_text = "is null" if value is None else f"has {len(value)} bytes"
        raise _wrong(
            record, f"its value {size_text}; that of type {kind.name} begins with an int16"
        )
    (version,) = _INT16.unpack_from(value)
    cls = message_class(_CLASSES[kind])
    highest = cls.VALID_VERSIONS[-1]
    if version < 0:
        raise _wrong(record, f"the value of type {kind.name} has version {version}")
    start = _INT16.size if kind in _MARKERS else 0
    if version <= highest:
        message = decode_after_prefix(cls, value, start, version)
        return ControlRecord(kind, message, version, b"", key_version, unread_key)
    message, end = cls.decode_from(value, start, highest)
    return ControlRecord(kind, message, version, value[end:], key_version, unread_key)


def encode_control_record(record: ControlRecord) -> tuple[bytes, bytes | None]:
    """Returns the key and value of a record for a control batch.

    Raises EncodeError if `record.message` cannot be encoded, or is not of the class that
    `record.type` requires. Also raises EncodeError if `record.version` is set but differs from the
    message's own `version` field.
    """
    key = _int16(record.key_version, "key version") + _int16(record.type, "type", -32768)
    if record.type not in _CLASSES:
        if record.message is not None:
            raise EncodeError(f"control records of type {record.type} have no message")
        return key + record.unread_key, record.unread
    return key + record.unread_key, _value(record) + (record.unread or b"")


def _value(record: ControlRecord) -> bytes:
    message: Any = record.message
    expected, kind = _CLASSES[record.type], ControlRecordType(record.type)
    if not isinstance(message, Message) or message._generated().__name__ != expected:
        raise EncodeError(
            f"a record of type {kind.name} has {expected}, not {type(message).__name__}"
        )
    highest = message.VALID_VERSIONS[-1]
    if kind in _MARKERS:
        version: Any = 0 if record.version is None else record.version
        return _int16(version, "version") + message.encode(min(version, highest))
    version = getattr(message, "version", None)
    if record.version not in {None, version}:
        raise EncodeError(
            f"the record's version is {record.version}, but the message's is {version!r}"
        )
    _int16(version, "version")
    return message.encode(min(version, highest))


def _int16(value: Any, what: str, lowest: int = 0) -> bytes:
    if not isinstance(value, int) or not lowest <= value <= 32767:
        raise EncodeError(f"the {what} of a control record is {value!r}, not {lowest} to 32767")
    return _INT16.pack(value)


def _wrong(record: Record, reason: str) -> DecodeError:
    return DecodeError(f"the control record at offset {record.offset}: {reason}")
