"""Builds message sets (magic 0 and 1) from new records and from record batches.

A message has no headers, and a message of magic 0 has no timestamp. Compressed messages are the
value of a wrapper message. Source: Kafka's documentation, "Old Message Format"; KIP-31, KIP-32.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from ...wire.buffers import octets_of_record
from ...wire.errors import ConfigurationError, EncodeError
from .. import log_format
from ..codecs.compression import MAX_DECOMPRESSED_BYTES, codec_for_name, level_for
from ..codecs.lz4_frame import with_checksum_of_magic_0
from ..magic2.record_batch import check_batch
from ..new_record import (
    ENCODE_FAILURES,
    MAX_BATCH_BYTES,
    MAX_INT32,
    MAX_INT64,
    check_max_bytes,
    check_new_record,
)
from .message_header import MESSAGE_OVERHEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import SupportsIndex

    from ...wire.buffers import BytesLike
    from ..codecs.compression import Codec
    from ..header_block import Header
    from ..magic2.record_batch import RecordBatch
    from ..new_record import NewRecord

__all__ = ["MessageSetBuilder", "down_convert", "encode_message_set"]

_OFFSET: Final = Struct(">q")
_SIZE_AND_CRC: Final = Struct(">iI")
_MAGIC_0: Final = Struct(">bb")  # magic, attributes
_MAGIC_1: Final = Struct(">bbq")  # and timestamp
_LENGTH: Final = Struct(">i")
_NULL: Final = b"\xff\xff\xff\xff"
_CRC_BYTES: Final = 4

_LZ4: Final = "lz4"
_ZSTD: Final = "zstd"
_NO_RECORD: Final = object()


def encode_message_set(
    records: Iterable[NewRecord],
    *,
    magic: int = 1,
    compression: str = "none",
    compression_level: int | None = None,
    log_append_time: int | None = None,
    base_offset: int = 0,
) -> bytes:
    """Returns a message set of all `records`, each (key, value, empty headers, timestamp in ms).

    With compression all messages are inside one wrapper message. Magic 0 drops the timestamps. With
    `log_append_time` (ms) all messages carry that time instead of their own, as if a broker had
    stored them.

    Raises EncodeError for a wrong record, for a record with headers, for an offset out of range, if
    there is no record, and if the set would exceed 2 GiB. Raises ConfigurationError for a wrong
    setting, and MissingCodecError if the codec is not installed.
    """
    builder = MessageSetBuilder(
        magic=magic,
        compression=compression,
        compression_level=compression_level,
        log_append_time=log_append_time,
        max_bytes=MAX_INT32,
    )
    if builder.extend(records) is not None:
        raise EncodeError("the records come to more than 2 GiB, the largest set there can be")
    return builder.build(base_offset=base_offset)


class MessageSetBuilder:
    """Builds a message set record by record, up to `max_bytes` before compression.

    `len(builder)` is the number of records, `size_in_bytes` is the exact size of the uncompressed
    message set.
    """

    __slots__ = (
        "_codec",
        "_level",
        "_log_append_time",
        "_max_timestamp",
        "_messages",
        "magic",
        "max_bytes",
        "size_in_bytes",
    )

    _codec: Codec
    _level: int
    _log_append_time: int | None
    _max_timestamp: int
    _messages: list[bytes]
    magic: int
    max_bytes: int
    size_in_bytes: int

    def __init__(
        self,
        *,
        magic: int = 1,
        compression: str = "none",
        compression_level: int | None = None,
        log_append_time: int | None = None,
        max_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        _check_magic(magic)
        if compression == _ZSTD:
            raise ConfigurationError(
                "compression 'zstd' needs magic 2; choose another, or build a record batch"
            )
        if magic == 0 and log_append_time is not None:
            raise ConfigurationError("a message of magic 0 has no log append time; use magic 1")
        if log_append_time is not None and not _is_time(log_append_time):
            raise ConfigurationError(f"log_append_time {log_append_time!r} is not a time in ms")
        check_max_bytes(max_bytes, MESSAGE_OVERHEAD_BYTES[magic] - 1)
        self.magic = magic
        self._codec = codec_for_name(compression)
        self._level = level_for(self._codec, compression_level)
        self._log_append_time = log_append_time
        self.max_bytes = max_bytes
        self.clear()

    def clear(self) -> None:
        """Removes all records; the settings stay."""
        self._messages = []
        self._max_timestamp = log_format.NO_TIMESTAMP
        self.size_in_bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def append(
        self,
        key: BytesLike | None,
        value: BytesLike | None,
        headers: Sequence[Header] = (),
        *,
        timestamp: SupportsIndex,
    ) -> bool:
        """Adds a record with `timestamp` in ms; returns False if the set would exceed `max_bytes`.

        Raises EncodeError for headers, and for an argument of a wrong type or out of range.
        """
        record: Any = (key, value, headers, timestamp)  # `extend` checks it
        return self.extend((record,)) is None

    def extend(self, records: Iterable[NewRecord], *, first_index: int = 0) -> NewRecord | None:
        """Adds records in order; returns the first that would exceed `max_bytes`, None if all fit.

        Does not consume an iterator beyond the returned record. Raises EncodeError for a
        record with headers, and for a field of a wrong type or out of range. The error names the
        record by its index in `records` plus `first_index`; the records before it have been added.
        """
        index = first_index
        given: Iterable[Any] = records  # typed Any, because the records are checked below
        record: Any = _NO_RECORD
        try:
            for record in given:
                key, value, headers, timestamp = record
                if headers:
                    raise EncodeError(
                        f"a message of magic {self.magic} cannot carry headers; leave them out, "
                        "or build a record batch",
                        field=f"records[{index}].headers",
                    )
                if not self._add(key, value, timestamp):
                    refused: NewRecord = record
                    return refused
                index += 1
        except ENCODE_FAILURES:
            if record is not _NO_RECORD:
                check_new_record(index, record)
            raise
        return None

    def _add(self, key: Any, value: Any, timestamp: int) -> bool:
        if key is not None:
            key = octets_of_record(key)
        if value is not None:
            value = octets_of_record(value)
        if not log_format.NO_TIMESTAMP <= timestamp <= MAX_INT64:
            raise ValueError("timestamp out of range")
        size = MESSAGE_OVERHEAD_BYTES[self.magic] + len(key or b"") + len(value or b"")
        if self.size_in_bytes + size > self.max_bytes:
            return False
        self._max_timestamp = max(self._max_timestamp, timestamp)
        attributes = 0
        if self._log_append_time is not None:
            timestamp = self._log_append_time
            attributes = log_format.LOG_APPEND_TIME_FLAG
        self._messages.append(_encode_message(self.magic, attributes, timestamp, key, value))
        self.size_in_bytes += size
        return True

    def build(self, *, base_offset: int = 0) -> bytes:
        """Returns the message set as bytes with checksums; the builder keeps its records.

        Raises EncodeError if there is no record or an offset is out of range, and MissingCodecError
        if the codec is not installed.
        """
        if not self._messages:
            raise EncodeError("a message set needs at least one record")
        try:
            offsets = range(base_offset, base_offset + len(self._messages))
        except TypeError:
            kind = type(base_offset).__name__
            raise EncodeError(f"base_offset is a whole number, not {kind}") from None
        try:
            return _join(
                self._messages,
                offsets,
                self.magic,
                self._codec,
                self._level,
                self._max_timestamp,
                self._log_append_time,
            )
        except struct.error as error:
            raise EncodeError(f"an offset or a size is out of its range: {error}") from None


def down_convert(
    batch: RecordBatch,
    magic: int,
    *,
    from_offset: int = 0,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> bytes:
    """Returns the batch as a message set of `magic`, for a client that cannot read a later magic.

    Converts like Kafka up to 3.9:
    - headers are lost, and the codec stays the same;
    - a batch of `magic` or an earlier magic is returned unchanged;
    - records before `from_offset` are left out, unless the batch is compressed;
    - a control batch becomes b"", and so does a batch of which no record is left.

    Raises EncodeError for zstd and for an argument that is not a batch, and ConfigurationError for
    a magic other than 0 and 1. Raises the errors of `RecordBatch.records` too.
    """
    _check_magic(magic)
    check_batch(batch)
    if batch.is_control:
        return b""
    compression = batch.compression
    if compression == _ZSTD:
        raise EncodeError("a batch compressed with zstd cannot become a message set")
    if batch.magic <= magic:
        return batch.raw
    codec = codec_for_name(compression)
    records = batch.records(
        from_offset=None if codec.id else from_offset,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    if not records:
        return b""
    log_append_time = None
    attributes = 0
    if batch.timestamp_type == log_format.LOG_APPEND_TIME:
        log_append_time = batch.max_timestamp
        attributes = log_format.LOG_APPEND_TIME_FLAG
    messages = [
        _encode_message(magic, attributes, record.timestamp, record.key, record.value)
        for record in records
    ]
    return _join(
        messages,
        [record.offset for record in records],
        magic,
        codec,
        codec.default_level,
        max(log_format.NO_TIMESTAMP, max(record.timestamp for record in records)),
        log_append_time,
    )


def _is_time(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MAX_INT64


def _check_magic(magic: object) -> None:
    if not isinstance(magic, int) or magic not in (0, 1):
        raise ConfigurationError(f"magic {magic!r} is not that of a message set: 0 or 1")


def _encode_message(
    magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    """Encodes one message with its size and CRC, but without the offset before the size."""
    if magic == 0:
        head = _MAGIC_0.pack(0, attributes & log_format.COMPRESSION_CODEC_MASK)
    else:
        head = _MAGIC_1.pack(1, attributes, timestamp)
    body = b"".join(
        (
            head,
            _NULL if key is None else _LENGTH.pack(len(key)),
            key or b"",
            _NULL if value is None else _LENGTH.pack(len(value)),
            value or b"",
        )
    )
    return _SIZE_AND_CRC.pack(_CRC_BYTES + len(body), crc32(body)) + body


def _join(
    messages: list[bytes],
    offsets: Sequence[int],
    magic: int,
    codec: Codec,
    level: int,
    max_timestamp: int,
    log_append_time: int | None,
) -> bytes:
    """Returns the encoded messages, each after its offset.

    If `codec` compresses, returns a single wrapper message, which contains the messages.
    """
    # Inside a wrapper of magic 1 offsets count from the first message (KIP-31).
    base = offsets[0] if codec.id and magic == 1 else 0
    parts: list[bytes] = []
    for offset, message in zip(offsets, messages, strict=True):
        parts.append(_OFFSET.pack(offset - base))
        parts.append(message)
    plain = b"".join(parts)
    if not codec.id:
        return plain
    packed = codec.compress(plain, level)
    if magic == 0 and codec.name == _LZ4:
        packed = with_checksum_of_magic_0(packed)
    attributes = codec.id
    timestamp = max_timestamp
    if log_append_time is not None:
        attributes |= log_format.LOG_APPEND_TIME_FLAG
        timestamp = log_append_time
    wrapper = _encode_message(magic, attributes, timestamp, None, packed)
    return _OFFSET.pack(offsets[-1]) + wrapper
