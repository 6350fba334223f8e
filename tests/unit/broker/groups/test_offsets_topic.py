"""Tests `__consumer_offsets`: its coordinators and records, loading, and offset expiration."""

from __future__ import annotations

import logging
import struct
from dataclasses import replace
from typing import Any

import pytest

from kproto import Client, DeliveryError
from kproto.broker import BrokerSettings, Cluster
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context
from kproto.broker.coordinators import CoordinatorType, partition_of
from kproto.broker.groups import ClassicGroup
from kproto.broker.groups.classic_group_state import ClassicGroupState
from kproto.broker.groups.coordinator_records import group_record
from kproto.broker.groups.group_coordinator import OFFSETS_TOPIC, OFFSETS_TOPIC_CONFIGS
from kproto.broker.groups.group_metadata import GroupMetadata, MemberMetadata
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import by_key
from kproto.broker.storage.partition import Partition
from kproto.messages.base import Request
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_topics_request import DeleteTopicsRequest
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.messages.offset_fetch_response import OffsetFetchResponse
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.protocol.error_codes import error_code
from kproto.records import encode_batch
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP, batch_bytes

APIS = by_key(KAFKA_APIS)
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


class Play:
    """A cluster of three nodes with topics t and u; sends requests to the group coordinators."""

    def __init__(self, **settings: Any) -> None:
        self.settings = BrokerSettings(**settings)
        self.clock = ManualClock(TIMESTAMP)
        self.state = ClusterState(self.settings)
        for node in (1, 2, 3):
            self.state.register_endpoint(Endpoint(node, "localhost", 9090 + node))
        for name in ("t", "u"):
            self.state.topics.add(self.state.plan_topic(name, 2))

    def find(self, group: str = "g") -> int:
        return self.state.coordinator(CoordinatorType.GROUP, group)

    @property
    def partition(self) -> Partition:
        """The partition of `__consumer_offsets` that stores group g."""
        found = self.state.group_coordinator.partition("g")
        assert found is not None
        return found

    def context(self, node: int | None = None) -> Context:
        node = self.find() if node is None else node
        endpoint = Endpoint(node, "localhost", 9090 + node)
        return Context(self.state, self.settings, endpoint, {}, self.clock)

    def send(self, request: Request[Any], version: int, node: int | None = None) -> Any:
        return APIS[request.API_KEY].handle(self.context(node), request, version)

    def commit(
        self,
        *partitions: tuple[str, int, int],
        group: str = "g",
        node: int | None = None,
        metadata: str = "",
        retention_ms: int = -1,
    ) -> list[str]:
        request = OffsetCommitRequest(
            group_id=group,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                    ],
                )
                for name, index, offset in partitions
            ],
        )
        answer = self.send(request, 4, node)
        return [
            error_code(partition.error_code).name
            for topic in answer.topics
            for partition in topic.partitions
        ]

    def fetch(self, group: str = "g", node: int | None = None) -> dict[tuple[str, int], int] | str:
        """Returns the committed offsets of a group, or the name of the error."""
        wanted = OffsetFetchRequestGroup(group_id=group, topics=None)
        answer = self.send(OffsetFetchRequest(groups=[wanted]), 9, node)
        return committed(answer)

    def delete(self, *partitions: tuple[str, int], node: int | None = None) -> str | list[str]:
        request = OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
                )
                for name, index in partitions
            ],
        )
        answer = self.send(request, 0, node)
        if answer.error_code:
            return error_code(answer.error_code).name
        return [
            error_code(partition.error_code).name
            for topic in answer.topics
            for partition in topic.partitions
        ]

    def written(self) -> list[tuple[str, int]]:
        """Returns (key as text, record count of the batch) for each record in group g's partition.

        The text of a tombstone ends with "gone".
        """
        return [
            (shown(decode_coordinator_record(record, topic=OFFSETS_TOPIC)), batch.record_count)
            for batch in self.partition.log
            if not batch.is_control
            for record in batch.records()
        ]

    async def wait(self, ms: float) -> None:
        await self.clock.advance(ms)


def shown(record: object) -> str:
    assert isinstance(record, CoordinatorRecord)
    key: Any = record.key
    place = f"{key.topic}-{key.partition} of " if hasattr(key, "topic") else ""
    return f"{place}{key.group}{'' if record.value is not None else ' gone'}"


def committed(answer: OffsetFetchResponse) -> dict[tuple[str, int], int] | str:
    (group,) = answer.groups
    if group.error_code:
        return error_code(group.error_code).name
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
    }


