"""Tests building batches: records round-trip, sizes are exact, and errors name bad values."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    BatchBuilder,
    MessageSetBuilder,
    NewRecord,
    RecordBatch,
    crc32c,
    encode_batch,
    encode_batches,
    read_batches,
)
from kproto.wire.errors import ConfigurationError, EncodeError

from ..batches import COMPILED, T, contents, new_records

PLAIN: NewRecord = (b"k", b"v", (), T)


@given(new_records, st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]))
def test_records_round_trip(records: list[NewRecord], compression: str) -> None:
    data = encode_batch(records, compression=compression)
    [batch] = read_batches(data, allow_partial=False)
    assert contents(batch.records()) == records
    assert contents(batch.records(eager_headers=True)) == records
    assert [r.offset for r in batch.records()] == list(range(len(records)))
    assert batch.compression == compression
    assert batch.record_count == len(records)
    assert batch.last_offset == len(records) - 1
    assert batch.base_timestamp == records[0][3]
    assert batch.max_timestamp == max(timestamp for *_, timestamp in records)
    assert (batch.base_offset, batch.partition_leader_epoch) == (0, -1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert not batch.is_control
    assert not batch.is_transactional


@given(new_records)
def test_record_by_record_gives_the_same_bytes(records: list[NewRecord]) -> None:
    builder = BatchBuilder(max_bytes=1 << 24)
    for index, (key, value, headers, timestamp) in enumerate(records):
        assert len(builder) == index
        assert builder.append(key, value, headers, timestamp=timestamp)
        assert len(builder.build()) == builder.size_in_bytes
    assert builder.build() == encode_batch(records)


@given(new_records, st.integers(62, 30_000))
def test_a_builder_refuses_records_beyond_its_bound(
    records: list[NewRecord], max_bytes: int
) -> None:
    builder = BatchBuilder(max_bytes=max_bytes)
    taken: list[NewRecord] = []
    for record in records:
        key, value, headers, timestamp = record
        would_be = len(encode_batch([*taken, record]))
        fits = builder.append(key, value, headers, timestamp=timestamp)
        assert fits == (would_be <= max_bytes)
        if fits:
            taken.append(record)
    assert len(builder) == len(taken)
    if taken:
        assert builder.build() == encode_batch(taken)


@given(new_records, st.integers(20_000 * 9, 400_000), st.sampled_from([-1, 0, 0x7FFFFFFF]))
def test_many_are_split_into_batches_that_fit(
    records: list[NewRecord], max_bytes: int, sequence: int
) -> None:
    read: list[NewRecord] = []
    expected_sequence = sequence
    batches = encode_batches(
        iter(records), max_bytes=max_bytes, producer_id=7, producer_epoch=0, base_sequence=sequence
    )
    for data, count in batches:
        assert len(data) <= max_bytes
        [batch] = read_batches(data, allow_partial=False)
        assert batch.record_count == count
        assert batch.base_sequence == expected_sequence
        if sequence >= 0:
            expected_sequence = (expected_sequence + count) % 2**31
        read += contents(batch.records())
        follower = records[len(read) : len(read) + 1]
        if follower:
            assert len(encode_batch([*contents(batch.records()), *follower])) > max_bytes
    assert read == records


def test_splitting_reads_only_the_needed_part_of_an_iterator() -> None:
    taken = []

    def source() -> Any:
        for number in range(100):
            taken.append(number)
            yield (None, b"x" * 100, (), T)

    first, count = next(encode_batches(source(), max_bytes=1000))
    assert len(first) <= 1000
    assert taken == list(range(count + 1))


@pytest.mark.slow
def test_many_splits_do_not_nest() -> None:
    batches = list(encode_batches([PLAIN] * 20_000, max_bytes=75))
    assert sum(count for _, count in batches) == 20_000
    assert {count for _, count in batches} == {1}


def test_a_record_that_never_fits_is_named_after_the_batches_before_it() -> None:
    batches = encode_batches([PLAIN, PLAIN, (None, b"x" * 2000, (), T)], max_bytes=1000)
    assert next(batches)[1] == 2
    with pytest.raises(EncodeError, match=r"records\[2\].*1000 bytes"):
        next(batches)


def test_offsets_beyond_the_table_of_varints() -> None:
    records: list[NewRecord] = [(None, b"%d" % number, (), T + number) for number in range(9000)]
    [batch] = read_batches(encode_batch(records))
    read = batch.records()
    assert contents(read) == [(k, v, [], t) for k, v, _, t in records]
    assert read[-1].offset == 8999


def test_other_bytes_like_values_are_written_as_their_bytes() -> None:
    wide = memoryview(bytes(range(16))).cast("I")
    value: Any = wide
    key: Any = bytearray(b"key")
    header: Any = memoryview(b"header")
    [record] = RecordBatch(encode_batch([(key, value, [("h", header)], T)])).records()
    assert (record.key, record.value) == (b"key", bytes(range(16)))
    assert record.headers == [("h", b"header")]


LATIN = "\ud800"
BAD: list[tuple[Any, str, str]] = [
    (("k", b"v", (), T), r"records\[1\].key", "str is not bytes or None"),
    ((b"k", "v", (), T), r"records\[1\].value", "str is not bytes or None"),
    ((b"k", 5, (), T), r"records\[1\].value", "int is not bytes or None"),
    ((b"k", [1, 2], (), T), r"records\[1\].value", "list is not bytes or None"),
    ((b"k", b"v", [(b"n", b"")], T), r"records\[1\].headers\[0\] name", "bytes is not str"),
    ((b"k", b"v", [(None, b"")], T), r"records\[1\].headers\[0\] name", "None is not str"),
    ((b"k", b"v", [([], b"")], T), r"records\[1\].headers\[0\] name", "list is not str"),
    ((b"k", b"v", [("n", b""), ("m", "x")], T), r"records\[1\].headers\[1\] \('m'\) value", "str"),
    ((b"k", b"v", [(LATIN, b"")], T), r"records\[1\].headers\[0\] name", "UTF-8"),
    ((b"k", b"v", [("n",)], T), r"records\[1\].headers\[0\]", "tuple is not a"),
    ((b"k", b"v", [3], T), r"records\[1\].headers\[0\]", "int is not a"),
    ((b"k", b"v", {"ab": b"c"}, T), r"records\[1\].headers", "dict is not a sequence"),
    ((b"k", b"v", 5, T), r"records\[1\].headers", "int is not a sequence"),
    ((b"k", b"v", iter([("n", b"")]), T), r"records\[1\].headers", "is not a sequence"),
    ((b"k", b"v", (), None), r"records\[1\].timestamp", "None is not int"),
    ((b"k", b"v", (), 1.5), r"records\[1\].timestamp", "float is not int"),
    ((b"k", b"v", (), "now"), r"records\[1\].timestamp", "str is not int"),
    ((b"k", b"v", (), -2), r"records\[1\].timestamp", "-2 is not a time"),
    ((b"k", b"v", (), 2**63), r"records\[1\].timestamp", "is not a time"),
    ((b"k", b"v", ()), r"records\[1\]", "3 values instead of 4"),
    (b"abc", r"records\[1\]", "bytes is not"),
    (None, r"records\[1\]", "None is not"),
]


def named(record: object) -> str:
    """Returns the record as text for a test id; the text is the same in every process."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(record))


