"""One connection against peers good and bad: one clear error each, and nothing waits for ever."""

from __future__ import annotations

import asyncio
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
    """Somebody who listens, and does with each connection what `talk` says."""
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
    with pytest.raises(KprotoError) as told:
        await BrokerConnection.open(address, settings)
    assert str(address) in str(told.value), "the error says where"
    return told.value


# --- Agreeing on versions ---


async def test_it_agrees_and_asks() -> None:
    async with ScriptedBroker({"t": 1}) as broker, connected(broker) as connection:
        assert connection.usable
        answer = await connection.request(MetadataRequest(topics=[]))
        assert answer.cluster_id == "scripted"
        asked = [(received.name, received.version) for received in broker.asked]
        assert asked == [("ApiVersionsRequest", 5), ("MetadataRequest", 13)]
        assert {received.client_id for received in broker.asked} == {"kproto"}
    assert not connection.usable


async def test_it_names_itself() -> None:
    async with ScriptedBroker() as broker, connected(broker):
        request = broker.asked[0].message
        assert isinstance(request, ApiVersionsRequest)
        assert request.client_software_name == "kproto"
        import kproto

        assert request.client_software_version == kproto.__version__


# The first is what Apache Kafka 3.9.2 answers to ApiVersions v5, behind its correlation id.
@pytest.mark.parametrize(
    ("refusal", "again"),
    [("002300000001001200000004", 4), ("0023" + "0000000100120000" + "0002", 2), ("0023", 0)],
)
async def test_it_asks_again_in_a_version_that_the_broker_has(refusal: str, again: int) -> None:
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


async def test_a_broker_that_refuses_every_version() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = lambda asked: frame(
            asked.correlation_id.to_bytes(4, "big") + bytes.fromhex("002300000000")
        )
        error = await refused(Address("127.0.0.1", broker.port))
        assert isinstance(error, ProtocolError)
        assert "ApiVersions v0 was answered with error code 35" in str(error)
        assert broker.count(ApiVersionsRequest) == 2


async def test_a_broker_that_does_not_take_this_client() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = lambda asked: ApiVersionsResponse(error_code=42)
        error = await refused(Address("127.0.0.1", broker.port))
        assert "error code 42; the broker does not take this client" in str(error)


# --- Peers that are no brokers ---


async def test_a_closed_port() -> None:
    async with peer(lambda reader, writer: asyncio.sleep(0)) as address:
        pass
    error = await refused(address)
    assert isinstance(error, BrokerConnectionError)
    assert isinstance(error, ConnectionError)
    assert "cannot connect" in str(error)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "two..dots", "x" * 64, "nul\0l"])
async def test_a_host_that_is_none(host: str) -> None:
    error = await refused(Address(host, 9092))
    assert isinstance(error, BrokerConnectionError)
    assert "cannot connect" in str(error)


async def test_an_http_server() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)
    assert "look like HTTP" in str(error)


async def test_a_server_that_greets() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


async def test_a_server_that_says_nothing() -> None:
    async with peer(lambda reader, writer: asyncio.sleep(60)) as address:
        error = await refused(address, ClientSettings(connect_timeout_ms=100))
    assert isinstance(error, RequestTimeoutError)
    assert isinstance(error, TimeoutError)
    assert "100 ms (connect_timeout_ms)" in str(error)


@pytest.mark.parametrize("said", [b"", b"\x00\x00", frame(bytes(100))[:50]], ids=len)
async def test_a_server_that_hangs_up_in_the_middle(said: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, BrokerConnectionError)
    assert "the broker closed the connection" in str(error) or "lost" in str(error)
    if said:
        assert f"{len(said)} bytes into a response" in str(error)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x00", b"\x00\x00\x00\x07\x00\x00", bytes(4) + b"\x00\x00\xff\xff"],
    ids=len,
)
async def test_a_server_that_answers_nonsense(content: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(frame(content))
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


async def test_a_server_that_talks_first() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(bytes(6)) * 3)
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


async def test_a_server_that_says_more_than_it_was_asked() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        answer = bytes(4) + api_versions().encode(5)  # of the first correlation id
        writer.write(frame(answer) + frame(bytes(6)))
        await reader.read()

    async with peer(talk) as address:
        error = await refused(address)
    assert isinstance(error, ProtocolError)


# --- Requests, one after the other and at once ---


async def test_each_request_gets_its_own_answer() -> None:
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


async def test_no_more_requests_than_allowed_are_under_way() -> None:
    settings = ClientSettings(max_in_flight=3)
    seen = []
    async with ScriptedBroker() as broker, connected(broker, settings) as connection:

        async def answer(asked: Any) -> MetadataResponse:
            await asyncio.sleep(0.001)
            seen.append(len(connection._waiting))
            return MetadataResponse()

        broker.answers[MetadataRequest] = answer
        await asyncio.gather(*(connection.request(MetadataRequest()) for _ in range(20)))
    assert len(seen) == 20
    assert max(seen) == 3


async def test_waiting_for_a_turn_is_no_time_out() -> None:
    """Twenty answers of 50 ms each take longer than the time that one request has."""
    settings = ClientSettings(max_in_flight=2, request_timeout_ms=400)

    async def answer(asked: Any) -> MetadataResponse:
        await asyncio.sleep(0.05)
        return MetadataResponse()

    async with ScriptedBroker() as broker, connected(broker, settings) as connection:
        broker.answers[MetadataRequest] = answer
        await asyncio.gather(*(connection.request(MetadataRequest()) for _ in range(20)))
        assert connection.usable


