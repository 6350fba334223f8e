"""Tests TLS over real sockets: each fault raises its own error at once."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trustme

from kproto import Tls
from kproto.messages import (
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from kproto.wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
)
from tests.unit.client.network.secured import (
    CA,
    GOOD,
    OTHER_CA,
    TRUSTING,
    connected,
    quickly,
    refused,
    who,
)
from tests.unit.client.secured_broker import (
    SecuredBroker,
    client_ca,
    server_tls,
)

# --- TLS ---


async def test_client_connects_with_tls() -> None:
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:
        answer = await connection.request(MetadataRequest(topics=[]))
    assert answer.cluster_id == "scripted"


async def test_users_own_context_is_used() -> None:
    context = ssl.create_default_context(cadata=client_ca(CA))
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=context) as connection:
        assert connection.usable


@pytest.mark.parametrize("size", [1, 65_530, 65_536, 3_000_000, 9_000_001])
async def test_large_responses_pass_through_tls(size: int) -> None:
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:
        broker.answers[MetadataRequest] = lambda asked: MetadataResponse(cluster_id="x" * 9)
        broker.answers[FetchRequest] = lambda asked: large(size)
        found, small = await asyncio.gather(
            connection.request(FetchRequest()), connection.request(MetadataRequest())
        )
    assert found.responses[0].partitions[0].records == bytes(range(250)) * (size // 250 + 1)
    assert small.cluster_id == "x" * 9


def large(size: int) -> FetchResponse:
    from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData

    data = bytes(range(250)) * (size // 250 + 1)
    part = PartitionData(partition_index=0, high_watermark=0, records=data)
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[part])])


async def test_large_requests_pass_through_tls() -> None:
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:
        await connection.send_only(ProduceRequest(acks=0, transactional_id="x" * 32_000))
        broker.answers[ProduceRequest] = lambda asked: None
        for _ in range(200):
            await connection.send_only(ProduceRequest(acks=0, transactional_id="x" * 32_000))
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"
        assert broker.count(ProduceRequest) == 201


async def test_requests_of_one_loop_turn_are_one_tls_write() -> None:
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:
        queue = connection._write_queue
        transport: Any = queue._transport
        writes: list[int] = []

        class Counting:
            """Counts the writes to a transport; `write` of uvloop's transport is read-only."""

            def __getattr__(self, name: str) -> Any:
                return getattr(transport, name)

            def write(self, data: Any) -> None:
                writes.append(len(data))
                transport.write(data)

        queue._transport = cast(asyncio.Transport, Counting())
        await asyncio.gather(*(connection.request(MetadataRequest()) for _ in range(10)))
        assert len(writes) == 1
        words: list[Any] = []
        assert connection.try_send(MetadataRequest(), version=9, callback=words.append)
        assert len(writes) == 2, "a posted request is written in its own loop turn"
        await broker.until(lambda: bool(words))


@pytest.mark.parametrize("half", [False, True])
async def test_broker_that_closes_tls_fails_the_request(half: bool) -> None:
    """The broker closes before or within its response; the request fails at once."""
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:

        async def answer(asked: Any) -> Any:
            (writer,) = broker.writers
            if half:
                writer.write(b"\x00\x00\x00\x64" + bytes(20))
            writer.close()
            await asyncio.sleep(0)

        broker.answers[MetadataRequest] = answer
        with pytest.raises(
            BrokerConnectionError, match="the broker closed the connection"
        ) as words:
            await connection.request(MetadataRequest())
        assert ("24 bytes into a response" in str(words.value)) == half
        assert not connection.usable


def expired() -> ssl.SSLContext:
    long_ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    return server_tls(CA, issued=CA.issue_cert("127.0.0.1", not_after=long_ago))


def self_signed() -> ssl.SSLContext:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    from kproto.security.tls import load_identity

    load_identity(context, pem, None, None)
    return context


def wrong_host() -> ssl.SSLContext:
    return server_tls(CA, "b1.example.com")


def unknown_ca() -> ssl.SSLContext:
    return server_tls(OTHER_CA, "127.0.0.1")


def wants_certificate() -> ssl.SSLContext:
    return server_tls(CA, "127.0.0.1", client_ca=CA)


def old_tls() -> ssl.SSLContext:
    context = server_tls(CA, "127.0.0.1")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def shown_by(ca: trustme.CA) -> Tls:
    mine = ca.issue_cert("me")
    chain = mine.cert_chain_pems[0].bytes()
    return Tls(ca=client_ca(CA), certificate=chain, key=mine.private_key_pem.bytes())


def new_tls_alone() -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=client_ca(CA))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