@pytest.mark.parametrize(("record", "field", "reason"), BAD, ids=[named(bad[0]) for bad in BAD])
def test_a_bad_value_is_named(record: Any, field: str, reason: str) -> None:
    with pytest.raises(EncodeError, match=f"{field}: .*{reason}"):
        encode_batch([PLAIN, record])
    if isinstance(record, tuple) and len(record) == 4:
        first = field.replace(r"records\[1\]", r"records\[0\]")
        with pytest.raises(EncodeError, match=f"{first}: .*{reason}"):
            encode_batch([record])


@pytest.mark.parametrize("base", [T, T - 5, None])
@pytest.mark.parametrize("timestamp", [float(T), 1.5])
def test_a_float_is_refused_also_if_it_equals_the_timestamp_before(
    base: int | None, timestamp: Any
) -> None:
    builder = BatchBuilder(max_bytes=1_000, base_timestamp=base)
    assert builder.append(b"k", b"v", timestamp=T)
    with pytest.raises(EncodeError, match=r"timestamp: .*float is not int"):
        builder.append(b"k", b"v", timestamp=timestamp)
    assert builder.append(b"k", b"v", timestamp=T)
    records = RecordBatch(builder.build()).records()
    assert [record.timestamp for record in records] == [T, T]


def test_a_builder_is_usable_after_a_bad_value() -> None:
    builder = BatchBuilder()
    bad: Any = "text"
    with pytest.raises(EncodeError, match="value"):
        builder.append(None, bad, timestamp=T + 50)
    assert len(builder) == 0
    assert builder.append(b"k", b"v", timestamp=T)
    with pytest.raises(EncodeError, match="key"):
        builder.append(bad, None, timestamp=T + 99)
    with pytest.raises(EncodeError, match="timestamp"):
        builder.append(b"k", None, timestamp=bad)
    with pytest.raises(EncodeError, match="headers"):
        builder.append(b"k", None, bad, timestamp=T)
    assert builder.append(bytearray(b"k"), memoryview(b"v"), timestamp=T)
    assert builder.build() == encode_batch([PLAIN, PLAIN])


