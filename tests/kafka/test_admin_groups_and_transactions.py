"""Tests `Client.admin` for transactions, share groups, streams groups and the cluster."""

from __future__ import annotations

import asyncio

import pytest

import kproto
from kproto.client.admin import (
    AbortTransactionSpec,
    AdminError,
    FeatureUpdate,
    RaftVoterEndpoint,
    TopicPartitionReplica,
    UpgradeType,
)
from kproto.messages import (
    AddRaftVoterRequest,
    AlterReplicaLogDirsRequest,
    AlterShareGroupOffsetsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)
from kproto.messages.streams_group_heartbeat_request import Subtopology, Topology
from kproto.protocol.error_codes import raise_for_code
from kproto.wire.errors import UnsupportedVersionError
from kproto.wire.uuid import Uuid
from tests.support.admin_calls import error_names, eventually, new_name, skip_unanswered
from tests.support.any_broker import EMBEDDED


async def open_transaction(client: kproto.Client, topic: str, transactional_id: str) -> None:
    """Writes a record in a transaction, and leaves the transaction open."""
    async with (
        client.producer(transactional_id=transactional_id) as producer,
        producer.transaction() as transaction,
    ):
        await producer.send(topic, b"x", partition=1)
        await transaction.leave_open()


# Transactions


async def test_open_transactions_are_listed_described_and_fenced(
    client: kproto.Client, topic: str, broker_version: str
) -> None:
    admin = client.admin
    transactional_id = new_name("id")
    await open_transaction(client, topic, transactional_id)
    listed = {each.transactional_id: each for each in await admin.list_transactions()}
    assert listed[transactional_id].state == "Ongoing"
    producer_id = listed[transactional_id].producer_id
    by_filter = await admin.list_transactions(states=["Ongoing"], producer_ids=[producer_id])
    assert by_filter == [listed[transactional_id]]
    described = (await admin.describe_transactions([transactional_id]))[transactional_id]
    assert described.partitions == ((topic, 1),)
    assert listed[transactional_id].coordinator == described.coordinator
    assert described.state == "Ongoing"
    assert described.producer_id == producer_id
    assert described.started_ms is not None
    assert described.coordinator in client.cluster.brokers
    with pytest.raises(AdminError) as unknown:
        await admin.describe_transactions([transactional_id, "absent"])
    assert list(unknown.value.results) == [transactional_id]
    assert error_names(unknown.value) == {"absent": "TRANSACTIONAL_ID_NOT_FOUND"}
    fenced = await admin.fence_producers([transactional_id])
    assert fenced[transactional_id].producer_id >= 0
    ended = (await admin.describe_transactions([transactional_id]))[transactional_id]
    assert ended.state in {"CompleteAbort", "Empty"}
    await admin.force_terminate_transaction(transactional_id)


async def test_transactions_are_filtered_by_duration_and_pattern(
    client: kproto.Client, topic: str, broker_version: str
) -> None:
    admin = client.admin
    transactional_id = new_name("id")
    await open_transaction(client, topic, transactional_id)
    old = await admin.list_transactions(running_longer_than_ms=3_600_000)
    assert transactional_id not in {each.transactional_id for each in old}
    if broker_version.startswith("3."):
        with pytest.raises(AdminError, match="pattern is supported since Kafka 4"):
            await admin.list_transactions(transactional_id_pattern="admin.*")
    else:
        found = await admin.list_transactions(transactional_id_pattern=f"{transactional_id[:-1]}.")
        assert [each.transactional_id for each in found] == [transactional_id]
    await admin.force_terminate_transaction(transactional_id)


async def test_unknown_states_of_transactions_are_refused(client: kproto.Client) -> None:
    with pytest.raises(AdminError, match="no state of transactions 'Sleeping'"):
        await client.admin.list_transactions(states=["Sleeping"])


