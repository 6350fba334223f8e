"""Tests annotated trees of the frames between a client and a broker, and of partial frames."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kproto import Client, NewTopic
from kproto.broker import Broker, BrokerSettings
from kproto.messages import (
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateDelegationTokenResponse,
    EnvelopeRequest,
    HeartbeatRequest,
    MetadataRequest,
    MetadataResponse,
    SaslAuthenticateRequest,
)
from kproto.messages.alter_user_scram_credentials_request import ScramCredentialUpsertion
from kproto.messages.base import Message
from kproto.protocol.connection import read_request
from kproto.protocol.framing import FrameReader, frame
from kproto.protocol.headers import encode_request_header, encode_response_header
from kproto.protocol.received import read_response
from kproto.schema.secrets import SECRETS
from kproto.study import (
    Node,
    annotate,
    annotate_frame,
    annotate_frames,
    faults,
    find_message_class,
    nodes,
    to_json,
    to_text,
)
from kproto.study.secret_fields import has_secrets
from kproto.wire.errors import ConfigurationError
from tests.unit.messages.catalogue import NAMES, class_of

from .agreement import check_every_byte, check_values


def request_frame(message: Message, version: int) -> bytes:
    header = encode_request_header(type(message), version, 7, "tester")
    return frame(header, message.encode(version))


def response_frame(message: Message, version: int) -> bytes:
    return frame(encode_response_header(type(message), version, 7), message.encode(version))


@contextlib.asynccontextmanager
async def tapped() -> AsyncIterator[tuple[str, list[bytearray], list[bytearray]]]:
    """Yields the address of a proxy, and all bytes sent by the clients and by the broker.

    The bytes are lists of buffers, with one buffer per connection.
    """
    asked: list[bytearray] = []
    answered: list[bytearray] = []
    target: list[int] = []
    tasks: set[asyncio.Task[None]] = set()

    async def copy(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                kept += data
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", target[0])
        asked.append(bytearray())
        answered.append(bytearray())
        for one in (copy(reader, ours, asked[-1]), copy(theirs, writer, answered[-1])):
            task = asyncio.create_task(one)
            tasks.add(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        settings = BrokerSettings(port=0, advertised_host="127.0.0.1", advertised_port=port)
        async with Broker(settings) as broker:
            target.append(int(broker.listens_at.rpartition(":")[2]))
            yield f"127.0.0.1:{port}", asked, answered
            await asyncio.wait(tasks, timeout=5)


async def talk(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic("greetings", partitions=2))
        async with client.producer(compression="gzip") as producer:
            for number in range(3):
                await producer.send("greetings", b"hello %d" % number, key=b"k")
        seen = 0
        async for _ in client.consumer("greetings", start="earliest"):
            seen += 1
            if seen == 3:
                break


async def test_all_that_client_and_broker_say() -> None:
    async with tapped() as (bootstrap, asked, answered):
        await talk(bootstrap)
    names: set[str] = set()
    records = 0
    for requests, responses in zip(asked, answered, strict=True):
        sent = FrameReader().feed(bytes(requests))
        roots = list(annotate_frames(bytes(requests)))
        assert len(roots) == len(sent)
        kinds = {}
        for root, content in zip(roots, sent, strict=True):
            request = read_request(content)
            check_frame(root, request.message, request.version)
            names.add(request.name)
            kinds[request.correlation_id] = (request.api_key, request.version)
        for content in FrameReader().feed(bytes(responses)):
            key, version = kinds[int.from_bytes(content[:4], "big")]
            response = read_response(content, key, version)
            root = annotate_frame(frame(content), key, version, response=True)
            check_frame(root, response.message, response.version)
            records += sum(node.kind == "record" for node in nodes(root))
    assert {"ApiVersionsRequest", "MetadataRequest", "ProduceRequest", "FetchRequest"} <= names
    assert records == 3


def check_frame(root: Node, message: Message | None, version: int) -> None:
    assert message is not None
    assert faults(root) == []
    assert [child.name for child in root.children[:2]] == ["size", "header"]
    assert root.value == f"{type(message).__name__} v{version}"
    check_every_byte(root, root.source)
    check_values(type(message), version, message, root.children[2])


REQUEST = MetadataRequest(topics=None)


def test_a_request_says_what_it_is_with_and_without_its_size() -> None:
    whole = request_frame(REQUEST, 9)
    for data, part in ((whole, "frame"), (whole[4:], "message")):
        root = annotate_frame(data)
        assert (root.kind, root.value) == (part, "MetadataRequest v9")
        assert faults(root) == []
        check_every_byte(root, data)


@pytest.mark.parametrize("message", [REQUEST, MetadataResponse(cluster_id="c", brokers=[])])
def test_part_of_a_frame_is_detected(message: Message) -> None:
    is_response = isinstance(message, MetadataResponse)
    whole = response_frame(message, 9) if is_response else request_frame(message, 9)
    body = message.encode(9)
    for data, kind in ((whole, "frame"), (whole[4:], "message")):
        root = annotate_frame(data, type(message), 9)
        assert root.kind == kind
        assert faults(root) == []
    root = annotate_frame(body, type(message), 9)
    assert root.kind == "message"
    assert root.children[0].name != "header"
    assert faults(root) == []


def test_bytes_behind_a_body_are_shown_and_no_fault() -> None:
    whole = request_frame(REQUEST, 9)
    data = frame(whole[4:] + b"abc")
    root = annotate_frame(data)
    assert faults(root) == []
    assert root.children[-1].kind == "trailing"
    assert root.children[-1].own_bytes == b"abc"
    check_every_byte(root, data)


def test_a_frame_that_is_cut_or_too_long() -> None:
    whole = request_frame(REQUEST, 9)
    cut = annotate_frame(whole[:-2], part="frame")
    assert faults(cut)[0].path == "size"
    check_every_byte(cut, whole[:-2])
    longer = annotate_frame(whole + b"xx", part="frame")
    assert faults(longer)[0].reason == "the size is 18, but 20 bytes follow it".replace(
        "18", str(len(whole) - 4)
    ).replace("20", str(len(whole) - 2))
    check_every_byte(longer, whole + b"xx")


def test_of_two_ways_to_read_a_request_the_one_that_goes_further_is_taken() -> None:
    whole = request_frame(REQUEST, 9)  # the frame size could be an api key and a version, too
    assert annotate_frame(whole[:-1]).kind == "frame"
    assert annotate_frame(whole[4:]).kind == "message"
    assert annotate_frame(whole[4:-1]).kind == "message"


@pytest.mark.parametrize(("key", "version"), [(18, 99), (9999, 0), (-1, 3)])
def test_a_request_that_no_definition_knows(key: int, version: int) -> None:
    content = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + bytes(8)
    data = frame(content)
    root = annotate_frame(data)
    (fault,) = faults(root)
    assert fault.path == ("request_api_version" if key == 18 else "request_api_key")
    check_every_byte(root, data)


def test_a_refusal_of_api_versions_comes_in_the_form_of_v0() -> None:
    api_error = ApiVersionsResponse(error_code=35)
    data = frame(b"\0\0\0\7" + api_error.encode(0))
    root = annotate_frame(data, ApiVersionsResponse, 4)
    assert faults(root) == []
    assert root.children[2].child("error_code").meaning == "UNSUPPORTED_VERSION"
    assert root.notes == ["requested in v4; error 35 has the layout of v0"]


def test_several_requests() -> None:
    first, second = request_frame(REQUEST, 9), request_frame(ApiVersionsRequest(), 0)
    roots = list(annotate_frames(first + second))
    assert [root.value for root in roots] == ["MetadataRequest v9", "ApiVersionsRequest v0"]


def test_frames_before_a_cut_frame_are_read() -> None:
    first, second = request_frame(REQUEST, 9), request_frame(ApiVersionsRequest(), 0)
    for whole in ([first], [first, second], [second, second, first]):
        for size in range(8, len(first)):
            roots = list(annotate_frames(b"".join(whole) + first[:size]))
            assert len(roots) == len(whole) + 1
            assert not any(map(faults, roots[:-1]))
            assert faults(roots[-1])
    for size in range(1, 8):
        roots = list(annotate_frames(first + second + first[:size]))
        assert [bool(faults(root)) for root in roots] == [False, False, True]


def test_names_of_messages() -> None:
    assert find_message_class("fetch").__name__ == "FetchRequest"
    assert find_message_class("Fetch", response=True).__name__ == "FetchResponse"
    assert find_message_class(1, response=True).__name__ == "FetchResponse"
    assert find_message_class("OffsetCommitValue").__name__ == "OffsetCommitValue"
    assert find_message_class(MetadataRequest) is MetadataRequest
    for wrong in ("Fetsch", "9999", 9999, ""):
        with pytest.raises(ConfigurationError, match=r"api key|no message is called"):
            find_message_class(wrong)
    with pytest.raises(ConfigurationError, match="has the versions 0 to 4, not 9"):
        annotate(b"", HeartbeatRequest, 9)
    with pytest.raises(ConfigurationError, match="does not name its message"):
        annotate_frame(b"abcdefgh", response=True)


SECRET = b"TheSecretBytes"
CARRIERS = [
    (SaslAuthenticateRequest(auth_bytes=SECRET), 2),
    (CreateDelegationTokenResponse(hmac=SECRET, token_id="t"), 3),
    (
        AlterUserScramCredentialsRequest(
            upsertions=[
                ScramCredentialUpsertion(name="me", mechanism=1, salt=b"x", salted_password=SECRET)
            ]
        ),
        0,
    ),
    (EnvelopeRequest(request_data=SECRET, client_host_address=b"abcd"), 0),
]


@pytest.mark.parametrize(("message", "version"), CARRIERS)
@pytest.mark.parametrize("cut", [0, 1, 3, -3])
def test_secrets_are_hidden_also_where_bytes_are_broken(
    message: Message, version: int, cut: int
) -> None:
    body = message.encode(version)
    body = body[:-cut] if cut > 0 else body + body[:-cut] * 20 + SECRET
    root = annotate_frame(body, type(message), version, part="body")
    raw = f"{to_json(root)}{list(to_text(root))}{list(to_text(root, width=50))}"
    for shown in (SECRET.decode(), SECRET.hex(), SECRET.hex(" ")[:20], SECRET[3:].hex()):
        assert shown not in raw
    assert "<hidden>" in raw
    assert SECRET[:6].hex() in str(to_json(root, show_secrets=True))


@pytest.mark.parametrize("token", [b"\0me\0" + SECRET, b"n,,n=me,r=" + SECRET, SECRET * 3])
def test_a_token_without_header_is_hidden(token: bytes) -> None:
    raw = str(to_json(annotate_frame(frame(token))))
    for at in range(4, len(token) - 4):
        assert token[at : at + 4].hex() not in raw


def test_the_messages_with_secrets() -> None:
    found = {name for name in NAMES if has_secrets(class_of(name))}
    marked = {message for message, _ in SECRETS}
    assert found == marked | {"EnvelopeRequest", "EnvelopeResponse"}
