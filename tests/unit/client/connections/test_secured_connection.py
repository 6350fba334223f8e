"""TLS and SASL over real sockets: each fault is one error that says which it is, at once."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import gc
import logging
import re
import socket
import ssl
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme

import kproto
from kproto import BearerToken, Client, ClientSettings, OAuthBearer, Plain, ScramSha256, Tls
from kproto.client.connections.broker_connection import BrokerConnection
from kproto.client.settings import Address
from kproto.clock import SYSTEM_CLOCK
from kproto.messages import (
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kproto.security.authentication import Authentication
from kproto.testing.clock import ManualClock
from kproto.wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
    RequestTimeoutError,
)
from tests.unit.client.scripted_broker import ScriptedBroker, Stored, quick
from tests.unit.client.secured_broker import (
    SECRET,
    USER,
    SecuredBroker,
    client_ca,
    sasl_of,
    server_tls,
)

CA, OTHER_CA = trustme.CA(), trustme.CA()
TRUSTING = Tls(ca=client_ca(CA))
GOOD = server_tls(CA, "127.0.0.1", "localhost")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def who(mechanism: str, secret: str = SECRET) -> Any:
    if mechanism == "OAUTHBEARER":
        return OAuthBearer(lambda: secret)
    classes = {
        "PLAIN": kproto.Plain,
        "SCRAM-SHA-256": kproto.ScramSha256,
        "SCRAM-SHA-512": kproto.ScramSha512,
    }
    return classes[mechanism](USER, secret)


@asynccontextmanager
async def connected(broker: Any, **settings: Any) -> AsyncIterator[BrokerConnection]:
    address = Address(settings.pop("host", "127.0.0.1"), broker.port)
    clock = settings.pop("clock", SYSTEM_CLOCK)
    limits = {"connect_timeout_ms": 5_000, "request_timeout_ms": 5_000} | settings
    connection = await BrokerConnection.open(address, ClientSettings(**limits), clock)
    try:
        yield connection
    finally:
        await connection.close()


async def refused(broker: Any, **settings: Any) -> KprotoError:
    with pytest.raises(KprotoError) as told:
        async with connected(broker, **settings):
            pass
    text = "".join(traceback.format_exception(told.value))
    assert SECRET not in text
    assert f"127.0.0.1:{broker.port}" in str(told.value), "the error says where"
    return told.value


# --- TLS ---


async def test_tls() -> None:
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:
        answer = await connection.request(MetadataRequest(topics=[]))
    assert answer.cluster_id == "scripted"


async def test_a_context_of_the_users() -> None:
    context = ssl.create_default_context(cadata=client_ca(CA))
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=context) as connection:
        assert connection.usable


@pytest.mark.parametrize("size", [1, 65_530, 65_536, 3_000_000, 9_000_001])
async def test_large_frames_through_tls(size: int) -> None:
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


async def test_large_requests_through_tls() -> None:
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:
        await connection.send_only(ProduceRequest(acks=0, transactional_id="x" * 32_000))
        broker.answers[ProduceRequest] = lambda asked: None
        for _ in range(200):
            await connection.send_only(ProduceRequest(acks=0, transactional_id="x" * 32_000))
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"
        assert broker.count(ProduceRequest) == 201


async def test_requests_of_one_turn_are_one_write_of_tls_too() -> None:
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:
        transport = connection._transport
        assert transport is not None
        writes: list[int] = []
        write = transport.write

        def note(data: Any) -> None:
            writes.append(len(data))
            write(data)

        transport.write = note  # type: ignore[method-assign]  # to see what goes out
        await asyncio.gather(*(connection.request(MetadataRequest()) for _ in range(10)))
        assert len(writes) == 1
        told: list[Any] = []
        assert connection.post(MetadataRequest(), version=9, tell=told.append)
        assert len(writes) == 2, "what is posted goes out in its own turn"
        await broker.until(lambda: bool(told))


@pytest.mark.parametrize("half", [False, True])
async def test_a_broker_that_closes_tls(half: bool) -> None:
    """With the answer cut in the middle, and without; both are told, and nothing waits."""
    async with SecuredBroker(tls=GOOD) as broker, connected(broker, tls=TRUSTING) as connection:

        async def answer(asked: Any) -> Any:
            (writer,) = broker.writers
            if half:
                writer.write(b"\x00\x00\x00\x64" + bytes(20))
            writer.close()
            await asyncio.sleep(0)

        broker.answers[MetadataRequest] = answer
        with pytest.raises(BrokerConnectionError, match="the broker closed the connection") as told:
            await connection.request(MetadataRequest())
        assert ("24 bytes into a response" in str(told.value)) == half
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
    ("server", "client", "told"),
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
        (wants_certificate, TRUSTING, "asks for a client's certificate, and none is set"),
        (wants_certificate, shown_by(OTHER_CA), "not trust the CA of the client's certificate"),
        (old_tls, new_tls_alone(), "it speaks no version of TLS that this client takes"),
        (None, TRUSTING, "the listener does not speak TLS; connect with tls=False"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_faults_of_tls(server: Any, client: Any, told: str) -> None:
    if server is None:
        async with talking(b"\x00\x00\x00\x0a" + bytes(10)) as broker:
            error = await refused(broker, tls=client)
    else:
        with sending_alerts(server()) as broker:
            error = await refused(broker, tls=client)
    assert isinstance(error, AuthenticationError), error
    assert re.search(told, str(error))


@contextmanager
def sending_alerts(context: ssl.SSLContext) -> Iterator[Any]:
    """A listener in a thread, for one connection: asyncio's does not send its alerts."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        connection.settimeout(5)
        with context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        ) as secured:
            try:
                secured.do_handshake()
                secured.recv(1)
            except OSError:
                # What is left unread would make the system reset the connection, alert and all.
                with contextlib.suppress(OSError):
                    secured.shutdown(socket.SHUT_WR)
                    while secured.recv(4_096):
                        pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield SimpleNamespace(port=listener.getsockname()[1])
    finally:
        thread.join()
        listener.close()


