"""Tests `Client.admin` on real brokers of both releases, and on the embedded broker.

An operation that the embedded broker does not answer runs on real brokers only.
"""

from __future__ import annotations

from typing import Literal

import pytest

import kproto
from kproto.client.admin.configs import (
    AlterConfigOp,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
)
from kproto.client.admin.errors import AdminError
from kproto.client.admin.groups import MemberToRemove
from kproto.client.admin.offsets import OffsetSpec
from kproto.client.admin.topic_changes import NewPartitions
from kproto.messages import CreatePartitionsRequest
from kproto.wire.errors import UnsupportedVersionError
from kproto.wire.uuid import Uuid
from tests.support.admin_calls import error_names, eventually, new_name, skip_unanswered
from tests.support.any_broker import EMBEDDED


@pytest.fixture
def real_version(broker_version: str) -> str:
    if broker_version == EMBEDDED:
        pytest.skip("the embedded broker lacks documentation, or types of configs")
    return broker_version


# Topics


async def test_created_topics_are_described_by_name_and_id_until_they_are_deleted(
    client: kproto.Client,
) -> None:
    admin = client.admin
    one, two = new_name("one"), new_name("two")
    created = await admin.create_topics(
        [one, kproto.NewTopic(two, 3, 1, {"retention.ms": "1000000"})]
    )
    assert created[two].partitions == 3
    assert created[two].replication_factor == 1
    configs = created[two].configs
    assert configs is not None
    assert configs["retention.ms"].value == "1000000"
    for name in (one, two):
        await client.topic(name)  # waits until the broker has the topic in its metadata
    listed = await admin.list_topics()
    assert listed[one].topic_id == created[one].topic_id
    assert not listed[one].is_internal
    topic_id = created[two].topic_id
    described = await admin.describe_topics([one, topic_id])
    assert described[topic_id].name == two
    assert sorted(described[topic_id].partitions) == [0, 1, 2]
    assert described[one].topic_id == created[one].topic_id
    assert described[one].authorized_operations is None
    await admin.delete_topics([one, topic_id])

    async def check() -> None:
        with pytest.raises(AdminError) as refused:
            await admin.describe_topics([one, topic_id])
        assert error_names(refused.value) == {
            one: "UNKNOWN_TOPIC_OR_PARTITION",
            topic_id: "UNKNOWN_TOPIC_ID",
        }

    await eventually(check)


async def test_a_failed_topic_hides_no_created_topic(client: kproto.Client) -> None:
    admin = client.admin
    one, two = new_name("one"), new_name("two")
    await admin.create_topics([one])
    with pytest.raises(AdminError, match=f"1 of 2 failed: '{one}': TOPIC_ALREADY_EXISTS") as failed:
        await admin.create_topics([one, two])
    assert list(failed.value.results) == [two]
    assert error_names(failed.value) == {one: "TOPIC_ALREADY_EXISTS"}
    assert not failed.value.unknown
    await admin.delete_topics([one, two])


async def test_validated_topics_are_not_created(client: kproto.Client) -> None:
    name = new_name("validated")
    found = await client.admin.create_topics([kproto.NewTopic(name, 2, 1)], validate_only=True)
    assert found[name].partitions == 2
    assert name not in await client.admin.list_topics()


async def test_topics_are_created_with_assignments(client: kproto.Client) -> None:
    name = new_name("assigned")
    (node,) = client.cluster.brokers
    topic = kproto.NewTopic(name, assignments={0: [node], 1: [node]})
    await client.admin.create_topics([topic])
    await client.topic(name)
    found = (await client.admin.describe_topics([name]))[name]
    assert {at: each.replicas for at, each in found.partitions.items()} == {0: (node,), 1: (node,)}
    await client.admin.delete_topics([name])


async def test_authorized_operations_of_topics_are_described(
    client: kproto.Client, topic: str
) -> None:
    found = await client.admin.describe_topics([topic], include_authorized_operations=True)
    operations = found[topic].authorized_operations
    assert operations is not None
    assert {"READ", "WRITE", "DESCRIBE", "ALTER"} <= {each.name for each in operations}


async def test_pages_of_partitions_are_merged(client: kproto.Client) -> None:
    names = [new_name(f"pages-{at}") for at in range(3)]
    await client.admin.create_topics([kproto.NewTopic(name, 5, 1) for name in names])
    for name in names:
        await client.topic(name)
    found = await client.admin.describe_topics(names, partition_size_limit_per_response=4)
    assert {name: sorted(each.partitions) for name, each in found.items()} == {
        name: list(range(5)) for name in names
    }
    await client.admin.delete_topics(names)


