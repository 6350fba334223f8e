"""Tests how the sink converts the rows of PySpark 4.0 to Arrow batches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from kproto_pipeline.spark.options.option_table import parse_write_options
from kproto_pipeline.spark.sink import writers
from kproto_pipeline.spark.sink.writers import _RowWriter

OPTIONS = parse_write_options({"kafka.bootstrap.servers": "h:1"})
SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC")), ("value", pa.binary())])


@pytest.fixture(params=["America/New_York", "Asia/Kolkata", "UTC"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize("month", [1, 7])
def test_local_timestamp_of_a_row_becomes_utc(month: int) -> None:
    """Spark passes a timestamp as a datetime without a zone, in the local time of the worker."""
    moment = datetime(2024, month, 1, 12, tzinfo=UTC)
    handed_over = moment.astimezone().replace(tzinfo=None)
    rows = iter([(handed_over, bytearray(b"v")), (None, None)])
    (batch,) = _RowWriter(OPTIONS, SCHEMA)._arrow(rows)
    assert batch.to_pylist() == [{"time": moment, "value": b"v"}, {"time": None, "value": None}]


@pytest.mark.usefixtures("_zone")
def test_timestamps_of_a_repeated_hour_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """New York has the hour from 01:00 on 3 November 2024 twice."""
    moments = [datetime(2024, 11, 3, hour, 30, tzinfo=UTC) for hour in range(4, 9)]
    written: list[pa.RecordBatch] = []

    def write_rows(_options: object, batches: Iterator[pa.RecordBatch]) -> int:
        written.extend(batches)
        return len(moments)

    monkeypatch.setattr(writers, "write_rows", write_rows)
    zone = time.tzname
    # PySpark converts each row when the writer requests it.
    rows = ((moment.astimezone().replace(tzinfo=None), b"v") for moment in moments)
    assert _RowWriter(OPTIONS, SCHEMA).write(rows).rows == len(moments)
    assert [row["time"] for batch in written for row in batch.to_pylist()] == moments
    assert time.tzname == zone


def test_bytes_bound_an_arrow_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "_BATCH_BYTES", 1_000)
    monkeypatch.setattr(writers, "_BATCH_ROWS", 7)
    sizes = [300, 300, 500, 0, 0, 0, 0, 0, 0, 0, 0, 2_000, 5]
    rows = iter([(None, bytes(size)) for size in sizes])
    batches = list(_RowWriter(OPTIONS, SCHEMA)._arrow(rows))
    assert [batch.num_rows for batch in batches] == [3, 7, 2, 1]
    assert [len(row["value"]) for batch in batches for row in batch.to_pylist()] == sizes