@asynccontextmanager
async def talking(answer: bytes) -> AsyncIterator[Any]:
    """Somebody who answers whatever comes with these bytes, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        server.port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        yield server


async def test_the_right_name_of_another_address() -> None:
    tls = Tls(ca=client_ca(CA), server_name="b1.example.com")
    async with SecuredBroker(tls=wrong_host()) as broker, connected(broker, tls=tls) as connection:
        assert connection.usable


@pytest.mark.parametrize("tls", [Tls(verify=False), Tls(ca=client_ca(CA), check_hostname=False)])
async def test_checks_that_are_switched_off(tls: Tls) -> None:
    async with SecuredBroker(tls=wrong_host()) as broker, connected(broker, tls=tls) as connection:
        assert connection.usable


async def test_a_certificate_of_ones_own() -> None:
    async with (
        SecuredBroker(tls=wants_certificate()) as broker,
        connected(broker, tls=shown_by(CA)) as connection,
    ):
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"


async def test_the_name_of_the_broker_is_asked_for() -> None:
    asked: list[str | None] = []
    context = server_tls(CA, "localhost")
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    async with (
        SecuredBroker(tls=context) as broker,
        connected(broker, host="localhost", tls=TRUSTING),
    ):
        assert asked == ["localhost"]


async def test_a_certificate_that_is_new_at_the_next_connection(tmp_path: Path) -> None:
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


# --- Listeners that are not what was thought ---


async def test_tls_to_a_listener_in_the_clear_that_closes() -> None:
    async with talking(b"") as broker:
        error = await refused(broker, tls=TRUSTING)
    assert isinstance(error, BrokerConnectionError)
    assert "is this a listener with TLS?" in str(error)


#: What Kafka's TLS listener answers to bytes that are no TLS: an alert.
ALERT = bytes.fromhex("15030300020250")


async def test_no_tls_to_a_listener_with_tls() -> None:
    async with talking(ALERT) as broker:
        error = await refused(broker)
    assert isinstance(error, AuthenticationError)
    assert "the listener speaks TLS; connect with tls=True" in str(error)


async def test_no_tls_to_a_listener_with_tls_that_closes() -> None:
    async with SecuredBroker(tls=GOOD) as broker:
        error = await refused(broker)
    assert isinstance(error, BrokerConnectionError)
    assert "does this listener want TLS (tls=True)?" in str(error)


async def test_no_sasl_to_a_listener_that_wants_it() -> None:
    async with SecuredBroker(mechanisms=("PLAIN",)) as broker, connected(broker) as connection:
        with pytest.raises(BrokerConnectionError, match="does this listener want SASL"):
            await connection.request(MetadataRequest())


async def test_sasl_to_a_listener_that_takes_none() -> None:
    async with SecuredBroker() as broker:
        error = await refused(broker, sasl=who("SCRAM-SHA-256"))
    assert isinstance(error, AuthenticationError)
    assert "takes no SASL; connect without sasl" in str(error)


async def test_a_lost_connection_that_worked_is_no_riddle() -> None:
    async with SecuredBroker() as broker, connected(broker) as connection:
        await connection.request(MetadataRequest())
        broker.answers[MetadataRequest] = lambda asked: "hang up"
        with pytest.raises(BrokerConnectionError, match=r"closed the connection$"):
            await connection.request(MetadataRequest())


# --- SASL ---


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("handshake", [0, 1])
async def test_each_mechanism(mechanism: str, tls: bool, handshake: int) -> None:
    broker = SecuredBroker(tls=GOOD if tls else None, mechanisms=MECHANISMS, handshake=handshake)
    async with (
        broker,
        connected(broker, sasl=who(mechanism), tls=TRUSTING if tls else False) as connection,
    ):
        assert (await connection.request(MetadataRequest())).cluster_id == "scripted"
        asked = [type(each.message) for each in broker.asked if each.message is not None]
        assert asked[1] is SaslHandshakeRequest
        assert (SaslAuthenticateRequest in asked) == bool(handshake)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("handshake", [0, 1])
async def test_a_wrong_secret(mechanism: str, handshake: int) -> None:
    wrong = "wrong-secret-0815"
    async with SecuredBroker(mechanisms=MECHANISMS, handshake=handshake) as broker:
        error = await refused(broker, sasl=who(mechanism, wrong))
    assert isinstance(error, AuthenticationError)
    assert mechanism in str(error)
    assert wrong not in "".join(traceback.format_exception(error))


async def test_what_the_broker_says_is_told_but_for_the_secret() -> None:
    async with SecuredBroker(mechanisms=("PLAIN",)) as broker:
        broker.message = "user alice, password wrong-secret: \x07no"
        error = await refused(broker, sasl=Plain("al", "wrong-secret"))
    assert "the broker refused the PLAIN authentication: user alice, password <hidden>: ?no" in str(
        error
    )


async def test_a_mechanism_that_is_not_enabled() -> None:
    async with SecuredBroker(mechanisms=("SCRAM-SHA-512", "OAUTHBEARER")) as broker:
        error = await refused(broker, sasl=who("PLAIN"))
    assert isinstance(error, AuthenticationError)
    assert "PLAIN is not enabled at this listener; these are: SCRAM-SHA-512, OAUTHBEARER" in str(
        error
    )


async def test_a_broker_that_does_not_know_the_users_keys() -> None:
    async with SecuredBroker(mechanisms={"SCRAM-SHA-256": lambda: Impostor()}) as broker:
        error = await refused(broker, sasl=who("SCRAM-SHA-256"))
    assert isinstance(error, AuthenticationError)
    assert "the server's signature is wrong" in str(error)


class Impostor:
    mechanism = "SCRAM-SHA-256"
    username = None

    def __init__(self) -> None:
        self.real = sasl_of("SCRAM-SHA-256")
        self.done = False

    def next(self, response: bytes) -> bytes:
        token = self.real.next(response)
        self.done = token.startswith(b"v=")
        return b"v=" + b"A" * 43 + b"=" if self.done else token


class Own:
    """A mechanism of the user's own."""

    mechanism = "OWN"
    readable = False

    def __init__(self, fault: BaseException | None = None, at: str = "") -> None:
        self.fault, self.at, self.done = fault, at, False

    def _fail(self, at: str) -> None:
        if self.fault is not None and self.at == at:
            raise self.fault

    async def exchange(self, host: str) -> Any:
        self._fail("exchange")
        return self

    def first(self) -> bytes:
        self._fail("first")
        return f"\0{USER}\0{SECRET}".encode()

    def next(self, challenge: bytes) -> bytes:
        self._fail("next")
        self.done = True
        return b""


