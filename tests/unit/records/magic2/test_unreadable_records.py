"""Tests that the readable records of a batch are found although other records are unreadable."""

from __future__ import annotations

import gzip
from functools import partial
from operator import le

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import CODECS, Record, RecordBatch, encode_batch, encode_message_set
from kproto.records.legacy.message_set import LegacyBatch
from kproto.records.magic2.unreadable_records import (
    UnreadableRecordsReader,
    check_as_broker,
    split_batch,
)
from kproto.records.varints import encode_varint
from kproto.wire.errors import CorruptBatchError, UnreadableRecordError
from tests.unit.records.batches import T, batch_bytes, new_records, record_bytes

Item = Record | UnreadableRecordError


def numbered(at: int, **parts: bytes | int) -> bytes:
    return record_bytes(offset_delta=encode_varint(at), **parts)  # type: ignore[arg-type]


def batch_of(payload: bytes, count: int, *, codec: int = 0, base_offset: int = 10) -> RecordBatch:
    data = batch_bytes(
        CODECS[codec].compress(payload, CODECS[codec].default_level),
        attributes=codec,
        record_count=count,
        last_offset_delta=count - 1,
        base_offset=base_offset,
    )
    return RecordBatch(data)


def shown(items: list[Item]) -> list[object]:
    """Returns a record's offset, or an error's (offset, next offset, content), for each item."""
    return [
        (item.record_offset, item.next_offset, item.content)
        if isinstance(item, UnreadableRecordError)
        else item.offset
        for item in items
    ]


GOOD = [numbered(at) for at in range(4)]

ODD: dict[str, tuple[bytes, int, list[object]]] = {
    "header count": (
        GOOD[0] + numbered(1, header_block=b"\x01") + GOOD[2],
        3,
        [10, (11, 12, "record"), 12],
    ),
    "null header name": (
        GOOD[0] + numbered(1, header_block=b"\x02\x01\x00") + numbered(2, header_block=b"\x01"),
        3,
        [10, (11, 12, "record"), (12, 13, "record")],
    ),
    "two in a row": (
        numbered(0, header_block=b"\x01") + numbered(1, header_block=b"\x01") + GOOD[2],
        3,
        [(10, 11, "record"), (11, 12, "record"), 12],
    ),
    "length too small": (
        GOOD[0] + numbered(1, length=2) + GOOD[2],
        3,
        [10, (11, 12, "record"), 12],
    ),
    "length too large": (
        GOOD[0] + numbered(1, length=60) + GOOD[2],
        3,
        [10, (11, 12, "record"), 12],
    ),
    "negative length": (numbered(0, length=-1) + GOOD[1], 2, [(10, 12, "records")]),
    "offset too low": (
        GOOD[0] + GOOD[1] + numbered(0, header_block=b"\x01") + GOOD[3],
        4,
        [10, 11, (12, 13, "record"), 13],
    ),
    "no bounds": (
        GOOD[0] + numbered(1, length=60, header_block=b"\x01") + GOOD[2] + GOOD[3],
        4,
        [10, (11, 14, "records")],
    ),
    "offset beyond the batch": (
        GOOD[0] + numbered(1000) + GOOD[2],
        3,
        [10, (11, 12, "record"), 12],
    ),
    "largest offset": (
        GOOD[0] + numbered(2**31 - 1) + GOOD[2],
        3,
        [10, (11, 12, "record"), 12],
    ),
    "offset of the next record": (
        GOOD[0] + numbered(2) + GOOD[2],
        3,
        [10, (11, 12, "record"), 12],
    ),
    "offset twice": (GOOD[0] + GOOD[0] + GOOD[2], 3, [10, (11, 12, "record"), 12]),
    "negative offset": (numbered(-1) + GOOD[1] + GOOD[2], 3, [(10, 11, "record"), 11, 12]),
    "offset beyond the batch at its end": (
        GOOD[0] + GOOD[1] + numbered(7),
        3,
        [10, 11, (12, 13, "record")],
    ),
    "bytes after the last": (GOOD[0] + GOOD[1] + b"\0", 2, [10, (11, 12, "records")]),
    "a record is missing": (GOOD[0] + GOOD[1], 3, [10, 11, (12, 13, "batch")]),
    "the last is unreadable": (
        GOOD[0] + numbered(1, header_block=b"\x01"),
        2,
        [10, (11, 12, "record")],
    ),
}


#: Brokers compare the offsets of compressed batches only.
ODD_OFFSETS = [
    "offset beyond the batch",
    "largest offset",
    "offset of the next record",
    "offset twice",
    "negative offset",
    "offset beyond the batch at its end",
]


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("kind", ODD)
def test_unreadable_records_are_found_among_the_others(kind: str, codec: int) -> None:
    payload, count, expected = ODD[kind]
    batch = batch_of(payload, count, codec=codec)
    items = split_batch(batch, topic="t", partition=3)
    assert shown(items) == expected
    for item in items:
        if isinstance(item, UnreadableRecordError):
            assert item.raw == batch.raw if item.content == "batch" else item.raw in payload
            assert str(item).startswith(f"t[3] at offset {item.record_offset}: ")
        else:
            assert (item.topic, item.partition, item.value) == ("t", 3, b"v")


def test_last_error_covers_offsets_without_records() -> None:
    """Compaction has removed the last records, so the error's next offset is after the batch."""
    data = batch_bytes(numbered(0, header_block=b"\x01"), last_offset_delta=8)
    assert shown(split_batch(RecordBatch(data))) == [(0, 9, "record")]


