"""Tests when the client returns to the bootstrap servers (KIP-899, KIP-1102)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kproto import BrokerConnectionError, Client, ClientSettings, ConfigurationError
from kproto.client.metadata.any_broker import connect_any
from kproto.client.metadata.broker_selection import BrokerSelection
from kproto.client.network.pool import ConnectionPool
from kproto.client.observing.observer import Observer
from kproto.client.settings import RecoveryStrategy, parse_bootstrap
from kproto.messages import MetadataRequest, MetadataResponse
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick
from tests.unit.client.scripted_cluster import ScriptedCluster, scripted_cluster

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=2_000)
REBOOTSTRAP_REQUIRED = 129


def serve_cluster(vip: ScriptedBroker, cluster: ScriptedCluster, *, name: str = "first") -> None:
    """Makes the bootstrap server `vip` answer Metadata as `cluster` does.

    The server itself is no broker of the cluster.
    """
    cluster.cluster_id = name
    vip.answers[MetadataRequest] = cluster.metadata


async def stop_all(cluster: ScriptedCluster) -> None:
    for broker in cluster.brokers:
        await broker.stop()


async def test_client_finds_a_replaced_cluster(caplog: pytest.LogCaptureFixture) -> None:
    """The bootstrap server is a load balancer, whose address stays the same (KIP-899)."""
    async with ScriptedBroker() as vip, scripted_cluster(2) as old, scripted_cluster(2) as new:
        serve_cluster(vip, old)
        old.topic("t", [0, 1])
        async with Client(vip.bootstrap, QUICK) as client:
            await client.topic("t")
            assert await client.connection(0) is not await client.connection(1)
            vip.hang_up()
            await stop_all(old)
            serve_cluster(vip, new, name="second")
            new.topic("t", [1, 1])
            found = await client.retrying(lambda: client.refresh(["t"]))
            assert [part.leader for part in found[0].partitions.values()] == [1, 1]
            assert {each.port for each in client.cluster.brokers.values()} == {
                each.port for each in new.brokers
            }
    assert "the cluster has id second, and had first" in caplog.text


async def test_strategy_none_does_not_rebootstrap() -> None:
    settings = ClientSettings(
        retry_backoff_ms=1,
        retry_backoff_max_ms=5,
        api_timeout_ms=100,
        metadata_recovery_strategy="none",
    )
    async with ScriptedBroker() as vip, scripted_cluster(2) as old:
        serve_cluster(vip, old)
        async with Client(vip.bootstrap, settings) as client:
            await client.connection(1)
            vip.hang_up()
            await vip.until(lambda: not vip.writers)
            await stop_all(old)
            connections = vip.connections
            with pytest.raises(BrokerConnectionError):
                await client.retrying(lambda: client.refresh([]))
            assert vip.connections == connections


async def test_stopped_broker_is_skipped() -> None:
    async with scripted_cluster(3) as cluster, Client(cluster.bootstrap, QUICK) as client:
        await cluster.brokers[0].stop()
        await client.retrying(lambda: client.refresh([]))
        cluster.up = [0, 1, 2]
        await client.refresh([])
        assert cluster.count(MetadataRequest)[0] == 1


async def test_open_connections_are_used_in_turn() -> None:
    async with scripted_cluster(3) as cluster, Client(cluster.bootstrap, QUICK) as client:
        for node in (1, 2):
            await client.connection(node)
        before = cluster.count(MetadataRequest)
        for _ in range(6):
            await client.refresh([])
        after = cluster.count(MetadataRequest)
        assert [b - a for a, b in zip(before, after, strict=True)] == [2, 2, 2]


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
async def test_rebootstrap_required_returns_to_the_bootstrap_servers(
    strategy: RecoveryStrategy, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-1102 adds the error code REBOOTSTRAP_REQUIRED."""
    settings = ClientSettings(metadata_recovery_strategy=strategy)
    async with ScriptedBroker() as vip, scripted_cluster(1) as old, scripted_cluster(1) as new:
        serve_cluster(vip, old)
        old.topic("t", [0])
        async with Client(vip.bootstrap, settings) as client:
            await client.topic("t")
            old_connection = await client.connection(0)
            old.error_code = REBOOTSTRAP_REQUIRED
            vip.answers[MetadataRequest] = new.metadata
            vip.hang_up()
            await vip.until(lambda: not vip.writers)
            if strategy == "none":
                with pytest.raises(BrokerConnectionError, match="must rebootstrap"):
                    await client.refresh(["t"])
                assert old_connection.usable
                return
            await client.refresh([])
            assert not old_connection.usable
            assert client.cluster.topics == {}
            assert [each.port for each in client.cluster.brokers.values()] == [new.brokers[0].port]
    assert f"going back to the bootstrap servers {vip.bootstrap}" in caplog.text