async def test_a_mechanism_of_ones_own() -> None:
    async with SecuredBroker(mechanisms={"OWN": lambda: sasl_of("PLAIN")}) as broker:
        async with connected(broker, sasl=Own()) as connection:
            assert connection.usable
        for at in ("exchange", "first", "next"):
            error = await refused(broker, sasl=Own(ValueError(SECRET), at))
            assert isinstance(error, AuthenticationError)
            assert "the mechanism OWN raised ValueError" in str(error)


async def test_a_token_that_never_comes() -> None:
    async def never() -> str:
        await asyncio.sleep(60)
        return ""

    async with SecuredBroker(mechanisms=("OAUTHBEARER",)) as broker:
        error = await refused(broker, sasl=OAuthBearer(never), connect_timeout_ms=200)
    assert isinstance(error, RequestTimeoutError)
    assert "OAUTHBEARER had no token within 200 ms (connect_timeout_ms)" in str(error)


async def test_a_token_function_that_is_cancelled_by_itself() -> None:
    async def token() -> str:
        raise asyncio.CancelledError

    async with SecuredBroker(mechanisms=("OAUTHBEARER",)) as broker:
        client = Client(broker.bootstrap, sasl=OAuthBearer(token))
        with pytest.raises(AuthenticationError, match="OAUTHBEARER was cancelled from within"):
            await client.refresh([])
        await client.close()


