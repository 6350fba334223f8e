"""Tests that event columns encode to the bytes of the CloudEvents binding, and are read back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import CloudEvent, from_json, to_json, to_kafka
from kproto_pipeline.columns import EVENT_SCHEMA, RECORD_SCHEMA, arrow_batches, events_as_arrow
from kproto_pipeline.columns.encoding import record_sections
from kproto_pipeline.columns.encoding.events import UnwritableEventError, records_of_events

from kproto.records import GrowingBatch

#: Characters that an attribute may have (CloudEvents 1.0 "String"), without control characters.
WORD = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x2FF, exclude_categories=["Cc"]),
    min_size=1,
    max_size=12,
)
TIMES = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 - its zone is drawn
    datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)
EVENTS = st.fixed_dictionaries(
    {
        "id": WORD,
        "source": st.sampled_from(["/s", "urn:x:1", "https://example.org/%C3%A4"]),
        "type": WORD,
    },
    optional={
        "subject": WORD,
        "time": TIMES,
        "dataschema": st.just("https://example.org/schema"),
        "datacontenttype": st.sampled_from(["application/json", "text/plain"]),
        "extensions": st.dictionaries(st.sampled_from(["a", "b1", "traceparent"]), WORD),
        "data": st.none() | st.binary(max_size=40),
        "key": st.none() | st.binary(max_size=9),
    },
)


def written(rows: list[dict[str, Any]], mode: Any) -> bytes:
    found = records_of_events(table(rows), mode)
    (section,) = record_sections(*found, batch_bytes=1 << 30)
    assert section.count == len(rows)
    content = GrowingBatch.of_encoded(section.data, section.count, 7)
    return content.build()


def table(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    fields = [field for field in EVENT_SCHEMA if any(field.name in row for row in rows)]
    plain = [
        {**row, "extensions": list((row.get("extensions") or {}).items()) or None} for row in rows
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(f.name) for row in plain], type=f.type) for f in fields],
        schema=pa.schema(fields),
    )


def read(fetched: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in arrow_batches(
        fetched, lambda columns: events_as_arrow(columns, topic="t", partition=0)
    ):
        found += batch.to_pylist()
    return found


@pytest.mark.parametrize("mode", ["binary", "structured"])
@given(rows=st.lists(EVENTS, min_size=1, max_size=12))
@pytest.mark.slow
def test_events_come_back_as_they_were(mode: str, rows: list[dict[str, Any]]) -> None:
    for row, event in zip(rows, read(written(rows, mode)), strict=True):
        assert event["error"] is None
        for name in ("id", "source", "type", "subject", "time", "dataschema", "key"):
            assert event[name] == row.get(name), name
        assert dict(event["extensions"]) == row.get("extensions", {})
        if mode == "binary" or row.get("data") is not None:
            assert event["data"] == row.get("data")
        assert event["specversion"] == "1.0"


PLAIN = {
    "id": "1",
    "source": "/s",
    "type": "t",
    "subject": "x",
    "time": datetime(2013, 1, 1, 10, 15, tzinfo=UTC) + timedelta(milliseconds=120),
    "datacontenttype": "application/json",
    "extensions": {"traceparent": "00-a", "b": "c"},
    "data": b'{"n": 1}',
    "key": b"k",
}


def test_fast_path_equals_the_binding() -> None:
    event = CloudEvent(
        id="1",
        source="/s",
        type="t",
        subject="x",
        time="2013-01-01T10:15:00.12Z",
        datacontenttype="application/json",
        traceparent="00-a",
        b="c",
        data=b'{"n": 1}',
    )
    record = to_kafka(event, "binary", key=b"k")
    expected = GrowingBatch()
    expected.append(b"k", record.value, (), 7, 1 << 20)
    found = records_of_events(table([PLAIN]), "binary")
    assert found.values.to_pylist() == [record.value]
    assert found.keys.to_pylist() == [record.key]
    assert found.headers.counts.tolist() == [len(record.headers)]
    fetched = written([PLAIN], "binary")
    (row,) = [
        row
        for batch in arrow_batches(
            fetched,
            lambda columns: events_as_arrow(columns, topic="t", partition=0, all_headers=True),
        )
        for row in batch.to_pylist()
    ]
    headers = [(each["key"], each["value"]) for each in row["headers"]]
    assert sorted(headers) == sorted(record.headers)


def test_row_with_an_error_is_written_as_its_record() -> None:
    headers = [{"key": "other", "value": b"h"}, {"key": "ce_id", "value": None}]
    row = {"error": "no event", "value": b"\xff", "headers": headers, "key": None}
    fetched = written([row, PLAIN], "binary")
    first, second = read(fetched)
    assert first["error"] is not None
    assert (first["value"], first["headers"]) == (b"\xff", headers)
    assert second["id"] == "1"


def test_headers_that_match_the_columns_are_kept() -> None:
    """If a header has the same value as its column, the header keeps its place and its text.

    If the values differ, the header gets the value of the column.
    """
    headers = [
        ("content-type", b"application/json"),
        ("ce_time", b"2013-01-01T11:15:00.120+01:00"),
        ("ce_id", b"1"),
        ("mine", None),
        ("ce_source", b"/s"),
        ("ce_type", b"t"),
        ("ce_subject", b"x"),
        ("ce_traceparent", b"00-a"),
        ("ce_b", b"c"),
        ("ce_specversion", b"1.0"),
    ]
    given = [{"key": key, "value": value} for key, value in headers]
    rows = [
        {**PLAIN, "headers": given},
        {**PLAIN, "headers": given, "type": "changed"},
        {**PLAIN, "headers": given, "extensions": {"b": "c"}},
        {**PLAIN, "headers": given, "data": b"changed"},
    ]
    found = records_of_events(table(rows), "binary")
    (section,) = record_sections(*found, batch_bytes=1 << 30)
    batch = GrowingBatch.of_encoded(section.data, section.count, 7)
    same, changed, fewer, data = batch.records()
    assert list(same.headers) == headers
    assert dict(changed.headers)["ce_type"] == b"changed"
    assert ("mine", None) in changed.headers
    assert "ce_traceparent" not in dict(fewer.headers)
    assert list(data.headers) == headers
    assert data.value == b"changed"


def test_headers_without_attributes_are_kept() -> None:
    headers = [{"key": "mine", "value": b"1"}, {"key": "CE_type", "value": b"old"}]
    rows = [{**PLAIN, "headers": headers}, {**PLAIN, "subject": "ä", "headers": headers}]
    for mode in ("binary", "structured"):
        found = records_of_events(table(rows), mode)
        (section,) = record_sections(*found, batch_bytes=1 << 30)
        batch = GrowingBatch.of_encoded(section.data, section.count, 7)
        for record in batch.records():
            assert ("mine", b"1") in record.headers
            assert "CE_type" not in dict(record.headers)


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3", "1.0"])
def test_an_event_keeps_its_version(mode: str, version: str) -> None:
    """Each version has its own attribute names for the schema and the content type."""
    row = {name: PLAIN[name] for name in ("id", "source", "type")}
    row |= {"specversion": version, "dataschema": "http://u", "data": b"x"}
    row["datacontenttype"] = "text/plain"
    (found,) = read(written([row], mode))
    assert {name: found[name] for name in row} == row
    assert not found["extensions"]
    assert found["error"] is None


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_null_extension_is_omitted(mode: str) -> None:
    row = {**PLAIN, "extensions": {"a": None, "b": "1"}}
    (found,) = read(written([row], mode))
    assert found["extensions"] == [("b", "1")]


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_duplicate_extension_is_refused(mode: Any) -> None:
    rows = table([PLAIN, {**PLAIN, "extensions": {"a": "1", "b": "2"}}])
    twice = pa.array([None, [("a", "1"), ("a", "2")]], rows.schema.field("extensions").type)
    at = rows.schema.get_field_index("extensions")
    with pytest.raises(UnwritableEventError, match="'a'") as caught:
        records_of_events(rows.set_column(at, "extensions", twice), mode)
    assert caught.value.row == 1


#: Bytes that are not UTF-8; Spark yields them if it casts a binary column to a string.
NO_TEXT = pa.array([b"a", b"\xff\xfe"], pa.binary())


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("column", ["id", "subject"])
def test_text_that_is_no_utf8_names_its_row(mode: Any, column: str) -> None:
    rows = table([{**PLAIN, "subject": "s"}, {**PLAIN, "subject": "s"}])
    text = pa.Array.from_buffers(pa.string(), 2, NO_TEXT.buffers())
    at = rows.schema.get_field_index(column)
    with pytest.raises(UnwritableEventError, match=f"{column} is no UTF-8") as caught:
        records_of_events(rows.set_column(at, column, text), mode)
    assert caught.value.row == 1


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("wrong", [[None], [{"key": None, "value": b"1"}]])
@pytest.mark.parametrize("error", [None, "no event"])
def test_header_without_a_key_names_its_row(mode: Any, wrong: list[Any], error: str | None) -> None:
    good = [{"key": "k", "value": b"1"}]
    rows = [{**PLAIN, "headers": good}, PLAIN, {**PLAIN, "headers": good + wrong, "error": error}]
    with pytest.raises(UnwritableEventError, match="key of a header is null") as caught:
        records_of_events(table(rows), mode)
    assert caught.value.row == 2


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("days", [-719_163, 2_932_897])
def test_time_outside_of_datetime_names_its_row(mode: Any, days: int) -> None:
    rows = table([PLAIN, {**PLAIN, "time": datetime(2024, 1, 1, tzinfo=UTC)}])
    far = pa.array([None, days * 86_400_000_000], pa.int64())
    at = rows.schema.get_field_index("time")
    times = far.cast(rows.schema.field("time").type)
    with pytest.raises(UnwritableEventError, match="outside the years 1 to 9999") as caught:
        records_of_events(rows.set_column(at, "time", times), mode)
    assert caught.value.row == 1


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_value_of_an_event_is_refused(mode: Any) -> None:
    """Column `value` is only for a row with an error; an event has its data in column `data`."""
    rows = [PLAIN, {**PLAIN, "value": b"kept", "error": "no event"}, {**PLAIN, "value": b"lost"}]
    with pytest.raises(UnwritableEventError, match="column data") as caught:
        records_of_events(table(rows), mode)
    assert caught.value.row == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"id": None}, "id: the required attribute is missing"),
    ({"type": ""}, "type"),
    ({"extensions": {"Upper": "x"}}, "Upper"),
    ({"extensions": {"id": "x"}}, "'id' has the name of an attribute"),
]


@pytest.mark.parametrize(
    ("mode", "wrong", "what"),
    [
        *(("binary", *each) for each in WRONG),
        *(("structured", *each) for each in WRONG),
        ("binary", {"datacontenttype": "application/cloudevents+json"}, "cloudevents"),
    ],
)
def test_invalid_event_names_its_row(mode: str, wrong: dict[str, Any], what: str) -> None:
    with pytest.raises(UnwritableEventError, match=what) as caught:
        records_of_events(table([PLAIN, PLAIN | wrong]), mode)  # type: ignore[arg-type]
    assert caught.value.row == 1


def test_empty_batch() -> None:
    found = records_of_events(table([PLAIN]).slice(1), "binary")
    assert (len(found.keys), len(found.headers.counts)) == (0, 0)
    assert found.keys.type == RECORD_SCHEMA.field("key").type


@pytest.mark.parametrize("content_type", ["application/vnd.x+json", "application/json"])
@pytest.mark.parametrize("message_format", [1, 2])
def test_portable_json_equals_the_binding(content_type: str, message_format: int) -> None:
    row = {**PLAIN, "datacontenttype": content_type, "data": b'{"n": 1}'}
    mode: Any = "structured" if message_format == 2 else "default"
    found = records_of_events(table([row]), mode, message_format, portable_json=True)
    usual = records_of_events(table([row]), mode, message_format)
    is_known = content_type == "application/json"
    assert (found.values == usual.values) is is_known
    (value,) = found.values.to_pylist()
    assert (b"data_base64" in value) is not is_known
    event = from_json(value)
    assert event.json() == {"n": 1}
    assert value == to_json(event, portable=True)


def test_portable_json_has_no_effect_on_binary_mode() -> None:
    row = {**PLAIN, "datacontenttype": "application/vnd.x+json", "data": b'{"n": 1}'}
    found = records_of_events(table([row]), "binary", portable_json=True)
    assert found.values.to_pylist() == [row["data"]]
