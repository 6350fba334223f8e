"""Tests records, and headers, which are decoded on access."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import Header, NewRecord, Record, RecordBatch, encode_batch, read_records
from kproto.records.header_block import (
    _LEARN_ONE_IN,
    _MAX_TEMPLATES,
    _other_bounds,
    _templates,
    decode_headers,
)
from kproto.records.varints import encode_varint
from kproto.wire.compiled import __compiled__
from kproto.wire.errors import CorruptBatchError

from .batches import T, batch_bytes, headers, record_bytes


def read_back(rows: list[list[Header]]) -> list[list[Header]]:
    records: list[NewRecord] = [(None, None, row, T) for row in rows]
    return [record.headers for record in RecordBatch(encode_batch(records)).records()]


@given(st.lists(headers, min_size=1, max_size=10))
def test_headers_round_trip_with_nulls_and_duplicates(rows: list[list[Header]]) -> None:
    assert read_back(rows) == rows
    assert read_back(rows) == rows  # read again with the templates learned by the first read


names_as_bytes = st.binary(max_size=6) | st.sampled_from([b"\xff\xfe", b"\xed\xa0\x80", b"ce_\x80"])


@given(
    st.lists(st.lists(st.tuples(names_as_bytes, st.none() | st.binary()), max_size=3), min_size=1)
)
def test_header_names_of_any_bytes_round_trip(rows: list[list[tuple[bytes, bytes | None]]]) -> None:
    blocks = [
        encode_varint(len(row)) + b"".join(encode_header(name, value) for name, value in row)
        for row in rows
    ]
    read = [decode_headers(block) for block in blocks]
    names = [[name.encode("utf-8", "surrogateescape") for name, _ in headers] for headers in read]
    assert names == [[name for name, _ in row] for row in rows]
    written: list[NewRecord] = [(None, None, headers, T) for headers in read]
    records = RecordBatch(encode_batch(written)).records()
    assert [record._headers for record in records] == blocks
    assert [record.headers for record in records] == read


def encode_header(name: bytes, value: bytes | None) -> bytes:
    size = encode_varint(-1 if value is None else len(value))
    return encode_varint(len(name)) + name + size + (value or b"")


@pytest.mark.parametrize("length", [b"\x01", b"\x03", b"\x83\x01", b"\xff\xff\xff\xff\x0f"])
def test_a_negative_header_value_length_means_null(length: bytes) -> None:
    assert decode_headers(b"\x02\x02a" + length) == [("a", None)]


letters = st.text("ab", max_size=3)
contents = st.text("ab", max_size=3).map(str.encode)


@given(st.lists(st.lists(st.tuples(letters, st.none() | contents), max_size=3), max_size=30))
def test_header_blocks_of_equal_length_are_distinguished(rows: list[list[Header]]) -> None:
    if rows:
        assert read_back(rows) == rows


def test_the_templates_are_bounded() -> None:
    for size in range(_MAX_TEMPLATES + 50):
        row: list[Header] = [("name", b"x" * size)]
        assert read_back([row, row]) == [row, row]
    assert len(_templates) <= _MAX_TEMPLATES


shapes = st.sampled_from(["same", "changing", "null or empty", "null"])


@given(st.data(), st.lists(shapes, min_size=1, max_size=5), st.integers(1, 30))
def test_values_that_many_blocks_share_do_not_leak_into_other_blocks(
    data: st.DataObject, kinds: list[str], count: int
) -> None:
    values = {
        "same": st.just(b"same") | st.just(b"rare"),
        "changing": st.binary(min_size=4, max_size=4),
        "null or empty": st.none() | st.just(b""),
        "null": st.none(),
    }
    row = st.tuples(*(values[kind] for kind in kinds))
    rows = data.draw(st.lists(row, min_size=count, max_size=count))
    names = [f"h{at}" for at in range(len(kinds))]
    expected: list[list[Header]] = [list(zip(names, row, strict=True)) for row in rows]
    for headers_of_row in (read := read_back(expected)):
        headers_of_row.append(("own", b"list"))  # changes the headers of no other record
    assert [headers_of_row[:-1] for headers_of_row in read] == expected


@pytest.mark.skipif(__compiled__, reason="compiled code uses no templates")
def test_headers_with_equal_values_are_shared_between_records() -> None:
    rows: list[list[Header]] = [[("type", b"t"), ("id", b"%03d" % at)] for at in range(8)]
    read = read_back(rows)
    assert read == rows
    assert read[-1][0] is read[-2][0]


@pytest.mark.skipif(__compiled__, reason="compiled code uses no templates")
def test_blocks_of_equal_length_replace_a_template_only_sometimes() -> None:
    short, long = b"\x02\x02a\x02b", b"\x02\x00\x04bc"
    assert len(short) == len(long)
    _templates.clear()
    _other_bounds.clear()
    assert decode_headers(short) == [("a", b"b")]
    learned = _templates[len(short)]
    assert decode_headers(long) == [("", b"bc")]
    assert _templates[len(short)] is learned
    for _ in range(_LEARN_ONE_IN):
        assert decode_headers(long) == [("", b"bc")]
    assert _templates[len(short)] is not learned
    assert decode_headers(short) == [("a", b"b")]


def test_lists_of_headers_are_not_shared() -> None:
    records = RecordBatch(encode_batch([(None, None, (), T)] * 2)).records()
    records[0].headers.append(("only", b"here"))
    assert records[0].headers == [("only", b"here")]
    assert records[1].headers == []


BROKEN = [
    (b"", "ends inside"),
    (b"\x02", "ends inside"),
    (b"\x01\x00", "negative header count"),
    (b"\x03\x00", "negative header count"),
    (b"\x02\x01\x00", "header 0: null or negative name length"),
    (b"\x02\x03a\x00", "header 0: null or negative name length"),
    (b"\x02\x06ab", "header 0: name longer than the block"),
    (b"\x02\x02a", "ends inside"),
    (b"\x02\x02a\x04x", "header 'a': value longer than the block"),
    (b"\x04\x02a\x02x", "ends inside"),
    (b"\x02\x02a\x02xy", "1 bytes after the last header"),
    (b"\x80\x80\x80\x80\x80\x00", "varint too long"),
    (b"\x02\x80\x80\x80\x80\x80\x00", "varint too long"),
]


@pytest.mark.parametrize(("block", "reason"), BROKEN)
def test_a_broken_header_block_names_the_fault(block: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_headers(block)


@pytest.mark.parametrize(("block", "reason"), [case for case in BROKEN if len(case[0]) > 1])
def test_broken_headers_are_an_error_of_the_batch(block: bytes, reason: str) -> None:
    data = batch_bytes(record_bytes(header_block=block), base_offset=41)
    batch = RecordBatch(data)
    with pytest.raises(CorruptBatchError, match=reason) as caught:
        batch.records(eager_headers=True)
    with pytest.raises(CorruptBatchError, match=reason):
        batch.records(eager_headers=True, from_offset=42)  # like any other field of the record
    assert batch.records(from_offset=42) == []
    assert (caught.value.offset, caught.value.base_offset) == (0, 41)
    [record] = batch.records()
    assert (record.key, record.value) == (b"k", b"v")
    assert repr(record)
    with pytest.raises(CorruptBatchError, match=rf"offset 41: .*{reason}"):
        _ = record.headers


def test_equality_compares_every_field() -> None:
    def record(**changes: object) -> Record:
        fields: dict[str, object] = {
            "offset": 1,
            "timestamp": T,
            "key": b"k",
            "value": b"v",
            "headers": [("h", b"1")],
        }
        return Record(**{**fields, **changes})  # type: ignore[arg-type]

    assert record() == record()
    others: list[dict[str, object]] = [
        {"offset": 2},
        {"timestamp": T + 1},
        {"timestamp_type": 1},
        {"key": None},
        {"value": b""},
        {"headers": []},
    ]
    for changes in others:
        assert record() != record(**changes)
    assert record() != "record"
    stored = encode_batch([(b"k", b"v", [("h", b"1")], T)], base_offset=1)
    assert RecordBatch(stored).records() == [record()]
    with pytest.raises(TypeError, match="unhashable"):
        hash(record())


def test_headers_can_be_replaced() -> None:
    record = Record(0, T, None, None)
    record.headers = [("a", b"1")]
    assert record.headers == [("a", b"1")]


def test_setting_a_shared_field_changes_one_record() -> None:
    data = encode_batch([(b"k", b"v", (), T)] * 2, base_offset=4)
    first, second = RecordBatch(data).records(topic="t", partition=3)
    first.topic, first.partition, first.timestamp_type = "u", 5, 1
    assert (first.topic, first.partition, first.timestamp_type) == ("u", 5, 1)
    assert (second.topic, second.partition, second.timestamp_type) == ("t", 3, 0)
    assert first != second
    second.topic, second.partition, second.timestamp_type, second.offset = "u", 5, 1, 4
    assert first == second


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_independent(copied: Callable[[Record], Record]) -> None:
    record = Record(7, T, b"k", b"v", [("a", b"1")], 1, topic="t", partition=3)
    other = copied(record)
    assert other == record
    other.topic = "u"
    assert (record.topic, other.topic) == ("t", "u")


@pytest.mark.parametrize("name", ["topic", "partition", "timestamp_type", "offset", "timestamp"])
def test_records_with_equal_fields_are_equal(name: str) -> None:
    one, other = Record(7, T, b"k", b"v"), Record(7, T, b"k", b"v")
    assert one == other
    setattr(other, name, "t" if name == "topic" else 9)
    assert one != other


def test_the_repr_of_a_large_record_is_short() -> None:
    many: list[Header] = [(f"name{number}", b"x" * 10_000) for number in range(100)]
    shown = repr(Record(7, T, b"k" * 10_000, b"v" * 1_000_000, many))
    assert len(shown) < 2000
    assert "offset=7" in shown
    assert "(1000000 bytes)" in shown
    assert repr(Record(7, T, None, b"v")).startswith(f"Record(offset=7, timestamp={T}, key=None")


def test_a_fault_in_headers_has_the_position_of_the_batch() -> None:
    good = batch_bytes(record_bytes())
    bad = batch_bytes(record_bytes(header_block=b"\x02\x01\x02v"), base_offset=1)
    _, record = read_records(good + bad)
    with pytest.raises(CorruptBatchError, match="headers of the record at offset 1") as caught:
        _ = record.headers
    assert (caught.value.offset, caught.value.base_offset) == (len(good), 1)


class Order:
    """An object that a program puts into a record in place of its value."""

    record: Record


def decoded_record() -> Record:
    (record,) = RecordBatch(encode_batch([(b"k", b"v", [("a", b"1")], T)])).records()
    assert record.headers == [("a", b"1")]
    return record


@pytest.mark.parametrize("name", ["key", "value", "timestamp", "headers", "_origin"])
def test_a_decoded_record_that_refers_to_itself_is_collected(name: str) -> None:
    record, order = decoded_record(), Order()
    order.record = record
    changed: Any = [("a", order)] if name == "headers" else order
    setattr(record, name, changed)
    assert getattr(record, name) == changed
    gone = weakref.ref(order)
    del record, order, changed
    gc.collect()
    assert gone() is None


def test_the_garbage_collector_visits_no_decoded_record_in_compiled_code() -> None:
    record = decoded_record()
    assert gc.is_tracked(record) is not __compiled__
    record.value = b"other"
    del record.key
    assert gc.is_tracked(record) is not __compiled__
    assert not hasattr(record, "key")
    record.topic = "t"  # creates an object
    assert gc.is_tracked(record)
    assert record.topic == "t"
    record.topic = "u"
    assert record.topic == "u"
    assert gc.is_tracked(Record(value=b"v"))
