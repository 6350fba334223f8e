"""Tests one connection to correct and faulty servers; each fault raises its own error."""

from __future__ import annotations

import asyncio
import socket
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.client import ClientSettings
from kproto.client.network.connection import BrokerConnection
from kproto.client.settings import Address
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from kproto.protocol.framing import frame
from kproto.wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    DecodeError,
    EncodeError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, api_versions

QUICK = ClientSettings(connect_timeout_ms=2_000, request_timeout_ms=2_000)


@asynccontextmanager
async def connected(
    broker: ScriptedBroker, settings: ClientSettings = QUICK
) -> AsyncIterator[BrokerConnection]:
    connection = await BrokerConnection.open(Address("127.0.0.1", broker.port), settings)
    try:
        yield connection
    finally:
        await connection.close()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def peer(talk: Talk) -> AsyncIterator[Address]:
    """Yields the address of a server that runs `talk` for each connection."""
    served: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def serve() -> None:
            try:
                await talk(reader, writer)
            except ConnectionError:
                pass
            finally:
                writer.transport.abort()

        served.add(asyncio.create_task(serve()))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in served:
            task.cancel()
        await asyncio.gather(*served, return_exceptions=True)
        await server.wait_closed()


async def refused(address: Address, settings: ClientSettings = QUICK) -> KprotoError:
    with pytest.raises(KprotoError) as raised:
        await BrokerConnection.open(address, settings)
    assert str(address) in str(raised.value), "the error has the address"
    return raised.value


# --- Version negotiation ---


async def test_connection_negotiates_versions_and_sends_requests() -> None:
    async with ScriptedBroker({"t": 1}) as broker, connected(broker) as connection:
        assert connection.usable
        answer = await connection.request(MetadataRequest(topics=[]))
        assert answer.cluster_id == "scripted"
        sent = [(received.name, received.version) for received in broker.asked]
        assert sent == [("ApiVersionsRequest", 5), ("MetadataRequest", 13)]
        assert {received.client_id for received in broker.asked} == {"kproto"}
    assert not connection.usable


async def test_client_software_is_sent() -> None:
    async with ScriptedBroker() as broker, connected(broker):
        request = broker.asked[0].message
        assert isinstance(request, ApiVersionsRequest)
        assert request.client_software_name == "kproto"
        import kproto

        assert request.client_software_version == kproto.__version__


# The first refusal is the answer of Apache Kafka 3.9.2 to ApiVersions v5, after its correlation id.
@pytest.mark.parametrize(
    ("refusal", "again"),
    [("002300000001001200000004", 4), ("0023" + "0000000100120000" + "0002", 2), ("0023", 0)],
)
async def test_apiversions_is_repeated_in_a_supported_version(refusal: str, again: int) -> None:
    def answer(asked: Any) -> Any:
        if asked.version == 5:
            head = asked.correlation_id.to_bytes(4, "big")
            return frame(head + bytes.fromhex(refusal))
        return api_versions()

    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = answer
        async with connected(broker) as connection:
            assert [asked.version for asked in broker.asked] == [5, again]
            assert connection.version_of(MetadataRequest) == 13


async def test_broker_that_refuses_every_version_is_an_error() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = lambda asked: frame(
            asked.correlation_id.to_bytes(4, "big") + bytes.fromhex("002300000000")
        )
        error = await refused(Address("127.0.0.1", broker.port))
        assert isinstance(error, ProtocolError)
        assert "ApiVersions v0 was answered with error code 35" in str(error)
        assert broker.count(ApiVersionsRequest) == 2


async def test_broker_that_refuses_this_client_is_an_error() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = lambda asked: ApiVersionsResponse(error_code=42)
        error = await refused(Address("127.0.0.1", broker.port))
        assert "error code 42; the broker does not accept this client" in str(error)


# --- Peers that are no Kafka brokers ---