async def test_a_hanging_transaction_is_aborted_in_its_partition(
    client: kproto.Client, topic: str
) -> None:
    admin = client.admin
    transactional_id = new_name("id")
    await open_transaction(client, topic, transactional_id)
    described = await admin.describe_producers([(topic, 0), (topic, 1)])
    assert described[topic, 0] == ()
    (state,) = described[topic, 1]
    assert state.transaction_start_offset == 0
    (node,) = client.cluster.brokers
    assert await admin.describe_producers([(topic, 1)], broker=node) == {(topic, 1): (state,)}
    spec = AbortTransactionSpec(
        topic, 1, state.producer_id, state.producer_epoch, state.coordinator_epoch or -1
    )
    await admin.abort_transaction(spec)
    (ended,) = (await admin.describe_producers([(topic, 1)]))[topic, 1]
    assert ended.transaction_start_offset is None
    assert ended.coordinator_epoch is not None
    with pytest.raises(AdminError) as unknown:
        await admin.describe_producers([(topic, 1), (topic, 9)])
    assert error_names(unknown.value) == {(topic, 9): "UNKNOWN_TOPIC_OR_PARTITION"}
    with pytest.raises(kproto.UnknownTopicOrPartitionError):
        await admin.abort_transaction(spec._replace(partition=9))


# Share groups and streams groups


async def test_share_groups_are_described_and_their_offsets_altered(
    client: kproto.Client, topic: str
) -> None:
    await skip_unanswered(client, ShareGroupHeartbeatRequest, AlterShareGroupOffsetsRequest)
    admin = client.admin
    group_id, member_id = new_name("share"), str(Uuid.random())

    async def beat(epoch: int) -> int:
        response = await client.request(
            ShareGroupHeartbeatRequest(
                group_id=group_id,
                member_id=member_id,
                member_epoch=epoch,
                subscribed_topic_names=[topic] if epoch == 0 else None,
            )
        )
        raise_for_code(response.error_code, str(response.error_message))
        return response.member_epoch

    async def heartbeat(epoch: int) -> int:
        return await client.retrying(lambda: beat(epoch))

    epoch = await heartbeat(0)
    described = (await admin.describe_share_groups([group_id]))[group_id]
    (member,) = described.members
    assert member.member_id == member_id
    assert member.subscribed_topics == (topic,)
    assert described.coordinator in client.cluster.brokers
    listed = await admin.list_groups(types=["Share"])
    assert [each.type for each in listed if each.group_id == group_id] == ["Share"]
    with pytest.raises(AdminError) as refused:
        await admin.delete_share_groups([group_id])
    assert error_names(refused.value) == {group_id: "NON_EMPTY_GROUP"}

    async def initialized() -> None:
        nonlocal epoch
        epoch = await heartbeat(epoch)
        assert sorted((await admin.list_share_group_offsets([group_id]))[group_id]) == [
            (topic, at) for at in range(3)
        ]

    await eventually(initialized)
    await heartbeat(-1)
    async with client.producer() as producer:
        await producer.send_many(topic, [kproto.ProducerRecord(b"x", partition=0)] * 5)
    await admin.alter_share_group_offsets(group_id, {(topic, 0): 2, (topic, 1): 0})
    found = (await admin.list_share_group_offsets({group_id: [(topic, 0)]}))[group_id]
    offset = found[topic, 0]
    assert offset is not None
    assert (offset.start_offset, offset.lag) == (2, 3)
    with pytest.raises(AdminError) as unknown:
        await admin.alter_share_group_offsets(group_id, {(topic, 0): 1, (topic, 9): 0})
    assert list(unknown.value.results) == [(topic, 0)]
    assert error_names(unknown.value) == {(topic, 9): "UNKNOWN_TOPIC_OR_PARTITION"}
    await admin.delete_share_group_offsets(group_id, [topic])
    await admin.delete_share_groups([group_id])
    with pytest.raises(AdminError) as gone:
        await admin.describe_share_groups([group_id])
    assert error_names(gone.value) == {group_id: "GROUP_ID_NOT_FOUND"}