# The topic


def test_topic_is_created_by_coordinator_lookup() -> None:
    play = Play()
    assert play.state.topics.get(OFFSETS_TOPIC) is None
    assert play.state.coordinator(CoordinatorType.TRANSACTION, "tx") in (1, 2, 3)
    assert play.state.topics.get(OFFSETS_TOPIC) is None
    nodes = {play.find(f"g{number}") for number in range(30)}
    topic = play.state.topics.named(OFFSETS_TOPIC)
    assert nodes == {1, 2, 3}
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    assert {len(partition.leader_and_isr.replicas) for partition in topic.partitions} == {3}
    assert topic.config.overrides == OFFSETS_TOPIC_CONFIGS
    assert play.find() == topic.partitions[partition_of("g", 50)].leader_and_isr.leader
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)])
    (topic,) = play.send(wanted, 9).topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 50)


def test_partition_count_is_a_setting() -> None:
    play = Play(offsets_topic_num_partitions=7, max_partitions=5)
    play.find()
    assert len(play.state.topics.named(OFFSETS_TOPIC).partitions) == 7


def test_no_coordinator_before_topic_is_created() -> None:
    play = Play()
    assert play.commit(("t", 0, 1), node=1) == ["NOT_COORDINATOR"]
    assert play.fetch(node=1) == "NOT_COORDINATOR"
    assert play.delete(("t", 0), node=1) == "NOT_COORDINATOR"
    assert play.commit(("nope", 0, 1), node=1) == ["UNKNOWN_TOPIC_OR_PARTITION"], (
        "this check is first"
    )
    assert play.state.topics.get(OFFSETS_TOPIC) is None


def test_other_nodes_answer_not_coordinator() -> None:
    play = Play()
    other = play.find() % 3 + 1
    assert play.commit(("t", 0, 1), node=other) == ["NOT_COORDINATOR"]
    assert play.fetch(node=other) == "NOT_COORDINATOR"
    assert play.delete(("t", 0), node=other) == "NOT_COORDINATOR"
    assert play.commit(("t", 0, 1), ("nope", 0, 1), node=other) == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_COORDINATOR",
    ]
    assert play.commit(("t", 0, 1)) == ["NONE"]


@pytest.mark.parametrize("version", [0, 4, 13])
def test_metadata_requests_create_the_offsets_topic_as_in_kafka(version: int) -> None:
    play = Play(auto_create_topics=True)
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)])
    (topic,) = play.send(wanted, version, 1).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 50)
    assert play.state.topics.named(OFFSETS_TOPIC).config.overrides == OFFSETS_TOPIC_CONFIGS


def test_a_client_may_create_and_delete_the_offsets_topic() -> None:
    play = Play()
    wanted = CreatableTopic(name=OFFSETS_TOPIC, num_partitions=1, replication_factor=1)
    for expected in ("NONE", "TOPIC_ALREADY_EXISTS"):
        (made,) = play.send(CreateTopicsRequest(topics=[wanted]), 7, 2).topics
        assert error_code(made.error_code).name == expected
    leader = play.partition.leader_and_isr.leader
    assert {play.find(f"g{number}") for number in range(9)} == {leader}
    assert play.commit(("t", 0, 5)) == ["NONE"]
    moves: list[None] = []
    play.partition.moved.watchers.add(lambda: moves.append(None))
    (gone,) = play.send(DeleteTopicsRequest(topic_names=[OFFSETS_TOPIC]), 5, 2).responses
    assert (gone.error_code, moves) == (0, [None])
    assert play.fetch(node=leader) == "NOT_COORDINATOR"
    assert play.find() in (1, 2, 3)
    assert play.fetch() == {}, "it is another topic"
    assert len(play.state.topics.named(OFFSETS_TOPIC).partitions) == 50


@pytest.mark.parametrize("version", ProduceRequest.VALID_VERSIONS)
def test_only_admin_client_writes_to_offsets_topic(version: int) -> None:
    play = Play()
    play.find()
    topic = play.state.topics.named(OFFSETS_TOPIC)
    name: dict[str, Any] = {"topic_id": topic.topic_id} if version >= 13 else {"name": topic.name}

    def produced(client_id: str | None, *, acks: int = -1, partition: int = 0) -> str:
        data = PartitionProduceData(index=partition, records=batch_bytes())
        request = ProduceRequest(
            acks=acks, topic_data=[TopicProduceData(partition_data=[data], **name)]
        )
        where = replace(
            play.context(topic.partitions[0].leader_and_isr.leader), client_id=client_id
        )
        answer: Any = APIS[0].handle(where, request, version)
        return error_code(answer.responses[0].partition_responses[0].error_code).name

    assert produced(None) == produced("admin") == "INVALID_TOPIC_EXCEPTION"
    assert produced(None, acks=7) == "INVALID_REQUIRED_ACKS"
    assert produced(None, partition=50) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert topic.partitions[0].log.end_offset == 0
    assert produced("__admin_client") == "NONE"
    assert topic.partitions[0].log.end_offset == 1


