"""Tests broken message sets: the error is always a CorruptBatchError, and names the fault."""

from __future__ import annotations

import random
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import LegacyBatch, read_batches, read_records
from kproto.wire.errors import CorruptBatchError
from tests.support.message_sets import message, message_set, wrapped
from tests.support.selection import rest_slow

ONE = message()
GOOD = message_set(2) + message_set(3, compression="gzip", base_offset=2)

BROKEN: dict[str, tuple[bytes, str]] = {
    "magic": (ONE[:16] + b"\x07" + ONE[17:], "unknown magic 7"),
    "negative magic": (ONE[:16] + b"\xff" + ONE[17:], "unknown magic 255"),
    "size below any": (message(size=13), "too short for any format"),
    "size negative": (message(size=-1), "too short for any format"),
    "size below magic 1": (message(size=21), "message size 21 is too short for magic 1"),
    "size one too small": (message(size=22), "CRC"),
    "checksum": (message(crc=1), "CRC is 0x[0-9a-f]{8}, but the message has 0x00000001"),
    "codec": (message(codec=5), "unknown compression codec 5"),
    "zstd": (message(codec=4), "zstd needs magic 2; a message set cannot use it"),
    "key long": (message(key=b"k", key_length=30), "key: length 30 goes 24 bytes past the message"),
    "key longer": (message(key=b"k", key_length=4), "value: no bytes are left for its length"),
    "value long": (message(value_length=2), "value: length 2 goes 1 bytes past the message"),
    "value short": (message(value=b"abc", value_length=1), "2 bytes after the value"),
    "wrapper null": (message(codec=1, value=None), "the compressed value is null"),
    "wrapper empty": (wrapped(b""), "the wrapper holds no messages"),
    "wrapper without gzip": (message(codec=1, value=b"xx"), "gzip: "),
    "wrapper without snappy": (message(codec=2, value=b"\xff" * 9), "snappy: |bound of"),
    "wrapper without lz4": (message(codec=3, value=b"xx"), "lz4: "),
    "wrapper in a wrapper": (wrapped(wrapped(ONE)), "message 0 of the wrapper: it is compressed"),
    "inner checksum": (wrapped(ONE + message(crc=1)), "message 1 of the wrapper: CRC is 0x"),
    "inner magic": (wrapped(message(magic=0)), "message 0 of the wrapper: magic 0 is not 1"),
    "inner magic 2": (wrapped(message(magic=2)), "message 0 of the wrapper: magic 2 is not 1"),
    "inner cut": (wrapped(ONE + ONE[:-1]), "message 1 of the wrapper: size 23, but 22 bytes are"),
    "inner start": (wrapped(ONE + b"x"), "message 1 of the wrapper: 1 bytes are too few for it"),
    "inner size": (wrapped(message(size=4)), "message 0 of the wrapper: size 4 is too short"),
    "wrapper offset": (
        wrapped(message(offset=5), offset=3),
        "wrapper offset 3 lies before 5, the last message's",
    ),
}


@pytest.mark.parametrize("length", [-1, -2, -7, -(2**31)])
def test_a_negative_length_means_null(length: int) -> None:
    """Kafka's LegacyRecord reads any negative length of a key or value as null."""
    for data in (
        message(key=None, key_length=length, value=b""),
        wrapped(message(key=None, key_length=length, value=b"")),
    ):
        (record,) = read_records(data)
        assert (record.key, record.value) == (None, b"")
    (record,) = read_records(message(key=b"k", value=None, value_length=length))
    assert (record.key, record.value) == (b"k", None)


@pytest.mark.parametrize("kind", BROKEN)
def test_every_kind_of_corruption_is_named_with_its_position(kind: str) -> None:
    data, reason = BROKEN[kind]
    records = read_records(GOOD + data)
    assert [next(records).offset for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(CorruptBatchError, match=reason) as caught:
        next(records)
    assert caught.value.offset == len(GOOD)
    assert caught.value.base_offset == int.from_bytes(data[:8], "big", signed=True)


def test_bytes_without_a_message_are_refused() -> None:
    for size in range(26):
        with pytest.raises(CorruptBatchError, match="too few for a message"):
            LegacyBatch(ONE[:size])
    with pytest.raises(CorruptBatchError, match="goes beyond the"):
        LegacyBatch(ONE[:-1])
    with pytest.raises(CorruptBatchError, match="magic 2 is not that of a message"):
        LegacyBatch(message(magic=2))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_that_exceeds_the_bound_is_an_error(codec: str, magic: int) -> None:
    data = message_set(1, value=bytes(1 << 20), compression=codec, magic=magic)
    with pytest.raises(CorruptBatchError, match="bound of 1000000 bytes"):
        list(read_records(data, max_decompressed_bytes=1_000_000))
    assert len(list(read_records(data))) == 1


def with_right_checksum(data: bytes) -> bytes:
    return data[:12] + crc32(data[16:]).to_bytes(4, "big") + data[16:]


def read_everything(data: bytes) -> None:
    """Reads valid records and then `data`; checks that a fault loses no valid record.

    Only CorruptBatchError may be raised.
    """
    good = list(read_records(GOOD))
    for check_crc in (True, False):
        read = []
        try:
            for record in read_records(
                GOOD + data, check_crc=check_crc, max_decompressed_bytes=1 << 20
            ):
                read.append(record)
                assert repr(record.headers) == "[]"
        except CorruptBatchError as error:
            fault = error.offset
        else:
            fault = len(GOOD)
        assert fault is not None
        assert fault >= len(GOOD)
        assert read[: len(good)] == good
    try:
        for batch in read_batches(data, check_crc=False):
            assert repr(batch)
            batch.records(max_decompressed_bytes=1 << 20)
    except CorruptBatchError:
        pass


STORED = {
    f"magic {magic}, {codec}": message_set(5, magic=magic, compression=codec, value=b"value " * 5)
    for magic in (0, 1)
    for codec in ("none", "gzip", "snappy", "lz4")
}


@pytest.mark.parametrize("name", rest_slow(STORED, 2))
def test_truncated_message_sets_are_an_error(name: str) -> None:
    data = STORED[name]
    first = 12 + int.from_bytes(data[8:12], "big")
    for size in range(len(data)):
        read_everything(data[:size])
        if 26 < size < first:  # the same bytes, in a message that declares this size
            shorter = data[:8] + (size - 12).to_bytes(4, "big") + data[12:size]
            read_everything(with_right_checksum(shorter))


@pytest.mark.parametrize("name", rest_slow(STORED, 1))
def test_flipped_bits_are_an_error(name: str) -> None:
    data = STORED[name]
    rng = random.Random(name)
    for _ in range(200):
        broken = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 5))):
            broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        read_everything(bytes(broken))
        read_everything(with_right_checksum(bytes(broken)))


@given(st.binary(max_size=120), st.integers(0, 1), st.sampled_from(["gzip", "snappy", "lz4"]))
def test_noise_inside_a_wrapper_is_an_error(noise: bytes, magic: int, codec: str) -> None:
    read_everything(wrapped(noise, magic=magic, codec=codec))


@given(
    st.binary(max_size=60),
    st.integers(0, 1),
    st.integers(0, 127),
    st.integers(-3, 70),
    st.integers(-3, 70),
)
def test_noise_instead_of_key_and_value_is_an_error(
    noise: bytes, magic: int, attributes: int, key_length: int, value_length: int
) -> None:
    read_everything(
        message(
            magic=magic,
            attributes=attributes,
            key=noise,
            key_length=key_length,
            value_length=value_length,
        )
    )