async def test_closed_port_is_an_error() -> None:
    async with peer(lambda reader, writer: asyncio.sleep(0)) as address:
        pass
    error = await refused(address)
    assert isinstance(error, BrokerConnectionError)
    assert isinstance(error, ConnectionError)
    assert "cannot connect" in str(error)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "two..dots", "x" * 64, "nul\0l"])
async def test_invalid_host_is_an_error(host: str) -> None:
    error = await refused(Address(host, 9092))
    assert isinstance(error, BrokerConnectionError)
    assert "cannot connect" in str(error)


async def test_http_server_is_recognized() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)
    assert "look like HTTP" in str(error)


async def test_server_with_a_greeting_is_an_error() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


async def test_silent_server_times_out() -> None:
    async with peer(lambda reader, writer: asyncio.sleep(60)) as address:
        error = await refused(address, ClientSettings(connect_timeout_ms=100))
    assert isinstance(error, RequestTimeoutError)
    assert isinstance(error, TimeoutError)
    assert "100 ms (connect_timeout_ms)" in str(error)


@pytest.mark.parametrize("sent_bytes", [b"", b"\x00\x00", frame(bytes(100))[:50]], ids=len)
async def test_server_that_closes_within_a_response_is_an_error(sent_bytes: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(sent_bytes)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, BrokerConnectionError)
    assert "the broker closed the connection" in str(error) or "lost" in str(error)
    if sent_bytes:
        assert f"{len(sent_bytes)} bytes into a response" in str(error)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x00", b"\x00\x00\x00\x07\x00\x00", bytes(4) + b"\x00\x00\xff\xff"],
    ids=len,
)
async def test_malformed_response_is_an_error(content: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(frame(content))
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


async def test_response_before_any_request_is_an_error() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(bytes(6)) * 3)
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


async def test_surplus_response_is_an_error() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        answer = bytes(4) + api_versions().encode(5)  # for the first correlation id
        writer.write(frame(answer) + frame(bytes(6)))
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


# --- Requests, in sequence and concurrent ---


async def test_each_request_gets_its_own_response() -> None:
    def answer(asked: Any) -> MetadataResponse:
        return MetadataResponse(cluster_id=asked.message.topics[0].name)

    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = answer

        async def ask(number: int) -> str | None:
            from kproto.messages.metadata_request import MetadataRequestTopic

            topic = MetadataRequestTopic(name=f"t{number}")
            return (await connection.request(MetadataRequest(topics=[topic]))).cluster_id

        found = await asyncio.gather(*(ask(number) for number in range(500)))
    assert found == [f"t{number}" for number in range(500)]


async def test_requests_in_flight_are_limited() -> None:
    settings = ClientSettings(max_in_flight=3)
    seen = []
    async with ScriptedBroker() as broker, connected(broker, settings) as connection:

        async def answer(asked: Any) -> MetadataResponse:
            await asyncio.sleep(0.001)
            seen.append(connection.in_flight)
            return MetadataResponse()

        broker.answers[MetadataRequest] = answer
        await asyncio.gather(*(connection.request(MetadataRequest()) for _ in range(20)))
    assert len(seen) == 20
    assert max(seen) == 3


@pytest.mark.slow
async def test_queued_request_does_not_time_out() -> None:
    """The responses take 50 ms each: together they take longer than the timeout of one request."""
    settings = ClientSettings(max_in_flight=2, request_timeout_ms=400)

    async def answer(asked: Any) -> MetadataResponse:
        await asyncio.sleep(0.05)
        return MetadataResponse()

    async with ScriptedBroker() as broker, connected(broker, settings) as connection:
        broker.answers[MetadataRequest] = answer
        await asyncio.gather(*(connection.request(MetadataRequest()) for _ in range(20)))
        assert connection.usable


