"""Tests that event columns equal the CloudEvents binding's result for each record."""

from __future__ import annotations

import warnings
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kproto_cloudevents import EVENT_GRID, CloudEvent, CloudEventError, Profile, from_kafka
from kproto_cloudevents.values.types import canonical
from kproto_pipeline.columns import EVENT_SCHEMA, arrow_events, events_as_arrow
from kproto_pipeline.columns.chunks import column_chunks

from tests.unit.pipeline.columns.record_bytes import Headers, PlainRecord, batch_bytes

ATTRIBUTES = ("error", "value", "data", "extensions", "headers", "time", "specversion", "id",
              "source", "type", "subject", "dataschema", "datacontenttype")  # fmt: skip

REQUIRED: Headers = (
    (b"ce_specversion", b"1.0"),
    (b"ce_id", b"1"),
    (b"ce_source", b"/s"),
    (b"ce_type", b"t"),
)


def expected_row(record: PlainRecord) -> dict[str, Any]:
    """Returns a record's row as the CloudEvents binding computes it, without the columns."""
    headers = [(name.decode(), value) for name, value in record.headers]
    row: dict[str, Any] = dict.fromkeys(ATTRIBUTES)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = from_kafka(record.key, record.value, headers)
        if not isinstance(outcome, CloudEvent):
            raise CloudEventError(outcome.reason)
        row["data"] = outcome.data_bytes()
    except CloudEventError as error:
        # Spark's own connector also has null for a record without headers.
        shown = [{"key": name, "value": value} for name, value in headers] or None
        return row | {"error": str(error), "value": record.value, "headers": shown}
    time = outcome.time
    if time is not None:
        try:
            row["time"] = time.datetime.astimezone(UTC)
        except (CloudEventError, OverflowError):
            row["time"] = None
    for name in ("specversion", "id", "source", "type", "subject", "dataschema"):
        row[name] = getattr(outcome, name)
    row["datacontenttype"] = outcome.datacontenttype
    row["extensions"] = [(name, canonical(value)) for name, value in outcome.extensions.items()]
    return row


def rows_of(records: list[PlainRecord]) -> list[dict[str, Any]]:
    (chunk,) = column_chunks(batch_bytes(records))
    batch = events_as_arrow(chunk, topic="t", partition=0)
    batch.validate(full=True)
    assert batch.schema.names == EVENT_SCHEMA.names
    assert batch["offset"].to_pylist() == [record.offset for record in records]
    assert batch["key"].to_pylist() == [record.key for record in records]
    rows: list[dict[str, Any]] = batch.select(list(ATTRIBUTES)).to_pylist()
    return rows


def numbered(contents: list[tuple[bytes | None, Headers]]) -> list[PlainRecord]:
    return [
        PlainRecord(n, 0, b"k%d" % n, value, headers) for n, (value, headers) in enumerate(contents)
    ]


texts = st.one_of(
    st.sampled_from([b"1", b"a b", b"", b"1.0", b"\xff", "ä".encode(), b"\x7f", b"tab\t"]),
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "replace")),
)
uris = st.sampled_from(
    [b"/s", b"urn:x:1", b"//h/p", b"", b"::", b"a b", b"http://[::1]/", b"http://[x]/", b"#f"]
)
times = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat().encode() + b"Z"),
    st.sampled_from(
        [
            b"2013-01-01T10:00:00Z",
            b"2013-01-01t10:00:00z",
            b"2013-01-01 10:00:00Z",
            b"2013-02-29T10:00:00Z",
            b"2016-02-29T10:00:00.5-05:00",
            b"2013-01-31T23:59:59.123456+23:59",
            b"2013-04-31T00:00:00Z",
            b"2016-12-31T23:59:60Z",
            b"2013-01-01T10:00:00.1234567Z",
            b"2013-01-01T10:00:00",
            b"2013-01-01T10:00Z",
            b"0000-01-01T00:00:00Z",
            b"0001-01-01T00:00:00+05:00",
            b"9999-12-31T23:59:59-05:00",
            b"1000-01-01T00:00:00+01:00",
            b"tomorrow",
            b"",
        ]
    ),
)
content_types = st.sampled_from(
    [
        b"application/json",
        b"text/plain; charset=latin1",
        b"text",
        b"",
        b"application/cloudevents+json",
        b"Application/CloudEvents+JSON; charset=utf-8",
        b"application/cloudevents",
        b"application/cloudevents-batch+json",
        b"application/cloudevents+avro",
        b"\xff/x",
    ]
)


