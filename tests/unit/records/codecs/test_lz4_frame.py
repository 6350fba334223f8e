"""Tests the header checksum of lz4 frames: the correct one, and Kafka's wrong one for magic 0."""

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
