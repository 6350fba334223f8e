"""Defines scenes: a request for each operation that an API requires.

A scene also reads the result of the authorization from the response.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.broker.authorizer import REQUIRED_OPERATIONS, Operation, RequiredOperation, ResourceType
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import by_key
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from tests.unit.broker.authorizer import admin_requests as admin
from tests.unit.broker.authorizer import share_requests as shares
from tests.unit.broker.authorizer.authorized_requests import (
    HIDDEN,
    SEEN,
    Build,
    all_topics,
    alter_quotas,
    alter_users,
    consumer_group,
    coordinator,
    create_acls,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_quotas,
    describe_users,
    end_of_epoch,
    error,
    error_of_coordinator,
    error_of_first_group,
    error_of_first_partition,
    error_of_first_result,
    error_of_first_topic,
    error_of_offset_delete,
    error_of_offset_fetch,
    fetch,
    group_heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    named,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    shown_of_created,
    shown_operations,
    sync_group,
    token_for_bob,
    tokens,
    topics_of_offset_fetch,
    with_cluster_operations,
)
from tests.unit.broker.authorizer.transactional_requests import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    error_of_added_partition,
    error_of_first_transaction,
    error_of_marker,
    list_transactions,
    shown_topics_of_transaction,
    shown_transactions,
    transactional_produce,
    txn_offset_commit,
    write_txn_markers,
)

__all__ = ["APIS", "SCENES", "Scene"]

APIS: Final = by_key(KAFKA_APIS)


@dataclass(frozen=True)
class Scene:
    """A request that needs one operation of the table `REQUIRED_OPERATIONS`.

    `build` builds the request. `shown` returns the name of the error in a response, or another word
    for the result. `fine` is the result of `shown` for an authorized client.
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
    def need(self) -> RequiredOperation:
        """Returns the row of the table `REQUIRED_OPERATIONS` for this scene."""
        (found,) = (
            need
            for need in REQUIRED_OPERATIONS[self.api_key]
            if (need.operation, need.resource_type, need.when)
            == (self.operation, self.resource_type, self.when)
        )
        return found

    @property
    def denied(self) -> str:
        return self.need.error or HIDDEN


AlterOp, Of = Operation, ResourceType

_CONFIGS_OF: Final = (
    (Of.CLUSTER, 4, "1", "of brokers"),
    (Of.TOPIC, 2, "t", "of topics"),
    (Of.GROUP, 32, "g", "of groups"),
)

