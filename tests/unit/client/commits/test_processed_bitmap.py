"""Tests commit metadata, which lists processed records after the committed offset.

Tests that the offsets of these records are encoded and restored, and that unusable metadata is
ignored.
"""

from __future__ import annotations

import logging
import zlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.commits.processed_bitmap import (
    ProcessedBitmap,
    build_bitmap,
    decode_bitmap,
    encode_bitmap,
    has_bitmap,
    merge_bitmaps,
)
from kproto.wire.uuid import Uuid

BASES = st.one_of(st.integers(0, 100), st.integers(0, 2**62))
EPOCHS = st.integers(-1, 2**31 - 1)


def offsets_of(bitmap: ProcessedBitmap | None) -> set[int]:
    if bitmap is None:
        return set()
    return {offset for offset in range(bitmap.base, bitmap.end) if bitmap.is_processed(offset)}


@given(BASES, st.sets(st.integers(0, 300), min_size=1), st.integers(0, 20), EPOCHS)
def test_offsets_up_to_the_edge_are_processed_unless_incomplete(
    base: int, holes: set[int], behind: int, epoch: int
) -> None:
    incomplete = sorted(base + hole for hole in holes)
    edge = incomplete[-1] + behind
    bitmap = build_bitmap(edge, incomplete, epoch)
    done = set(range(incomplete[0], edge + 1)) - set(incomplete)
    assert offsets_of(bitmap) == done
    assert bitmap is None or (bitmap.epoch == epoch and not bitmap.is_processed(bitmap.end))


def test_large_gap_is_cut_off() -> None:
    """Compaction can leave an offset gap of any size; such a gap must take no memory."""
    bitmap = build_bitmap(2**40, [5, 9, 2**39], 3)
    assert bitmap is not None
    assert (bitmap.base, len(bitmap.bits)) == (5, 1 << 20)
    assert [bitmap.is_processed(offset) for offset in (5, 8, 9, 10)] == [False, True, False, True]
    text = encode_bitmap(bitmap, 5)
    decoded = decode_bitmap(text, 5)
    assert decoded is not None
    assert [decoded.is_processed(offset) for offset in (5, 8, 9, 10)] == [False, True, False, True]
    assert build_bitmap(2**40, [5, 6], 3) is not None


def test_bitmap_far_ahead_is_not_merged() -> None:
    own, before = made(5, {1}, 0), made(2**40, {1}, 0)
    assert merge_bitmaps(own, before) == own


def test_result_is_none_without_offsets_processed_ahead() -> None:
    assert build_bitmap(7, [], 0) is None
    assert build_bitmap(7, [5, 6, 7], 0) is None


@given(BASES, st.sets(st.integers(1, 3_000), min_size=1), EPOCHS, st.integers(-20, 3_100))
def test_metadata_restores_the_processed_offsets_after_its_offset(
    base: int, done: set[int], epoch: int, moved: int
) -> None:
    bitmap = made(base, done, epoch)
    offset = max(0, base + moved)
    text = encode_bitmap(bitmap, offset)
    wanted = {each for each in offsets_of(bitmap) if each >= offset >= base}
    assert offsets_of(decode_bitmap(text, offset)) == wanted
    assert has_bitmap(text) == bool(wanted)
    found = decode_bitmap(text, offset)
    assert found is None or found.epoch == epoch


