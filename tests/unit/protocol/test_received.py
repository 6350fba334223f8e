"""Tests reading a single request or response, and writing it back unchanged."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto import messages
from kproto.messages import (
    ApiVersionsResponse,
    ControlledShutdownRequest,
    DescribeClientQuotasResponse,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from kproto.messages.base import Request, Response
from kproto.messages.describe_client_quotas_response import EntryData, ValueData
from kproto.protocol.connection import (
    ClientConnection,
    PendingRequest,
    PendingRequests,
    ReceivedRequest,
    read_request,
)
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
from kproto.protocol.received import ReceivedResponse, read_response
from kproto.testing.instances import Fill, instance, instances
from kproto.wire.errors import DecodeError, EncodeError, KprotoError
from kproto.wire.tags import RawTaggedField
from tests.support.examples import examples

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
@pytest.mark.slow
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
            if answer.version == version:  # otherwise it is a refusal, which is a v0 response
                assert (answer.message, answer.header_tags) == (response, tags)


@settings(max_examples=examples(300))
@given(
    st.binary(max_size=80),
    st.sampled_from([0, 1, 3, 7, 18, 22, 999]),
    st.integers(-1, 14),
    correlation_ids,
    client_ids,
)
@pytest.mark.slow
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


def test_body_with_longer_encodings_is_written_back_unchanged() -> None:
    """The body has a compact length of 2 in two bytes, and the byte 7 instead of 1 for true."""
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


#: One tagged field whose count and size take two bytes instead of one.
LONG_TAGS = bytes.fromhex("810007810061")


def test_request_header_with_longer_encodings_is_written_back_unchanged() -> None:
    client = request_header(1, 3, 12, 5, "me")
    body = MetadataRequest(topics=None).encode(12)
    received = read_request(client + LONG_TAGS + body)
    assert received.header_tags == (RawTaggedField(7, b"a"),)
    assert received.to_frame() == frame(client, LONG_TAGS, body)
    changes: list[dict[str, Any]] = [
        {"client_id": "you"},
        {"correlation_id": 6},
        {"header_tags": ()},
        {"header_tags": (RawTaggedField(7, b"b"),)},
        {"version": 8, "header_tags": ()},
    ]
    for change in changes:
        again = read_request(received._replace(**change).to_frame()[4:])
        assert {name: getattr(again, name) for name in change} == change


def test_response_header_with_longer_encodings_is_written_back_unchanged() -> None:
    body = MetadataResponse().encode(12)
    for tags, held in ((b"\x80\x00", ()), (LONG_TAGS, (RawTaggedField(7, b"a"),))):
        content = b"\x00\x00\x00\x4d" + tags + body
        answer = read_response(content, 3, 12)
        assert (answer.header_tags, answer.size) == (held, len(content))
        assert answer.to_frame() == frame(content)
        again = read_response(answer._replace(correlation_id=-5).to_frame()[4:], 3, 12)
        assert (again.correlation_id, again.header_tags) == (-5, held)
        older = answer._replace(version=8, header_tags=())
        assert read_response(older.to_frame()[4:], 3, 8).message == answer.message


def quotas(value: float | bytes) -> bytes:
    """Returns a DescribeClientQuotasResponse v1 with one quota, a number or its encoding."""
    entry = EntryData(values=[ValueData(key="k", value=1.0)])
    data = DescribeClientQuotasResponse(entries=[entry]).encode(1)
    wanted = struct.pack(">d", value) if isinstance(value, float) else value
    return b"\x00\x00\x00\x01\x00" + data.replace(struct.pack(">d", 1.0), wanted)


def quota_of(answer: ReceivedResponse) -> ValueData:
    assert isinstance(answer.message, DescribeClientQuotasResponse)
    assert answer.message.entries is not None
    return answer.message.entries[0].values[0]


@pytest.mark.parametrize(
    ("came", "becomes"), [(0.0, -0.0), (-0.0, 0.0), (math.nan, 0.0), (0.0, math.nan)]
)
def test_a_number_that_only_equals_is_a_change(came: float, becomes: float) -> None:
    answer = read_response(quotas(came), 48, 1)
    quota_of(answer).value = becomes
    assert answer.to_frame() == frame(quotas(becomes))


@pytest.mark.parametrize("nan", ["7ff8000000000000", "fff8000000000000", "7ff80000000000ff"])
def test_a_nan_that_nobody_changed_is_written_back(nan: str) -> None:
    content = quotas(bytes.fromhex(nan))
    assert read_response(content, 48, 1).to_frame() == frame(content)
    padded = content[:5] + content[5:].replace(b"\x02k", b"\x82\x00k")  # a length of two bytes
    assert len(padded) == len(content) + 1
    assert read_response(padded, 48, 1).to_frame() == frame(padded)


@pytest.mark.parametrize("kind", [bytearray, lambda data: memoryview(bytearray(data))])
def test_a_buffer_may_be_used_again(kind: Any) -> None:
    """A caller may use one buffer for all frames; a message must not depend on it afterwards."""
    _, asked = ClientConnection("me").send(MetadataRequest(topics=None), 12)
    buffer = kind(asked[4:] + b"behind")
    request = read_request(buffer)
    buffer[:] = bytes(len(buffer))
    assert request.to_frame() == frame(asked[4:], b"behind")
    for body, version in ((MetadataResponse().encode(12), 12), (b"anything", 99)):
        content = b"\x00\x00\x00\x09" + b"\x00" * (version == 12) + body
        buffer = kind(content)
        answer = read_response(buffer, 3, version)
        buffer[:] = bytes(len(buffer))
        assert answer.to_frame() == frame(content)
    wrong: Any
    for wrong in ("text", 7, None):
        with pytest.raises(DecodeError, match=r"RequestHeader.*bytes are wanted, not "):
            read_request(wrong)
        with pytest.raises(DecodeError, match=r"MetadataResponse.*bytes are wanted, not "):
            read_response(wrong, 3, 12)


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
    alike = answer._replace(message=ProduceResponse())  # the bytes are not one
    assert alike.to_frame()[4:].endswith(ProduceResponse().encode(12) + b"behind")


def test_a_message_may_be_written_from_nothing() -> None:
    """A test broker can create a received message itself, although it has received no bytes."""
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
        answer.message.error_code = 7
        written = answer.message.encode(0) + answer.trailing
        assert answer.to_frame() == frame(b"\x00\x00\x00\x09", written)


def test_one_response_is_read_by_itself() -> None:
    """A captured response can be read without a connection, if API key and version are known."""
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
