"""Tests that the client reauthenticates before a SASL session expires (KIP-368).

No request is lost or repeated.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kproto import BearerToken, Client, ClientSettings, OAuthBearer
from kproto.client.network.connection import BrokerConnection
from kproto.client.settings import Address
from kproto.messages import (
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    SaslHandshakeRequest,
)
from kproto.security.authentication import Authentication
from kproto.testing.clock import ManualClock
from kproto.wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
)
from tests.unit.client.network.secured import (
    connected,
    who,
)
from tests.unit.client.scripted_broker import Stored
from tests.unit.client.secured_broker import (
    SECRET,
    SecuredBroker,
)

# --- Reauthentication ---


def ever_new(tokens: Iterator[str]) -> OAuthBearer:
    return OAuthBearer(lambda: next(tokens))


@pytest.mark.slow
async def test_reauthentication_loses_and_repeats_no_request() -> None:
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
            if name == "SaslHandshakeRequest":  # no other request in between
                assert order[at + 1 : at + 3] == ["SaslAuthenticateRequest"] * 2


@pytest.mark.slow
async def test_producer_works_through_reauthentications() -> None:
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


async def test_requests_in_flight_finish_and_new_ones_wait_for_reauthentication() -> None:
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
        outcomes: list[Any] = []
        request = MetadataRequest()
        assert not connection.try_send(request, version=9, callback=outcomes.append), (
            "the request must wait"
        )
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
        assert connection.try_send(request, version=9, callback=outcomes.append), (
            "requests are accepted again"
        )
        await broker.until(lambda: bool(outcomes))


async def test_refused_token_closes_the_connection() -> None:
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


async def test_failing_token_function_is_retried_until_the_session_ends() -> None:
    clock = ManualClock()
    called_at: list[float] = []

    def token() -> BearerToken:
        called_at.append(clock.monotonic())
        if 1 < len(called_at) < 4:
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
        assert len(called_at) == 4
        assert connection.usable


async def test_close_ends_the_wait_for_a_token() -> None:
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


async def test_connection_lost_during_the_last_check_is_an_error(
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
        with pytest.raises(BrokerConnectionError, match="the broker closed the connection"):
            await opening
        assert clock.next_timer_ms is None, "no reauthentication is scheduled"
