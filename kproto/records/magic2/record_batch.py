"""Checks and reads encoded record batches (magic 2), and changes their offsets (`restamp`).

`memory_records` finds the batches in the bytes of a fetch. `record_decoding` reads the records
inside a batch, and `codecs` decompresses them. Source: KIP-98, KIP-534.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from ...wire.errors import ConfigurationError, CorruptBatchError, EncodeError, MissingCodecError
from .. import log_format
from ..codecs.bounded import trusted_bytes
from ..codecs.compression import MAX_DECOMPRESSED_BYTES, codec_for_id
from ..header_block import decode_headers_of
from ..log_format import as_buffer, base_offset_at, bytes_left
from . import batch_header
from .crc import crc32c
from .record_decoding import RecordReader, check_records
from .value_decoding import decode_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..record import Record

__all__ = ["BatchReader", "RecordBatch", "check_batch", "restamp"]

#: If the records have at least this many bytes on average, and compression shrank them far more
#: than usual, all records are checked before their bytes are copied into `Record` objects. The
#: check limits the memory for hostile data. For smaller records, the objects need more memory than
#: the bytes.
_LARGE_RECORD_BYTES: Final = 1024


class RecordBatch:
    """A view of an encoded batch in a buffer.

    The view does not copy a buffer of type `bytes`; it copies a bytearray or memoryview once. The
    header fields have Kafka's names. `position` is the start of the batch in the buffer,
    `size_in_bytes` is its length with the header. Timestamps are ms since the epoch, -1 for none.
    Two batches are equal if their bytes are equal, at any position. A copy, also a pickled one, has
    only the bytes of the batch, not the whole buffer; its `position` is 0.
    """

    __slots__ = (
        "_data",
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_in_bytes",
    )

    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size_in_bytes: int
    position: int
    _data: bytes

    def __init__(self, data: bytes | bytearray | memoryview, position: int = 0) -> None:
        """Reads only the header of the batch at `position`.

        Raises CorruptBatchError if `data` has no complete batch of magic 2 at `position`.
        """
        data = self._data = as_buffer(data)
        self.position = position
        remaining = bytes_left(data, position)
        if remaining < batch_header.HEADER_BYTES:
            raise CorruptBatchError(
                f"{remaining} bytes are too few for a batch header of {batch_header.HEADER_BYTES}",
                offset=position,
                base_offset=base_offset_at(data, position),
            )
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = batch_header.HEADER.unpack_from(data, position)
        self.size_in_bytes = log_format.LOG_OVERHEAD_BYTES + length
        if self.magic != 2:
            raise self._corrupt(f"unknown magic {self.magic}")
        if self.size_in_bytes < batch_header.HEADER_BYTES:
            raise self._corrupt(f"batch length {length} is shorter than the header")
        if self.size_in_bytes > remaining:
            raise self._corrupt(
                f"batch of {self.size_in_bytes} bytes goes beyond the {remaining} that are left"
            )

    @property
    def last_offset(self) -> int:
        """Returns the last offset of the batch, even if compaction removed its record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Returns the offset after this batch, even if compaction removed its last records."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> str:
        """Returns the name of the codec, such as `none`. Raises CorruptBatchError if unknown."""
        try:
            return codec_for_id(self.attributes & log_format.COMPRESSION_CODEC_MASK).name
        except ValueError as error:
            raise self._corrupt(str(error)) from None

    @property
    def timestamp_type(self) -> int:
        """Returns 0 for create time, 1 for log append time."""
        if self.attributes & log_format.LOG_APPEND_TIME_FLAG:
            return log_format.LOG_APPEND_TIME
        return log_format.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Returns True if the batch belongs to a transaction."""
        return bool(self.attributes & batch_header.TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Returns True if this is a control batch, such as a commit or abort marker."""
        return bool(self.attributes & batch_header.CONTROL_FLAG)

    @property
    def delete_horizon(self) -> int | None:
        """Returns the time (ms) from which tombstones and markers may be removed; None if not set.

        See KIP-534.
        """
        if self.attributes & batch_header.DELETE_HORIZON_FLAG:
            return self.base_timestamp
        return None

    @property
    def raw(self) -> bytes:
        """Returns the bytes of the whole batch, to forward them unchanged."""
        return self._data[self.position : self.position + self.size_in_bytes]

    def check(self) -> None:
        """Raises CorruptBatchError for a wrong checksum or header field.

        Verifies that the codec is known, and that record count and last offset delta are not
        negative. The records are not read.
        """
        crc_from = self.position + batch_header.CRC_FROM
        actual = crc32c(self._data[crc_from : self.position + self.size_in_bytes])
        if actual != self.crc:
            raise self._corrupt(f"CRC is {actual:#010x}, but the header has {self.crc:#010x}")
        if self.record_count < 0:
            raise self._corrupt(f"negative record count {self.record_count}")
        if self.last_offset_delta < 0:
            raise self._corrupt(f"negative last offset delta {self.last_offset_delta}")
        _ = self.compression

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
        """Returns the records; with `from_offset`, only the records from that offset on.

        Each record carries `topic` and `partition`. If the batch has a log append time, each record
        has this timestamp; with `own_timestamps`, each record has the timestamp of its producer
        instead.

        Headers are decoded, and their faults are raised, at the first access to `Record.headers`,
        or in this method with `eager_headers`. Raises CorruptBatchError if a record or the
        compression is corrupt, if an offset is not above the previous one, or if an offset is
        outside of the batch. Raises MissingCodecError if the codec is not installed. Does not
        verify the checksum; `check` verifies it.
        """
        reader = self._record_reader(own_timestamps, max_decompressed_bytes, topic, partition)
        try:
            records = reader.read(self.record_count, eager_headers=eager_headers)
        except ValueError as error:
            raise self._corrupt(str(error)) from None
        if eager_headers:
            try:
                decode_headers_of(records)
            except ValueError as error:
                raise self._corrupt(str(error)) from None
        if from_offset is not None and (from_offset > self.base_offset or reader.any_offset):
            return [record for record in records if record.offset >= from_offset]
        return records

    def reader(
        self,
        *,
        from_offset: int | None = None,
        own_timestamps: bool = False,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
        topic: str = "",
        partition: int = -1,
    ) -> BatchReader:
        """Returns a reader that decodes some records at a time; the arguments are as in `records`.

        Decompresses the whole batch first. Raises the errors of `records`, except that the error of
        a corrupt record is raised when the reader reads the record. A `LegacyBatch` (magic 0 or 1)
        does not support this method.
        """
        reader = self._record_reader(own_timestamps, max_decompressed_bytes, topic, partition)
        return BatchReader(self, reader, from_offset)

    def values(
        self,
        *,
        from_offset: int | None = None,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    ) -> list[bytes | None]:
        """Returns the values of the records.

        Takes two thirds of the time of `records` if no record is left out. The arguments are as in
        `records`. Checks the other fields of the records as `records` does. Raises the same
        errors as `records`.
        """
        inside = from_offset is not None and from_offset > self.base_offset
        if not inside and not self.base_offset >> 61:
            try:
                data, start, limit = self._opened(max_decompressed_bytes)
                return decode_values(data, start, limit, self.record_count, self.last_offset_delta)
            except MissingCodecError:
                raise
            except ValueError as error:
                raise self._corrupt(str(error)) from None
        # Decodes whole records, because their offsets decide which to return.
        records = self.records(
            from_offset=from_offset, max_decompressed_bytes=max_decompressed_bytes
        )
        return [record.value for record in records]

    def _record_reader(
        self, own_timestamps: bool, max_decompressed_bytes: int, topic: str, partition: int
    ) -> RecordReader:
        log_append_time = self.attributes & log_format.LOG_APPEND_TIME_FLAG and not own_timestamps
        try:
            data, start, limit = self._opened(max_decompressed_bytes)
            return RecordReader(
                data,
                start,
                limit,
                self.record_count,
                self.base_offset,
                self.base_timestamp,
                self.last_offset_delta,
                self.max_timestamp if log_append_time else None,
                topic,
                partition,
                self.position,
            )
        except MissingCodecError:
            raise
        except ValueError as error:
            raise self._corrupt(str(error)) from None

    def _opened(self, max_decompressed_bytes: int) -> tuple[bytes, int, int]:
        """Returns a buffer with the decompressed records, and the positions of their start and end.

        Raises ValueError if the records cannot be decompressed, or if `check_records` finds a
        corrupt record.
        """
        data = self._data
        start = self.position + batch_header.HEADER_BYTES
        limit = self.position + self.size_in_bytes
        codec = codec_for_id(self.attributes & log_format.COMPRESSION_CODEC_MASK)
        if codec.id and (self.record_count or start != limit):
            trusted = trusted_bytes(limit - start)
            data = codec.decompress(data[start:limit], max_decompressed_bytes)
            start, limit = 0, len(data)
            if limit > trusted and 0 < self.record_count * _LARGE_RECORD_BYTES <= limit:
                check_records(data, start, limit, self.record_count, self.last_offset_delta)
        return data, start, limit

    def _corrupt(self, reason: str) -> CorruptBatchError:
        return CorruptBatchError(reason, offset=self.position, base_offset=self.base_offset)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordBatch):
            return NotImplemented
        return self is other or self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.base_offset, self.size_in_bytes, self.crc))

    def __reduce__(self) -> tuple[Callable[[bytes], RecordBatch], tuple[bytes]]:
        return type(self), (self.raw,)

    def __repr__(self) -> str:
        return (
            f"RecordBatch(base_offset={self.base_offset}, last_offset={self.last_offset}, "
            f"record_count={self.record_count}, size_in_bytes={self.size_in_bytes}, "
            f"attributes={self.attributes:#x}, producer_id={self.producer_id}, "
            f"producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence}, "
            f"partition_leader_epoch={self.partition_leader_epoch})"
        )