async def test_request_timeout_closes_the_connection() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = lambda asked: None
        first = asyncio.create_task(connection.request(MetadataRequest(), timeout_ms=100))
        second = asyncio.create_task(connection.request(MetadataRequest(), timeout_ms=60_000))
        with pytest.raises(
            RequestTimeoutError, match="MetadataRequest v13 was not answered in 100 ms"
        ):
            await first
        with pytest.raises(BrokerConnectionError, match="because another request timed out"):
            await second
        assert not connection.usable
        with pytest.raises(BrokerConnectionError):
            await connection.request(MetadataRequest())


async def test_peer_that_does_not_read_times_out() -> None:
    negotiated = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.read(65_536))[8:12]
        writer.write(frame(head, api_versions().encode(5)))
        negotiated.set()
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # the transport supports reading, too
        await asyncio.sleep(60)

    settings = ClientSettings(request_timeout_ms=300)
    async with peer(talk) as address:
        connection = await BrokerConnection.open(address, settings)
        await negotiated.wait()
        request = ProduceRequest(acks=0, transactional_id="x" * 30_000)

        async def flood() -> None:
            while True:
                await connection.send_only(request)
                await asyncio.sleep(0)

        with pytest.raises(RequestTimeoutError, match="could not be sent in 300 ms"):
            await flood()
        assert not connection.usable
        await connection.close()


async def test_produce_without_acks_awaits_no_response() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[ProduceRequest] = lambda asked: None
        with pytest.raises(ConfigurationError, match="no broker answers this ProduceRequest v13"):
            await connection.request(ProduceRequest(acks=0))
        await connection.send_only(ProduceRequest(acks=0))
        await connection.request(MetadataRequest())
        assert broker.count(ProduceRequest) == 1


async def test_request_that_its_version_cannot_express_is_refused() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        with pytest.raises(EncodeError, match="topics"):
            await connection.request(MetadataRequest(topics=None), version=0)
        with pytest.raises(EncodeError, match="version 99 is not one of"):
            await connection.request(MetadataRequest(), version=99)
        await connection.request(MetadataRequest())
        assert broker.count(MetadataRequest) == 1


async def test_missing_api_is_an_error() -> None:
    def answer(asked: Any) -> ApiVersionsResponse:
        found = api_versions()
        for key in found.api_keys.find_all(api_key=CreateTopicsRequest.API_KEY):
            found.api_keys.remove(key)
        return found

    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = answer
        async with connected(broker) as connection:
            with pytest.raises(UnsupportedVersionError, match="CreateTopicsRequest"):
                await connection.request(CreateTopicsRequest())


# --- Wrong responses ---


def with_head(asked: Any, body: bytes) -> bytes:
    return frame(asked.correlation_id.to_bytes(4, "big") + b"\x00", body)


async def test_malformed_body_fails_only_its_request() -> None:
    async with ScriptedBroker({"t": 1}) as broker, connected(broker) as connection:
        broker.answers[FetchRequest] = lambda asked: with_head(asked, b"\xff" * 40)
        with pytest.raises(DecodeError, match="FetchResponse v18"):
            await connection.request(FetchRequest())
        assert connection.usable
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"


async def test_wrong_correlation_id_closes_the_connection() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = lambda asked: frame(
            b"\x00\x00\x03\xe7\x00", MetadataResponse().encode(13)
        )
        with pytest.raises(ProtocolError, match="correlation id 999, but 1 must come next"):
            await connection.request(MetadataRequest())
        assert not connection.usable


async def test_frame_beyond_the_limit_closes_the_connection() -> None:
    settings = ClientSettings(max_frame_bytes=10_000)
    async with ScriptedBroker() as broker, connected(broker, settings) as connection:
        broker.answers[MetadataRequest] = lambda asked: b"\x00\x00\x27\x11"
        with pytest.raises(ProtocolError, match=r"10001 bytes and at most 10000 .*max_frame_bytes"):
            await connection.request(MetadataRequest())
        assert not connection.usable


