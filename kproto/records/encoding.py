"""Building record batches (magic 2): keys, values and headers to the bytes of a produce.

Owns the writing of records and of the header in front of them. One function writes a record,
whether records come one by one (`BatchBuilder`) or many at once (`encode_batch`). It writes
straight on; when Python refuses a value, `explain_refusal` finds out which record and which field
of it was wrong.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..wire.errors import ConfigurationError, EncodeError
from . import layout
from .compression import codec_for_name, level_for
from .crc import crc32c
from .varints import VARINTS, encode_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import SupportsIndex

    from .compression import Codec
    from .record import Header

__all__ = ["MAX_BATCH_BYTES", "BatchBuilder", "NewRecord", "encode_batch", "encode_batches"]

NewRecord: TypeAlias = "tuple[bytes | None, bytes | None, Sequence[Header], int]"
"""What is asked of a record to be written: key, value, headers, timestamp in ms."""

BytesLike: TypeAlias = "bytes | bytearray | memoryview"

#: Largest batch that a builder makes, unless the caller sets another bound: Kafka's default
#: for max.request.size, which a broker's default message.max.bytes (1,048,588) still takes.
MAX_BATCH_BYTES: Final = 1_048_576

MAX_INT32: Final = 0x7FFFFFFF
MAX_INT64: Final = 0x7FFFFFFFFFFFFFFF
_TABLE_SIZE: Final = len(VARINTS)
_NULL: Final = encode_varint(-1)
_NO_HEADERS: Final = b"\x00"

# Header names of one topic are few. Kept for each: what stands before a value of 0, 1, 2 … bytes,
# that is the name's length, the name, the value's length.
_MAX_HEADER_NAMES: Final = 256
_MAX_PREFIX_SIZE: Final = 128
_header_prefixes: Final[dict[str, list[bytes]]] = {}

_NO_RECORD: Final = object()
_NO_TIMESTAMP_YET: Final = float("nan")  # unequal to whatever a caller may give

# What Python raises when a value has the wrong type, or is too large for its field.
REFUSALS: Final = (TypeError, ValueError, AttributeError, OverflowError, struct.error)


def encode_batch(
    records: Iterable[NewRecord],
    *,
    compression: str = "none",
    compression_level: int | None = None,
    producer_id: int = layout.NO_PRODUCER_ID,
    producer_epoch: int = layout.NO_PRODUCER_EPOCH,
    base_sequence: int = layout.NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    base_offset: int = 0,
    partition_leader_epoch: int = layout.NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """One batch of all `records`, each (key, value, headers, timestamp in ms), however large.

    Raises EncodeError that names the record and the field, ConfigurationError for a compression
    or level that does not exist, MissingCodecError when the codec is not installed.
    """
    builder = BatchBuilder(
        compression=compression,
        compression_level=compression_level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
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
    producer_id: int = layout.NO_PRODUCER_ID,
    producer_epoch: int = layout.NO_PRODUCER_EPOCH,
    base_sequence: int = layout.NO_SEQUENCE,
    is_transactional: bool = False,
) -> Iterator[tuple[bytes, int]]:
    """`encode_batch`, split so that no batch is larger than `max_bytes` before compression.

    Yields (batch, number of records in it). With `base_sequence` each batch goes on counting where
    the one before it ended, from 0 again behind 2,147,483,647. A record that alone is too large
    raises EncodeError, after the batches before it.
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
            if builder.base_sequence != layout.NO_SEQUENCE:
                builder.base_sequence = (builder.base_sequence + count) & MAX_INT32
            builder.clear()
        if refused is None:
            return


