"""Measures the CPU time of TLS and SASL in the client's process; the broker has its own process.

    python -m tools.bench.security [--rounds N] [--connections N] [--megabytes N]

The first table has the cost that each mechanism adds to a connection, without TLS and with it. Keys
are derived before the measurement; separate rows have the cost of the derivation. The second table
has the cost that TLS adds per MiB, in kproto and in two clients that use asyncio alone: the first
reads each response whole from a stream, the second only fills a buffer. The broker is minimal; the
results are medians of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import trustme

from kproto import ClientSettings, OAuthBearer, Plain, ScramSha256, ScramSha512, Tls
from kproto.client.network.connection import BrokerConnection
from kproto.client.settings import Address
from kproto.messages import (
    API_KEYS,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.base import Request, Response
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.protocol.connection import ClientConnection, ServerConnection
from kproto.protocol.framing import FrameReader
from kproto.protocol.headers import request_class
from kproto.protocol.sasl import (
    BearerIdentity,
    OAuthBearerServer,
    SaltedCredential,
    ServerExchange,
    server_exchange,
)
from kproto.security.tls import TlsContexts
from tools.bench.serving import served_by

#: The maximum ms of CPU that a mechanism may add to a connection, without deriving keys.
WANTED_MS: Final = 10.0

#: The maximum cost of TLS in the client, divided by its cost in asyncio's streams.
WANTED_RATIO: Final = 1.2

USER, SECRET = "alice", "open sesame"
ITERATIONS: Final = 4096
MIB: Final = 1_048_576
MECHANISMS: Final[dict[str, Any]] = {
    "PLAIN": Plain(USER, SECRET),
    "SCRAM-SHA-256": ScramSha256(USER, SECRET),
    "SCRAM-SHA-512": ScramSha512(USER, SECRET),
    "OAUTHBEARER": OAuthBearer(lambda: "t" * 1_000),
}

# The broker, which runs in a separate process


def exchange_of(mechanism: str) -> ServerExchange:
    """Returns the server's side of a SASL exchange, with the credentials that `serve` derived."""
    if mechanism == "OAUTHBEARER":
        return OAuthBearerServer(lambda token: BearerIdentity(USER))
    return server_exchange(
        mechanism, lambda name: CREDENTIALS["512" if mechanism.endswith("512") else "256"]
    )


CREDENTIALS: Final[dict[str, SaltedCredential]] = {}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers the requests of one connection until the client closes it."""
    frames, connection, exchange = FrameReader(), ServerConnection(), None
    records = bytes(MIB)
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(MIB):
            for content in frames.feed(data):
                asked = connection.receive(content)
                response: Response
                match asked.message:
                    case ApiVersionsRequest():
                        response = ApiVersionsResponse(api_keys=[*_ranges()])
                    case SaslHandshakeRequest(mechanism=name):
                        exchange = exchange_of(name)
                        response = SaslHandshakeResponse()
                    case SaslAuthenticateRequest(auth_bytes=token):
                        assert exchange is not None
                        response = SaslAuthenticateResponse(auth_bytes=exchange.next(token))
                    case FetchRequest():
                        part = PartitionData(records=records)
                        topic = FetchableTopicResponse(partitions=[part])
                        response = FetchResponse(responses=[topic])
                    case _:
                        response = ProduceResponse()
                writer.write(connection.send(asked, response))
                await writer.drain()
    writer.close()


def _ranges() -> Iterator[ApiVersion]:
    for key in API_KEYS:
        cls = request_class(key)
        assert cls is not None
        versions = cls.VALID_VERSIONS
        yield ApiVersion(api_key=key, min_version=versions.start, max_version=versions.stop - 1)


async def serve() -> None:
    """Prints the ports and the CA as JSON; listens with and without TLS until stdin ends."""
    import ssl

    for bits in ("256", "512"):
        CREDENTIALS[bits] = SaltedCredential.derive(
            SECRET, hash_name=f"sha{bits}", iterations=ITERATIONS
        )
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    servers = [
        await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) for tls in (None, context)
    ]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    print(json.dumps({"ports": ports, "ca": ca.cert_pem.bytes().decode()}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


class BrokerListeners(NamedTuple):
    """The addresses of the broker's listeners, and the TLS contexts to connect to them."""

    clear: Address
    secured: Address
    contexts: TlsContexts
    no_tls: TlsContexts

    def at(self, *, tls: bool) -> tuple[Address, TlsContexts]:
        """Returns the address and the TLS contexts of one listener."""
        return (self.secured, self.contexts) if tls else (self.clear, self.no_tls)


