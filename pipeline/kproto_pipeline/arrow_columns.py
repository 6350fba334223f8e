"""Columns of records as Arrow arrays.

Owns the Arrow types of the columns and the way to them. Keys, values and headers stay where they
are in the buffer: an Arrow array is laid over it with interleaved offsets (start, end, start, end,
…) and only then compacted with `take`.

Knows nothing of batches, sockets, Spark or CloudEvents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kproto.wire.errors import CorruptBatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .columns import ByteRanges, Int32s, Int64s, RecordColumns

__all__ = [
    "HEADERS_TYPE",
    "RECORD_FIELDS",
    "binary_array",
    "good_batches",
    "header_arrays",
    "record_array",
    "record_batch",
    "timestamp_array",
]

HEADERS_TYPE: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]),
    )
)

# The columns of Spark's JVM connector for Kafka, by name, in its order.
RECORD_FIELDS: Final[dict[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS_TYPE,
}

_MAX_TIMESTAMP_MS: Final = (2**63 - 1) // 1000

_MAX_KEPT_BYTES: Final = 1 << 20


def binary_array(buffer: pa.Buffer, ranges: ByteRanges, rows: Int64s | None = None) -> pa.Array:
    """The byte strings of `ranges` as a compact Arrow binary array.

    `rows` picks and orders rows; -1 in it gives null.
    """
    count = len(ranges)
    if count == 0:
        return pa.nulls(0 if rows is None else len(rows), pa.binary())
    # Even elements are the wanted bytes, odd ones what lies between two of them.
    bounds = np.ascontiguousarray(ranges.bounds)
    spread = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), buffer])
    if rows is None:
        return spread.take(pa.array(_even_numbers(count), mask=ranges.null))
    null = rows < 0
    if ranges.null is not None:
        null |= ranges.null[rows]
    return spread.take(pa.array(rows * 2, mask=null))


_first_even_numbers: Int32s = np.arange(0, 0, 2, dtype=np.int32)


def _even_numbers(count: int) -> Int32s:
    """0, 2, 4, …; kept, up to a megabyte of them, as fresh memory costs more than to fill it."""
    global _first_even_numbers
    numbers = _first_even_numbers  # another thread may replace them meanwhile, by fewer
    if count > len(numbers):
        numbers = np.arange(0, 2 * count, 2, dtype=np.int32)
        if numbers.nbytes <= _MAX_KEPT_BYTES:
            _first_even_numbers = numbers
    return numbers[:count]


def header_arrays(columns: RecordColumns, buffer: pa.Buffer) -> tuple[pa.Array, pa.Array]:
    """All header keys (string) and header values (binary), in row order.

    Raises:
        CorruptBatchError: a header key is not UTF-8.
    """
    keys = binary_array(buffer, columns.header_keys)
    try:
        names = keys.cast(pa.string())
    except pa.ArrowInvalid:
        raise columns.not_utf8() from None
    return names, binary_array(buffer, columns.header_values)


def timestamp_array(timestamps: Int64s) -> pa.Array:
    """Milliseconds as Arrow timestamps in microseconds, UTC.

    One that microseconds in 64 bits cannot hold (about 292,000 years) becomes null.
    """
    beyond = (timestamps > _MAX_TIMESTAMP_MS) | (timestamps < -_MAX_TIMESTAMP_MS)
    mask = beyond if beyond.any() else None
    micros = np.where(beyond, 0, timestamps) * 1000
    return pa.array(micros, mask=mask).cast(RECORD_FIELDS["timestamp"])


def record_batch(
    columns: RecordColumns,
    *,
    topic: str,
    partition: int,
    names: Sequence[str] = tuple(RECORD_FIELDS),
) -> pa.RecordBatch:
    """The columns called `names` (of `RECORD_FIELDS`) as an Arrow record batch.

    Columns that are not asked for cost nothing.
    """
    buffer = pa.py_buffer(columns.buffer)
    arrays = [record_array(name, columns, buffer, topic, partition) for name in names]
    schema = pa.schema([pa.field(name, RECORD_FIELDS[name]) for name in names])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def good_batches(
    columns: RecordColumns, convert: Callable[[RecordColumns], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What `convert`, such as `record_batch`, makes of the columns.

    Where a header key is not UTF-8, which it is the first to see, that of the batches before.

    Raises:
        CorruptBatchError: a header key is not UTF-8.
    """
    try:
        made = convert(columns)
    except CorruptBatchError as error:
        good = columns.before(error)
        if len(good):
            yield convert(good)
        raise
    yield made


def record_array(
    name: str, columns: RecordColumns, buffer: pa.Buffer, topic: str, partition: int
) -> pa.Array:
    count = len(columns)
    match name:
        case "key":
            return binary_array(buffer, columns.keys)
        case "value":
            return binary_array(buffer, columns.values)
        case "topic":
            return pa.repeat(topic, count)
        case "partition":
            return pa.array(np.full(count, partition, dtype=np.int32))
        case "offset":
            return pa.array(columns.offsets)
        case "timestamp":
            return timestamp_array(columns.timestamps)
        case "timestampType":
            return pa.array(columns.timestamp_types)
        case "headers":
            names, values = header_arrays(columns, buffer)
            entries = pa.StructArray.from_arrays(
                [names, values], fields=list(HEADERS_TYPE.value_type)
            )
            return pa.ListArray.from_arrays(
                pa.array(columns.header_offsets.astype(np.int32)), entries, type=HEADERS_TYPE
            )
        case _:
            raise KeyError(name)
