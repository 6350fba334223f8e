"""Tests header checksums of lz4 frames: correct checksums, and Kafka's wrong ones in magic 0."""

from __future__ import annotations

import json
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import codec_for_name
from kproto.records.codecs.lz4_frame import with_checksum_of_magic_0, with_right_checksum

LZ4 = codec_for_name("lz4")
GOLDEN = json.loads((Path(__file__).parents[1] / "golden_message_sets.json").read_text())
FRAME_OF_MAGIC_0, FRAME_OF_MAGIC_1 = (
    data[data.index(b"\x04\x22\x4d\x18") :]
    for data in (
        bytes.fromhex(case["hex"])
        for name in ("magic 0, lz4", "magic 1, lz4")
        for case in GOLDEN["cases"]
        if case["name"] == name
    )
)


def test_frames_of_java_have_their_checksums() -> None:
    assert with_right_checksum(FRAME_OF_MAGIC_1) == FRAME_OF_MAGIC_1
    assert with_checksum_of_magic_0(FRAME_OF_MAGIC_0) == FRAME_OF_MAGIC_0
    assert with_right_checksum(FRAME_OF_MAGIC_0) != FRAME_OF_MAGIC_0
    with pytest.raises(ValueError, match="lz4"):
        LZ4.decompress(FRAME_OF_MAGIC_0, 1000)
    assert LZ4.decompress(with_right_checksum(FRAME_OF_MAGIC_0), 1000)


@given(st.binary(max_size=200), st.booleans())
def test_checksums_are_converted_both_ways(data: bytes, sized: bool) -> None:
    frame = bytes(cramjam.lz4.compress(data)) if sized else LZ4.compress(data, 1)
    assert with_right_checksum(frame) == frame, "the checksum of another implementation"
    broken = with_checksum_of_magic_0(frame)
    assert len(broken) == len(frame)
    assert with_right_checksum(broken) == frame


@given(st.binary(max_size=40))
def test_other_bytes_than_frames_are_unchanged(data: bytes) -> None:
    assert with_right_checksum(data) == data
    assert with_checksum_of_magic_0(data) == data
    cut = b"\x04\x22\x4d\x18" + data[:2]
    assert with_right_checksum(cut) == cut


@pytest.mark.parametrize("content_checksum", [False, True])
def test_wrong_content_size_of_an_lz4_frame_is_ignored(content_checksum: bool) -> None:
    """Kafka's Lz4BlockInputStream does not compare the declared content size with the content."""
    compressor = cramjam.lz4.Compressor(
        level=1, content_checksum=content_checksum, block_linked=False
    )
    compressor.compress(b"text " * 40_000)
    frame = bytes(compressor.finish())
    head = bytes([frame[4] | 0x08, frame[5]])
    for size in (0, 7, 200_000, 200_001, 2**63):
        sized = with_right_checksum(
            frame[:4] + head + size.to_bytes(8, "little") + b"\0" + frame[7:]
        )
        assert LZ4.decompress(sized, 200_000) == b"text " * 40_000
        with pytest.raises(ValueError, match="bound of 199999"):
            LZ4.decompress(sized, 199_999)
    with pytest.raises(ValueError, match="lz4"):
        LZ4.decompress(sized[:-9], 200_000)