@contextlib.contextmanager
def running() -> Iterator[BrokerListeners]:
    """Runs the broker in a separate process; yields its listeners."""
    with served_by("tools.bench.security") as line:
        told = json.loads(line)
        clear, secured = (Address("127.0.0.1", port) for port in told["ports"])
        yield BrokerListeners(clear, secured, TlsContexts(Tls(ca=told["ca"])), TlsContexts(False))


# The first table: opening connections


async def opened(broker: BrokerListeners, sasl: Any, count: int, *, tls: bool) -> float:
    """Opens `count` connections one after the other; returns the CPU seconds per connection."""
    address, contexts = broker.at(tls=tls)
    settings = ClientSettings(sasl=sasl)
    began = time.process_time()
    for _ in range(count):
        connection = await BrokerConnection.open(address, settings, tls=contexts)
        connection.abort()
    return (time.process_time() - began) / count


async def authentication(broker: BrokerListeners, rounds: int, count: int) -> bool:
    """Prints the table of the CPU time that each SASL mechanism adds to a connection.

    Returns False if a mechanism adds more than `WANTED_MS`.
    """
    print("| adds to a connection, ms of CPU | in the clear | with TLS |\n|---|---|---|")
    reached = True
    for name, sasl in MECHANISMS.items():
        shown = []
        for tls in (False, True):
            await opened(broker, sasl, 2, tls=tls)  # derives the keys
            added = []
            for _ in range(rounds):
                without = await opened(broker, None, count, tls=tls)
                added.append(await opened(broker, sasl, count, tls=tls) - without)
            shown.append(1000 * statistics.median(added))
        reached = reached and max(shown) <= WANTED_MS
        print(f"| {name} | {shown[0]:.2f} | {shown[1]:.2f} |", flush=True)
    for bits in ("256", "512"):
        began = time.process_time()
        for _ in range(20):
            hashlib.pbkdf2_hmac(f"sha{bits}", SECRET.encode(), b"salt", ITERATIONS)
        spent = 50 * (time.process_time() - began)
        print(
            f"| once for each user: the key of SCRAM-SHA-{bits}, {ITERATIONS} iterations "
            f"| {spent:.2f} | |"
        )
    return reached


# The second table: cost per MiB


class ByteCountingProtocol(asyncio.BufferedProtocol):
    """An asyncio protocol that reads into one buffer and only counts the bytes."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(MIB))
        self.left = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.left -= nbytes
        if self.left <= 0 and not self.done.done():
            self.done.set_result(None)


def _produce() -> ProduceRequest:
    part = PartitionProduceData(records=bytes(MIB))
    return ProduceRequest(acks=1, topic_data=[TopicProduceData(partition_data=[part])])


Work: TypeAlias = Callable[..., Awaitable[float]]

WORKS: Final[dict[str, Callable[[], Request[Any]]]] = {
    "read": FetchRequest,
    "written": _produce,
}


async def ours(broker: BrokerListeners, request: Request[Any], count: int, *, tls: bool) -> float:
    """Returns the CPU seconds of kproto's connection for `count` requests in a row."""
    address, contexts = broker.at(tls=tls)
    connection = await BrokerConnection.open(address, ClientSettings(), tls=contexts)
    await connection.request(request)
    began = time.process_time()
    for _ in range(count):
        await connection.request(request)
    spent = time.process_time() - began
    await connection.close()
    return spent


