"""Tests broken batches: each fault has one clear error, and no other error class is raised."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import RecordBatch, crc32c, read_batches, read_records
from kproto.records.varints import encode_varint
from kproto.wire.errors import CorruptBatchError, MissingCodecError
from tests.support.selection import rest_slow

from ..batches import batch_bytes, record_bytes

GOLDEN = json.loads((Path(__file__).parents[1] / "golden.json").read_text())
STORED = {case["name"]: bytes.fromhex(case["hex"]) for case in GOLDEN["cases"]}
ONE = record_bytes()
LONG = b"\x80" * 5 + b"\x00"
LONGER = b"\x80" * 10 + b"\x00"

BROKEN: dict[str, tuple[bytes, str]] = {
    "magic": (batch_bytes(ONE, magic=7), "unknown magic 7"),
    "length below any": (batch_bytes(ONE, length=13), "too short for any format"),
    "length negative": (batch_bytes(ONE, length=-1), "too short for any format"),
    "length below the header": (batch_bytes(ONE, length=48), "shorter than the header"),
    "length one too small": (batch_bytes(ONE, length=49 + len(ONE) - 1), "CRC"),
    "checksum": (batch_bytes(ONE, crc=1), "CRC is 0x[0-9a-f]{8}, but the header has 0x00000001"),
    "count negative": (batch_bytes(ONE, record_count=-1), "negative record count"),
    "count large": (batch_bytes(ONE, record_count=2**31 - 1), "2147483647 records cannot fit into"),
    "count above the records": (
        batch_bytes(
            record_bytes(value=b"\x12" + b"123456789"), record_count=2, last_offset_delta=1
        ),
        "record 1, length: the batch ends inside it",
    ),
    "count below the records": (batch_bytes(ONE + ONE), f"{len(ONE)} bytes after the last of 1"),
    "count zero with records": (batch_bytes(ONE, record_count=0), "bytes after the last of 0"),
    "offset delta negative": (batch_bytes(ONE, last_offset_delta=-1), "negative last offset delta"),
    "codec": (batch_bytes(ONE, attributes=7), "unknown compression codec 7"),
    "record length negative": (batch_bytes(record_bytes(length=-1)), "record 0, length: negative"),
    "record length large": (
        batch_bytes(record_bytes(length=10)),
        "length 10, but 8 bytes are left",
    ),
    "record length small": (
        batch_bytes(record_bytes(length=7)),
        "record 0, header count: no bytes",
    ),
    "record length zero": (batch_bytes(bytes(9)), "record 0, "),
    "record longer than its fields": (
        batch_bytes(record_bytes(header_block=b"\x00\x00")),
        "no headers, but 1 bytes are left",
    ),
    "header count without headers": (
        batch_bytes(record_bytes(header_block=b"\x04")),
        "2 headers, but no byte is left",
    ),
    "header count negative": (
        batch_bytes(record_bytes(header_block=b"\x01")),
        "negative header count",
    ),
    "key long": (batch_bytes(record_bytes(key=b"\x40k")), "record 0, key: length 32 goes 28 bytes"),
    "value long": (batch_bytes(record_bytes(value=b"\x08v")), "record 0, value: length 4 goes"),
    "value long, more behind": (
        batch_bytes(record_bytes(value=b"\x08v") + ONE, record_count=2, last_offset_delta=1),
        "record 0, value: length 4 goes 2 bytes past the record",
    ),
    "length varint": (batch_bytes(LONG + ONE), "record 0, length: varint too long"),
    "timestamp varlong": (
        batch_bytes(record_bytes(timestamp_delta=LONGER)),
        "record 0, timestamp delta: varint too long: no end within 10 bytes",
    ),
    "offset varint": (batch_bytes(record_bytes(offset_delta=LONG)), "record 0, offset delta: var"),
    "key varint": (batch_bytes(record_bytes(key=LONG)), "record 0, key: varint too long"),
    "value varint": (batch_bytes(record_bytes(value=LONG)), "record 0, value: varint too long"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_every_kind_of_corruption_is_named_with_its_place(kind: str) -> None:
    data, reason = BROKEN[kind]
    good = STORED["plain"]
    records = read_records(good + data)
    for _ in range(5):
        next(records)
    with pytest.raises(CorruptBatchError, match=reason) as caught:
        next(records)
    assert caught.value.offset == len(good)
    assert caught.value.base_offset == 0


@pytest.mark.parametrize("length", [b"\x01", b"\x03", b"\x83\x01", b"\xff\xff\xff\xff\x0f"])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_a_negative_length_means_null(length: bytes, count: int) -> None:
    """Kafka's DefaultRecord reads any negative length of a key or value as null."""
    kinds: tuple[tuple[dict[str, bytes], tuple[bytes | None, bytes | None]], ...] = (
        ({"key": length}, (None, b"v")),
        ({"value": length}, (b"k", None)),
        ({"key": length, "value": length}, (None, None)),
        ({}, (b"k", b"v")),
    )
    for parts, expected in kinds:
        payload = b"".join(
            record_bytes(offset_delta=encode_varint(at), **parts)  # type: ignore[arg-type]
            for at in range(count)
        )
        batch = RecordBatch(batch_bytes(payload, record_count=count, last_offset_delta=count - 1))
        for _ in range(2):  # the second time with the layouts that the first read has learned
            assert [(each.key, each.value) for each in batch.records()] == [expected] * count
            assert batch.values() == [expected[1]] * count


