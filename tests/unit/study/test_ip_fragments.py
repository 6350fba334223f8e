"""Tests that IP fragments are reassembled in any order; incomplete packets are dropped."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.study.flows import events_of_segments
from kproto.study.ip_fragments import MAX_AGE_US, Fragment, FragmentReassembler, PacketId
from kproto.study.pcap import SkippedPackets, read_segments
from kproto.study.tcp_streams import TcpSegment
from tests.unit.study.packets import LINKS, connection, file_of, ip4, ip6
from tests.unit.study.talk import frames

SEGMENTS = connection(frames(), size=200)

#: A segment in four fragments of 64 bytes.
LARGE = SEGMENTS[4]._replace(data=bytes(200))


def packet(number: int) -> PacketId:
    return (b"a", b"b", number, 6)


def cut(payload: bytes, places: Sequence[int], number: int = 1, at: int = 0) -> list[Fragment]:
    """Returns the fragments of a payload that is cut at `places`, which count units of 8 bytes."""
    starts = [0, *(8 * place for place in places)]
    ends = [*starts[1:], len(payload)]
    return [
        Fragment(at, packet(number), start, end < len(payload), payload[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]


@st.composite
def pieces_of(draw: st.DrawFn, number: int = 1) -> tuple[bytes, list[Fragment]]:
    payload = draw(st.binary(min_size=9, max_size=200))
    places = draw(st.sets(st.integers(1, (len(payload) - 1) // 8), min_size=1, max_size=6))
    return payload, draw(st.permutations(cut(payload, sorted(places), number)))


@given(pieces_of())
def test_pieces_in_any_order_make_the_payload_once(found: tuple[bytes, list[Fragment]]) -> None:
    payload, pieces = found
    waiting = FragmentReassembler()
    *before, last = [waiting.add(piece) for piece in pieces]
    assert before == [None] * len(before)
    assert last == payload
    assert waiting.end() == 0


@given(pieces_of(), st.data())
def test_pieces_that_come_again_change_nothing(
    found: tuple[bytes, list[Fragment]], data: st.DataObject
) -> None:
    """A fragment can occur twice, because a packet may be captured on two interfaces."""
    payload, pieces = found
    doubled = data.draw(st.permutations(pieces * 2))
    waiting = FragmentReassembler()
    got = [waiting.add(piece) for piece in doubled]
    assert [each for each in got if each is not None] == [payload]
    assert waiting.end() == 0


@given(pieces_of(1), pieces_of(2), st.randoms())
def test_two_packets_at_once(
    one: tuple[bytes, list[Fragment]], other: tuple[bytes, list[Fragment]], random: Random
) -> None:
    mixed = one[1] + other[1]
    random.shuffle(mixed)
    waiting = FragmentReassembler()
    got = [whole for piece in mixed if (whole := waiting.add(piece)) is not None]
    assert sorted(got) == sorted([one[0], other[0]])
    assert waiting.end() == 0


@given(pieces_of(), st.data())
def test_a_piece_that_never_comes_leaves_the_others_out(
    found: tuple[bytes, list[Fragment]], data: st.DataObject
) -> None:
    _, pieces = found
    pieces.remove(data.draw(st.sampled_from(pieces)))
    waiting = FragmentReassembler()
    assert [waiting.add(piece) for piece in pieces] == [None] * len(pieces)
    assert waiting.end() == len(pieces)


def test_a_number_that_is_used_again_begins_anew() -> None:
    old, new = cut(bytes(40), [2, 4]), cut(b"\1" * 40, [2, 4])
    waiting = FragmentReassembler()
    assert [waiting.add(piece) for piece in (*old[:2], *new)] == [None] * 4 + [b"\1" * 40]
    assert waiting.end() == 2
    # The same number may also follow a complete packet.
    waiting = FragmentReassembler()
    got = [waiting.add(piece) for piece in (*old, *new)]
    assert [each for each in got if each] == [bytes(40), b"\1" * 40]
    assert waiting.end() == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, True, 16), (8, False, 16)),  # the second one overlaps the end of the first
        ((8, True, 16), (0, True, 16)),  # the second one overlaps the beginning of the first
        ((24, True, 8), (8, False, 9)),  # the packet ends before an earlier fragment
        ((8, False, 9), (24, True, 8)),  # a fragment follows the end
        ((8, False, 9), (24, False, 9)),  # two ends
    ],
)
def test_pieces_that_contradict_are_never_put_together(
    first: tuple[int, bool, int], second: tuple[int, bool, int]
) -> None:
    waiting = FragmentReassembler()
    for offset, more, size in (first, second):
        assert waiting.add(Fragment(0, packet(1), offset, more, bytes(size))) is None
    assert waiting.dropped == 1
    assert waiting.end() == 2


@pytest.mark.parametrize(
    "piece",
    [
        Fragment(0, packet(1), 0, True, b""),
        Fragment(0, packet(1), 0, True, bytes(9)),
        Fragment(0, packet(1), 65_528, False, bytes(16)),
    ],
)
def test_invalid_fragment_is_skipped(piece: Fragment) -> None:
    waiting = FragmentReassembler()
    assert waiting.add(piece) is None
    assert waiting.dropped == waiting.end() == 1


def test_pieces_that_are_too_far_apart() -> None:
    early, late = cut(bytes(16), [1])
    waiting = FragmentReassembler()
    assert waiting.add(early) is None
    assert waiting.add(late._replace(time_us=MAX_AGE_US)) == bytes(16)
    waiting = FragmentReassembler()
    assert waiting.add(early) is None
    assert waiting.add(late._replace(time_us=MAX_AGE_US + 1)) is None
    assert waiting.dropped == 1


@given(st.lists(st.integers(1, 40), min_size=1, max_size=100), st.booleans())
def test_held_fragments_are_bounded(numbers: list[int], by_bytes: bool) -> None:
    bounds = {"max_waiting_bytes": 800} if by_bytes else {"max_waiting_pieces": 10}
    waiting = FragmentReassembler(**bounds)
    begun: list[int] = []
    for number in numbers:
        assert waiting.add(Fragment(0, packet(number), 0, True, bytes(80))) is None
        if number not in begun[-10:]:
            begun.append(number)
    assert waiting.dropped == max(0, len(begun) - 10)
    assert waiting.end() == len(begun)


# --- in captures --------------------------------------------------------------------------------


def ip4_pieces(segment: TcpSegment, number: int, size: int = 64) -> list[bytes]:
    """Returns the fragments of a packet, as a router makes them."""
    whole = ip4(segment)
    head, payload = bytearray(whole[:20]), whole[20:]
    made = []
    for start in range(0, len(payload), size):
        piece = payload[start : start + size]
        more = start + size < len(payload)
        head[2:8] = struct.pack(">HHH", 20 + len(piece), number, more << 13 | start // 8)
        made.append(b"\x45" + bytes(head[1:]) + piece)
    return made


def ip6_pieces(segment: TcpSegment, number: int, size: int = 64) -> list[bytes]:
    """Returns IPv6 fragments of a packet; an options header precedes the fragment header."""
    whole = ip6(segment)
    addresses, payload = whole[8:40], whole[40:]
    options = bytes([44, 0, 1, 4, 0, 0, 0, 0])
    made = []
    for start in range(0, len(payload), size):
        piece = payload[start : start + size]
        more = start + size < len(payload)
        fragment = struct.pack(">BBHI", 6, 0, start | more, number)
        head = struct.pack(">IHBB", 6 << 28, 16 + len(piece), 0, 64)
        made.append(head + addresses + options + fragment + piece)
    return made


MAKERS = {"bare": ip4_pieces, "bare, IPv6": ip6_pieces}


def pcap_of(packets: Sequence[bytes]) -> bytes:
    """Returns a pcap file of IP packets without a link header."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, LINKS["bare"].number)
    for each in packets:
        out += struct.pack("<IIII", 1_700_000_000, 0, len(each), len(each)) + each
    return out