async def test_repeated_rebootstrap_required_is_retried() -> None:
    async with scripted_cluster(1) as cluster, Client(cluster.bootstrap, QUICK) as client:
        codes = [REBOOTSTRAP_REQUIRED] * 5

        def answer(asked: ReceivedRequest) -> MetadataResponse:
            cluster.error_code = codes.pop() if codes else 0
            return cluster.metadata(asked)

        cluster.answer(MetadataRequest, answer)
        with pytest.raises(BrokerConnectionError, match="must rebootstrap"):
            await client.refresh([])
        await client.retrying(lambda: client.refresh([]))
        assert not codes


async def test_client_rebootstraps_without_metadata_for_too_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The known broker does not answer Metadata, and the bootstrap server is stopped."""
    clock = ManualClock()
    settings = replace(
        QUICK, connections_max_idle_ms=0, reconnect_backoff_ms=0, reconnect_backoff_max_ms=0
    )
    async with ScriptedBroker() as vip, scripted_cluster(1) as old, scripted_cluster(1) as new:
        serve_cluster(vip, old)
        async with Client(vip.bootstrap, settings, clock=clock) as client:
            old_connection = await client._view.connection(0, owner=caplog)
            await vip.stop()
            old.answer(MetadataRequest, lambda asked: HANG_UP)
            for waited in (0, 299_999):
                await clock.advance(waited)
                with pytest.raises(BrokerConnectionError):
                    await client.refresh([])
                assert old_connection.usable
            await clock.advance(1)
            with pytest.raises(BrokerConnectionError, match="no broker can be reached"):
                await client.refresh([])
            assert not old_connection.usable
            assert client.cluster.brokers == {}
            serve_cluster(vip, new, name="second")
            await vip.start_again()
            await client.refresh([])
            assert client.cluster.cluster_id == "second"
    assert "no metadata arrived for 300000 ms" in caplog.text
    assert "the cluster has id second, and had first" in caplog.text


async def test_trigger_of_0_keeps_connections_while_metadata_arrives() -> None:
    async with (
        scripted_cluster(1) as cluster,
        Client(cluster.bootstrap, replace(QUICK, metadata_recovery_rebootstrap_trigger_ms=0)) as it,
    ):
        connection = await it.connection()
        for _ in range(3):
            await it.refresh([])
        assert await it.connection() is connection
        assert it.metrics()["metadata"]["rebootstraps"] == 0
        cluster.answer(MetadataRequest, lambda asked: HANG_UP)
        with pytest.raises(BrokerConnectionError):
            await it.refresh([])
        cluster.answer(MetadataRequest, cluster.metadata)
        await it.refresh([])
        assert it.metrics()["metadata"]["rebootstraps"] == 1


async def test_broker_in_backoff_comes_last() -> None:
    """The broker's connection has failed; on the manual clock its backoff does not end."""
    async with ScriptedBroker() as away:
        pass
    async with ScriptedBroker() as broker:
        servers = parse_bootstrap(f"{away.bootstrap},{broker.bootstrap}")
        clock = ManualClock()
        observer = Observer(None, clock.monotonic)
        pool = ConnectionPool(servers, ClientSettings(), clock, observer)
        with pytest.raises(BrokerConnectionError):
            await pool.connection(servers[0])
        selection = BrokerSelection(servers, rebootstraps=True)
        assert (await connect_any(pool, selection, servers)).address == servers[1]
        await pool.close()


def test_invalid_recovery_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'never'; it must be 'rebootstrap' or 'none'"):
        ClientSettings(metadata_recovery_strategy="never")  # type: ignore[arg-type]  # the tested value
    with pytest.raises(ConfigurationError, match="metadata_recovery_rebootstrap_trigger_ms"):
        ClientSettings(metadata_recovery_rebootstrap_trigger_ms=-1)
