"""Converts record columns to Arrow arrays, with the columns of Spark's JVM connector for Kafka.

Keys, values and headers stay in the buffer: an Arrow array with interleaved offsets (start, end,
start, end, …) is created over it, and then compacted with `take`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kproto.records.header_block import decode_as_java

from .arrow_numpy import boolean_array, number_array, repeated_text

if TYPE_CHECKING:
    from .record_columns import Bools, ByteRanges, Int32s, Int64s, RecordColumns

__all__ = [
    "RECORD_SCHEMA",
    "binary_array",
    "corrupt_array",
    "record_array",
    "records_as_arrow",
    "text_array",
]

_HEADERS_TYPE: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]),
    )
)

#: The columns in the connector's order.
RECORD_SCHEMA: Final[pa.Schema] = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", _HEADERS_TYPE),
    ]
)

_MAX_TIMESTAMP_MS: Final = (2**63 - 1) // 1000

_MAX_KEPT_BYTES: Final = 1 << 20


def records_as_arrow(
    columns: RecordColumns,
    *,
    topic: str,
    partition: int,
    schema: pa.Schema = RECORD_SCHEMA,
    corrupt_column: str | None = None,
) -> pa.RecordBatch:
    """Returns one row per record, with the columns of `RECORD_SCHEMA` that `schema` names.

    `schema` may have any order; columns that it lacks are not converted. In header keys, U+FFFD
    stands for bytes that are not UTF-8, as in Spark's JVM connector. The column `corrupt_column`
    has the stored bytes of unreadable records; their other columns, except topic, partition and
    offset, are null.
    """
    buffer = pa.py_buffer(columns.buffer)
    arrays = [
        corrupt_array(columns)
        if name == corrupt_column
        else record_array(name, columns, buffer, topic, partition)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def record_array(
    name: str, columns: RecordColumns, buffer: pa.Buffer, topic: str, partition: int
) -> pa.Array:
    """Returns the column `name` of the records. Raises KeyError for an unknown name."""
    count = len(columns)
    match name:
        case "key":
            return binary_array(buffer, columns.keys)
        case "value":
            return binary_array(buffer, columns.values)
        case "topic":
            return repeated_text(topic, count)
        case "partition":
            return number_array(np.full(count, partition, dtype=np.int32))
        case "offset":
            return number_array(columns.offsets)
        case "timestamp":
            return _timestamp_array(columns.timestamps)
        case "timestampType":
            return number_array(columns.timestamp_types, null=_unreadable_mask(columns))
        case "headers":
            return _headers_array(columns, buffer)
        case _:
            raise KeyError(name)


def corrupt_array(columns: RecordColumns) -> pa.Array:
    """Returns the stored bytes of each unreadable record, null for each readable record."""
    if columns.unreadable is None:
        return pa.nulls(len(columns), pa.binary())
    raw = [None if error is None else error.raw for error in columns.unreadable]
    return pa.array(raw, pa.binary())


def _unreadable_mask(columns: RecordColumns) -> Bools | None:
    if columns.unreadable is None:
        return None
    return np.array([error is not None for error in columns.unreadable], dtype=np.bool_)


def binary_array(buffer: pa.Buffer, ranges: ByteRanges, rows: Int64s | None = None) -> pa.Array:
    """Returns the byte strings of `ranges` as an Arrow binary array without unused bytes.

    `rows` selects the strings of the array by their indexes, in order; -1 stands for a null. If
    `rows` is None, the array has all strings.
    """
    count = len(ranges)
    if count == 0:
        return pa.nulls(0 if rows is None else len(rows), pa.binary())
    # In `spread`, even elements are the byte strings, and odd ones the bytes between them.
    bounds = np.ascontiguousarray(ranges.bounds)
    spread = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), buffer])
    if rows is None:
        return spread.take(number_array(_even_numbers(count), null=ranges.null))
    null = rows < 0
    if ranges.null is not None:
        null |= ranges.null[rows]
    return spread.take(number_array(rows * 2, null=null))


_first_even_numbers: Int32s = np.arange(0, 0, 2, dtype=np.int32)


def _even_numbers(count: int) -> Int32s:
    """Returns 0, 2, 4, …; caches up to 1 MiB, because new memory is slower than the computation."""
    global _first_even_numbers
    numbers = _first_even_numbers  # read once, because another thread may set a shorter array
    if count > len(numbers):
        numbers = np.arange(0, 2 * count, 2, dtype=np.int32)
        if numbers.nbytes <= _MAX_KEPT_BYTES:
            _first_even_numbers = numbers
    return numbers[:count]


def _headers_array(columns: RecordColumns, buffer: pa.Buffer) -> pa.Array:
    """Returns a list of headers for each record.

    The list of a record without headers is null, as in the JVM connector.
    """
    names, values = _header_arrays(columns, buffer)
    entries = pa.StructArray.from_arrays([names, values], fields=list(_HEADERS_TYPE.value_type))
    offsets = columns.header_offsets.astype(np.int32)
    none = offsets[1:] == offsets[:-1]
    return pa.ListArray.from_arrays(
        number_array(offsets),
        entries,
        type=_HEADERS_TYPE,
        mask=boolean_array(none) if none.any() else None,
    )


def _header_arrays(columns: RecordColumns, buffer: pa.Buffer) -> tuple[pa.Array, pa.Array]:
    """Returns all header keys (string) and header values (binary) of the records, in order."""
    names = text_array(binary_array(buffer, columns.header_keys))
    return names, binary_array(buffer, columns.header_values)


def text_array(utf8: pa.Array) -> pa.Array:
    """Converts binary to string, with U+FFFD for bytes that are not UTF-8, as Java does."""
    try:
        return utf8.cast(pa.string())
    except pa.ArrowInvalid:
        encoded = utf8.dictionary_encode()
        texts = [decode_as_java(text) for text in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices)


def _timestamp_array(timestamps: Int64s) -> pa.Array:
    """Converts milliseconds to Arrow timestamps in microseconds (UTC).

    A timestamp that exceeds 64 bits in microseconds (about 292,000 years) becomes null.
    """
    beyond = (timestamps > _MAX_TIMESTAMP_MS) | (timestamps < -_MAX_TIMESTAMP_MS)
    mask = beyond if beyond.any() else None
    micros = np.where(beyond, 0, timestamps) * 1000
    return number_array(micros, RECORD_SCHEMA.field("timestamp").type, null=mask)
