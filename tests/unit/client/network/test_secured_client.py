"""Tests a client of a secured cluster.

If the brokers refuse the client, every call raises the error at once. No error or log text contains
a secret.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import kproto
from kproto import Client, ClientSettings, Plain, ScramSha256, Tls
from kproto.messages import (
    MetadataRequest,
)
from kproto.wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
)
from tests.support.leaders import leader_of
from tests.unit.client.network.secured import (
    GOOD,
    MECHANISMS,
    TRUSTING,
    quickly,
    who,
)
from tests.unit.client.scripted_broker import ScriptedBroker, Stored, quick
from tests.unit.client.secured_broker import (
    SECRET,
    USER,
    SecuredBroker,
)

# --- Calls ---


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


CALLS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "enter": enter,
    "request": lambda client: client.request(MetadataRequest()),
    "produce": produce,
    "enqueue": enqueue,
    "consume": consume,
    "topic": lambda client: client.topic("t"),
    "leader": lambda client: leader_of(client, "t", 0),
    "create": lambda client: client.create_topics("u"),
    "delete": lambda client: client.delete_topics("u"),
    "offsets": lambda client: client.list_offsets({("t", 0): "latest"}),
    "fetch": lambda client: client.fetch("t", 0, 0),
}


@pytest.mark.parametrize("call", CALLS)
async def test_wrong_password_raises_at_once(call: str) -> None:
    async with (
        SecuredBroker({"t": 1}, mechanisms=("SCRAM-SHA-256",)) as broker,
        quickly(broker, sasl=ScramSha256(USER, "wrong")) as client,
    ):
        async with asyncio.timeout(2):
            with pytest.raises(AuthenticationError, match="refused the SCRAM-SHA-256") as raised:
                await CALLS[call](client)
        assert broker.connections == 1
    if call in ("produce", "enqueue"):
        assert isinstance(raised.value, kproto.DeliveryError)
    gc.collect()  # so that asyncio reports tasks with unretrieved errors


@pytest.mark.parametrize("call", ["produce", "consume", "offsets"])
async def test_password_changed_during_use_raises(call: str) -> None:
    async with (
        SecuredBroker({"t": 1}, mechanisms=("PLAIN",)) as broker,
        quickly(broker, sasl=Plain(USER, SECRET)) as client,
    ):
        await client.refresh(["t"])
        broker.mechanisms = {"PLAIN": lambda: Refusing()}
        broker.hang_up()
        async with asyncio.timeout(2):
            with pytest.raises(AuthenticationError, match="refused the PLAIN"):
                await CALLS[call](client)


class Refusing:
    """The server side of PLAIN that refuses each user."""

    mechanism = "PLAIN"
    done = False
    username = None

    def next(self, response: bytes) -> bytes:
        raise AuthenticationError("no")


async def test_error_lists_all_refusing_addresses() -> None:
    async with (
        SecuredBroker(mechanisms=("PLAIN",)) as one,
        SecuredBroker(mechanisms=("PLAIN",)) as two,
    ):
        client = Client(f"{one.bootstrap},{two.bootstrap}", sasl=Plain(USER, "wrong"))
        with pytest.raises(AuthenticationError, match=f"{one.bootstrap}: .*; {two.bootstrap}: "):
            await client.refresh([])
        await client.close()


@pytest.mark.parametrize("call", ["enter", "produce", "consume", "topic", "offsets"])
async def test_error_lists_unreachable_and_refusing_addresses(call: str) -> None:
    async with SecuredBroker({"t": 1}, mechanisms=("PLAIN",)) as broker:
        async with SecuredBroker(mechanisms=("PLAIN",)) as gone:
            pass
        servers = f"{gone.bootstrap},{broker.bootstrap}"
        settings = quick(metadata_wait_ms=60_000, delivery_timeout_ms=60_000)
        client = Client(servers, settings, sasl=Plain(USER, "wrong"))
        async with asyncio.timeout(2):
            with pytest.raises(AuthenticationError) as raised:
                await CALLS[call](client)
        assert f"{gone.bootstrap}: cannot connect" in str(raised.value)
        assert f"{broker.bootstrap}: the broker refused the PLAIN" in str(raised.value)
        assert broker.connections == 1
        await client.close()


async def test_connected_client_waits_for_its_broker_although_another_address_refuses() -> None:
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


async def test_unreachable_bootstrap_address_is_skipped() -> None:
    async with SecuredBroker(mechanisms=("PLAIN",)) as broker:
        async with SecuredBroker() as gone:
            pass
        servers = f"{gone.bootstrap},{broker.bootstrap}"
        async with Client(servers, sasl=Plain(USER, SECRET)) as client:
            assert client.cluster.brokers


async def test_stopped_broker_is_retried() -> None:
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


async def test_unusable_tls_file_raises_at_once() -> None:
    async with (
        SecuredBroker({"t": 1}, tls=GOOD) as broker,
        quickly(broker, tls=Tls(ca="/no/such/ca.pem")) as client,
    ):
        with pytest.raises(ConfigurationError, match=r"ca .*/no/such/ca\.pem.* cannot be read"):
            await client.topic("t")


# --- Warnings and secrets ---


@pytest.mark.parametrize(
    ("mechanism", "tls", "warnings"),
    [
        ("PLAIN", False, 1),
        ("OAUTHBEARER", False, 1),
        ("SCRAM-SHA-256", False, 0),
        ("PLAIN", True, 0),
    ],
)
async def test_plaintext_credentials_without_tls_are_warned_of_once(
    mechanism: str, tls: bool, warnings: int, caplog: pytest.LogCaptureFixture
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
    logged = [each for each in caplog.records if "without TLS" in each.message]
    assert len(logged) == warnings
    assert SECRET not in caplog.text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_repr_shows_no_secret(mechanism: str) -> None:
    sasl = who(mechanism)
    settings = ClientSettings(sasl=sasl)
    assert SECRET not in f"{sasl!r} {settings!r} {Client('a:1', settings).settings!r}"


@pytest.mark.parametrize("given", ["PLAIN", Plain, object(), {"username": USER}])
def test_invalid_sasl_setting_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^sasl is of "):
        ClientSettings(sasl=given)


def test_client_arguments_override_its_settings() -> None:
    settings = ClientSettings(tls=True, sasl=Plain(USER, SECRET), client_id="me")
    client = Client("a:1", settings, tls=TRUSTING)
    assert client.settings.tls is TRUSTING
    assert client.settings.sasl is settings.sasl
    assert client.settings.client_id == "me"
    assert Client("a:1", settings, tls=False).settings.tls is False


async def test_client_without_sasl_connects() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        assert client.settings.sasl is None
