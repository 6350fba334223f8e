"""Tests that traffic is split into ordered events, whatever pieces the bytes arrive in.

Also tests missing, broken and unexpected bytes, and SASL tokens without request headers.
"""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import MetadataRequest, ProduceRequest
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from kproto.messages.sasl_handshake_response import SaslHandshakeResponse
from kproto.protocol.connection import ClientConnection
from kproto.protocol.framing import frame
from kproto.study.conversations import ConversationSplitter, EventKind, Side, TrafficEvent, api_name
from tests.unit.study.talk import STEPS, Step, frames

C, B = Side.CLIENT, Side.BROKER


def told(events: list[TrafficEvent]) -> list[tuple[Side, EventKind, str, int | None]]:
    return [(event.side, event.kind, event.api, event.version) for event in events]


def alternating(pairs: list[tuple[bytes, bytes]], talk: ConversationSplitter) -> list[TrafficEvent]:
    events = []
    for number, (asked, answer) in enumerate(pairs):
        events += talk.feed(C, number * 1000, asked)
        if answer:
            events += talk.feed(B, number * 1000 + 7, answer)
    return events


def test_requests_and_their_answers() -> None:
    events = alternating(frames(), ConversationSplitter())
    assert told(events) == [
        (side, EventKind.MESSAGE, name, version)
        for name, version in (("ApiVersions", 3), ("Metadata", 12), ("Produce", 9), ("Fetch", 12))
        for side in (C, B)
    ]
    answers = events[1::2]
    assert [event.latency_us for event in answers] == [7] * 4
    assert [event.errors for event in answers] == [
        (),
        (),
        (("NOT_LEADER_OR_FOLLOWER", 1),),
        (("OFFSET_OUT_OF_RANGE", 2),),
    ]
    assert {event.client_id for event in events} == {"me"}
    assert [event.correlation_id for event in events] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(event.size == len(event.data) - 4 for event in events)


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[bytes]:
    places = sorted(draw(st.sets(st.integers(1, len(data) - 1), max_size=12)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@given(st.data())
def test_it_does_not_matter_how_the_stream_is_cut(data: st.DataObject) -> None:
    pairs = frames()
    whole = {C: b"".join(asked for asked, _ in pairs), B: b"".join(answer for _, answer in pairs)}
    talk = ConversationSplitter()
    events = []
    for side in (C, B):
        for piece in data.draw(cuts(whole[side])):
            events += talk.feed(side, 0, piece)
    for side in (C, B):
        mine = [event for event in events if event.side is side]
        assert b"".join(event.data for event in mine) == whole[side]
        assert [event.api for event in mine] == ["ApiVersions", "Metadata", "Produce", "Fetch"]
    assert all(event.kind is EventKind.MESSAGE for event in events)
    assert talk.end(1) == []


@given(st.lists(st.tuples(st.sampled_from([C, B]), st.binary(max_size=60)), max_size=20))
def test_any_bytes_are_told_and_none_is_lost(pieces: list[tuple[Side, bytes]]) -> None:
    talk = ConversationSplitter(max_frame_bytes=50)
    events = [event for side, piece in pieces for event in talk.feed(side, 0, piece)]
    events += talk.end(0)
    for side in (C, B):
        passed = b"".join(event.data for event in events if event.side is side)
        assert passed == b"".join(piece for whose, piece in pieces if whose is side)


def test_acks_0_has_no_answer() -> None:
    steps: list[Step] = [(ProduceRequest(acks=0), None, 9), STEPS[1]]
    events = alternating(frames(steps), ConversationSplitter())
    assert [event.is_answered for event in events] == [False, True, True]
    assert told(events)[1:] == [
        (C, EventKind.MESSAGE, "Metadata", 12),
        (B, EventKind.MESSAGE, "Metadata", 12),
    ]


@pytest.mark.parametrize(
    ("mechanism", "tokens"), [("PLAIN", 1), ("SCRAM-SHA-256", 2), ("GSSAPI", 3)]
)
def test_raw_tokens_behind_a_handshake_of_version_0(mechanism: str, tokens: int) -> None:
    handshake: Step = (SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse(), 0)
    pairs = frames([handshake, *STEPS])
    raw = [(frame(b"\x60token"), frame(b""))] * tokens
    events = alternating([pairs[0], *raw, *pairs[1:]], ConversationSplitter())
    kinds = [event.kind for event in events]
    assert (
        kinds == [EventKind.MESSAGE] * 2 + [EventKind.TOKEN] * 2 * tokens + [EventKind.MESSAGE] * 8
    )


def test_a_token_that_is_not_answered_is_called_so() -> None:
    """After a wrong password, a broker closes the connection without an answer."""
    handshake: Step = (SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse(), 0)
    talk = ConversationSplitter()
    alternating([*frames([handshake]), (frame(b"\0me\0secret"), b"")], talk)
    (event,) = talk.end(9)
    assert (event.kind, event.api, event.side) == (EventKind.UNANSWERED, "SASL token", B)


def test_no_token_comes_behind_a_handshake_that_was_refused() -> None:
    refused: Step = (
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslHandshakeResponse(error_code=33, mechanisms=["GSSAPI"]),
        0,
    )
    events = alternating(frames([refused, *STEPS]), ConversationSplitter())
    assert events[1].errors == (("UNSUPPORTED_SASL_MECHANISM", 1),)
    assert {event.kind for event in events} == {EventKind.MESSAGE}


def test_unknown_request_is_reported_with_its_response() -> None:
    talk = ConversationSplitter()
    asked = frame(struct.pack(">hhih", 9999, 7, 5, 2), b"meand more")
    (request,) = talk.feed(C, 10, asked)
    assert (request.kind, request.api, request.client_id) == (
        EventKind.UNKNOWN,
        "api key 9999",
        "me",
    )
    (response,) = talk.feed(B, 30, frame(b"\0\0\0\5whatever"))
    assert (response.kind, response.latency_us, response.version) == (EventKind.UNKNOWN, 20, 7)
    assert api_name(1) == "Fetch"


def test_a_broken_frame_is_told_and_what_follows_is_read() -> None:
    pairs = frames()
    talk = ConversationSplitter()
    broken = frame(pairs[0][0][4:-1])
    (event,) = talk.feed(C, 0, broken)
    assert event.kind is EventKind.BROKEN
    assert event.data == broken
    assert "ApiVersionsRequest v3" in event.note
    assert talk.feed(B, 1, frame(pairs[0][1][4:-1]))[0].kind is EventKind.BROKEN
    events = alternating(pairs[1:], talk)
    assert {event.kind for event in events} == {EventKind.MESSAGE}


def test_a_stream_that_cannot_be_cut_is_told_once() -> None:
    talk = ConversationSplitter()
    first = talk.feed(C, 0, b"GET / HTTP/1.1\r\n")
    again = talk.feed(C, 0, b"Host: x\r\n\r\n")
    assert [event.kind for event in first + again] == [EventKind.BYTES] * 2
    assert "a frame has the size 1195725856" in first[0].note
    assert again[0].note == ""


def test_answers_that_are_not_there_and_answers_to_nothing() -> None:
    pairs = frames()
    talk = ConversationSplitter()
    for asked, _ in pairs:
        talk.feed(C, 0, asked)
    events = talk.feed(B, 5, frame(b"\0\0\0\x63nobody") + pairs[2][1])
    assert [(event.kind, event.correlation_id) for event in events] == [
        (EventKind.UNMATCHED, 99),
        (EventKind.UNANSWERED, 0),
        (EventKind.UNANSWERED, 1),
        (EventKind.MESSAGE, 2),
    ]
    assert [event.kind for event in talk.end(9)] == [EventKind.UNANSWERED]


@given(st.integers(1, 150))
def test_a_capture_from_the_middle_goes_on_at_the_next_frame(cut: int) -> None:
    pairs = frames(times=2)
    talk = ConversationSplitter(from_middle=True)
    requests = b"".join(asked for asked, _ in pairs)[cut:]
    responses = b"".join(answer for _, answer in pairs)[cut:]
    events = talk.feed(C, 0, requests) + talk.feed(B, 1, responses)
    read = [event for event in events if event.kind is EventKind.MESSAGE]
    later = ["ApiVersions", "Metadata", "Produce", "Fetch"]
    for side in (C, B):
        assert [event.api for event in read if event.side is side][-4:] == later


@given(st.integers(1, 400), st.integers(1, 100))
def test_missing_bytes_cost_what_they_touch(at: int, count: int) -> None:
    pairs = frames(times=5)
    requests = b"".join(asked for asked, _ in pairs)
    responses = b"".join(answer for _, answer in pairs)
    talk = ConversationSplitter()
    events = talk.feed(C, 0, requests[:at]) + talk.missing(C, 0, count)
    events += talk.feed(C, 0, requests[at + count :]) + talk.feed(B, 1, responses)
    (lost,) = [event for event in events if "captured" in event.note]
    assert lost.size == count
    read = [event for event in events if event.kind is EventKind.MESSAGE and event.side is C]
    sizes = [len(asked) for asked, _ in pairs]
    touched = sum(
        sum(sizes[:n]) < at + count and at < sum(sizes[: n + 1]) for n in range(len(sizes))
    )
    assert len(read) == len(pairs) - touched
    answered = [event for event in events if event.kind is EventKind.MESSAGE and event.side is B]
    assert len(answered) == len(read)


def test_a_side_without_frames_is_given_up() -> None:
    talk = ConversationSplitter(from_middle=True, max_skipped_bytes=1000)
    events = [event for _ in range(5) for event in talk.feed(C, 0, b"\xff" * 500)]
    assert events[0].kind is EventKind.MISSING
    assert "abandoned" in events[0].note


def test_bytes_behind_a_body_are_named_and_kept() -> None:
    asked = ClientConnection("me").send(MetadataRequest(topics=[]), 12)[1]
    (event,) = ConversationSplitter().feed(C, 0, frame(asked[4:], b"\0\0\0"))
    assert (event.kind, event.note) == (EventKind.MESSAGE, "3 bytes after the body")


def test_a_conversation_keeps_the_bytes_of_requests_when_told_so() -> None:
    for keep in (False, True):
        talk = ConversationSplitter(keep_bytes=keep)
        asked, answer = frames()[0]
        talk.feed(C, 0, asked)
        (event,) = talk.feed(B, 1, answer)
        assert event.request is not None
        assert event.request.data == (asked if keep else b"")


@pytest.mark.slow
def test_a_frame_that_comes_in_crumbs_takes_little_memory() -> None:
    """Bytes arrive one by one; a stored time for each would take many times their own memory."""
    whole = frame(bytes(20_000))
    talk = ConversationSplitter()
    tracemalloc.start()
    try:
        for at in range(len(whole) - 1):
            assert talk.feed(C, at, whole[at : at + 1]) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
    (event,) = talk.feed(C, 99_999, whole[-1:])
    assert event.time_us == 99_999
