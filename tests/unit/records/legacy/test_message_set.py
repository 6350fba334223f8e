"""Tests reading message sets that Kafka's classes built, and message sets that kproto builds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    LegacyBatch,
    NewRecord,
    Record,
    RecordBatch,
    encode_batch,
    encode_message_set,
    read_batches,
    read_records,
    restamp,
)
from kproto.wire.errors import CorruptBatchError, EncodeError
from tests.support.message_sets import message, message_set, wrapped

from ..batches import T, sized, timestamps

GOLDEN = json.loads((Path(__file__).parents[1] / "golden_message_sets.json").read_text())
CASES = {case["name"]: case for case in GOLDEN["cases"]}

FEW: list[NewRecord] = [
    (b"k1", b"v1", (), T),
    (None, b"value of a null key", (), T + 5),
    (b"", None, (), T - 7),
    (None, None, (), T + 100_000),
    (b"k", b"", (), T + 1),
]

codecs = st.sampled_from(["none", "gzip", "snappy", "lz4"])
plain_records = st.lists(
    st.tuples(st.none() | sized, st.none() | sized, st.just(()), timestamps),
    min_size=1,
    max_size=20,
)


def described(records: list[Record]) -> list[list[object]]:
    """Returns the fields of the records in the form of the golden file."""
    return [
        [
            record.offset,
            record.timestamp,
            record.timestamp_type,
            None if record.key is None else record.key.hex(),
            None if record.value is None else record.value.hex(),
        ]
        for record in records
    ]


def offsets(data: bytes, from_offset: int = 0) -> list[int]:
    return [record.offset for record in read_records(data, from_offset=from_offset)]


@pytest.mark.parametrize("name", CASES)
def test_a_message_set_of_java_is_read_as_java_reads_it(name: str) -> None:
    case = CASES[name]
    data = bytes.fromhex(case["hex"])
    batches = list(read_batches(data, allow_partial=False))
    assert len(batches) == len(case["batches"])
    for batch, expected in zip(batches, case["batches"], strict=True):
        assert isinstance(batch, LegacyBatch)
        for field, value in expected.items():
            assert getattr(batch, field) == value, field
    assert described([r for batch in batches for r in batch.records()]) == case["records"]
    assert described(list(read_records(data))) == case["records"]
    assert {tuple(record.headers) for record in read_records(data)} == {()}
    assert b"".join(batch.raw for batch in batches) == data


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_is_written_byte_for_byte_as_java_writes_it(magic: int) -> None:
    written = encode_message_set(FEW, magic=magic, base_offset=1000)
    assert written.hex() == CASES[f"magic {magic}, none"]["hex"]


def test_log_append_time_is_written_byte_for_byte_as_java_writes_it() -> None:
    written = encode_message_set(FEW, log_append_time=T + 777, base_offset=1000)
    assert written.hex() == CASES["magic 1, none, log append time"]["hex"]


@given(plain_records, codecs, st.sampled_from([0, 1]), st.integers(0, 2**63 - 100))
def test_message_sets_round_trip(
    records: list[NewRecord], compression: str, magic: int, base_offset: int
) -> None:
    data = encode_message_set(
        records, magic=magic, compression=compression, base_offset=base_offset
    )
    batches = list(read_batches(data, allow_partial=False))
    assert {(batch.magic, batch.compression) for batch in batches} == {(magic, compression)}
    assert len(batches) == (len(records) if compression == "none" else 1)
    assert batches[-1].next_offset == base_offset + len(records)
    read = list(read_records(data))
    assert [(r.key, r.value) for r in read] == [(key, value) for key, value, _, _ in records]
    assert [r.offset - base_offset for r in read] == list(range(len(records)))
    if magic == 0:
        assert {(r.timestamp, r.timestamp_type) for r in read} == {(-1, NO_TIMESTAMP_TYPE)}
    else:
        assert [r.timestamp for r in read] == [timestamp for *_, timestamp in records]
        assert {r.timestamp_type for r in read} == {CREATE_TIME}
        assert max(batch.max_timestamp for batch in batches) == max(r.timestamp for r in read)


@given(plain_records, codecs, st.integers(0, 2**63 - 1))
def test_log_append_time_applies_to_every_message(
    records: list[NewRecord], compression: str, time: int
) -> None:
    data = encode_message_set(records, compression=compression, log_append_time=time)
    assert {(r.timestamp, r.timestamp_type) for r in read_records(data)} == {
        (time, LOG_APPEND_TIME)
    }


def test_the_wrapper_has_the_timestamp_type_of_its_messages() -> None:
    inside = message(timestamp=T) + message(timestamp=T + 1, offset=1)
    stamped = LegacyBatch(wrapped(inside, offset=1, attributes=8, timestamp=T + 9))
    assert [(r.timestamp, r.timestamp_type) for r in stamped.records()] == [
        (T + 9, LOG_APPEND_TIME)
    ] * 2
    own = message(timestamp=T, attributes=8) + message(timestamp=T + 1, offset=1)
    created = LegacyBatch(wrapped(own, offset=1, timestamp=T + 9))
    assert [(r.timestamp, r.timestamp_type) for r in created.records()] == [
        (T, CREATE_TIME),
        (T + 1, CREATE_TIME),
    ]


def test_a_single_message_is_read() -> None:
    data = message(offset=41, key=b"k", timestamp=T)
    batch = LegacyBatch(b"before" + data, 6)
    batch.check()
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (41, 41, 42)
    assert (batch.position, batch.size_in_bytes, batch.raw) == (6, len(data), data)
    assert (batch.record_count, batch.is_wrapper, batch.compression) == (1, False, "none")
    assert (batch.timestamp_type, batch.max_timestamp, batch.base_timestamp) == (CREATE_TIME, T, T)
    assert (batch.is_transactional, batch.is_control, batch.delete_horizon) == (False, False, None)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert batch.partition_leader_epoch == -1
    assert batch.records(topic="t", partition=3) == [
        Record(41, T, b"k", b"v", topic="t", partition=3)
    ]
    assert batch.records(from_offset=42) == []
    assert "magic=1, base_offset=41" in repr(batch)


def test_attributes_of_later_formats_are_ignored() -> None:
    batch = LegacyBatch(message(attributes=0x70))
    batch.check()
    assert (batch.is_transactional, batch.is_control, batch.delete_horizon) == (False, False, None)
    zero = LegacyBatch(message(magic=0, attributes=8))
    assert (zero.timestamp_type, zero.max_timestamp) == (NO_TIMESTAMP_TYPE, -1)
    assert [r.timestamp_type for r in zero.records()] == [NO_TIMESTAMP_TYPE]


def test_a_wrapper_has_no_record_count() -> None:
    [batch] = read_batches(message_set(3, compression="gzip", base_offset=10))
    assert isinstance(batch, LegacyBatch)
    assert batch.is_wrapper
    assert (batch.record_count, batch.base_offset) == (-1, 12), "the offset of the last message"
    assert [r.offset for r in batch.records(topic="t", partition=2)] == [10, 11, 12]
    assert {(r.topic, r.partition) for r in batch.records(topic="t", partition=2)} == {("t", 2)}


def test_inner_offsets_of_magic_1_are_relative_to_the_wrapper() -> None:
    inside = message(offset=0) + message(offset=3) + message(offset=9)
    assert offsets(wrapped(inside, offset=509)) == [500, 503, 509]
    assert offsets(wrapped(inside, offset=9)) == [0, 3, 9]
    assert offsets(wrapped(inside, offset=0)) == [0, 3, 9], "as librdkafka sent it"


def test_inner_offsets_of_magic_0_are_absolute() -> None:
    inside = message(magic=0, offset=500) + message(magic=0, offset=509)
    assert offsets(wrapped(inside, magic=0, offset=509)) == [500, 509]


MIXED = (
    message_set(2, magic=0)
    + message_set(3, magic=0, compression="snappy", base_offset=2)
    + message_set(1, base_offset=5)
    + encode_batch([(None, b"v", (), T)] * 2, base_offset=6, compression="zstd")
    + message_set(2, compression="lz4", base_offset=8)
)


def test_mixed_magics_in_one_fetch_are_read() -> None:
    batches = list(read_batches(MIXED, allow_partial=False))
    assert [batch.magic for batch in batches] == [0, 0, 0, 1, 2, 1]
    assert [type(batch) is RecordBatch for batch in batches] == [b.magic == 2 for b in batches]
    assert b"".join(batch.raw for batch in batches) == MIXED
    assert [batch.next_offset for batch in batches] == [1, 2, 5, 6, 8, 10]
    for start in range(11):
        assert offsets(MIXED, from_offset=start) == list(range(start, 10))


def test_a_partial_last_message_ends_the_fetch() -> None:
    last = len(message_set(2, compression="lz4", base_offset=8))
    for cut in range(1, last + 1):
        assert offsets(MIXED[:-cut]) == list(range(8))
    filler = b"\xff" * 8 + (100).to_bytes(4, "big") + bytes(70)
    for size in range(1, len(filler)):
        assert offsets(MIXED + filler[:size]) == list(range(10)), "as Kafka fills up a response"
    with pytest.raises(CorruptBatchError, match="ends inside a batch"):
        list(read_batches(MIXED[:-1], allow_partial=False))


def test_other_bytes_like_buffers_are_read() -> None:
    for buffer in (bytearray(MIXED), memoryview(MIXED)):
        assert [record.offset for record in read_records(buffer)] == list(range(10))


def test_a_message_cannot_be_stamped() -> None:
    with pytest.raises(EncodeError, match="magic 1 cannot be stamped"):
        restamp(LegacyBatch(message()), base_offset=5)
