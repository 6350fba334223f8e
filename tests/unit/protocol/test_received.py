"""What came is written back as it came; one request or response is read by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto import messages
from kproto.messages import (
    ApiVersionsResponse,
    ControlledShutdownRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kproto.messages.base import Request, Response
from kproto.protocol.connection import ClientConnection, PendingRequest, PendingRequests
from kproto.protocol.framing import frame
from kproto.protocol.headers import (
    encode_response_header,
    request_class,
    request_header,
    request_header_version,
    response_class,
    response_header,
    response_header_version,
)
from kproto.protocol.received import (
    ReceivedRequest,
    ReceivedResponse,
    read_request,
    read_response,
)
from kproto.testing.instances import Fill, instance, instances
from kproto.wire.errors import DecodeError, EncodeError, KprotoError
from kproto.wire.tags import RawTaggedField

TAGS = (
    RawTaggedField(3, b"three"),
    RawTaggedField(900, b""),
    RawTaggedField(2**31 - 2, bytes(200)),
)

client_ids = st.none() | st.text(max_size=12)
correlation_ids = st.integers(-(2**31), 2**31 - 1)


def classes(api_key: int) -> tuple[type[Request[Response]], type[Response]]:
    asks, answers = request_class(api_key), response_class(api_key)
    assert asks is not None
    assert answers is not None
    return asks, answers


@pytest.mark.parametrize("api_key", messages.API_KEYS)
def test_every_message_in_every_version_is_written_back_as_it_came(api_key: int) -> None:
    asks, answers = classes(api_key)
    for version in asks.VALID_VERSIONS:
        header_version = request_header_version(asks, version)
        tags = TAGS if header_version == 2 else ()
        for index, request in enumerate(instances(asks, version)):
            client_id = (None, "", "me", "\u00e9")[index % 4]
            header = request_header(header_version, api_key, version, index - 1, client_id, tags)
            content = header + request.encode(version) + b"behind"[: index % 7]
            received = read_request(content)
            assert received.message == request
            assert received.header_tags == tags
            assert received.client_id == (client_id if header_version else None)
            assert received.to_frame() == frame(content)
        header_version = response_header_version(answers, version)
        tags = TAGS if header_version == 1 else ()
        for index, response in enumerate(instances(answers, version)):
            header = response_header(header_version, index - 1, tags)
            content = header + response.encode(version) + b"behind"[: index % 7]
            answer = read_response(content, api_key, version)
            assert answer.correlation_id == index - 1
            assert answer.to_frame() == frame(content)
            if answer.version == version:  # else it is a refusal in the form of v0
                assert (answer.message, answer.header_tags) == (response, tags)


@settings(max_examples=300)
@given(
    st.binary(max_size=80),
    st.sampled_from([0, 1, 3, 7, 18, 22, 999]),
    st.integers(-1, 14),
    correlation_ids,
    client_ids,
)
def test_any_bytes_are_written_back_as_they_came(
    data: bytes, api_key: int, version: int, correlation_id: int, client_id: str | None
) -> None:
    head = request_header(1, api_key, version, correlation_id, client_id)
    for content in (head + data, head + b"\x00" + data, data):
        try:
            received = read_request(content)
        except KprotoError:
            continue
        assert received.to_frame() == frame(content)
    for content in (head[4:8] + data, head[4:8] + b"\x00" + data, head[4:8] + b"\x00\x23" + data):
        try:
            answer = read_response(content, api_key, version)
        except KprotoError:
            continue
        assert answer.to_frame() == frame(content)


@pytest.mark.parametrize("client_id", [None, "", "c"])
def test_a_client_without_an_id_stays_one(client_id: str | None) -> None:
    _, data = ClientConnection(client_id).send(MetadataRequest(), 12)
    received = read_request(data[4:])
    assert received.client_id == client_id
    assert received.to_frame() == data


def test_the_header_without_a_client_id() -> None:
    _, data = ClientConnection("c").send(ControlledShutdownRequest(broker_id=5), 0)
    received = read_request(data[4:])
    assert received.client_id is None
    assert received.to_frame() == data
    later = received._replace(version=1)
    assert read_request(later.to_frame()[4:]).version == 1


def test_what_takes_more_bytes_than_it_needs_is_written_back_so() -> None:
    """A compact length of 2 in two bytes, and a true that is 7."""
    body = bytes.fromhex("8200" + "00" * 16 + "0261" + "00" + "07" + "00" + "00")
    header = request_header(2, 3, 12, 1, None)
    received = read_request(header + body)
    assert isinstance(received.message, MetadataRequest)
    assert received.message.allow_auto_topic_creation is True
    assert received.to_frame() == frame(header, body)
    received.message.allow_auto_topic_creation = False
    rewritten = read_request(received.to_frame()[4:])
    assert rewritten.message == received.message
    assert rewritten.size == received.size - 1


def test_a_changed_message_is_written_in_its_place() -> None:
    response = instance(MetadataResponse, 12, Fill.FULL)
    content = response_header(1, 77, TAGS) + response.encode(12) + b"behind"
    answer = read_response(content, 3, 12)
    assert isinstance(answer.message, MetadataResponse)
    for broker in answer.message.brokers:
        broker.host, broker.port = "elsewhere", 1
    again = read_response(answer.to_frame()[4:], 3, 12)
    assert isinstance(again.message, MetadataResponse)
    assert {broker.host for broker in again.message.brokers} == {"elsewhere"}
    assert (again.correlation_id, again.header_tags, again.trailing) == (77, TAGS, b"behind")
    renumbered = answer._replace(correlation_id=-5)
    assert read_response(renumbered.to_frame()[4:], 3, 12).correlation_id == -5
    other = answer._replace(message=FindCoordinatorResponse(coordinators=[]))
    with pytest.raises(EncodeError):
        other.to_frame()


def test_a_message_may_be_written_from_nothing() -> None:
    """As a broker of a test does, which has no bytes that came."""
    asked = ReceivedRequest(3, 9, 4, "c", MetadataRequest(), 0, b"")
    assert read_request(asked.to_frame()[4:]).message == MetadataRequest()
    answer = ReceivedResponse(3, 9, 4, MetadataResponse(), 0, b"")
    assert answer.to_frame() == frame(
        encode_response_header(MetadataResponse, 9, 4), MetadataResponse().encode(9)
    )


def test_a_refusal_without_a_form_is_written_back() -> None:
    for body in (b"\x00\x23", b"\x00\x23\x01\x00\x00\x00\x00\x00"):
        answer = read_response(b"\x00\x00\x00\x09" + body, 18, 4)
        assert isinstance(answer.message, ApiVersionsResponse)
        assert answer.to_frame() == frame(b"\x00\x00\x00\x09", body)
        waiting = PendingRequests()
        waiting.expect(PendingRequest(18, 4, 9))
        assert waiting.match(b"\x00\x00\x00\x09" + body) == answer


def test_one_response_is_read_by_itself() -> None:
    """Of a capture, say: who knows what was asked needs no connection."""
    data = encode_response_header(MetadataResponse, 9, -3) + MetadataResponse().encode(9)
    answer = read_response(data, 3, 9)
    assert (answer.message, answer.correlation_id) == (MetadataResponse(), -3)
    assert (answer.name, answer.size) == ("MetadataResponse", len(data))
    assert read_response(data, 999, 9).message is None
    assert read_response(data, 3, 99).name == "MetadataResponse"
    with pytest.raises(DecodeError, match=r"MetadataResponse.*3 bytes are too few"):
        read_response(bytes(3), 3, 9)
    with pytest.raises(DecodeError, match="MetadataResponse v9"):
        read_response(data[:-1], 3, 9)
