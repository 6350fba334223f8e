"""Tests the checks of the rows and columns that the sink gets; errors name the row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from kproto_pipeline.spark.options.errors import OptionError
from kproto_pipeline.spark.options.option_table import parse_write_options
from kproto_pipeline.spark.sink.errors import RowError
from kproto_pipeline.spark.sink.sink_rows import check_columns, sink_rows

from .test_task_writer import HEADERS

PLAIN = parse_write_options({"kafka.bootstrap.servers": "h:1"})
EVENTS = parse_write_options({"kafka.bootstrap.servers": "h:1", "cloudEvents": "binary"})

NO_TEXT = pa.Array.from_buffers(
    pa.string(), 3, pa.array([b"a", b"a", b"\xff\xfe"], pa.binary()).buffers()
)


@pytest.mark.parametrize("missing", ["value", "headers"])
def test_row_with_an_error_needs_value_and_headers(missing: str) -> None:
    """Without the value, the row would be written as a tombstone."""
    texts = [(name, pa.string()) for name in ("topic", "id", "source", "type", "error")]
    columns = dict([*texts, ("value", pa.binary()), ("headers", HEADERS)])
    check_columns(pa.schema(list(columns.items())), EVENTS)
    del columns[missing]
    with pytest.raises(OptionError, match=f"no column '{missing}'"):
        check_columns(pa.schema(list(columns.items())), EVENTS)
    del columns["error"]
    check_columns(pa.schema(list(columns.items())), EVENTS)


def test_topic_that_is_no_utf8_names_its_row() -> None:
    rows = pa.RecordBatch.from_arrays(
        [NO_TEXT, pa.array([b"1", b"2", b"3"], pa.binary())], names=["topic", "value"]
    )
    with pytest.raises(RowError, match=r"row 12 of this task .*its topic is no UTF-8"):
        sink_rows(rows, PLAIN, 10)


def test_header_key_that_is_no_utf8_names_its_row() -> None:
    """The sink refuses such a key, because the source could not read it."""
    entries = pa.StructArray.from_arrays(
        [NO_TEXT, pa.array([b"", b"", b""], pa.binary())], fields=list(HEADERS.value_type)
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 2, 3], pa.int32()), entries, type=HEADERS)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(["t"] * 3), pa.array([b""] * 3, pa.binary()), lists],
        names=["topic", "value", "headers"],
    )
    with pytest.raises(RowError, match=r"row 2 of this task .*header is no UTF-8"):
        sink_rows(rows, PLAIN, 0)


@pytest.mark.parametrize("mode", ["false", "binary"])
def test_extra_column_is_refused_or_ignored(mode: str) -> None:
    names = ["topic", "id", "source", "type"] if mode == "binary" else ["topic", "value"]
    columns = pa.schema([*((name, pa.string()) for name in names), ("extra", pa.int32())])
    given = {"kafka.bootstrap.servers": "h:1", "cloudEvents": mode}
    with pytest.raises(OptionError, match="column 'extra' cannot be written"):
        check_columns(columns, parse_write_options(given))
    ignoring = parse_write_options({**given, "ignoreExtraColumns": "true"})
    check_columns(columns, ignoring)
    batch = pa.RecordBatch.from_arrays(
        [*(pa.array([name]) for name in names), pa.array([1], pa.int32())], schema=columns
    )
    assert sink_rows(batch, ignoring, 0).names == ["topic"]
    wrong = pa.schema([("topic", pa.string()), ("value", pa.int32())])
    with pytest.raises(OptionError, match="column 'value' is int32"):
        check_columns(
            wrong,
            parse_write_options({**given, "ignoreExtraColumns": "true"} | {"cloudEvents": "false"}),
        )