class BatchReader:
    """Decodes the records of a batch, some at a time; `RecordBatch.reader` creates it."""

    __slots__ = ("_batch", "_from_offset", "_reader")

    def __init__(self, batch: RecordBatch, reader: RecordReader, from_offset: int | None) -> None:
        self._batch = batch
        self._reader = reader
        self._from_offset = from_offset

    @property
    def remaining(self) -> int:
        """Returns how many records of the batch have not been read yet."""
        return self._reader.remaining

    @property
    def decompressed_bytes(self) -> int:
        """Returns the size of the decompressed records in bytes; 0 for an uncompressed batch."""
        is_compressed = self._batch.attributes & log_format.COMPRESSION_CODEC_MASK
        return self._reader.size_in_bytes if is_compressed else 0

    def read(self, most: int) -> list[Record]:
        """Reads the next `most` records, or all that are left, and returns them.

        Leaves out the records before `from_offset`. Raises CorruptBatchError for a corrupt record;
        the reader cannot continue after this error.
        """
        try:
            records = self._reader.read(most)
        except ValueError as error:
            raise self._batch._corrupt(str(error)) from None
        from_offset = self._from_offset
        if from_offset is not None and (
            from_offset > self._batch.base_offset or self._reader.any_offset
        ):
            return [record for record in records if record.offset >= from_offset]
        return records


