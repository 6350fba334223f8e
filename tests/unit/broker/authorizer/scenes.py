"""For each right that an API asks for: a request that needs it, and where its answer says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.broker.authorizer import NEEDS, Need, Operation, ResourceType
from kproto.broker.context import Context, Principal
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import by_key
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
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
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
from kproto.protocol.error_codes import error_code
from kproto.records import encode_batch
from tests.support.batches import TIMESTAMP, batch_bytes

__all__ = ["APIS", "SCENES", "Scene"]

APIS: Final = by_key(KAFKA_APIS)

#: What is shown of something whose right is missing, where there is no error.
HIDDEN: Final = "HIDDEN"
SEEN: Final = "SEEN"

Build = Callable[[Context, int], Request[Any]]


@dataclass(frozen=True)
class Scene:
    """A request that asks for a right of the table.

    `shown` takes the answer and gives the name of its error; `fine` is what it is where the
    client has the right.
    """

    operation: Operation
    resource_type: ResourceType
    build: Build
    shown: Callable[[Any], str]
    when: str = ""
    versions: Sequence[int] | None = None
    fine: str = "NONE"
    auto_create: bool = field(default=False)

    @property
    def api_key(self) -> int:
        return next(key for key, scenes in SCENES.items() if self in scenes)

    @property
    def need(self) -> Need:
        """The row of the table."""
        (found,) = (
            need
            for need in NEEDS[self.api_key]
            if (need.operation, need.resource_type, need.when)
            == (self.operation, self.resource_type, self.when)
        )
        return found

    @property
    def denied(self) -> str:
        return self.need.error or HIDDEN


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


def transactional_records() -> bytes:
    return encode_batch(
        [(None, b"v", (), TIMESTAMP)],
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


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


def error_of_first_result(answer: Any) -> str:
    return named(answer.results[0].error_code)


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
        return InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=1, enable_2pc=two_phases
        )

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


Op, Of = Operation, ResourceType

SCENES: Final[dict[int, tuple[Scene, ...]]] = {
    0: (
        Scene(
            Op.WRITE,
            Of.TRANSACTIONAL_ID,
            produce(transactional_records(), "tx"),
            error_of_first_partition,
            when="transactional records",
            versions=range(3, 14),
            fine="INVALID_TXN_STATE",
        ),
        Scene(Op.WRITE, Of.TOPIC, produce(), error_of_first_partition),
    ),
    1: (
        Scene(
            Op.CLUSTER_ACTION,
            Of.CLUSTER,
            fetch(follower=2),
            error_of_first_partition,
            when="from a follower",
            fine="NOT_LEADER_OR_FOLLOWER",
        ),
        Scene(Op.READ, Of.TOPIC, fetch(), error_of_first_partition, when="from a consumer"),
    ),
    2: (Scene(Op.DESCRIBE, Of.TOPIC, list_offsets, error_of_first_partition),),
    3: (
        Scene(
            Op.DESCRIBE,
            Of.TOPIC,
            metadata(),
            error_of_first_topic,
            when="topics by name or id",
        ),
        Scene(
            Op.DESCRIBE,
            Of.TOPIC,
            metadata(by_id=True),
            error_of_first_topic,
            when="topics by name or id",
            versions=range(12, 14),
        ),
        Scene(
            Op.DESCRIBE,
            Of.TOPIC,
            all_topics,
            lambda answer: SEEN if answer.topics else HIDDEN,
            when="all topics",
            fine=SEEN,
        ),
        Scene(
            Op.CREATE,
            Of.CLUSTER,
            metadata("new"),
            error_of_first_topic,
            when="a topic is created",
            auto_create=True,
        ),
        Scene(
            Op.CREATE,
            Of.TOPIC,
            metadata("new"),
            error_of_first_topic,
            when="a topic is created",
            auto_create=True,
        ),
        Scene(
            Op.DESCRIBE,
            Of.CLUSTER,
            with_cluster_operations,
            shown_operations,
            when="operations with the cluster are asked for",
            versions=range(8, 11),
            fine=SEEN,
        ),
    ),
    10: (
        Scene(Op.DESCRIBE, Of.GROUP, coordinator("g", 0), error_of_coordinator, when="of a group"),
        Scene(
            Op.DESCRIBE,
            Of.TRANSACTIONAL_ID,
            coordinator("tx", 1),
            error_of_coordinator,
            when="of a transactional id",
            versions=range(1, 7),
        ),
        Scene(
            Op.CLUSTER_ACTION,
            Of.CLUSTER,
            coordinator("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 2),
            error_of_coordinator,
            when="of a share partition",
            versions=[6],
        ),
    ),
    19: (
        Scene(Op.CREATE, Of.CLUSTER, create_topics, error_of_first_topic),
        Scene(Op.CREATE, Of.TOPIC, create_topics, error_of_first_topic),
        Scene(
            Op.DESCRIBE_CONFIGS,
            Of.TOPIC,
            create_topics,
            shown_of_created,
            when="settings of the new topic",
            fine=SEEN,
        ),
    ),
    20: (
        Scene(Op.DELETE, Of.CLUSTER, delete_topics, lambda answer: error(answer.responses[0])),
        Scene(Op.DELETE, Of.TOPIC, delete_topics, lambda answer: error(answer.responses[0])),
    ),
    21: (
        Scene(
            Op.DELETE,
            Of.TOPIC,
            delete_records,
            lambda answer: named(answer.topics[0].partitions[0].error_code),
        ),
    ),
    22: (
        Scene(
            Op.WRITE,
            Of.TRANSACTIONAL_ID,
            init_producer_id("tx"),
            error,
            when="with a transactional id",
            fine="INVALID_REQUEST",
        ),
        Scene(
            Op.TWO_PHASE_COMMIT,
            Of.TRANSACTIONAL_ID,
            init_producer_id("tx", two_phases=True),
            error,
            when="with two-phase commit",
            versions=[6],
            fine="INVALID_REQUEST",
        ),
        Scene(
            Op.IDEMPOTENT_WRITE,
            Of.CLUSTER,
            init_producer_id(None),
            error,
            when="without a transactional id",
        ),
        Scene(
            Op.WRITE,
            Of.TOPIC,
            init_producer_id(None),
            error,
            when="without a transactional id; any topic will do",
        ),
    ),
    23: (
        Scene(Op.CLUSTER_ACTION, Of.CLUSTER, end_of_epoch, error_of_first_partition),
        Scene(Op.DESCRIBE, Of.TOPIC, end_of_epoch, error_of_first_partition),
    ),
    29: (Scene(Op.DESCRIBE, Of.CLUSTER, describe_acls, error),),
    30: (Scene(Op.ALTER, Of.CLUSTER, create_acls, lambda answer: error(answer.results[0])),),
    31: (Scene(Op.ALTER, Of.CLUSTER, delete_acls, lambda answer: error(answer.filter_results[0])),),
    32: (
        Scene(
            Op.DESCRIBE_CONFIGS,
            Of.CLUSTER,
            describe_configs(4, "1"),
            error_of_first_result,
            when="of brokers",
        ),
        Scene(
            Op.DESCRIBE_CONFIGS,
            Of.TOPIC,
            describe_configs(2, "t"),
            error_of_first_result,
            when="of topics",
        ),
        Scene(
            Op.DESCRIBE_CONFIGS,
            Of.GROUP,
            describe_configs(32, "g"),
            error_of_first_result,
            when="of groups",
        ),
    ),
    38: (
        Scene(
            Op.CREATE_TOKENS, Of.USER, token_for_bob, error, when="for another owner", versions=[3]
        ),
    ),
    41: (
        Scene(
            Op.DESCRIBE,
            Of.DELEGATION_TOKEN,
            tokens,
            lambda answer: SEEN if answer.tokens else HIDDEN,
            when="of another owner",
            fine=SEEN,
        ),
        Scene(
            Op.DESCRIBE_TOKENS,
            Of.USER,
            tokens,
            lambda answer: SEEN if answer.tokens else HIDDEN,
            when="of another owner",
            fine=SEEN,
        ),
    ),
    50: (Scene(Op.DESCRIBE, Of.CLUSTER, describe_users, error),),
    51: (Scene(Op.ALTER, Of.CLUSTER, alter_users, lambda answer: error(answer.results[0])),),
    48: (Scene(Op.DESCRIBE_CONFIGS, Of.CLUSTER, describe_quotas, error),),
    49: (
        Scene(Op.ALTER_CONFIGS, Of.CLUSTER, alter_quotas, lambda answer: error(answer.entries[0])),
    ),
    60: (
        Scene(
            Op.DESCRIBE,
            Of.CLUSTER,
            describe_cluster,
            shown_operations,
            when="operations with the cluster are asked for",
            fine=SEEN,
        ),
    ),
}
