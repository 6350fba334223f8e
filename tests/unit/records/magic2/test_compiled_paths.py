"""Tests the functions that only compiled code calls: they return what the pure functions return."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records.header_block import decode_headers, read_headers
from kproto.records.magic2.batch_builder import BatchBuilder, encode_batch
from kproto.records.magic2.batch_header import HEADER_BYTES
from kproto.records.magic2.field_decoding import read_by_fields
from kproto.records.magic2.record_batch import RecordBatch
from kproto.records.magic2.record_encoding import (
    append_exact,
    encode_exact,
    encode_head,
    encode_record,
)
from kproto.records.new_record import NewRecord
from kproto.records.record import BatchOrigin
from kproto.records.varints import encode_varint
from kproto.wire.errors import CorruptBatchError

from ..batches import T

HEAD = encode_head(T, 0)
DELTA = encode_varint(3)

parts = st.one_of(st.none(), st.binary(max_size=200), st.just(b"v" * 9000))
header_lists = st.lists(
    st.tuples(st.sampled_from(["", "a", "trace", "é" * 70]), parts), max_size=70
)


@given(parts, parts, header_lists)
def test_both_encoders_return_the_same_bytes(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    body = encode_record(HEAD, DELTA, key, value, headers)
    assert encode_exact(HEAD, DELTA, key, value, headers) == body
    encoded = encode_varint(len(body)) + body
    appended = [b"before"]
    size = append_exact(appended, len(encoded), HEAD, DELTA, key, value, headers)
    assert size == len(encoded)
    assert b"".join(appended) == b"before" + encoded
    assert append_exact(appended, len(encoded) - 1, HEAD, DELTA, key, value, headers) == 0
    assert b"".join(appended) == b"before" + encoded


def test_a_header_of_another_type_leaves_nothing_behind() -> None:
    appended: list[bytes] = []
    headers = [("a", b"1"), ("b", 2)]
    assert append_exact(appended, 1000, HEAD, DELTA, None, None, headers) == -1
    assert appended == []


@pytest.mark.parametrize("kind", [list, tuple])
def test_other_types_are_converted_compiled_and_pure(kind: type) -> None:
    record = (bytearray(b"k"), memoryview(b"v"), [kind(("h", bytearray(b"x")))], T)
    expected = encode_batch([(b"k", b"v", [("h", b"x")], T)])
    assert encode_batch([record]) == expected  # type: ignore[list-item]
    builder = BatchBuilder()
    assert builder.extend([list(record)]) is None  # type: ignore[list-item]
    assert builder.build() == expected


@given(header_lists)
def test_headers_inside_a_buffer_are_read(headers: list[tuple[str, bytes | None]]) -> None:
    body = encode_record(b"", b"", None, None, headers)
    block = body[2:]
    assert decode_headers(block) == headers
    assert read_headers(b"xyz" + block + b"\x7f", 3, 3 + len(block)) == headers
    for end in (len(block) + 2, len(block) + 4):
        with pytest.raises((ValueError, IndexError)):
            read_headers(b"xyz" + block + b"\x7f\x7f", 3, end)


def test_a_header_name_is_decoded_again_when_its_bytes_change() -> None:
    for name in ("trace", "TRACE", "trace", "trac", "", "é", "é", "\udcff", "n" * 200, "trace"):
        headers: list[tuple[str, bytes | None]] = [(name, b"1"), ("é", None), (name, b"2" * 200)]
        body = encode_record(b"", b"", None, None, headers)
        assert read_headers(body, 2, len(body)) == headers


def test_records_are_read_by_fields_as_by_layouts() -> None:
    written: list[NewRecord] = [
        (
            b"k" * (index % 5) or None,
            b"v" * index * 10,
            [("h", b"x" * index)] * (index % 3),
            T + index,
        )
        for index in range(40)
    ]
    raw = encode_batch(written)
    data, origin = raw[HEADER_BYTES:], BatchOrigin("a", 3)

    def read(data: bytes, *, any_delta: bool = False, eager_headers: bool = False) -> Any:
        return read_by_fields(
            data, 0, 40, 0, 7, T, any_delta=any_delta, origin=origin, eager_headers=eager_headers
        )

    for eager in (False, True):
        records, end, index, overflows, backwards = read(data, eager_headers=eager)
        assert (end, index, overflows, backwards) == (len(data), 40, False, False)
        assert [(r.key, r.value, r.headers, r.timestamp) for r in records] == [
            (key, value, list(headers), timestamp) for key, value, headers, timestamp in written
        ]
        assert [record.offset for record in records] == list(range(7, 47))
        assert (records[3].topic, records[3].partition) == ("a", 3)
    first = encode_record(b"\0\0", b"\0", b"k", b"v", ())
    again = bytes([len(first) * 2]) + first
    assert len(read(again * 40)[0]) == 1  # the offset delta does not rise
    records, end, index, overflows, backwards = read(again * 40, any_delta=True)
    assert (len(records), index, backwards) == (40, 1, True)
    with pytest.raises(IndexError):
        read(again, any_delta=True)


def test_eager_headers_of_a_corrupt_record_stay_encoded_until_the_error() -> None:
    data = bytearray(encode_batch([(b"k", b"v", [("h", b"x")], T), (b"k", b"v", (), T)]))
    at = data.index(b"\x02\x02h\x02x")
    data[at + 1] = 40  # the length of the name
    batch = RecordBatch(bytes(data))
    assert len(batch.records()) == 2
    with pytest.raises(CorruptBatchError, match="headers of the record at offset 0: header 0"):
        batch.records(eager_headers=True)


def test_a_refused_record_does_not_raise_the_max_timestamp() -> None:
    builder = BatchBuilder(max_bytes=200)
    assert builder.append(b"k", b"v", timestamp=T)
    assert not builder.append(b"k", b"v" * 300, timestamp=T + 9)
    assert RecordBatch(builder.build()).max_timestamp == T
    assert builder.append(b"k", b"v", timestamp=T + 9)
    assert RecordBatch(builder.build()).max_timestamp == T + 9
