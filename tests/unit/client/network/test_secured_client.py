"""A client of a secured cluster: every call tells a refusal at once, and none a secret."""

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

# --- Every way in ---


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
    "leader": lambda client: leader_of(client, "t", 0),
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
    async with SecuredBroker({"t": 1}, mechanisms=("PLAIN",)) as broker:
        async with SecuredBroker(mechanisms=("PLAIN",)) as gone:
            pass
        servers = f"{gone.bootstrap},{broker.bootstrap}"
        settings = quick(metadata_wait_ms=60_000, delivery_timeout_ms=60_000)
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
