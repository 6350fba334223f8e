"""Tests `Client.admin` on clusters of three brokers: replicas, leaders and lost brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import kproto
from kproto.client.admin import (
    AdminError,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    PartitionReassignment,
)
from tests.support.admin_calls import error_names, eventually, new_name
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tools.kafka import VERSIONS, KafkaCluster

pytestmark = pytest.mark.exhaustive

QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
SETTINGS = kproto.ClientSettings(retry_backoff_ms=20, retry_backoff_max_ms=200)


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    try:
        with KafkaCluster(request.param, nodes=3, config=QUICK) as running:
            yield running
    except CANNOT_START as error:
        not_available(f"a cluster of Kafka {request.param}", error)


async def test_calls_for_many_brokers_are_split_and_merged(cluster: KafkaCluster) -> None:
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        admin = client.admin
        name = new_name("topic")
        await admin.create_topics([kproto.NewTopic(name, 6, 3)])
        await client.topic(name)
        tps = [(name, at) for at in range(6)]
        async with client.producer() as producer:
            for topic, partition in tps:
                await producer.send_many(
                    topic, [kproto.ProducerRecord(b"x", partition=partition)] * 3
                )
        ends = await admin.list_offsets(dict.fromkeys(tps, "latest"))
        assert {tp: end.offset for tp, end in ends.items()} == dict.fromkeys(tps, 3)
        assert await admin.delete_records(dict.fromkeys(tps, 2)) == dict.fromkeys(tps, 2)
        producers = await admin.describe_producers(tps)
        assert all(len(each) == 1 for each in producers.values())
        brokers = [ConfigResource(ConfigResourceType.BROKER, str(at)) for at in (1, 2, 3)]
        resources = [*brokers, ConfigResource(ConfigResourceType.TOPIC, name)]
        configs = await admin.describe_configs(resources)
        assert [configs[each]["node.id"].value for each in brokers] == ["1", "2", "3"]
        groups = [new_name(f"group-{at}") for at in range(6)]
        for group in groups:
            await admin.alter_consumer_group_offsets(group, {(name, 0): 2})
        offsets = await admin.list_consumer_group_offsets(groups)
        assert list(offsets) == groups
        assert {each.group_id for each in await admin.list_groups()} >= set(groups)
        described = await admin.describe_consumer_groups([*groups, *groups])
        assert list(described) == groups
        with pytest.raises(AdminError) as failed:
            await admin.delete_consumer_groups([*groups, "absent"])
        assert list(failed.value.results) == groups
        assert error_names(failed.value) == {"absent": "GROUP_ID_NOT_FOUND"}
        log_dirs = await admin.describe_log_dirs()
        assert sorted(log_dirs) == [1, 2, 3]
        await admin.delete_topics([name])


async def test_partitions_are_reassigned_and_preferred_leaders_elected(
    cluster: KafkaCluster,
) -> None:
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        admin = client.admin
        name = new_name("topic")
        tp, other = (name, 0), (name, 1)
        await admin.create_topics([kproto.NewTopic(name, assignments={0: [1, 2], 1: [2, 3]})])
        await client.topic(name)
        await admin.alter_partition_reassignments({tp: [3, 2, 1]})

        async def moved() -> None:
            assert await admin.list_partition_reassignments([tp, other]) == {}
            found = (await admin.describe_topics([name]))[name].partitions[0]
            assert found.replicas == (3, 2, 1)
            assert sorted(found.in_sync) == [1, 2, 3]

        await eventually(moved)
        with pytest.raises(AdminError) as refused:
            await admin.alter_partition_reassignments({tp: None, other: [99]})
        assert error_names(refused.value) == {
            tp: "NO_REASSIGNMENT_IN_PROGRESS",
            other: "INVALID_REPLICA_ASSIGNMENT",
        }
        await admin.elect_leaders(ElectionType.PREFERRED, [tp])
        assert await admin.elect_leaders(ElectionType.PREFERRED, [tp, other]) == {
            tp: False,
            other: False,
        }
        with pytest.raises(AdminError) as unknown:
            await admin.elect_leaders(ElectionType.PREFERRED, [tp, (name, 9)])
        assert error_names(unknown.value) == {(name, 9): "UNKNOWN_TOPIC_OR_PARTITION"}

        async def led() -> None:
            assert (await admin.describe_topics([name]))[name].partitions[0].leader == 3

        await eventually(led)
        assert isinstance(await admin.elect_leaders(ElectionType.PREFERRED), dict)
        await admin.delete_topics([name])


async def test_a_lost_broker_is_fenced_delays_its_reassignment_and_is_unregistered(
    cluster: KafkaCluster,
) -> None:
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        admin = client.admin
        name = new_name("topic")
        tp = (name, 0)
        await admin.create_topics([kproto.NewTopic(name, assignments={0: [3, 2]})])
        await client.topic(name)
        await asyncio.to_thread(cluster.node(3).kill)
        try:

            async def lost() -> None:
                assert sorted((await admin.describe_cluster()).brokers) == [1, 2]
                assert (await admin.describe_topics([name]))[name].partitions[0].leader == 2

            await eventually(lost)
            if cluster.version.startswith("4."):
                found = await admin.describe_cluster(include_fenced_brokers=True)
                assert [at for at, each in found.brokers.items() if each.is_fenced] == [3]
            with pytest.raises(AdminError) as refused:
                await admin.elect_leaders(ElectionType.PREFERRED, [tp])
            assert error_names(refused.value) == {tp: "PREFERRED_LEADER_NOT_AVAILABLE"}
            assert await admin.elect_leaders(ElectionType.UNCLEAN, [tp]) == {tp: False}
            await admin.alter_partition_reassignments({tp: [1, 3]})
            assert await admin.list_partition_reassignments() == {
                tp: PartitionReassignment((1, 3, 2), (1,), (2,))
            }
            await admin.alter_partition_reassignments({tp: None})
            assert await admin.list_partition_reassignments() == {}
            with pytest.raises(AdminError) as absent:
                await admin.describe_log_dirs([1, 3], timeout_ms=1_000)
            assert list(absent.value.results) == [1]
            assert list(absent.value.errors) == [3]
            quorum = await admin.describe_metadata_quorum()
            assert sorted(each.replica_id for each in quorum.voters) == [1, 2, 3]
            assert quorum.leader_id in {1, 2}
            await admin.unregister_broker(3)
            with pytest.raises(kproto.BrokerResponseError, match="BROKER_ID_NOT_REGISTERED"):
                await admin.unregister_broker(3)
        finally:
            await asyncio.to_thread(cluster.node(3).start)
            await asyncio.to_thread(cluster.wait_for_all)
        await admin.delete_topics([name])


async def test_calls_survive_the_loss_of_the_controller(cluster: KafkaCluster) -> None:
    async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
        admin = client.admin
        leader = (await admin.describe_metadata_quorum()).leader_id
        await asyncio.to_thread(cluster.node(leader).kill)
        try:
            names = [new_name(f"topic-{at}") for at in range(3)]
            try:
                created = set(await admin.create_topics(names))
            except AdminError as error:  # an attempt whose response was lost
                created = {*error.results, *error.unknown}
            assert created == set(names)
            for name in names:
                await client.topic(name)
            await admin.delete_topics(names)
        finally:
            await asyncio.to_thread(cluster.node(leader).start)
            await asyncio.to_thread(cluster.wait_for_all)
