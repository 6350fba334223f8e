"""Builds a request for each required operation, and reads the result from the response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kproto.broker.context import Context, Principal
from kproto.broker.coordinators import CoordinatorType
from kproto.broker.groups.committed_offsets import CommittedOffset
from kproto.broker.groups.consumer import ConsumerHeartbeat
from kproto.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kproto.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kproto.messages.base import Request
from kproto.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kproto.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kproto.messages.create_acls_request import AclCreation, CreateAclsRequest
from kproto.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.describe_acls_request import DescribeAclsRequest
from kproto.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kproto.messages.describe_cluster_request import DescribeClusterRequest
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kproto.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from kproto.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
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
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.sync_group_request import SyncGroupRequest
from kproto.protocol.error_codes import error_code
from tests.support.batches import batch_bytes

__all__ = [
    "HIDDEN",
    "SEEN",
    "Build",
    "all_topics",
    "alter_quotas",
    "alter_users",
    "consumer_group",
    "coordinator",
    "create_acls",
    "create_topics",
    "delete_acls",
    "delete_records",
    "delete_topics",
    "describe_acls",
    "describe_cluster",
    "describe_configs",
    "describe_quotas",
    "describe_users",
    "end_of_epoch",
    "error",
    "error_of_coordinator",
    "error_of_first_group",
    "error_of_first_partition",
    "error_of_first_result",
    "error_of_first_topic",
    "error_of_offset_delete",
    "error_of_offset_fetch",
    "fetch",
    "group_heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "join_group",
    "leave_group",
    "list_groups",
    "list_offsets",
    "metadata",
    "named",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "produce",
    "shown_of_created",
    "shown_operations",
    "sync_group",
    "token_for_bob",
    "tokens",
    "topics_of_offset_fetch",
    "with_cluster_operations",
]

#: The result for a resource that the response omits because the client is not authorized.
HIDDEN: Final = "HIDDEN"
SEEN: Final = "SEEN"

#: Builds the request in the given version.
Build = Callable[[Context, int], Request[Any]]


def named(code: int) -> str:
    return error_code(code).name


def topic_id(context: Context) -> Any:
    return context.cluster.topics.named("t").topic_id


# Produce, Fetch, ListOffsets


def produce(records: bytes | None = None, transactional_id: str | None = None) -> Build:
    def build(context: Context, version: int) -> ProduceRequest:
        data = PartitionProduceData(records=batch_bytes() if records is None else records)
        name = {"topic_id": topic_id(context)} if version >= 13 else {"name": "t"}
        return ProduceRequest(
            acks=-1,
            transactional_id=transactional_id,
            topic_data=[TopicProduceData(partition_data=[data], **name)],
        )

    return build


def fetch(follower: int = -1) -> Build:
    def build(context: Context, version: int) -> FetchRequest:
        name = {"topic_id": topic_id(context)} if version >= 13 else {"topic": "t"}
        wanted = FetchPartition(partition_max_bytes=1 << 20)
        return FetchRequest(
            max_wait_ms=0,
            replica_id=follower if version < 15 else -1,
            replica_state=ReplicaState(replica_id=follower if version >= 15 else -1),
            topics=[FetchTopic(partitions=[wanted], **name)],
        )

    return build


def list_offsets(context: Context, version: int) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(timestamp=-1, max_num_offsets=1)
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])])


def end_of_epoch(context: Context, version: int) -> OffsetForLeaderEpochRequest:
    wanted = OffsetForLeaderPartition(leader_epoch=0)
    return OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[wanted])]
    )


# Offsets of groups


def create_group(context: Context) -> None:
    """Creates group g, whose coordinator is node 1, and commits offset 7 of t-0 for the group."""
    cluster = context.cluster
    cluster.coordinator(CoordinatorType.GROUP, "g")
    group = cluster.group_coordinator.get_or_create(1, "g", context.now)
    group.offsets.put("t", 0, CommittedOffset(7, commit_ms=context.clock.now_ms()))


def offset_commit(context: Context, version: int) -> OffsetCommitRequest:
    create_group(context)
    name = {"topic_id": topic_id(context)} if version >= 10 else {"name": "t"}
    partition = OffsetCommitRequestPartition(committed_offset=1)
    topic = OffsetCommitRequestTopic(partitions=[partition], **name)
    return OffsetCommitRequest(group_id="g", topics=[topic])


def offset_fetch(*, every_topic: bool = False) -> Build:
    def build(context: Context, version: int) -> OffsetFetchRequest:
        create_group(context)
        if version >= 8:
            name = {"topic_id": topic_id(context)} if version >= 10 else {"name": "t"}
            wanted = [OffsetFetchRequestTopics(partition_indexes=[0], **name)]
            group = OffsetFetchRequestGroup(group_id="g", topics=None if every_topic else wanted)
            return OffsetFetchRequest(groups=[group])
        topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        return OffsetFetchRequest(group_id="g", topics=None if every_topic else [topic])

    return build


def error_of_offset_fetch(answer: Any) -> str:
    found = answer.groups[0] if answer.groups else answer
    if found.error_code:
        return named(found.error_code)
    return named(found.topics[0].partitions[0].error_code)


def topics_of_offset_fetch(answer: Any) -> str:
    found = answer.groups[0] if answer.groups else answer
    if found.error_code:
        return named(found.error_code)
    return SEEN if found.topics else HIDDEN


def offset_delete(context: Context, version: int) -> OffsetDeleteRequest:
    create_group(context)
    topic = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition()])
    return OffsetDeleteRequest(group_id="g", topics=[topic])


def error_of_offset_delete(answer: Any) -> str:
    if answer.error_code:
        return named(answer.error_code)
    return named(answer.topics[0].partitions[0].error_code)


# The cluster


def coordinator(key: str, key_type: int) -> Build:
    def build(context: Context, version: int) -> FindCoordinatorRequest:
        keys: dict[str, Any] = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
        return FindCoordinatorRequest(key_type=key_type, **keys)

    return build


def error_of_coordinator(answer: Any) -> str:
    return named(answer.coordinators[0].error_code if answer.coordinators else answer.error_code)


def describe_cluster(context: Context, version: int) -> DescribeClusterRequest:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def shown_operations(answer: Any) -> str:
    return SEEN if answer.cluster_authorized_operations else HIDDEN


# Metadata


def metadata(name: str = "t", *, by_id: bool = False) -> Build:
    def build(context: Context, version: int) -> MetadataRequest:
        if by_id:
            return MetadataRequest(
                topics=[MetadataRequestTopic(name=None, topic_id=topic_id(context))]
            )
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )

    return build


def all_topics(context: Context, version: int) -> MetadataRequest:
    return MetadataRequest(topics=[] if version == 0 else None)


def with_cluster_operations(context: Context, version: int) -> MetadataRequest:
    return MetadataRequest(topics=[], include_cluster_authorized_operations=True)


# Topics


def create_topics(context: Context, version: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def shown_of_created(answer: Any) -> str:
    (topic,) = answer.topics
    if topic.error_code:
        return named(topic.error_code)
    shows = (topic.num_partitions, topic.replication_factor, bool(topic.configs))
    if topic.topic_config_error_code:
        assert named(topic.topic_config_error_code) == "TOPIC_AUTHORIZATION_FAILED"
        assert shows == (-1, -1, False)
        return HIDDEN
    assert shows == (1, 1, True)
    return SEEN


def delete_topics(context: Context, version: int) -> DeleteTopicsRequest:
    if version >= 6:
        return DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    return DeleteTopicsRequest(topic_names=["t"])


def delete_records(context: Context, version: int) -> DeleteRecordsRequest:
    topic = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(offset=0)])
    return DeleteRecordsRequest(topics=[topic])


def describe_configs(resource_type: int, name: str) -> Build:
    def build(context: Context, version: int) -> DescribeConfigsRequest:
        wanted = DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=None
        )
        return DescribeConfigsRequest(resources=[wanted])

    return build


def incremental_alter_configs(resource_type: int, name: str) -> Build:
    def build(context: Context, version: int) -> IncrementalAlterConfigsRequest:
        wanted = AlterConfigsResource(resource_type=resource_type, resource_name=name)
        return IncrementalAlterConfigsRequest(resources=[wanted])

    return build


def error_of_first_result(answer: Any) -> str:
    return named(answer.results[0].error_code)


# Groups


def join_group(context: Context, version: int) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )


def sync_group(context: Context, version: int) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g", member_id="m", protocol_type="consumer", protocol_name="range"
    )


def leave_group(context: Context, version: int) -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest(group_id="g", member_id="m")
    return LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])


def group_heartbeat(context: Context, version: int) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )


def consumer_group(context: Context, version: int) -> ConsumerGroupDescribeRequest:
    now = context.now
    asked = ConsumerHeartbeat("m", 0, rebalance_timeout_ms=1000, topics=frozenset({"t"}), owned={})
    context.cluster.groups.get_or_create_consumer_group("g", now).heartbeat(asked, "", now)
    return ConsumerGroupDescribeRequest(group_ids=["g"])


def list_groups(context: Context, version: int) -> ListGroupsRequest:
    context.cluster.groups.get_or_create("g", context.now, persist=True)
    return ListGroupsRequest()


def error_of_first_group(answer: Any) -> str:
    (group,) = answer.groups
    return named(group.error_code)


# ACLs


def describe_acls(context: Context, version: int) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def create_acls(context: Context, version: int) -> CreateAclsRequest:
    wanted = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:x",
        host="*",
        operation=3,
        permission_type=3,
    )
    return CreateAclsRequest(creations=[wanted])


def delete_acls(context: Context, version: int) -> DeleteAclsRequest:
    wanted = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter="none",
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return DeleteAclsRequest(filters=[wanted])


# Tokens and users


def token_for_bob(context: Context, version: int) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1
    )


def tokens(context: Context, version: int) -> DescribeDelegationTokenRequest:
    bob = Principal("User", "bob")
    context.cluster.tokens.create(bob, bob, [], -1, context.clock.now_ms())
    return DescribeDelegationTokenRequest(owners=None)


def describe_users(context: Context, version: int) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=None)


def alter_users(context: Context, version: int) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        upsertions=[
            ScramCredentialUpsertion(
                name="x", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
            )
        ]
    )


def describe_quotas(context: Context, version: int) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest()


def alter_quotas(context: Context, version: int) -> AlterClientQuotasRequest:
    of = [EntityData(entity_type="user", entity_name="x")]
    change = OpData(key="request_percentage", value=1.0)
    return AlterClientQuotasRequest(entries=[EntryData(entity=of, ops=[change])])


def init_producer_id(transactional_id: str | None, *, two_phases: bool = False) -> Build:
    def build(context: Context, version: int) -> InitProducerIdRequest:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=1, enable_2pc=two_phases
        )
        if two_phases:
            # Without an epoch, the request is invalid: this broker disables two-phase commit, and
            # returns TRANSACTIONAL_ID_AUTHORIZATION_FAILED even to an authorized client.
            request.producer_id = 1
        return request

    return build


def error_of_first_partition(answer: Any) -> str:
    (topic,) = answer.topics if hasattr(answer, "topics") else answer.responses
    ((partition),) = (
        topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
    )
    return named(partition.error_code)


def error_of_first_topic(answer: Any) -> str:
    (topic,) = answer.topics
    return named(topic.error_code)


def error(answer: Any) -> str:
    return named(answer.error_code)