async def test_internal_topics_are_listed_on_demand(client: kproto.Client, topic: str) -> None:
    await client.commit_offsets(new_name("group"), {(topic, 0): 0})
    everything = await client.admin.list_topics(list_internal=True)
    if "__consumer_offsets" in everything:  # the embedded broker stores offsets without a topic
        assert everything["__consumer_offsets"].is_internal
    assert "__consumer_offsets" not in await client.admin.list_topics()


async def test_partitions_are_added(client: kproto.Client, topic: str) -> None:
    await skip_unanswered(client, CreatePartitionsRequest)
    admin = client.admin
    (node,) = client.cluster.brokers
    await admin.create_partitions({topic: 5}, validate_only=True)
    await admin.create_partitions({topic: 4})
    await admin.create_partitions({topic: NewPartitions(5, [[node]])})
    with pytest.raises(AdminError) as refused:
        await admin.create_partitions({topic: 2, "absent": 2})
    assert error_names(refused.value) == {
        topic: "INVALID_PARTITIONS",
        "absent": "UNKNOWN_TOPIC_OR_PARTITION",
    }

    async def check() -> None:
        assert len((await admin.describe_topics([topic]))[topic].partitions) == 5

    await eventually(check)


async def test_deleted_records_move_the_log_start(client: kproto.Client, topic: str) -> None:
    async with client.producer() as producer:
        for at in range(10):
            await producer.send(topic, b"%d" % at, partition=at % 2)
    found = await client.admin.delete_records({(topic, 0): 3, (topic, 1): -1})
    assert found == {(topic, 0): 3, (topic, 1): 5}
    with pytest.raises(AdminError) as refused:
        await client.admin.delete_records({(topic, 0): 4, (topic, 1): 99})
    assert refused.value.results == {(topic, 0): 4}
    assert error_names(refused.value) == {(topic, 1): "OFFSET_OUT_OF_RANGE"}


# Configs


async def test_configs_of_topics_are_altered_and_described(
    client: kproto.Client, topic: str, real_version: str
) -> None:
    admin = client.admin
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    absent = ConfigResource(ConfigResourceType.TOPIC, "absent")
    await admin.incremental_alter_configs(
        {resource: {"retention.ms": "5000", "cleanup.policy": "compact"}}
    )
    await admin.incremental_alter_configs(
        {
            resource: [
                AlterConfigOp("cleanup.policy", "delete", ConfigOpType.APPEND),
                AlterConfigOp("retention.ms", op=ConfigOpType.DELETE),
            ]
        }
    )
    await admin.incremental_alter_configs({resource: {"retention.ms": "1"}}, validate_only=True)

    async def check_altered() -> None:
        found = (await admin.describe_configs([resource], include_synonyms=True))[resource]
        policy = found["cleanup.policy"]
        assert policy.value == "compact,delete"
        assert policy.source is ConfigSource.TOPIC
        assert policy.synonyms[0].value == "compact,delete"
        assert found["retention.ms"].source is not ConfigSource.TOPIC

    await eventually(check_altered)
    await admin.incremental_alter_configs(
        {resource: [AlterConfigOp("cleanup.policy", "compact", ConfigOpType.SUBTRACT)]}
    )

    async def check_subtracted() -> None:
        described = await admin.describe_configs(
            [resource], names=["cleanup.policy"], include_documentation=True
        )
        assert list(described[resource]) == ["cleanup.policy"]
        assert described[resource]["cleanup.policy"].value == "delete"
        assert described[resource]["cleanup.policy"].documentation

    await eventually(check_subtracted)
    with pytest.raises(AdminError) as refused:
        await admin.describe_configs([resource, absent])
    assert list(refused.value.results) == [resource]
    assert error_names(refused.value) == {absent: "UNKNOWN_TOPIC_OR_PARTITION"}


