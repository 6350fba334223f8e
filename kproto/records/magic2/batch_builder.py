"""Builds record batches (magic 2) from keys, values and headers.

`BatchBuilder` adds records one by one or several at once; `encode_batch` builds a whole batch.
For speed, `record_encoding` does not check the records. If that module raises one of
`new_record.ENCODE_FAILURES`, `new_record.check_new_record` finds the field at fault.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from ...wire.compiled import __compiled__
from ...wire.errors import ConfigurationError, EncodeError
from .. import log_format
from ..codecs.compression import codec_for_name, level_for
from ..new_record import (
    ENCODE_FAILURES,
    MAX_BATCH_BYTES,
    MAX_INT32,
    check_max_bytes,
    check_new_record,
)
from ..varints import VARINTS, encode_varint
from . import batch_header
from .record_batch import check_batch
from .record_encoding import NO_TIMESTAMP_YET, append_exact, encode_head, encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import SupportsIndex

    from ...wire.buffers import BytesLike
    from ..codecs.compression import Codec
    from ..header_block import Header
    from ..new_record import NewRecord
    from .record_batch import RecordBatch

__all__ = ["BatchBuilder", "encode_batch", "encode_batches"]

_TABLE_SIZE: Final = len(VARINTS)

#: The settings that callers may change until `build`, and the settings that may be None.
_SETTINGS: Final = (
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "log_append_time",
    "max_timestamp",
    "last_offset_delta",
)
_OPTIONAL: Final = frozenset({"log_append_time", "max_timestamp", "last_offset_delta"})

_NO_RECORD: Final = object()


def encode_batch(
    records: Iterable[NewRecord],
    *,
    compression: str = "none",
    compression_level: int | None = None,
    producer_id: int = log_format.NO_PRODUCER_ID,
    producer_epoch: int = log_format.NO_PRODUCER_EPOCH,
    base_sequence: int = log_format.NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time: int | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = log_format.NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Returns a batch of all `records`, each (key, value, headers, timestamp in ms).

    The batch may have up to 2 GiB. Use `BatchBuilder` for gaps between offsets, and other features
    of a compacted batch.

    Raises EncodeError, which names the record and the field, for a wrong record. Also raises
    EncodeError if there is no record, if the batch would exceed 2 GiB, or if `base_offset` or
    `partition_leader_epoch` is out of range. Raises ConfigurationError for an unknown compression
    or level, and for any other setting out of range. Raises MissingCodecError if the codec is not
    installed.
    """
    builder = BatchBuilder(
        compression=compression,
        compression_level=compression_level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        log_append_time=log_append_time,
        max_bytes=MAX_INT32,
    )
    if builder.extend(records) is not None:
        raise EncodeError("the records come to more than 2 GiB, the largest batch there can be")
    return builder.build(base_offset=base_offset, partition_leader_epoch=partition_leader_epoch)


def encode_batches(
    records: Iterable[NewRecord],
    *,
    max_bytes: int = MAX_BATCH_BYTES,
    compression: str = "none",
    compression_level: int | None = None,
    producer_id: int = log_format.NO_PRODUCER_ID,
    producer_epoch: int = log_format.NO_PRODUCER_EPOCH,
    base_sequence: int = log_format.NO_SEQUENCE,
    is_transactional: bool = False,
) -> Iterator[tuple[bytes, int]]:
    """Yields batches of at most `max_bytes` before compression, each with its number of records.

    With `base_sequence` each batch continues the sequence of the batch before it; after
    2,147,483,647 the sequence continues at 0. Yields nothing if there is no record. Raises
    EncodeError for a record that does not fit into a batch of `max_bytes`, after it has yielded the
    batches before that record. Raises the other errors of `encode_batch` too.
    """
    builder = BatchBuilder(
        compression=compression,
        compression_level=compression_level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        max_bytes=max_bytes,
    )
    done = 0
    rest = iter(records)
    refused: NewRecord | None = None
    while True:
        if refused is not None and builder.extend((refused,), first_index=done) is not None:
            raise EncodeError(
                f"does not fit into a batch of {max_bytes} bytes; raise max_bytes or cut it",
                field=f"records[{done}]",
            )
        refused = builder.extend(rest, first_index=done + len(builder))
        count = len(builder)
        if count:
            yield builder.build(), count
            done += count
            if builder.base_sequence != log_format.NO_SEQUENCE:
                builder.base_sequence = (builder.base_sequence + count) & MAX_INT32
            builder.clear()
        if refused is None:
            return


