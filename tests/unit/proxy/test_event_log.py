"""Tests the lines of the proxy's log, as text and JSON, and the filter of events."""

from __future__ import annotations

import json
import re

import pytest

from kproto.messages import ProduceRequest, SaslAuthenticateRequest
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from kproto.protocol.connection import ClientConnection
from kproto.protocol.framing import frame
from kproto.proxy.event_log import EventFilter, event_as_json, event_as_text, parse_apis
from kproto.proxy.settings import Address, ProxySettings, parse_address
from kproto.study.conversations import ConversationSplitter, Side, TrafficEvent
from kproto.wire.errors import ConfigurationError
from tests.unit.study.talk import frames


def events() -> list[TrafficEvent]:
    talk, found = ConversationSplitter(), []
    for asked, answer in frames():
        found += talk.feed(Side.CLIENT, 1_000_000, asked) + talk.feed(
            Side.BROKER, 1_002_500, answer
        )
    return found


def test_a_request_and_its_answer() -> None:
    asked, answered = events()[4:6]
    assert re.fullmatch(
        r"\d\d:\d\d:01\.000000 #7 -> Produce v9 id=2 client='me' \d+ bytes",
        event_as_text(asked, 7),
    )
    assert re.fullmatch(
        r"\d\d:\d\d:01\.002500 #7 <- Produce v9 id=2 client='me' \d+ bytes 2\.500 ms "
        "NOT_LEADER_OR_FOLLOWER",
        event_as_text(answered, 7),
    )
    told = event_as_json(answered, 7)
    assert json.loads(json.dumps(told)) == {
        "us": 1_002_500,
        "connection": 7,
        "from": "broker",
        "kind": "message",
        "api": "Produce",
        "api_key": 0,
        "version": 9,
        "correlation_id": 2,
        "client_id": "me",
        "size": answered.size,
        "latency_us": 2500,
        "errors": {"NOT_LEADER_OR_FOLLOWER": 1},
    }
    assert event_as_text(events()[7], 1).endswith(" OFFSET_OUT_OF_RANGE×2")


def test_unreadable_frame_is_logged_with_its_error() -> None:
    talk = ConversationSplitter()
    (broken,) = talk.feed(Side.CLIENT, 0, frame(b"\0\3\0\x0c\0\0\0\1"))
    assert "Metadata v12 id=1 8 bytes: cannot be read; RequestHeader" in event_as_text(broken, 1)
    (unknown,) = talk.feed(Side.CLIENT, 0, frame(b"\x0f\3\0\x0c\0\0\0\1\xff\xff"))
    assert event_as_text(unknown, 1).endswith(
        "api key 3843 v12 id=1 10 bytes: no definition has this api key or version"
    )
    unanswered = ClientConnection(None).send(ProduceRequest(acks=0), 9)[1]
    (event,) = talk.feed(Side.CLIENT, 0, unanswered)
    assert event_as_text(event, 1).endswith("no response is expected")
    assert event_as_json(event, 1)["answered"] is False


def test_a_token_is_shown_when_asked_for_alone() -> None:
    talk = ConversationSplitter()
    client = ClientConnection("me")
    (authenticate,) = talk.feed(
        Side.CLIENT, 0, client.send(SaslAuthenticateRequest(auth_bytes=b"\0me\0pw"), 2)[1]
    )
    talk.feed(Side.CLIENT, 0, client.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)[1])
    (token,) = talk.feed(Side.CLIENT, 0, frame(b"\0me\0pw"))
    for event in (authenticate, token):
        assert "pw" not in event_as_text(event, 1)
        assert "pw" in event_as_text(event, 1, show_secrets=True)
        assert b"pw".hex() not in str(event_as_json(event, 1))
        assert event_as_json(event, 1, show_secrets=True)["token"] == b"\0me\0pw".hex()


def test_filters() -> None:
    assert parse_apis(["Fetch,produce,", "3", "FindCoordinatorRequest"]) == {0, 1, 3, 10}
    assert parse_apis(["ListClientMetricsResources"]) == {74}, "ListConfigResources since 4.1"
    with pytest.raises(ConfigurationError, match="the API 'Fech'; do you mean Fetch"):
        parse_apis(["Fech"])
    with pytest.raises(ConfigurationError, match="no API is named"):
        parse_apis([" , "])
    found = events()
    assert [e.api for e in found if EventFilter(frozenset({1})).matches(e)] == ["Fetch"] * 2
    assert all(map(EventFilter(client_ids=("x", "m*")).matches, found))
    assert not any(map(EventFilter(client_ids=("x",)).matches, found))
    (lost,) = ConversationSplitter().feed(Side.CLIENT, 0, b"\xff" * 9)
    assert EventFilter(frozenset({1}), ("x",)).matches(lost)


def test_a_token_that_is_not_answered_is_no_api_either() -> None:
    talk = ConversationSplitter()
    handshake = ClientConnection("me").send(SaslHandshakeRequest(mechanism="PLAIN"), 0)[1]
    talk.feed(Side.CLIENT, 0, handshake)
    talk.feed(Side.CLIENT, 0, frame(b"\0me\0pw"))
    handshaken, lost = talk.end(1)
    assert "SASL token" in event_as_text(lost, 1)
    assert [EventFilter(frozenset({17})).matches(event) for event in (handshaken, lost)] == [
        True,
        False,
    ]


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:b", "a:1²", "[]:1"])
def test_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no address"):
        parse_address(text)


def test_addresses_and_settings() -> None:
    assert parse_address("[::1]:9") == Address("::1", 9)
    assert parse_address("SASL_SSL://h:1") == Address("h", 1)
    assert str(Address("::1", 9)) == "[::1]:9"
    assert parse_address("h:0", least_port=0) == Address("h", 0)
    with pytest.raises(ConfigurationError, match="max_frame_bytes is 0"):
        ProxySettings(max_frame_bytes=0)
    with pytest.raises(ConfigurationError, match="advertised_host"):
        ProxySettings().advertised_host_for(Address("0.0.0.0", 1))
    assert ProxySettings(advertised_host="h").advertised_host_for(Address("0.0.0.0", 1)) == "h"