async def test_configs_of_brokers_loggers_groups_and_client_metrics_are_altered(
    client: kproto.Client, real_version: str
) -> None:
    admin = client.admin
    (node,) = client.cluster.brokers
    kind = ConfigResourceType
    broker = ConfigResource(kind.BROKER, str(node))
    every_broker = ConfigResource(kind.BROKER, "")
    logger = ConfigResource(kind.BROKER_LOGGER, str(node))
    metrics = ConfigResource(kind.CLIENT_METRICS, new_name("metrics"))
    group = ConfigResource(kind.GROUP, new_name("group"))
    session_ms = "consumer.session.timeout.ms"
    # The nodes of 3.9 run without the library that has the loggers.
    loggers = {} if real_version.startswith("3.") else await admin.describe_configs([logger])
    if loggers:
        name = next(iter(loggers[logger]))
        await admin.incremental_alter_configs({logger: {name: "WARN"}})
        assert (await admin.describe_configs([logger]))[logger][name].value == "WARN"
    await admin.incremental_alter_configs(
        {
            broker: {"log.cleaner.threads": "2"},
            every_broker: {"message.max.bytes": "1048600"},
            metrics: {"interval.ms": "20000"},
        }
    )

    async def check() -> None:
        found = await admin.describe_configs([broker, every_broker, metrics])
        assert found[broker]["log.cleaner.threads"].source is ConfigSource.DYNAMIC_BROKER
        assert found[broker]["message.max.bytes"].value == "1048600"
        assert (
            found[every_broker]["message.max.bytes"].source is ConfigSource.DYNAMIC_DEFAULT_BROKER
        )
        assert found[metrics]["interval.ms"].value == "20000"
        assert metrics.name in await admin.list_client_metrics_resources()

    await eventually(check)
    if real_version.startswith("3."):
        with pytest.raises(UnsupportedVersionError, match=r"is supported since Kafka 4\.1\.0"):
            await admin.list_config_resources()
    else:
        await admin.incremental_alter_configs({group: {session_ms: "50000"}})

        async def check_group() -> None:
            configs = (await admin.describe_configs([group]))[group]
            assert configs[session_ms].source is ConfigSource.GROUP
            assert {broker, metrics, group} <= set(await admin.list_config_resources())

        await eventually(check_group)
        assert await admin.list_config_resources([kind.GROUP]) == [group]
        await admin.incremental_alter_configs({group: {session_ms: None}})
    await admin.incremental_alter_configs(
        {
            broker: {"log.cleaner.threads": None},
            every_broker: {"message.max.bytes": None},
            metrics: {"interval.ms": None},
        }
    )


async def test_a_secret_config_is_hidden_in_texts(client: kproto.Client) -> None:
    assert "hunter2" not in repr(AlterConfigOp("ssl.keystore.password", "hunter2"))


# Groups


async def test_groups_with_members_are_listed_described_and_deleted(
    client: kproto.Client, topic: str, broker_version: str
) -> None:
    admin = client.admin
    group_id = new_name("group")
    protocols: list[Literal["classic", "consumer"]]
    protocols = ["classic"] if broker_version.startswith("3.") else ["classic", "consumer"]
    for protocol in protocols:
        async with client.consumer(
            topic, group=group_id, instance_id="one", group_protocol=protocol
        ) as consumer:
            await consumer.poll(timeout_ms=100)
            while not consumer.assignment:
                await consumer.poll(timeout_ms=100)
            described = (await admin.describe_consumer_groups([group_id]))[group_id]
            assert described.type.lower() == protocol
            assert described.state == "Stable"
            assert described.coordinator in client.cluster.brokers
            (member,) = described.members
            assert sorted(member.assignment) == [(topic, at) for at in range(3)]
            assert member.instance_id == "one"
            if protocol == "consumer":
                assert member.subscribed_topics == (topic,)
                assert sorted(member.target_assignment or ()) == sorted(member.assignment)
            else:
                classic = (await admin.describe_classic_groups([group_id]))[group_id]
                assert classic.protocol_type == "consumer"
                assert classic.members[0].partitions == member.assignment
            listed = {each.group_id: each for each in await admin.list_groups()}
            assert listed[group_id].protocol_type == "consumer"
            stable = await admin.list_consumer_groups(states=["Stable"])
            assert group_id in {each.group_id for each in stable}
            assert group_id not in {
                each.group_id for each in await admin.list_groups(states=["Dead"])
            }
            with pytest.raises(AdminError) as refused:
                await admin.delete_consumer_groups([group_id])
            assert error_names(refused.value) == {group_id: "NON_EMPTY_GROUP"}
        removed = await admin.remove_members_from_consumer_group(group_id, ["one"], reason="test")
        assert removed == [MemberToRemove("one")]
        with pytest.raises(AdminError) as unknown:
            await admin.remove_members_from_consumer_group(group_id, ["two"])
        assert error_names(unknown.value) == {MemberToRemove("two"): "UNKNOWN_MEMBER_ID"}
        assert (await admin.describe_consumer_groups([group_id]))[group_id].state == "Empty"
        await admin.delete_consumer_groups([group_id])
    with pytest.raises(AdminError) as gone:
        await admin.describe_consumer_groups([group_id])
    assert error_names(gone.value) == {group_id: "GROUP_ID_NOT_FOUND"}
    with pytest.raises(AdminError) as gone:
        await admin.delete_consumer_groups([group_id])
    assert error_names(gone.value) == {group_id: "GROUP_ID_NOT_FOUND"}