async def test_response_cut_off_by_a_closed_connection_is_an_error() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:

        async def cut(asked: Any) -> Any:
            (writer,) = broker.writers
            writer.write(with_head(asked, bytes(100))[:60])
            await writer.drain()
            writer.write_eof()
            await asyncio.sleep(0.05)
            return HANG_UP

        broker.answers[MetadataRequest] = cut
        with pytest.raises(BrokerConnectionError, match="60 bytes into a response"):
            await connection.request(MetadataRequest())


async def test_lost_connection_fails_all_requests_in_flight() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = lambda asked: None
        call = [asyncio.create_task(connection.request(MetadataRequest())) for _ in range(5)]
        await broker.until(lambda: broker.count(MetadataRequest) == 5)
        broker.hang_up()
        errors = await asyncio.gather(*call, return_exceptions=True)
        assert all(isinstance(error, BrokerConnectionError) for error in errors)
        assert len({id(error) for error in errors}) == 5, "each request has its own error"


# --- Cancelling and closing ---


async def test_cancelled_request_does_not_disturb_others() -> None:
    release = asyncio.Event()

    async def answer(asked: Any) -> MetadataResponse:
        await release.wait()
        return MetadataResponse(cluster_id=str(asked.correlation_id))

    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = answer
        first = asyncio.create_task(connection.request(MetadataRequest()))
        second = asyncio.create_task(connection.request(MetadataRequest()))
        await broker.until(lambda: broker.count(MetadataRequest) == 1)
        await broker.until(lambda: connection.in_flight == 2)
        first.cancel()
        release.set()
        assert (await second).cluster_id == "2"
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_cancelled_open_leaves_no_connection() -> None:
    async with peer(lambda reader, writer: asyncio.sleep(60)) as address:
        for wait in (0, 0.001, 0.02):
            opening = asyncio.create_task(BrokerConnection.open(address, QUICK))
            await asyncio.sleep(wait)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening


async def test_cancelled_open_ends_if_the_loop_reports_no_disconnection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """uvloop closes the socket of a cancelled connect without a call of `connection_lost`."""
    attached = asyncio.Event()

    async def attach_as_uvloop(
        protocol: BrokerConnection, connected: socket.socket, *rest: object
    ) -> None:
        protocol.connection_made(ClosedTransport())
        attached.set()
        try:
            await asyncio.Event().wait()
        finally:
            connected.close()

    monkeypatch.setattr("kproto.client.network.connection.attach", attach_as_uvloop)
    async with peer(lambda reader, writer: asyncio.sleep(60)) as address:
        opening = asyncio.create_task(BrokerConnection.open(address, QUICK))
        await attached.wait()
        opening.cancel()
        done, _ = await asyncio.wait({opening}, timeout=10)
        assert done, "the connection waits for the socket that is closed already"
        assert opening.cancelled()


class ClosedTransport(asyncio.Transport):
    """A transport whose `abort` has no effect, because the socket is closed."""

    def abort(self) -> None: ...


async def test_close_fails_pending_requests_and_ends_the_connection() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = lambda asked: None
        call = asyncio.create_task(connection.request(MetadataRequest()))
        await broker.until(lambda: broker.count(MetadataRequest) == 1)
        await connection.close()
        with pytest.raises(BrokerConnectionError, match="the connection was closed"):
            await call
        await connection.close()
        with pytest.raises(BrokerConnectionError, match="the connection was closed"):
            await connection.request(MetadataRequest())
        await broker.until(lambda: not broker.writers)


async def test_announced_frame_size_allocates_no_memory() -> None:
    async def announce(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write((100_000_000).to_bytes(4, "big") + b"x")
        await writer.drain()
        writer.close()

    async def ask(address: Address) -> None:
        with pytest.raises(BrokerConnectionError, match="closed the connection, 5 bytes into"):
            await BrokerConnection.open(address, QUICK)

    async with peer(announce) as address:
        tracemalloc.start()
        try:
            await asyncio.gather(*(ask(address) for _ in range(50)))
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert taken < 15_000_000, "about 64 KiB for each connection, and as much for its peer"