# Records written


def test_each_request_writes_one_batch() -> None:
    play = Play()
    assert play.commit(("t", 0, 5), ("u", 1, 6), ("t", 7, 1)) == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NONE",
        "NONE",
    ]
    assert play.commit(("t", 0, 6), metadata="x" * 4097) == ["OFFSET_METADATA_TOO_LARGE"]
    assert play.fetch() == {("t", 0): 5, ("u", 1): 6}
    assert play.delete(("t", 0), ("t", 1), ("t", 7)) == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NONE",
        "NONE",
    ]
    assert play.fetch() == {("u", 1): 6}
    assert play.written() == [("t-0 of g", 2), ("u-1 of g", 2), ("t-0 of g gone", 1)]
    (first, *_) = play.partition.log
    assert [record.timestamp for record in first.records()] == [TIMESTAMP] * 2


def test_metadata_limit_is_a_setting() -> None:
    play = Play(offset_metadata_max_bytes=3)
    assert play.commit(("t", 0, 5), metadata="abc") == ["NONE"]
    assert play.commit(("t", 0, 6), metadata="abcd") == ["OFFSET_METADATA_TOO_LARGE"]


def test_change_is_reverted_if_its_write_fails() -> None:
    play = Play(max_stored_bytes=2000)
    assert play.commit(("t", 0, 5)) == ["NONE"]
    answers = [play.commit(("t", 0, 6 + turn)) for turn in range(9)]
    kept = answers.index(["NOT_COORDINATOR"])
    assert kept > 0
    assert play.fetch() == {("t", 0): 5 + kept}
    assert play.delete(("t", 0)) == "NOT_COORDINATOR"
    assert play.fetch() == {("t", 0): 5 + kept}
    assert len(play.written()) == 1 + kept


def test_commit_creates_no_group_if_its_write_fails() -> None:
    play = Play(max_stored_bytes=1)
    assert play.commit(("t", 0, 5)) == ["NOT_COORDINATOR"]
    assert play.delete(("t", 0)) == "GROUP_ID_NOT_FOUND"
    assert play.state.groups.ids == ()


def test_oversized_commit_is_rejected() -> None:
    play = Play(message_max_bytes=300)
    many = [("t", number % 2, number) for number in range(30)]
    assert set(play.commit(*many)) == {"UNKNOWN_SERVER_ERROR"}
    assert play.fetch() == {}
    assert play.commit(*many[:2]) == ["NONE", "NONE"]


# Another coordinator


def test_new_coordinator_loads_offsets_from_log() -> None:
    play = Play()
    first = play.find()
    play.commit(("t", 0, 5), ("t", 1, 6))
    play.delete(("t", 1))
    second = first % 3 + 1
    play.state.move_leader(OFFSETS_TOPIC, play.partition.index, second)
    assert play.find() == second
    assert play.fetch(node=first) == "NOT_COORDINATOR"
    assert play.fetch() == {("t", 0): 5}
    assert play.commit(("t", 0, 7)) == ["NONE"]
    play.state.stop(second)
    assert play.find() != second
    assert play.fetch() == {("t", 0): 7}


def test_groups_with_members_are_loaded() -> None:
    play = Play()
    play.find()
    member = MemberMetadata("m", "i", "c", "/h", 1000, 2000, b"", b"")
    stored = GroupMetadata("connect", 4, "p", "m", TIMESTAMP, (member,))
    play.state.group_coordinator.append("g", [group_record("g", stored)], play.context().now)
    other = play.find() % 3 + 1
    play.state.move_leader(OFFSETS_TOPIC, play.partition.index, other)
    group = play.state.group_coordinator.find(other, "g", play.context().now)
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation) == (ClassicGroupState.STABLE, 4)
    assert (group.protocol_type, list(group.members), group.static_ids) == (
        "connect",
        ["m"],
        {"i": "m"},
    )
    assert play.commit(("t", 0, 5)) == ["UNKNOWN_MEMBER_ID"]
    assert play.delete(("t", 0)) == "NON_EMPTY_GROUP"


