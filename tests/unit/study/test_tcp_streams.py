"""Tests that the bytes of a TCP stream are returned once and in order, however captured."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given as given_by
from hypothesis import strategies as st

from kproto.study.tcp_streams import Gap, StreamData, TcpStream

MODULUS = 1 << 32


def datas(pieces: list[StreamData]) -> list[bytes | Gap]:
    return [piece.data for piece in pieces]


@st.composite
def captured(draw: st.DrawFn) -> tuple[bytes, int, list[tuple[int, bytes]]]:
    """Draws the bytes of a stream, its first sequence number, and its segments in any order.

    Some segments overlap or repeat others.
    """
    data = draw(st.binary(min_size=1, max_size=200))
    first = draw(st.one_of(st.integers(0, MODULUS - 1), st.integers(MODULUS - 150, MODULUS - 1)))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=10)))
    edges = [0, *(cut for cut in cuts if cut < len(data)), len(data)]
    pieces = list(pairwise(edges))
    again = draw(
        st.lists(
            st.tuples(st.integers(0, len(data)), st.integers(0, len(data))).map(
                lambda ends: (min(ends), max(ends))
            ),
            max_size=8,
        )
    )
    order = draw(st.permutations(pieces + again))
    return data, first, [((first + a) % MODULUS, data[a:b]) for a, b in order]


@given_by(captured())
def test_shuffled_doubled_and_overlapping_segments_come_out_the_same(
    drawn: tuple[bytes, int, list[tuple[int, bytes]]],
) -> None:
    data, first, segments = drawn
    stream = TcpStream()
    stream.on_syn((first - 1) % MODULUS)
    out = [given for sequence, piece in segments for given in datas(stream.add(sequence, piece, 0))]
    assert b"".join(piece for piece in out if isinstance(piece, bytes)) == data
    assert len(out) == len([piece for piece in out if piece])
    assert stream.end() == []
    assert stream.add(first, data, 0) == []


@given_by(captured(), st.data())
def test_missing_bytes_are_a_gap_of_their_size(
    drawn: tuple[bytes, int, list[tuple[int, bytes]]], data: st.DataObject
) -> None:
    whole, first, segments = drawn
    kept = data.draw(st.lists(st.sampled_from(segments), max_size=6))
    stream = TcpStream()
    stream.on_syn((first - 1) % MODULUS)
    out = [given for sequence, piece in kept for given in datas(stream.add(sequence, piece, 0))]
    out += datas(stream.end())
    position = 0
    for given in out:
        if isinstance(given, Gap):
            assert given.size > 0
            position += given.size
        else:
            assert whole[position : position + len(given)] == given
            position += len(given)
    ends = [(sequence - first) % MODULUS + len(piece) for sequence, piece in kept if piece]
    assert position == max(ends, default=0)


def test_bytes_that_the_receiver_has_and_nobody_captured_are_lost() -> None:
    stream = TcpStream()
    stream.on_syn(99)
    assert stream.add(110, b"later", 7) == []
    assert stream.acknowledge(110) == []  # the missing bytes may still arrive
    found = [stream.acknowledge(115) for _ in range(3)]
    assert found == [[], [], [StreamData(7, Gap(10)), StreamData(7, b"later")]]


def test_bytes_have_the_time_at_which_they_were_there() -> None:
    filled = TcpStream()
    filled.on_syn(99)
    assert filled.add(103, b"later", 7) == []
    assert filled.add(100, b"one", 9) == [StreamData(9, b"one"), StreamData(9, b"later")]
    missed = TcpStream()
    missed.on_syn(99)
    assert missed.add(103, b"later", 7) == []
    assert missed.add(108, b"last", 8) == []
    assert missed.end() == [StreamData(7, Gap(3)), StreamData(7, b"later"), StreamData(8, b"last")]


def test_waiting_bytes_are_bounded() -> None:
    stream = TcpStream(max_waiting_bytes=10)
    stream.on_syn(99)
    assert stream.add(200, b"12345678", 0) == []
    assert datas(stream.add(300, b"123", 0)) == [Gap(100), b"12345678"]
    many = TcpStream(max_waiting_segments=2)
    many.on_syn(99)
    assert [datas(many.add(110 + 10 * n, b"x", 0)) for n in range(3)] == [[], [], [Gap(10), b"x"]]


def test_a_stream_may_be_seen_from_its_middle() -> None:
    stream = TcpStream()
    assert datas(stream.add(1000, b"abc", 0)) == [b"abc"]
    assert stream.add(999, b"", 0) == []  # a keepalive
    assert stream.add(998, b"xx", 0) == []
    assert not stream.has_start
    assert stream.is_new_connection(5)


def test_ten_thousand_segments_in_reverse() -> None:
    stream = TcpStream()
    stream.on_syn(0)
    for n in reversed(range(1, 10_000)):
        assert stream.add(1 + n, b"x", 0) == []
    found = datas(stream.add(1, b"x", 0))
    assert b"".join(piece for piece in found if isinstance(piece, bytes)) == b"x" * 10_000
