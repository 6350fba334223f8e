"""Opens connections with TLS and SASL to a secured broker, or checks that they are refused."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

import kproto
from kproto import Client, ClientSettings, OAuthBearer, Tls
from kproto.client.network.connection import BrokerConnection
from kproto.client.settings import Address
from kproto.clock import SYSTEM_CLOCK
from kproto.wire.errors import (
    KprotoError,
)
from tests.unit.client.scripted_broker import quick
from tests.unit.client.secured_broker import (
    SECRET,
    USER,
    SecuredBroker,
    client_ca,
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


@asynccontextmanager
async def quickly(broker: SecuredBroker, **parts: Any) -> AsyncIterator[Client]:
    """Yields a client that is not connected yet, and that retries connections for a minute."""
    settings = quick(metadata_wait_ms=60_000, delivery_timeout_ms=60_000)
    client = Client(broker.bootstrap, settings, **parts)
    try:
        yield client
    finally:
        await client.close()