async def test_streams_groups_are_described_and_their_offsets_altered(
    client: kproto.Client, topic: str
) -> None:
    await skip_unanswered(client, StreamsGroupHeartbeatRequest)
    admin = client.admin
    group_id, member_id = new_name("streams"), str(Uuid.random())

    async def beat(epoch: int) -> int:
        joins = epoch == 0
        response = await client.request(
            StreamsGroupHeartbeatRequest(
                group_id=group_id,
                member_id=member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=30_000 if joins else -1,
                topology=Topology(
                    epoch=1, subtopologies=[Subtopology(subtopology_id="0", source_topics=[topic])]
                )
                if joins
                else None,
                active_tasks=[] if joins else None,
                standby_tasks=[] if joins else None,
                warmup_tasks=[] if joins else None,
                process_id="process" if joins else None,
                client_tags=[] if joins else None,
            )
        )
        raise_for_code(response.error_code, str(response.error_message))
        return response.member_epoch

    async def heartbeat(epoch: int) -> int:
        return await client.retrying(lambda: beat(epoch))

    epoch = await heartbeat(0)
    described = (await admin.describe_streams_groups([group_id]))[group_id]
    (member,) = described.members
    assert member.member_id == member_id
    assert member.process_id == "process"
    assert described.subtopologies[0].source_topics == (topic,)
    assert described.topology_epoch == 1

    async def assigned() -> None:
        nonlocal epoch
        epoch = await heartbeat(epoch)
        found = (await admin.describe_streams_groups([group_id]))[group_id]
        assert sorted(found.members[0].target_assignment.active) == [("0", at) for at in range(3)]

    await eventually(assigned)
    listed = await admin.list_groups(types=["Streams"])
    assert [each.type for each in listed if each.group_id == group_id] == ["Streams"]
    await heartbeat(-1)
    await admin.alter_streams_group_offsets(group_id, {(topic, 0): 7, (topic, 1): 0})
    found = (await admin.list_streams_group_offsets([group_id]))[group_id]
    assert {tp: its and its.offset for tp, its in found.items()} == {(topic, 0): 7, (topic, 1): 0}
    await admin.delete_streams_group_offsets(group_id, [(topic, 1)])
    assert list((await admin.list_streams_group_offsets([group_id]))[group_id]) == [(topic, 0)]
    await admin.delete_streams_groups([group_id])


async def test_old_brokers_name_the_release_with_share_groups(
    client: kproto.Client, broker_version: str
) -> None:
    if not broker_version.startswith("3."):
        pytest.skip("for brokers without share groups")
    with pytest.raises(AdminError) as failed:
        await client.admin.describe_share_groups(["a"])
    error = failed.value.errors["a"]
    assert isinstance(error, UnsupportedVersionError)
    assert "ShareGroupDescribe v1 is supported since Kafka 4." in str(error)


# The cluster


async def test_the_cluster_and_its_features_are_described(
    client: kproto.Client, broker_version: str
) -> None:
    found = await client.admin.describe_cluster(include_authorized_operations=True)
    assert found.cluster_id == client.cluster.cluster_id
    assert sorted(found.brokers) == sorted(client.cluster.brokers)
    assert found.controller in found.brokers
    assert found.authorized_operations
    assert (await client.admin.describe_cluster()).authorized_operations is None
    if broker_version.startswith("3."):
        with pytest.raises(UnsupportedVersionError, match=r"is supported since Kafka 4\.0"):
            await client.admin.describe_cluster(include_fenced_brokers=True)
    else:
        fenced = await client.admin.describe_cluster(include_fenced_brokers=True)
        assert not any(each.is_fenced for each in fenced.brokers.values())
    features = await client.admin.describe_features(node=next(iter(found.brokers)))
    if broker_version != EMBEDDED:
        level = features.finalized["metadata.version"].highest
        supported = features.supported["metadata.version"]
        assert supported.lowest <= level <= supported.highest
        assert features.finalized_epoch is not None


