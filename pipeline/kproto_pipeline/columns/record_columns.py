"""Holds records as columns: one array per field; keys, values and headers are buffer positions.

`chunks` decodes batches into columns; `columns_of_records` converts decoded records, such as those
of message sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kproto.records import NO_TIMESTAMP_TYPE
from kproto.records.header_block import decode_as_java
from kproto.wire.errors import UnreadableRecordError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kproto.records import Header, Record

__all__ = [
    "Bools",
    "BytePairs",
    "ByteRanges",
    "Bytes",
    "Int32s",
    "Int64s",
    "RecordColumns",
    "columns_of_records",
]

Int64s: TypeAlias = "NDArray[np.int64]"
Int32s: TypeAlias = "NDArray[np.int32]"
Bools: TypeAlias = "NDArray[np.bool_]"
Bytes: TypeAlias = "NDArray[np.uint8]"
BytePairs: TypeAlias = "NDArray[np.uint16]"


@dataclass(slots=True)
class ByteRanges:
    """One byte string per row, as positions in a shared buffer. Positions ascend, without overlap.

    `bounds` has two columns, the start and the end of the bytes: flattened, they are the offsets of
    an Arrow array. `null` marks null rows, whose range is empty; None means that no row is null.
    """

    bounds: Int32s
    null: Bools | None = None

    def __len__(self) -> int:
        return len(self.bounds)

    def filter(self, selected: Bools) -> ByteRanges:
        """Returns the rows for which `selected` is true."""
        null = None if self.null is None else self.null[selected]
        return ByteRanges(self.bounds[selected], null)

    def at(self, buffer: bytes | memoryview, row: int) -> bytes | None:
        """Returns the bytes of one row; None for null."""
        if self.null is not None and self.null[row]:
            return None
        start, end = self.bounds[row].tolist()
        return bytes(buffer[start:end])


@dataclass(slots=True)
class RecordColumns:
    """The records of some batches, one array per field; `timestamps` are ms since 1970.

    `timestamp_types` are Kafka's: 0 for create time, 1 for log append time, -1 for none. The
    headers of row r are the rows `header_offsets[r]` to `header_offsets[r + 1]` (exclusive) of
    `header_keys` and `header_values`. All positions are in `buffer`. If `buffer` is a memoryview,
    its memory is not reused while the view exists.
    """

    buffer: bytes | memoryview
    offsets: Int64s
    timestamps: Int64s
    timestamp_types: Int32s
    keys: ByteRanges
    values: ByteRanges
    header_offsets: Int64s
    header_keys: ByteRanges
    header_values: ByteRanges
    #: For each row its error if the record is unreadable, else None; None if all are readable. An
    #: unreadable record has a null key and a null value.
    unreadable: Sequence[UnreadableRecordError | None] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def filter(self, selected: Bools) -> RecordColumns:
        """Returns the records for which `selected` is true."""
        counts = np.diff(self.header_offsets)
        headers = np.repeat(selected, counts)
        header_offsets = np.zeros(int(selected.sum()) + 1, dtype=np.int64)
        np.cumsum(counts[selected], out=header_offsets[1:])
        return RecordColumns(
            buffer=self.buffer,
            offsets=self.offsets[selected],
            timestamps=self.timestamps[selected],
            timestamp_types=self.timestamp_types[selected],
            keys=self.keys.filter(selected),
            values=self.values.filter(selected),
            header_offsets=header_offsets,
            header_keys=self.header_keys.filter(headers),
            header_values=self.header_values.filter(headers),
            unreadable=None
            if self.unreadable is None
            else [error for error, is_in in zip(self.unreadable, selected, strict=True) if is_in],
        )

    def key(self, row: int) -> bytes | None:
        """Returns the key of one record."""
        return self.keys.at(self.buffer, row)

    def value(self, row: int) -> bytes | None:
        """Returns the value of one record."""
        return self.values.at(self.buffer, row)

    def headers(self, row: int) -> list[tuple[str, bytes | None]]:
        """Returns the headers of one record, in order.

        As in Java, U+FFFD stands for bytes of a key that are not UTF-8.
        """
        found = []
        for header in range(self.header_offsets[row], self.header_offsets[row + 1]):
            key = self.header_keys.at(self.buffer, header)
            assert key is not None
            found.append((decode_as_java(key), self.header_values.at(self.buffer, header)))
        return found


#: The timestamp of an unreadable record, in ms: it does not fit into a column, so it becomes null.
_NO_TIME: Final = 2**63 - 1


def columns_of_records(records: Sequence[Record | UnreadableRecordError]) -> RecordColumns:
    """Returns the columns of decoded records, such as those of message sets.

    Copies their keys, values and headers into one buffer.
    """
    parts: list[bytes] = []
    names: list[bytes] = []
    values: list[bytes | None] = []
    header_offsets = [0]
    for record in records:
        if isinstance(record, UnreadableRecordError):
            parts += (b"", b"")
        else:
            parts += (record.key or b"", record.value or b"")
            headers: list[Header] = record.headers
            names += [name.encode("utf-8", "surrogateescape") for name, _ in headers]
            values += [value for _, value in headers]
        header_offsets.append(len(names))
    for name, value in zip(names, values, strict=True):
        parts += (name, value or b"")
    bounds = np.zeros((len(parts), 2), dtype=np.int32)
    np.cumsum([len(part) for part in parts], out=bounds[:, 1])
    bounds[1:, 0] = bounds[:-1, 1]
    fields, headers_at = bounds[: 2 * len(records)], bounds[2 * len(records) :]
    rows = [_row(record) for record in records]
    errors = [record if isinstance(record, UnreadableRecordError) else None for record in records]
    return RecordColumns(
        buffer=b"".join(parts),
        offsets=np.array([row[0] for row in rows], dtype=np.int64),
        timestamps=np.array([row[1] for row in rows], dtype=np.int64),
        timestamp_types=np.array([row[2] for row in rows], dtype=np.int32),
        keys=ByteRanges(fields[0::2], _mask([row[3] is None for row in rows])),
        values=ByteRanges(fields[1::2], _mask([row[4] is None for row in rows])),
        header_offsets=np.array(header_offsets, dtype=np.int64),
        header_keys=ByteRanges(headers_at[0::2]),
        header_values=ByteRanges(headers_at[1::2], _mask([value is None for value in values])),
        unreadable=errors if any(errors) else None,
    )


def _row(
    record: Record | UnreadableRecordError,
) -> tuple[int, int, int, bytes | None, bytes | None]:
    """Returns offset, timestamp, timestamp type, key and value of a record."""
    if isinstance(record, UnreadableRecordError):
        return record.record_offset, _NO_TIME, NO_TIMESTAMP_TYPE, None, None
    return record.offset, record.timestamp, record.timestamp_type, record.key, record.value


def _mask(null: Sequence[bool]) -> Bools | None:
    return np.array(null, dtype=np.bool_) if any(null) else None
