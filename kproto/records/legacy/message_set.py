"""Reads message sets (magic 0 and 1), the log format before record batches.

A wrapper is a message whose value is a compressed message set. Source: Kafka's documentation, "Old
Message Format"; KIP-31 (relative offsets), KIP-32 (timestamps).

`LegacyBatch` raises CorruptBatchError for some faults that Kafka's own classes accept, and that no
broker stores:
- bytes after the value, or a cut message at the end of a wrapper (Kafka ignores them);
- a message whose magic differs from that of its wrapper;
- a wrong checksum inside a wrapper (Kafka leaves the check to the client).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from ...wire.errors import CorruptBatchError, MissingCodecError
from .. import log_format
from ..codecs.compression import MAX_DECOMPRESSED_BYTES, codec_for_id
from ..codecs.lz4_frame import with_right_checksum
from ..header_block import NO_HEADERS
from ..log_format import as_buffer, base_offset_at, bytes_left
from ..magic2.record_batch import RecordBatch
from ..record import BatchOrigin, Record
from ..varints import int64
from .message_header import (
    MESSAGE,
    MESSAGE_BYTES,
    MESSAGE_CRC_FROM,
    MESSAGE_FIELD_LENGTH,
    MESSAGE_FIELD_LENGTH_BYTES,
    MESSAGE_TIMESTAMP,
    MESSAGE_TIMESTAMP_BYTES,
)

if TYPE_CHECKING:
    from ..codecs.compression import Codec

__all__ = ["LegacyBatch", "message_codec"]

_LZ4: Final = 3
_ZSTD: Final = 4
_UNKNOWN_COUNT: Final = -1


class LegacyBatch(RecordBatch):
    """A view of one entry of a message set: a message, or a wrapper of compressed messages.

    Attributes of `RecordBatch` that the format lacks are -1, False or None; only
    `last_offset_delta` is 0. `base_offset` is the offset in the entry's header. For a wrapper from
    a broker, that is the offset of the last message inside; the offset of the first message is
    unknown before decompression. `record_count` is 1 for a message, and -1 (unknown) for a wrapper.
    """

    __slots__ = ()

    def __init__(self, data: bytes | bytearray | memoryview, position: int = 0) -> None:
        """Reads only the header of the message at `position`.

        Raises CorruptBatchError if `data` has no complete message of magic 0 or 1 at `position`.
        """
        data = self._data = as_buffer(data)
        self.position = position
        left = bytes_left(data, position)
        if left < log_format.LOG_OVERHEAD_BYTES + log_format.MIN_MESSAGE_BYTES:
            raise CorruptBatchError(
                f"{left} bytes are too few for a message",
                offset=position,
                base_offset=base_offset_at(data, position),
            )
        (
            self.base_offset,
            length,
            self.crc,
            self.magic,
            self.attributes,
        ) = MESSAGE.unpack_from(data, position)
        self.size_in_bytes = log_format.LOG_OVERHEAD_BYTES + length
        self.partition_leader_epoch = log_format.NO_PARTITION_LEADER_EPOCH
        self.last_offset_delta = 0
        self.base_timestamp = self.max_timestamp = log_format.NO_TIMESTAMP
        self.producer_id = log_format.NO_PRODUCER_ID
        self.producer_epoch = log_format.NO_PRODUCER_EPOCH
        self.base_sequence = log_format.NO_SEQUENCE
        self.record_count = _UNKNOWN_COUNT if self.is_wrapper else 1
        if self.magic not in (0, 1):
            raise self._corrupt(f"magic {self.magic} is not that of a message")
        if length < log_format.MIN_MESSAGE_BYTES + self.magic * MESSAGE_TIMESTAMP_BYTES:
            raise self._corrupt(f"message size {length} is too short for magic {self.magic}")
        if self.size_in_bytes > left:
            raise self._corrupt(
                f"message of {self.size_in_bytes} bytes goes beyond the {left} that are left"
            )
        if self.magic == 1:
            (timestamp,) = MESSAGE_TIMESTAMP.unpack_from(data, position + MESSAGE_BYTES)
            self.base_timestamp = self.max_timestamp = timestamp

    @property
    def is_wrapper(self) -> bool:
        """Returns True if the value of this message is a compressed message set."""
        return bool(self.attributes & log_format.COMPRESSION_CODEC_MASK)

    @property
    def compression(self) -> str:
        """Returns `none`, `gzip`, `snappy` or `lz4`. Raises CorruptBatchError for other codecs."""
        return self._codec().name

    @property
    def timestamp_type(self) -> int:
        """Returns 0 for create time, 1 for log append time, -1 for magic 0 (no timestamps)."""
        if self.magic == 0:
            return log_format.NO_TIMESTAMP_TYPE
        if self.attributes & log_format.LOG_APPEND_TIME_FLAG:
            return log_format.LOG_APPEND_TIME
        return log_format.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Returns False: transactions came with magic 2."""
        return False

    @property
    def is_control(self) -> bool:
        """Returns False: control records came with magic 2."""
        return False

    @property
    def delete_horizon(self) -> int | None:
        """Returns None: delete horizons came with magic 2."""
        return None

    def check(self) -> None:
        """Raises CorruptBatchError for a wrong checksum, or a codec that magic 0 and 1 do not have.

        Checks only this message; `records` checks the messages inside a wrapper.
        """
        end = self.position + self.size_in_bytes
        actual = crc32(self._data[self.position + MESSAGE_CRC_FROM : end])
        if actual != self.crc:
            raise self._corrupt(f"CRC is {actual:#010x}, but the message has {self.crc:#010x}")
        self._codec()

    def records(
        self,
        *,
        from_offset: int | None = None,
        eager_headers: bool = False,
        own_timestamps: bool = False,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
        topic: str = "",
        partition: int = -1,
    ) -> list[Record]:
        """Returns the message, or the messages inside the wrapper, as records without headers.

        The arguments are those of `RecordBatch.records`. Raises CorruptBatchError for a corrupt
        message, and MissingCodecError if the codec is not installed.
        """
        codec = self._codec()
        end = self.position + self.size_in_bytes
        try:
            record = _message(self._data, self.position, end, topic, partition)
            records = [record]
            if codec.id:
                records = _unwrapped(
                    self.magic, codec, record.value, max_decompressed_bytes, topic, partition
                )
                self._adopt(records, own_timestamps)
        except MissingCodecError:
            raise
        except ValueError as error:
            raise self._corrupt(str(error)) from None
        if from_offset is not None:
            records = [record for record in records if record.offset >= from_offset]
        return records

    def values(
        self,
        *,
        from_offset: int | None = None,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    ) -> list[bytes | None]:
        """Returns the values of the records. Raises the errors of `records`."""
        records = self.records(
            from_offset=from_offset, max_decompressed_bytes=max_decompressed_bytes
        )
        return [record.value for record in records]

    def _adopt(self, records: list[Record], own_timestamps: bool) -> None:
        """Sets the absolute offsets of the messages in this wrapper.

        If `own_timestamps` is True, the messages keep their timestamps and timestamp types.
        Otherwise they get the timestamp type of the wrapper, and for log append time also its
        timestamp. Raises ValueError if the offset of the wrapper is less than the offset of the
        last message inside.
        """
        # Inside a wrapper of magic 0 the offsets are absolute. Inside a wrapper of magic 1 they are
        # absolute if the offset of the wrapper is 0 (some librdkafka versions send such wrappers).
        base = 0
        if self.magic == 1 and self.base_offset:
            last = records[-1].offset
            if self.base_offset < last:
                raise ValueError(
                    f"wrapper offset {self.base_offset} lies before {last}, the last message's"
                )
            base = self.base_offset - last
        log_append_time = self.timestamp_type == log_format.LOG_APPEND_TIME
        origin = BatchOrigin(records[0].topic, records[0].partition, self.timestamp_type)
        for record in records:
            record.offset = int64(base + record.offset)
            if own_timestamps:
                continue
            record._origin = origin
            if log_append_time:
                record.timestamp = self.max_timestamp

    def _codec(self) -> Codec:
        try:
            return message_codec(self.attributes & log_format.COMPRESSION_CODEC_MASK)
        except ValueError as error:
            raise self._corrupt(str(error)) from None

    def __repr__(self) -> str:
        return (
            f"LegacyBatch(magic={self.magic}, base_offset={self.base_offset}, "
            f"record_count={self.record_count}, size_in_bytes={self.size_in_bytes}, "
            f"attributes={self.attributes:#x}, max_timestamp={self.max_timestamp})"
        )