async def test_every_member_is_removed_without_names(client: kproto.Client, topic: str) -> None:
    group_id = new_name("group")
    async with client.consumer(
        topic, group=group_id, group_protocol="classic", leave=False
    ) as consumer:
        while not consumer.assignment:
            await consumer.poll(timeout_ms=100)
    admin = client.admin
    (removed,) = await admin.remove_members_from_consumer_group(group_id)
    assert removed.member_id
    assert (await admin.describe_consumer_groups([group_id]))[group_id].members == ()


async def test_offsets_of_groups_are_altered_listed_and_deleted(
    client: kproto.Client, topic: str
) -> None:
    admin = client.admin
    one, two = new_name("one"), new_name("two")
    async with client.producer() as producer:
        await producer.send_many(topic, [kproto.ProducerRecord(b"x", partition=0)] * 10)
    await admin.alter_consumer_group_offsets(
        one, {(topic, 0): 4, (topic, 1): kproto.CommittedOffset(0, -1, "note")}
    )
    await client.commit_offsets(two, {(topic, 0): 7})
    found = await admin.list_consumer_group_offsets([one, two])
    assert {
        group: {tp: its and its.offset for tp, its in each.items()} for group, each in found.items()
    } == {
        one: {(topic, 0): 4, (topic, 1): 0},
        two: {(topic, 0): 7},
    }
    assert found[one][topic, 1] == kproto.CommittedOffset(0, -1, "note")
    assert found[two][topic, 0] == kproto.CommittedOffset(7, -1, "")
    some = await admin.list_consumer_group_offsets(
        {one: [(topic, 0), (topic, 2)], two: None}, require_stable=True
    )
    assert some[one][topic, 2] is None
    assert some[one][topic, 0] == kproto.CommittedOffset(4, -1, "")
    lag = await admin.consumer_group_lag(one)
    assert lag[topic, 0][1:] == (0, 10, 6)
    assert lag[topic, 1].lag == 0
    assert (await admin.consumer_group_lag(one, [(topic, 2)]))[topic, 2].lag is None
    await admin.delete_consumer_group_offsets(one, [(topic, 0)])
    assert list((await admin.list_consumer_group_offsets([one]))[one]) == [(topic, 1)]
    await admin.delete_consumer_groups([one, two])


async def test_offsets_of_a_group_with_members_are_not_altered(
    client: kproto.Client, topic: str
) -> None:
    group_id = new_name("group")
    async with client.consumer(topic, group=group_id) as consumer:
        while not consumer.assignment:
            await consumer.poll(timeout_ms=100)
        with pytest.raises(AdminError) as refused:
            await client.admin.alter_consumer_group_offsets(
                group_id, {(topic, 0): 1, (topic, 1): 2}
            )
        assert set(error_names(refused.value).values()) == {"UNKNOWN_MEMBER_ID"}
        with pytest.raises(AdminError) as used:
            await client.admin.delete_consumer_group_offsets(group_id, [(topic, 0)])
        assert error_names(used.value) == {(topic, 0): "GROUP_SUBSCRIBED_TO_TOPIC"}


# Offsets


async def test_offsets_are_listed_by_time_and_kind(
    client: kproto.Client, topic: str, broker_version: str
) -> None:
    async with client.producer() as producer:
        for at, time in enumerate((1_000, 3_000, 2_000)):
            await producer.send(topic, b"%d" % at, partition=0, timestamp=time)
    tp = (topic, 0)
    kinds: list[OffsetSpec]
    kinds = ["earliest", "latest", "max_timestamp", "earliest_local", "latest_tiered", 1_500, 4_000]
    found = {kind: (await client.admin.list_offsets({tp: kind}))[tp] for kind in kinds}
    assert {kind: each[:2] for kind, each in found.items()} == {
        "earliest": (0, -1),
        "latest": (3, -1),
        "max_timestamp": (1, 3_000),
        "earliest_local": (0, -1),
        "latest_tiered": (-1, -1),
        1_500: (1, 3_000),
        4_000: (-1, -1),
    }
    with pytest.raises(AdminError) as failed:
        await client.admin.list_offsets({tp: "earliest", (topic, 9): "latest"})
    assert failed.value.results[tp].offset == 0
    assert error_names(failed.value) == {(topic, 9): "UNKNOWN_TOPIC_OR_PARTITION"}
    if broker_version.startswith("3."):
        with pytest.raises(AdminError, match=r"is supported since Kafka 4\.2"):
            await client.admin.list_offsets({tp: "earliest_pending_upload"})


async def test_unknown_ids_of_topics_are_refused(client: kproto.Client) -> None:
    absent = Uuid.random()
    with pytest.raises(AdminError) as refused:
        await client.admin.delete_topics([absent])
    assert error_names(refused.value) == {absent: "UNKNOWN_TOPIC_ID"}
