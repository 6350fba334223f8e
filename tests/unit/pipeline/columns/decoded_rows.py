"""Converts columns to `PlainRecord`s, for comparison with the reader in `record_bytes`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from kproto_pipeline.columns.arrow_records import RECORD_SCHEMA, records_as_arrow
from kproto_pipeline.columns.chunks import column_chunks
from kproto_pipeline.columns.record_columns import RecordColumns

from tests.unit.pipeline.columns.record_bytes import PlainRecord

__all__ = ["rows_of", "rows_of_chunk"]


def rows_of(data: bytes, **limits: Any) -> list[tuple[PlainRecord, bool]]:
    """Decodes with `column_chunks`; returns the result in the form of `read_records`."""
    return [row for chunk in column_chunks(data, **limits) for row in rows_of_chunk(chunk)]


def rows_of_chunk(chunk: RecordColumns) -> list[tuple[PlainRecord, bool]]:
    """Returns (record, is log append time) for each row of a chunk.

    Converts the chunk to Arrow first, so that Arrow's columns are tested, too.
    """
    batch = records_as_arrow(chunk, topic="t", partition=3)
    batch.validate(full=True)
    assert batch.schema == RECORD_SCHEMA
    table = batch.to_pydict()
    assert set(table["topic"]) <= {"t"}
    assert set(table["partition"]) <= {3}
    assert (
        pa.array(chunk.timestamps * 1000)
        .cast(RECORD_SCHEMA.field("timestamp").type)
        .equals(batch["timestamp"])
    )
    return [
        (
            PlainRecord(
                table["offset"][row],
                int(chunk.timestamps[row]),
                table["key"][row],
                table["value"][row],
                tuple((h["key"].encode(), h["value"]) for h in table["headers"][row] or ()),
            ),
            table["timestampType"][row] == 1,
        )
        for row in range(len(chunk))
    ]
