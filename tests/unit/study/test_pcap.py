"""Tests that captures of every link type and format yield the segments that were captured."""

from __future__ import annotations

import contextlib
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.study.pcap import SkippedPackets, is_capture, read_segments
from kproto.wire.errors import ConfigurationError, DecodeError
from tests.unit.study.packets import FORMATS, LINKS, MAC, connection, file_of
from tests.unit.study.talk import frames

SEGMENTS = connection(frames())


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("form", FORMATS)
def test_every_link_in_every_form(link: str, form: str) -> None:
    data = file_of(SEGMENTS, link, form)
    assert is_capture(data)
    skipped = SkippedPackets()
    found = list(read_segments(io.BytesIO(data), skipped))
    assert skipped == SkippedPackets()
    assert len(found) == len(SEGMENTS)
    for ours, expected in zip(found, SEGMENTS, strict=True):
        assert ours[3:] == expected[3:]
        assert abs(ours.time_us - expected.time_us) <= 1
        for end, was in ((ours.source, expected.source), (ours.target, expected.target)):
            assert end[1] == was[1]
            assert end[0] == was[0] or "IPv6" in link or ":" in end[0]


@given(st.data())
def test_a_file_that_is_cut_off_gives_what_is_before(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(sorted(FORMATS)))
    whole = file_of(SEGMENTS, form=form)
    cut = data.draw(st.integers(4, len(whole) - 1))
    skipped = SkippedPackets()
    found = list(read_segments(io.BytesIO(whole[:cut]), skipped))
    assert [each[3:] for each in found] == [each[3:] for each in SEGMENTS[: len(found)]]
    assert len(found) < len(SEGMENTS)


@given(st.sampled_from(sorted(FORMATS)), st.sampled_from(sorted(LINKS)), st.data())
def test_broken_bytes_are_left_out(form: str, link: str, data: st.DataObject) -> None:
    whole = bytearray(file_of(SEGMENTS[:6], link, form))
    places = data.draw(st.lists(st.integers(4, len(whole) - 1), min_size=1, max_size=6))
    for place in places:
        whole[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DecodeError):  # the broken link type may be unknown
        assert len(list(read_segments(io.BytesIO(bytes(whole))))) <= 6


def test_packets_other_than_tcp_are_counted() -> None:
    data = file_of(SEGMENTS[:1])
    fragment = bytearray(data[40:])
    fragment[14 + 6] = 0x20  # the flag "more fragments"
    arp = MAC + b"\x08\x06" + bytes(28)
    packets = [bytes(fragment), arp, MAC + b"\x08\x00\x45", b"\1"]
    for packet in packets:
        data += bytes(8) + len(packet).to_bytes(4, "little") * 2 + packet
    skipped = SkippedPackets()
    assert len(list(read_segments(io.BytesIO(data), skipped))) == 1
    assert skipped.fragments == 1
    assert skipped.other_protocol + skipped.broken == 3


def test_other_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DecodeError, match="no pcap or pcapng file"):
        list(read_segments(io.BytesIO(b"hello, world")))
    unknown = bytearray(file_of(SEGMENTS[:1]))
    unknown[20] = 195
    with pytest.raises(DecodeError, match="link type 195 cannot be read"):
        list(read_segments(io.BytesIO(bytes(unknown))))
    monkeypatch.setitem(sys.modules, "dpkt", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'kproto\[capture\]'"):
        list(read_segments(io.BytesIO(file_of(SEGMENTS[:1]))))