def test_truncated_commits_are_lost() -> None:
    play = Play()
    play.commit(("t", 0, 5))
    play.commit(("t", 0, 6))
    assert play.state.truncate(OFFSETS_TOPIC, play.partition.index, 1) == 1
    assert play.fetch() == {("t", 0): 5}
    play.state.truncate(OFFSETS_TOPIC, play.partition.index, 0)
    assert play.fetch() == {}


def test_no_coordinator_without_leader() -> None:
    play = Play()
    play.commit(("t", 0, 5))
    for node in (1, 2, 3):
        play.state.stop(node)
    assert play.find() == -1
    assert play.fetch(node=1) == "NOT_COORDINATOR"
    for node in (1, 2, 3):
        play.state.start(node)
    assert play.fetch() == {("t", 0): 5}


def test_appends_do_not_wake_watchers_of_moves() -> None:
    play = Play()
    moves: list[None] = []
    play.find()
    play.partition.moved.watchers.add(lambda: moves.append(None))
    play.commit(("t", 0, 5))
    assert moves == []
    play.state.move_leader(OFFSETS_TOPIC, play.partition.index, play.find() % 3 + 1)
    assert moves == [None]


def test_foreign_records_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    play = Play()
    play.commit(("t", 0, 5))
    records = [(b"\0\1no", b"record", (), TIMESTAMP), (struct.pack(">h", 99), None, (), TIMESTAMP)]
    data = PartitionProduceData(index=play.partition.index, records=encode_batch(records))
    topic = TopicProduceData(name=OFFSETS_TOPIC, partition_data=[data])
    where = replace(play.context(), client_id="__admin_client")
    answer: Any = APIS[0].handle(where, ProduceRequest(acks=1, topic_data=[topic]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    play.state.move_leader(OFFSETS_TOPIC, play.partition.index, play.find() % 3 + 1)
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        assert play.fetch() == {("t", 0): 5}
    (said,) = caplog.messages
    assert said.startswith("__consumer_offsets: offset 1 is skipped")


def test_a_node_lists_its_groups() -> None:
    play = Play()
    groups = [f"g{number}" for number in range(20)]
    for group in groups:
        assert play.commit(("t", 0, 1), group=group, node=play.find(group)) == ["NONE"]

    def listed(node: int) -> list[str]:
        now = play.context(node).now
        return [group.group_id for group in play.state.group_coordinator.groups_of(node, now)]

    for node in (1, 2, 3):
        assert listed(node) == [group for group in groups if play.find(group) == node]
    play.state.stop(1)
    assert sorted(listed(2) + listed(3)) == sorted(groups)
    empty = Play()
    assert empty.state.group_coordinator.groups_of(1, play.context(1).now) == []


# Deleted topics


def deleted(play: Play, name: str) -> None:
    (gone,) = play.send(DeleteTopicsRequest(topic_names=[name]), 5).responses
    assert gone.error_code == 0


def test_offsets_are_removed_with_their_topic() -> None:
    play = Play()
    play.commit(("t", 0, 5), ("u", 0, 6), ("t", 1, 7))
    deleted(play, "t")
    assert play.fetch() == {("u", 0): 6}
    assert play.written()[3:] == [("t-0 of g gone", 2), ("t-1 of g gone", 2)]
    play.state.topics.add(play.state.plan_topic("t", 2))
    assert play.fetch() == {("u", 0): 6}
    play.state.move_leader(OFFSETS_TOPIC, play.partition.index, play.find() % 3 + 1)
    deleted(play, "u")
    assert play.fetch() == {}, "also if the coordinator has just moved"


def test_offsets_without_coordinator_outlive_their_topic() -> None:
    play = Play()
    play.commit(("t", 0, 5))
    nodes = play.partition.leader_and_isr.replicas
    for node in nodes:
        play.state.stop(node)
    topic = play.state.topics.named("t")
    play.state.delete_topic(topic, play.context(1).now)
    for node in nodes:
        play.state.start(node)
    assert play.fetch() == {("t", 0): 5}
    play.state.topics.add(play.state.plan_topic("t", 2))
    wanted = OffsetFetchRequestGroup(group_id="g", topics=None)
    by_id = play.send(OffsetFetchRequest(groups=[wanted]), 10).groups[0].topics
    assert [each.topic_id for each in by_id] == [play.state.topics.named("t").topic_id]
    assert play.commit(("t", 0, 6)) == ["NONE"]


# Expiration


async def test_offsets_of_simple_consumers_expire_after_commit() -> None:
    play = Play(offsets_retention_minutes=2)
    play.commit(("t", 0, 5))
    await play.wait(MINUTE_MS)
    play.commit(("t", 1, 6))
    await play.wait(MINUTE_MS - 1)
    assert len(play.fetch()) == 2
    await play.wait(1)
    assert play.fetch() == {("t", 1): 6}
    assert play.written()[2:] == [("t-0 of g gone", 1)]
    await play.wait(MINUTE_MS)
    assert play.fetch() == {}
    assert play.written()[3:] == [("t-1 of g gone", 2), ("g gone", 2)]
    assert play.delete() == "GROUP_ID_NOT_FOUND", "the group is deleted with its last offset"


async def test_commit_has_own_expiration_time() -> None:
    play = Play()
    play.commit(("t", 0, 5), retention_ms=10)
    play.commit(("t", 1, 5))
    await play.wait(9)
    assert len(play.fetch()) == 2
    await play.wait(1)
    assert play.fetch() == {("t", 1): 5}
    await play.wait(7 * DAY_MS - 11)
    assert play.fetch() == {("t", 1): 5}
    await play.wait(1)
    assert play.fetch() == {}


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63)])
def test_expiration_time_is_capped(retention_ms: int) -> None:
    play = Play()
    assert play.commit(("t", 0, 5), retention_ms=retention_ms) == ["NONE"]
    assert len(play.fetch()) == (retention_ms > 0)


