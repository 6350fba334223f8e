"""Tests TLS over sockets: principals of clients, and how refused connections end."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trustme

from kproto.broker import Broker, BrokerSettings, Listener
from kproto.broker.context import Context
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import handles
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.describe_cluster_request import DescribeClusterRequest
from kproto.messages.describe_cluster_response import DescribeClusterResponse
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.protocol.framing import frame
from tests.support.batches import batch_bytes
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.support.secured_broker import (
    ALL_MECHANISMS,
    PASSWORDS,
    client_tls,
    password,
    server_tls,
    sign_in,
)

LISTENERS = (
    Listener("SSL", tls=server_tls()),
    Listener("REQUESTED", tls=server_tls("requested")),
    Listener("REQUIRED", tls=server_tls("required")),
    Listener("SASL_SSL", tls=server_tls("requested"), mechanisms=ALL_MECHANISMS),
)


@handles(DescribeClusterRequest, versions=range(1))
def who_am_i(
    context: Context, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    """Returns the connection's principal in the field cluster_id."""
    return DescribeClusterResponse(cluster_id=str(context.principal))


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    settings = BrokerSettings(listeners=LISTENERS, users=PASSWORDS, tls_handshake_timeout_ms=300)
    with threaded_broker(settings, apis=[*KAFKA_APIS, who_am_i]) as running:
        yield running


def address(broker: ThreadedBroker, listener: str) -> tuple[str, int]:
    host, _, port = broker.call(lambda it: it.bootstrap_of(listener)).rpartition(":")
    return host, int(port)


def connect(broker: ThreadedBroker, listener: str, name: str | None = None) -> RawConnection:
    return RawConnection(broker.call(lambda it: it.bootstrap_of(listener)), tls=client_tls(name))


def principal(connection: RawConnection) -> str:
    return connection.exchange(DescribeClusterRequest(), 0).cluster_id