def message_codec(codec_id: int) -> Codec:
    """Returns the codec of a wrapper message. Raises ValueError for zstd and for unknown ids."""
    codec = codec_for_id(codec_id)
    if codec.id == _ZSTD:
        raise ValueError("zstd needs magic 2; a message set cannot use it")
    return codec


def _unwrapped(
    magic: int, codec: Codec, value: bytes | None, limit: int, topic: str, partition: int
) -> list[Record]:
    """Returns the messages in the value of a wrapper, with their offsets as stored.

    Raises ValueError if the value or a message in it is corrupt.
    """
    if value is None:
        raise ValueError("the compressed value is null")
    if magic == 0 and codec.id == _LZ4:
        value = with_right_checksum(value)
    data = codec.decompress(value, limit)
    size = len(data)
    records: list[Record] = []
    pos = 0
    while pos < size:
        try:
            end = _end_of_message(data, pos, magic)
            records.append(_message(data, pos, end, topic, partition))
        except ValueError as error:
            raise ValueError(f"message {len(records)} of the wrapper: {error}") from None
        pos = end
    if not records:
        raise ValueError("the wrapper holds no messages")
    return records


def _end_of_message(data: bytes, pos: int, wrapper_magic: int) -> int:
    """Returns the end position of the message at `pos`, which is inside a wrapper.

    Raises ValueError if its size, magic, codec or checksum is wrong.
    """
    left = len(data) - pos
    if left < log_format.LOG_OVERHEAD_BYTES + log_format.MIN_MESSAGE_BYTES:
        raise ValueError(f"{left} bytes are too few for it")
    _, size, crc, magic, attributes = MESSAGE.unpack_from(data, pos)
    end: int = pos + log_format.LOG_OVERHEAD_BYTES + size
    if magic != wrapper_magic:
        raise ValueError(f"magic {magic} is not {wrapper_magic}, the wrapper's")
    if size < log_format.MIN_MESSAGE_BYTES + magic * MESSAGE_TIMESTAMP_BYTES:
        raise ValueError(f"size {size} is too short for magic {magic}")
    if end > len(data):
        raise ValueError(f"size {size}, but {left - log_format.LOG_OVERHEAD_BYTES} bytes are left")
    if attributes & log_format.COMPRESSION_CODEC_MASK:
        raise ValueError("it is compressed again")
    actual = crc32(data[pos + MESSAGE_CRC_FROM : end])
    if actual != crc:
        raise ValueError(f"CRC is {actual:#010x}, but the message has {crc:#010x}")
    return end