def made(base: int, done: set[int], epoch: int) -> ProcessedBitmap:
    bits = sum(1 << at for at in done)
    return ProcessedBitmap(base, bits.to_bytes((bits.bit_length() + 7) // 8, "little"), epoch)


@given(st.randoms(use_true_random=False), st.integers(1, 60_000), st.integers(0, 4_096))
def test_offsets_beyond_the_size_limit_are_cut_off_at_the_end(
    chance: object, count: int, most: int
) -> None:
    bits = chance.getrandbits(count) | 1 << count  # type: ignore[attr-defined]
    bitmap = ProcessedBitmap(10, bits.to_bytes(count // 8 + 1, "little"), 3)
    text = encode_bitmap(bitmap, 10, most=most)
    assert len(text) <= most
    decoded = decode_bitmap(text, 10)
    if decoded is not None:
        length = 8 * len(decoded.bits)
        assert int.from_bytes(decoded.bits, "little") == bits & ((1 << length) - 1)


def test_default_size_holds_24000_offsets_of_any_pattern() -> None:
    alternate = int("01" * 12_000, 2)
    for bits in (alternate, (1 << 24_000) - 1, 0x123456789ABCDEF**400 % (1 << 24_000)):
        bitmap = ProcessedBitmap(0, bits.to_bytes(3_000, "little"), 2**31 - 1)
        assert offsets_of(decode_bitmap(encode_bitmap(bitmap, 0), 0)) == offsets_of(bitmap)


@given(
    st.integers(0, 50),
    st.sets(st.integers(0, 60), min_size=1),
    st.integers(0, 10),
    st.sets(st.integers(0, 120)),
)
def test_offsets_that_other_members_processed_stay_processed(
    base: int, holes: set[int], behind: int, before: set[int]
) -> None:
    """Merges an earlier bitmap with the member's own bitmap.

    The earlier bitmap adds only offsets after the end of the member's bitmap: the member itself
    knows which offsets up to this end are processed.
    """
    incomplete = sorted(base + hole for hole in holes)
    edge = incomplete[-1] + behind
    own = build_bitmap(edge, incomplete, 4)
    there = made(0, before - set(incomplete), 7) if before - set(incomplete) else None
    found = merge_bitmaps(own, there)
    wanted = offsets_of(own) | {at for at in offsets_of(there) if at > edge}
    if own is None:
        assert found is there
    else:
        assert {at for at in offsets_of(found) if at > edge or at in offsets_of(own)} == wanted
        assert not offsets_of(found) & set(incomplete)


def test_offsets_of_an_older_leader_epoch_are_dropped() -> None:
    own = build_bitmap(3, [1], 5)
    assert own is not None
    assert merge_bitmaps(own, made(2, {9}, 4)) == own
    assert merge_bitmaps(own, made(2, {9}, 5)) != own
    assert merge_bitmaps(own, made(2, {9}, -1)) != own


@pytest.mark.parametrize(
    "text",
    [
        "kproto.done/1 ",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA x 3 r AQ==",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 r",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 x r AQ==",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 y AQ==",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 r A",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 r ÄÖ==",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 z AQ==",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 z eJw=",
        "kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 r AQ== more",
    ],
)
def test_damaged_metadata_is_ignored_with_a_warning(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "kproto.client"):
        assert decode_bitmap(text, 10) is None
    assert "are redelivered" in caplog.text


def test_metadata_that_would_exhaust_memory_is_ignored() -> None:
    bomb = b64encode(zlib.compress(b"\xff" * (1 << 24))).decode()
    assert decode_bitmap(f"kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 z {bomb}", 10) is None


def test_metadata_of_another_offset_or_topic_is_ignored() -> None:
    """MirrorMaker copies metadata to a cluster in which the offsets belong to other records."""
    bitmap = build_bitmap(12, [10], 3)
    one, other = Uuid.random(), Uuid.random()
    text = encode_bitmap(bitmap, 10, one)
    assert offsets_of(decode_bitmap(text, 10, one)) == {11, 12}
    assert offsets_of(decode_bitmap(text, 10)) == {11, 12}
    assert decode_bitmap(text, 10, other) is None
    assert decode_bitmap(text, 9, one) is None
    assert decode_bitmap(text, 11, one) is None
    assert offsets_of(decode_bitmap(encode_bitmap(bitmap, 10), 10, one)) == {11, 12}


@given(st.text())
def test_metadata_of_other_clients_is_ignored(text: str) -> None:
    assert decode_bitmap(text, 0) is None
    assert not has_bitmap(text)
