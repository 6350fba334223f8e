"""Tests SaslHandshake v0 through the proxy to a real broker: tokens have no request headers.

The test writes the frames of an old client by hand. The broker must accept the tokens, and the
proxy must report the later requests as usual. Neither the recording nor the log of the proxy may
contain the password, or anything from which it can be guessed.
"""

from __future__ import annotations

import asyncio
import io
import json
import struct
from typing import Final, Self

import pytest

from kproto.protocol.sasl import Credentials, client_exchange
from kproto.proxy import Proxy, event_as_json, event_as_text
from kproto.study.conversations import EventKind, Side, TrafficEvent
from kproto.study.exchanges import exchange_as_text, pair_exchanges
from kproto.study.flows import events_of_recording
from kproto.study.recording import Recorder, read_recording
from tools.kafka.secured import SecuredKafka

USER: Final = "alice"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256")

METADATA, SASL_HANDSHAKE, API_VERSIONS = 3, 17, 18


@pytest.fixture
def listener(secured: SecuredKafka) -> str:
    """Returns the address of a listener at which a user can authenticate by both mechanisms."""
    return secured.bootstrap["SASL_PLAINTEXT"]


@pytest.fixture
def password(secured: SecuredKafka) -> str:
    return secured.passwords[USER]


class OldClient:
    """A connection whose frames the test writes and reads by hand."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._ids = 0
        self.tokens: list[bytes] = []

    async def __aenter__(self) -> Self:
        host, _, port = self._address.rpartition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, api_key: int, version: int, body: bytes = b"") -> bytes:
        """Sends a request with request header v1; returns the body of the response."""
        self._ids += 1
        head = struct.pack(">hhih", api_key, version, self._ids, 3) + b"old"
        answer = await self._exchange(head + body)
        assert answer[:4] == struct.pack(">i", self._ids)
        return answer[4:]

    async def send_token(self, token: bytes) -> bytes:
        """Sends a token after its size, without a header; returns the broker's token."""
        answer = await self._exchange(token)
        self.tokens += [token, answer]
        return answer

    async def log_in(self, mechanism: str, password: str) -> None:
        """Authenticates. Raises IncompleteReadError if the broker closes the connection."""
        name = struct.pack(">h", len(mechanism)) + mechanism.encode()
        answer = await self.ask(SASL_HANDSHAKE, 0, name)
        assert answer[:2] == b"\0\0", answer
        exchange = client_exchange(mechanism, Credentials(USER, password))
        token = exchange.first()
        while token:
            token = exchange.next(await self.send_token(token))
        assert exchange.done

    async def _exchange(self, content: bytes) -> bytes:
        self._writer.write(struct.pack(">i", len(content)) + content)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)


class ProxyOutput:
    """Collects all events and the recording of a proxy."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        self.events: list[TrafficEvent] = []

    def proxy(self, target: str) -> Proxy:
        """Returns a proxy for `target`; its events and its recording are added to this object."""
        recorder = Recorder(self.file)
        return Proxy(
            "127.0.0.1:0",
            target,
            on_event=lambda event, _: self.events.append(event),
            recorder=recorder,
        )

    def recorded(self) -> dict[Side, bytes]:
        """Returns all recorded bytes that the client sent, and all that the broker sent."""
        self.file.seek(0)
        streams = dict.fromkeys(Side, b"")
        for entry in read_recording(self.file):
            if entry.side is not None:
                streams[entry.side] += entry.data
        return streams

    def shown(self) -> bytes:
        """Returns all output in which a user could see a secret.

        This is the log as text and as JSON, the recorded bytes, and the recorded exchanges as text.
        """
        lines = [event_as_text(event, 1) for event in self.events]
        lines += [json.dumps(event_as_json(event, 1)) for event in self.events]
        self.file.seek(0)
        lines += map(
            exchange_as_text, pair_exchanges(events_of_recording(read_recording(self.file)))
        )
        return b"".join([*self.recorded().values(), *map(str.encode, lines)])


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_tokens_are_forwarded_and_later_requests_are_decoded(
    listener: str, password: str, mechanism: str
) -> None:
    output = ProxyOutput()
    async with output.proxy(listener) as proxy, OldClient(proxy.listens_at) as client:
        await client.log_in(mechanism, password)
        assert (await client.ask(API_VERSIONS, 0))[:2] == b"\0\0"
        assert listener.rpartition(":")[0].encode() in await client.ask(
            METADATA, 1, struct.pack(">i", 0)
        )
    count = len(client.tokens)
    assert count == {"PLAIN": 2, "SCRAM-SHA-256": 4}[mechanism]
    assert [(event.side, event.kind, event.api) for event in output.events] == [
        (Side.CLIENT, EventKind.MESSAGE, "SaslHandshake"),
        (Side.BROKER, EventKind.MESSAGE, "SaslHandshake"),
        *[
            (Side.CLIENT, EventKind.TOKEN, "SASL token"),
            (Side.BROKER, EventKind.TOKEN, "SASL token"),
        ]
        * (count // 2),
        (Side.CLIENT, EventKind.MESSAGE, "ApiVersions"),
        (Side.BROKER, EventKind.MESSAGE, "ApiVersions"),
        (Side.CLIENT, EventKind.MESSAGE, "Metadata"),
        (Side.BROKER, EventKind.MESSAGE, "Metadata"),
    ]
    # The events contain the tokens, which the proxy must forward; all output hides them.
    tokens = [event.data[4:] for event in output.events if event.kind is EventKind.TOKEN]
    assert tokens == client.tokens
    shown = output.shown()
    assert password.encode() not in shown
    assert not any(token in shown for token in client.tokens if token)
    output.file.seek(0)
    listed = list(pair_exchanges(events_of_recording(read_recording(output.file))))
    assert [each.event.api for each in listed] == [
        "SaslHandshake",
        *["SASL token"] * (count // 2),
        "ApiVersions",
        "Metadata",
    ]
    assert all(each.request and each.response and each.response.latency_us for each in listed)


async def test_recording_masks_tokens_without_changing_its_size(
    listener: str, password: str
) -> None:
    output = ProxyOutput()
    async with output.proxy(listener) as proxy, OldClient(proxy.listens_at) as client:
        await client.log_in("PLAIN", password)
        await client.ask(API_VERSIONS, 0)
    for side, stream in output.recorded().items():
        sent = b"".join(event.data for event in output.events if event.side is side)
        assert len(stream) == len(sent)
        start = sent.index(client.tokens[0]) if side is Side.CLIENT else len(sent)
        end = start + len(client.tokens[0]) if side is Side.CLIENT else len(sent)
        assert stream == sent[:start] + b"*" * (end - start) + sent[end:]


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_wrong_password_is_hidden(listener: str, mechanism: str) -> None:
    wrong = "wr0ng-pa55w0rd"
    output = ProxyOutput()
    async with output.proxy(listener) as proxy, OldClient(proxy.listens_at) as client:
        with pytest.raises(asyncio.IncompleteReadError):
            await client.log_in(mechanism, wrong)
    kinds = [event.kind for event in output.events]
    assert kinds[:3] == [EventKind.MESSAGE, EventKind.MESSAGE, EventKind.TOKEN]
    assert (kinds[-1], output.events[-1].api) == (EventKind.UNANSWERED, "SASL token")
    assert set(kinds[2:-1]) == {EventKind.TOKEN}
    tokens = [event.data[4:] for event in output.events if event.kind is EventKind.TOKEN]
    shown = output.shown()
    assert wrong.encode() not in shown
    assert not any(token in shown for token in tokens if token)