class BatchBuilder:
    """A batch that grows record by record, up to `max_bytes` before compression.

    `len(builder)` is the number of records, `size_in_bytes` the exact size that `build` would
    give uncompressed. `producer_id`, `producer_epoch` and `base_sequence` may be set until then.
    """

    __slots__ = (
        "_base_timestamp",
        "_codec",
        "_count",
        "_head",
        "_level",
        "_max_timestamp",
        "_parts",
        "_timestamp",
        "base_sequence",
        "is_control",
        "is_transactional",
        "max_bytes",
        "producer_epoch",
        "producer_id",
        "size_in_bytes",
    )

    _base_timestamp: int
    _codec: Codec
    _count: int
    _head: bytes
    _level: int
    _max_timestamp: int
    _parts: list[bytes]
    _timestamp: float
    base_sequence: int
    is_control: bool
    is_transactional: bool
    max_bytes: int
    producer_epoch: int
    producer_id: int
    size_in_bytes: int

    def __init__(
        self,
        *,
        compression: str = "none",
        compression_level: int | None = None,
        producer_id: int = layout.NO_PRODUCER_ID,
        producer_epoch: int = layout.NO_PRODUCER_EPOCH,
        base_sequence: int = layout.NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        max_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        self._codec = codec_for_name(compression)
        self._level = level_for(self._codec, compression_level)
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self.is_control = is_control
        check_max_bytes(max_bytes, layout.HEADER_BYTES)
        self.max_bytes = max_bytes
        self.clear()

    def clear(self) -> None:
        """Drop all records; the settings stay."""
        self._parts = []
        self._count = 0
        self._base_timestamp = layout.NO_TIMESTAMP
        self._max_timestamp = layout.NO_TIMESTAMP
        self._timestamp = _NO_TIMESTAMP_YET
        self._head = b""
        self.size_in_bytes = layout.HEADER_BYTES

    def __len__(self) -> int:
        return self._count

    def append(
        self,
        key: BytesLike | None,
        value: BytesLike | None,
        headers: Sequence[Header] = (),
        *,
        timestamp: SupportsIndex,
    ) -> bool:
        """Add a record with `timestamp` in ms; False, and nothing added, if it does not fit.

        What an empty builder refuses can never fit. Raises EncodeError for a value of a wrong
        type.
        """
        # `SupportsIndex` and not `int`: compiled by mypyc, the method would refuse anything else
        # with a TypeError of its own, before `extend` has seen it.
        record: Any = (key, value, headers, timestamp)
        return self.extend((record,), first_index=0) is None

    def extend(self, records: Iterable[NewRecord], *, first_index: int = 0) -> NewRecord | None:
        """Add records until one does not fit: that one is returned, and None when all did.

        An iterator has then given out nothing beyond the returned record. Raises EncodeError for
        a value of a wrong type, naming the record by its place in `records` plus `first_index`;
        the records before it have been added.
        """
        parts = self._parts
        room = self.max_bytes - self.size_in_bytes
        start = index = self._count
        head = self._head
        base_timestamp = self._base_timestamp
        last_timestamp = self._timestamp
        max_timestamp = self._max_timestamp
        given: Iterable[Any] = records  # what callers give is known when it has been looked at
        record: Any = _NO_RECORD
        try:
            for record in given:
                key, value, headers, timestamp = record
                if timestamp != last_timestamp:
                    if not index:
                        base_timestamp = timestamp
                    delta = timestamp - base_timestamp
                    if 0 < delta < _TABLE_SIZE:
                        head = b"\x00" + VARINTS[delta]
                    else:
                        head = _encode_head(timestamp, delta)
                    last_timestamp = timestamp
                body = _encode_record(
                    head,
                    VARINTS[index] if index < _TABLE_SIZE else encode_varint(index),
                    key,
                    value,
                    headers,
                )
                size = len(body)
                length = VARINTS[size] if size < _TABLE_SIZE else encode_varint(size)
                size += len(length)
                if size > room:
                    refused: NewRecord = record
                    return refused
                room -= size
                parts.append(length)
                parts.append(body)
                index += 1
                if timestamp > max_timestamp:
                    max_timestamp = timestamp
        except REFUSALS:
            if record is not _NO_RECORD:
                explain_refusal(first_index + index - start, record)
            raise
        finally:
            self._count = index
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
        partition_leader_epoch: int = layout.NO_PARTITION_LEADER_EPOCH,
    ) -> bytes:
        """The batch as bytes, checksum included; the builder stays as it is.

        Raises EncodeError if there is no record or a header field is out of its range,
        MissingCodecError when the codec is not installed.
        """
        if not self._count:
            raise EncodeError("a batch needs at least one record")
        payload = self._codec.compress(b"".join(self._parts), self._level)
        attributes = self._codec.id
        if self.is_transactional:
            attributes |= layout.TRANSACTIONAL_FLAG
        if self.is_control:
            attributes |= layout.CONTROL_FLAG
        try:
            checked = layout.HEADER_FROM_ATTRIBUTES.pack(
                attributes,
                self._count - 1,
                self._base_timestamp,
                self._max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self._count,
            )
            unchecked = layout.HEADER_TO_CRC.pack(
                base_offset,
                layout.HEADER_BYTES - layout.LOG_OVERHEAD_BYTES + len(payload),
                partition_leader_epoch,
                2,
                crc32c(payload, crc32c(checked)),
            )
        except struct.error as error:
            raise EncodeError(f"a field of the batch header is out of its range: {error}") from None
        return b"".join((unchecked, checked, payload))


def _encode_head(timestamp: int, delta: int) -> bytes:
    """What starts every record with this timestamp: attributes and timestamp delta."""
    if not layout.NO_TIMESTAMP <= timestamp <= MAX_INT64:
        raise ValueError("timestamp out of range")
    if delta > MAX_INT64:
        delta -= 1 << 64  # goes round, as in Kafka's classes, and back again when it is read
    return b"\x00" + encode_varint(delta)


