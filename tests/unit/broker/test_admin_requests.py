"""Tests requests of administrators in every version, over a socket.

The requests are CreatePartitions, ElectLeaders, DescribeLogDirs, AlterReplicaLogDirs,
DescribeQuorum, UpdateFeatures and DescribeTopicPartitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kproto.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from kproto.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kproto.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kproto.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.unregister_broker_request import UnregisterBrokerRequest
from kproto.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kproto.protocol.error_codes import error_code
from kproto.records import RecordBatch
from tests.support.batches import TIMESTAMP, batch_bytes
from tests.support.embedded import (
    ThreadedBroker,
    ThreadedCluster,
    threaded_broker,
    threaded_cluster,
)
from tests.support.raw_connection import RawConnection


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with threaded_cluster() as cluster:
        yield cluster


def name_of(code: int) -> str:
    return error_code(code).name


@pytest.mark.parametrize("version", CreatePartitionsRequest.VALID_VERSIONS)
def test_create_partitions(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: it.create_topic("t", 2))

    def create(
        count: int,
        assignments: list[list[int]] | None = None,
        *names: str,
        validate_only: bool = False,
    ) -> list[str]:
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=name,
                    count=count,
                    assignments=None
                    if assignments is None
                    else [CreatePartitionsAssignment(broker_ids=it) for it in assignments],
                )
                for name in names or ("t",)
            ],
            validate_only=validate_only,
        )
        results = connection.exchange(request, version).results
        return [name_of(it.error_code) for it in results]

    def count() -> int:
        return broker.call(lambda it: len(it.topics["t"].partitions))

    assert create(3, validate_only=True) == ["NONE"]
    assert count() == 2
    assert create(3) == ["NONE"]
    assert count() == 3
    for number in (3, 2, 0, -1):
        assert create(number) == ["INVALID_PARTITIONS"]
    assert create(4, None, "nope") == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert create(4, None, "t", "t") == ["INVALID_REQUEST"]
    invalid: list[list[list[int]]] = [[], [[9]], [[1, 1]], [[]], [[1], [1]]]
    for wrong in invalid:
        assert create(4, wrong) == ["INVALID_REPLICA_ASSIGNMENT"]
    assert create(100_000) == ["POLICY_VIOLATION"]
    assert create(4, [[1]]) == ["NONE"]
    assert count() == 4
    assert broker.call(lambda it: it.leader("t", 3)) == 1


def test_added_partitions_have_the_replication_factor_of_the_topic(
    cluster: ThreadedCluster,
) -> None:
    cluster.call(lambda it: it.create_topic("t", 1, replication_factor=2))
    with RawConnection(cluster.bootstrap) as connection:
        topic = CreatePartitionsTopic(name="t", count=4, assignments=None)
        assert (
            not connection.exchange(CreatePartitionsRequest(topics=[topic]), 3)
            .results[0]
            .error_code
        )
    leaders = cluster.call(lambda it: [it.leader("t", at) for at in range(4)])
    assert leaders == [1, 2, 3, 1]
    assert cluster.call(lambda it: it.in_sync("t", 3)) == (1, 2)


@pytest.mark.parametrize("version", ElectLeadersRequest.VALID_VERSIONS)
def test_elect_leaders(cluster: ThreadedCluster, version: int) -> None:
    cluster.call(lambda it: it.create_topic("t", 2))

    def elect(*wanted: tuple[str, int], kind: int = 0) -> list[str]:
        partitions = [TopicPartitions(topic=topic, partitions=[at]) for topic, at in wanted]
        request = ElectLeadersRequest(
            election_type=kind if version else 0, topic_partitions=partitions or None
        )
        with RawConnection(cluster.bootstrap.partition(",")[2]) as connection:
            answer = connection.exchange(request, version)
        return [
            name_of(it.error_code)
            for topic in answer.replica_election_results
            for it in topic.partition_result
        ]

    assert elect(("t", 0), ("t", 9), ("nope", 0)) == [
        "ELECTION_NOT_NEEDED",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    cluster.call(lambda it: it.move_leader("t", 0, 2))
    assert elect() == ["NONE"]
    assert cluster.call(lambda it: (it.leader("t", 0), it.leader_epoch("t", 0))) == (1, 2)
    cluster.wait_for(lambda it: it.stop_broker(1))
    assert elect(("t", 0)) == ["PREFERRED_LEADER_NOT_AVAILABLE"]
    if version:
        assert elect(("t", 0), kind=1) == ["ELECTION_NOT_NEEDED"]


def test_unclean_election_makes_a_live_replica_the_leader(cluster: ThreadedCluster) -> None:
    cluster.call(lambda it: it.create_topic("t", 1, replication_factor=2))
    cluster.wait_for(lambda it: it.stop_broker(2))
    cluster.wait_for(lambda it: it.stop_broker(1))
    cluster.wait_for(lambda it: it.start_broker(2))
    assert cluster.call(lambda it: it.leader("t")) == -1
    wanted = TopicPartitions(topic="t", partitions=[0])
    request = ElectLeadersRequest(election_type=1, topic_partitions=[wanted])
    with RawConnection(cluster.bootstrap.partition(",")[2]) as connection:
        (found,) = connection.exchange(request, 2).replica_election_results
        assert found.partition_result[0].error_code == 0
        request.election_type = 7
        assert name_of(connection.exchange(request, 2).error_code) == "INVALID_REQUEST"
    assert cluster.call(lambda it: (it.leader("t"), it.in_sync("t"))) == (2, (2,))


def test_a_topic_with_unclean_elections_always_has_a_leader(cluster: ThreadedCluster) -> None:
    cluster.call(lambda it: it.create_topic("t", 1, replication_factor=2))
    configs = {"unclean.leader.election.enable": "true"}
    cluster.call(lambda it: it.create_topic("unclean", 1, configs, replication_factor=2))
    cluster.wait_for(lambda it: it.stop_broker(2))
    cluster.wait_for(lambda it: it.stop_broker(1))
    cluster.wait_for(lambda it: it.start_broker(2))
    assert cluster.call(lambda it: it.leader("t")) == -1
    assert cluster.call(lambda it: (it.leader("unclean"), it.in_sync("unclean"))) == (2, (2,))
    config = AlterableConfig(name="unclean.leader.election.enable", value="true")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    with RawConnection(cluster.bootstrap.partition(",")[2]) as connection:
        assert connection.exchange(request, 1).responses[0].error_code == 0
    assert cluster.call(lambda it: it.leader("t")) == 2


@pytest.mark.parametrize("version", DescribeLogDirsRequest.VALID_VERSIONS)
def test_log_dirs(version: int) -> None:
    settings = BrokerSettings(log_dirs=("/a", "/b"), max_stored_bytes=10_000)
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:

        def fill(it: Any) -> int:
            topic = it.create_topic("t", 3, configs={"retention.ms": "-1"})
            topic.partition(1).log.append(RecordBatch(batch_bytes(2)), TIMESTAMP)
            return int(topic.partition(1).log.size_in_bytes)

        size = broker.call(fill)

        def described(*partitions: int) -> dict[str, list[tuple[int, int]]]:
            topics = [DescribableLogDirTopic(topic="t", partitions=list(partitions))]
            request = DescribeLogDirsRequest(topics=topics if partitions else None)
            answer = connection.exchange(request, version)
            if version >= 4:
                for it in answer.results:
                    assert (it.total_bytes, it.usable_bytes) == (10_000, 9_550 - size)
            return {
                it.log_dir: [
                    (partition.partition_index, partition.partition_size)
                    for topic in it.topics
                    for partition in topic.partitions
                ]
                for it in answer.results
            }

        assert described() == {"/a": [(0, 0), (2, 0)], "/b": [(1, size)]}
        assert described(1, 7) == {"/a": [], "/b": [(1, size)]}

        def move(path: str, topic: str, partition: int) -> str:
            wanted = AlterReplicaLogDirTopic(name=topic, partitions=[partition])
            request = AlterReplicaLogDirsRequest(
                dirs=[AlterReplicaLogDir(path=path, topics=[wanted])]
            )
            (found,) = connection.exchange(request, min(version, 2)).results
            return name_of(found.partitions[0].error_code)

        assert move("/a", "t", 1) == "NONE"
        assert described() == {"/a": [(0, 0), (1, size), (2, 0)], "/b": []}
        assert move("/c", "t", 1) == "LOG_DIR_NOT_FOUND"
        assert move("/a", "t", 9) == move("/a", "nope", 0) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_a_node_moves_only_its_own_replicas(cluster: ThreadedCluster) -> None:
    cluster.call(lambda it: it.create_topic("t", 2, replication_factor=1))
    topic = AlterReplicaLogDirTopic(name="t", partitions=[0, 1])
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDir(path="/kproto/logs", topics=[topic])]
    )
    with RawConnection(cluster.bootstrap) as connection:
        (found,) = connection.exchange(request, 2).results
        described = connection.exchange(DescribeLogDirsRequest(topics=None), 4).results[0]
    assert [name_of(it.error_code) for it in found.partitions] == [
        "NONE",
        "REPLICA_NOT_AVAILABLE",
    ]
    assert [it.partition_index for it in described.topics[0].partitions] == [0]


@pytest.mark.parametrize("version", DescribeQuorumRequest.VALID_VERSIONS)
def test_describe_quorum(cluster: ThreadedCluster, version: int) -> None:
    def ask(topic: str) -> Any:
        wanted = TopicData(topic_name=topic, partitions=[PartitionData()])
        with RawConnection(cluster.bootstrap.partition(",")[2]) as connection:
            return connection.exchange(DescribeQuorumRequest(topics=[wanted]), version)

    answer = ask("__cluster_metadata")
    (found,) = answer.topics[0].partitions
    assert (answer.error_code, found.error_code, found.leader_id) == (0, 0, 1)
    assert [it.replica_id for it in found.current_voters] == [1, 2, 3]
    assert [it.node_id for it in answer.nodes] == ([1, 2, 3] if version >= 2 else [])
    cluster.wait_for(lambda it: it.stop_broker(1))
    (moved,) = ask("__cluster_metadata").topics[0].partitions
    assert (moved.leader_id, moved.leader_epoch) == (2, found.leader_epoch + 1)
    (unknown,) = ask("t").topics[0].partitions
    assert name_of(unknown.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_unregister_broker(connection: RawConnection) -> None:
    for node, expected in ((1, "NONE"), (9, "BROKER_ID_NOT_REGISTERED")):
        answer = connection.exchange(UnregisterBrokerRequest(broker_id=node), 0)
        assert name_of(answer.error_code) == expected


@pytest.mark.parametrize("version", UpdateFeaturesRequest.VALID_VERSIONS)
def test_update_features(connection: RawConnection, version: int) -> None:
    def finalized() -> dict[str, int]:
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        answer = connection.exchange(request, 4)
        assert len(answer.supported_features) == 6
        return {it.name: it.max_version_level for it in answer.finalized_features}

    def update(name: str, level: int, kind: int = 1, *, validate_only: bool = False) -> str:
        key = FeatureUpdateKey(feature=name, max_version_level=level)
        if version:
            key.upgrade_type = kind
        request = UpdateFeaturesRequest(
            feature_updates=[key], validate_only=validate_only and version > 0
        )
        answer = connection.exchange(request, version)
        assert bool(answer.error_message) == bool(answer.error_code)
        return name_of(answer.error_code)

    assert finalized()["transaction.version"] == 2
    assert update("transaction.version", 1) == "INVALID_UPDATE_VERSION"
    if version:
        assert update("transaction.version", 1, 2, validate_only=True) == "NONE"
        assert finalized()["transaction.version"] == 2
        assert update("transaction.version", 1, 2) == "NONE"
        assert finalized()["transaction.version"] == 1
        assert update("group.version", 0, 2) == "NONE"
        assert "group.version" not in finalized()
    for name, level in (("nope", 1), ("group.version", 9), ("group.version", -1)):
        assert update(name, level) == "INVALID_UPDATE_VERSION"
    assert update("metadata.version", 32, 2) == "INVALID_UPDATE_VERSION"


def test_describe_topic_partitions_in_pages(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    broker.call(lambda it: (it.create_topic("b", 3), it.create_topic("a", 2)))

    def ask(limit: int, cursor: Cursor | None = None, *names: str) -> Any:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        return connection.exchange(request, 0)

    pages, cursor = [], None
    while True:
        page = ask(2, cursor)
        pages.append(
            [(it.name, [each.partition_index for each in it.partitions]) for it in page.topics]
        )
        if page.next_cursor is None:
            break
        cursor = Cursor(
            topic_name=page.next_cursor.topic_name,
            partition_index=page.next_cursor.partition_index,
        )
    assert pages == [[("a", [0, 1])], [("b", [0, 1])], [("b", [2])]]
    found = ask(9, None, "nope", "b", "a b").topics
    assert [(it.name, name_of(it.error_code)) for it in found] == [
        ("a b", "INVALID_TOPIC_EXCEPTION"),
        ("b", "NONE"),
        ("nope", "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    partition = found[1].partitions[0]
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert partition.replica_nodes == partition.isr_nodes == [1]