async def test_a_token_that_is_waited_for_can_be_cancelled() -> None:
    async def token() -> str:
        await asyncio.sleep(3_600)
        return SECRET

    async with SecuredBroker(mechanisms=("OAUTHBEARER",)) as broker:
        client = Client(broker.bootstrap, sasl=OAuthBearer(token))
        asking = asyncio.create_task(client.refresh([]))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await client.close()


async def test_keys_are_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from kproto.protocol.sasl import credentials

    derive, derived = credentials.salted_password, []

    def note(*what: Any) -> bytes:
        derived.append(what)
        return derive(*what)

    monkeypatch.setattr(credentials, "salted_password", note)
    sasl = who("SCRAM-SHA-256")
    async with SecuredBroker(mechanisms=("SCRAM-SHA-256",)) as broker:
        for _ in range(3):
            async with connected(broker, sasl=sasl):
                pass
        assert broker.authentications == 3
    assert len(derived) == 1


# --- Sessions that end ---


def ever_new(tokens: Iterator[str]) -> OAuthBearer:
    return OAuthBearer(lambda: next(tokens))


async def test_authenticating_again_loses_and_repeats_nothing() -> None:
    broker = SecuredBroker(mechanisms=("SCRAM-SHA-256",), lifetime_ms=100)
    sent = 0
    async with broker, connected(broker, sasl=who("SCRAM-SHA-256")) as connection:

        async def ask() -> None:
            nonlocal sent
            while broker.authentications < 5:
                sent += 1
                assert (await connection.request(MetadataRequest())).cluster_id == "scripted"

        await asyncio.gather(*(ask() for _ in range(30)))
        assert broker.count(MetadataRequest) == sent >= 30
        assert broker.connections == 1
        order = [type(each.message).__name__ for each in broker.asked]
        for at, name in enumerate(order):
            if name == "SaslHandshakeRequest":  # nothing comes between
                assert order[at + 1 : at + 3] == ["SaslAuthenticateRequest"] * 2


async def test_a_producer_in_use_through_sessions() -> None:
    broker = SecuredBroker({"t": 1}, mechanisms=("SCRAM-SHA-256",), lifetime_ms=100)
    async with broker:
        stored = Stored(broker)
        sent: list[bytes] = []
        client = Client(broker.bootstrap, sasl=who("SCRAM-SHA-256"))
        async with client, client.producer() as producer:
            while broker.authentications < 6:
                sent += [f"{len(sent) + at}".encode() for at in range(20)]
                deliveries = [await producer.enqueue("t", value) for value in sent[-20:]]
                await asyncio.sleep(0)
                sent.append(f"{len(sent)}".encode())
                await producer.send("t", sent[-1])
                await asyncio.gather(*deliveries)
        assert stored.values() == sent
        assert broker.connections == 1


