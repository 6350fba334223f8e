"""Tests both sides of a connection against each other; both refuse responses out of order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto import messages
from kproto.messages import (
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from kproto.messages.add_partitions_to_txn_request import AddPartitionsToTxnTransaction
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.base import Request, Response
from kproto.protocol.connection import (
    ClientConnection,
    PendingRequest,
    PendingRequests,
    ServerConnection,
    expects_response,
)
from kproto.protocol.framing import FrameReader
from kproto.protocol.headers import request_class, response_class
from kproto.protocol.negotiation import UNSUPPORTED_VERSION, fallback_version
from kproto.testing.instances import Fill, instance, instances
from kproto.wire.errors import DecodeError, EncodeError, KprotoError, ProtocolError
from tests.support.examples import examples


def unframed(data: bytes) -> bytes:
    (content,) = FrameReader().feed(data)
    return content


def is_answered(request: Request[Response], version: int) -> bool:
    """Returns whether a broker answers a request, without using the tested code."""
    if isinstance(request, ProduceRequest):
        return request.acks != 0
    if isinstance(request, AddPartitionsToTxnRequest):
        return version < 4 or len(request.transactions) > 0
    return True


@pytest.mark.parametrize("api_key", messages.API_KEYS)
def test_each_request_and_its_response_pass_unharmed(api_key: int) -> None:
    """Covers each API in each version, with every field set, and with nulls and unknown tags."""
    asks, answers = request_class(api_key), response_class(api_key)
    assert asks is not None
    assert answers is not None
    for version in asks.VALID_VERSIONS:
        client, server = ClientConnection("a client"), ServerConnection()
        for request in instances(asks, version):
            before = len(client.pending)
            correlation_id, data = client.send(request, version)
            received = server.receive(unframed(data))
            assert received.message == request
            assert received.name == asks.__name__
            assert (received.api_key, received.version) == (api_key, version)
            assert (received.correlation_id, received.trailing) == (correlation_id, b"")
            assert received.client_id == (None if (api_key, version) == (7, 0) else "a client")
            assert received.size == len(data) - 4
            assert expects_response(request, version) is is_answered(request, version)
            assert len(client.pending) - before == is_answered(request, version)
            pending = server.pending(received)
            assert (pending is not None) is is_answered(request, version)
        # All requests are sent before the first response, as on a real connection.
        waiting = list(client.pending._waiting)
        for response in instances(answers, version):
            if not waiting:
                _, data = client.send(instance(asks, version), version)
                waiting = [client.pending._waiting[-1]]
            asked = waiting.pop(0)
            question = server.receive(unframed(data))._replace(correlation_id=asked.correlation_id)
            frame = server.send(question, response)
            answer = client.receive(unframed(frame))
            if api_key == 18 and version > 0 and answer.version == 0:
                assert getattr(response, "error_code", None) == UNSUPPORTED_VERSION
                continue
            assert answer.message == response
            assert answer.name == answers.__name__
            assert (answer.api_key, answer.version) == (api_key, version)
            assert (answer.size, answer.trailing) == (len(frame) - 4, b"")


def test_correlation_ids_begin_again_behind_the_largest() -> None:
    client = ClientConnection()
    client._next_correlation_id = 0x7FFFFFFE
    assert client.last_correlation_id == -1
    ids = []
    for _ in range(4):
        ids.append(client.send(MetadataRequest(topics=[]), 1)[0])
        assert client.last_correlation_id == ids[-1]
    assert ids == [0x7FFFFFFE, 0x7FFFFFFF, 0, 1]
    server = ServerConnection()
    question = server.receive(unframed(client.send(MetadataRequest(topics=[]), 1)[1]))
    for correlation_id in ids:
        asked = question._replace(correlation_id=correlation_id)
        answer = client.receive(unframed(server.send(asked, MetadataResponse())))
        assert answer.correlation_id == correlation_id


def test_a_produce_without_acks_waits_for_nothing() -> None:
    client, server = ClientConnection("c"), ServerConnection()
    _, silent = client.send(ProduceRequest(acks=0, timeout_ms=1), 9)
    _, loud = client.send(MetadataRequest(), 9)
    assert len(client.pending) == 1
    assert server.pending(server.receive(unframed(silent))) is None
    asked = server.receive(unframed(loud))
    assert server.pending(asked) == PendingRequest(3, 9, 1, MetadataResponse)
    assert client.receive(unframed(server.send(asked, MetadataResponse()))).correlation_id == 1


def test_no_transactions_no_answer() -> None:
    """Kafka 3.9.2 and 4.4.0 do not answer AddPartitionsToTxn v4 and v5 without transactions."""
    empty = AddPartitionsToTxnRequest()
    assert expects_response(empty, 3)
    assert not expects_response(empty, 4)
    assert not expects_response(empty, 5)
    one = AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction()])
    assert expects_response(one, 4)


def test_request_that_cannot_be_encoded_is_not_pending() -> None:
    client = ClientConnection()
    with pytest.raises(EncodeError):
        client.send(MetadataRequest(topics=None), 0)
    assert len(client.pending) == 0
    assert client.send(MetadataRequest(), 9)[0] == 0, "no correlation id was used up"


# --- ApiVersions in a version that the broker does not have (KIP-511) ---


def asked_api_versions(version: int = 5) -> ClientConnection:
    client = ClientConnection("c")
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    client.send(request, version)
    return client


# The response of Apache Kafka 3.9.2 to ApiVersions v5.
REFUSAL = bytes.fromhex("00000000002300000001001200000004")


def test_the_refusal_of_a_real_broker() -> None:
    answer = asked_api_versions().receive(REFUSAL)
    told = ApiVersion(api_key=18, min_version=0, max_version=4)
    assert isinstance(answer.message, ApiVersionsResponse)
    assert answer.message == ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[told])
    assert (answer.version, answer.size, answer.trailing) == (0, 16, b"")
    assert fallback_version(answer.message) == 4


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"\x00\x00\x00\x63",
        b"\xff\xff\xff\xfe",
        b"\x00\x00\x00\x01\x00\x12",
        b"\x02\x00\x12",
    ],
    ids=bytes.hex,
)
def test_a_refusal_in_no_known_form(body: bytes) -> None:
    answer = asked_api_versions().receive(b"\x00\x00\x00\x00\x00\x23" + body)
    assert isinstance(answer.message, ApiVersionsResponse)
    assert answer.message.error_code == UNSUPPORTED_VERSION
    assert answer.message.api_keys == []
    assert (answer.version, answer.trailing) == (0, body)
    assert fallback_version(answer.message) == 0


def test_a_refusal_that_is_followed_by_more() -> None:
    answer = asked_api_versions().receive(REFUSAL + b"\x00\x00\x00\x00")
    assert isinstance(answer.message, ApiVersionsResponse)
    assert len(answer.message.api_keys) == 1
    assert answer.trailing == b"\x00\x00\x00\x00"


@pytest.mark.parametrize("version", [3, 4, 5])
def test_another_error_comes_in_the_version_that_was_asked_for(version: int) -> None:
    sent = ApiVersionsResponse(error_code=42, throttle_time_ms=7)
    client = asked_api_versions(version)
    answer = client.receive(b"\x00\x00\x00\x00" + sent.encode(version))
    assert answer.message == sent
    assert answer.version == version


def test_error_35_to_v0_is_an_answer_like_any_other() -> None:
    answer = asked_api_versions(0).receive(REFUSAL)
    assert isinstance(answer.message, ApiVersionsResponse)
    assert (answer.message.error_code, answer.version, answer.trailing) == (35, 0, b"")


def test_a_broker_refuses_in_the_form_of_v0() -> None:
    client, server = asked_api_versions(), ServerConnection()
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    asked = server.receive(unframed(ClientConnection("c").send(request, 5)[1]))
    told = ApiVersion(api_key=18, min_version=0, max_version=4)
    refusal = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[told])
    data = unframed(server.send(asked, refusal, version=0))
    assert data == REFUSAL
    assert client.receive(data).message == refusal


# --- Unknown api keys and versions ---


def future(api_key: int, version: int, correlation_id: int = 5) -> bytes:
    head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big")
    return head + correlation_id.to_bytes(4, "big") + b"\x00\x01cwhatever it holds"


@pytest.mark.parametrize(("api_key", "name"), [(3, "MetadataRe"), (999, "api key 999")])
def test_a_request_of_the_future_is_named_and_its_answer_matched(api_key: int, name: str) -> None:
    server, waiting = ServerConnection(), PendingRequests()
    asked = server.receive(future(api_key, 77))
    assert asked.message is None
    assert asked.name.startswith(name)
    assert (asked.version, asked.client_id, asked.size) == (77, "c", len(future(api_key, 77)))
    pending = server.pending(asked)
    assert pending is not None
    waiting.expect(pending)
    answer = waiting.match(b"\x00\x00\x00\x05 unreadable")
    assert (answer.message, answer.version, answer.size) == (None, 77, 15)
    assert answer.name.startswith(name)
    assert len(waiting) == 0


def test_an_api_versions_of_the_future_and_its_refusal() -> None:
    server, waiting = ServerConnection(), PendingRequests()
    pending = server.pending(server.receive(future(18, 9, correlation_id=0)))
    assert pending is not None
    waiting.expect(pending)
    answer = waiting.match(REFUSAL)
    assert isinstance(answer.message, ApiVersionsResponse)
    assert answer.version == 0
    waiting.expect(pending)
    assert waiting.match(b"\x00\x00\x00\x00\x00\x00 no refusal").message is None


# --- Bytes behind the body ---


def test_bytes_behind_a_request_are_kept() -> None:
    """librdkafka 2.16 encodes a null array in four bytes, although one byte is right here.

    So three bytes follow the body of its Metadata request for all topics.
    """
    body = bytes.fromhex("00" + "00000000" + "00" + "00")
    head = bytes.fromhex("0003000c00000003" + "0007" + b"rdkafka".hex() + "00")
    received = ServerConnection().receive(head + body)
    assert isinstance(received.message, MetadataRequest)
    assert received.message.topics is None
    assert received.message.allow_auto_topic_creation is False
    assert received.trailing == bytes(3)
    assert received.size == len(head) + 7


def test_bytes_behind_a_response_are_kept() -> None:
    client = ClientConnection()
    client.send(MetadataRequest(), 1)
    answer = client.receive(b"\x00\x00\x00\x00" + MetadataResponse().encode(1) + b"more")
    assert answer.trailing == b"more"


# --- Unexpected and unreadable responses ---


def test_a_response_that_nobody_asked_for() -> None:
    with pytest.raises(
        ProtocolError, match="a response of 6 bytes arrived without a pending request"
    ):
        ClientConnection().receive(b"\x00\x00\x00\x00\x00\x00")


def test_the_answer_to_another_request() -> None:
    client = ClientConnection()
    client.send(MetadataRequest(), 9)
    words = "MetadataResponse v9 has correlation id 7, but 0 must come next; .* out of step"
    with pytest.raises(ProtocolError, match=words):
        client.receive(b"\x00\x00\x00\x07\x00" + MetadataResponse().encode(9))


def test_another_correlation_id_counts_more_than_a_broken_header() -> None:
    client = ClientConnection()
    client.send(MetadataRequest(), 9)
    with pytest.raises(ProtocolError, match="correlation id 7"):
        client.receive(b"\x00\x00\x00\x07\xff")


@pytest.mark.parametrize("size", range(4))
def test_a_response_too_short_to_say_whose_it_is(size: int) -> None:
    client = ClientConnection()
    client.send(MetadataRequest(), 9)
    with pytest.raises(ProtocolError, match=f"is {size} bytes long"):
        client.receive(bytes(size))


def test_a_body_that_cannot_be_read_leaves_the_connection_in_step() -> None:
    client = ClientConnection()
    client.send(MetadataRequest(), 9)
    client.send(MetadataRequest(), 9)
    with pytest.raises(DecodeError, match="MetadataResponse v9"):
        client.receive(b"\x00\x00\x00\x00\x00" + b"\xff" * 9)
    answer = client.receive(b"\x00\x00\x00\x01\x00" + MetadataResponse().encode(9))
    assert answer.correlation_id == 1


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_cut_request_is_a_decode_error(cut: int) -> None:
    _, data = ClientConnection("c").send(instance(MetadataRequest, 12, Fill.FULL), 12)
    with pytest.raises(DecodeError):
        ServerConnection().receive(unframed(data)[:-cut])


@settings(max_examples=examples(300))
@given(st.binary(max_size=80), st.sampled_from([0, 1, 3, 18, 22]), st.integers(0, 14))
def test_any_bytes_are_a_request_or_an_error(data: bytes, api_key: int, version: int) -> None:
    server = ServerConnection()
    for content in (data, future(api_key, version)[:11] + data):
        try:
            received = server.receive(content)
        except KprotoError:
            continue
        assert received.size == len(content)


@settings(max_examples=examples(300))
@given(st.binary(max_size=80), st.integers(4, 18))
def test_any_bytes_are_a_response_or_an_error(data: bytes, version: int) -> None:
    client = ClientConnection()
    request = instance(FetchRequest, version, Fill.LEAST)
    client.send(request, version)
    client.send(request, version)
    with pytest.raises(KprotoError):
        client.receive(b"")
    try:
        received = client.receive(b"\x00\x00\x00\x01" + data)
    except DecodeError:
        return
    assert received.message is not None


@settings(max_examples=examples(300))
@given(
    data=st.binary(max_size=40).map(lambda rest: bytes(4) + rest) | st.binary(max_size=8),
    asked=st.sampled_from([0, 3, 12, 18, 22, 999, None]),
    version=st.integers(0, 14),
)
def test_the_message_alone_is_that_of_the_whole(
    data: bytes, asked: int | None, version: int
) -> None:
    outcomes = []
    for ask in (lambda side, data: side.match(data).message, PendingRequests.match_message):
        pending = PendingRequests()
        if asked is not None:
            pending.expect(PendingRequest(asked, version, 0))
        try:
            outcomes.append(ask(pending, data))
        except KprotoError as error:
            outcomes.append((type(error), str(error)))
        assert len(pending) == 0
    assert outcomes[0] == outcomes[1]
