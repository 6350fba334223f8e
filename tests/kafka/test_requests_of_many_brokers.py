"""Tests requests that are split over three real brokers; each part is routed separately."""

from __future__ import annotations

from functools import partial

import pytest

import kproto
from kproto.messages import (
    AlterReplicaLogDirsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    FetchRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kproto.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirTopic,
)
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.describe_producers_request import TopicRequest
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.messages.offset_commit_request import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.protocol.error_codes import raise_for_code
from kproto.records import read_batches
from tests.support.brokers import StartCluster
from tools.kafka import VERSIONS

A_BROKER = 4
SET = 0
NO_SUCH_ID = 105  # TRANSACTIONAL_ID_NOT_FOUND
GROUPS = [f"group-{at}" for at in range(9)]
PARTITIONS = list(range(6))


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_kind_of_split(start_cluster: StartCluster, version: str) -> None:
    cluster = start_cluster(version, nodes=3)
    async with kproto.Client(cluster.bootstrap) as client:
        await client.create_topics(kproto.NewTopic("t", len(PARTITIONS), 3))
        info = await client.topic("t")
        assert {each.leader for each in info.partitions.values()} == {1, 2, 3}
        async with client.producer() as producer:
            for at in PARTITIONS:
                for value in (b"a", b"b", b"c"):
                    await producer.send("t", value, partition=at)
        for check in (leaders, groups, brokers, transactions):
            await check(client)


async def leaders(client: kproto.Client) -> None:
    listed = await client.request(
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name="t",
                    partitions=[
                        ListOffsetsPartition(partition_index=at, timestamp=-1)
                        for at in PARTITIONS[::-1]
                    ],
                )
            ],
        )
    )
    (topic,) = listed.topics
    found = [(part.partition_index, part.offset, part.error_code) for part in topic.partitions]
    assert found == [(at, 3, 0) for at in PARTITIONS[::-1]]

    wanted = DeleteRecordsRequest(
        timeout_ms=10_000,
        topics=[
            DeleteRecordsTopic(
                name="t",
                partitions=[
                    DeleteRecordsPartition(partition_index=at, offset=1) for at in PARTITIONS
                ],
            )
        ],
    )
    answers = await client.request_by_broker(wanted)
    assert {each.broker for each in answers} == {1, 2, 3}
    assert all(each.error is None for each in answers)
    (gone,) = (await client.request(wanted)).topics
    assert [part.low_watermark for part in gone.partitions] == [1] * len(PARTITIONS)

    epochs = await client.request(
        OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(
                    topic="t",
                    partitions=[
                        OffsetForLeaderPartition(partition=at, leader_epoch=0) for at in PARTITIONS
                    ],
                )
            ],
        )
    )
    (of_topic,) = epochs.topics
    assert [(part.partition, part.end_offset) for part in of_topic.partitions] == [
        (at, 3) for at in PARTITIONS
    ]

    described = await client.request(
        DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=PARTITIONS)])
    )
    (producers,) = described.topics
    assert [len(part.active_producers) for part in producers.partitions] == [1] * len(PARTITIONS)

    topic_id = client.cluster.topics["t"].topic_id
    client.cluster.forget(["t"])
    fetched = await client.request(
        FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            topics=[
                FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        FetchPartition(partition=at, fetch_offset=1, partition_max_bytes=1_000_000)
                        for at in PARTITIONS
                    ],
                )
            ],
        )
    )
    (got,) = fetched.responses
    assert [part.partition_index for part in got.partitions] == PARTITIONS
    for part in got.partitions:
        batches = read_batches(part.records or b"")
        assert [each.value for batch in batches for each in batch.records()][-1] == b"c"


async def groups(client: kproto.Client) -> None:
    for group in GROUPS:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=[part])]
        )
        await client.retrying(partial(committed, client, request))
    found = await client.request(DescribeGroupsRequest(groups=GROUPS))
    assert [each.group_id for each in found.groups] == GROUPS
    assert [each.error_code for each in found.groups] == [0] * len(GROUPS)
    asked = await client.request_by_broker(DescribeGroupsRequest(groups=GROUPS))
    assert len(asked) > 1
    told = await client.request(
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group,
                    topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
                )
                for group in GROUPS
            ]
        )
    )
    assert [each.group_id for each in told.groups] == GROUPS
    assert {each.topics[0].partitions[0].committed_offset for each in told.groups} == {2}
    listed = await client.request(ListGroupsRequest())
    assert sorted(each.group_id for each in listed.groups) == GROUPS
    deleted = await client.request(DeleteGroupsRequest(groups_names=[*GROUPS, "none"]))
    assert [(each.group_id, each.error_code) for each in deleted.results] == [
        *((group, 0) for group in GROUPS),
        ("none", 69),
    ]


async def committed(client: kproto.Client, request: OffsetCommitRequest) -> None:
    (topic,) = (await client.request(request)).topics
    raise_for_code(topic.partitions[0].error_code, "committing")


async def brokers(client: kproto.Client) -> None:
    kinds = [(2, "t"), (A_BROKER, "3"), (A_BROKER, "1"), (A_BROKER, "2")]
    described = await client.request(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=kind, resource_name=name)
                for kind, name in kinds
            ]
        )
    )
    assert [(each.resource_type, each.resource_name) for each in described.results] == kinds
    assert [each.error_code for each in described.results] == [0] * len(kinds)
    for each in described.results[1:]:
        (node,) = (config.value for config in each.configs if config.name == "node.id")
        assert node == each.resource_name
    altered = await client.request(
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=A_BROKER,
                    resource_name=str(node),
                    configs=[
                        AlterableConfig(name="log.cleaner.threads", config_operation=SET, value="1")
                    ],
                )
                for node in (2, 1, 3)
            ]
        )
    )
    assert [(each.resource_name, each.error_code) for each in altered.responses] == [
        (str(node), 0) for node in (2, 1, 3)
    ]
    dirs = await client.request_by_broker(DescribeLogDirsRequest(topics=None))
    assert [each.broker for each in dirs] == [1, 2, 3]
    paths = [each.response.results[0].log_dir for each in dirs if each.response is not None]
    assert len(set(paths)) == 3
    whole = await client.request(DescribeLogDirsRequest(topics=None))
    assert [each.log_dir for each in whole.results] == paths
    moved = await client.request(
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=paths[0], topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])]
                )
            ]
        )
    )
    (topic,) = moved.results
    codes = sorted(part.error_code for part in topic.partitions)
    assert codes == [0, 57, 57]  # LOG_DIR_NOT_FOUND on brokers without this folder


async def transactions(client: kproto.Client) -> None:
    ids = [f"no-{at}" for at in range(6)]

    async def described() -> DescribeTransactionsResponse:
        answer = await client.request(DescribeTransactionsRequest(transactional_ids=ids))
        for each in answer.transaction_states:
            if each.error_code != NO_SUCH_ID:  # the coordinators' topic is new
                raise_for_code(each.error_code, "describing a transaction")
        return answer

    found = await client.retrying(described)
    assert [each.transactional_id for each in found.transaction_states] == ids
    assert {each.error_code for each in found.transaction_states} == {NO_SUCH_ID}
    one = await client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=ids))
    assert {each.key for each in one.coordinators} == set(ids)
