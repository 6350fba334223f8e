"""Tests rebuilding batches that a broker has compacted, emptied, or given a log append time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    LOG_APPEND_TIME,
    BatchBuilder,
    LegacyBatch,
    NewRecord,
    RecordBatch,
    encode_batch,
    encode_message_set,
    read_batches,
    restamp,
)
from kproto.wire.errors import ConfigurationError, EncodeError

from ..batches import COMPILED, T, new_records

GOLDEN = json.loads((Path(__file__).parents[1] / "golden.json").read_text())["cases"]

codecs = st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"])
timestamps = st.none() | st.integers(-(2**40), 2**50)


def rebuilt(batch: RecordBatch) -> bytes:
    """Returns the batch after building it again from its header and its records."""
    builder = BatchBuilder.like(batch)
    for record in batch.records(own_timestamps=True):
        assert builder.append(
            record.key,
            record.value,
            record.headers,
            timestamp=record.timestamp,
            offset_delta=record.offset - batch.base_offset,
        )
    assert len(builder) == batch.record_count
    return builder.build(
        base_offset=batch.base_offset, partition_leader_epoch=batch.partition_leader_epoch
    )


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_batches_from_java_are_rebuilt_byte_for_byte(case: dict[str, Any]) -> None:
    for batch in read_batches(bytes.fromhex(case["hex"])):
        again = RecordBatch(rebuilt(batch))
        if batch.compression == "none":
            assert again.raw == batch.raw
        else:  # Java's compressor differs, so the bytes do, too
            assert again.records() == batch.records()
            assert repr(again).replace(str(again.size_in_bytes), "") == repr(batch).replace(
                str(batch.size_in_bytes), ""
            )


@given(
    new_records,
    codecs,
    st.lists(st.integers(0, 1000), min_size=8, max_size=8),
    st.integers(0, 500),
    st.none() | st.integers(-1, 2**50),
    timestamps,
    st.integers(0, 2**40),
)
def test_any_batch_is_rebuilt_byte_for_byte(
    records: list[NewRecord],
    codec: str,
    gaps: list[int],
    trailing: int,
    log_append_time: int | None,
    base_timestamp: int | None,
    base_offset: int,
) -> None:
    builder = BatchBuilder(
        compression=codec,
        log_append_time=log_append_time,
        base_timestamp=base_timestamp,
        max_bytes=1 << 24,
    )
    deltas: list[int] = []
    for index, (key, value, headers, timestamp) in enumerate(records):
        delta = (deltas[-1] + 1 if deltas else 0) + gaps[index % len(gaps)]
        deltas.append(delta)
        assert builder.append(key, value, headers, timestamp=timestamp, offset_delta=delta)
    builder.last_offset_delta = deltas[-1] + trailing
    data = builder.build(base_offset=base_offset, partition_leader_epoch=3)
    if codec == "none":
        assert len(data) == builder.size_in_bytes
    batch = RecordBatch(data)
    batch.check()
    assert [record.offset - base_offset for record in batch.records()] == deltas
    assert batch.next_offset == base_offset + deltas[-1] + trailing + 1
    assert [record.timestamp for record in batch.records(own_timestamps=True)] == [
        timestamp for *_, timestamp in records
    ]
    if log_append_time is not None:
        assert batch.timestamp_type == LOG_APPEND_TIME
        assert {record.timestamp for record in batch.records()} == {log_append_time}
    assert rebuilt(batch) == data


@given(new_records, st.integers(0, 2**40))
def test_a_restamped_batch_equals_one_with_log_append_time(
    records: list[NewRecord], now: int
) -> None:
    sent = encode_batch(records)
    stamped = restamp(RecordBatch(sent), base_offset=70, log_append_time=now)
    assert encode_batch(records, log_append_time=now, base_offset=70) == stamped
    assert rebuilt(RecordBatch(stamped)) == stamped


def test_compacted_and_emptied_batches_are_rebuilt() -> None:
    records: list[NewRecord] = [(b"%d" % n, b"v", (), T + n) for n in range(10)]
    batch = RecordBatch(encode_batch(records, base_offset=100, base_sequence=5, producer_id=1))
    builder = BatchBuilder.like(batch)
    builder.max_timestamp = None
    for record in batch.records(own_timestamps=True)[2:8:3]:
        builder.append(
            record.key,
            record.value,
            timestamp=record.timestamp,
            offset_delta=record.offset - batch.base_offset,
        )
    compacted = RecordBatch(builder.build(base_offset=100))
    assert [record.offset for record in compacted.records()] == [102, 105]
    assert (compacted.next_offset, compacted.base_sequence) == (110, 5)
    assert (compacted.record_count, compacted.max_timestamp) == (2, T + 5)
    builder.clear()
    emptied = RecordBatch(builder.build(base_offset=100))
    emptied.check()
    assert (emptied.records(), emptied.next_offset) == ([], 110)
    assert rebuilt(emptied) == emptied.raw


def test_records_after_a_gap_have_the_next_offsets() -> None:
    builder = BatchBuilder()
    assert builder.append(b"a", None, timestamp=T)
    assert builder.append(b"b", None, timestamp=T, offset_delta=7)
    assert builder.append(b"c", None, timestamp=T)
    assert builder.extend([(b"d", None, (), T + 1)]) is None
    offsets = [record.offset for record in RecordBatch(builder.build()).records()]
    assert offsets == [0, 7, 8, 9]
    assert len(builder) == 4
    builder.clear()
    assert builder.append(b"e", None, timestamp=T)
    assert RecordBatch(builder.build()).last_offset == 0


def test_a_record_that_does_not_fit_leaves_no_gap() -> None:
    builder = BatchBuilder(max_bytes=100)
    assert builder.append(b"a", None, timestamp=T)
    assert not builder.append(b"b", bytes(100), timestamp=T, offset_delta=7)
    with pytest.raises(EncodeError, match=r"records\[1\].key: str is not bytes"):
        builder.append("b", None, timestamp=T, offset_delta=7)  # type: ignore[arg-type] # on purpose
    assert builder.append(b"b", None, timestamp=T)
    assert RecordBatch(builder.build()).last_offset == 1


def test_invalid_offsets_and_timestamps_are_refused() -> None:
    builder = BatchBuilder()
    builder.append(b"a", None, timestamp=T, offset_delta=3)
    for refused in (3, 0, -1, 2**31):
        with pytest.raises(
            EncodeError, match=f"{refused} is not one of 4, the next, to 2147483647"
        ):
            builder.append(b"b", None, timestamp=T, offset_delta=refused)
    builder.last_offset_delta = 2
    with pytest.raises(EncodeError, match="3 from the base offset, beyond the last_offset_delta"):
        builder.build()
    builder.last_offset_delta = 2**31
    with pytest.raises(EncodeError, match="out of its range"):
        builder.build()
    wrong: Any = "now"
    with pytest.raises(TypeError if COMPILED else ConfigurationError):
        BatchBuilder(base_timestamp=wrong)
    with pytest.raises(ConfigurationError, match="base_timestamp is 9223372036854775808"):
        BatchBuilder(base_timestamp=2**63)
    with pytest.raises(ConfigurationError, match="use the same header field"):
        BatchBuilder(base_timestamp=1, delete_horizon=2)
    with pytest.raises(EncodeError, match="at least one record, or a last_offset_delta"):
        BatchBuilder().build()


def test_no_record_fits_after_the_last_offset_delta() -> None:
    """The builder refuses the record, so that the caller can keep it for the next batch."""
    builder = BatchBuilder()
    assert builder.append(b"a", None, timestamp=T)
    assert builder.append(b"b", None, timestamp=T, offset_delta=2**31 - 1)
    assert not builder.append(b"c", None, timestamp=T)
    record: NewRecord = (b"c", None, (), T + 5)
    assert builder.extend(iter([record, record])) == record
    with pytest.raises(EncodeError, match="no offset delta is left after 2147483647"):
        builder.append(b"c", None, timestamp=T, offset_delta=2**31)
    batch = RecordBatch(builder.build())
    assert [record.offset for record in batch.records()] == [0, 2**31 - 1]
    assert batch.max_timestamp == T
    builder.clear()
    assert builder.append(b"c", None, timestamp=T)


@pytest.mark.parametrize("wrong", ["3", 3.0])
def test_an_offset_delta_is_an_integer(wrong: Any) -> None:
    builder = BatchBuilder()
    with pytest.raises(TypeError if COMPILED else EncodeError, match=r"whole number|int"):
        builder.append(b"a", None, timestamp=T, offset_delta=wrong)
    assert builder.append(b"a", None, timestamp=T)
    assert RecordBatch(builder.build()).last_offset == 0


def test_a_message_of_a_message_set_is_no_record_batch() -> None:
    message = LegacyBatch(encode_message_set([(b"k", b"v", (), T)], magic=1))
    with pytest.raises(EncodeError, match="magic 1 is no record batch"):
        BatchBuilder.like(message)
    wrong: Any = b"bytes"
    with pytest.raises(TypeError if COMPILED else EncodeError, match="RecordBatch"):
        BatchBuilder.like(wrong)
    wrapper = encode_message_set([(b"k", b"v", (), T)], magic=1, compression="gzip")
    (record,) = LegacyBatch(wrapper).records(own_timestamps=True)
    assert (record.timestamp, record.timestamp_type) == (T, 0)
