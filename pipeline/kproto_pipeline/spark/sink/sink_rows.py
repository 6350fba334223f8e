"""Checks the columns of rows to write, and converts Arrow batches for the encoder.

Column names and types are those of the JVM connector. The driver calls `check_columns` before any
task starts. Works on plain data: sends no request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...columns import RECORD_SCHEMA
from ...columns.encoding import (
    HeaderColumn,
    UnwritableEventError,
    headers_of_lists,
    records_of_events,
)
from ..options.errors import OptionError
from .errors import RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...columns.record_columns import Int64s
    from ..options.option_table import WriteOptions

__all__ = ["SinkRows", "check_columns", "sink_rows"]

_NO_PARTITION: Final = -1


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return _is_string(kind) or bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_headers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        return False
    entry = kind.value_type
    return (
        [entry.field(at).name for at in range(entry.num_fields)] == ["key", "value"]
        and _is_string(entry.field(0).type)
        and _is_binary(entry.field(1).type)
    )


# By column: Spark's name of its type, and a check of its Arrow type.
_COLUMNS: Final[Mapping[str, tuple[str, Callable[[pa.DataType], bool]]]] = {
    "key": ("binary or string", _is_binary),
    "value": ("binary or string", _is_binary),
    "headers": ("array<struct<key:string,value:binary>>", _is_headers),
    "topic": ("string", _is_string),
    "partition": ("int", pa.types.is_int32),
}


def _is_timestamp(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _is_extensions(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind)) and _is_string(kind.key_type) and _is_string(kind.item_type)


_TEXTS: Final = ("specversion", "id", "source", "type", "subject", "dataschema", "datacontenttype")

# The columns of events; the source reads the same columns.
_EVENT_COLUMNS: Final[Mapping[str, tuple[str, Callable[[pa.DataType], bool]]]] = {
    **dict.fromkeys(
        (
            "specversion",
            "id",
            "source",
            "type",
            "subject",
            "dataschema",
            "datacontenttype",
            "error",
        ),
        ("string", _is_string),
    ),
    "time": ("timestamp", _is_timestamp),
    "extensions": ("map<string,string>", _is_extensions),
    "data": ("binary or string", _is_binary),
    **_COLUMNS,
}

# Columns of the source that the sink ignores, so that rows can be written as they were read.
_IGNORED: Final = frozenset({"offset", "timestamp", "timestampType"})


def check_columns(schema: pa.Schema, options: WriteOptions) -> None:
    """Raises OptionError if rows with these columns cannot be written."""
    is_events = options.cloud_events is not None
    known = _EVENT_COLUMNS if is_events else _COLUMNS
    for field in schema:
        if field.name not in known and options.ignore_extra_columns:
            continue
        if schema.names.count(field.name) > 1:
            raise OptionError(f"the rows have column {field.name!r} twice; name each once")
        if field.name in _IGNORED:
            continue
        if field.name not in known:
            raise OptionError(
                f"column {field.name!r} cannot be written; drop it, select only "
                f"{', '.join(known)}, or set the option ignoreExtraColumns"
            )
        kind, is_right = known[field.name]
        if not is_right(field.type):
            raise OptionError(f"column {field.name!r} is {field.type}; it must be {kind}")
    for name in ("id", "source", "type") if is_events else ("value",):
        if name not in schema.names:
            raise OptionError(f"the rows have no column {name!r}, which the sink requires")
    for name in ("value", "headers") if is_events and "error" in schema.names else ():
        if name not in schema.names:
            raise OptionError(
                f"the rows have a column 'error' and no column {name!r}: a row with an error is "
                f"written as its original record; select {name!r}, too, or drop 'error' if no row "
                "has an error"
            )
    if options.topic is None and "topic" not in schema.names:
        raise OptionError("the rows have no topic: set the option topic, or add a column topic")


@dataclass(frozen=True, slots=True)
class SinkRows:
    """Rows of a task as columns; `names` are topics, and `topics` has each row's index in `names`.

    A row without a partition has -1 in `partitions`. `first` is the number of the first row within
    its task, from 0.
    """

    first: int
    names: list[str]
    topics: Int64s
    partitions: Int64s
    keys: pa.Array
    values: pa.Array
    headers: HeaderColumn

    def describe(self, row: int) -> str:
        """Describes a row for errors: its number within the task, and its key."""
        key = self.keys[row].as_py()
        shown = "no key" if key is None else f"key {key[:60]!r}{' …' if len(key) > 60 else ''}"
        return f"row {self.first + row} of this task ({shown})"


def sink_rows(
    batch: pa.RecordBatch, options: WriteOptions, first: int, message_format: int = 2
) -> SinkRows:
    """Converts one Arrow batch; `first` is the number of its first row within the task.

    `message_format` is the magic of the batches that the brokers accept.

    Raises:
        RowError: a topic or a header key is null or not UTF-8, a partition is negative, or a row is
        not a valid event.
    """
    keys = _bytes(batch, "key")
    bare = SinkRows(first, [], _EMPTY, _EMPTY, keys, keys, HeaderColumn.none(0))
    values, headers = _values_and_headers(batch, options, bare, message_format)
    names, topics = _topics(batch, options, bare)
    return SinkRows(first, names, topics, _partitions(batch, bare), keys, values, headers)


def _values_and_headers(
    batch: pa.RecordBatch, options: WriteOptions, bare: SinkRows, message_format: int
) -> tuple[pa.Array, HeaderColumn]:
    if options.cloud_events is not None:
        try:
            records = records_of_events(
                batch, options.cloud_events, message_format, portable_json=options.portable_json
            )
        except UnwritableEventError as error:
            raise RowError(f"{bare.describe(error.row)} is no event: {error}") from error
        return records.values, records.headers
    headers = HeaderColumn.none(batch.num_rows)
    if "headers" in batch.schema.names:
        lists = batch.column("headers").cast(RECORD_SCHEMA.field("headers").type)
        try:
            headers = headers_of_lists(lists)
        except ValueError as error:
            raise RowError(f"{bare.describe(error.args[1])}: {error.args[0]}") from None
    return _bytes(batch, "value"), headers


_EMPTY: Final = np.empty(0, dtype=np.int64)


def _bytes(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.binary())
    return batch.column(name).cast(pa.binary())


def _topics(
    batch: pa.RecordBatch, options: WriteOptions, bare: SinkRows
) -> tuple[list[str], Int64s]:
    if options.topic is not None:
        return [options.topic], np.zeros(batch.num_rows, dtype=np.int64)
    column = batch.column("topic").cast(pa.string())
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise RowError(f"{bare.describe(row)}: its topic is null; set it, or set the option topic")
    encoded = column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    try:
        return encoded.dictionary.to_pylist(), codes
    except UnicodeDecodeError as error:
        raw = encoded.dictionary.cast(pa.binary()).to_pylist()
        code = next(
            at for at, name in enumerate(raw) if name.decode(errors="replace").encode() != name
        )
        row = int(np.flatnonzero(codes == code)[0])
        raise RowError(f"{bare.describe(row)}: its topic is no UTF-8: {error}") from error


def _partitions(batch: pa.RecordBatch, bare: SinkRows) -> Int64s:
    if "partition" not in batch.schema.names:
        return np.full(batch.num_rows, _NO_PARTITION, dtype=np.int64)
    column = batch.column("partition")
    filled = pc.fill_null(column, _NO_PARTITION).to_numpy(zero_copy_only=False)
    given: Int64s = filled.astype(np.int64)
    wrong = np.flatnonzero((given < 0) & column.is_valid().to_numpy(zero_copy_only=False))
    if len(wrong):
        row = int(wrong[0])
        raise RowError(f"{bare.describe(row)}: the partition {int(given[row])} is negative")
    return given
