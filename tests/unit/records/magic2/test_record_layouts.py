"""Tests that records read by a learned layout equal records that are read one by one.

A layout is the sizes of all fields of a record. Records of equal length usually share a layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import Record, RecordBatch, encode_batch
from kproto.records.magic2 import record_layouts as layouts_module
from kproto.records.magic2.record_decoding import check_records
from kproto.records.magic2.record_layouts import RECORDS, VALUES, Layouts, delta_of
from kproto.records.varints import VARINTS, encode_varint, read_varint
from kproto.wire.errors import CorruptBatchError
from tests.support.selection import rest_slow
from tests.unit.records.batches import COMPILED, T, batch_bytes, new_records, record_bytes

Outcome = tuple[str, Any]

#: Batches of any offset deltas in this range are read.
LAST_DELTA = 1 << 20


@pytest.mark.parametrize(
    ("count", "known"),
    [(1, 8192), (8192, 8192), (8193, 16384), (16384, 16384), (20_000, 32768), (1 << 20, 65536)],
)
def test_table_of_offset_varints_is_no_larger_than_batches_need(
    count: int, known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts_module, "_offsets", [*VARINTS, b""])
    varints = layouts_module.offset_varints(count)
    assert varints == [*map(encode_varint, range(known)), b""]
    assert layouts_module.offset_varints(1) is varints


def fields(record: Record) -> tuple[object, ...]:
    """Returns all fields of a record; the headers are bytes that have not been decoded."""
    return (record.offset, record.timestamp, record.key, record.value, record._headers)


def outcome(read: Callable[[], object]) -> Outcome:
    """Returns the result of `read`, or the text and the offsets of its error."""
    try:
        return "read", read()
    except CorruptBatchError as error:
        return "broken", (str(error), error.offset, error.base_offset)


def one_by_one(payload: bytes, count: int) -> list[tuple[object, ...]]:
    """Returns the records, after reading each from a batch of its own, without a layout.

    Raises CorruptBatchError if `payload` does not have `count` valid records.
    """
    found: list[tuple[object, ...]] = []
    pos = 0
    try:
        for _ in range(count):
            length, after = read_varint(payload, pos)
            end = after + (length >> 1)
            if length & 1 or end > len(payload):
                raise ValueError
            alone = RecordBatch(batch_bytes(payload[pos:end], last_offset_delta=LAST_DELTA))
            (record,) = alone.records()
            if found and record.offset <= found[-1][0]:  # type: ignore[operator]
                raise ValueError
            found.append(fields(record))
            pos = end
        if pos != len(payload):
            raise ValueError
    except (ValueError, IndexError):
        raise CorruptBatchError("broken") from None
    return found


def sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else encode_varint(len(data)) + data


longer_than_needed = {b"\x00": b"\x80\x00", b"\x02": b"\x82\x80\x00"}
deltas = st.sampled_from([b"\x00", b"\x00", b"\x02", b"\x01", b"\x80\x01", b"\x80\x80\x01"]) | (
    st.sampled_from(list(longer_than_needed.values()))
)
keys = st.sampled_from([b"k", b"l", None, b"kk", b"", bytes(70)]).map(sized)
values = st.sampled_from([b"v", b"w", None, b"", b"vvvv", bytes(100)]).map(sized)
blocks = st.sampled_from([b"\x00", b"\x00", b"\x02\x02a\x02b", b"\x02\x02a\x01"])
steps = st.sampled_from([1, 1, 1, 1, 1, 1, 2, 60, 8000, -3])


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, int]:
    """Draws encoded records, sometimes broken, and their count.

    The records have up to four layouts.
    """
    kinds = draw(st.lists(st.tuples(deltas, keys, values, blocks), min_size=1, max_size=4))
    count = draw(st.integers(1, 150))
    chosen = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=1, max_size=9))
    jumps = draw(st.dictionaries(st.integers(0, count), steps, max_size=4))
    parts = []
    at = 0
    for index in range(count):
        delta, key, value, block = kinds[chosen[index % len(chosen)]]
        parts.append(
            record_bytes(
                timestamp_delta=delta,
                offset_delta=encode_varint(at),
                key=key,
                value=value,
                header_block=block,
            )
        )
        at += jumps.get(index, 1)
    payload = bytearray(b"".join(parts))
    for position, byte in draw(
        st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=2)
    ):
        payload[position % len(payload)] = byte
    return bytes(payload), count


@given(payloads())
def test_records_read_by_layout_equal_records_read_one_by_one(made: tuple[bytes, int]) -> None:
    payload, count = made
    data = batch_bytes(payload, record_count=count, last_offset_delta=LAST_DELTA)
    expected = outcome(lambda: one_by_one(payload, count))
    for _ in range(2):  # the first read learns layouts, the second one uses them
        found = outcome(lambda: [fields(record) for record in RecordBatch(data).records()])
        assert found[0] == expected[0]
        if found[0] == "read":
            assert found == expected
        else:
            with pytest.raises(ValueError) as reason:
                check_records(payload, 0, len(payload), count, LAST_DELTA)
            assert str(reason.value) in found[1][0]


@given(payloads(), st.none() | st.integers(-5, 200), st.sampled_from([0, 7, 1 << 61]))
def test_values_and_errors_equal_those_of_the_records(
    made: tuple[bytes, int], from_offset: int | None, base_offset: int
) -> None:
    payload, count = made
    data = batch_bytes(
        payload, record_count=count, last_offset_delta=LAST_DELTA, base_offset=base_offset
    )
    if from_offset is not None:
        from_offset += base_offset
    batch = RecordBatch(data)
    for _ in range(2):
        assert outcome(lambda: batch.values(from_offset=from_offset)) == outcome(
            lambda: [record.value for record in batch.records(from_offset=from_offset)]
        )


@given(payloads(), st.integers(1, 160), st.none() | st.integers(0, 100))
def test_partial_reads_equal_the_whole_read(
    made: tuple[bytes, int], most: int, from_offset: int | None
) -> None:
    payload, count = made
    batch = RecordBatch(batch_bytes(payload, record_count=count, last_offset_delta=LAST_DELTA))

    def in_parts() -> list[tuple[object, ...]]:
        reader = batch.reader(from_offset=from_offset)
        found = reader.read(most)
        while reader.remaining:
            before = reader.remaining
            found += reader.read(most)
            assert reader.remaining == max(before - most, 0)
        return list(map(fields, found))

    def whole() -> list[tuple[object, ...]]:
        return list(map(fields, batch.records(from_offset=from_offset)))

    assert outcome(in_parts) == outcome(whole)


LIKE = [
    record_bytes(offset_delta=encode_varint(at), key=sized(b"kk"), value=sized(b"vv"))
    for at in range(64)
]
#: Key, value and header block of records that have the size of those in `LIKE`, but another layout.
OTHERS = {
    "a longer key": (b"kkk", b"v", b"\x00"),
    "a shorter key": (b"k", b"vvv", b"\x00"),
    "no key": (None, b"vvvv", b"\x00"),
    "no value": (b"kkkk", None, b"\x00"),
    "an empty value": (b"kkkk", b"", b"\x00"),
    "a header": (b"", b"", b"\x02\x02a\x02b"),
    "no room for a header": (b"", b"v", b"\x02\x02a\x01"),
    "a header block of zeros": (b"k", b"vv", b"\x00\x00"),
}


def check_run(payload: bytes) -> None:
    """Checks that `records`, `values` and partial reads have the result of reading one by one."""
    count = len(LIKE)
    expected = outcome(lambda: one_by_one(payload, count))
    batch = RecordBatch(batch_bytes(payload, record_count=count, last_offset_delta=LAST_DELTA))
    for _ in range(2):
        found = outcome(lambda: [fields(record) for record in batch.records()])
        assert found[0] == expected[0]
        if found[0] == "read":
            assert found == expected
            assert batch.values() == [value for _, _, _, value, _ in expected[1]]
            reader = batch.reader()
            parts = [reader.read(part) for part in (3, 30, 17, 64)]
            assert [fields(record) for part in parts for record in part] == expected[1]
        else:
            assert outcome(batch.values) == found


@pytest.mark.parametrize("at", [0, 1, 2, 16, 17, 18, 40, 62, 63])
@pytest.mark.parametrize("kind", OTHERS)
def test_another_record_of_the_same_size_ends_a_run(at: int, kind: str) -> None:
    key, value, block = OTHERS[kind]
    other = record_bytes(
        offset_delta=encode_varint(at), key=sized(key), value=sized(value), header_block=block
    )
    check_run(b"".join([*LIKE[:at], other, *LIKE[at + 1 :]]))


@pytest.mark.parametrize("at", rest_slow([17, 1, 40, 63], 1))
def test_any_byte_of_a_record_in_a_run_may_differ(at: int) -> None:
    size = len(LIKE[at])
    for position in range(size):
        for byte in {
            0,
            1,
            2,
            0x7F,
            0x80,
            0x81,
            0xFF,
            LIKE[at][position] ^ 1,
            LIKE[at][position] + 2,
        }:
            other = bytearray(LIKE[at])
            other[position] = byte
            check_run(b"".join([*LIKE[:at], other, *LIKE[at + 1 :]]))


LONG = [
    record_bytes(
        timestamp_delta=b"\x80\x01",
        offset_delta=encode_varint(at),
        key=sized(b"kk"),
        value=sized(b"vv"),
        header_block=b"\x02\x02a\x02b",
    )
    for at in range(700)
]


@given(st.integers(0, len(LONG) - 1), st.integers(0, len(LONG[-1]) - 1), st.integers(0, 255))
def test_any_byte_of_a_long_run_may_differ(at: int, position: int, byte: int) -> None:
    """Changes one byte of many similar records, which have deltas of two bytes, and headers."""
    other = bytearray(LONG[at])
    other[position % len(other)] = byte
    payload = b"".join([*LONG[:at], other, *LONG[at + 1 :]])
    expected = outcome(lambda: one_by_one(payload, len(LONG)))
    data = batch_bytes(payload, record_count=len(LONG), last_offset_delta=LAST_DELTA)
    for _ in range(2):
        batch = RecordBatch(data)
        found = outcome(lambda batch=batch: [fields(each) for each in batch.records()])  # type: ignore[misc]
        values = outcome(batch.values)
        assert found[0] == values[0] == expected[0]
        if found[0] == "read":
            assert found == expected
            assert values[1] == [value for _, _, _, value, _ in expected[1]]


@pytest.mark.parametrize("cut", [1, 5, 10, 11])
def test_a_run_that_ends_too_early_or_too_late_is_read_one_by_one(cut: int) -> None:
    payload = b"".join(LIKE)
    check_run(payload[:-cut])
    check_run(payload + payload[:cut])
    check_run(payload + LIKE[-1])


@given(new_records)
def test_values_of_random_records_are_returned(records: list[Any]) -> None:
    many = records * (1 + 40 // len(records))
    for compression in ("none", "gzip"):
        batch = RecordBatch(encode_batch(many, compression=compression))
        assert batch.values() == [value for _, value, _, _ in many]
        assert batch.values(from_offset=3) == [value for _, value, _, _ in many[3:]]


@pytest.mark.parametrize("count", rest_slow([8192, 8191, 8193, 65535, 65536, 65537, 70_000], 1))
def test_a_batch_of_very_many_records_is_read(count: int) -> None:
    batch = RecordBatch(encode_batch([(None, b"v", (), T)] * count, base_offset=5))
    records = batch.records()
    assert [record.offset for record in records] == list(range(5, 5 + count))
    assert {(record.key, record.value, record.timestamp) for record in records} == {(None, b"v", T)}
    assert batch.values() == [b"v"] * count


@pytest.mark.parametrize("jump", [8100, 8191, 8192, 65_400, 65_535, 65_536, 1_000_000])
def test_distant_offsets_after_compaction_are_read(jump: int) -> None:
    offsets = [*range(70), *range(jump, jump + 300)]
    payload = b"".join(record_bytes(offset_delta=encode_varint(offset)) for offset in offsets)
    batch = RecordBatch(batch_bytes(payload, record_count=370, last_offset_delta=offsets[-1]))
    assert [record.offset for record in batch.records()] == offsets
    assert batch.values() == [b"v"] * 370


def test_timestamps_of_similar_records_may_differ() -> None:
    times = [T, *(T + 70 * number for number in range(1, 100)), T + 9_000_000, T - 5, T + 70]
    batch = RecordBatch(encode_batch([(b"k", b"v", (), time) for time in times]))
    assert [record.timestamp for record in batch.records()] == times


def test_partial_reads_return_the_log_append_time() -> None:
    data = encode_batch([(b"k", b"v", (), T)] * 100, log_append_time=T + 5)
    reader = RecordBatch(data).reader(topic="t", partition=3)
    for record in [*reader.read(60), *reader.read(60)]:
        assert (record.timestamp, record.timestamp_type) == (T + 5, 1)
        assert (record.topic, record.partition) == ("t", 3)


def test_a_delta_is_a_whole_varint() -> None:
    assert delta_of(b"\x02") == 2
    assert delta_of(b"\x82\x00") == 2
    assert delta_of(b"\x80") == -1
    assert delta_of(b"\x02\x02") == -1
    assert delta_of(b"") == -1


@pytest.mark.skipif(COMPILED, reason="a bound that was compiled in cannot be another")
def test_layouts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = 100
    monkeypatch.setattr(layouts_module, "_MAX_LAYOUTS", bound)
    layouts = Layouts(with_keys=True)
    find = layouts.of_sizes(1, 1)
    for size in range(8 * bound):
        value = bytes(size // 8)
        find = layouts.learn(record_bytes(key=sized(bytes(size % 8)), value=sized(value)), 0)
    assert 0 < layouts.count() <= bound
    assert find(record_bytes(key=sized(bytes(7)), value=sized(value))[:2]) is not None


def test_records_and_values_learn_separate_layouts() -> None:
    """A layout that `records` has learned extracts other fields than `values` needs."""
    batch = RecordBatch(encode_batch([(b"12345", b"v" * 33, (), T)] * 64))
    records = batch.records()
    assert batch.values() == [b"v" * 33] * 64
    assert records == batch.records()
    assert RECORDS is not VALUES


def test_a_partial_read_never_reads_the_next_batch() -> None:
    """The batch has a correct checksum, but its 400th record claims bytes of the next batch."""
    value = sized(b"v" * 30)
    good = [record_bytes(offset_delta=encode_varint(at), value=value) for at in range(400)]
    good[-1] = record_bytes(
        offset_delta=encode_varint(399), value=encode_varint(5_000) + b"v", length=5_010
    )
    broken = batch_bytes(b"".join(good), record_count=1_000, last_offset_delta=999)
    beyond = encode_batch([(b"k", b"STOLEN", (), T)] * 1_000)
    reader = RecordBatch(broken + beyond).reader()
    with pytest.raises(CorruptBatchError):
        reader.read(500)


def test_an_exhausted_reader_returns_no_records() -> None:
    reader = RecordBatch(encode_batch([(b"k", b"v", (), T)] * 5)).reader()
    parts = []
    while part := reader.read(2):
        parts.append(len(part))
    assert parts == [2, 2, 1]
    assert reader.read(2) == []


@pytest.mark.parametrize("most", [1, 3, 40, 51, 100])
@pytest.mark.parametrize("count", [3, 70, 400])
@pytest.mark.parametrize("odd", [-(2**31), -7, 0, 2, 60, 10_000, 2**31 - 1])
def test_records_out_of_their_place_are_refused(odd: int, count: int, most: int) -> None:
    """One record has a wrong offset delta: no producer writes this, but a broker may store it."""
    at = min(50, count - 2)
    deltas = [*range(at), odd if odd != 0 else at - 1, *range(at + 1, count)]
    payload = b"".join(record_bytes(offset_delta=encode_varint(delta)) for delta in deltas)
    batch = RecordBatch(
        batch_bytes(payload, record_count=count, last_offset_delta=count - 1, base_offset=1000)
    )
    reason = f"record {at}, offset delta: {deltas[at]} is outside of {at} to {at}, the range"
    for _ in range(2):  # the second time with the layouts that the first read has learned
        for read in (batch.records, batch.values):
            with pytest.raises(CorruptBatchError, match=reason):
                read()
        reader = batch.reader()
        before = at // most * most
        found = [record.offset for _ in range(at // most) for record in reader.read(most)]
        assert found == [*range(1000, 1000 + before)]
        with pytest.raises(CorruptBatchError, match=reason):
            reader.read(most)


@pytest.mark.parametrize("count", [3, 70, 400])
def test_rising_offsets_with_gaps_are_read(count: int) -> None:
    """Compaction leaves gaps, also after the last record."""
    deltas = [at * 3 + (at > count // 2) * 100_000 for at in range(count)]
    payload = b"".join(record_bytes(offset_delta=encode_varint(delta)) for delta in deltas)
    batch = RecordBatch(
        batch_bytes(payload, record_count=count, last_offset_delta=200_000, base_offset=7)
    )
    for _ in range(2):
        assert [record.offset - 7 for record in batch.records()] == deltas
        assert len(batch.values()) == count


def test_more_records_than_offsets_are_refused() -> None:
    batch = RecordBatch(batch_bytes(record_bytes() * 3, record_count=3, last_offset_delta=1))
    for read in (batch.records, batch.values, batch.reader):
        with pytest.raises(CorruptBatchError, match="3 records, but a last offset delta of 1"):
            read()
