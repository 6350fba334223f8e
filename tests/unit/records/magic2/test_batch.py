"""Tests reading stored batches, seeking in them, and changing their timestamps."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    LegacyBatch,
    NewRecord,
    RecordBatch,
    down_convert,
    encode_batch,
    read_batches,
    read_records,
    restamp,
)
from kproto.wire.errors import CorruptBatchError, EncodeError

from ..batches import COMPILED, T, batch_bytes, contents, new_records, record_bytes


@pytest.mark.parametrize("wrong", [b"bytes of a batch", None])
def test_other_objects_than_batches_are_refused(wrong: Any) -> None:
    error = TypeError if COMPILED else EncodeError
    with pytest.raises(error, match="RecordBatch"):
        restamp(wrong, base_offset=1)
    with pytest.raises(error, match="RecordBatch"):
        down_convert(wrong, 1)


def numbered(first: int, count: int, compression: str = "none") -> bytes:
    records: list[NewRecord] = [(None, b"%d" % (first + i), (), T + i) for i in range(count)]
    return encode_batch(records, base_offset=first, compression=compression)


def values(data: bytes, from_offset: int = 0) -> list[int]:
    return [int(record.value or b"") for record in read_records(data, from_offset=from_offset)]


THREE = numbered(10, 3) + numbered(13, 4, "gzip") + numbered(17, 2)


def test_several_batches_of_one_fetch_are_read() -> None:
    batches = list(read_batches(THREE))
    assert [(b.base_offset, b.last_offset, b.record_count) for b in batches] == [
        (10, 12, 3),
        (13, 16, 4),
        (17, 18, 2),
    ]
    assert [b.position for b in batches] == [
        0,
        len(numbered(10, 3)),
        len(THREE) - len(batches[2].raw),
    ]
    assert b"".join(b.raw for b in batches) == THREE
    assert values(THREE) == list(range(10, 19))


def test_an_empty_fetch_has_no_batches() -> None:
    assert list(read_batches(b"")) == []
    assert list(read_batches(b"", allow_partial=False)) == []


@pytest.mark.parametrize("cut", range(1, len(numbered(17, 2))))
def test_a_partial_last_batch_ends_the_fetch(cut: int) -> None:
    data = THREE[:-cut]
    assert values(data) == list(range(10, 17))
    batches = read_batches(data, allow_partial=False)
    assert next(batches).base_offset == 10
    assert next(batches).base_offset == 13
    with pytest.raises(CorruptBatchError, match="ends inside a batch"):
        next(batches)


def test_records_before_the_fetch_offset_are_skipped() -> None:
    for offset in range(8, 21):
        assert values(THREE, from_offset=offset) == list(range(max(offset, 10), 19))


def test_valid_batches_precede_the_error_of_a_broken_one() -> None:
    at = len(numbered(10, 3))
    broken = bytearray(THREE)
    broken[at + 70] ^= 1
    batches = read_batches(bytes(broken))
    assert next(batches).base_offset == 10
    with pytest.raises(CorruptBatchError, match="CRC") as caught:
        next(batches)
    assert (caught.value.offset, caught.value.base_offset) == (at, 13)
    assert list(read_batches(bytes(broken), check_crc=False))[2].base_offset == 17


def test_the_checksum_is_checked_by_default() -> None:
    broken = bytearray(numbered(10, 3))
    broken[17] ^= 1
    data = bytes(broken)
    with pytest.raises(CorruptBatchError, match="CRC"):
        list(read_records(data))
    with pytest.raises(CorruptBatchError, match="CRC"):
        list(read_batches(data))
    assert len(list(read_records(data, check_crc=False))) == 3
    assert len(list(read_batches(data, check_crc=False))) == 1


def test_other_bytes_like_buffers_are_read() -> None:
    for buffer in (bytearray(THREE), memoryview(THREE)):
        data: Any = buffer
        assert values(data) == list(range(10, 19))


@pytest.mark.parametrize("read", [lambda data: list(read_batches(data)), RecordBatch, LegacyBatch])
def test_a_released_buffer_is_refused(read: Callable[[Any], object]) -> None:
    data = memoryview(THREE)
    data.release()
    with pytest.raises(CorruptBatchError, match=r"wanted, not memoryview \(.*released"):
        read(data)


@pytest.mark.parametrize("data", ["text", None, 5, -1, [1, 2], 1.5, object()])
@pytest.mark.parametrize("read", [lambda data: list(read_batches(data)), RecordBatch, LegacyBatch])
def test_other_objects_than_buffers_are_refused(read: Callable[[Any], object], data: Any) -> None:
    with pytest.raises(CorruptBatchError, match=f"bytes are wanted, not {type(data).__name__}"):
        read(data)


@pytest.mark.parametrize("view", [RecordBatch, LegacyBatch])
def test_a_view_outside_the_data_is_refused(view: type[RecordBatch]) -> None:
    one = numbered(77, 1)
    with pytest.raises(CorruptBatchError, match="position -5 lies before"):
        view(one, -5)
    with pytest.raises(CorruptBatchError, match="at byte 999: 0 bytes are too few"):
        view(one, 999)
    for size in (7, 8, 20):
        with pytest.raises(CorruptBatchError, match="too few") as refused:
            view(one[:size])
        assert refused.value.base_offset == (77 if size >= 8 else None)


def test_the_error_of_a_short_header_names_its_batch() -> None:
    short = (77).to_bytes(8, "big") + (18).to_bytes(4, "big") + b"\0\0\0\0\x02" + bytes(13)
    read = read_batches(THREE + short)
    assert [batch.base_offset for batch in itertools.islice(read, 3)] == [10, 13, 17]
    with pytest.raises(CorruptBatchError) as refused:
        next(read)
    assert (refused.value.offset, refused.value.base_offset) == (len(THREE), 77)


def test_a_repr_has_offset_and_count() -> None:
    shown = repr(RecordBatch(THREE))
    assert "base_offset=10" in shown
    assert "record_count=3" in shown


stamps = st.integers(0, 2**63 - 100)  # leaves space for the records' offsets


@given(new_records, stamps, st.none() | st.integers(-1, 2**31 - 1), st.none() | stamps)
def test_restamping_changes_no_record(
    records: list[NewRecord], base_offset: int, epoch: int | None, append_time: int | None
) -> None:
    stored = encode_batch(records, compression="gzip", producer_id=3, partition_leader_epoch=8)
    data = restamp(
        RecordBatch(b"before" + stored, 6),
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        log_append_time=append_time,
    )
    [batch] = read_batches(data, allow_partial=False)
    assert batch.base_offset == base_offset
    assert batch.partition_leader_epoch == (8 if epoch is None else epoch)
    read = batch.records()
    assert [r.offset - base_offset for r in read] == list(range(len(records)))
    if append_time is None:
        assert data[16:] == stored[16:]
        assert contents(read) == records
        assert batch.timestamp_type == CREATE_TIME
    else:
        assert data[61:] == stored[61:]
        assert batch.timestamp_type == LOG_APPEND_TIME
        assert batch.max_timestamp == append_time
        assert {(r.timestamp, r.timestamp_type) for r in read} == {(append_time, LOG_APPEND_TIME)}
        assert [(r.key, r.value, r.headers) for r in read] == [row[:3] for row in records]


@pytest.mark.parametrize(
    "stamp",
    [
        {"base_offset": 2**63},
        {"base_offset": 2**63 - 1},
        {"base_offset": -1},
        {"base_offset": 0, "partition_leader_epoch": -2},
        {"base_offset": 0, "log_append_time": -5},
        {"base_offset": 0, "partition_leader_epoch": 2**31},
        {"base_offset": 0, "log_append_time": 2**63},
    ],
)
def test_an_out_of_range_stamp_is_refused(stamp: dict[str, int]) -> None:
    batch = RecordBatch(THREE)
    with pytest.raises(EncodeError, match="a stamp is out of its range"):
        restamp(batch, **stamp)
    assert batch.raw == numbered(10, 3)


def test_overlong_varints_are_read_as_kafka_reads_them() -> None:
    payload = record_bytes(
        timestamp_delta=b"\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00",
        offset_delta=b"\x80\x80\x80\x80\x00",
        key=b"\x82\x80\x80\x00k",
        value=b"\x82\x00v",
        header_block=b"\x82\x80\x00" + b"\x82\x00h" + b"\x81\x00",
    )
    [record] = RecordBatch(batch_bytes(payload)).records()
    assert (record.timestamp, record.offset, record.key, record.value) == (T + 1, 0, b"k", b"v")
    assert record.headers == [("h", None)]


def test_timestamps_may_precede_the_base_timestamp() -> None:
    payload = record_bytes(timestamp_delta=b"\x13", offset_delta=b"\x04")
    [record] = RecordBatch(batch_bytes(payload, last_offset_delta=2)).records()
    assert (record.timestamp, record.offset) == (T - 10, 2)


def test_sums_beyond_64_bits_wrap_as_in_kafkas_classes() -> None:
    top = 2**63 - 1
    payload = record_bytes(timestamp_delta=b"\x04", offset_delta=b"\x02")
    data = batch_bytes(payload, base_timestamp=top, base_offset=top, last_offset_delta=1)
    [record] = RecordBatch(data).records()
    assert (record.timestamp, record.offset) == (-(2**63) + 1, -(2**63))


def pickled(batch: RecordBatch) -> RecordBatch:
    copied: RecordBatch = pickle.loads(pickle.dumps(batch))
    return copied


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_of_a_batch_is_equal_and_has_only_its_bytes(
    copied: Callable[[RecordBatch], RecordBatch],
) -> None:
    first, second, _ = read_batches(THREE)
    other = copied(second)
    assert other == second
    assert hash(other) == hash(second)
    assert type(other) is RecordBatch
    assert (other.position, other.raw) == (0, second.raw)
    assert other.records() == second.records()
    assert other != first
    assert second != second.raw
    assert len(pickle.dumps(second)) < len(second.raw) + 200


def test_a_copy_of_a_message_is_a_legacy_batch() -> None:
    (batch, *_) = read_batches(down_convert(RecordBatch(numbered(10, 1)), 1))
    other = copy.copy(batch)
    assert isinstance(other, LegacyBatch)
    assert other == batch
