"""Tests the consumer on an embedded cluster whose leaders move, stop and truncate their logs."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from dataclasses import replace

import pytest

from kproto import Client, LogTruncatedError
from kproto.broker import BrokerSettings, Cluster, SilentConnection
from kproto.messages import FetchRequest, MetadataRequest
from tests.support.selection import rest_slow
from tests.unit.client.scripted_broker import quick

QUICK = quick(metadata_wait_ms=2000, delivery_timeout_ms=10_000)


@pytest.mark.parametrize("seed", rest_slow(range(4), 1))
async def test_each_record_is_read_once_while_leaders_move_and_stop(seed: int) -> None:
    chance = random.Random(seed)
    partitions = [("t", at) for at in range(6)]
    seen: dict[int, list[int]] = {at: [] for _, at in partitions}
    async with (
        Cluster(brokers=3) as cluster,
        Client(cluster.bootstrap, QUICK) as client,
        Client(cluster.bootstrap, QUICK) as writing,
    ):
        cluster.create_topic("t", partitions=len(partitions), replication_factor=3)
        ends = dict.fromkeys(seen, 0)
        stopped: int | None = None

        async def read() -> None:
            async with client.consumer("t", max_wait_ms=5) as consumer:
                async for record in consumer:
                    seen[record.partition].append(int(record.value or b""))

        reading = asyncio.create_task(read())
        async with writing.producer() as producer:
            for _ in range(60):
                for _ in range(chance.randrange(4)):
                    at = chance.randrange(len(partitions))
                    await producer.send("t", b"%d" % ends[at], partition=at)
                    ends[at] += 1
                fate = chance.random()
                if fate < 0.3:
                    running = [node for node in cluster.nodes if node != stopped]
                    cluster.move_leader(
                        "t", chance.randrange(len(partitions)), chance.choice(running)
                    )
                elif fate < 0.4 and stopped is None:
                    stopped = chance.choice(cluster.nodes)
                    await cluster.stop_broker(stopped)
                elif fate < 0.6 and stopped is not None:
                    await cluster.start_broker(stopped)
                    stopped = None
        while sum(map(len, seen.values())) < sum(ends.values()):  # noqa: ASYNC110 - a count
            await asyncio.sleep(0.005)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
    assert seen == {at: list(range(end)) for at, end in ends.items()}


async def test_leader_that_answers_no_fetch_is_not_asked_for_the_new_leader() -> None:
    """Only the shared connection to the leader is open, and this connection has no failure."""
    asked: list[object] = []
    async with Cluster(brokers=3) as cluster:
        cluster.create_topic("t", partitions=1, replication_factor=3)
        leader = cluster.leader("t")
        settings = replace(QUICK, request_timeout_ms=500)
        async with (
            Client(cluster.broker(leader).bootstrap, settings) as client,
            Client(cluster.bootstrap, QUICK) as writing,
            writing.producer() as producer,
        ):
            records = aiter(client.consumer("t", max_wait_ms=5))
            await producer.send("t", b"a")
            assert (await anext(records)).value == b"a"
            cluster.control(SilentConnection(), request=FetchRequest, node=leader)
            reading = asyncio.ensure_future(anext(records))
            await asyncio.sleep(0.1)  # the leader has a fetch, and does not answer it
            cluster.move_leader("t", 0, leader % 3 + 1)
            await producer.send("t", b"b")
            cluster.control(asked.append, request=MetadataRequest, node=leader)
            assert (await reading).value == b"b"
    assert asked == []


async def test_truncation_is_logged_or_raised(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        Cluster(brokers=3) as cluster,
        Client(cluster.bootstrap, QUICK) as client,
    ):
        cluster.create_topic("t", partitions=1, replication_factor=3)
        async with client.producer() as producer:
            for value in (b"a", b"b", b"c", b"d"):
                await producer.send("t", value)
        async with (
            client.consumer("t", max_wait_ms=5) as resetting,
            client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as exact,
        ):
            readers = [aiter(resetting), aiter(exact)]
            for reader in readers:
                assert [(await anext(reader)).value for _ in range(4)] == [b"a", b"b", b"c", b"d"]
            cluster.truncate("t", 0, 2)
            async with Client(cluster.bootstrap, QUICK) as other, other.producer() as producer:
                await producer.send("t", b"C")
            with caplog.at_level(logging.WARNING, "kproto.client"):
                assert (await anext(readers[0])).value == b"C"
            assert "offsets 2 to 3, which were returned, are gone" in caplog.text
            with pytest.raises(LogTruncatedError) as raised:
                await anext(readers[1])
            assert (raised.value.position, raised.value.diverging_offset) == (4, 2)


async def test_consumer_fetches_from_the_replica_of_its_rack() -> None:
    settings = BrokerSettings(replica_selector="RackAwareReplicaSelector")
    async with Cluster(brokers=3, racks=("a", "b", "c"), settings=settings) as cluster:
        cluster.create_topic("t", partitions=3, replication_factor=3)
        near = cluster.nodes[2]
        async with Client(cluster.bootstrap, replace(QUICK, rack="c")) as client:
            async with client.producer() as producer:
                for at in range(3):
                    await producer.send("t", b"%d" % at, partition=at)
            async with client.consumer("t", max_wait_ms=5) as consumer:
                records = aiter(consumer)
                assert {(await anext(records)).value for _ in range(3)} == {b"0", b"1", b"2"}
                replicas = {
                    state.preferred_replica for state in consumer._subscriptions.partitions.values()
                }
                assert near in replicas
                assert replicas <= {near, None}