class BatchBuilder:
    """Builds a record batch record by record, up to `max_bytes` before compression.

    `len(builder)` is the number of records, `size_in_bytes` is the exact size of the uncompressed
    batch. `producer_id`, `producer_epoch`, `base_sequence`, `log_append_time`, `max_timestamp` and
    `last_offset_delta` may be set until `build`.

    With `log_append_time` (ms) that time is the max timestamp in the header, and the timestamp type
    is log append time; the records keep their own timestamps. Without `log_append_time` the max
    timestamp is `max_timestamp`, by default the largest timestamp of the records.

    A compacted batch has gaps between its offsets (`offset_delta` of `append`). The last offset of
    a compacted batch may be greater than the offset of its last record (`last_offset_delta`), and
    the batch may have no record.

    The base timestamp is `base_timestamp`, by default the timestamp of the first record. A
    `delete_horizon` (ms, KIP-534) replaces the base timestamp.

    Raises ConfigurationError for a setting out of range. If a setting was changed later, `build`
    raises EncodeError instead.
    """

    __slots__ = (
        "_base_timestamp",
        "_codec",
        "_count",
        "_fixed_base",
        "_has_horizon",
        "_head",
        "_level",
        "_max_timestamp",
        "_next_delta",
        "_parts",
        "_timestamp",
        "base_sequence",
        "is_control",
        "is_transactional",
        "last_offset_delta",
        "log_append_time",
        "max_bytes",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "size_in_bytes",
    )

    _base_timestamp: int
    _codec: Codec
    _count: int
    #: The base timestamp that the caller set; None if it is the timestamp of the first record.
    _fixed_base: int | None
    _has_horizon: bool
    _head: bytes
    _level: int
    _max_timestamp: int
    #: The offset delta of the next record.
    _next_delta: int
    _parts: list[bytes]
    _timestamp: Any  # an int, or NaN before the first record
    base_sequence: int
    is_control: bool
    is_transactional: bool
    last_offset_delta: int | None
    log_append_time: int | None
    max_bytes: int
    max_timestamp: int | None
    producer_epoch: int
    producer_id: int
    size_in_bytes: int

    def __init__(
        self,
        *,
        compression: str = "none",
        compression_level: int | None = None,
        producer_id: int = log_format.NO_PRODUCER_ID,
        producer_epoch: int = log_format.NO_PRODUCER_EPOCH,
        base_sequence: int = log_format.NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        log_append_time: int | None = None,
        base_timestamp: int | None = None,
        max_timestamp: int | None = None,
        delete_horizon: int | None = None,
        last_offset_delta: int | None = None,
        max_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        self._codec = codec_for_name(compression)
        self._level = level_for(self._codec, compression_level)
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self.is_control = is_control
        check_max_bytes(max_bytes, batch_header.HEADER_BYTES)
        self.max_bytes = max_bytes
        self.log_append_time = log_append_time
        self.max_timestamp = max_timestamp
        self.last_offset_delta = last_offset_delta
        self._has_horizon = delete_horizon is not None
        if delete_horizon is not None:
            if base_timestamp is not None:
                raise ConfigurationError(
                    "delete_horizon and base_timestamp use the same header field: set only one"
                )
            batch_header.check_field("delete_horizon", delete_horizon)
            base_timestamp = delete_horizon
        if base_timestamp is not None:
            batch_header.check_field("base_timestamp", base_timestamp)
        self._fixed_base = base_timestamp
        self._check_settings()
        self.clear()

    @classmethod
    def like(
        cls,
        batch: RecordBatch,
        *,
        compression_level: int | None = None,
        max_bytes: int = MAX_INT32,
    ) -> BatchBuilder:
        """Returns an empty builder with the header settings of `batch`.

        To rebuild the batch byte for byte, append the records of
        `batch.records(own_timestamps=True)` with their offset deltas; a compressed batch also needs
        the same compressor and level. To compact the batch, leave records out, and set
        `max_timestamp` to None to recompute it, as Kafka does. Base offset and leader epoch are
        arguments of `build`.

        Raises EncodeError for an argument that is not a batch of magic 2, and CorruptBatchError for
        an unknown codec. Raises ConfigurationError for a header field that Kafka never writes, such
        as a log append time below -1.
        """
        check_batch(batch)
        if batch.magic != 2:
            raise EncodeError(f"a message of magic {batch.magic} is no record batch")
        stamped = batch.timestamp_type == log_format.LOG_APPEND_TIME
        horizon = batch.delete_horizon
        return cls(
            compression=batch.compression,
            compression_level=compression_level,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            log_append_time=batch.max_timestamp if stamped else None,
            base_timestamp=batch.base_timestamp if horizon is None else None,
            max_timestamp=None if stamped else batch.max_timestamp,
            delete_horizon=horizon,
            last_offset_delta=batch.last_offset_delta,
            max_bytes=max_bytes,
        )

    def _check_settings(self) -> None:
        if self.max_timestamp is self.log_append_time is self.last_offset_delta is None and (
            self.producer_id == self.producer_epoch == self.base_sequence == -1
        ):
            return  # the defaults are always valid
        for name in _SETTINGS:
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                batch_header.check_field(name, value)

    def clear(self) -> None:
        """Removes all records; the settings stay."""
        self._parts = []
        self._count = 0
        self._next_delta = 0
        base = self._fixed_base
        self._base_timestamp = log_format.NO_TIMESTAMP if base is None else base
        self._max_timestamp = log_format.NO_TIMESTAMP
        self._timestamp = NO_TIMESTAMP_YET
        self._head = b""
        self.size_in_bytes = batch_header.HEADER_BYTES

    def __len__(self) -> int:
        return self._count

    def append(
        self,
        key: BytesLike | None,
        value: BytesLike | None,
        headers: Sequence[Header] = (),
        *,
        timestamp: SupportsIndex,
        offset_delta: int | None = None,
    ) -> bool:
        """Adds a record with `timestamp` in ms; returns False if it does not fit.

        A record does not fit if the batch would exceed `max_bytes`, or if no offset delta is left
        after 2,147,483,647. The record gets `offset_delta`, by default the next offset delta.
        Raises EncodeError for an argument of a wrong type or out of range, and for an explicit
        `offset_delta` that is less than the next offset delta or greater than 2,147,483,647.
        """
        if offset_delta is not None:
            return self._append_at(offset_delta, (key, value, headers, timestamp))
        # `timestamp` is declared `SupportsIndex`: with `int`, mypyc would compile a check that
        # raises TypeError for other types, before `extend` can raise EncodeError.
        record: Any = (key, value, headers, timestamp)
        return self.extend((record,), first_index=0) is None

    def _append_at(self, offset_delta: int, record: Any) -> bool:
        expected = self._next_delta
        given: object = offset_delta
        if not isinstance(given, int):
            raise EncodeError(f"{given!r} is not a whole number", field="offset_delta")
        if not expected <= offset_delta <= MAX_INT32:
            if expected > MAX_INT32:
                raise EncodeError(
                    f"no offset delta is left after {MAX_INT32}", field="offset_delta"
                )
            raise EncodeError(
                f"{offset_delta} is not one of {expected}, the next, to {MAX_INT32}",
                field="offset_delta",
            )
        self._next_delta = offset_delta
        try:
            return self.extend((record,), first_index=self._count) is None
        finally:
            if self._next_delta == offset_delta:  # nothing was added
                self._next_delta = expected

    def extend(self, records: Iterable[NewRecord], *, first_index: int = 0) -> NewRecord | None:
        """Adds records in order; returns the first that does not fit, None if all fit.

        A record does not fit if the batch would exceed `max_bytes`, or if no offset delta is left.
        Does not consume an iterator beyond the returned record. Raises EncodeError for a field of a
        wrong type or out of range. The error names the record by its index in `records` plus
        `first_index`; the records before it have been added.
        """
        parts = self._parts
        room = self.max_bytes - self.size_in_bytes
        start = index = self._next_delta
        head = self._head
        has_base = bool(self._count) or self._fixed_base is not None
        base_timestamp = self._base_timestamp
        last_timestamp = self._timestamp
        max_timestamp = self._max_timestamp
        is_latest = last_timestamp > max_timestamp  # if the record with it did not fit before
        given: Iterable[Any] = records  # typed Any, because the records are checked below
        record: Any = _NO_RECORD
        try:
            for record in given:
                if __compiled__:
                    key, value, headers, timestamp = _fields(record)
                else:
                    key, value, headers, timestamp = record
                if timestamp != last_timestamp or type(timestamp) is not int:
                    if not has_base:
                        base_timestamp = timestamp
                        has_base = True
                    delta = timestamp - base_timestamp
                    if 0 < delta < _TABLE_SIZE:
                        head = b"\x00" + VARINTS[delta]
                    else:
                        head = encode_head(timestamp, delta)
                    last_timestamp = timestamp
                    is_latest = timestamp > max_timestamp
                if index < _TABLE_SIZE:
                    offset_delta = VARINTS[index]
                elif index <= MAX_INT32:
                    offset_delta = encode_varint(index)
                else:  # no offset is left
                    beyond: NewRecord = record
                    return beyond
                size = -1
                if __compiled__:
                    size = append_exact(parts, room, head, offset_delta, key, value, headers)
                if size < 0:
                    body = encode_record(head, offset_delta, key, value, headers)
                    size = len(body)
                    length = VARINTS[size] if size < _TABLE_SIZE else encode_varint(size)
                    size += len(length)
                    if size > room:
                        size = 0
                    else:
                        parts.append(length)
                        parts.append(body)
                if not size:
                    refused: NewRecord = record
                    return refused
                room -= size
                index += 1
                if is_latest:
                    max_timestamp = timestamp
                    is_latest = False
        except ENCODE_FAILURES:
            if record is not _NO_RECORD:
                check_new_record(first_index + index - start, record)
            raise
        finally:
            self._count += index - start
            self._next_delta = index
            self._head = head
            self._base_timestamp = base_timestamp
            self._timestamp = last_timestamp
            self._max_timestamp = max_timestamp
            self.size_in_bytes = self.max_bytes - room
        return None

    def build(
        self,
        *,
        base_offset: int = 0,
        partition_leader_epoch: int = log_format.NO_PARTITION_LEADER_EPOCH,
    ) -> bytes:
        """Returns the batch as bytes with its checksum; the builder keeps its records.

        Raises EncodeError if there is neither a record nor a `last_offset_delta`, if the last
        record is beyond `last_offset_delta`, or if a header field is out of range. Raises
        MissingCodecError if the codec is not installed.
        """
        last_offset_delta = self._next_delta - 1
        try:
            self._check_settings()
            if self.last_offset_delta is not None:
                if self.last_offset_delta < last_offset_delta:
                    raise EncodeError(
                        f"the last record is {last_offset_delta} from the base offset, beyond the "
                        f"last_offset_delta of {self.last_offset_delta}"
                    )
                last_offset_delta = self.last_offset_delta
            elif not self._count:
                raise EncodeError("a batch needs at least one record, or a last_offset_delta")
            batch_header.check_offsets(base_offset, last_offset_delta, partition_leader_epoch)
        except ConfigurationError as error:
            raise EncodeError(f"a field of the batch header is out of its range: {error}") from None
        # A batch without records is only a header, even if it names a codec.
        payload = self._codec.compress(b"".join(self._parts), self._level) if self._count else b""
        attributes = self._codec.id
        max_timestamp = self._max_timestamp if self.max_timestamp is None else self.max_timestamp
        if self.is_transactional:
            attributes |= batch_header.TRANSACTIONAL_FLAG
        if self.is_control:
            attributes |= batch_header.CONTROL_FLAG
        if self._has_horizon:
            attributes |= batch_header.DELETE_HORIZON_FLAG
        if self.log_append_time is not None:
            attributes |= log_format.LOG_APPEND_TIME_FLAG
            max_timestamp = self.log_append_time
        try:
            return batch_header.pack_batch(
                payload,
                attributes,
                last_offset_delta,
                self._base_timestamp,
                max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self._count,
                base_offset,
                partition_leader_epoch,
            )
        except struct.error as error:
            raise EncodeError(f"a field of the batch header is out of its range: {error}") from None


def _fields(record: Any) -> tuple[Any, Any, Any, Any]:
    """Returns the fields of a record; compiled code unpacks a declared tuple in less time."""
    if isinstance(record, tuple) and len(record) == 4:
        exact: tuple[Any, Any, Any, Any] = record
        return exact
    key, value, headers, timestamp = record
    return key, value, headers, timestamp