async def test_what_is_under_way_is_answered_and_what_comes_waits() -> None:
    clock = ManualClock()
    broker = SecuredBroker(mechanisms=("PLAIN",), lifetime_ms=60_000)
    async with (
        broker,
        connected(broker, sasl=who("PLAIN"), clock=clock, request_timeout_ms=60_000) as connection,
    ):
        release = asyncio.Event()

        async def answer(asked: Any) -> MetadataResponse:
            await release.wait()
            return MetadataResponse(cluster_id="slow")

        broker.answers[MetadataRequest] = answer
        slow = asyncio.create_task(connection.request(MetadataRequest(), timeout_ms=600_000))
        await broker.until(lambda: broker.count(MetadataRequest) == 1)
        assert clock.next_timer_ms is not None
        assert 0.85 * 60_000 <= clock.next_timer_ms <= 0.95 * 60_000
        await clock.advance(57_001)
        told: list[Any] = []
        request = MetadataRequest()
        assert not connection.post(request, version=9, tell=told.append), "it has to wait"
        behind = asyncio.create_task(connection.request(FetchRequest(), timeout_ms=600_000))
        broker.answers[FetchRequest] = lambda asked: FetchResponse()
        await clock.advance(10)
        assert broker.count(FetchRequest) == 0
        release.set()
        assert (await slow).cluster_id == "slow"
        await behind
        names = [type(each.message).__name__ for each in broker.asked]
        assert names[-4:] == [
            "MetadataRequest",
            "SaslHandshakeRequest",
            "SaslAuthenticateRequest",
            "FetchRequest",
        ]
        assert broker.authentications == 2
        assert connection.post(request, version=9, tell=told.append), "all is as before"
        await broker.until(lambda: bool(told))


async def test_a_token_that_is_refused_in_use() -> None:
    clock = ManualClock()
    broker = SecuredBroker(mechanisms=("OAUTHBEARER",), lifetime_ms=60_000)
    tokens = iter([SECRET, "revoked-token"])
    async with broker, connected(broker, sasl=ever_new(tokens), clock=clock) as connection:
        await connection.request(MetadataRequest())
        while broker.count(SaslHandshakeRequest) < 2:
            await clock.advance(1_000)
            await asyncio.sleep(0.001)
        with pytest.raises(AuthenticationError, match="refused the OAUTHBEARER authentication"):
            await connection.request(MetadataRequest())
        assert not connection.usable


async def test_an_issuer_that_is_away_is_asked_until_the_session_ends() -> None:
    clock = ManualClock()
    asked_at: list[float] = []

    def token() -> BearerToken:
        asked_at.append(clock.monotonic())
        if 1 < len(asked_at) < 4:
            raise OSError(SECRET)
        return BearerToken(SECRET)

    broker = SecuredBroker(mechanisms=("OAUTHBEARER",), lifetime_ms=60_000)
    async with (
        broker,
        connected(
            broker, sasl=OAuthBearer(token), clock=clock, request_timeout_ms=60_000
        ) as connection,
    ):
        await clock.advance(59_900)
        await broker.until(lambda: broker.authentications == 2)
        assert len(asked_at) == 4
        assert connection.usable


async def test_closing_while_a_token_is_waited_for() -> None:
    clock = ManualClock()
    calls = 0

    async def token() -> str:
        nonlocal calls
        calls += 1
        if calls > 1:
            await asyncio.sleep(3_600)
        return SECRET

    broker = SecuredBroker(mechanisms=("OAUTHBEARER",), lifetime_ms=60_000)
    async with broker, connected(broker, sasl=OAuthBearer(token), clock=clock) as connection:
        while calls < 2:
            await clock.advance(1_000)
        await connection.request(MetadataRequest())
    tasks = [task for task in asyncio.all_tasks() if "authenticate" in repr(task)]
    assert not tasks


async def test_a_connection_that_is_lost_as_its_last_answer_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    broker = SecuredBroker(mechanisms=("SCRAM-SHA-256",), lifetime_ms=60_000)
    lost = threading.Event()
    check = Authentication.next

    def check_until_it_is_lost(self: Authentication, answer: Any) -> Any:
        step = check(self, answer)
        if step is None:
            assert lost.wait(10)
        return step

    monkeypatch.setattr(Authentication, "next", check_until_it_is_lost)
    async with broker:
        address = Address("127.0.0.1", broker.port)
        settings = ClientSettings(sasl=who("SCRAM-SHA-256"))
        opening = asyncio.create_task(BrokerConnection.open(address, settings, clock))
        await broker.until(lambda: broker.authentications == 1)
        for writer in broker.writers:
            writer.close()
        await broker.until(lambda: not broker.writers)
        await asyncio.sleep(0.05)
        lost.set()
        connection = await opening
        assert not connection.usable
        assert clock.next_timer_ms is None, "nobody authenticates again"