async def test_group_without_members_and_offsets_is_deleted_after_check_interval() -> None:
    play = Play(offsets_retention_check_interval_ms=50)
    play.commit(("t", 0, 5), metadata="x" * 5000)
    await play.wait(49)
    assert play.delete() == []
    await play.wait(1)
    assert play.delete() == "GROUP_ID_NOT_FOUND"
    assert play.written() == [("g gone", 1)]


async def test_empty_group_keeps_offsets_for_retention() -> None:
    play = Play(offsets_retention_minutes=2)
    play.commit(("t", 0, 5))
    now = play.context().now
    left = GroupMetadata("consumer", 4, None, None, now.timestamp_ms + MINUTE_MS)
    play.state.group_coordinator.append("g", [group_record("g", left)], now)
    play.state.move_leader(OFFSETS_TOPIC, play.partition.index, play.find() % 3 + 1)
    await play.wait(3 * MINUTE_MS - 1)
    assert play.fetch() == {("t", 0): 5}
    await play.wait(1)
    assert play.fetch() == {}
    assert play.delete() == "GROUP_ID_NOT_FOUND"


async def test_expiration_is_reverted_if_its_write_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    play = Play(max_stored_bytes=900)
    play.commit(("t", 0, 5), retention_ms=10)
    await play.wait(10)
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        assert play.fetch() == {("t", 0): 5}
        deleted(play, "t")
        assert play.fetch() == {("t", 0): 5}
    assert any("the expired group g is not deleted" in message for message in caplog.messages)
    assert any("the offsets of group g are not removed" in message for message in caplog.messages)
    play.state.storage_limit.limit = 10_000
    assert play.fetch() == {}


# Clients


async def test_a_client_finds_its_offsets_when_the_coordinator_has_stopped() -> None:
    partition = OffsetCommitRequestPartition(committed_offset=5)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    commit = OffsetCommitRequest(group_id="g", topics=[topic])
    wanted = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    async with Cluster() as cluster:
        cluster.create_topic("t")
        async with Client(cluster.bootstrap) as client:
            answer = await client.request(commit, version=9)
            assert answer.topics[0].partitions[0].error_code == 0
            await cluster.stop_broker(cluster.coordinator("g"))
        async with Client(cluster.bootstrap) as client:
            assert committed(await client.request(wanted, version=9)) == {("t", 0): 5}
            stored = [
                decode_coordinator_record(record)
                async for record in client.consumer(OFFSETS_TOPIC, stop_at_end=True)
            ]
            assert [shown(record) for record in stored] == ["t-0 of g"]
            async with client.producer() as producer:
                with pytest.raises(DeliveryError, match="INVALID_TOPIC_EXCEPTION"):
                    await producer.send(OFFSETS_TOPIC, b"no")
            cluster.delete_topic("t")
            assert committed(await client.request(wanted, version=9)) == {}