def test_a_single_batch_must_be_whole() -> None:
    data = batch_bytes(ONE)
    for size in range(61):
        with pytest.raises(CorruptBatchError, match="too few for a batch header"):
            RecordBatch(data[:size])
    for size in range(61, len(data)):
        with pytest.raises(CorruptBatchError, match="goes beyond the"):
            RecordBatch(data[:size])
    for position in range(len(data)):
        with pytest.raises(CorruptBatchError):
            RecordBatch(data + b"\x00", position + 1)


def with_right_checksum(data: bytes) -> bytes:
    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def read_everything(data: bytes) -> None:
    """Reads a batch by every method; only CorruptBatchError or MissingCodecError may be raised."""
    reads: list[Any] = [
        lambda: list(read_batches(data)),
        lambda: list(read_batches(data, allow_partial=False)),
        lambda: [
            batch.records(eager_headers=True, max_decompressed_bytes=1 << 20)
            for batch in read_batches(data, check_crc=False)
        ],
        lambda: [
            repr(record.headers)
            for record in read_records(data, check_crc=False, max_decompressed_bytes=1 << 20)
        ],
        lambda: repr(RecordBatch(data).records(max_decompressed_bytes=1 << 20)),
    ]
    for read in reads:
        try:
            read()
        except (CorruptBatchError, MissingCodecError):
            continue


@pytest.mark.parametrize("name", STORED)
def test_truncated_batches(name: str) -> None:
    data = STORED[name]
    for size in {*range(min(len(data), 200)), *range(200, len(data), 37)}:
        read_everything(data[:size])
        if size > 61:  # the same bytes, in a batch that declares this size
            shorter = data[:8] + (size - 12).to_bytes(4, "big") + data[12:size]
            read_everything(with_right_checksum(shorter))


@pytest.mark.parametrize("name", rest_slow(STORED, 4))
def test_batches_with_flipped_bits(name: str) -> None:
    data = STORED[name]
    rng = random.Random(name)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 5))):
            # Faults in the first bytes have the most effects; large batches have many more bytes.
            position = rng.randrange(min(len(data), rng.choice((61, 200, 5000))))
            broken[position] ^= 1 << rng.randrange(8)
        read_everything(with_right_checksum(bytes(broken)))


@given(
    st.sampled_from(sorted(STORED)),
    st.lists(st.tuples(st.integers(0, 2999), st.integers(0, 255)), min_size=1, max_size=3),
    st.booleans(),
)
def test_good_batches_come_before_any_fault(
    name: str, changes: list[tuple[int, int]], mended: bool
) -> None:
    good = STORED["plain"] + STORED["compacted, with gaps"]
    whole = list(read_records(good))
    broken = bytearray(STORED[name][:3000])
    for position, byte in changes:
        broken[position % len(broken)] = byte
    behind = with_right_checksum(bytes(broken)) if mended else bytes(broken)
    records = read_records(good + behind, max_decompressed_bytes=1 << 20)
    assert [next(records) for _ in whole] == whole
    try:
        list(records)
    except CorruptBatchError as error:
        place = error.offset
    else:
        place = len(good)
    assert place is not None
    assert place >= len(good)


@given(st.binary(max_size=120), st.integers(0, 20), st.integers(0, 127))
def test_noise_where_records_should_be(noise: bytes, count: int, attributes: int) -> None:
    read_everything(batch_bytes(noise, record_count=count, attributes=attributes))


@given(st.binary(max_size=200))
def test_noise_where_batches_should_be(noise: bytes) -> None:
    read_everything(noise)


pieces = st.sampled_from(
    [
        b"\x00",
        b"\x01",
        b"\x02",
        b"\x03",
        b"\x04a",
        b"\x0c",
        b"\x7f",
        b"\x80",
        b"\x80\x00",
        b"\xff\x01",
    ]
)


@given(st.lists(pieces, min_size=5, max_size=40).map(b"".join), st.integers(1, 4))
def test_the_explanation_finds_a_fault_whenever_the_fast_path_did(body: bytes, count: int) -> None:
    batch = RecordBatch(batch_bytes(body, record_count=count))
    try:
        batch.records(eager_headers=True)
    except CorruptBatchError as error:
        if error.reason.startswith(f"0 bytes after the last of {count}"):
            pytest.fail("the fast path refused what the explanation finds good")