async def test_features_are_updated_only_to_supported_levels(client: kproto.Client) -> None:
    await skip_unanswered(client, UpdateFeaturesRequest)
    admin = client.admin
    name = "metadata.version"
    level = (await admin.describe_features()).finalized[name].highest
    await admin.update_features({name: FeatureUpdate(level)}, validate_only=True)
    await admin.update_features({name: FeatureUpdate(level)})
    with pytest.raises(AdminError) as refused:
        await admin.update_features(
            {name: FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}, validate_only=True
        )
    assert set(error_names(refused.value)) == {name}
    assert (await admin.describe_features()).finalized[name].highest == level


async def test_the_metadata_quorum_is_described(client: kproto.Client) -> None:
    await skip_unanswered(client, DescribeQuorumRequest, AddRaftVoterRequest)
    admin = client.admin
    quorum = await admin.describe_metadata_quorum()
    assert [each.replica_id for each in quorum.voters] == [quorum.leader_id]
    assert quorum.high_watermark > 0
    # The quorum of this node has a fixed list of voters.
    endpoint = RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1)
    with pytest.raises(kproto.BrokerResponseError) as added:
        await admin.add_raft_voter(99, Uuid.random(), [endpoint])
    with pytest.raises(kproto.BrokerResponseError) as removed:
        await admin.remove_raft_voter(99, Uuid.random())
    assert {added.value.name, removed.value.name} == {"UNSUPPORTED_VERSION"}


async def test_an_unknown_broker_or_controller_is_not_unregistered(
    client: kproto.Client, broker_version: str
) -> None:
    await skip_unanswered(client, UnregisterBrokerRequest)
    if broker_version == EMBEDDED:
        await skip_unanswered(client, UnregisterControllerRequest)
    with pytest.raises(kproto.BrokerResponseError, match="BROKER_ID_NOT_REGISTERED"):
        await client.admin.unregister_broker(99)
    if broker_version.startswith("3."):
        with pytest.raises(UnsupportedVersionError, match=r"is supported since Kafka 4\.4"):
            await client.admin.unregister_controller(99)
    else:
        with pytest.raises(kproto.BrokerResponseError):
            await client.admin.unregister_controller(99)


async def test_log_directories_are_described_and_altered(client: kproto.Client, topic: str) -> None:
    await skip_unanswered(client, DescribeLogDirsRequest, AlterReplicaLogDirsRequest)
    admin = client.admin
    async with client.producer() as producer:
        await producer.send(topic, b"x" * 1_000, partition=0)
    (node,) = client.cluster.brokers
    replica, absent = TopicPartitionReplica(topic, 0, node), TopicPartitionReplica(topic, 9, node)
    log_dirs = (await admin.describe_log_dirs())[node]
    ((path, log_dir),) = log_dirs.items()
    assert log_dir.error is None
    assert log_dir.replicas[topic, 0].size_bytes > 1_000
    assert log_dir.total_bytes is not None
    assert log_dir.total_bytes >= (log_dir.usable_bytes or 0) > 0
    assert list(await admin.describe_log_dirs([node])) == [node]
    found = await admin.describe_replica_log_dirs([replica, absent])
    assert found[replica].current_dir == path
    assert found[replica].future_dir is None
    assert found[absent].current_dir is None
    await admin.alter_replica_log_dirs({replica: path})
    lost = TopicPartitionReplica(topic, 1, 99)
    with pytest.raises(AdminError) as refused:
        await admin.alter_replica_log_dirs({replica: "/absent", lost: path}, timeout_ms=2_000)
    assert error_names(refused.value) == {
        replica: "LOG_DIR_NOT_FOUND",
        lost: "ConfigurationError",
    }
    with pytest.raises(AdminError) as unknown:
        await admin.describe_log_dirs([node, 99])
    assert list(unknown.value.results) == [node]
    assert list(unknown.value.errors) == [99]


async def test_concurrent_admin_calls_share_the_client(client: kproto.Client) -> None:
    names = [new_name("topic") for _ in range(5)]
    await asyncio.gather(*(client.admin.create_topics([name]) for name in names))
    for name in names:
        await client.topic(name)
    assert set(names) <= set(await client.admin.list_topics())
    await client.admin.delete_topics(names)
