"""Sends requests of administrators to a real and to the embedded broker, Kafka 4.4.0."""

from __future__ import annotations

import time
from typing import Any

from kproto.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kproto.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
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
from kproto.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kproto.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
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
from kproto.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

from .conversations import Said
from .talk import PATIENCE_S, Talk, error

__all__ = [
    "adding_partitions",
    "describing_log_dirs",
    "describing_the_cluster",
    "paging_through_topics",
    "reassigning_partitions",
    "setting_ip_quotas",
    "updating_features",
]


def adding_partitions(talk: Talk) -> Said:
    name = talk.create("grow", 2)
    requests: list[tuple[list[str], int, list[list[int]] | None]] = [
        ([name], 3, None),
        ([name], 3, None),
        ([name], 2, None),
        ([name], 0, None),
        ([name], -1, None),
        (["nope"], 3, None),
        (["a b"], 3, None),
        ([name, name], 5, None),
        ([name], 20_000, None),
        ([name], 4, []),
        ([name], 4, [[9]]),
        ([name], 4, [[1, 1]]),
        ([name], 4, [[]]),
        ([name], 4, [[1], [1]]),
        ([name], 4, [[1]]),
    ]
    for number, (topics, count, assignments) in enumerate(requests):
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=topic,
                    count=count,
                    assignments=None
                    if assignments is None
                    else [CreatePartitionsAssignment(broker_ids=it) for it in assignments],
                )
                for topic in topics
            ],
            timeout_ms=10_000,
        )
        yield (
            (number, len(topics), count),
            [
                (error(it.error_code), None if it.name == "nope" else bool(it.error_message))
                for it in talk.ask(request, 3).results
                if it.name not in ("nope", "a b") or it.error_code
            ],
        )
    talk.topic_id(name, partitions=4)
    (found,) = talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics
    yield "partitions", sorted(it.partition_index for it in found.partitions)


def describing_log_dirs(talk: Talk) -> Said:
    name = talk.create("dirs", 2)

    def described(*wanted: tuple[str, list[int]]) -> list[Any]:
        topics = [DescribableLogDirTopic(topic=topic, partitions=its) for topic, its in wanted]
        return list(talk.ask(DescribeLogDirsRequest(topics=topics), 4).results)

    (log_dir,) = described((name, [0, 1, 7]))
    yield (
        "described",
        [
            (topic.name, sorted((it.partition_index, it.offset_lag) for it in topic.partitions))
            for topic in log_dir.topics
        ],
    )
    yield "bytes", (log_dir.total_bytes >= log_dir.usable_bytes > 0, log_dir.is_cordoned)
    yield "nothing", [it.topics for it in described(("nope", [0]))]
    yield "no topics", [it.topics for it in described()]
    for path, topic, index in (
        (log_dir.log_dir, name, 0),
        (log_dir.log_dir, name, 7),
        (log_dir.log_dir, "nope", 0),
        ("/nope", name, 0),
        ("/nope", "nope", 0),
        ("relative", name, 0),
    ):
        wanted = AlterReplicaLogDirTopic(name=topic, partitions=[index])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[wanted])])
        (answered,) = talk.ask(request, 2).results
        yield (
            ("move", path == log_dir.log_dir, path[:5] == "/nope", topic, index),
            error(answered.partitions[0].error_code),
        )


def paging_through_topics(talk: Talk) -> Said:
    names = [talk.create("page-a", 3), talk.create("page-b", 2)]

    def ask(limit: int, wanted: list[str], cursor: tuple[str, int] | None = None) -> Any:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in wanted],
            response_partition_limit=limit,
            cursor=None
            if cursor is None
            else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        answer = talk.ask(request, 0)
        following = answer.next_cursor
        return (
            [
                (
                    error(topic.error_code),
                    topic.name,
                    topic.is_internal,
                    topic.topic_authorized_operations,
                    [
                        (
                            it.partition_index,
                            it.leader_id,
                            it.leader_epoch,
                            list(it.replica_nodes),
                            list(it.isr_nodes),
                            it.eligible_leader_replicas,
                            it.last_known_elr,
                            list(it.offline_replicas),
                        )
                        for it in topic.partitions
                    ],
                )
                for topic in answer.topics
            ],
            None if following is None else (following.topic_name, following.partition_index),
        )

    for limit in (0, 1, 2, 3, 4, 5, 9):
        yield ("limit", limit), ask(limit, names)
    for at, index in ((0, 1), (0, 3), (1, 0), (1, 1), (1, 2)):
        yield ("cursor", at, index), ask(9, names, (names[at], index))
    yield "unknown", ask(9, ["nope", "a b", names[0]])


