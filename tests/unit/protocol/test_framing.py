"""Tests frames: the same frames for any split of the bytes, and the refusal of too large frames."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TypeAlias, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.protocol import framing
from kproto.protocol.framing import REUSED_BYTES, FrameReader, frame
from kproto.wire.errors import EncodeError, ProtocolError
from tests.support.examples import examples

SHARED = framing.SHARED_BUFFER_BYTES

sizes = st.one_of(
    st.integers(0, 40),
    st.integers(SHARED - 8, SHARED + 8),
    st.sampled_from([SHARED // 2, 3 * SHARED]),
)


def contents(size: int) -> bytes:
    """Returns bytes with a period of 251, so that a test notices a piece in the wrong place."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def pieces(stream: bytes, cuts: list[int]) -> Iterator[bytes]:
    """Yields the stream cut at `cuts`."""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    for start, stop in pairwise(places):
        yield stream[start:stop]


def feed(reader: FrameReader, piece: bytes) -> list[bytes]:
    return reader.feed(piece)


def read_into(reader: FrameReader, piece: bytes) -> list[bytes]:
    """Copies a piece into the reader's buffer in as many steps as needed, as a transport does."""
    frames = []
    while piece:
        room = reader.buffer()
        assert len(room) > 0, "a reader must always have room, or the transport takes it for an end"
        count = min(len(room), len(piece))
        room[:count] = piece[:count]
        frames += reader.advance(count)
        piece = piece[count:]
    return frames


Deliver: TypeAlias = Callable[[FrameReader, bytes], list[bytes]]

ways = pytest.mark.parametrize("deliver", [feed, read_into])


@ways
@settings(max_examples=examples(150))
@given(sizes=st.lists(sizes, max_size=8), cuts=st.lists(st.integers(0, 1 << 20), max_size=20))
@pytest.mark.slow
def test_any_split_gives_the_same_frames(
    deliver: Deliver, sizes: list[int], cuts: list[int]
) -> None:
    wanted = [contents(size) for size in sizes]
    reader = FrameReader()
    found = []
    for piece in pieces(b"".join(map(frame, wanted)), cuts):
        found += deliver(reader, piece)
    assert found == wanted
    assert reader.pending == 0


@ways
def test_byte_by_byte(deliver: Deliver) -> None:
    wanted = [b"", b"a", b"", b"bc" * 300]
    reader = FrameReader()
    stream = b"".join(map(frame, wanted))
    found = [got for at in range(len(stream)) for got in deliver(reader, stream[at : at + 1])]
    assert found == wanted


@ways
def test_a_large_frame_grows_as_its_bytes_arrive(deliver: Deliver) -> None:
    wanted = [contents(9 * SHARED + 17), b"behind it", contents(SHARED - 3), contents(5 * SHARED)]
    reader = FrameReader()
    stream = b"".join(map(frame, wanted))
    found = []
    for at in range(0, len(stream), 10_007):
        found += deliver(reader, stream[at : at + 10_007])
    assert found == wanted


@ways
@pytest.mark.parametrize("sent", [0, 1, 5000, SHARED - 4, SHARED, 7 * SHARED, 3_000_000])
def test_a_frame_takes_memory_for_what_came_and_not_for_what_it_announced(
    deliver: Deliver, sent: int
) -> None:
    reader = FrameReader()
    data = struct.pack(">i", 100_000_000) + bytes(sent)
    tracemalloc.start()
    try:
        assert deliver(reader, data) == []
        reader.buffer().release()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # The buffer has as much space again for the following bytes.
    assert taken < 2 * sent + 5_000
    assert reader.pending == (sent if sent >= SHARED - 4 else sent + 4)


@ways
def test_memory_is_kept_for_the_next_frame_up_to_a_bound(deliver: Deliver) -> None:
    """A frame in reused memory must not change frames that the reader returned before."""
    reader = FrameReader()
    wanted = [contents(size) for size in (3_000_000, REUSED_BYTES, 3 * SHARED, 2_000_003)]
    tracemalloc.start()
    try:
        found = []
        for content in wanted:
            found += deliver(reader, frame(content))
            kept = tracemalloc.get_traced_memory()[0] - sum(map(len, found))
            assert kept < REUSED_BYTES + 500_000
    finally:
        tracemalloc.stop()
    assert found == wanted


@ways
def test_frames_come_out_as_bytes(deliver: Deliver) -> None:
    for size in (5, 2 * SHARED):
        (found,) = deliver(FrameReader(), frame(contents(size)))
        assert type(found) is bytes


@ways
@pytest.mark.parametrize(
    ("head", "words"),
    [
        (struct.pack(">i", -1), "announces -1 bytes: the peer does not speak Kafka's protocol"),
        (struct.pack(">i", 1001), r"1001 bytes and at most 1000 are allowed \(max_frame_bytes\)$"),
        (b"HTTP/1.1 400 Bad Request\r\n", "the bytes look like HTTP or TLS"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "the bytes look like HTTP or TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "announces 1397966893 bytes"),
    ],
)
def test_a_size_that_cannot_be(deliver: Deliver, head: bytes, words: str) -> None:
    reader = FrameReader(max_frame_bytes=1000)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match=words):
            deliver(reader, head)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 100_000, "refused before anything is allocated"


@ways
def test_the_bound_itself_is_allowed(deliver: Deliver) -> None:
    assert deliver(FrameReader(max_frame_bytes=1000), frame(bytes(1000))) == [bytes(1000)]


def test_pending_counts_the_bytes_of_an_unfinished_frame() -> None:
    reader = FrameReader()
    reader.feed(frame(b"done") + b"\x00\x00")
    assert reader.pending == 2
    reader.feed(b"\x00\x05abc")
    assert reader.pending == 7
    assert reader.feed(b"de") == [b"abcde"]
    assert reader.pending == 0
    reader.feed(struct.pack(">i", 2 * SHARED) + bytes(100))
    assert reader.pending == 104
    reader.feed(bytes(SHARED))
    assert reader.pending == SHARED + 100


def test_a_frame_is_its_pieces_behind_their_size() -> None:
    assert frame(b"ab", b"", b"cde") == b"\x00\x00\x00\x05abcde"
    assert frame() == b"\x00\x00\x00\x00"


def test_a_frame_that_no_size_can_express() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 31

    with pytest.raises(EncodeError, match="2147483648 bytes"):
        frame(cast(bytes, Huge()))