SCENES: Final[dict[int, tuple[Scene, ...]]] = {
    0: (
        Scene(
            AlterOp.WRITE,
            Of.TRANSACTIONAL_ID,
            transactional_produce,
            error_of_first_partition,
            when="transactional records",
            versions=range(3, 14),
        ),
        Scene(AlterOp.WRITE, Of.TOPIC, produce(), error_of_first_partition),
    ),
    1: (
        Scene(
            AlterOp.CLUSTER_ACTION,
            Of.CLUSTER,
            fetch(follower=2),
            error_of_first_partition,
            when="from a follower",
            fine="NOT_LEADER_OR_FOLLOWER",
        ),
        Scene(AlterOp.READ, Of.TOPIC, fetch(), error_of_first_partition, when="from a consumer"),
    ),
    2: (Scene(AlterOp.DESCRIBE, Of.TOPIC, list_offsets, error_of_first_partition),),
    3: (
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            metadata(),
            error_of_first_topic,
            when="topics by name or id",
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            metadata(by_id=True),
            error_of_first_topic,
            when="topics by name or id",
            versions=range(12, 14),
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            all_topics,
            lambda answer: SEEN if answer.topics else HIDDEN,
            when="all topics",
            fine=SEEN,
        ),
        Scene(
            AlterOp.CREATE,
            Of.CLUSTER,
            metadata("new"),
            error_of_first_topic,
            when="a topic is created",
            auto_create=True,
        ),
        Scene(
            AlterOp.CREATE,
            Of.TOPIC,
            metadata("new"),
            error_of_first_topic,
            when="a topic is created",
            auto_create=True,
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.CLUSTER,
            with_cluster_operations,
            shown_operations,
            when="the authorized operations of the cluster are requested",
            versions=range(8, 11),
            fine=SEEN,
        ),
    ),
    8: (
        Scene(AlterOp.READ, Of.GROUP, offset_commit, error_of_first_partition),
        Scene(AlterOp.READ, Of.TOPIC, offset_commit, error_of_first_partition),
    ),
    9: (
        Scene(AlterOp.DESCRIBE, Of.GROUP, offset_fetch(), error_of_offset_fetch),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            offset_fetch(),
            error_of_offset_fetch,
            when="topics by name or id",
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            offset_fetch(every_topic=True),
            topics_of_offset_fetch,
            when="all topics",
            versions=range(2, 11),
            fine=SEEN,
        ),
    ),
    10: (
        Scene(
            AlterOp.DESCRIBE, Of.GROUP, coordinator("g", 0), error_of_coordinator, when="of a group"
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.TRANSACTIONAL_ID,
            coordinator("tx", 1),
            error_of_coordinator,
            when="of a transactional id",
            versions=range(1, 7),
        ),
        Scene(
            AlterOp.CLUSTER_ACTION,
            Of.CLUSTER,
            coordinator("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 2),
            error_of_coordinator,
            when="of a share partition",
            versions=[6],
        ),
    ),
    11: (
        Scene(AlterOp.READ, Of.GROUP, join_group, error, versions=range(4)),
        Scene(
            AlterOp.READ,
            Of.GROUP,
            join_group,
            error,
            versions=range(4, 10),
            fine="MEMBER_ID_REQUIRED",
        ),
    ),
    12: (
        Scene(
            AlterOp.READ,
            Of.GROUP,
            lambda context, version: HeartbeatRequest(group_id="g", member_id="m"),
            error,
            fine="UNKNOWN_MEMBER_ID",
        ),
    ),
    13: (
        Scene(
            AlterOp.READ, Of.GROUP, leave_group, error, versions=range(3), fine="UNKNOWN_MEMBER_ID"
        ),
        Scene(AlterOp.READ, Of.GROUP, leave_group, error, versions=range(3, 6)),
    ),
    14: (Scene(AlterOp.READ, Of.GROUP, sync_group, error, fine="UNKNOWN_MEMBER_ID"),),
    15: (
        Scene(
            AlterOp.DESCRIBE,
            Of.GROUP,
            lambda context, version: DescribeGroupsRequest(groups=["g"]),
            error_of_first_group,
            versions=range(6),
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.GROUP,
            lambda context, version: DescribeGroupsRequest(groups=["g"]),
            error_of_first_group,
            versions=[6],
            fine="GROUP_ID_NOT_FOUND",
        ),
    ),
    16: tuple(
        Scene(
            AlterOp.DESCRIBE,
            of,
            list_groups,
            lambda answer: SEEN if answer.groups else HIDDEN,
            fine=SEEN,
        )
        for of in (Of.CLUSTER, Of.GROUP)
    ),
    19: (
        Scene(AlterOp.CREATE, Of.CLUSTER, create_topics, error_of_first_topic),
        Scene(AlterOp.CREATE, Of.TOPIC, create_topics, error_of_first_topic),
        Scene(
            AlterOp.DESCRIBE_CONFIGS,
            Of.TOPIC,
            create_topics,
            shown_of_created,
            when="settings of the new topic",
            fine=SEEN,
        ),
    ),
    20: (
        Scene(AlterOp.DELETE, Of.CLUSTER, delete_topics, lambda answer: error(answer.responses[0])),
        Scene(AlterOp.DELETE, Of.TOPIC, delete_topics, lambda answer: error(answer.responses[0])),
    ),
    21: (
        Scene(
            AlterOp.DELETE,
            Of.TOPIC,
            delete_records,
            lambda answer: named(answer.topics[0].partitions[0].error_code),
        ),
    ),
    22: (
        Scene(
            AlterOp.WRITE,
            Of.TRANSACTIONAL_ID,
            init_producer_id("tx"),
            error,
            when="with a transactional id",
        ),
        Scene(
            AlterOp.TWO_PHASE_COMMIT,
            Of.TRANSACTIONAL_ID,
            init_producer_id("tx", two_phases=True),
            error,
            when="with two-phase commit",
            versions=[6],
            fine="INVALID_REQUEST",
        ),
        Scene(
            AlterOp.IDEMPOTENT_WRITE,
            Of.CLUSTER,
            init_producer_id(None),
            error,
            when="without a transactional id",
        ),
        Scene(
            AlterOp.WRITE,
            Of.TOPIC,
            init_producer_id(None),
            error,
            when="without a transactional id; one topic is enough",
        ),
    ),
    23: (
        Scene(AlterOp.CLUSTER_ACTION, Of.CLUSTER, end_of_epoch, error_of_first_partition),
        Scene(AlterOp.DESCRIBE, Of.TOPIC, end_of_epoch, error_of_first_partition),
    ),
    24: (
        Scene(
            AlterOp.CLUSTER_ACTION,
            Of.CLUSTER,
            add_partitions_to_txn,
            error_of_added_partition,
            when="from a broker",
            versions=range(4, 6),
        ),
        *(
            Scene(
                AlterOp.WRITE,
                of,
                add_partitions_to_txn,
                error_of_added_partition,
                when="from a producer",
                versions=range(4),
            )
            for of in (Of.TRANSACTIONAL_ID, Of.TOPIC)
        ),
    ),
    25: (
        Scene(AlterOp.WRITE, Of.TRANSACTIONAL_ID, add_offsets_to_txn, error),
        Scene(AlterOp.READ, Of.GROUP, add_offsets_to_txn, error),
    ),
    26: (Scene(AlterOp.WRITE, Of.TRANSACTIONAL_ID, end_txn, error),),
    27: tuple(
        Scene(operation, Of.CLUSTER, write_txn_markers, error_of_marker)
        for operation in (AlterOp.ALTER, AlterOp.CLUSTER_ACTION)
    ),
    28: tuple(
        Scene(operation, of, txn_offset_commit, error_of_first_partition)
        for operation, of in (
            (AlterOp.WRITE, Of.TRANSACTIONAL_ID),
            (AlterOp.READ, Of.GROUP),
            (AlterOp.READ, Of.TOPIC),
        )
    ),
    29: (Scene(AlterOp.DESCRIBE, Of.CLUSTER, describe_acls, error),),
    30: (Scene(AlterOp.ALTER, Of.CLUSTER, create_acls, lambda answer: error(answer.results[0])),),
    31: (
        Scene(
            AlterOp.ALTER, Of.CLUSTER, delete_acls, lambda answer: error(answer.filter_results[0])
        ),
    ),
    32: (
        Scene(
            AlterOp.DESCRIBE_CONFIGS,
            Of.CLUSTER,
            describe_configs(4, "1"),
            error_of_first_result,
            when="of brokers",
        ),
        Scene(
            AlterOp.DESCRIBE_CONFIGS,
            Of.TOPIC,
            describe_configs(2, "t"),
            error_of_first_result,
            when="of topics",
        ),
        Scene(
            AlterOp.DESCRIBE_CONFIGS,
            Of.GROUP,
            describe_configs(32, "g"),
            error_of_first_result,
            when="of groups",
        ),
    ),
    33: tuple(
        Scene(
            AlterOp.ALTER_CONFIGS,
            of,
            admin.alter_configs(kind, name),
            admin.error_of_first_response,
            when=when,
        )
        for of, kind, name, when in _CONFIGS_OF
    ),
    34: (
        Scene(
            AlterOp.ALTER,
            Of.CLUSTER,
            admin.alter_replica_log_dirs,
            admin.error_of_log_dir_move,
        ),
    ),
    35: (
        Scene(AlterOp.DESCRIBE, Of.CLUSTER, admin.describe_log_dirs, error, versions=range(3, 6)),
    ),
    37: (Scene(AlterOp.ALTER, Of.TOPIC, admin.create_partitions, error_of_first_result),),
    38: (
        Scene(
            AlterOp.CREATE_TOKENS,
            Of.USER,
            token_for_bob,
            error,
            when="for another owner",
            versions=[3],
        ),
    ),
    41: (
        Scene(
            AlterOp.DESCRIBE,
            Of.DELEGATION_TOKEN,
            tokens,
            lambda answer: SEEN if answer.tokens else HIDDEN,
            when="of another owner",
            fine=SEEN,
        ),
        Scene(
            AlterOp.DESCRIBE_TOKENS,
            Of.USER,
            tokens,
            lambda answer: SEEN if answer.tokens else HIDDEN,
            when="of another owner",
            fine=SEEN,
        ),
    ),
    42: (
        Scene(
            AlterOp.DELETE,
            Of.GROUP,
            lambda context, version: DeleteGroupsRequest(groups_names=["g"]),
            error_of_first_result,
            fine="GROUP_ID_NOT_FOUND",
        ),
    ),
    50: (Scene(AlterOp.DESCRIBE, Of.CLUSTER, describe_users, error),),
    51: (Scene(AlterOp.ALTER, Of.CLUSTER, alter_users, lambda answer: error(answer.results[0])),),
    47: (
        Scene(AlterOp.DELETE, Of.GROUP, offset_delete, error_of_offset_delete),
        Scene(AlterOp.READ, Of.TOPIC, offset_delete, error_of_offset_delete),
    ),
    43: (
        Scene(
            AlterOp.ALTER,
            Of.CLUSTER,
            admin.elect_leaders,
            admin.error_of_election,
            fine="ELECTION_NOT_NEEDED",
        ),
    ),
    44: tuple(
        Scene(
            AlterOp.ALTER_CONFIGS,
            of,
            incremental_alter_configs(kind, name),
            admin.error_of_first_response,
            when=when,
        )
        for of, kind, name, when in _CONFIGS_OF
    ),
    45: (Scene(AlterOp.ALTER, Of.CLUSTER, admin.alter_reassignments, error),),
    46: (Scene(AlterOp.DESCRIBE, Of.CLUSTER, admin.list_reassignments, error),),
    48: (Scene(AlterOp.DESCRIBE_CONFIGS, Of.CLUSTER, describe_quotas, error),),
    49: (
        Scene(
            AlterOp.ALTER_CONFIGS, Of.CLUSTER, alter_quotas, lambda answer: error(answer.entries[0])
        ),
    ),
    55: (Scene(AlterOp.DESCRIBE, Of.CLUSTER, admin.describe_quorum, error),),
    57: (Scene(AlterOp.ALTER, Of.CLUSTER, admin.update_features, error),),
    60: (
        Scene(
            AlterOp.DESCRIBE,
            Of.CLUSTER,
            describe_cluster,
            shown_operations,
            when="the authorized operations of the cluster are requested",
            fine=SEEN,
        ),
    ),
    61: (Scene(AlterOp.READ, Of.TOPIC, describe_producers, error_of_first_partition),),
    64: (Scene(AlterOp.ALTER, Of.CLUSTER, admin.unregister_broker, error),),
    65: (
        Scene(
            AlterOp.DESCRIBE, Of.TRANSACTIONAL_ID, describe_transactions, error_of_first_transaction
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            describe_transactions,
            shown_topics_of_transaction,
            when="topics of the transaction",
            fine=SEEN,
        ),
    ),
    66: (
        Scene(
            AlterOp.DESCRIBE,
            Of.TRANSACTIONAL_ID,
            list_transactions,
            shown_transactions,
            fine=SEEN,
        ),
    ),
    68: (
        Scene(AlterOp.READ, Of.GROUP, group_heartbeat, error),
        Scene(AlterOp.DESCRIBE, Of.TOPIC, group_heartbeat, error, when="topics by name"),
    ),
    69: (
        Scene(AlterOp.DESCRIBE, Of.GROUP, consumer_group, error_of_first_group),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            consumer_group,
            error_of_first_group,
            when="topics of members",
        ),
    ),
    74: (Scene(AlterOp.DESCRIBE_CONFIGS, Of.CLUSTER, admin.list_config_resources, error),),
    75: (
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            admin.describe_topics,
            error_of_first_topic,
            when="topics by name",
        ),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            admin.describe_all_topics,
            admin.shown_of_described_topics,
            when="all topics",
            fine=SEEN,
        ),
    ),
    76: (
        Scene(AlterOp.READ, Of.GROUP, shares.heartbeat, error),
        Scene(AlterOp.DESCRIBE, Of.TOPIC, shares.heartbeat, error, when="topics by name"),
    ),
    77: (
        Scene(AlterOp.DESCRIBE, Of.GROUP, shares.describe_group, error_of_first_group),
        Scene(
            AlterOp.DESCRIBE,
            Of.TOPIC,
            shares.describe_group,
            error_of_first_group,
            when="topics of members",
        ),
    ),
    78: (
        Scene(AlterOp.READ, Of.GROUP, shares.share_fetch, shares.error_of_share_partition),
        Scene(AlterOp.READ, Of.TOPIC, shares.share_fetch, shares.error_of_share_partition),
    ),
    # The member acknowledges a record that it has not acquired.
    79: (
        Scene(
            AlterOp.READ,
            Of.GROUP,
            shares.share_acknowledge,
            shares.error_of_share_partition,
            fine="INVALID_RECORD_STATE",
        ),
        Scene(
            AlterOp.READ,
            Of.TOPIC,
            shares.share_acknowledge,
            shares.error_of_share_partition,
            fine="INVALID_RECORD_STATE",
        ),
    ),
    83: (
        Scene(AlterOp.CLUSTER_ACTION, Of.CLUSTER, shares.initialize_state, shares.error_of_result),
    ),
    84: (Scene(AlterOp.CLUSTER_ACTION, Of.CLUSTER, shares.read_state, shares.error_of_result),),
    85: (Scene(AlterOp.CLUSTER_ACTION, Of.CLUSTER, shares.write_state, shares.error_of_result),),
    86: (Scene(AlterOp.CLUSTER_ACTION, Of.CLUSTER, shares.delete_state, shares.error_of_result),),
    87: (Scene(AlterOp.CLUSTER_ACTION, Of.CLUSTER, shares.read_summary, shares.error_of_result),),
    90: (
        Scene(AlterOp.DESCRIBE, Of.GROUP, shares.describe_offsets, shares.error_of_share_offsets),
        Scene(AlterOp.DESCRIBE, Of.TOPIC, shares.describe_offsets, shares.error_of_share_offsets),
    ),
    91: (
        Scene(AlterOp.READ, Of.GROUP, shares.alter_offsets, shares.error_of_share_partition),
        Scene(AlterOp.READ, Of.TOPIC, shares.alter_offsets, shares.error_of_share_partition),
    ),
    92: (
        Scene(AlterOp.DELETE, Of.GROUP, shares.delete_offsets, shares.error_of_first_response),
        Scene(AlterOp.READ, Of.TOPIC, shares.delete_offsets, shares.error_of_first_response),
    ),
}