# --- Every way in ---


@asynccontextmanager
async def quickly(broker: SecuredBroker, **parts: Any) -> AsyncIterator[Client]:
    """A client that would try again for a minute, and was not opened."""
    settings = quick(topic_timeout_ms=60_000, delivery_timeout_ms=60_000)
    client = Client(broker.bootstrap, settings, **parts)
    try:
        yield client
    finally:
        await client.close()


async def consume(client: Client) -> None:
    async for _ in client.consumer("t"):
        pass


async def produce(client: Client) -> None:
    async with client.producer() as producer:
        await producer.send("t", b"v")


async def enqueue(client: Client) -> None:
    async with client.producer() as producer:
        await (await producer.enqueue("t", b"v"))


async def enter(client: Client) -> None:
    async with client:
        pass


WAYS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "enter": enter,
    "request": lambda client: client.request(MetadataRequest()),
    "produce": produce,
    "enqueue": enqueue,
    "consume": consume,
    "topic": lambda client: client.topic("t"),
    "leader": lambda client: client.leader("t", 0),
    "create": lambda client: client.create_topics("u"),
    "delete": lambda client: client.delete_topics("u"),
    "offsets": lambda client: client.list_offsets({("t", 0): "latest"}),
    "fetch": lambda client: client.fetch("t", 0, 0),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_wrong_password_is_told_at_once(way: str) -> None:
    async with (
        SecuredBroker({"t": 1}, mechanisms=("SCRAM-SHA-256",)) as broker,
        quickly(broker, sasl=ScramSha256(USER, "wrong")) as client,
    ):
        async with asyncio.timeout(2):
            with pytest.raises(AuthenticationError, match="refused the SCRAM-SHA-256") as told:
                await WAYS[way](client)
        assert broker.connections == 1
    if way in ("produce", "enqueue"):
        assert isinstance(told.value, kproto.DeliveryError)
    gc.collect()  # a task that nobody looked at would be told of now


@pytest.mark.parametrize("way", ["produce", "consume", "offsets"])
async def test_a_password_that_is_changed_in_use(way: str) -> None:
    async with (
        SecuredBroker({"t": 1}, mechanisms=("PLAIN",)) as broker,
        quickly(broker, sasl=Plain(USER, SECRET)) as client,
    ):
        await client.refresh(["t"])
        broker.mechanisms = {"PLAIN": lambda: Refusing()}
        broker.hang_up()
        async with asyncio.timeout(2):
            with pytest.raises(AuthenticationError, match="refused the PLAIN"):
                await WAYS[way](client)


class Refusing:
    mechanism = "PLAIN"
    done = False
    username = None

    def next(self, response: bytes) -> bytes:
        raise AuthenticationError("no")


async def test_several_addresses_that_all_refuse() -> None:
    async with (
        SecuredBroker(mechanisms=("PLAIN",)) as one,
        SecuredBroker(mechanisms=("PLAIN",)) as two,
    ):
        client = Client(f"{one.bootstrap},{two.bootstrap}", sasl=Plain(USER, "wrong"))
        with pytest.raises(AuthenticationError, match=f"{one.bootstrap}: .*; {two.bootstrap}: "):
            await client.refresh([])
        await client.close()


@pytest.mark.parametrize("way", ["enter", "produce", "consume", "topic", "offsets"])
async def test_an_address_that_is_away_beside_one_that_refuses(way: str) -> None:
    async with SecuredBroker(mechanisms=("PLAIN",)) as gone:
        pass
    async with SecuredBroker({"t": 1}, mechanisms=("PLAIN",)) as broker:
        servers = f"{gone.bootstrap},{broker.bootstrap}"
        settings = quick(topic_timeout_ms=60_000, delivery_timeout_ms=60_000)
        client = Client(servers, settings, sasl=Plain(USER, "wrong"))
        async with asyncio.timeout(2):
            with pytest.raises(AuthenticationError) as told:
                await WAYS[way](client)
        assert f"{gone.bootstrap}: cannot connect" in str(told.value)
        assert f"{broker.bootstrap}: the broker refused the PLAIN" in str(told.value)
        assert broker.connections == 1
        await client.close()