def header(name: bytes, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[Headers]:
    """Draws the occurrences of a header: usually one or none; seldom null, or the header twice."""
    one = values.map(lambda value: ((name, value),))
    return st.one_of(
        st.just(()), one, one, one, st.just(((name, None),)), values.map(lambda v: ((name, v),) * 2)
    )


others = st.lists(
    st.tuples(
        st.sampled_from(
            [b"ce_partitionkey", b"ce_x9", b"ce_9x", b"ce_data", b"ce_datacontenttype", b"ce_",
             b"ce_UPPER", b"CE_ID", b"ce_averyveryverylongname", "ce_ä".encode(), "ce_²".encode(),
             b"other", b"Content-Type"]
        ),
        st.one_of(st.none(), texts),
    ),
    max_size=3,
).map(tuple)  # fmt: skip

attributes = st.tuples(
    st.one_of(
        st.just(REQUIRED),
        st.tuples(
            header(b"ce_specversion", st.sampled_from([b"1.0", b"1.0", b"0.3", b"2", b"\xff"])),
            header(b"ce_id", texts),
            header(b"ce_source", uris),
            header(b"ce_type", texts),
        ).map(lambda parts: sum(parts, ())),
    ),
    header(b"ce_time", times),
    header(b"ce_subject", texts),
    header(b"ce_dataschema", uris),
    header(b"content-type", content_types),
    others,
).flatmap(lambda parts: st.permutations(sum(parts, ())).map(tuple))

# The declared charset latin1 lacks the character of the data, the euro sign.
LATIN_1 = (
    b'{"specversion":"1.0","id":"1","source":"/s","type":"t",'
    b'"datacontenttype":"text/plain;charset=latin1","data":"\xe2\x82\xac"}'
)

documents = st.sampled_from(
    [
        None,
        b"",
        b"plain",
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}',
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":[1,2]}}',
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","n":7,"b":true,"s":"x"}',
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2013-01-01T10:00:00Z"}',
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"AAEC"}',
        LATIN_1,
        b'{"specversion":"1.0","id":"1"}',
        b"{",
    ]
)


@given(st.lists(st.tuples(documents, attributes), min_size=1, max_size=6))
@example([(b"x", REQUIRED), (None, REQUIRED)])
@example([(b"x", (*REQUIRED, (b"ce_sequence", b"1")))])
@pytest.mark.slow
def test_equals_the_binding(contents: list[tuple[bytes | None, Headers]]) -> None:
    records = numbered(contents)
    rows = rows_of(records)
    assert rows == [expected_row(record) for record in records]


@given(st.lists(st.tuples(texts, uris, texts, times), min_size=1, max_size=8))
def test_one_attribute_at_a_time_equals_the_binding(
    values: list[tuple[bytes, bytes, bytes, bytes]],
) -> None:
    """Each record has only one irregular attribute, so that each attribute's check is tested."""
    records = numbered(
        [
            (b"x", (*REQUIRED, (name, value)))
            for row in values
            for name, value in zip(
                (b"ce_subject", b"ce_dataschema", b"ce_partitionkey", b"ce_time"), row, strict=True
            )
        ]
    )
    assert rows_of(records) == [expected_row(record) for record in records]


def test_regular_events_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a regular event went through the binding")

    monkeypatch.setattr(arrow_events, "from_kafka", refuse)
    full: Headers = (
        *REQUIRED,
        (b"ce_time", b"2013-01-01T10:00:00.5-05:00"),
        (b"ce_subject", b"a subject"),
        (b"ce_dataschema", b"http://example.org/schema"),
        (b"ce_partitionkey", b"UA"),
        (b"content-type", b"application/json; charset=utf-8"),
        (b"other", b"\xff"),
    )
    rows = rows_of(numbered([(b"{}", full), (None, REQUIRED)]))
    assert [row["error"] for row in rows] == [None, None]
    assert rows[0]["extensions"] == [("partitionkey", "UA")]
    assert rows[0]["headers"] is None


def test_many_header_names_take_the_slow_path() -> None:
    """The fast path refuses so many header names; the slow path must return the same rows."""
    records = numbered(
        [(b"x", (*REQUIRED, (b"ce_x%d" % n, b"1"))) for n in range(arrow_events._MAX_HEADER_NAMES)]
    )
    assert rows_of(records) == [expected_row(record) for record in records]


def test_all_headers_are_returned_on_request() -> None:
    (chunk,) = column_chunks(batch_bytes(numbered([(b"x", REQUIRED)])))
    schema = pa.schema([EVENT_SCHEMA.field(name) for name in ("headers", "id")])
    batch = events_as_arrow(chunk, topic="t", partition=0, schema=schema, all_headers=True)
    assert batch.schema.names == ["headers", "id"]
    assert batch["headers"].to_pylist()[0][0] == {"key": "ce_specversion", "value": b"1.0"}


def test_the_profile_of_event_grid_applies_to_both_modes() -> None:
    document = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","dataschema":"#","data":1}'
    structured = (document, ((b"content-type", b"application/cloudevents+json"),))
    binary = (b"1", (*REQUIRED, (b"ce_dataschema", b"#")))
    usual = (b"1", (*REQUIRED, (b"ce_dataschema", b"urn:x")))
    (chunk,) = column_chunks(batch_bytes(numbered([structured, binary, usual])))
    columns = events_as_arrow(chunk, topic="t", partition=0)
    errors = columns["error"].to_pylist()
    assert "dataschema" in errors[0]
    assert "dataschema" in errors[1]
    assert errors[2] is None
    for profile in (EVENT_GRID, Profile(json_events=True, event_grid_dataschema=True)):
        columns = events_as_arrow(chunk, topic="t", partition=0, profile=profile)
        assert columns["error"].to_pylist() == [None] * 3
        assert columns["dataschema"].to_pylist() == ["#", "#", "urn:x"]
        assert columns["data"].to_pylist() == [b"1"] * 3
