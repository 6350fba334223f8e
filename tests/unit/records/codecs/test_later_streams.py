"""Tests compressed data with further streams, or other bytes, after the first stream.

The expected results are those of the streams that Kafka's Java classes use: GZIPInputStream,
Lz4BlockInputStream, ZstdInputStream and SnappyInputStream.
"""

from __future__ import annotations

import gzip
import zlib

import pytest

from kproto.records import codec_for_name
from kproto.records.codecs.lz4_frame import with_right_checksum

FIRST, SECOND = b"the first stream", b"and the second one"
LIMIT = 1_000
LZ4_MAGIC = b"\x04\x22\x4d\x18"


def decompressed(codec: str, data: bytes) -> bytes:
    """Returns the result of `decompress`; `decompress_into` must return an equal result or None."""
    result = codec_for_name(codec).decompress(data, LIMIT)
    buffer = memoryview(bytearray(LIMIT))
    size = codec_for_name(codec).decompress_into(data, buffer)
    assert size is None or buffer[:size] == result
    return result


def member(content: bytes, flags: int, fields: bytes = b"") -> bytes:
    """Returns a gzip member of `content`; its header has `flags` and the optional `fields`."""
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    header = b"\x1f\x8b\x08" + bytes((flags,)) + bytes(6) + fields
    if flags & 2:
        header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    body = deflater.compress(content) + deflater.flush()
    trailer = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    return header + body + trailer


@pytest.mark.parametrize(
    ("flags", "fields"),
    [(0, b""), (0x20, b""), (0xE0, b""), (0x82, b""), (0x2C, b"\x02\x00abname\0")],
)
def test_reserved_flags_of_any_gzip_member_are_ignored(flags: int, fields: bytes) -> None:
    odd = member(SECOND, flags, fields)
    assert decompressed("gzip", gzip.compress(FIRST) + odd) == FIRST + SECOND
    assert decompressed("gzip", odd + odd + odd) == 3 * SECOND


def test_gzip_member_with_a_wrong_header_checksum_is_ignored_behind_another() -> None:
    odd = bytearray(member(SECOND, 0x02))
    odd[10] ^= 1
    assert decompressed("gzip", gzip.compress(FIRST) + bytes(odd)) == FIRST


def test_later_gzip_member_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="gzip"):
        decompressed("gzip", gzip.compress(FIRST) + member(SECOND, 0)[:-1])


def test_later_lz4_frames_are_ignored() -> None:
    first, second = (codec_for_name("lz4").compress(each, 1) for each in (FIRST, SECOND))
    assert decompressed("lz4", first + second) == FIRST
    assert decompressed("lz4", first + b"noise") == FIRST
    assert decompressed("lz4", codec_for_name("lz4").compress(b"", 1) + second) == b""


def lz4_frame(flags: int, end_mark: bytes, behind: bytes = b"") -> bytes:
    """Returns an lz4 frame with `FIRST` as its only block, which is not compressed."""
    block = (len(FIRST) | 0x80000000).to_bytes(4, "little") + FIRST
    return with_right_checksum(LZ4_MAGIC + bytes((flags, 0x40, 0)) + block + end_mark + behind)


@pytest.mark.parametrize("end_mark", [bytes(4), b"\0\0\0\x80"])
def test_uncompressed_block_of_0_bytes_ends_an_lz4_frame(end_mark: bytes) -> None:
    assert decompressed("lz4", lz4_frame(0x60, end_mark)) == FIRST
    assert decompressed("lz4", lz4_frame(0x60, end_mark, b"noise")) == FIRST
    assert decompressed("lz4", lz4_frame(0x64, end_mark, b"any checksum")) == FIRST


def test_lz4_frame_with_linked_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="blocks of the frame are linked"):
        decompressed("lz4", lz4_frame(0x40, bytes(4)))
    output = memoryview(bytearray(LIMIT))
    assert codec_for_name("lz4").decompress_into(lz4_frame(0x40, bytes(4)), output) is None


def test_skippable_lz4_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="lz4: no frame begins at byte 0"):
        decompressed("lz4", SKIPPABLE + codec_for_name("lz4").compress(FIRST, 1))


SKIPPABLE = b"\x5a\x2a\x4d\x18\x03\0\0\0abc"


@pytest.mark.parametrize("rest", [SKIPPABLE[:at] for at in range(len(SKIPPABLE) + 1)])
def test_cut_skippable_frame_behind_a_zstd_frame_is_ignored(rest: bytes) -> None:
    first = codec_for_name("zstd").compress(FIRST, 3)
    assert decompressed("zstd", first + rest) == FIRST
    assert decompressed("zstd", SKIPPABLE + first + rest) == FIRST


ZSTD = b"\x28\xb5\x2f\xfd"


@pytest.mark.parametrize(
    "rest",
    [
        ZSTD + b"\x20\x09\x49\0\0",  # a raw block of 9 bytes, which lacks its content
        ZSTD + b"\x00\x50\x4d\0\0" + bytes(8),  # a compressed block of 9 bytes, which lacks one
        ZSTD + b"\x20\x09\x4b\0\0",
        ZSTD + b"\x60\x01\x00",  # 257 bytes, without a block
        ZSTD + b"\x00",
    ],
)
def test_zstd_frame_without_content_behind_another_is_ignored(rest: bytes) -> None:
    assert decompressed("zstd", codec_for_name("zstd").compress(FIRST, 3) + rest) == FIRST


@pytest.mark.parametrize(
    "rest",
    [
        ZSTD + b"\x20\x09\x51\0\0",  # a raw block of 10 bytes in a frame of 9
        ZSTD + b"\x20\x09\x4f\0\0",  # a block of the reserved type
        ZSTD + b"\x28\x09",  # a reserved flag
        ZSTD + b"\x21\x05\x09",  # a dictionary
        ZSTD + b"\x00\x90",  # a window of 256 MiB
    ],
)
def test_invalid_header_of_a_cut_zstd_frame_is_refused(rest: bytes) -> None:
    with pytest.raises(ValueError, match="zstd"):
        decompressed("zstd", codec_for_name("zstd").compress(FIRST, 3) + rest)


@pytest.mark.parametrize("rest", [b"\x60\x2a\x4d", b"\x5a\x2b", b"\x29", b"abcd"])
def test_other_bytes_behind_a_zstd_frame_are_refused(rest: bytes) -> None:
    with pytest.raises(ValueError, match="no frame begins"):
        decompressed("zstd", codec_for_name("zstd").compress(FIRST, 3) + rest)


def test_snappy_header_with_a_version_below_1_is_refused() -> None:
    first, second = (codec_for_name("snappy").compress(each, 0) for each in (FIRST, SECOND))
    assert decompressed("snappy", first + second) == FIRST + SECOND
    for version in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
        odd = second[:8] + version + second[12:]
        for data in (odd, first + odd):
            with pytest.raises(ValueError, match="snappy: the header has version"):
                decompressed("snappy", data)