def test_a_released_buffer_is_refused() -> None:
    released = memoryview(b"v")
    released.release()
    records: list[tuple[Any, str]] = [
        ((released, None, (), T), r"records\[1\].key"),
        ((None, released, (), T), r"records\[1\].value"),
        ((None, None, [("h", released)], T), r"records\[1\].headers\[0\] \('h'\) value"),
    ]
    for record, stamp in records:
        with pytest.raises(EncodeError, match=f"{stamp}: a memoryview that was released"):
            encode_batch([PLAIN, record])
    with pytest.raises(EncodeError, match=r"records\[0\].value: a memoryview that was released"):
        MessageSetBuilder(max_bytes=100).append(None, released, timestamp=T)


def test_a_refused_record_does_not_change_the_batch() -> None:
    builder = BatchBuilder(max_bytes=100)
    assert not builder.append(None, b"x" * 100, timestamp=T + 5)
    assert builder.append(b"k", b"v", timestamp=T)
    assert not builder.append(None, b"x" * 100, timestamp=T + 99)
    assert builder.build() == encode_batch([PLAIN])


def test_an_error_of_the_source_is_not_reported_as_a_bad_record() -> None:
    def source() -> Any:
        yield PLAIN
        raise TypeError("the source broke")

    with pytest.raises(TypeError, match="the source broke"):
        encode_batch(source())


def test_producer_state_may_be_set_until_the_batch_is_built() -> None:
    builder = BatchBuilder(is_transactional=True)
    assert builder.append(*PLAIN[:2], timestamp=T)
    builder.producer_id, builder.producer_epoch, builder.base_sequence = 9, 1, 40
    batch = RecordBatch(builder.build(base_offset=70, partition_leader_epoch=4))
    batch.check()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 1, 40)
    assert (batch.base_offset, batch.partition_leader_epoch) == (70, 4)
    assert batch.is_transactional


def test_a_cleared_builder_is_empty() -> None:
    builder = BatchBuilder(compression="gzip", producer_id=5)
    assert builder.append(b"other", b"other", timestamp=T + 7)
    builder.clear()
    assert len(builder) == 0
    assert builder.append(*PLAIN[:2], timestamp=T)
    assert builder.build() == encode_batch([PLAIN], compression="gzip", producer_id=5)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(EncodeError, match="at least one record"):
        encode_batch([])
    assert list(encode_batches([])) == []


