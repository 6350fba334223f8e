"""Tests a user's own package of messages on both sides of a connection.

The programs of docs/how-to/protocol.md run here as printed, with the package of
docs/how-to/definitions.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kproto.messages
from kproto import Client
from kproto.broker import Broker
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import handles
from kproto.messages import FetchRequest, FetchResponse, MetadataRequest, MetadataResponse
from kproto.protocol.connection import (
    ClientConnection,
    PendingRequests,
    ServerConnection,
    expects_response,
    read_request,
)
from kproto.protocol.message_classes import KAFKA_MESSAGES, MessageClasses, response_of
from kproto.protocol.received import read_response
from kproto.wire.errors import ConfigurationError, EncodeError
from tests.support.embedded import threaded_broker
from tests.support.pages import blocks, page_text, run_program
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.unit.codegen.packages import generate, imported, write_definitions

DEFINITIONS = re.findall(
    r"^`greetings/\w+\.json`\n\n```json\n(.*?)^```",
    page_text("docs/how-to/definitions.md"),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("own")
    assert generate(write_definitions(folder / "greetings", DEFINITIONS), folder / "hello") == 0
    with imported(folder / "hello") as package:
        yield package


def made(folder: Path, name: str, *definitions: dict[str, Any]) -> Path:
    assert generate(write_definitions(folder / "definitions", definitions), folder / name) == 0
    return folder / name


def definition(kind: str, api_key: int, name: str, versions: str = "0") -> dict[str, Any]:
    return {
        "apiKey": api_key,
        "type": kind,
        "name": name,
        "validVersions": versions,
        "flexibleVersions": "none",
        "fields": [{"name": "Id", "type": "int32", "versions": "0+"}],
    }


def test_the_page_runs_as_printed(hello: ModuleType) -> None:
    programs = blocks(page_text("docs/how-to/protocol.md"), "python")
    assert len(programs) == 4
    run_program("".join(programs), "docs/how-to/protocol.md")


def test_the_classes_of_an_api_key(hello: ModuleType) -> None:
    classes = MessageClasses(hello)
    assert classes.request(1000) is hello.GreetRequest
    assert classes.response(1000) is hello.GreetResponse
    assert classes.request(3) is MetadataRequest
    assert classes.response(3) is MetadataResponse
    assert KAFKA_MESSAGES.request(1000) is None
    assert KAFKA_MESSAGES.response(1000) is None
    requests: list[Any] = [hello.GreetRequest]
    by_request = MessageClasses(requests=requests)
    assert [by_request.request(1000)] == requests
    assert by_request.response(1000) is hello.GreetResponse
    for wrong in (kproto, hello.GreetRequest, "hello"):
        with pytest.raises(ConfigurationError, match="no package of messages"):
            MessageClasses(wrong)  # type: ignore[arg-type] # on purpose


def test_every_request_of_kafka_finds_its_response() -> None:
    for api_key, (request, response) in kproto.messages.API_KEYS.items():
        cls = getattr(kproto.messages, request)
        assert response_of(cls) is getattr(kproto.messages, response)
        assert KAFKA_MESSAGES.response(api_key) is getattr(kproto.messages, response)
        derived = type("Mine", (cls,), {"__slots__": ()})
        assert response_of(derived) is response_of(cls)


def test_own_frames_are_written_back(hello: ModuleType) -> None:
    classes = MessageClasses(hello)
    for version in (0, 1):
        _, data = ClientConnection("").send(hello.GreetRequest(token="t"), version)
        request = read_request(data[4:], classes)
        assert request.message == hello.GreetRequest(token="t")
        assert request.to_frame() == data
        assert read_request(data[4:]).to_frame() == data, "without the package too"
        answer = ServerConnection(classes).send(request, hello.GreetResponse(greetings=["a"]))
        assert read_response(answer[4:], 1000, version, classes).to_frame() == answer
        assert read_response(answer[4:], 1000, version).to_frame() == answer
    future = read_request(data[4:6] + b"\x00\x63" + data[8:], classes)
    assert (future.message, future.name) == (None, "GreetRequest")


async def test_an_own_request_between_client_and_broker(hello: ModuleType) -> None:
    seen = []

    @handles(hello.GreetRequest, versions=range(1))
    def greet(context: Any, request: Any, version: int) -> Any:
        seen.append(version)
        return hello.GreetResponse(greetings=[request.token])

    async with (
        Broker(apis=[*KAFKA_APIS, greet]) as broker,
        Client(broker.bootstrap) as client,
    ):
        answer = await client.request(hello.GreetRequest(token="t"))
        assert type(answer) is hello.GreetResponse
        assert (answer.greetings, seen) == (["t"], [0])
        await client.create_topics("beside")


def test_another_s_response_is_refused(hello: ModuleType, tmp_path: Path) -> None:
    server = ServerConnection(MessageClasses(hello))
    _, data = ClientConnection().send(hello.GreetRequest(), 0)
    request = server.receive(data[4:])
    pair = [
        definition("request", 1000, "TalkRequest"),
        definition("response", 1000, "TalkResponse"),
    ]
    with imported(made(tmp_path, "talk", *pair)) as talk:
        wrong: list[Any] = [MetadataResponse(), talk.TalkResponse(), request.message, None, "text"]
        for answer in wrong:
            words = rf"{type(answer).__name__} v0: .*no answer to GreetRequest; GreetResponse is"
            for _ in range(2):
                with pytest.raises(EncodeError, match=words):
                    server.send(request, answer)
            assert server.send(request, hello.GreetResponse())
    mine: Any = type("Mine", (hello.GreetResponse,), {"__slots__": ()})
    assert server.send(request, mine()) == server.send(request, hello.GreetResponse())
    unknown = ServerConnection().receive(data[4:])
    assert server.send(unknown, hello.GreetResponse(), 0)
    with pytest.raises(EncodeError, match=r"MetadataResponse v0: it is no answer to api key 1000$"):
        ServerConnection().send(unknown, MetadataResponse())


def test_a_handler_that_returns_another_s_response_is_told(
    hello: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    @handles(hello.GreetRequest, versions=range(2))
    def greet(context: Any, request: Any, version: int) -> Any:
        return MetadataResponse()

    with (
        threaded_broker(apis=[*KAFKA_APIS, greet]) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        connection.send(hello.GreetRequest(), 0)
        with pytest.raises(ClosedByBrokerError):
            connection.receive()
    assert "MetadataResponse v0: it is no answer to GreetRequest; GreetResponse is" in caplog.text


async def test_an_own_request_without_its_response_is_told(tmp_path: Path) -> None:
    lonely = made(tmp_path, "lonely", definition("request", 1001, "LonelyRequest"))
    with imported(lonely) as package:
        client = ClientConnection()
        words = "LonelyRequest v0: its package has no response of api key 1001; define one and gen"
        with pytest.raises(ConfigurationError, match=words):
            client.send(package.LonelyRequest(), 0)
        assert len(client.pending) == 0
        with pytest.raises(EncodeError, match="version 5 is not one of 0 to 0"):
            client.send(package.LonelyRequest(), 5)

        @handles(package.LonelyRequest, versions=range(1))
        def never(context: Any, request: Any, version: int) -> None: ...

        answering = words.replace(" v0", "")
        with pytest.raises(ConfigurationError, match=answering):
            Broker(apis=[*KAFKA_APIS, never])
        with pytest.raises(ConfigurationError, match=answering):
            MessageClasses(requests=[package.LonelyRequest])
        with pytest.raises(ConfigurationError, match=r"lonely\." + answering):
            ServerConnection(MessageClasses(package))

    asked = definition("request", 1001, "LonelyRequest")
    pair = made(tmp_path / "2", "pair", asked, definition("response", 1001, "LonelyResponse"))
    with imported(lonely) as package, imported(pair) as whole:

        @handles(whole.LonelyRequest, versions=range(1))
        def offered(context: Any, request: Any, version: int) -> None: ...

        async with (
            Broker(apis=[*KAFKA_APIS, offered]) as broker,
            Client(broker.bootstrap) as asking,
        ):
            with pytest.raises(ConfigurationError, match=words):
                await asking.request(package.LonelyRequest())
            assert await asking.request(MetadataRequest(topics=[])), "the connection goes on"


def test_a_response_without_its_request_is_told(tmp_path: Path) -> None:
    """TalkRequest has the name of a request, but is a data message without an API key."""
    data = definition("data", 0, "TalkRequest")
    del data["apiKey"]
    half = made(tmp_path, "half", data, definition("response", 1002, "TalkResponse"))
    with imported(half) as package:
        words = r"half\.TalkResponse: its package has no request of api key 1002"
        with pytest.raises(ConfigurationError, match=words):
            MessageClasses(package)
    fine = made(tmp_path / "again", "fine", data)
    with imported(fine) as package:
        assert MessageClasses(package).request(3) is MetadataRequest


def test_kafkas_messages_generated_anew_are_taken_for_what_they_are(tmp_path: Path) -> None:
    """A package generated from Kafka's definitions has classes of its own for Kafka's messages.

    If a user sends such classes, connections return this package's classes, and expect no response
    to its ProduceRequest with acks=0.
    """
    produce = definition("request", 0, "ProduceRequest")
    produce["fields"] = [{"name": "Acks", "type": "int16", "versions": "0+"}]
    fetch = definition("request", 1, "FetchRequest", "4")
    pairs = [
        definition("response", 0, "ProduceResponse"),
        definition("response", 1, "FetchResponse", "4"),
    ]
    package_path = made(tmp_path, "anew", produce, fetch, *pairs)
    with imported(package_path) as package:
        assert not expects_response(package.ProduceRequest(acks=0), 0)
        assert expects_response(package.ProduceRequest(acks=1), 0)
        client, server = ClientConnection(), ServerConnection(MessageClasses(package))
        client.send(package.ProduceRequest(acks=0), 0)
        _, data = client.send(package.FetchRequest(id=7), 4)
        asked = server.receive(data[4:])
        assert asked.message == package.FetchRequest(id=7)
        answer = client.receive(server.send(asked, package.FetchResponse(id=8))[4:])
        assert answer.message == package.FetchResponse(id=8)
        client.send(FetchRequest(), 12)
        assert list(client.pending._waiting)[-1].response is FetchResponse
        waiting = PendingRequests()
        pending = server.pending(asked)
        assert pending is not None
        waiting.expect(pending)
        data = server.send(asked, package.FetchResponse(id=9))
        assert waiting.match(data[4:]).message == package.FetchResponse(id=9)
    assert "anew" not in sys.modules
