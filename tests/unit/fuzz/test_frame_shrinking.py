"""Tests shrinking: the frames that show a broker's fault become few and short."""

from __future__ import annotations

import struct
from itertools import islice

import pytest

from kproto.fuzz.frame_generation import FRAME_KINDS, Frame, generate_frames
from kproto.fuzz.frame_shrinking import smallest_frames
from kproto.messages import MetadataRequest

VERSIONS = {3: range(10), 18: range(4)}


def met(kind: str, count: int) -> tuple[Frame, ...]:
    return tuple(islice(generate_frames(VERSIONS, 3, (kind,)), count))


def asks_for_a_topic(frame: Frame) -> bool:
    """Returns whether a frame is a Metadata request that names topics; the frame must be valid."""
    assert frame.version is not None
    if frame.api_key != 3:
        return False
    assert struct.unpack_from(">i", frame.data)[0] == len(frame.data) - 4
    at = 14 + max(0, struct.unpack_from(">h", frame.data, 12)[0]) + (frame.version >= 9)
    return bool(MetadataRequest.decode(frame.data[at:], frame.version).topics)


def test_frames_that_are_not_needed_are_left_out() -> None:
    frames = met("noise", 9)
    assert smallest_frames(frames, lambda tried: frames[4] in tried) == (frames[4],)
    two = {frames[2].data, frames[6].data}
    found = smallest_frames(frames, lambda tried: two <= {frame.data for frame in tried})
    assert {frame.data for frame in found} == two


def test_a_sound_request_gets_smaller_and_stays_sound() -> None:
    shown = [frame for frame in met("sound", 60) if asks_for_a_topic(frame)]
    assert len(shown) > 3
    for frame in shown:
        (found,) = smallest_frames((frame,), lambda tried: asks_for_a_topic(tried[0]))
        assert asks_for_a_topic(found)
        assert len(found.data) < 40
        assert (found.kind, found.version, found.correlation_id) == (
            frame.kind,
            frame.version,
            frame.correlation_id,
        )


def test_requests_that_are_not_needed_are_taken_out_of_a_frame_with_several() -> None:
    frame = met("several", 1)[0]
    (size,) = struct.unpack_from(">i", frame.data)
    wanted = frame.data[4 : 4 + size]
    (found,) = smallest_frames((frame,), lambda tried: wanted in tried[0].data)
    assert found.data in (wanted, struct.pack(">i", size) + wanted)


@pytest.mark.parametrize("kind", ["header", "unknown"])
def test_the_size_in_front_stays_right(kind: str) -> None:
    frame = next(it for it in met(kind, 20) if b"kproto" in it.data)
    (found,) = smallest_frames((frame,), lambda tried: b"kproto" in tried[0].data)
    assert found.data == b"\0\0\0\6kproto"


@pytest.mark.parametrize("kind", FRAME_KINDS)
def test_any_frame_is_left_as_it_is_where_nothing_smaller_shows(kind: str) -> None:
    for frame in met(kind, 5):
        assert smallest_frames((frame,), lambda _: False) == (frame,)


def test_the_smallest_of_all_is_short_whatever_the_kind() -> None:
    for kind in FRAME_KINDS:
        (found,) = smallest_frames(met(kind, 1), lambda _: True)
        assert len(found.data) <= 30, kind
