"""The columnar decoder gives what the plain one gives, on good and on broken batches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline import columnar, lockstep
from kproto_pipeline.arena import MAX_SPARE_ARENAS
from kproto_pipeline.arrow_columns import good_batches
from kproto_pipeline.columnar import (
    RECORD_FIELDS,
    RecordColumns,
    decode_records,
    record_batch,
)
from kproto_pipeline.event_columns import event_batch

from kproto.records import (
    NewRecord,
    RecordBatch,
    encode_batch,
    restamp,
)
from kproto.records import read_records as read_one_by_one
from kproto.wire.errors import CorruptBatchError
from tests.support.message_sets import message, message_set
from tests.unit.pipeline.fetch_strategies import T, fetches, records, stored
from tests.unit.pipeline.record_bytes import (
    Broken,
    PlainRecord,
    batch_bytes,
    read_records,
    resealed,
)


@pytest.fixture(params=["in lockstep", "one by one"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to read, which otherwise the number of batches and records decides between."""
    least = 1 if request.param == "in lockstep" else 1 << 30
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lockstep, "_LEAST_RUNS", least)
        patch.setattr(lockstep, "_LEAST_ROWS", least)
        yield


both_ways = pytest.mark.usefixtures("way")


def rows_of(data: bytes, **limits: int) -> list[tuple[PlainRecord, bool]]:
    """What the columnar decoder finds, as the plain reader would say it."""
    return [row for chunk in decode_records(data, **limits) for row in rows_of_chunk(chunk)]


def rows_of_chunk(chunk: RecordColumns) -> list[tuple[PlainRecord, bool]]:
    """Through Arrow, so that both steps are compared."""
    batch = record_batch(chunk, topic="t", partition=3)
    batch.validate(full=True)
    assert batch.schema == pa.schema(list(RECORD_FIELDS.items()))
    table = batch.to_pydict()
    assert set(table["topic"]) <= {"t"}
    assert set(table["partition"]) <= {3}
    assert (
        pa.array(chunk.timestamps * 1000)
        .cast(RECORD_FIELDS["timestamp"])
        .equals(batch["timestamp"])
    )
    return [
        (
            PlainRecord(
                table["offset"][row],
                int(chunk.timestamps[row]),
                table["key"][row],
                table["value"][row],
                tuple((h["key"].encode(), h["value"]) for h in table["headers"][row]),
            ),
            table["timestampType"][row] == 1,
        )
        for row in range(len(chunk))
    ]


@both_ways
@given(fetches())
def test_equals_the_plain_reader(data: bytes) -> None:
    assert rows_of(data) == read_records(data)


@pytest.mark.slow
@given(fetches(max_batches=8), st.integers(0, 20))
def test_equals_the_plain_reader_whatever_the_chunks(data: bytes, chunk_bytes: int) -> None:
    assert rows_of(data, chunk_bytes=chunk_bytes * 50) == read_records(data)


@given(fetches(), st.data())
def test_reads_the_wanted_offsets_alone(data: bytes, draws: st.DataObject) -> None:
    everything = read_records(data)
    offsets = [row.offset for row, _ in everything] or [0]
    edge = st.sampled_from(offsets).flatmap(lambda n: st.integers(max(n - 2, 0), n + 2))
    start, end = draws.draw(edge), draws.draw(edge)
    wanted = [row for row in everything if start <= row[0].offset < end]
    assert rows_of(data, start=start, end=end) == wanted


@both_ways
@given(stored(), st.integers(-3, 30), st.integers(-3, 30), st.sampled_from([40, 1 << 20]))
def test_equals_the_record_decoder(data: bytes, start: int, end: int, chunk_bytes: int) -> None:
    """Record for record, whatever formats and codecs stand in the fetch, from and up to where."""
    first = next((record.offset for record in read_one_by_one(data)), 0)
    start, end = max(first + start, 0), first + end
    expected = [
        (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers)
        for r in read_one_by_one(data, from_offset=start)
        if r.offset < end
    ]
    found = []
    for chunk in decode_records(data, start=start, end=end, chunk_bytes=chunk_bytes):
        table = record_batch(chunk, topic="t", partition=3)
        table.validate(full=True)
        for row, timestamp in zip(table.to_pylist(), chunk.timestamps.tolist(), strict=True):
            headers = [(header["key"], header["value"]) for header in row["headers"]]
            kept = (row["timestampType"], row["key"], row["value"], headers)
            found.append((row["offset"], timestamp, *kept))
    assert found == expected


def compressed(codec: str, value: bytes, first: int, count: int = 3) -> bytes:
    """A batch of `count` records from offset `first`."""
    rows: list[NewRecord] = [(b"k", value, [("h", value)], T)] * count
    batch = encode_batch(rows, compression=codec)
    return restamp(RecordBatch(batch), base_offset=first)


