"""Tests Arrow columns of records: timestamps, chosen columns, invalid header keys, no headers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from kproto_pipeline.columns.arrow_events import events_as_arrow
from kproto_pipeline.columns.arrow_records import RECORD_SCHEMA, records_as_arrow
from kproto_pipeline.columns.chunks import column_chunks

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


ODD_NAMES = {
    b"\xff\xfe": "\ufffd\ufffd",
    b"ce_\xff": "ce_\ufffd",
    b"\xed\xa0\x80": "\ufffd",
    b"\xe2\x82": "\ufffd",
    b"h": "h",
}


@pytest.mark.parametrize("to_arrow", [records_as_arrow, partial(events_as_arrow, all_headers=True)])
def test_header_keys_that_are_no_utf8_have_replacement_characters(to_arrow: Any) -> None:
    """The replaced text equals Java's `String`, which Spark's JVM connector returns."""
    rows = [PlainRecord(n, 0, b"k", b"v", ((name, b"1"),)) for n, name in enumerate(ODD_NAMES)]
    (chunk,) = column_chunks(batch_bytes(rows))
    expected = [[(name, b"1")] for name in ODD_NAMES.values()]
    headers = to_arrow(chunk, topic="t", partition=0)["headers"].to_pylist()
    assert [[(each["key"], each["value"]) for each in row] for row in headers] == expected
    assert [chunk.headers(row) for row in range(len(chunk))] == expected


def test_event_with_an_attribute_name_that_is_no_utf8_has_an_error() -> None:
    names = (b"ce_specversion", b"ce_id", b"ce_source", b"ce_type")
    headers = [*zip(names, (b"1.0", b"1", b"/s", b"t"), strict=True)]
    rows = [
        PlainRecord(0, 0, b"k", b"v", (*headers, (b"\xff", b"1"))),
        PlainRecord(1, 0, b"k", b"v", (*headers, (b"ce_\xff", b"1"))),
    ]
    (chunk,) = column_chunks(batch_bytes(rows))
    batch = events_as_arrow(chunk, topic="t", partition=0)
    assert batch["id"].to_pylist() == ["1", None]
    assert batch["error"].to_pylist()[0] is None
    assert "attribute name" in batch["error"].to_pylist()[1]


@pytest.mark.parametrize("headers", [[], [()], [((b"h", b"1"),)], [(), ((b"h", None),) * 2, ()]])
def test_headers_of_a_record_without_headers_are_null(headers: list[Any]) -> None:
    """Spark's own connector also returns null, so `headers IS NULL` finds the same rows."""
    rows = [PlainRecord(n, 0, b"k", b"v", some) for n, some in enumerate(headers)]
    for chunk in column_chunks(batch_bytes(rows)):
        column = records_as_arrow(chunk, topic="t", partition=0)["headers"]
        column.validate(full=True)
        assert column.to_pylist() == [
            [{"key": key.decode(), "value": value} for key, value in some] or None
            for some in headers
        ]
        assert column.null_count == headers.count(())
