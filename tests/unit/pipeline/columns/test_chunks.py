"""Tests that the columns equal the records of an independent reader, also for corrupt batches."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.columns import chunks
from kproto_pipeline.columns.arrow_records import records_as_arrow
from kproto_pipeline.columns.chunks import column_chunks

from kproto.records import RecordBatch
from kproto.records import read_records as read_one_by_one
from kproto.records.header_block import decode_as_java
from kproto.wire.errors import CorruptBatchError
from tests.unit.pipeline.columns.decoded_rows import rows_of, rows_of_chunk
from tests.unit.pipeline.columns.fetch_strategies import (
    CODEC_NAMES,
    compressed,
    fetches,
    records,
    stored,
)
from tests.unit.pipeline.columns.record_bytes import (
    Broken,
    PlainRecord,
    batch_bytes,
    read_records,
    resealed,
)


@pytest.mark.usefixtures("both_ways")
@given(fetches())
def test_equals_the_plain_reader(data: bytes) -> None:
    assert rows_of(data) == read_records(data)


@pytest.mark.slow
@given(fetches(max_batches=8), st.integers(0, 20))
def test_equals_the_plain_reader_for_any_chunk_size(data: bytes, chunk_bytes: int) -> None:
    assert rows_of(data, chunk_bytes=chunk_bytes * 50) == read_records(data)


@given(fetches(), st.data())
def test_only_requested_offsets_are_read(data: bytes, draws: st.DataObject) -> None:
    everything = read_records(data)
    offsets = [row.offset for row, _ in everything] or [0]
    edge = st.sampled_from(offsets).flatmap(lambda n: st.integers(max(n - 2, 0), n + 2))
    start, end = draws.draw(edge), draws.draw(edge)
    wanted = [row for row in everything if start <= row[0].offset < end]
    assert rows_of(data, start=start, end=end) == wanted


@pytest.mark.usefixtures("both_ways")
@given(stored(), st.integers(-3, 30), st.integers(-3, 30), st.sampled_from([40, 1 << 20]))
@pytest.mark.slow
def test_equals_the_record_decoder(data: bytes, start: int, end: int, chunk_bytes: int) -> None:
    """Compares each record, for all formats, codecs and offset ranges."""
    first = next((record.offset for record in read_one_by_one(data)), 0)
    start, end = max(first + start, 0), first + end
    expected = [
        (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers)
        for r in read_one_by_one(data, from_offset=start)
        if r.offset < end
    ]
    found = []
    for chunk in column_chunks(data, start=start, end=end, chunk_bytes=chunk_bytes):
        table = records_as_arrow(chunk, topic="t", partition=3)
        table.validate(full=True)
        for row, timestamp in zip(table.to_pylist(), chunk.timestamps.tolist(), strict=True):
            assert row["headers"] != [], "a record without headers has null, as from Spark's own"
            headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
            kept = (row["timestampType"], row["key"], row["value"], headers)
            found.append((row["offset"], timestamp, *kept))
    assert found == expected


def test_fault_is_found_within_max_decompressed_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To raise the error, the record decoder decompresses the batch again, with the same limit."""
    broken = bytearray(batch_bytes([PlainRecord(0, 0, b"k", b"v")]))
    broken[61] = 99
    bounds: list[int] = []
    read = RecordBatch.records

    def reading(batch: RecordBatch, **settings: Any) -> Any:
        bounds.append(settings["max_decompressed_bytes"])
        return read(batch, **settings)

    monkeypatch.setattr(RecordBatch, "records", reading)
    with pytest.raises(CorruptBatchError, match="record 0, length"):
        next(column_chunks(resealed(bytes(broken)), max_decompressed_bytes=2**30))
    assert bounds == [2**30]


@pytest.mark.parametrize("codec", ["none", *CODEC_NAMES])
@pytest.mark.parametrize("form", [bytearray, lambda data: memoryview(bytearray(data))])
def test_bytes_like_buffers_are_read_and_may_change(codec: str, form: Any) -> None:
    given = form(compressed(codec, b"value", 0))
    (chunk,) = column_chunks(given)
    given[:] = bytes(len(given))
    assert [chunk.value(row) for row in range(len(chunk))] == [b"value"] * 3


