"""Tests the proxy between a broker and a kproto client or a plain socket."""

from __future__ import annotations

import asyncio
import io
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kproto import Client, ProducerRecord
from kproto.broker import Broker, BrokerSettings
from kproto.messages import MetadataRequest, MetadataResponse, ProduceRequest
from kproto.messages.metadata_response import MetadataResponseBroker
from kproto.protocol.connection import ClientConnection, ServerConnection
from kproto.protocol.framing import frame
from kproto.proxy import Proxy, ProxySettings
from kproto.proxy.settings import parse_address
from kproto.study.conversations import EventKind, Side, TrafficEvent
from kproto.study.recording import Recorder, read_recording
from kproto.wire.errors import BrokerConnectionError, ConfigurationError

LOCAL = "127.0.0.1:0"
NOWHERE = "192.0.2.1"  # an address that no machine has


class Told:
    """Collects the events and notices of a proxy."""

    def __init__(self) -> None:
        self.events: list[TrafficEvent] = []
        self.notices: list[str] = []

    def on_event(self, event: TrafficEvent, _connection: int) -> None:
        self.events.append(event)

    def on_notice(self, text: str, _connection: int | None) -> None:
        self.notices.append(text)

    def proxy(
        self,
        target: str,
        settings: ProxySettings | None = None,
        recorder: Recorder | None = None,
    ) -> Proxy:
        return Proxy(
            LOCAL,
            target,
            settings,
            on_event=self.on_event,
            on_notice=self.on_notice,
            recorder=recorder,
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - the proxy's reports set no event
                await asyncio.sleep(0.005)


async def send_and_read(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        async with client.producer() as producer:
            await producer.send_many("seen", [ProducerRecord(bytes([n])) for n in range(9)])
        read = []
        async for record in client.consumer("seen", start="earliest"):
            read.append(record.value)
            if len(read) == 9:
                break
        assert read == [bytes([n]) for n in range(9)]


async def test_a_client_through_the_rewriting_proxy_and_its_recording() -> None:
    """The broker advertises an unreachable address, which the proxy must replace."""
    told, file = Told(), io.BytesIO()
    async with Broker(BrokerSettings(advertised_host=NOWHERE)) as broker:
        broker.create_topic("seen", partitions=1)
        proxy = told.proxy(broker.listens_at, ProxySettings(rewrite=True), Recorder(file))
        port = parse_address(broker.listens_at).port
        async with proxy:
            with pytest.MonkeyPatch.context() as patch:
                real = asyncio.open_connection

                async def open_connection(
                    host: str, to_port: int, **more: int
                ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                    return await real("127.0.0.1" if host == NOWHERE else host, to_port, **more)

                patch.setattr(asyncio, "open_connection", open_connection)
                await send_and_read(proxy.listens_at)
    seen = Counter((event.side, event.api) for event in told.events)
    for api in ("ApiVersions", "Metadata", "Produce", "Fetch"):
        assert seen[Side.CLIENT, api] >= seen[Side.BROKER, api] > 0
    assert {event.kind for event in told.events} <= {EventKind.MESSAGE, EventKind.UNANSWERED}
    assert any(
        f"broker 1 at {NOWHERE}:{port} is advertised as 127.0.0.1:" in n for n in told.notices
    )
    file.seek(0)
    entries = list(read_recording(file))
    passed = b"".join(event.data for event in told.events)
    assert b"".join(entry.data for entry in entries) == passed
    opened = {entry.connection for entry in entries if entry.client}
    assert opened == {entry.connection for entry in entries if entry.closed}
    assert len(opened) >= 2  # one to the bootstrap address, one to the broker's own port


@asynccontextmanager
async def target(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Yields the address of a server that runs `answer` for each of its connections."""
    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.transport.abort() if tears else writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.create_task(serve(reader, writer)))

    tears = False
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        tears = True
        server.close()
        for task in served:
            task.cancel()
        await asyncio.gather(*served, return_exceptions=True)
        for _ in range(3):
            await asyncio.sleep(0)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
        await writer.drain()


REQUEST = ClientConnection("me").send(MetadataRequest(topics=[]), 12)[1]
UNANSWERED = ClientConnection("me").send(ProduceRequest(acks=0), 9)[1]

PASSED = {
    "a request": REQUEST,
    "no answer wanted": UNANSWERED,
    "bytes after the body": frame(REQUEST[4:], b"\0\0\0"),
    "no definition has this api key or version": frame(b"\x70\0\0\1\0\0\0\1\xff\xff..."),
    "broken": frame(REQUEST[4:-1]),
    "empty": frame(b""),
    "no Kafka": b"GET / HTTP/1.1\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    "unfinished": REQUEST[:-5],
}


@pytest.mark.parametrize("rewrite", [False, True])
@pytest.mark.parametrize("name", PASSED)
async def test_any_bytes_pass_as_they_are_and_ends_one_side_at_a_time(
    name: str, rewrite: bool
) -> None:
    """The server returns the client's bytes; the proxy passes them on, valid frames or not."""
    told, sent = Told(), PASSED[name] * 3
    settings = ProxySettings(rewrite=rewrite)
    async with target(echo) as address, told.proxy(address, settings) as proxy:
        reader, writer = await asyncio.open_connection(*parse_address(proxy.listens_at))
        writer.write(sent)
        writer.write_eof()  # the client can still read
        async with asyncio.timeout(20):
            assert await reader.read() == sent
        writer.close()
        await writer.wait_closed()
        await told.until(lambda: "ended by the client" in told.notices)
    passed = b"".join(event.data for event in told.events if event.side is Side.CLIENT)
    assert passed == sent


async def test_a_target_that_is_away_is_told_and_the_client_is_let_go() -> None:
    told = Told()
    async with target(echo) as address:
        pass
    async with told.proxy(address) as proxy:
        reader, writer = await asyncio.open_connection(*parse_address(proxy.listens_at))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        await told.until(lambda: len(told.notices) == 2)
    assert f"{address}: cannot be reached: " in told.notices[1]


async def test_one_who_does_not_take_what_comes_holds_the_other_back() -> None:
    held = asyncio.Event()
    sent = 0

    async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.transport.set_write_buffer_limits(0)
        while True:
            writer.write(b"\xff" * 1_000_000)
            try:
                async with asyncio.timeout(0.3):
                    await writer.drain()
            except TimeoutError:
                held.set()
                await asyncio.Event().wait()
            sent += 1_000_000

    settings = ProxySettings(max_unsent_bytes=10_000, close_timeout_ms=0)
    async with target(flood) as address, Told().proxy(address, settings) as proxy:
        _, writer = await asyncio.open_connection(*parse_address(proxy.listens_at), limit=1000)
        async with asyncio.timeout(20):
            await held.wait()
        writer.close()
    assert sent < 100_000_000  # only what the kernel buffers hold, not all bytes


async def test_one_that_is_silent_behind_the_end_of_the_other_is_given_up() -> None:
    async def silent(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    told = Told()
    settings = ProxySettings(half_closed_timeout_ms=50)
    async with target(silent) as address, told.proxy(address, settings) as proxy:
        reader, writer = await asyncio.open_connection(*parse_address(proxy.listens_at))
        writer.write_eof()
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()
        await told.until(lambda: len(told.notices) == 2)
    assert told.notices[1].startswith("closed: the client closed its half")


async def test_clients_beyond_the_bound_are_refused() -> None:
    told = Told()
    settings = ProxySettings(max_connections=1)
    async with target(echo) as address, told.proxy(address, settings) as proxy:
        where = parse_address(proxy.listens_at)
        _, first = await asyncio.open_connection(*where)
        await told.until(lambda: len(told.notices) == 1)
        reader, second = await asyncio.open_connection(*where)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        for writer in (first, second):
            writer.close()
    assert "a client was refused: 1 are connected (max_connections)" in told.notices


async def test_a_proxy_ends_with_clients_connected() -> None:
    told = Told()
    async with target(echo) as address:
        async with told.proxy(address) as proxy:
            reader, writer = await asyncio.open_connection(*parse_address(proxy.listens_at))
            await told.until(lambda: len(told.notices) == 1)
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()
    assert told.notices[1:] == ["the proxy ended"]


class Cluster:
    """A server whose Metadata responses list the brokers that a test sets."""

    def __init__(self) -> None:
        self.brokers: list[tuple[int, str, int]] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = ServerConnection()
        while size := await reader.read(4):
            request = server.receive(await reader.readexactly(int.from_bytes(size, "big")))
            named = [MetadataResponseBroker(node_id=i, host=h, port=p) for i, h, p in self.brokers]
            writer.write(server.send(request, MetadataResponse(brokers=named)))


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[int, int]:
    """Sends a Metadata request; returns the port of each broker in the response, by broker id."""
    client = ClientConnection("me")
    writer.write(client.send(MetadataRequest(topics=[]), 12)[1])
    async with asyncio.timeout(20):
        size = int.from_bytes(await reader.readexactly(4), "big")
        message = client.receive(await reader.readexactly(size)).message
    assert isinstance(message, MetadataResponse)
    return {broker.node_id: broker.port for broker in message.brokers}


async def test_brokers_keep_their_ports_when_they_move_and_are_met_where_they_are() -> None:
    told, cluster = Told(), Cluster()
    async with target(cluster.answer) as bootstrap, target(echo) as first, target(echo) as other:
        cluster.brokers = [(1, *parse_address(first)), (2, *parse_address(other))]
        with socket.create_server(("127.0.0.1", 0)) as taken:
            begin = taken.getsockname()[1]
            settings = ProxySettings(rewrite=True, first_broker_port=begin, max_brokers=2)
            async with told.proxy(bootstrap, settings) as proxy:
                opened = await asyncio.open_connection(*parse_address(proxy.listens_at))
                ports = await ask(*opened)
                assert set(ports) == {1, 2}
                assert begin < ports[1] < ports[2]
                cluster.brokers[0] = (1, *parse_address(other))
                cluster.brokers.append((3, "192.0.2.9", 9))  # one more than max_brokers
                assert await ask(*opened) == ports | {3: 9}
                reader, writer = await asyncio.open_connection("127.0.0.1", ports[1])
                writer.write(frame(b"hello"))
                async with asyncio.timeout(20):
                    assert await reader.readexactly(9) == frame(b"hello")
                for each in (writer, opened[1]):
                    each.close()
    assert f"broker 1 has moved to {other}" in told.notices
    assert "no port for 192.0.2.9:9 was opened (max_brokers)" in told.notices
    assert sum(f"connected, to {other}" in notice for notice in told.notices) == 1


async def test_addresses_of_version_6() -> None:
    async with target(echo) as address:
        try:
            proxy = await Proxy("[::1]:0", address).__aenter__()
        except BrokerConnectionError:
            pytest.skip("this machine has no IPv6")
        assert proxy.listens_at.startswith("[::1]:")
        await proxy.__aexit__(None, None, None)


async def test_a_taken_address_and_wrong_ones() -> None:
    async with target(echo) as address:
        with pytest.raises(BrokerConnectionError, match="cannot listen"):
            async with Proxy(address, address):
                pass
    with pytest.raises(ConfigurationError, match="'x' is no address"):
        Proxy("x", "y:1")
    with pytest.raises(ConfigurationError, match="advertised_host"):
        Proxy("0.0.0.0:0", "y:1", ProxySettings(rewrite=True))
    with pytest.raises(ConfigurationError, match="does not listen"):
        _ = Proxy(LOCAL, "y:1").listens_at


@pytest.mark.parametrize("turns", range(8))
async def test_unanswered_requests_are_reported_when_the_proxy_ends(turns: int) -> None:
    """The proxy ends before, with or after the connection, depending on `turns`."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    told = Told()
    async with target(hang_up) as address, told.proxy(address) as proxy:
        host, port = parse_address(proxy.listens_at)
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(ClientConnection("me").send(MetadataRequest(), 9)[1])
        assert await reader.read() == b""
        writer.close()
        for _ in range(turns):
            await asyncio.sleep(0)
    assert [event.kind for event in told.events] == [EventKind.MESSAGE, EventKind.UNANSWERED]
