"""Lists the operations that the principal of a request must be authorized for, by API key.

Sources: the table of operations in Kafka's security documentation, and the KIPs of the APIs.
Handlers do not read the table: handlers check operations through `authorization`, and
`tests/unit/broker/authorizer/test_enforcement.py` compares each handler with the table. The table
also has the APIs that have no handler yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .acl_types import AUTHORIZATION_ERRORS, Operation, ResourceType

__all__ = ["REQUIRED_OPERATIONS", "RequiredOperation"]


class RequiredOperation(NamedTuple):
    """Describes an operation that an API requires.

    `when` describes the requests that require the operation; it is "" if all requests do. If the
    operation is not allowed, the response has the error `error`. If `error` is "", the response has
    no error, but omits the resource or a part of its description. If several operations have the
    same non-empty `alternative`, a principal needs only one of these operations.
    """

    operation: Operation
    resource_type: ResourceType
    error: str
    when: str = ""
    alternative: str = ""


def _required(
    words: str, when: str = "", *, alternative: str = "", error: str | None = None
) -> RequiredOperation:
    operation, resource = words.split()
    resource_type = ResourceType[resource]
    if error is None:
        error = AUTHORIZATION_ERRORS[resource_type]
    return RequiredOperation(Operation[operation], resource_type, error, when, alternative)


_ALTER_CLUSTER: Final = (_required("ALTER CLUSTER"),)
_CLUSTER_ACTION: Final = (_required("CLUSTER_ACTION CLUSTER"),)
_DESCRIBE_CLUSTER: Final = (_required("DESCRIBE CLUSTER"),)
_READ_GROUP: Final = (_required("READ GROUP"),)
_NONE: Final[tuple[RequiredOperation, ...]] = ()

_CONFIGS_OF: Final = (
    ("CLUSTER", "of brokers"),
    ("TOPIC", "of topics"),
    ("GROUP", "of groups"),
)
_ALTER_CONFIGS: Final = tuple(_required(f"ALTER_CONFIGS {of}", when) for of, when in _CONFIGS_OF)

#: The required operations by API key.
REQUIRED_OPERATIONS: Final[Mapping[int, tuple[RequiredOperation, ...]]] = {
    # Produce
    0: (
        _required("WRITE TRANSACTIONAL_ID", "transactional records"),
        _required("WRITE TOPIC"),
    ),
    # Fetch
    1: (
        _required(
            "CLUSTER_ACTION CLUSTER",
            "from a follower",
            error=AUTHORIZATION_ERRORS[ResourceType.TOPIC],
        ),
        _required("READ TOPIC", "from a consumer"),
    ),
    # ListOffsets
    2: (_required("DESCRIBE TOPIC"),),
    # Metadata
    3: (
        _required("DESCRIBE TOPIC", "topics by name or id"),
        _required("DESCRIBE TOPIC", "all topics", error=""),
        _required(
            "CREATE CLUSTER",
            "a topic is created",
            alternative="create",
            error=AUTHORIZATION_ERRORS[ResourceType.TOPIC],
        ),
        _required("CREATE TOPIC", "a topic is created", alternative="create"),
        _required(
            "DESCRIBE CLUSTER", "the authorized operations of the cluster are requested", error=""
        ),
    ),
    # LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown
    4: _CLUSTER_ACTION,
    5: _CLUSTER_ACTION,
    6: _CLUSTER_ACTION,
    7: _CLUSTER_ACTION,
    # OffsetCommit, OffsetFetch
    8: (_required("READ GROUP"), _required("READ TOPIC")),
    9: (
        _required("DESCRIBE GROUP"),
        _required("DESCRIBE TOPIC", "topics by name or id"),
        _required("DESCRIBE TOPIC", "all topics", error=""),
    ),
    # FindCoordinator
    10: (
        _required("DESCRIBE GROUP", "of a group"),
        _required("DESCRIBE TRANSACTIONAL_ID", "of a transactional id"),
        _required("CLUSTER_ACTION CLUSTER", "of a share partition"),
    ),
    # JoinGroup, Heartbeat, LeaveGroup, SyncGroup
    11: _READ_GROUP,
    12: _READ_GROUP,
    13: _READ_GROUP,
    14: _READ_GROUP,
    # DescribeGroups, ListGroups
    15: (_required("DESCRIBE GROUP"),),
    16: (
        _required("DESCRIBE CLUSTER", alternative="list", error=""),
        _required("DESCRIBE GROUP", alternative="list", error=""),
    ),
    # SaslHandshake, ApiVersions
    17: _NONE,
    18: _NONE,
    # CreateTopics
    19: (
        _required(
            "CREATE CLUSTER", alternative="create", error=AUTHORIZATION_ERRORS[ResourceType.TOPIC]
        ),
        _required("CREATE TOPIC", alternative="create"),
        _required("DESCRIBE_CONFIGS TOPIC", "settings of the new topic", error=""),
    ),
    # DeleteTopics
    20: (
        _required(
            "DELETE CLUSTER", alternative="delete", error=AUTHORIZATION_ERRORS[ResourceType.TOPIC]
        ),
        _required("DELETE TOPIC", alternative="delete"),
    ),
    # DeleteRecords
    21: (_required("DELETE TOPIC"),),
    # InitProducerId
    22: (
        _required("WRITE TRANSACTIONAL_ID", "with a transactional id"),
        _required("TWO_PHASE_COMMIT TRANSACTIONAL_ID", "with two-phase commit"),
        _required(
            "IDEMPOTENT_WRITE CLUSTER", "without a transactional id", alternative="idempotent"
        ),
        _required(
            "WRITE TOPIC",
            "without a transactional id; one topic is enough",
            alternative="idempotent",
            error=AUTHORIZATION_ERRORS[ResourceType.CLUSTER],
        ),
    ),
    # OffsetForLeaderEpoch
    23: (
        _required(
            "CLUSTER_ACTION CLUSTER",
            alternative="epoch",
            error=AUTHORIZATION_ERRORS[ResourceType.TOPIC],
        ),
        _required("DESCRIBE TOPIC", alternative="epoch"),
    ),
    # AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers, TxnOffsetCommit
    24: (
        _required("CLUSTER_ACTION CLUSTER", "from a broker"),
        _required("WRITE TRANSACTIONAL_ID", "from a producer"),
        _required("WRITE TOPIC", "from a producer"),
    ),
    25: (_required("WRITE TRANSACTIONAL_ID"), _required("READ GROUP")),
    26: (_required("WRITE TRANSACTIONAL_ID"),),
    27: (
        _required("ALTER CLUSTER", alternative="markers"),
        _required("CLUSTER_ACTION CLUSTER", alternative="markers"),
    ),
    28: (_required("WRITE TRANSACTIONAL_ID"), _required("READ GROUP"), _required("READ TOPIC")),
    # DescribeAcls, CreateAcls, DeleteAcls
    29: _DESCRIBE_CLUSTER,
    30: _ALTER_CLUSTER,
    31: _ALTER_CLUSTER,
    # DescribeConfigs, AlterConfigs
    32: tuple(_required(f"DESCRIBE_CONFIGS {of}", when) for of, when in _CONFIGS_OF),
    33: _ALTER_CONFIGS,
    # AlterReplicaLogDirs, DescribeLogDirs, SaslAuthenticate, CreatePartitions
    34: _ALTER_CLUSTER,
    35: _DESCRIBE_CLUSTER,
    36: _NONE,
    37: (_required("ALTER TOPIC"),),
    # CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, DescribeDelegationToken
    38: (_required("CREATE_TOKENS USER", "for another owner"),),
    39: _NONE,
    40: _NONE,
    41: (
        _required("DESCRIBE DELEGATION_TOKEN", "of another owner", alternative="token", error=""),
        _required("DESCRIBE_TOKENS USER", "of another owner", alternative="token", error=""),
    ),
    # DeleteGroups, ElectLeaders, IncrementalAlterConfigs
    42: (_required("DELETE GROUP"),),
    43: _ALTER_CLUSTER,
    44: _ALTER_CONFIGS,
    # AlterPartitionReassignments, ListPartitionReassignments, OffsetDelete
    45: _ALTER_CLUSTER,
    46: _DESCRIBE_CLUSTER,
    47: (_required("DELETE GROUP"), _required("READ TOPIC")),
    # DescribeClientQuotas, AlterClientQuotas
    48: (_required("DESCRIBE_CONFIGS CLUSTER"),),
    49: (_required("ALTER_CONFIGS CLUSTER"),),
    # DescribeUserScramCredentials, AlterUserScramCredentials
    50: _DESCRIBE_CLUSTER,
    51: _ALTER_CLUSTER,
    # Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum, AlterPartition
    52: _CLUSTER_ACTION,
    53: _CLUSTER_ACTION,
    54: _CLUSTER_ACTION,
    55: _DESCRIBE_CLUSTER,
    56: _CLUSTER_ACTION,
    # UpdateFeatures, Envelope, FetchSnapshot
    57: _ALTER_CLUSTER,
    58: _CLUSTER_ACTION,
    59: _CLUSTER_ACTION,
    # DescribeCluster, DescribeProducers
    60: (
        _required(
            "DESCRIBE CLUSTER", "the authorized operations of the cluster are requested", error=""
        ),
    ),
    61: (_required("READ TOPIC"),),
    # BrokerRegistration, BrokerHeartbeat, UnregisterBroker
    62: _CLUSTER_ACTION,
    63: _CLUSTER_ACTION,
    64: _ALTER_CLUSTER,
    # DescribeTransactions, ListTransactions, AllocateProducerIds
    65: (
        _required("DESCRIBE TRANSACTIONAL_ID"),
        _required("DESCRIBE TOPIC", "topics of the transaction", error=""),
    ),
    66: (_required("DESCRIBE TRANSACTIONAL_ID", error=""),),
    67: _CLUSTER_ACTION,
    # ConsumerGroupHeartbeat, ConsumerGroupDescribe
    68: (_required("READ GROUP"), _required("DESCRIBE TOPIC", "topics by name")),
    69: (_required("DESCRIBE GROUP"), _required("DESCRIBE TOPIC", "topics of members")),
    # ControllerRegistration, GetTelemetrySubscriptions, PushTelemetry, AssignReplicasToDirs
    70: _CLUSTER_ACTION,
    71: _NONE,
    72: _NONE,
    73: _CLUSTER_ACTION,
    # ListConfigResources, DescribeTopicPartitions
    74: (_required("DESCRIBE_CONFIGS CLUSTER"),),
    75: (
        _required("DESCRIBE TOPIC", "topics by name"),
        _required("DESCRIBE TOPIC", "all topics", error=""),
    ),
    # ShareGroupHeartbeat, ShareGroupDescribe, ShareFetch, ShareAcknowledge
    76: (_required("READ GROUP"), _required("DESCRIBE TOPIC", "topics by name")),
    77: (_required("DESCRIBE GROUP"), _required("DESCRIBE TOPIC", "topics of members")),
    78: (_required("READ GROUP"), _required("READ TOPIC")),
    79: (_required("READ GROUP"), _required("READ TOPIC")),
    # AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter
    80: _ALTER_CLUSTER,
    81: _ALTER_CLUSTER,
    82: _CLUSTER_ACTION,
    # InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState,
    # DeleteShareGroupState, ReadShareGroupStateSummary
    83: _CLUSTER_ACTION,
    84: _CLUSTER_ACTION,
    85: _CLUSTER_ACTION,
    86: _CLUSTER_ACTION,
    87: _CLUSTER_ACTION,
    # StreamsGroupHeartbeat, StreamsGroupDescribe
    88: (
        _required("READ GROUP"),
        _required("DESCRIBE TOPIC", "topics of the topology"),
        _required("CREATE TOPIC", "internal topics are created"),
    ),
    89: (_required("DESCRIBE GROUP"), _required("DESCRIBE TOPIC", "topics of the topology")),
    # DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets
    90: (_required("DESCRIBE GROUP"), _required("DESCRIBE TOPIC")),
    91: (_required("READ GROUP"), _required("READ TOPIC")),
    92: (_required("DELETE GROUP"), _required("READ TOPIC")),
}