@pytest.mark.parametrize("link", MAKERS)
def test_a_capture_in_pieces_is_that_of_whole_packets(link: str) -> None:
    whole = list(read_segments(io.BytesIO(file_of(SEGMENTS, link))))
    packets = [
        piece
        for number, segment in enumerate(SEGMENTS)
        for piece in reversed(MAKERS[link](segment, number))
    ]
    assert len(packets) > len(SEGMENTS)
    skipped = SkippedPackets()
    found = list(read_segments(io.BytesIO(pcap_of(packets)), skipped))
    assert [each[1:] for each in found] == [each[1:] for each in whole]
    assert skipped == SkippedPackets()
    apis = [one.event.api for one in events_of_segments(found)]
    assert apis == [api for api in ("ApiVersions", "Metadata", "Produce", "Fetch") for _ in "CB"]


@pytest.mark.parametrize("link", MAKERS)
@pytest.mark.parametrize("size", [8, 16, 24])
def test_a_first_piece_without_a_whole_header_of_tcp(link: str, size: int) -> None:
    packets = MAKERS[link](LARGE, 1, size)
    (found,) = read_segments(io.BytesIO(pcap_of(packets)))
    assert found[3:] == LARGE[3:]


@pytest.mark.parametrize("link", MAKERS)
def test_pieces_that_are_never_whole_are_counted(link: str) -> None:
    pieces = MAKERS[link](LARGE, 1)
    assert len(pieces) == 4
    skipped = SkippedPackets()
    data = pcap_of([*MAKERS[link](SEGMENTS[3], 2), *pieces[1:]])
    assert len(list(read_segments(io.BytesIO(data), skipped))) == 1
    assert skipped == SkippedPackets(fragments=3)
    # A packet is not complete either if the capture has only the beginning of a fragment.
    skipped = SkippedPackets()
    data = pcap_of([pieces[0][:-8], *pieces[1:]])
    assert list(read_segments(io.BytesIO(data), skipped)) == []
    assert skipped == SkippedPackets(fragments=4)


def test_one_piece_that_is_all() -> None:
    """An IPv6 fragment may contain the whole packet (RFC 6946)."""
    (piece,) = ip6_pieces(LARGE, 1, size=1024)
    (found,) = read_segments(io.BytesIO(pcap_of([piece])))
    assert found[3:] == LARGE[3:]


def test_pieces_of_other_protocols_are_other_packets() -> None:
    pieces = [bytearray(each) for each in ip4_pieces(LARGE, 1)]
    for each in pieces:
        each[9] = 17
    skipped = SkippedPackets()
    assert list(read_segments(io.BytesIO(pcap_of([bytes(each) for each in pieces])), skipped)) == []
    assert skipped == SkippedPackets(other_protocol=4)
