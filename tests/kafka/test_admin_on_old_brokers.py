"""Tests `Client.admin` on real brokers of old releases, each with its own ZooKeeper."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import kproto
from kproto.client.admin import AdminError, ConfigResource, ConfigResourceType
from kproto.wire.errors import UnsupportedVersionError
from tests.support.admin_calls import eventually, new_name
from tests.support.old_brokers import broker_version_of, new_topic, old_broker
from tools.kafka import KafkaNode
from tools.kafka.old_releases import has_topic_requests

__all__ = ["old_broker"]

pytestmark = pytest.mark.exhaustive


@pytest.fixture
async def client(old_broker: KafkaNode) -> AsyncIterator[kproto.Client]:
    async with kproto.Client(
        old_broker.bootstrap, broker_version=broker_version_of(old_broker)
    ) as connected:
        yield connected


def numbers(node: KafkaNode) -> tuple[int, ...]:
    return tuple(map(int, node.version.split(".")))


async def test_topics_are_created_described_and_deleted(
    old_broker: KafkaNode, client: kproto.Client
) -> None:
    admin = client.admin
    name = new_name("topic")
    if not has_topic_requests(old_broker.version):
        with pytest.raises(AdminError, match=r"is supported since Kafka 0\.10\.1\.0"):
            await admin.create_topics([kproto.NewTopic(name, 2, 1)])
        return
    found = await admin.create_topics([kproto.NewTopic(name, 2, 1)])
    assert list(found) == [name]

    async def check() -> None:
        described = (await admin.describe_topics([name]))[name]
        assert sorted(described.partitions) == [0, 1]
        assert name in await admin.list_topics()

    await eventually(check)
    await admin.delete_topics([name])


async def test_the_cluster_and_its_groups_are_described(
    old_broker: KafkaNode, client: kproto.Client
) -> None:
    admin = client.admin
    topic, group_id = await new_topic(old_broker, client), new_name("group")
    found = await admin.describe_cluster()
    assert sorted(found.brokers) == sorted(client.cluster.brokers)
    if numbers(old_broker) < (0, 9):
        with pytest.raises(AdminError, match=r"is supported since Kafka 0\.9\.0\.0"):
            await admin.list_groups()
        return
    await admin.alter_consumer_group_offsets(group_id, {(topic, 0): 0})
    offsets = await admin.list_consumer_group_offsets({group_id: [(topic, 0)]})
    assert offsets[group_id][topic, 0] == kproto.CommittedOffset(0, -1, "")
    async with client.consumer(topic, group=group_id, group_protocol="classic") as consumer:
        while not consumer.assignment:
            await consumer.poll(timeout_ms=100)
        described = (await admin.describe_consumer_groups([group_id]))[group_id]
        assert (described.state, len(described.members)) == ("Stable", 1)
        assert (topic, 0) in described.members[0].assignment
        assert group_id in {each.group_id for each in await admin.list_groups()}


async def test_configs_are_described_since_0_11(
    old_broker: KafkaNode, client: kproto.Client
) -> None:
    topic = await new_topic(old_broker, client)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    if numbers(old_broker) < (0, 11):
        with pytest.raises(AdminError) as failed:
            await client.admin.describe_configs([resource])
        error = failed.value.errors[resource]
        assert isinstance(error, UnsupportedVersionError)
        assert "since Kafka 0.11.0.0" in str(error)
        return
    found = (await client.admin.describe_configs([resource]))[resource]
    assert found["retention.ms"].value
    (node,) = client.cluster.brokers
    log_dirs = ConfigResource(ConfigResourceType.BROKER, str(node))
    assert "log.dirs" in (await client.admin.describe_configs([log_dirs]))[log_dirs]
    if numbers(old_broker) < (2, 3):
        with pytest.raises(AdminError, match=r"is supported since Kafka 2\.3\.0"):
            await client.admin.incremental_alter_configs({resource: {"retention.ms": "1"}})
    else:
        await client.admin.incremental_alter_configs({resource: {"retention.ms": "1"}})