def _encode_record(head: bytes, offset_delta: bytes, key: Any, value: Any, headers: Any) -> bytes:
    """One record without the length in front of it; `head` is attributes and timestamp delta."""
    if key is None:
        key = b""
        key_length = _NULL
    else:
        if type(key) is not bytes:
            key = as_bytes(key)
        try:
            key_length = VARINTS[len(key)]
        except IndexError:
            key_length = encode_varint(len(key))
    if value is None:
        value = b""
        value_length = _NULL
    else:
        if type(value) is not bytes:
            value = as_bytes(value)
        try:
            value_length = VARINTS[len(value)]
        except IndexError:
            value_length = encode_varint(len(value))
    if not headers:
        return b"".join((head, offset_delta, key_length, key, value_length, value, _NO_HEADERS))
    count = encode_varint(len(headers)) if len(headers) > 63 else VARINTS[len(headers)]
    parts = [head, offset_delta, key_length, key, value_length, value, count]
    for name, content in headers:
        if type(content) is bytes:
            try:
                parts.append(_header_prefixes[name][len(content)])
                parts.append(content)
                continue
            except (KeyError, IndexError):  # a new name, or a long value
                pass
        elif content is not None:
            content = as_bytes(content)
        parts.append(_encode_header_name(name))
        if content is None:
            parts.append(_NULL)
        else:
            parts.append(encode_varint(len(content)))
            parts.append(content)
    return b"".join(parts)


def _encode_header_name(name: Any) -> bytes:
    """The name as it stands in a header; keeps it for the next one, with the shorter lengths."""
    if not isinstance(name, str):
        raise TypeError("header name is not str")
    utf8 = name.encode()
    encoded = encode_varint(len(utf8)) + utf8
    if name not in _header_prefixes:
        if len(_header_prefixes) >= _MAX_HEADER_NAMES:
            _header_prefixes.clear()
        _header_prefixes[name] = [encoded + VARINTS[size] for size in range(_MAX_PREFIX_SIZE)]
    return encoded


def check_max_bytes(max_bytes: object, overhead: int) -> None:
    """Refuse a bound that is no number, or that leaves no room beside `overhead` bytes."""
    if not isinstance(max_bytes, int) or not overhead < max_bytes <= MAX_INT32:
        raise ConfigurationError(
            f"max_bytes {max_bytes!r} is not a whole number above {overhead}, up to {MAX_INT32}"
        )


def as_bytes(value: object) -> bytes:
    """A copy of a bytes-like value, whatever its item size; TypeError for anything else."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError("not bytes-like")


def explain_refusal(index: int, record: object) -> None:
    """Raise EncodeError that names the fault of the record, if it has one."""
    place = f"records[{index}]"
    if not isinstance(record, tuple | list):
        raise EncodeError(
            f"{_kind(record)} is not a tuple of key, value, headers and timestamp", field=place
        )
    if len(record) != 4:
        raise EncodeError(
            f"{len(record)} values instead of 4: key, value, headers and timestamp", field=place
        )
    key, value, headers, timestamp = record
    _explain_bytes(f"{place}.key", key)
    _explain_bytes(f"{place}.value", value)
    if headers:
        if not isinstance(headers, tuple | list):
            raise EncodeError(
                f"{_kind(headers)} is not a sequence of (name, value)", field=f"{place}.headers"
            )
        for number, header in enumerate(headers):
            _explain_header(f"{place}.headers[{number}]", header)
    if not isinstance(timestamp, int):
        raise EncodeError(f"{_kind(timestamp)} is not int (ms)", field=f"{place}.timestamp")
    if not layout.NO_TIMESTAMP <= timestamp <= MAX_INT64:
        raise EncodeError(
            f"{timestamp} is not a time in ms, nor -1 for none", field=f"{place}.timestamp"
        )


def _explain_header(place: str, header: object) -> None:
    if not isinstance(header, tuple | list) or len(header) != 2:
        raise EncodeError(f"{_kind(header)} is not a tuple of name and value", field=place)
    name, value = header
    if not isinstance(name, str):
        raise EncodeError(f"{_kind(name)} is not str", field=f"{place} name")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"cannot be written as UTF-8: {error}", field=f"{place} name") from None
    _explain_bytes(f"{place} ({name!r}) value", value)


def _explain_bytes(place: str, value: object) -> None:
    if value is not None and not isinstance(value, bytes | bytearray | memoryview):
        raise EncodeError(f"{_kind(value)} is not bytes or None", field=place)
    try:
        memoryview(value or b"")
    except ValueError:
        raise EncodeError("a memoryview that was released", field=place) from None


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