async def test_a_client_in_use_waits_for_its_broker_though_another_address_refuses() -> None:
    async with (
        SecuredBroker(mechanisms=("SCRAM-SHA-256",)) as other,
        SecuredBroker({"t": 1}, mechanisms=("PLAIN",)) as broker,
    ):
        servers = f"{broker.bootstrap},{other.bootstrap}"
        async with Client(servers, sasl=Plain(USER, SECRET)) as client:
            await client.refresh(["t"])
            await broker.stop()
            with pytest.raises(BrokerConnectionError, match="cannot connect"):
                await client.refresh([])
            with pytest.raises(BrokerConnectionError, match="PLAIN is not enabled"):
                await client.refresh([])


async def test_an_address_that_is_away_beside_one_that_works() -> None:
    async with SecuredBroker(mechanisms=("PLAIN",)) as broker:
        async with SecuredBroker() as gone:
            pass
        servers = f"{gone.bootstrap},{broker.bootstrap}"
        async with Client(servers, sasl=Plain(USER, SECRET)) as client:
            assert client.cluster.brokers


async def test_a_broker_that_is_away_is_tried_again() -> None:
    async with SecuredBroker({"t": 1}, tls=GOOD, mechanisms=("PLAIN",)) as broker:
        stored = Stored(broker)
        async with (
            quickly(broker, sasl=Plain(USER, SECRET), tls=TRUSTING) as client,
            client.producer() as producer,
        ):
            await producer.send("t", b"one")
            await broker.stop()
            sending = asyncio.create_task(producer.send("t", b"two"))
            await asyncio.sleep(0.05)
            assert not sending.done()
            broker._server = await asyncio.start_server(
                broker._accept, "127.0.0.1", broker.port, ssl=GOOD
            )
            await sending
        assert stored.values() == [b"one", b"two"]


async def test_tls_files_that_cannot_be_used_are_told_at_once() -> None:
    async with (
        SecuredBroker({"t": 1}, tls=GOOD) as broker,
        quickly(broker, tls=Tls(ca="/no/such/ca.pem")) as client,
    ):
        with pytest.raises(ConfigurationError, match=r"ca .*/no/such/ca\.pem.* cannot be read"):
            await client.topic("t")


# --- What is said and shown ---


@pytest.mark.parametrize(
    ("mechanism", "tls", "warned"),
    [
        ("PLAIN", False, 1),
        ("OAUTHBEARER", False, 1),
        ("SCRAM-SHA-256", False, 0),
        ("PLAIN", True, 0),
    ],
)
async def test_readable_tokens_without_tls_are_warned_of_once(
    mechanism: str, tls: bool, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with SecuredBroker(
            {"t": 1}, tls=GOOD if tls else None, mechanisms=MECHANISMS
        ) as broker:
            client = Client(broker.bootstrap, sasl=who(mechanism), tls=TRUSTING if tls else False)
            async with client:
                await produce(client)
                broker.hang_up()
                await client.retrying(lambda: client.refresh([]))
    told = [each for each in caplog.records if "without TLS" in each.message]
    assert len(told) == warned
    assert SECRET not in caplog.text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_repr_shows_a_secret(mechanism: str) -> None:
    sasl = who(mechanism)
    settings = ClientSettings(sasl=sasl)
    assert SECRET not in f"{sasl!r} {settings!r} {Client('a:1', settings).settings!r}"


@pytest.mark.parametrize("given", ["PLAIN", Plain, object(), {"username": USER}])
def test_what_is_no_setting_of_sasl(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^sasl is of "):
        ClientSettings(sasl=given)


def test_what_is_said_to_the_client_stands_above_its_settings() -> None:
    settings = ClientSettings(tls=True, sasl=Plain(USER, SECRET), client_id="me")
    client = Client("a:1", settings, tls=TRUSTING)
    assert client.settings.tls is TRUSTING
    assert client.settings.sasl is settings.sasl
    assert client.settings.client_id == "me"
    assert Client("a:1", settings, tls=False).settings.tls is False


async def test_a_scripted_broker_needs_nothing_of_it() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        assert client.settings.sasl is None