def serves(broker: ThreadedBroker) -> bool:
    with connect(broker, "SSL") as connection:
        return connection.exchange(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("listener", ["REQUESTED", "REQUIRED"])
@pytest.mark.parametrize("name", ["alice", "al,ice"])
def test_certificate_subject_is_the_principal(
    broker: ThreadedBroker, listener: str, name: str
) -> None:
    with connect(broker, listener, name) as connection:
        shown = name.replace(",", "\\,")
        assert principal(connection) == f"User:CN={shown},OU=Oven,O=Bread"


@pytest.mark.parametrize(
    ("listener", "name"), [("SSL", None), ("SSL", "alice"), ("REQUESTED", None)]
)
def test_client_without_certificate_is_anonymous(
    broker: ThreadedBroker, listener: str, name: str | None
) -> None:
    with connect(broker, listener, name) as connection:
        assert principal(connection) == "User:ANONYMOUS"


def test_sasl_principal_overrides_certificate(broker: ThreadedBroker) -> None:
    with connect(broker, "SASL_SSL", "alice") as connection:
        sign_in(connection, password("PLAIN", "bob"))
        assert principal(connection) == "User:bob"


def api_error(broker: ThreadedBroker, caplog: pytest.LogCaptureFixture) -> str:
    """Returns the broker's only warning; checks that this warning has no traceback.

    Ignores warnings of asyncio, which warns if a busy machine delays a callback.
    """

    def warnings() -> list[logging.LogRecord]:
        return [
            each
            for each in caplog.records
            if each.levelno == logging.WARNING and each.name != "asyncio"
        ]

    broker.until(lambda _: warnings())
    (line,) = warnings()
    assert line.name == "kproto.broker"
    assert line.exc_info is None
    return line.getMessage()


def test_missing_required_certificate_fails_handshake(
    broker: ThreadedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((ClosedByBrokerError, ssl.SSLError)), connect(broker, "REQUIRED") as them:
        principal(them)
    assert "no TLS: the client sent no certificate" in api_error(broker, caplog)
    assert serves(broker)


def test_certificate_of_other_authority_fails_handshake(
    broker: ThreadedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = client_tls()
    trustme.CA().issue_cert("eve@example.org", common_name="eve").configure_cert(stranger)
    where = broker.call(lambda it: it.bootstrap_of("REQUESTED"))
    with (
        pytest.raises((ClosedByBrokerError, ssl.SSLError)),
        RawConnection(where, tls=stranger) as it,
    ):
        principal(it)
    assert "no TLS: the client's certificate is not trusted: " in api_error(broker, caplog)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (frame(b"\0\x12\0\0\0\0\0\1\xff\xff"), "the client does not speak TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "the client speaks HTTP without TLS"),
        (b"\x16\x03\x01\0\x05hello", ""),
    ],
)
def test_non_tls_bytes_end_their_connection_alone(
    broker: ThreadedBroker, caplog: pytest.LogCaptureFixture, data: bytes, reason: str
) -> None:
    with socket.create_connection(address(broker, "SSL"), 20) as other:
        other.sendall(data)
        while other.recv(1000):
            pass
    assert reason in api_error(broker, caplog)
    assert serves(broker)


def handshakes(broker: Broker) -> int:
    """Returns the number of handshakes in progress."""
    acceptor = broker._node._first_listener.acceptor
    return 0 if acceptor is None else len(acceptor._accepting)


def test_stalled_handshake_times_out(
    broker: ThreadedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as several:
        silent = [
            several.enter_context(socket.create_connection(address(broker, "SSL"), 20))
            for _ in range(3)
        ]
        assert serves(broker), "a stalled handshake blocks another"
        for other in silent:
            assert other.recv(1) == b""
        broker.until(lambda it: not handshakes(it))
    assert caplog.text.count("no TLS: it took too long (tls_handshake_timeout_ms)") == 3


def test_distrusting_client_is_logged(
    broker: ThreadedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    where = broker.call(lambda it: it.bootstrap_of("SSL"))
    with pytest.raises(ssl.SSLCertVerificationError):
        RawConnection(where, tls=ssl.create_default_context())
    assert "no TLS: the client " in api_error(broker, caplog)


@pytest.mark.slow
def test_large_messages_are_sent_both_ways(broker: ThreadedBroker) -> None:
    broker.call(lambda it: it.create_topic("much", configs={"max.message.bytes": "9000000"}))
    records = batch_bytes(value=bytes(8_000_000))
    with connect(broker, "SSL") as connection:
        data = PartitionProduceData(records=records)
        topic = TopicProduceData(name="much", partition_data=[data])
        for _ in range(3):
            answer = connection.exchange(ProduceRequest(acks=-1, topic_data=[topic]), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        wanted = FetchPartition(partition_max_bytes=30_000_000)
        fetch = FetchRequest(
            max_bytes=30_000_000, topics=[FetchTopic(topic="much", partitions=[wanted])]
        )
        found = connection.exchange(fetch, 12).responses[0].partitions[0].records
        assert found is not None
        assert len(found) == 3 * len(records)


async def test_a_broker_that_closes_leaves_no_handshake_and_no_connection() -> None:
    broker = Broker(BrokerSettings(listeners=(Listener("SSL", tls=server_tls()),)))
    await broker.start()
    host, _, port = broker.bootstrap.rpartition(":")
    silent_reader, silent = await asyncio.open_connection(host, int(port))
    reader, writer = await asyncio.open_connection(
        host, int(port), ssl=client_tls(), server_hostname=host
    )
    while not broker.connections:  # noqa: ASYNC110 - what is waited for is the broker's own affair
        await asyncio.sleep(0.001)
    async with asyncio.timeout(60):
        await broker.close()
        assert broker.connections == 0
        assert await silent_reader.read() == b""
        assert await reader.read() == b""
    for each in (silent, writer):
        each.transport.abort()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.slow
async def test_close_does_not_wait_for_close_notify() -> None:
    listener = Listener("SASL_SSL", tls=server_tls(), mechanisms=("PLAIN",))
    async with Broker(BrokerSettings(listeners=(listener,))) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        plain = socket.create_connection((host, int(port)), 20)
        plain.setblocking(False)  # this client stops reading
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        side = client_tls().wrap_bio(into, out, server_hostname=host)
        loop = asyncio.get_running_loop()
        while True:
            try:
                side.do_handshake()
                break
            except ssl.SSLWantReadError:
                await loop.sock_sendall(plain, out.read())
                into.write(await loop.sock_recv(plain, 10_000))
        # a Metadata request, which the broker refuses before authentication
        side.write(frame(b"\0\3\0\0\0\0\0\1\xff\xff"))
        await loop.sock_sendall(plain, out.read())
        async with asyncio.timeout(60):
            while not broker.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            while broker.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        plain.close()
