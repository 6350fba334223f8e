"""Tests the compaction of topics, as clients see it."""

from __future__ import annotations

import pytest

from kproto import AdminError, Client, CommittedOffset, DeliveryError
from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from kproto.testing.clock import ManualClock

MINUTE_MS = 60_000
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
OFFSETS = ConfigResource(ConfigResourceType.TOPIC, "__consumer_offsets")
BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
COMPACTED = {"cleanup.policy": "compact", "segment.ms": str(MINUTE_MS)}


async def written(client: Client, clock: ManualClock, *pairs: tuple[bytes, bytes | None]) -> None:
    """Writes a batch for each record; each batch is in another segment."""
    async with client.producer() as producer:
        for key, value in pairs:
            await clock.advance(2 * MINUTE_MS)
            await producer.send("t", value, key=key, timestamp=clock.now_ms())


async def test_consumer_reads_compacted_topic_after_clock_has_passed() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs={**COMPACTED, "min.cleanable.dirty.ratio": "1"})
        await written(client, clock, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"))
        assert [record.offset for record in broker.records("t")] == [0, 1, 2, 3]
        await client.admin.incremental_alter_configs({TOPIC: {"min.cleanable.dirty.ratio": "0.5"}})
        await clock.advance(14_999)
        assert [record.offset for record in broker.records("t")] == [0, 1, 2, 3]
        await clock.advance(1)
        found = [record async for record in client.consumer("t", stop_at_end=True)]
        assert [(it.offset, it.key, it.value) for it in found] == [
            (1, b"b", b"1"),
            (2, b"a", b"2"),
            (3, b"c", b"1"),
        ]
        assert broker.end_offset("t") == 4


async def test_dynamic_cleaner_backoff_takes_effect() -> None:
    clock = ManualClock()
    settings = BrokerSettings(log_cleaner_backoff_ms=10_000_000)
    async with Broker(settings, clock=clock) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs=COMPACTED)
        await written(client, clock, (b"a", b"1"), (b"a", b"2"), (b"a", b"3"))
        assert len(broker.records("t")) == 3
        await client.admin.incremental_alter_configs({BROKERS: {"log.cleaner.backoff.ms": "0"}})
        assert [record.offset for record in broker.records("t")] == [1, 2]


async def test_compacted_and_deleted_topic_loses_old_records() -> None:
    clock = ManualClock()
    async with Broker(clock=clock) as broker, Client(broker.bootstrap) as client:
        policy = {"cleanup.policy": "compact,delete", "retention.ms": str(5 * MINUTE_MS)}
        broker.create_topic("t", configs={**COMPACTED, **policy})
        await written(client, clock, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"a", b"3"))
        assert [record.offset for record in broker.records("t")] == [1, 2, 3]
        await clock.advance(2 * MINUTE_MS)
        assert [record.offset for record in broker.records("t")] == [2, 3]


async def test_new_coordinator_loads_compacted_offsets() -> None:
    clock = ManualClock()
    settings = BrokerSettings(offsets_topic_num_partitions=1)
    async with (
        Cluster(2, settings=settings, clock=clock) as cluster,
        Client(cluster.bootstrap) as client,
    ):
        cluster.create_topic("t")
        name = OFFSETS.name
        await client.admin.alter_consumer_group_offsets("g", {("t", 0): 1})
        changed = {"segment.ms": str(MINUTE_MS), "min.cleanable.dirty.ratio": "0"}
        await client.admin.incremental_alter_configs({OFFSETS: changed})
        for number in (2, 3, 4):
            await clock.advance(2 * MINUTE_MS)
            await client.admin.alter_consumer_group_offsets("g", {("t", 0): number})
        assert len(cluster.records(name)) < cluster.end_offset(name)
        cluster.move_leader(name, 0, 3 - cluster.leader(name))
        found = await client.admin.list_consumer_group_offsets(["g"])
        assert found["g"]["t", 0] == CommittedOffset(4, -1, "")


async def test_record_without_key_is_refused() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", configs=COMPACTED)
        async with client.producer() as producer:
            with pytest.raises(DeliveryError, match="INVALID_RECORD"):
                await producer.send("t", b"v")
        with pytest.raises(AdminError, match="POLICY_VIOLATION"):
            await client.admin.delete_records({("t", 0): 0})
