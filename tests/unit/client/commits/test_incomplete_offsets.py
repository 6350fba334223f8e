"""What is done ahead, as commits tell it: on plain data, and read by whoever goes on."""

from __future__ import annotations

import logging
import zlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.commits.incomplete_offsets import (
    IncompleteOffsets,
    ahead_in,
    ahead_of,
    is_told,
    joined,
    text_of,
)
from kproto.wire.uuid import Uuid

BASES = st.one_of(st.integers(0, 100), st.integers(0, 2**62))
EPOCHS = st.integers(-1, 2**31 - 1)


def offsets_of(ahead: IncompleteOffsets | None) -> set[int]:
    if ahead is None:
        return set()
    return {offset for offset in range(ahead.base, ahead.top) if ahead.has(offset)}


@given(BASES, st.sets(st.integers(0, 300), min_size=1), st.integers(0, 20), EPOCHS)
def test_what_is_not_undone_up_to_the_edge_is_done(
    base: int, holes: set[int], behind: int, epoch: int
) -> None:
    undone = sorted(base + hole for hole in holes)
    edge = undone[-1] + behind
    ahead = ahead_of(edge, undone, epoch)
    done = set(range(undone[0], edge + 1)) - set(undone)
    assert offsets_of(ahead) == done
    assert ahead is None or (ahead.epoch == epoch and not ahead.has(ahead.top))


def test_where_nothing_is_undone_nothing_is_ahead() -> None:
    assert ahead_of(7, [], 0) is None
    assert ahead_of(7, [5, 6, 7], 0) is None


@given(BASES, st.sets(st.integers(1, 3_000), min_size=1), EPOCHS, st.integers(-20, 3_100))
def test_a_text_says_what_is_done_behind_its_offset(
    base: int, done: set[int], epoch: int, moved: int
) -> None:
    ahead = made(base, done, epoch)
    offset = max(0, base + moved)
    text = text_of(ahead, offset)
    wanted = {each for each in offsets_of(ahead) if each >= offset >= base}
    assert offsets_of(ahead_in(text, offset)) == wanted
    assert is_told(text) == bool(wanted)
    found = ahead_in(text, offset)
    assert found is None or found.epoch == epoch


def made(base: int, done: set[int], epoch: int) -> IncompleteOffsets:
    bits = sum(1 << at for at in done)
    return IncompleteOffsets(base, bits.to_bytes((bits.bit_length() + 7) // 8, "little"), epoch)


@given(st.randoms(use_true_random=False), st.integers(1, 60_000), st.integers(0, 4_096))
def test_what_finds_no_room_is_left_out_from_the_end(chance: object, count: int, most: int) -> None:
    bits = chance.getrandbits(count) | 1 << count  # type: ignore[attr-defined]
    ahead = IncompleteOffsets(10, bits.to_bytes(count // 8 + 1, "little"), 3)
    text = text_of(ahead, 10, most=most)
    assert len(text) <= most
    told = ahead_in(text, 10)
    if told is not None:
        length = 8 * len(told.bits)
        assert int.from_bytes(told.bits, "little") == bits & ((1 << length) - 1)


def test_so_many_offsets_find_room_by_default_whatever_they_are() -> None:
    alternate = int("01" * 12_000, 2)
    for bits in (alternate, (1 << 24_000) - 1, 0x123456789ABCDEF**400 % (1 << 24_000)):
        ahead = IncompleteOffsets(0, bits.to_bytes(3_000, "little"), 2**31 - 1)
        assert offsets_of(ahead_in(text_of(ahead, 0), 0)) == offsets_of(ahead)


@given(
    st.integers(0, 50),
    st.sets(st.integers(0, 60), min_size=1),
    st.integers(0, 10),
    st.sets(st.integers(0, 120)),
)
def test_what_others_had_done_behind_stays_done(
    base: int, holes: set[int], behind: int, before: set[int]
) -> None:
    """What lies before the edge is known here: nothing of it that is undone was done before."""
    undone = sorted(base + hole for hole in holes)
    edge = undone[-1] + behind
    own = ahead_of(edge, undone, 4)
    there = made(0, before - set(undone), 7) if before - set(undone) else None
    found = joined(own, there)
    wanted = offsets_of(own) | {at for at in offsets_of(there) if at > edge}
    if own is None:
        assert found is there
    else:
        assert {at for at in offsets_of(found) if at > edge or at in offsets_of(own)} == wanted
        assert not offsets_of(found) & set(undone)


def test_what_was_done_in_a_log_that_is_gone_is_not() -> None:
    own = ahead_of(3, [1], 5)
    assert own is not None
    assert joined(own, made(2, {9}, 4)) == own
    assert joined(own, made(2, {9}, 5)) != own
    assert joined(own, made(2, {9}, -1)) != own


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
def test_a_damaged_text_says_nothing_and_that_is_told(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "kproto.client"):
        assert ahead_in(text, 10) is None
    assert "comes again" in caplog.text


def test_a_text_that_would_fill_the_memory_says_nothing() -> None:
    bomb = b64encode(zlib.compress(b"\xff" * (1 << 24))).decode()
    assert ahead_in(f"kproto.done/1 AAAAAAAAAAAAAAAAAAAAAA 10 3 z {bomb}", 10) is None


def test_a_text_that_was_copied_to_another_offset_or_topic_says_nothing() -> None:
    """MirrorMaker does, where offsets mean other records."""
    ahead = ahead_of(12, [10], 3)
    one, other = Uuid.random(), Uuid.random()
    text = text_of(ahead, 10, one)
    assert offsets_of(ahead_in(text, 10, one)) == {11, 12}
    assert offsets_of(ahead_in(text, 10)) == {11, 12}
    assert ahead_in(text, 10, other) is None
    assert ahead_in(text, 9, one) is None
    assert ahead_in(text, 11, one) is None
    assert offsets_of(ahead_in(text_of(ahead, 10), 10, one)) == {11, 12}


@given(st.text())
def test_the_texts_of_others_say_nothing(text: str) -> None:
    assert ahead_in(text, 0) is None
    assert not is_told(text)