def restamp(
    batch: RecordBatch,
    *,
    base_offset: int,
    partition_leader_epoch: int | None = None,
    log_append_time: int | None = None,
) -> bytes:
    """Returns the bytes of the batch with a new base offset, as a broker stores a produced batch.

    Also sets `partition_leader_epoch` and `log_append_time` (ms) if they are not None. Does not
    decompress the records. A new `log_append_time` needs a new checksum; the base offset and the
    leader epoch are not covered by the checksum. A new checksum would hide that the old checksum
    was wrong, so call `check` before this function.

    Raises EncodeError for a message of magic 0 or 1, for an argument that is not a batch, and for a
    number that is out of range.
    """
    check_batch(batch)
    if batch.magic != 2:
        raise EncodeError(
            f"a message of magic {batch.magic} cannot be stamped; write its records to a batch"
        )
    if partition_leader_epoch is None:
        partition_leader_epoch = batch.partition_leader_epoch
    try:
        batch_header.check_offsets(base_offset, batch.last_offset_delta, partition_leader_epoch)
        if log_append_time is not None:
            batch_header.check_field("log_append_time", log_append_time)
    except ConfigurationError as error:
        raise EncodeError(f"a stamp is out of its range: {error}") from None
    stored = bytearray(batch.raw)
    length = batch.size_in_bytes - log_format.LOG_OVERHEAD_BYTES
    try:
        batch_header.HEADER_TO_LEADER_EPOCH.pack_into(
            stored, 0, base_offset, length, partition_leader_epoch
        )
        if log_append_time is not None:
            batch_header.MAX_TIMESTAMP.pack_into(
                stored, batch_header.MAX_TIMESTAMP_OFFSET, log_append_time
            )
    except struct.error as error:
        raise EncodeError(f"a stamp is out of its range: {error}") from None
    if log_append_time is not None:
        attributes = batch.attributes | log_format.LOG_APPEND_TIME_FLAG
        batch_header.ATTRIBUTES.pack_into(stored, batch_header.ATTRIBUTES_OFFSET, attributes)
        crc = crc32c(bytes(memoryview(stored)[batch_header.CRC_FROM :]))
        batch_header.CRC.pack_into(stored, batch_header.CRC_OFFSET, crc)
    return bytes(stored)


def check_batch(batch: object) -> None:
    """Raises EncodeError if `batch` is no RecordBatch, for example if it is encoded bytes."""
    if not isinstance(batch, RecordBatch):
        raise EncodeError(
            f"a RecordBatch is wanted, as read_batches yields, not {type(batch).__name__}"
        )
