"""Tests host names with several addresses; a silent address delays the next address briefly."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.client import ClientSettings
from kproto.client.network import addresses
from kproto.client.network import handshake as opening
from kproto.client.network.addresses import (
    HostAddresses,
    SocketAddress,
    alternate_families,
    resolve_host,
)
from kproto.client.network.connection import BrokerConnection
from kproto.client.network.node_state import NodeState
from kproto.client.settings import Address
from kproto.clock import SYSTEM_CLOCK
from kproto.wire.errors import BrokerConnectionError, ProtocolError, RequestTimeoutError
from tests.unit.client.scripted_broker import ScriptedBroker


def at(ip: str, port: int = 1) -> SocketAddress:
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    return SocketAddress(family, (ip, port))


def test_address_families_alternate_without_duplicates() -> None:
    found = [at("::1"), at("::2"), at("10.0.0.1"), at("10.0.0.1"), at("10.0.0.2"), at("::3")]
    assert [each.ip for each in alternate_families(found)] == [
        "::1",
        "10.0.0.1",
        "::2",
        "10.0.0.2",
        "::3",
    ]


@pytest.mark.parametrize(
    ("failed", "order"), [(None, "abc"), ("a", "bca"), ("b", "cab"), ("c", "abc"), ("gone", "abc")]
)
def test_next_attempt_starts_after_the_failed_address(failed: str | None, order: str) -> None:
    assert [each.ip for each in alternate_families([at("a"), at("b"), at("c")], failed)] == list(
        order
    )


async def test_ip_address_is_not_resolved() -> None:
    assert [each.ip for each in await resolve_host(Address("127.0.0.1", 9))] == ["127.0.0.1"]
    assert [each.ip for each in await resolve_host(Address("::1", 9))] == ["::1"]


@pytest.fixture
def silent() -> Iterator[int]:
    """Yields a port of 127.0.0.9 whose backlog is full, so that a connect never completes."""
    with socket.socket() as server:
        server.bind(("127.0.0.9", 0))
        server.listen(0)
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.9", port))
        yield port
        for each in waiting:
            each.close()


def names(monkeypatch: pytest.MonkeyPatch, *addresses: SocketAddress) -> None:
    async def looked_up(address: Address) -> list[SocketAddress]:
        return list(addresses)

    monkeypatch.setattr(opening, "resolve_host", looked_up)


NAME = Address("kafka.example", 9092)


async def opened(**settings: int) -> BrokerConnection:
    return await BrokerConnection.open(NAME, ClientSettings(**settings))  # type: ignore[arg-type]


async def test_silent_address_delays_the_next_only_briefly(
    monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    async with ScriptedBroker() as broker:
        names(monkeypatch, at("127.0.0.9", silent), at("127.0.0.1", broker.port))
        begun = asyncio.get_running_loop().time()
        connection = await opened(connect_timeout_ms=15_000)
        assert asyncio.get_running_loop().time() - begun < 5
        assert connection.socket_address == at("127.0.0.1", broker.port)
        await connection.close()


@pytest.mark.slow
async def test_error_lists_all_failed_addresses(
    monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    names(monkeypatch, at("127.0.0.9", silent), at("127.0.0.9", silent), at("127.0.0.8", 1))
    with pytest.raises(BrokerConnectionError) as raised:
        await opened(connect_timeout_ms=400)
    assert "its 2 addresses failed" in str(raised.value)
    assert "127.0.0.8: cannot connect: Connection refused" in str(raised.value)
    assert "127.0.0.9: no broker answered within 400 ms" in str(raised.value)


async def test_refusing_address_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedBroker() as broker:
        names(monkeypatch, at("127.0.0.8", 1), at("127.0.0.1", broker.port))
        connection = await opened()
        assert connection.socket_address == at("127.0.0.1", broker.port)
        await connection.close()


async def test_address_without_a_broker_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    other = await asyncio.start_server(hang_up, "127.0.0.8", 0)
    port = other.sockets[0].getsockname()[1]
    async with other, ScriptedBroker() as broker:
        names(monkeypatch, at("127.0.0.8", port), at("127.0.0.1", broker.port))
        connection = await opened()
        assert connection.socket_address == at("127.0.0.1", broker.port)
        await connection.close()


async def test_silent_peer_leaves_time_for_other_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    other = await asyncio.start_server(say_nothing, "127.0.0.8", 0)
    port = other.sockets[0].getsockname()[1]
    async with other, ScriptedBroker() as broker:
        names(monkeypatch, at("127.0.0.8", port), at("127.0.0.1", broker.port))
        connection = await opened(connect_timeout_ms=600)
        assert connection.socket_address == at("127.0.0.1", broker.port)
        await connection.close()


async def test_attempt_after_a_failure_starts_with_another_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedBroker() as broker:
        names(monkeypatch, at("127.0.0.2", broker.port), at("127.0.0.1", broker.port))
        settings = ClientSettings()
        node_state = NodeState(settings)
        node_state.failed(BrokerConnectionError("lost"), 0.0, 0.5, "127.0.0.2")
        connection = await BrokerConnection.open(NAME, settings, node_state=node_state)
        assert connection.socket_address == at("127.0.0.1", broker.port)
        await connection.close()


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([RequestTimeoutError("late"), RequestTimeoutError("later")], RequestTimeoutError),
        ([ProtocolError("a web server"), ProtocolError("another")], ProtocolError),
        ([ProtocolError("a web server"), RequestTimeoutError("late")], BrokerConnectionError),
    ],
)
def test_several_failures_become_one_error(errors: list[Any], kind: type[Exception]) -> None:
    addresses = HostAddresses(NAME, [])
    for number, error in enumerate(errors):
        addresses.add_failure(at(f"10.0.0.{number}"), error)
    failure = addresses.combined_error()
    assert type(failure) is kind
    assert f"10.0.0.0: {errors[0]}; 10.0.0.1: {errors[1]}" in str(failure)


async def test_slower_address_is_kept_for_later_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second address connects first; the first address remains for later attempts."""
    made: list[socket.socket] = []

    async def connected(socket_address: SocketAddress) -> socket.socket:
        if socket_address.ip == "slow":
            await asyncio.sleep(60)
        made.append(socket.socket())
        return made[-1]

    monkeypatch.setattr(addresses, "_connected", connected)
    monkeypatch.setattr(addresses, "NEXT_ADDRESS_S", 0.01)
    host_addresses = HostAddresses(NAME, [at("slow"), at("quick")])
    found, socket_address = await host_addresses.connect(SYSTEM_CLOCK)
    assert socket_address.ip == "quick"
    assert [each.ip for each in host_addresses.remaining] == ["slow"]
    found.close()