def _message(data: bytes, pos: int, end: int, topic: str, partition: int) -> Record:
    """Returns the message in `data[pos:end]` as a record. The caller must have checked its header.

    Raises ValueError if a length is wrong, or if key and value do not fill the message.
    """
    offset, _, _, magic, attributes = MESSAGE.unpack_from(data, pos)
    pos += MESSAGE_BYTES
    record = Record.__new__(Record)
    record.offset = offset
    record.timestamp = log_format.NO_TIMESTAMP
    timestamp_type = log_format.NO_TIMESTAMP_TYPE
    if magic == 1:
        (record.timestamp,) = MESSAGE_TIMESTAMP.unpack_from(data, pos)
        timestamp_type = (
            log_format.LOG_APPEND_TIME
            if attributes & log_format.LOG_APPEND_TIME_FLAG
            else log_format.CREATE_TIME
        )
        pos += MESSAGE_TIMESTAMP_BYTES
    record.key, pos = _field(data, pos, end, "key")
    record.value, pos = _field(data, pos, end, "value")
    if pos != end:
        raise ValueError(f"{end - pos} bytes after the value")
    record._headers = NO_HEADERS
    record._origin = BatchOrigin(topic, partition, timestamp_type)
    return record


def _field(data: bytes, pos: int, end: int, name: str) -> tuple[bytes | None, int]:
    """Returns the key or value at `pos`, and the position after it.

    Raises ValueError for a wrong length. `name` is `key` or `value`, for the error.
    """
    start = pos + MESSAGE_FIELD_LENGTH_BYTES
    if start > end:
        raise ValueError(f"{name}: no bytes are left for its length")
    (length,) = MESSAGE_FIELD_LENGTH.unpack_from(data, pos)
    if length < 0:  # any negative length means null, as in Kafka's LegacyRecord
        return None, start
    if start + length > end:
        raise ValueError(
            f"{name}: length {length} goes {start + length - end} bytes past the message"
        )
    return data[start : start + length], start + length