def test_gaps_of_compaction_leave_room_for_the_later_records() -> None:
    deltas = [0, 90, 20, 97, 98]
    payload = b"".join(map(numbered, deltas))
    data = batch_bytes(payload, record_count=5, last_offset_delta=99)
    expected = [0, 90, (91, 92, "record"), 97, 98]
    assert shown(split_batch(RecordBatch(data))) == expected
    payload = b"".join(map(numbered, [0, 98, 97, 98, 99]))
    data = batch_bytes(payload, record_count=5, last_offset_delta=99)
    assert shown(split_batch(RecordBatch(data))) == [0, (1, 2, "record"), 97, 98, 99]


def test_batch_with_more_records_than_offsets_is_one_error() -> None:
    data = batch_bytes(GOOD[0] + GOOD[1], record_count=2, last_offset_delta=0, base_offset=4)
    (error,) = split_batch(RecordBatch(data))
    assert isinstance(error, UnreadableRecordError)
    assert (shown([error]), error.raw) == ([(4, 5, "batch")], data)


@pytest.mark.parametrize("codec", CODECS[1:], ids=lambda codec: codec.name)
def test_batch_that_cannot_be_decompressed_is_one_error(codec: object) -> None:
    data = batch_bytes(
        b"\xff" * 9,
        attributes=CODECS.index(codec),
        record_count=3,
        last_offset_delta=2,
    )
    (error,) = split_batch(RecordBatch(data))
    assert isinstance(error, UnreadableRecordError)
    assert (shown([error]), error.raw) == ([(0, 3, "batch")], data)


def test_second_lz4_frame_is_ignored() -> None:
    """Kafka's Lz4BlockInputStream reads only the first frame."""
    frame = CODECS[3].compress(GOOD[0], 1)
    batch = RecordBatch(batch_bytes(frame + frame, attributes=3))
    assert [record.offset for record in batch.records()] == [0]
    assert shown(split_batch(batch)) == [0]


def test_broken_message_set_is_one_error() -> None:
    data = bytearray(encode_message_set([(b"k", b"v", (), T)] * 2, magic=1, compression="gzip"))
    data[-12] ^= 0xFF
    batch = LegacyBatch(bytes(data))
    (error,) = split_batch(batch, topic="t", partition=0)
    assert isinstance(error, UnreadableRecordError)
    assert shown([error]) == [(batch.base_offset, batch.next_offset, "batch")]


@given(new_records)
def test_valid_batches_have_no_unreadable_record(records: list[object]) -> None:
    batch = RecordBatch(encode_batch(records, compression="gzip", base_offset=5))  # type: ignore[arg-type]
    assert split_batch(batch) == batch.records()


def test_unreadable_batch_is_reported_if_reading_starts_inside_it() -> None:
    payload = b"no gzip stream"
    batch = RecordBatch(batch_bytes(payload, attributes=1, record_count=10, last_offset_delta=9))
    for from_offset in (0, 5, 9):
        reader = UnreadableRecordsReader(batch, partial(le, from_offset))
        with pytest.raises(UnreadableRecordError) as caught:
            reader.read(3)
        assert shown([caught.value]) == [(from_offset, 10, "batch")]
    assert not UnreadableRecordsReader(batch, partial(le, 10)).remaining


@given(st.binary(max_size=80), st.integers(0, 12), st.booleans(), st.integers(0, 40))
def test_reader_returns_every_offset_once_for_any_bytes(
    noise: bytes, count: int, prefixed: bool, from_offset: int
) -> None:
    payload = GOOD[0] + GOOD[1] + noise if prefixed else noise
    batch = RecordBatch(
        batch_bytes(payload, record_count=count, last_offset_delta=max(count - 1, 0))
    )
    items = split_batch(batch)
    reader = UnreadableRecordsReader(batch, lambda offset: offset >= from_offset)
    found: list[Item] = []
    while reader.remaining:
        try:
            found += reader.read(3)
        except UnreadableRecordError as error:
            found.append(error)
    wanted: list[Item] = []
    for item in items:
        if not isinstance(item, UnreadableRecordError):
            wanted += [item] if item.offset >= from_offset else []
        elif item.record_offset >= from_offset:
            wanted.append(item)
        elif item.content != "record" and item.next_offset > from_offset:
            item.record_offset = from_offset  # some of its offsets are wanted
            wanted.append(item)
    assert shown(found) == shown(wanted)
    errors = [item for item in items if isinstance(item, UnreadableRecordError)]
    assert all(error.next_offset > error.record_offset for error in errors)
    try:
        records = batch.records(eager_headers=True)
    except CorruptBatchError:
        assert errors
    else:
        assert items == records


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("kind", ODD)
def test_brokers_verify_compressed_records_only_in_part(kind: str, codec: int) -> None:
    payload, count, _ = ODD[kind]
    batch = batch_of(payload, count, codec=codec, base_offset=0)
    if kind in ODD_OFFSETS if not codec else kind.startswith("length"):
        check_as_broker(batch)
    else:
        with pytest.raises(CorruptBatchError):
            check_as_broker(batch)


def test_brokers_require_consecutive_offsets_in_compressed_batches() -> None:
    records = GOOD[0] + GOOD[2]
    check_as_broker(batch_of(records, 2, base_offset=0))
    with pytest.raises(CorruptBatchError, match="not consecutive"):
        check_as_broker(batch_of(records, 2, codec=1, base_offset=0))
    with pytest.raises(CorruptBatchError, match="not consecutive"):
        check_as_broker(batch_of(GOOD[0] + numbered(0, length=2), 2, codec=1, base_offset=0))


def test_brokers_refuse_data_that_cannot_be_decompressed() -> None:
    data = gzip.compress(GOOD[0])[:-1]
    with pytest.raises(CorruptBatchError):
        check_as_broker(RecordBatch(batch_bytes(data, attributes=1)))