CODEC_NAMES = ["gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_columns_that_are_kept_are_not_written_over(codec: str) -> None:
    """However many chunks and fetch responses come after them."""
    kept = []
    for number in range(4):
        value = b"%d" % number * 500
        data = b"".join(compressed(codec, value, 3 * n) for n in range(6))
        kept += [(value, chunk) for chunk in decode_records(data, chunk_bytes=8000)]
    assert len(kept) > 8
    for value, chunk in kept:
        for row in range(len(chunk)):
            assert chunk.value(row) == value
            assert chunk.headers(row) == [("h", value)]


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_memory_that_nobody_reads_is_used_again(codec: str) -> None:
    """The same two buffers for any number of chunks."""
    data = b"".join(compressed(codec, b"v" * 500, 3 * n) for n in range(40))
    memory = set()
    for chunk in decode_records(data, chunk_bytes=8000):
        assert isinstance(chunk.buffer, memoryview)
        memory.add(id(chunk.buffer.obj))
    assert len(memory) <= MAX_SPARE_ARENAS + 1


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_a_batch_larger_than_a_chunk_stands_alone(codec: str) -> None:
    sizes = [10, 5000, 10, 10, 5000, 5000]
    parts = [compressed(codec, b"x" * size, 3 * n) for n, size in enumerate(sizes)]
    parts.append(compressed("none", b"x" * 7, 18))
    found = [
        (offset, value)
        for chunk in decode_records(b"".join(parts), chunk_bytes=9000)
        for offset, value in zip(
            chunk.offsets.tolist(), map(chunk.value, range(len(chunk))), strict=True
        )
    ]
    expected = [b"x" * size for size in [*sizes, 7] for _ in range(3)]
    assert found == list(enumerate(expected))


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_a_batch_beyond_the_bound_is_refused(codec: str) -> None:
    """Also where it would fit the memory at hand."""
    data = compressed(codec, b"v" * 500, 0)
    (chunk,) = decode_records(data)
    size = len(chunk.buffer)
    assert len(next(decode_records(data, max_decompressed_bytes=size))) == 3
    with pytest.raises(CorruptBatchError, match=f"bound of {size - 1} bytes"):
        next(decode_records(data, max_decompressed_bytes=size - 1))


def test_a_fault_is_told_under_the_bound_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record decoder, which tells it, decompresses the batch once more."""
    broken = bytearray(batch_bytes([PlainRecord(0, 0, b"k", b"v")]))
    broken[61] = 99
    bounds: list[int] = []
    read = RecordBatch.records

    def reading(batch: RecordBatch, **settings: Any) -> Any:
        bounds.append(settings["max_decompressed_bytes"])
        return read(batch, **settings)

    monkeypatch.setattr(RecordBatch, "records", reading)
    with pytest.raises(CorruptBatchError, match="record 0, length"):
        next(decode_records(resealed(bytes(broken)), max_decompressed_bytes=2**30))
    assert bounds == [2**30]


@pytest.mark.parametrize("codec", ["none", *CODEC_NAMES])
@pytest.mark.parametrize("form", [bytearray, lambda data: memoryview(bytearray(data))])
def test_other_bytes_like_buffers_are_read_and_may_change(codec: str, form: Any) -> None:
    given = form(compressed(codec, b"value", 0))
    (chunk,) = decode_records(given)
    given[:] = bytes(len(given))
    assert [chunk.value(row) for row in range(len(chunk))] == [b"value"] * 3


def test_what_is_no_buffer_is_refused() -> None:
    wrong: Any = "text"
    with pytest.raises(CorruptBatchError, match="bytes are wanted, not str"):
        next(decode_records(wrong))


def test_many_batches_are_walked_in_lockstep() -> None:
    """More batches than `_LEAST_RUNS`, of different record counts, empty ones too."""
    sizes = [(7 * n) % 5 for n in range(100)]
    data = b"".join(
        batch_bytes(
            [PlainRecord(i, i, b"k" * i, b"v" * (n * i), ((b"h", None),) * i) for i in range(size)],
            base_offset=10 * n,
        )
        for n, size in enumerate(sizes)
    )
    found = rows_of(data)
    assert found == read_records(data)
    assert len(found) == sum(sizes)


@pytest.mark.parametrize("place", [0, 17, 39])
def test_a_long_batch_among_many_short_ones_is_not_walked_in_lockstep(place: int) -> None:
    """A step for each of its records would cost as much as a step for all batches."""
    sizes = [2 + n % 3 for n in range(40)]
    sizes[place] = 5000
    data = b"".join(
        batch_bytes([PlainRecord(i, 0, None, b"v" * (i % 99)) for i in range(size)], base_offset=n)
        for n, size in enumerate(sizes)
    )
    assert rows_of(data) == read_records(data)
    starts, ends, position = [], [], 0
    while position < len(data):
        starts.append(position + 61)
        position += 12 + int(struct.unpack_from(">i", data, position + 8)[0])
        ends.append(position)
    steps = 0

    class Counting(np.ndarray[Any, Any]):
        def take(self, *args: Any, **kwargs: Any) -> Any:
            nonlocal steps
            steps += 1
            return super().take(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lockstep, "_RECORD_BYTES", lockstep._RECORD_BYTES.view(Counting))
        found = lockstep.record_ends(data, starts, ends, sizes)
    assert steps == 2, "then fewer batches are left than a step is worth"
    assert found[np.cumsum(sizes) - 1].tolist() == ends
    with pytest.raises(CorruptBatchError, match="do not fill"):
        lockstep.record_ends(
            data, starts, [end - (n == place) for n, end in enumerate(ends)], sizes
        )


def test_a_long_record_has_a_long_length() -> None:
    """Lengths of one to four bytes, by both ways to walk the records."""
    long = [PlainRecord(n, 0, None, b"x" * (7**n)) for n in range(8)]
    one = batch_bytes(long)
    assert rows_of(one) == read_records(one)
    many = b"".join(batch_bytes(long[:7], base_offset=7 * n) for n in range(40))
    assert rows_of(many) == read_records(many)


@both_ways
def test_a_record_with_very_many_headers_is_read() -> None:
    """Beside some that have a few, and some with none."""
    rows = [
        PlainRecord(n, 0, b"k", b"v", ((b"h", b"%d" % n),) * (5000 if n == 7 else n % 4))
        for n in range(60)
    ]
    data = batch_bytes(rows)
    assert rows_of(data) == read_records(data)


@both_ways
@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"\x01\x00", id="a null key"),
        pytest.param(b"\x02a\x03", id="a value's length of -2"),
        pytest.param(b"\x02a\x7f", id="a value that is too long"),
        pytest.param(b"\xff\xff\xff\xff\xff\x01", id="a length of six bytes"),
        pytest.param(b"\x80", id="a length that does not end"),
    ],
)
def test_a_broken_header_is_found_and_its_batch_named(header: bytes) -> None:
    record = b"\x00\x00\x00\x01\x01\x02" + header
    data = batch_bytes([], base_offset=30)
    whole = bytearray(data + bytes([2 * len(record)]) + record)
    struct.pack_into(">i", whole, 57, 1)
    with pytest.raises(CorruptBatchError, match="batch base offset 30"):
        rows_of(resealed(bytes(whole)))


@both_ways
@given(st.booleans().flatmap(lambda shared: records(shared=shared)), st.data())
def test_agrees_with_the_plain_reader_on_broken_records(
    inside: list[PlainRecord], draws: st.DataObject
) -> None:
    """One byte of the records is changed and the CRC is right again: the same rows, or an error."""
    data = bytearray(batch_bytes(inside, last_offset_delta=2000))
    at = draws.draw(st.integers(57, len(data) - 1))
    data[at] = draws.draw(st.integers(0, 255))
    broken = resealed(bytes(data))
    try:
        expected = read_records(broken)
        for row, _ in expected:
            for name, _ in row.headers:
                name.decode()
    except (Broken, UnicodeDecodeError):
        with pytest.raises(CorruptBatchError):
            rows_of(broken)
    else:
        # The broken byte may have made an offset negative: before all that is ever wanted.
        assert rows_of(broken) == [row for row in expected if row[0].offset >= 0]


@given(st.binary(max_size=200))
def test_noise_is_a_corrupt_batch_at_most(data: bytes) -> None:
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
def test_good_batches_come_before_the_error(behind: int) -> None:
    """Broken in its CRC, or in its records under a right CRC: what stands before is read."""
    good = [
        batch_bytes([PlainRecord(0, 0, b"k", b"v")], base_offset=n, last_offset_delta=0)
        for n in range(3 + behind)
    ]
    wrong_crc = bytearray(good[1])
    wrong_crc[-1] ^= 1
    wrong_records = bytearray(good[1])
    wrong_records[61] = 99
    for broken in (bytes(wrong_crc), resealed(bytes(wrong_records))):
        chunks = decode_records(b"".join([good[0], broken, *good[2:]]))
        assert [row.offset for row, _ in rows_of_chunk(next(chunks))] == [0]
        with pytest.raises(CorruptBatchError, match="batch base offset 1"):
            next(chunks)


def test_a_batch_with_too_many_records_is_refused_before_it_is_read() -> None:
    data = bytearray(batch_bytes([PlainRecord(0, 0, b"k", b"v")]))
    struct.pack_into(">i", data, 57, 2**31 - 1)
    with pytest.raises(CorruptBatchError, match="2147483647 records do not fit"):
        rows_of(resealed(bytes(data)))


@pytest.mark.parametrize("to_arrow", [record_batch, event_batch])
def test_a_header_name_that_is_not_utf8_is_an_error_of_its_record(to_arrow: Any) -> None:
    rows = [PlainRecord(n, 0, b"k", b"v", ((b"\xff" if n == 3 else b"h", b"1"),)) for n in range(5)]
    (chunk,) = decode_records(batch_bytes(rows, base_offset=40))
    with pytest.raises(CorruptBatchError, match="record at offset 43: name is not UTF-8"):
        to_arrow(chunk, topic="t", partition=0)
    assert chunk.headers(2) == [("h", b"1")]
    with pytest.raises(CorruptBatchError, match="record at offset 43: name is not UTF-8"):
        chunk.headers(3)


@pytest.mark.parametrize("start", [0, 11, 21])
@pytest.mark.parametrize("to_arrow", [record_batch, event_batch])
def test_good_batches_come_before_one_with_a_header_name_that_is_not_utf8(
    to_arrow: Any, start: int
) -> None:
    names = [b"h", b"h", b"\xff", b"h"]
    parts = [
        batch_bytes(
            [PlainRecord(n, 0, b"k", b"v", ((name, b"1"),)) for n in range(2)],
            base_offset=base * 10,
            last_offset_delta=1,
        )
        for base, name in enumerate(names)
    ]
    (chunk,) = decode_records(b"".join(parts), start=start)
    made = good_batches(chunk, partial(to_arrow, topic="t", partition=0))
    found: list[int] = []
    words = f"offset {max(start, 20)}: name is not UTF-8"
    with pytest.raises(CorruptBatchError, match=words) as told:
        found.extend(offset for batch in made for offset in batch["offset"].to_pylist())
    assert found == [offset for offset in (0, 1, 10, 11) if offset >= start]
    assert (told.value.offset, told.value.base_offset) == (2 * len(parts[0]), 20)


def test_offsets_may_go_backwards_inside_a_batch() -> None:
    """Kafka writes no such batch, and its classes read it."""
    data = batch_bytes(
        [PlainRecord(0, 0, b"a", b""), PlainRecord(-5, 0, b"b", b""), PlainRecord(2, 0, b"c", b"")],
        base_offset=10,
        last_offset_delta=2,
    )
    for start, offsets in ((0, [10, 5, 12]), (6, [10, 12]), (10, [10, 12]), (11, [12])):
        (chunk,) = decode_records(data, start=start)
        assert chunk.offsets.tolist() == offsets
        assert [record.offset for record in read_one_by_one(data, from_offset=start)] == offsets


def test_what_lies_beyond_arrow_s_offsets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = batch_bytes([PlainRecord(0, 0, b"k", b"v")])
    monkeypatch.setattr(columnar, "_MAX_BUFFER_BYTES", len(data))
    assert len(next(decode_records(data))) == 1
    monkeypatch.setattr(columnar, "_MAX_BUFFER_BYTES", len(data) - 1)
    with pytest.raises(CorruptBatchError, match="2 GiB at a time are the most"):
        next(decode_records(data))


def test_a_broken_message_comes_after_the_good_ones() -> None:
    wrong_crc = message(offset=2, crc=7)
    chunks = decode_records(message_set(2) + wrong_crc + message(offset=3))
    assert next(chunks).offsets.tolist() == [0, 1]
    with pytest.raises(CorruptBatchError, match="CRC"):
        next(chunks)


def test_message_sets_come_in_chunks_too() -> None:
    """Of as many bytes as they take uncompressed: also empty ones take some."""
    chunks = list(decode_records(message_set(10, value=b"v" * 99), chunk_bytes=410))
    assert [chunk.offsets.tolist() for chunk in chunks] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    wrapper = message_set(10, value=b"", compression="gzip")
    chunks = list(decode_records(wrapper * 5, chunk_bytes=800))
    assert [len(chunk) for chunk in chunks] == [20, 20, 10]


def test_a_timestamp_beyond_microseconds_is_null() -> None:
    data = batch_bytes([PlainRecord(0, 0, None, None)], base_timestamp=2**62)
    (chunk,) = decode_records(data)
    batch = record_batch(chunk, topic="t", partition=0)
    assert batch["timestamp"].to_pylist() == [None]
    assert chunk.timestamps.tolist() == [2**62]


def test_only_the_named_columns_are_made() -> None:
    (chunk,) = decode_records(batch_bytes([PlainRecord(0, 0, b"k", b"v")]))
    batch = record_batch(chunk, topic="t", partition=0, names=["offset", "key"])
    assert batch.to_pydict() == {"offset": [0], "key": [b"k"]}
