"""Builds requests of administrators, and reads the error of each response."""

from __future__ import annotations

from typing import Any

from kproto.broker.context import Context
from kproto.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from kproto.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from kproto.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kproto.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kproto.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kproto.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kproto.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kproto.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kproto.messages.list_config_resources_request import ListConfigResourcesRequest
from kproto.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kproto.messages.unregister_broker_request import UnregisterBrokerRequest
from kproto.messages.update_features_request import UpdateFeaturesRequest
from tests.unit.broker.authorizer.authorized_requests import HIDDEN, SEEN, Build, named

__all__ = [
    "alter_configs",
    "alter_reassignments",
    "alter_replica_log_dirs",
    "create_partitions",
    "describe_all_topics",
    "describe_log_dirs",
    "describe_quorum",
    "describe_topics",
    "elect_leaders",
    "error_of_election",
    "error_of_first_response",
    "error_of_log_dir_move",
    "list_config_resources",
    "list_reassignments",
    "shown_of_described_topics",
    "unregister_broker",
    "update_features",
]


def alter_configs(resource_type: int, name: str) -> Build:
    def build(context: Context, version: int) -> AlterConfigsRequest:
        wanted = AlterConfigsResource(resource_type=resource_type, resource_name=name)
        return AlterConfigsRequest(resources=[wanted])

    return build


def list_config_resources(context: Context, version: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest()


def create_partitions(context: Context, version: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name="t", count=9, assignments=None)
    return CreatePartitionsRequest(topics=[topic], validate_only=True)


def alter_replica_log_dirs(context: Context, version: int) -> AlterReplicaLogDirsRequest:
    topic = AlterReplicaLogDirTopic(name="t", partitions=[0])
    log_dir = AlterReplicaLogDir(path=context.settings.log_dirs[0], topics=[topic])
    return AlterReplicaLogDirsRequest(dirs=[log_dir])


def error_of_log_dir_move(answer: Any) -> str:
    return named(answer.results[0].partitions[0].error_code)


def describe_log_dirs(context: Context, version: int) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=None)


def elect_leaders(context: Context, version: int) -> ElectLeadersRequest:
    wanted = TopicPartitions(topic="t", partitions=[0])
    return ElectLeadersRequest(topic_partitions=[wanted])


def error_of_election(answer: Any) -> str:
    return named(answer.replica_election_results[0].partition_result[0].error_code)


def alter_reassignments(context: Context, version: int) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest()


def list_reassignments(context: Context, version: int) -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(topics=None)


def describe_quorum(context: Context, version: int) -> DescribeQuorumRequest:
    wanted = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])
    return DescribeQuorumRequest(topics=[wanted])


def update_features(context: Context, version: int) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest()


def unregister_broker(context: Context, version: int) -> UnregisterBrokerRequest:
    return UnregisterBrokerRequest(broker_id=context.node_id)


def describe_topics(context: Context, version: int) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")])


def describe_all_topics(context: Context, version: int) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest()


def shown_of_described_topics(answer: Any) -> str:
    return SEEN if any(topic.name == "t" for topic in answer.topics) else HIDDEN


def error_of_first_response(answer: Any) -> str:
    return named(answer.responses[0].error_code)