async def test_a_request_that_times_out_gives_the_connection_up() -> None:
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


async def test_a_peer_that_does_not_read_is_taken_for_lost() -> None:
    agreed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.read(65_536))[8:12]
        writer.write(frame(head, api_versions().encode(5)))
        agreed.set()
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a read transport too
        await asyncio.sleep(60)

    settings = ClientSettings(request_timeout_ms=300)
    async with peer(talk) as address:
        connection = await BrokerConnection.open(address, settings)
        await agreed.wait()
        request = ProduceRequest(acks=0, transactional_id="x" * 30_000)

        async def flood() -> None:
            while True:
                await connection.send_only(request)
                await asyncio.sleep(0)

        with pytest.raises(RequestTimeoutError, match="could not be sent in 300 ms"):
            await flood()
        assert not connection.usable
        await connection.close()


async def test_a_produce_without_acks_is_sent_and_not_waited_for() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[ProduceRequest] = lambda asked: None
        with pytest.raises(ConfigurationError, match="no broker answers this ProduceRequest v13"):
            await connection.request(ProduceRequest(acks=0))
        await connection.send_only(ProduceRequest(acks=0))
        await connection.request(MetadataRequest())
        assert broker.count(ProduceRequest) == 1


async def test_what_a_version_cannot_express_is_refused() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        with pytest.raises(EncodeError, match="topics"):
            await connection.request(MetadataRequest(topics=None), version=0)
        with pytest.raises(EncodeError, match="version 99 is not one of"):
            await connection.request(MetadataRequest(), version=99)
        await connection.request(MetadataRequest())
        assert broker.count(MetadataRequest) == 1


async def test_an_api_that_the_broker_lacks() -> None:
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


# --- Responses that are wrong ---


def with_head(asked: Any, body: bytes) -> bytes:
    return frame(asked.correlation_id.to_bytes(4, "big") + b"\x00", body)


async def test_a_body_that_is_garbage_costs_one_request() -> None:
    async with ScriptedBroker({"t": 1}) as broker, connected(broker) as connection:
        broker.answers[FetchRequest] = lambda asked: with_head(asked, b"\xff" * 40)
        with pytest.raises(DecodeError, match="FetchResponse v18"):
            await connection.request(FetchRequest())
        assert connection.usable
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"


async def test_another_correlation_id_ends_the_connection() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = lambda asked: frame(
            b"\x00\x00\x03\xe7\x00", MetadataResponse().encode(13)
        )
        with pytest.raises(ProtocolError, match="correlation id 999 where 1 must come next"):
            await connection.request(MetadataRequest())
        assert not connection.usable


async def test_a_frame_over_the_bound_ends_the_connection() -> None:
    settings = ClientSettings(max_frame_bytes=10_000)
    async with ScriptedBroker() as broker, connected(broker, settings) as connection:
        broker.answers[MetadataRequest] = lambda asked: b"\x00\x00\x27\x11"
        with pytest.raises(ProtocolError, match=r"10001 bytes and at most 10000 .*max_frame_bytes"):
            await connection.request(MetadataRequest())
        assert not connection.usable


async def test_a_response_cut_off_by_the_end_of_the_connection() -> None:
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


async def test_every_request_under_way_is_told_of_the_loss() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = lambda asked: None
        asking = [asyncio.create_task(connection.request(MetadataRequest())) for _ in range(5)]
        await broker.until(lambda: broker.count(MetadataRequest) == 5)
        broker.hang_up()
        errors = await asyncio.gather(*asking, return_exceptions=True)
        assert all(isinstance(error, BrokerConnectionError) for error in errors)
        assert len({id(error) for error in errors}) == 5, "each has an error of its own"


# --- Cancelling and closing ---


async def test_a_cancelled_request_leaves_the_others_alone() -> None:
    release = asyncio.Event()

    async def answer(asked: Any) -> MetadataResponse:
        await release.wait()
        return MetadataResponse(cluster_id=str(asked.correlation_id))

    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = answer
        first = asyncio.create_task(connection.request(MetadataRequest()))
        second = asyncio.create_task(connection.request(MetadataRequest()))
        await broker.until(lambda: broker.count(MetadataRequest) == 1)
        await broker.until(lambda: len(connection._waiting) == 2)
        first.cancel()
        release.set()
        assert (await second).cluster_id == "2"
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_a_cancelled_open_leaves_nothing() -> None:
    async with peer(lambda reader, writer: asyncio.sleep(60)) as address:
        for wait in (0, 0.001, 0.02):
            opening = asyncio.create_task(BrokerConnection.open(address, QUICK))
            await asyncio.sleep(wait)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening


async def test_closing_tells_who_waits_and_is_complete() -> None:
    async with ScriptedBroker() as broker, connected(broker) as connection:
        broker.answers[MetadataRequest] = lambda asked: None
        asking = asyncio.create_task(connection.request(MetadataRequest()))
        await broker.until(lambda: broker.count(MetadataRequest) == 1)
        await connection.close()
        with pytest.raises(BrokerConnectionError, match="the connection was closed"):
            await asking
        await connection.close()
        with pytest.raises(BrokerConnectionError, match="the connection was closed"):
            await connection.request(MetadataRequest())
        await broker.until(lambda: not broker.writers)


async def test_a_size_that_a_broker_announces_takes_no_memory() -> None:
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
    assert taken < 15_000_000, "some 64 KiB a connection, and as much for the peer's"