#: The feature of streams groups, which the embedded broker does not serve.
STREAMS = "streams.version"


def updating_features(talk: Talk) -> Said:
    def features(version: int) -> object:
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        answer = talk.ask(request, version)
        supported = [(it.name, it.min_version, it.max_version) for it in answer.supported_features]
        finalized = [(it.name, it.max_version_level) for it in answer.finalized_features]
        return [sorted(it for it in each if it[0] != STREAMS) for each in (supported, finalized)]

    yield "v3", features(3)
    yield "v4", features(4)
    for version in range(3):
        for name, level, kind in (
            ("group.version", 1, 1),
            ("nope", 1, 1),
            ("group.version", 9, 1),
            ("group.version", 0, 1),
            ("group.version", -1, 2),
            ("group.version", 0, 9),
            ("metadata.version", 5, 1),
            ("metadata.version", 32, 2),
        ):
            if version == 0 and kind == 9:
                continue
            key = FeatureUpdateKey(feature=name, max_version_level=level)
            if version:
                key.upgrade_type = kind
            else:
                key.allow_downgrade = kind > 1
            request = UpdateFeaturesRequest(
                feature_updates=[key], timeout_ms=10_000, validate_only=version > 0
            )
            answer = talk.ask(request, version)
            yield (
                (version, name, level, kind),
                (
                    error(answer.error_code),
                    answer.error_message,
                    [(it.feature, it.error_code) for it in answer.results],
                ),
            )


def setting_ip_quotas(talk: Talk) -> Said:
    rate = "connection_creation_rate"
    here: list[tuple[str, str | None]] = [("ip", "10.0.0.1")]
    cases: list[tuple[list[tuple[str, str | None]], str, float]] = [
        (here, rate, 10.0),
        ([("ip", None)], rate, 1000.0),
        ([("ip", "localhost")], rate, 1000.0),
        ([("ip", "::1")], rate, 1000.0),
        ([("ip", "no.such.host.invalid")], rate, 10.0),
        ([("ip", "")], rate, 10.0),
        (here, rate, 1.5),
        (here, rate, 0.0),
        (here, "producer_byte_rate", 10.0),
        (here, "nope", 10.0),
        ([("user", "a")], rate, 10.0),
        ([("user", "")], "producer_byte_rate", 10.0),
        ([("user", "a")], "producer_byte_rate", -1.0),
        ([("ip", "10.0.0.1"), ("user", "a")], rate, 10.0),
        ([("nope", "a")], rate, 10.0),
        ([], rate, 10.0),
    ]
    for number, (entity, key, value) in enumerate(cases):
        entry = EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[OpData(key=key, value=value)],
        )
        (found,) = talk.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries
        yield (number, key, value), (error(found.error_code), found.error_message)
    for kind, name in ((0, "10.0.0.1"), (1, None), (2, None)):
        request = DescribeClientQuotasRequest(
            components=[ComponentData(entity_type="ip", match_type=kind, match=name)]
        )
        deadline = time.monotonic() + PATIENCE_S
        entries: list[Any] = []
        while not entries and time.monotonic() < deadline:
            entries = talk.ask(request, 1).entries
        yield (
            ("described", kind),
            sorted(
                (
                    str([(it.entity_type, it.entity_name) for it in each.entity]),
                    [(it.key, it.value) for it in each.values],
                )
                for each in entries
            ),
        )
    for entity, key, _ in cases[:4]:
        entry = EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[OpData(key=key, remove=True)],
        )
        talk.ask(AlterClientQuotasRequest(entries=[entry]), 1)


def describing_the_cluster(talk: Talk) -> Said:
    for topics in ([("__cluster_metadata", 0)], [("nope", 0)], [("__cluster_metadata", 1)], []):
        wanted = [
            TopicData(topic_name=name, partitions=[PartitionData(partition_index=index)])
            for name, index in topics
        ]
        answer = talk.ask(DescribeQuorumRequest(topics=wanted), 2)
        yield (
            ("quorum", str(topics)),
            (
                error(answer.error_code),
                answer.error_message,
                [
                    (
                        topic.topic_name,
                        it.partition_index,
                        error(it.error_code),
                        it.error_message,
                        it.leader_id > 0,
                        it.leader_epoch > 0,
                        sorted(each.replica_id for each in it.current_voters),
                        list(it.observers),
                    )
                    for topic in answer.topics
                    for it in topic.partitions
                ],
                sorted((it.node_id, [each.name for each in it.listeners]) for it in answer.nodes),
            ),
        )