@pytest.mark.parametrize(
    ("server", "client", "words"),
    [
        (expired, TRUSTING, "the broker's certificate has expired"),
        (self_signed, TRUSTING, "certificate is self-signed, and not trusted; .* tls=Tls.ca="),
        (wrong_host, TRUSTING, "is for another address than '127.0.0.1'; .*server_name="),
        (
            wrong_host,
            Tls(ca=client_ca(CA), server_name="b2.example.com"),
            "is for another name than 'b2.example.com'",
        ),
        (unknown_ca, TRUSTING, "comes from a CA that is not known; tls=Tls.ca="),
        (unknown_ca, True, "comes from a CA that is not known; tls=Tls.ca="),
        (wants_certificate, TRUSTING, "requires a client's certificate, and none is set"),
        (wants_certificate, shown_by(OTHER_CA), "not trust the CA of the client's certificate"),
        (old_tls, new_tls_alone(), "it supports no version of TLS that this client accepts"),
        (None, TRUSTING, "the listener does not speak TLS; connect with tls=False"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_tls_fault_raises_a_specific_error(server: Any, client: Any, words: str) -> None:
    if server is None:
        async with answering(b"\x00\x00\x00\x0a" + bytes(10)) as broker:
            error = await refused(broker, tls=client)
    else:
        async with sending_alerts(server()) as broker:
            error = await refused(broker, tls=client)
    assert isinstance(error, AuthenticationError), error
    assert re.search(words, str(error))


@asynccontextmanager
async def sending_alerts(context: ssl.SSLContext) -> AsyncIterator[Any]:
    """Yields a listener for one connection, in a thread.

    Asyncio's own listener sends no TLS alerts.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        connection.settimeout(60)
        with context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        ) as secured:
            try:
                secured.do_handshake()
                secured.recv(1)
            except OSError:
                # If bytes stay unread, the system resets the connection and drops the alert.
                with contextlib.suppress(OSError):
                    secured.shutdown(socket.SHUT_WR)
                    while secured.recv(4_096):
                        pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield SimpleNamespace(port=listener.getsockname()[1])
    finally:
        await asyncio.to_thread(thread.join)  # the event loop closes the client's socket meanwhile
        listener.close()


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[Any]:
    """Yields a listener that answers any bytes with `answer`, and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield SimpleNamespace(port=server.sockets[0].getsockname()[1])


async def test_server_name_replaces_the_address() -> None:
    tls = Tls(ca=client_ca(CA), server_name="b1.example.com")
    async with SecuredBroker(tls=wrong_host()) as broker, connected(broker, tls=tls) as connection:
        assert connection.usable


@pytest.mark.parametrize("tls", [Tls(verify=False), Tls(ca=client_ca(CA), check_hostname=False)])
async def test_disabled_checks_accept_another_host(tls: Tls) -> None:
    async with SecuredBroker(tls=wrong_host()) as broker, connected(broker, tls=tls) as connection:
        assert connection.usable


async def test_client_certificate_is_sent() -> None:
    async with (
        SecuredBroker(tls=wants_certificate()) as broker,
        connected(broker, tls=shown_by(CA)) as connection,
    ):
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"


async def test_server_name_indication_is_sent() -> None:
    requested: list[str | None] = []
    context = server_tls(CA, "localhost")
    context.sni_callback = lambda _socket, name, _context: requested.append(name)
    async with (
        SecuredBroker(tls=context) as broker,
        connected(broker, host="localhost", tls=TRUSTING),
    ):
        assert requested == ["localhost"]


async def test_renewed_certificate_is_loaded_for_the_next_connection(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(client_ca(OTHER_CA))
    async with (
        SecuredBroker(tls=GOOD) as broker,
        quickly(broker, tls=Tls(ca=path)) as client,
    ):
        with pytest.raises(AuthenticationError, match="CA that is not known"):
            await client.refresh([])
        path.write_text(client_ca(CA) + "\n")
        await client.refresh([])


# --- Listeners of another protocol ---


async def test_tls_to_a_plaintext_listener_is_explained() -> None:
    async with answering(b"") as broker:
        error = await refused(broker, tls=TRUSTING)
    assert isinstance(error, BrokerConnectionError)
    assert "is this a listener with TLS?" in str(error)


#: The alert with which Kafka's TLS listener answers bytes that are not TLS.
ALERT = bytes.fromhex("15030300020250")


async def test_plaintext_to_a_tls_listener_is_explained() -> None:
    async with answering(ALERT) as broker:
        error = await refused(broker)
    assert isinstance(error, AuthenticationError)
    assert "the listener speaks TLS; connect with tls=True" in str(error)


async def test_plaintext_to_a_tls_listener_that_closes_is_explained() -> None:
    async with SecuredBroker(tls=GOOD) as broker:
        error = await refused(broker)
    assert isinstance(error, BrokerConnectionError)
    assert "does this listener require TLS (tls=True)?" in str(error)


async def test_missing_sasl_is_explained() -> None:
    async with SecuredBroker(mechanisms=("PLAIN",)) as broker, connected(broker) as connection:
        with pytest.raises(BrokerConnectionError, match="does this listener require SASL"):
            await connection.request(MetadataRequest())


async def test_sasl_to_a_listener_without_sasl_is_explained() -> None:
    async with SecuredBroker() as broker:
        error = await refused(broker, sasl=who("SCRAM-SHA-256"))
    assert isinstance(error, AuthenticationError)
    assert "has no SASL; connect without sasl" in str(error)


async def test_loss_of_a_working_connection_has_no_further_explanation() -> None:
    async with SecuredBroker() as broker, connected(broker) as connection:
        await connection.request(MetadataRequest())
        broker.answers[MetadataRequest] = lambda asked: "hang up"
        with pytest.raises(BrokerConnectionError, match=r"closed the connection$"):
            await connection.request(MetadataRequest())
