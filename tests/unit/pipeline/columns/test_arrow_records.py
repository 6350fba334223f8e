"""Tests Arrow columns of records: timestamps, chosen columns, invalid header keys, no headers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from kproto_pipeline.columns.arrow_events import events_as_arrow
from kproto_pipeline.columns.arrow_records import RECORD_SCHEMA, records_as_arrow
from kproto_pipeline.columns.chunks import column_chunks

from kproto.wire.errors import CorruptBatchError
from tests.unit.pipeline.columns.record_bytes import (
    PlainRecord,
    batch_bytes,
)


def test_a_timestamp_beyond_microseconds_is_null() -> None:
    data = batch_bytes([PlainRecord(0, 0, None, None)], base_timestamp=2**62)
    (chunk,) = column_chunks(data)
    batch = records_as_arrow(chunk, topic="t", partition=0)
    assert batch["timestamp"].to_pylist() == [None]
    assert chunk.timestamps.tolist() == [2**62]


def test_only_the_columns_of_the_schema_are_built() -> None:
    (chunk,) = column_chunks(batch_bytes([PlainRecord(0, 0, b"k", b"v")]))
    batch = records_as_arrow(
        chunk,
        topic="t",
        partition=0,
        schema=pa.schema([RECORD_SCHEMA.field(name) for name in ("offset", "key")]),
    )
    assert batch.to_pydict() == {"offset": [0], "key": [b"k"]}


@pytest.mark.parametrize("to_arrow", [records_as_arrow, events_as_arrow])
def test_header_key_that_is_no_utf8_names_its_record(to_arrow: Any) -> None:
    rows = [PlainRecord(n, 0, b"k", b"v", ((b"\xff" if n == 3 else b"h", b"1"),)) for n in range(5)]
    (chunk,) = column_chunks(batch_bytes(rows, base_offset=40))
    with pytest.raises(CorruptBatchError, match="record at offset 43: name is not UTF-8"):
        to_arrow(chunk, topic="t", partition=0)
    assert chunk.headers(2) == [("h", b"1")]
    with pytest.raises(CorruptBatchError, match="record at offset 43: name is not UTF-8"):
        chunk.headers(3)


@pytest.mark.parametrize("headers", [[], [()], [((b"h", b"1"),)], [(), ((b"h", None),) * 2, ()]])
def test_headers_of_a_record_without_headers_are_null(headers: list[Any]) -> None:
    """Spark's own connector does the same; `headers IS NULL` then finds the same rows."""
    rows = [PlainRecord(n, 0, b"k", b"v", some) for n, some in enumerate(headers)]
    for chunk in column_chunks(batch_bytes(rows)):
        column = records_as_arrow(chunk, topic="t", partition=0)["headers"]
        column.validate(full=True)
        assert column.to_pylist() == [
            [{"key": key.decode(), "value": value} for key, value in some] or None
            for some in headers
        ]
        assert column.null_count == headers.count(())