def reassigning_partitions(talk: Talk) -> Said:
    """Needs a cluster of three nodes, 1 to 3."""
    name = talk.name("moved")
    placed = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
        for index, nodes in enumerate(([1, 2], [2, 3], [3, 1]))
    ]
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=placed)
    talk.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    state = _settled(talk, name, [[1, 2], [2, 3], [3, 1]])
    yield "created", state
    steps: list[tuple[str, list[tuple[int, list[int] | None]], bool, list[list[int]] | None]] = [
        (name, [(0, [2, 1])], True, [[2, 1], [2, 3], [3, 1]]),
        (name, [(0, [3, 1])], True, [[3, 1], [2, 3], [3, 1]]),
        (name, [(0, None)], True, None),
        (name, [(0, [9])], True, None),
        (name, [(0, [])], True, None),
        (name, [(0, [1, 1])], True, None),
        (name, [(9, [1])], True, None),
        ("nope", [(0, [1])], True, None),
        (name, [(1, [1, 2, 3])], True, [[3, 1], [1, 2, 3], [3, 1]]),
        (name, [(1, [1])], False, None),
        (name, [(1, [1])], True, [[3, 1], [1], [3, 1]]),
        (name, [(0, [1, 2]), (2, [2, 3])], True, [[1, 2], [1], [2, 3]]),
    ]
    for number, (topic_name, moves, change, after) in enumerate(steps):
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            allow_replication_factor_change=change,
            topics=[
                ReassignableTopic(
                    name=topic_name,
                    partitions=[
                        ReassignablePartition(partition_index=index, replicas=replicas)
                        for index, replicas in moves
                    ],
                )
            ],
        )
        answer = talk.ask(request, 1)
        yield (
            (number, topic_name, str(moves)),
            [
                (it.partition_index, error(it.error_code), bool(it.error_message))
                for each in answer.responses
                for it in each.partitions
            ],
        )
        if after is not None:
            yield (number, "state"), [it[:2] for it in _settled(talk, name, after)]
    yield "listed", list(talk.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics)
    for number, (kind, indexes) in enumerate(
        ((0, [0, 1, 2, 9]), (0, [0, 1, 2]), (1, [0, 1]), (7, [0]))
    ):
        wanted = TopicPartitions(topic=name, partitions=indexes)
        election = ElectLeadersRequest(
            election_type=kind, topic_partitions=[wanted], timeout_ms=10_000
        )
        elected = talk.ask(election, 2)
        yield (
            ("election", number),
            (
                error(elected.error_code),
                [
                    (it.partition_id, error(it.error_code) != "UNKNOWN_SERVER_ERROR")
                    for each in elected.replica_election_results
                    for it in each.partition_result
                    if kind != 7
                ],
            ),
        )
    election = ElectLeadersRequest(
        election_type=0,
        topic_partitions=[TopicPartitions(topic="nope", partitions=[0])],
        timeout_ms=10_000,
    )
    (found,) = talk.ask(election, 2).replica_election_results
    (result,) = found.partition_result
    yield "election of nope", (error(result.error_code), result.error_message)
    yield "leaders", [it[1] for it in _settled(talk, name, [[1, 2], [1], [2, 3]], preferred=True)]


def _settled(
    talk: Talk, name: str, replicas: list[list[int]], *, preferred: bool = False
) -> list[tuple[list[int], int, list[int]]]:
    """Returns replicas, leader and ISR of each partition, once `replicas` are all in sync."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        (found,) = talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics
        state = [
            (list(it.replica_nodes), it.leader_id, sorted(it.isr_nodes))
            for it in sorted(found.partitions, key=lambda it: it.partition_index)
        ]
        reached = [
            (its, leader if not preferred else its[0], sorted(its))
            for its, (_, leader, _) in zip(replicas, state, strict=False)
        ]
        if (len(state) == len(replicas) and state == reached) or time.monotonic() > deadline:
            return state
        time.sleep(0.05)
