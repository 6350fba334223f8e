"""Tests building message sets from new records and from record batches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    MessageSetBuilder,
    NewRecord,
    RecordBatch,
    codec_for_id,
    codec_for_name,
    down_convert,
    encode_batch,
    encode_message_set,
    read_batches,
    read_records,
    restamp,
)
from kproto.records.codecs.lz4_frame import with_checksum_of_magic_0, with_right_checksum
from kproto.wire.errors import ConfigurationError, CorruptBatchError, EncodeError
from tests.support.message_sets import message_set

from ..batches import COMPILED, T, batch_bytes, new_records, record_bytes

PLAIN: NewRecord = (b"k", b"v", (), T)
magics = pytest.mark.parametrize("magic", [0, 1])
codecs = pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4"])


def without_headers(records: list[NewRecord]) -> list[NewRecord]:
    return [(key, value, (), timestamp) for key, value, _, timestamp in records]


@magics
@given(new_records)
def test_record_by_record_gives_the_same_bytes(magic: int, records: list[NewRecord]) -> None:
    plain = without_headers(records)
    builder = MessageSetBuilder(magic=magic, max_bytes=1 << 24)
    assert builder.size_in_bytes == 0
    for index, (key, value, headers, timestamp) in enumerate(plain):
        assert len(builder) == index
        assert builder.append(key, value, headers, timestamp=timestamp)
        assert len(builder.build()) == builder.size_in_bytes
    assert builder.build() == encode_message_set(plain, magic=magic)


@magics
@given(new_records, st.integers(35, 30_000))
def test_a_builder_refuses_records_beyond_its_bound(
    magic: int, records: list[NewRecord], max_bytes: int
) -> None:
    plain = without_headers(records)
    builder = MessageSetBuilder(magic=magic, max_bytes=max_bytes)
    rest = iter(plain)
    refused = builder.extend(rest)
    assert builder.size_in_bytes <= max_bytes
    taken = len(builder)
    if refused is None:
        assert taken == len(plain)
    else:
        assert refused == plain[taken]
        assert list(rest) == plain[taken + 1 :]
        larger = encode_message_set(plain[: taken + 1], magic=magic)
        assert len(larger) > max_bytes
    if taken:
        assert len(builder.build()) == builder.size_in_bytes
        assert len(list(read_records(builder.build()))) == taken


def test_clear_keeps_the_settings() -> None:
    builder = MessageSetBuilder(magic=0, compression="gzip")
    builder.append(b"k", b"v", timestamp=T)
    first = builder.build()
    builder.clear()
    assert (len(builder), builder.size_in_bytes) == (0, 0)
    builder.append(b"k", b"v", timestamp=T)
    assert builder.build() == first


@magics
@codecs
def test_any_bytes_like_value_is_accepted(magic: int, compression: str) -> None:
    views: Any = [(memoryview(b"k"), bytearray(b"v"), (), T), (memoryview(b""), None, None, T)]
    data = encode_message_set(views, magic=magic, compression=compression)
    assert [(r.key, r.value) for r in read_records(data)] == [(b"k", b"v"), (b"", None)]


@magics
def test_headers_are_refused(magic: int) -> None:
    records: list[NewRecord] = [PLAIN, (b"k", b"v", [("h", b"1")], T)]
    with pytest.raises(EncodeError, match=f"magic {magic} cannot carry headers") as caught:
        encode_message_set(records, magic=magic)
    assert caught.value.field == "records[1].headers"
    builder = MessageSetBuilder(magic=magic)
    with pytest.raises(EncodeError, match="cannot carry headers"):
        builder.append(b"k", b"v", [("h", None)], timestamp=T)
    assert len(builder) == 0


BAD: list[tuple[Any, str, str]] = [
    (("k", b"v", (), T), "str is not bytes or None", "records[1].key"),
    ((b"k", 5, (), T), "int is not bytes or None", "records[1].value"),
    ((b"k", b"v", (), "now"), "str is not int", "records[1].timestamp"),
    ((b"k", b"v", (), -2), "-2 is not a time in ms", "records[1].timestamp"),
    ((b"k", b"v", (), 2**63), "is not a time in ms", "records[1].timestamp"),
    ((b"k", b"v", ()), "3 values instead of 4", "records[1]"),
    (None, "None is not a tuple", "records[1]"),
]


@magics
@pytest.mark.parametrize(("record", "reason", "field"), BAD)
def test_a_bad_value_is_named(magic: int, record: Any, reason: str, field: str) -> None:
    builder = MessageSetBuilder(magic=magic)
    with pytest.raises(EncodeError, match=reason) as caught:
        builder.extend([PLAIN, record])
    assert caught.value.field == field
    assert len(builder) == 1, "the record before it was added"


@pytest.mark.parametrize("field", ["key", "value", "headers", "timestamp"])
def test_append_names_a_bad_value_too(field: str) -> None:
    builder = MessageSetBuilder()
    record: dict[str, Any] = {"key": b"k", "value": None, "timestamp": T, field: "text"}
    with pytest.raises(EncodeError, match=field):
        builder.append(**record)
    assert len(builder) == 0


def test_invalid_settings_are_refused() -> None:
    settings: list[tuple[dict[str, Any], str]] = [
        ({"magic": 2}, "magic 2 is not that of a message set"),
        ({"magic": -1}, "magic -1 is not that of a message set"),
        ({"compression": "zstd"}, "zstd' needs magic 2"),
        ({"compression": "brotli"}, "compression 'brotli' is not known"),
        ({"compression": "gzip", "compression_level": 10}, "level 10"),
        ({"magic": 0, "log_append_time": T}, "magic 0 has no log append time"),
        ({"log_append_time": -1}, "log_append_time -1 is not a time in ms"),
        ({"max_bytes": 33}, "max_bytes is 33; .* a whole number from 34 to 2147483647"),
        ({"magic": 0, "max_bytes": 25}, "max_bytes is 25; .* a whole number from 26"),
    ]
    for keywords, reason in settings:
        with pytest.raises(ConfigurationError, match=reason):
            MessageSetBuilder(**keywords)


@pytest.mark.parametrize(("magic", "size"), [(0, 26), (1, 34)])
def test_the_smallest_bound_fits_one_empty_message(magic: int, size: int) -> None:
    builder = MessageSetBuilder(magic=magic, max_bytes=size)
    assert builder.append(None, None, timestamp=T)
    assert not builder.append(None, None, timestamp=T)
    assert len(builder.build()) == size


def test_invalid_message_sets_are_not_built() -> None:
    builder = MessageSetBuilder()
    with pytest.raises(EncodeError, match="at least one record"):
        builder.build()
    builder.append(b"k", b"v", timestamp=T)
    for offset in (2**63, -(2**63) - 1):
        with pytest.raises(EncodeError, match="out of its range"):
            builder.build(base_offset=offset)
    wrong: Any = "5"
    with pytest.raises(TypeError if COMPILED else EncodeError, match="str"):
        builder.build(base_offset=wrong)
    with pytest.raises(TypeError if COMPILED else ConfigurationError, match=r"log_append_time|str"):
        MessageSetBuilder(log_append_time=wrong)


@pytest.mark.parametrize(("magic", "inside"), [(0, [500, 501, 502]), (1, [0, 1, 2])])
def test_inner_offsets_are_absolute_in_magic_0_and_relative_in_magic_1(
    magic: int, inside: list[int]
) -> None:
    """The test decompresses the inner messages itself: a round trip would accept wrong offsets.

    In magic 1, readers also accept absolute inner offsets (KIP-31).
    """
    data = encode_message_set(
        [(None, b"v", (), T)] * 3, magic=magic, compression="gzip", base_offset=500
    )
    plain = codec_for_name("gzip").decompress(data[26 + 8 * magic :], 1000)
    assert [message.base_offset for message in read_batches(plain)] == inside
    [wrapper] = read_batches(data)
    assert wrapper.base_offset == 502
    assert [record.offset for record in wrapper.records()] == [500, 501, 502]


def test_an_lz4_frame_has_the_header_checksum_of_its_magic() -> None:
    """The header checksum of an LZ4 frame is computed in another way for magic 0 than for magic 1.

    Clients of Kafka 0.8 and 0.9 verify the header checksum. Neither kproto nor Kafka 3.9 does.
    """
    frames = []
    for magic in (0, 1):
        data = encode_message_set([(b"k", b"v" * 50, (), T)], magic=magic, compression="lz4")
        frames.append(data[data.index(b"\x04\x22\x4d\x18") :])
    assert frames[0] == with_checksum_of_magic_0(frames[0]) != with_right_checksum(frames[0])
    assert frames[1] == with_right_checksum(frames[1])


def test_compression_levels_are_used() -> None:
    value = b"".join(b"%d, " % (number * number % 9973) for number in range(5000))
    sizes = {
        len(encode_message_set([(None, value, (), T)], compression="gzip", compression_level=level))
        for level in (1, 9)
    }
    assert len(sizes) == 2


@magics
@pytest.mark.parametrize(
    "compression",
    ["none", *(pytest.param(codec, marks=pytest.mark.slow) for codec in ("gzip", "snappy", "lz4"))],
)
@given(new_records)
def test_a_batch_is_converted_down(magic: int, compression: str, records: list[NewRecord]) -> None:
    batch = RecordBatch(encode_batch(records, compression=compression, base_offset=500))
    data = down_convert(batch, magic)
    stored = list(read_batches(data, allow_partial=False))
    assert {(b.magic, b.compression) for b in stored} == {(magic, compression)}
    assert stored[-1].next_offset == batch.next_offset
    read = list(read_records(data))
    expected = batch.records()
    assert [(r.offset, r.key, r.value) for r in read] == [
        (r.offset, r.key, r.value) for r in expected
    ]
    assert all(r.headers == [] for r in read), "headers are lost"
    if magic == 1:
        assert [r.timestamp for r in read] == [r.timestamp for r in expected]
    assert {r.timestamp_type for r in read} == {CREATE_TIME if magic else NO_TIMESTAMP_TYPE}


@codecs
def test_down_conversion_keeps_the_log_append_time(compression: str) -> None:
    sent = RecordBatch(encode_batch([PLAIN, PLAIN], compression=compression))
    batch = RecordBatch(restamp(sent, base_offset=7, log_append_time=T + 5))
    assert [
        (r.offset, r.timestamp, r.timestamp_type) for r in read_records(down_convert(batch, 1))
    ] == [(7, T + 5, LOG_APPEND_TIME), (8, T + 5, LOG_APPEND_TIME)]


@magics
@pytest.mark.parametrize("codec_id", [0, 1])
def test_down_conversion_keeps_gaps_of_compaction(magic: int, codec_id: int) -> None:
    payload = b"".join(record_bytes(offset_delta=delta) for delta in (b"\x06", b"\x08", b"\x28"))
    codec = codec_for_id(codec_id)
    payload = codec.compress(payload, codec.default_level)
    batch = RecordBatch(
        batch_bytes(
            payload, base_offset=500, record_count=3, last_offset_delta=30, attributes=codec_id
        )
    )
    converted = down_convert(batch, magic)
    assert [r.offset for r in read_records(converted)] == [503, 504, 520]


@magics
def test_records_before_the_fetch_offset_are_dropped_unless_compressed(
    magic: int,
) -> None:
    for compression, expected in (("none", [2, 3]), ("gzip", [0, 1, 2, 3])):
        batch = RecordBatch(encode_batch([PLAIN] * 4, compression=compression))
        converted = down_convert(batch, magic, from_offset=2)
        assert [r.offset for r in read_records(converted)] == expected
    assert down_convert(RecordBatch(encode_batch([PLAIN])), magic, from_offset=1) == b""


@pytest.mark.parametrize("magic", [-1, 2])
def test_an_unknown_magic_is_refused(magic: int) -> None:
    with pytest.raises(ConfigurationError, match=f"magic {magic} is not that of a message set"):
        down_convert(RecordBatch(encode_batch([(b"k", b"v", (), T)])), magic)


def test_down_conversion_keeps_message_sets_of_the_magic() -> None:
    for data in (message_set(2, magic=0, compression="lz4"), message_set(1)):
        [batch] = read_batches(data)
        assert down_convert(batch, 1) == data
    [batch] = read_batches(message_set(2, compression="lz4", base_offset=5))
    older = down_convert(batch, 0)
    assert [(b.magic, b.compression) for b in read_batches(older)] == [(0, "lz4")]
    assert [r.offset for r in read_records(older)] == [5, 6]


@magics
def test_batches_without_a_message_set_are_dropped_or_refused(magic: int) -> None:
    control = RecordBatch(encode_batch([PLAIN], is_control=True))
    assert down_convert(control, magic) == b""
    empty = RecordBatch(batch_bytes(b"", record_count=0, last_offset_delta=5))
    assert down_convert(empty, magic) == b""
    with pytest.raises(EncodeError, match="zstd cannot become a message set"):
        down_convert(RecordBatch(encode_batch([PLAIN], compression="zstd")), magic)
    broken = RecordBatch(batch_bytes(b"\x7f", record_count=1))
    with pytest.raises(CorruptBatchError):
        down_convert(broken, magic)
    large = RecordBatch(encode_batch([(None, bytes(1 << 20), (), T)], compression="gzip"))
    with pytest.raises(CorruptBatchError, match="bound of 1000 bytes"):
        down_convert(large, magic, max_decompressed_bytes=1000)