def test_non_buffer_is_refused() -> None:
    wrong: Any = "text"
    with pytest.raises(CorruptBatchError, match="bytes are wanted, not str"):
        next(column_chunks(wrong))


def as_text(record: PlainRecord) -> PlainRecord:
    """Returns the record with U+FFFD for bytes in header names that are not UTF-8, as in Java."""
    headers = tuple((decode_as_java(name).encode(), value) for name, value in record.headers)
    return replace(record, headers=headers)


@pytest.mark.usefixtures("both_ways")
@given(st.booleans().flatmap(lambda shared: records(shared=shared)), st.data())
def test_agrees_with_the_plain_reader_on_broken_records(
    inside: list[PlainRecord], draws: st.DataObject
) -> None:
    """One byte is changed and the CRC corrected; both readers return equal rows, or both raise."""
    data = bytearray(batch_bytes(inside, last_offset_delta=2000))
    at = draws.draw(st.integers(57, len(data) - 1))
    data[at] = draws.draw(st.integers(0, 255))
    broken = resealed(bytes(data))
    try:
        expected = read_records(broken)
    except Broken:
        with pytest.raises(CorruptBatchError):
            rows_of(broken)
    else:
        assert rows_of(broken) == [(as_text(row), *rest) for row, *rest in expected]


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_corrupt(data: bytes) -> None:
    with suppress(CorruptBatchError):
        rows_of(data)


def test_a_wrong_crc_is_found_and_named() -> None:
    data = bytearray(batch_bytes([PlainRecord(0, 0, b"k", b"v")], base_offset=70))
    data[-1] ^= 1
    with pytest.raises(CorruptBatchError, match=r"CRC.*batch base offset 70") as caught:
        rows_of(bytes(data))
    assert caught.value.base_offset == 70
    assert caught.value.offset == 0


@pytest.mark.parametrize("behind", [0, 40])
def test_valid_batches_are_yielded_before_the_error(behind: int) -> None:
    """One batch has a wrong CRC, or a correct CRC and a corrupt record."""
    good = [
        batch_bytes([PlainRecord(0, 0, b"k", b"v")], base_offset=n, last_offset_delta=0)
        for n in range(3 + behind)
    ]
    wrong_crc = bytearray(good[1])
    wrong_crc[-1] ^= 1
    wrong_records = bytearray(good[1])
    wrong_records[61] = 99
    for broken in (bytes(wrong_crc), resealed(bytes(wrong_records))):
        chunks = column_chunks(b"".join([good[0], broken, *good[2:]]))
        assert [row.offset for row, _ in rows_of_chunk(next(chunks))] == [0]
        with pytest.raises(CorruptBatchError, match="batch base offset 1"):
            next(chunks)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("odd", [-(2**31), -5, 0, 2, 3, 1000, 2**31 - 1])
def test_records_out_of_their_place_are_refused(odd: int) -> None:
    """Without compression, brokers do not check record offsets, so they store such batches."""
    deltas = [0, odd, 2]
    good = batch_bytes([PlainRecord(0, 0, b"k", b"v")], base_offset=9)
    data = batch_bytes(
        [PlainRecord(delta, 0, b"k", b"v") for delta in deltas],
        base_offset=10,
        last_offset_delta=2,
    )
    read = column_chunks(good + data)
    assert next(read).offsets.tolist() == [9]
    with pytest.raises(CorruptBatchError, match=f"record 1, offset delta: {odd} is outside of"):
        next(read)
    chunks_read = column_chunks(good + data, start=10, keep_unreadable=True)
    rows = [
        (offset, error is not None)
        for chunk in chunks_read
        for offset, error in zip(
            chunk.offsets.tolist(), chunk.unreadable or [None] * len(chunk), strict=True
        )
    ]
    assert rows == [(10, False), (11, True), (12, False)]


def test_buffer_beyond_arrow_offsets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = batch_bytes([PlainRecord(0, 0, b"k", b"v")])
    monkeypatch.setattr(chunks, "_MAX_BUFFER_BYTES", len(data))
    assert len(next(column_chunks(data))) == 1
    monkeypatch.setattr(chunks, "_MAX_BUFFER_BYTES", len(data) - 1)
    with pytest.raises(CorruptBatchError, match="exceeds 2 GiB"):
        next(column_chunks(data))