async def streams(
    broker: BrokerListeners, request: Request[Any], count: int, *, tls: bool
) -> float:
    """Returns the CPU seconds of asyncio's streams for `count` requests and their responses."""
    address, contexts = broker.at(tls=tls)
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=contexts.cached() if tls else None
    )
    _, data = ClientConnection("kproto").send(request, type(request).LATEST_STABLE)
    began = time.process_time()
    for _ in range(count):
        writer.write(data)
        await writer.drain()
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    spent = time.process_time() - began
    writer.transport.abort()
    return spent


async def one_buffer(
    broker: BrokerListeners, request: Request[Any], count: int, *, tls: bool
) -> float:
    """Returns the CPU seconds of an asyncio protocol that only counts the response's bytes."""
    address, contexts = broker.at(tls=tls)
    context = contexts.cached() if tls else None
    transport, protocol = await asyncio.get_running_loop().create_connection(
        ByteCountingProtocol, address.host, address.port, ssl=context
    )
    version = type(request).LATEST_STABLE
    _, data = ClientConnection("kproto").send(request, version)
    size = await _size_of_answer(address, contexts, request, tls=tls)
    began = time.process_time()
    for _ in range(count):
        protocol.left = size
        protocol.done = asyncio.get_running_loop().create_future()
        transport.write(data)
        await protocol.done
    spent = time.process_time() - began
    transport.abort()
    return spent


async def _size_of_answer(
    address: Address, contexts: TlsContexts, request: Request[Any], *, tls: bool
) -> int:
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=contexts.cached() if tls else None
    )
    _, data = ClientConnection("kproto").send(request, type(request).LATEST_STABLE)
    writer.write(data)
    size = int.from_bytes(await reader.readexactly(4), "big")
    writer.transport.abort()
    return size + 4


async def added(work: Work, broker: BrokerListeners, request: Request[Any], count: int) -> float:
    """Returns the CPU seconds that TLS adds to `count` requests.

    `work` is the function that sends the requests: `ours`, `streams` or `one_buffer`.
    """
    clear = await work(broker, request, count, tls=False)
    return await work(broker, request, count, tls=True) - clear


async def bytes_through(broker: BrokerListeners, rounds: int, count: int) -> bool:
    """Prints the table of the CPU time that TLS adds per MiB.

    Returns False if TLS costs kproto more than `WANTED_RATIO` times what it costs asyncio's
    streams.
    """
    print(
        "\n| TLS adds to a MiB, ms of CPU | kproto | asyncio's streams (ratio) "
        "| asyncio into one buffer (ratio) |\n|---|---|---|---|"
    )
    reached = True
    for name, make in WORKS.items():
        request = make()
        spent: list[dict[Work, float]] = []
        for number in range(rounds):
            order = (ours, streams, one_buffer) if number % 2 else (one_buffer, streams, ours)
            spent.append({work: await added(work, broker, request, count) for work in order})
        ms = {
            work: 1000 * statistics.median(each[work] for each in spent) / count
            for work in (ours, streams, one_buffer)
        }
        ratios = {
            work: statistics.median(each[ours] / each[work] for each in spent)
            for work in (streams, one_buffer)
        }
        reached = reached and ratios[streams] <= WANTED_RATIO
        shown = " | ".join(f"{ms[work]:.2f} ({ratio:.2f})" for work, ratio in ratios.items())
        print(f"| {name} | {ms[ours]:.2f} | {shown} |", flush=True)
    return reached


async def measure(arguments: argparse.Namespace) -> int:
    with running() as broker:
        broker.contexts.renew()
        quick = await authentication(broker, arguments.rounds, arguments.connections)
        cheap = await bytes_through(broker, arguments.rounds, arguments.megabytes)
    return 0 if quick and cheap else 1


def main() -> int:
    """Prints both tables; returns 1 if a cost exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
        return 0
    return asyncio.run(measure(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