OUT_OF_RANGE = [
    {"producer_epoch": 1 << 15},
    {"producer_epoch": -2},
    {"producer_id": 1 << 63},
    {"producer_id": -2},
    {"base_sequence": 1 << 31},
    {"base_sequence": -2},
    {"log_append_time": -5},
    {"max_timestamp": -5},
    {"last_offset_delta": -1},
    {"last_offset_delta": 1 << 31},
]


@pytest.mark.parametrize("settings", [*OUT_OF_RANGE, {"delete_horizon": -7}], ids=str)
def test_an_out_of_range_setting_is_refused_at_once(settings: Any) -> None:
    [(name, value)] = settings.items()
    with pytest.raises(ConfigurationError, match=f"^{name} is {value}; it must be"):
        BatchBuilder(**settings)
    if name in {"producer_id", "producer_epoch", "base_sequence", "log_append_time"}:
        with pytest.raises(ConfigurationError, match=f"^{name} is {value}; it must be"):
            encode_batch([PLAIN], **settings)


@pytest.mark.parametrize("settings", OUT_OF_RANGE, ids=str)
def test_an_out_of_range_attribute_is_refused_by_build(settings: Any) -> None:
    """After the error the builder still has the records, and builds them with a valid attribute."""
    [(name, value)] = settings.items()
    builder = BatchBuilder()
    assert builder.append(*PLAIN[:2], timestamp=T)
    expected = builder.build()
    before = getattr(builder, name)
    setattr(builder, name, value)
    with pytest.raises(EncodeError, match=f"out of its range: {name} is {value}; it must be"):
        builder.build()
    setattr(builder, name, before)
    assert builder.build() == expected


@pytest.mark.parametrize(
    ("stamp", "wrong"),
    [
        ({"base_offset": 2**63 - 1}, "base_offset is 9223372036854775807"),
        ({"base_offset": -1}, "base_offset is -1"),
        ({"base_offset": 5, "partition_leader_epoch": -2}, "partition_leader_epoch is -2"),
        ({"base_offset": 5, "partition_leader_epoch": 2**31}, "partition_leader_epoch is 2147"),
    ],
)
def test_an_impossible_base_offset_or_epoch_is_refused(stamp: Any, wrong: str) -> None:
    builder = BatchBuilder()
    assert builder.extend([PLAIN, PLAIN]) is None
    with pytest.raises(EncodeError, match=f"out of its range: {wrong}"):
        builder.build(**stamp)
    assert RecordBatch(builder.build(base_offset=2**63 - 2)).last_offset == 2**63 - 1


def test_kafkas_null_values_may_be_set() -> None:
    data = encode_batch([PLAIN], producer_id=-1, producer_epoch=-1, base_sequence=-1)
    assert data == encode_batch([PLAIN])
    builder = BatchBuilder(max_timestamp=-1, log_append_time=-1)
    assert builder.append(*PLAIN[:2], timestamp=T)
    assert RecordBatch(builder.build()).max_timestamp == -1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"compression": "brotli"}, "choose one of: none, gzip, snappy, lz4, zstd"),
        (
            {"compression": "gzip", "compression_level": 10},
            "level 10 is not valid for gzip: use 1 to 9",
        ),
        ({"compression": "snappy", "compression_level": 1}, "'snappy' has no levels"),
        ({"compression_level": 1}, "'none' has no levels"),
        ({"max_bytes": 61}, "max_bytes is 61"),
        ({"max_bytes": 1 << 31}, "max_bytes is 2147483648"),
    ],
)
def test_an_invalid_setting_is_refused(settings: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        BatchBuilder(**settings)


@pytest.mark.parametrize("max_bytes", ["1000", 1e6, None])
def test_a_bound_other_than_an_integer_is_refused(max_bytes: Any) -> None:
    error = TypeError if COMPILED else ConfigurationError
    for builder in (BatchBuilder, MessageSetBuilder):
        with pytest.raises(error, match=r"max_bytes|int object expected"):
            builder(max_bytes=max_bytes)


def test_the_checksum_covers_every_byte_after_it() -> None:
    data = encode_batch([PLAIN])
    assert RecordBatch(data).crc == crc32c(data[21:])
