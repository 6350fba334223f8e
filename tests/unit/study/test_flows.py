"""Tests reading captures: it finds Kafka's connections, their client side, and missing bytes."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import ApiVersionsRequest, ApiVersionsResponse
from kproto.protocol.connection import ClientConnection
from kproto.protocol.framing import frame
from kproto.study.conversations import EventKind, Side
from kproto.study.exchanges import (
    ApiStats,
    ClientSoftware,
    exchange_as_json,
    exchange_as_text,
    exchange_with_messages,
    note_software,
    pair_exchanges,
    software_as_json,
    software_as_table,
    stats_as_table,
    stats_by_api,
)
from kproto.study.flows import (
    ConnectionEvent,
    OtherTraffic,
    events_of_recording,
    events_of_segments,
)
from kproto.study.recording import RecordingEntry
from kproto.study.tcp_streams import TcpSegment
from tests.unit.study.packets import BROKER, connection
from tests.unit.study.talk import frames

APIS = ["ApiVersions", "Metadata", "Produce", "Fetch"]


def apis(passed: list[ConnectionEvent], side: Side) -> list[str]:
    return [
        one.event.api
        for one in passed
        if one.event.side is side and one.event.kind is EventKind.MESSAGE
    ]


def test_a_connection_from_its_begin() -> None:
    passed = list(events_of_segments(connection(frames())))
    assert apis(passed, Side.CLIENT) == apis(passed, Side.BROKER) == APIS
    assert {one.event.kind for one in passed} == {EventKind.MESSAGE}
    assert {(one.client, one.broker) for one in passed} == {("10.0.0.1:50000", "10.0.0.2:9092")}
    # The latency is from the request's first segment to the response's last, 1 ms per segment.
    assert all((one.event.latency_us or 1000) % 1000 == 0 for one in passed)


@given(st.integers(0, 1 << 32), st.integers(20, 500))
def test_order_and_repetition_of_packets_change_nothing(seed: int, size: int) -> None:
    rng = random.Random(seed)
    segments = connection(frames(times=2), size=size)
    expected = list(events_of_segments(segments))
    passed_by: list[TcpSegment] = []
    mixed: list[TcpSegment] = []
    for _, run in groupby(segments[3:-3], key=lambda segment: segment.source):
        # Shuffles the segments that one side sends in a row, and adds retransmissions.
        mine = list(run)
        passed_by += mine
        now = mine + rng.sample(passed_by, min(3, len(passed_by)))
        rng.shuffle(now)
        mixed += [segment._replace(acknowledged=None) for segment in now]
    passed = list(events_of_segments([*segments[:3], *mixed, *segments[-3:]]))
    for side in Side:
        ours = [one.event.data for one in passed if one.event.side is side]
        assert ours == [one.event.data for one in expected if one.event.side is side]


@given(st.integers(4, 30), st.booleans())
def test_a_capture_from_the_middle(start: int, port_is_named: bool) -> None:
    segments = connection(frames(times=3), size=50)[start:]
    ports = frozenset({BROKER[1]}) if port_is_named else frozenset()
    passed = list(events_of_segments(segments, ports))
    assert apis(passed, Side.CLIENT)[-4:] == APIS
    assert apis(passed, Side.BROKER)[-4:] == APIS
    assert {one.broker for one in passed} == {"10.0.0.2:9092"}


@given(st.integers(3, 30))
def test_a_packet_that_is_missing_is_told(lost: int) -> None:
    segments = connection(frames(times=3), size=50)
    missing = segments.pop(lost)
    passed = list(events_of_segments(segments))
    told = [one.event for one in passed if "not captured" in one.event.note]
    assert [event.size for event in told] == [len(missing.data)]
    listed = list(pair_exchanges(passed))
    (line,) = [exchange_as_text(each) for each in listed if each.event is told[0]]
    assert re.search(r"10\.0\.0\.1:50000 from the (client|broker): missing; \d+ bytes were ", line)
    assert len(apis(passed, Side.CLIENT)) >= 11
    assert len(apis(passed, Side.BROKER)) == 11


@given(st.sets(st.integers(3, 200), max_size=12), st.integers(20, 200), st.booleans())
def test_missing_bytes_do_not_falsify_times(lost: set[int], size: int, are_idle: bool) -> None:
    def times(segments: list[TcpSegment]) -> set[tuple[int, int, int]]:
        events = [one.event for one in events_of_segments(segments, frozenset({BROKER[1]}))]
        return {
            (event.request.time_us, event.time_us, event.latency_us)
            for event in events
            if event.request is not None and event.latency_us is not None
        }

    step_us = 500_000 if are_idle else 1
    segments = [
        segment._replace(time_us=segment.time_us + step_us * number)
        for number, segment in enumerate(connection(frames(times=4), size=size))
    ]
    kept = [segment for number, segment in enumerate(segments) if number not in lost]
    assert times(kept) <= times(segments)


def test_several_connections_and_others_than_kafka() -> None:
    talks = [
        connection(frames(), client=("10.0.0.1", port), numbers=(port, port)) for port in (1, 2, 3)
    ]
    http = connection(
        [(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n")], broker=("10.0.0.9", 80)
    )
    mixed = [segment for group in zip(*talks, strict=True) for segment in group] + http
    other_traffic = OtherTraffic()
    passed = list(events_of_segments(mixed, other_traffic=other_traffic))
    assert {one.connection for one in passed} == {1, 2, 3}
    assert len(apis(passed, Side.BROKER)) == 12
    assert other_traffic.connections == 1
    assert list(events_of_segments(mixed, frozenset({1234}))) == []
    to_80 = list(events_of_segments(mixed, frozenset({80})))
    assert {one.event.kind for one in to_80} == {EventKind.BYTES}


def test_the_begin_may_be_captured_behind_the_first_bytes() -> None:
    first, second, third, data, *rest = connection(frames())
    for mixed in ([data, first, second, third], [first, data, second, third]):
        passed = list(events_of_segments([*mixed, *rest]))
        assert {(one.connection, one.event.kind) for one in passed} == {(1, EventKind.MESSAGE)}
        assert apis(passed, Side.CLIENT) == apis(passed, Side.BROKER) == APIS


def test_a_port_that_is_used_again() -> None:
    first = connection(frames())[:-3]  # the end of the connection was not captured
    again = connection(frames(), numbers=(77_777, 88_888))
    passed = list(events_of_segments([*first, *again]))
    assert [one.connection for one in passed] == [1] * 8 + [2] * 8
    ended = connection(frames())
    late = ended[-4]._replace(time_us=ended[-1].time_us + 10)
    assert len(list(events_of_segments([*ended, late, *again]))) == 16


def test_a_reset_ends_it() -> None:
    segments = connection(frames()[:1])[:-3]
    reset = segments[-1]._replace(is_reset=True, data=b"")
    after: list[TcpSegment] = connection(frames(), client=("10.0.0.5", 5))
    later = [each._replace(time_us=each.time_us + 10_000_000) for each in after]
    passed = list(events_of_segments([*segments, reset, *later]))
    assert len(passed) == 10


def test_a_version_that_is_refused_is_listed_as_it_was_asked_for() -> None:
    _, asked = ClientConnection("me").send(ApiVersionsRequest(), 4)
    refused = frame(asked[8:12], ApiVersionsResponse(error_code=35).encode(0))
    (line,) = pair_exchanges(events_of_segments(connection([(asked, refused)])))
    assert " ApiVersions v4 client='me' " in exchange_as_text(line)
    assert exchange_as_text(line).endswith(" UNSUPPORTED_VERSION: the response has version 0")
    assert exchange_as_json(line)["version"] == 4
    assert exchange_with_messages(line)["response"]["errorCode"] == 35


def test_exchanges_and_their_sums() -> None:
    listed = list(pair_exchanges(events_of_segments(connection(frames()), keep_bytes=True)))
    assert [each.number for each in listed] == [1, 2, 3, 4]
    told = exchange_as_json(listed[2])
    assert (told["api"], told["client_id"], told["errors"]) == (
        "Produce",
        "me",
        {"NOT_LEADER_OR_FOLLOWER": 1},
    )
    assert exchange_with_messages(listed[1])["response"]["brokers"][0]["host"] == "b1"
    assert exchange_with_messages(listed[1])["request"]["topics"] == []
    stats = stats_by_api(listed)
    assert {name: each.count for name, each in stats.items()} == dict.fromkeys(APIS, 1)
    table = stats_as_table(stats)
    assert len(table) == 5
    assert any(line.startswith("Fetch ") and "OFFSET_OUT_OF_RANGE×2" in line for line in table)


def test_a_recording_without_its_end() -> None:
    asked, answer = frames()[0]
    entries = [
        RecordingEntry(1, 1, client="c:1", target="b:1"),
        RecordingEntry(2, 1, Side.CLIENT, asked),
        RecordingEntry(3, 2, Side.CLIENT, asked[:9]),
        RecordingEntry(9, 1, Side.BROKER, answer),
        RecordingEntry(9, 1, Side.CLIENT, frames()[1][0]),
    ]
    listed = list(pair_exchanges(events_of_recording(entries)))
    kinds = [(each.connection_event.connection, each.event.kind) for each in listed]
    assert kinds == [(1, EventKind.MESSAGE), (1, EventKind.UNANSWERED), (2, EventKind.BYTES)]
    assert listed[0].event.latency_us == 7
    assert listed[0].connection_event.client == "c:1"


@pytest.mark.parametrize("count", [1, 3])
def test_stats_of_percentiles(count: int) -> None:
    stats = stats_by_api(pair_exchanges(events_of_segments(connection(frames(times=count)))))
    assert all(len(each.latencies_us) == count for each in stats.values())


def test_stats_count_the_versions() -> None:
    stats = {"Fetch": ApiStats(count=3, versions=Counter({12: 2, 4: 1}))}
    assert stats_as_table(stats)[1].split()[:4] == ["Fetch", "4×1,", "12×2", "3"]


def test_software_is_counted_by_connection_and_shown_without_control_characters() -> None:
    named = ApiVersionsRequest(client_software_name="lib\x1b[2J", client_software_version="1.0")
    unnamed = ApiVersionsRequest()
    steps = [(named, ApiVersionsResponse(), 3), (named, ApiVersionsResponse(), 4)]
    older = [(unnamed, ApiVersionsResponse(), 0)]
    software: ClientSoftware = {}
    for taken in (steps, older):
        passed = pair_exchanges(events_of_segments(connection(frames(taken))))
        assert len(list(note_software(passed, software))) == len(taken)
    assert software == {("lib\x1b[2J", "1.0"): {1}}
    assert software_as_table(software) == [
        "client software  version  connections",
        "'lib\\x1b[2J'     1.0                1",
    ]
    assert software_as_json(software)[0]["connections"] == 1
    assert software_as_table({}) == []
