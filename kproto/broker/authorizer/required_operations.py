"""Which rights each API asks for: Kafka's table, by api key, and the error where one is missing.

Sources: the table of operations in Kafka's documentation of security, and the KIPs of the APIs. A
handler asks for its rights through `rights`; `tests/unit/broker/authorizer/test_enforcement.py`
holds every row of an API that the broker answers against what it does. Rows of APIs that it does
not answer yet stand here for whoever adds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .acl_types import DENIED, Operation, ResourceType

__all__ = ["NEEDS", "Need"]


class Need(NamedTuple):
    """A right that an API asks for.

    `when` says which requests ask for it, empty for all. `error` is the name of the code where it
    is missing; empty where what it is about is left out instead. Needs of one `either` are
    alternatives: one of them is enough.
    """

    operation: Operation
    resource_type: ResourceType
    error: str
    when: str = ""
    either: str = ""


def _need(words: str, when: str = "", *, either: str = "", error: str | None = None) -> Need:
    operation, resource = words.split()
    resource_type = ResourceType[resource]
    if error is None:
        error = DENIED[resource_type]
    return Need(Operation[operation], resource_type, error, when, either)


_ALTER_CLUSTER: Final = (_need("ALTER CLUSTER"),)
_CLUSTER_ACTION: Final = (_need("CLUSTER_ACTION CLUSTER"),)
_DESCRIBE_CLUSTER: Final = (_need("DESCRIBE CLUSTER"),)
_READ_GROUP: Final = (_need("READ GROUP"),)
_NONE: Final[tuple[Need, ...]] = ()

_CONFIGS_OF: Final = (
    ("CLUSTER", "of brokers"),
    ("TOPIC", "of topics"),
    ("GROUP", "of groups"),
)
_ALTER_CONFIGS: Final = tuple(_need(f"ALTER_CONFIGS {of}", when) for of, when in _CONFIGS_OF)

#: By api key.
NEEDS: Final[Mapping[int, tuple[Need, ...]]] = {
    # Produce
    0: (
        _need("WRITE TRANSACTIONAL_ID", "transactional records"),
        _need("WRITE TOPIC"),
    ),
    # Fetch
    1: (
        _need("CLUSTER_ACTION CLUSTER", "from a follower", error=DENIED[ResourceType.TOPIC]),
        _need("READ TOPIC", "from a consumer"),
    ),
    # ListOffsets
    2: (_need("DESCRIBE TOPIC"),),
    # Metadata
    3: (
        _need("DESCRIBE TOPIC", "topics by name or id"),
        _need("DESCRIBE TOPIC", "all topics", error=""),
        _need(
            "CREATE CLUSTER",
            "a topic is created",
            either="create",
            error=DENIED[ResourceType.TOPIC],
        ),
        _need("CREATE TOPIC", "a topic is created", either="create"),
        _need("DESCRIBE CLUSTER", "operations with the cluster are asked for", error=""),
    ),
    # LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown
    4: _CLUSTER_ACTION,
    5: _CLUSTER_ACTION,
    6: _CLUSTER_ACTION,
    7: _CLUSTER_ACTION,
    # OffsetCommit, OffsetFetch
    8: (_need("READ GROUP"), _need("READ TOPIC")),
    9: (
        _need("DESCRIBE GROUP"),
        _need("DESCRIBE TOPIC", "topics by name or id"),
        _need("DESCRIBE TOPIC", "all topics", error=""),
    ),
    # FindCoordinator
    10: (
        _need("DESCRIBE GROUP", "of a group"),
        _need("DESCRIBE TRANSACTIONAL_ID", "of a transactional id"),
        _need("CLUSTER_ACTION CLUSTER", "of a share partition"),
    ),
    # JoinGroup, Heartbeat, LeaveGroup, SyncGroup
    11: _READ_GROUP,
    12: _READ_GROUP,
    13: _READ_GROUP,
    14: _READ_GROUP,
    # DescribeGroups, ListGroups
    15: (_need("DESCRIBE GROUP"),),
    16: (
        _need("DESCRIBE CLUSTER", either="list", error=""),
        _need("DESCRIBE GROUP", either="list", error=""),
    ),
    # SaslHandshake, ApiVersions
    17: _NONE,
    18: _NONE,
    # CreateTopics
    19: (
        _need("CREATE CLUSTER", either="create", error=DENIED[ResourceType.TOPIC]),
        _need("CREATE TOPIC", either="create"),
        _need("DESCRIBE_CONFIGS TOPIC", "settings of the new topic", error=""),
    ),
    # DeleteTopics
    20: (
        _need("DELETE CLUSTER", either="delete", error=DENIED[ResourceType.TOPIC]),
        _need("DELETE TOPIC", either="delete"),
    ),
    # DeleteRecords
    21: (_need("DELETE TOPIC"),),
    # InitProducerId
    22: (
        _need("WRITE TRANSACTIONAL_ID", "with a transactional id"),
        _need("TWO_PHASE_COMMIT TRANSACTIONAL_ID", "with two-phase commit"),
        _need("IDEMPOTENT_WRITE CLUSTER", "without a transactional id", either="idempotent"),
        _need(
            "WRITE TOPIC",
            "without a transactional id; any topic will do",
            either="idempotent",
            error=DENIED[ResourceType.CLUSTER],
        ),
    ),
    # OffsetForLeaderEpoch
    23: (
        _need("CLUSTER_ACTION CLUSTER", either="epoch", error=DENIED[ResourceType.TOPIC]),
        _need("DESCRIBE TOPIC", either="epoch"),
    ),
    # AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers, TxnOffsetCommit
    24: (
        _need("CLUSTER_ACTION CLUSTER", "from a broker"),
        _need("WRITE TRANSACTIONAL_ID", "from a producer"),
        _need("WRITE TOPIC", "from a producer"),
    ),
    25: (_need("WRITE TRANSACTIONAL_ID"), _need("READ GROUP")),
    26: (_need("WRITE TRANSACTIONAL_ID"),),
    27: (
        _need("ALTER CLUSTER", either="markers"),
        _need("CLUSTER_ACTION CLUSTER", either="markers"),
    ),
    28: (_need("WRITE TRANSACTIONAL_ID"), _need("READ GROUP"), _need("READ TOPIC")),
    # DescribeAcls, CreateAcls, DeleteAcls
    29: _DESCRIBE_CLUSTER,
    30: _ALTER_CLUSTER,
    31: _ALTER_CLUSTER,
    # DescribeConfigs, AlterConfigs
    32: tuple(_need(f"DESCRIBE_CONFIGS {of}", when) for of, when in _CONFIGS_OF),
    33: _ALTER_CONFIGS,
    # AlterReplicaLogDirs, DescribeLogDirs, SaslAuthenticate, CreatePartitions
    34: _ALTER_CLUSTER,
    35: _DESCRIBE_CLUSTER,
    36: _NONE,
    37: (_need("ALTER TOPIC"),),
    # CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, DescribeDelegationToken
    38: (_need("CREATE_TOKENS USER", "for another owner"),),
    39: _NONE,
    40: _NONE,
    41: (
        _need("DESCRIBE DELEGATION_TOKEN", "of another owner", either="token", error=""),
        _need("DESCRIBE_TOKENS USER", "of another owner", either="token", error=""),
    ),
    # DeleteGroups, ElectLeaders, IncrementalAlterConfigs
    42: (_need("DELETE GROUP"),),
    43: _ALTER_CLUSTER,
    44: _ALTER_CONFIGS,
    # AlterPartitionReassignments, ListPartitionReassignments, OffsetDelete
    45: _ALTER_CLUSTER,
    46: _DESCRIBE_CLUSTER,
    47: (_need("DELETE GROUP"), _need("READ TOPIC")),
    # DescribeClientQuotas, AlterClientQuotas
    48: (_need("DESCRIBE_CONFIGS CLUSTER"),),
    49: (_need("ALTER_CONFIGS CLUSTER"),),
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
    60: (_need("DESCRIBE CLUSTER", "operations with the cluster are asked for", error=""),),
    61: (_need("READ TOPIC"),),
    # BrokerRegistration, BrokerHeartbeat, UnregisterBroker
    62: _CLUSTER_ACTION,
    63: _CLUSTER_ACTION,
    64: _ALTER_CLUSTER,
    # DescribeTransactions, ListTransactions, AllocateProducerIds
    65: (_need("DESCRIBE TRANSACTIONAL_ID"),),
    66: (_need("DESCRIBE TRANSACTIONAL_ID", error=""),),
    67: _CLUSTER_ACTION,
    # ConsumerGroupHeartbeat, ConsumerGroupDescribe
    68: (_need("READ GROUP"), _need("DESCRIBE TOPIC", "topics by name")),
    69: (_need("DESCRIBE GROUP"), _need("DESCRIBE TOPIC", "topics of members")),
    # ControllerRegistration, GetTelemetrySubscriptions, PushTelemetry, AssignReplicasToDirs
    70: _CLUSTER_ACTION,
    71: _NONE,
    72: _NONE,
    73: _CLUSTER_ACTION,
    # ListConfigResources, DescribeTopicPartitions
    74: (_need("DESCRIBE_CONFIGS CLUSTER"),),
    75: (
        _need("DESCRIBE TOPIC", "topics by name"),
        _need("DESCRIBE TOPIC", "all topics", error=""),
    ),
    # ShareGroupHeartbeat, ShareGroupDescribe, ShareFetch, ShareAcknowledge
    76: (_need("READ GROUP"), _need("DESCRIBE TOPIC", "topics by name")),
    77: (_need("DESCRIBE GROUP"), _need("DESCRIBE TOPIC", "topics of members")),
    78: (_need("READ GROUP"), _need("READ TOPIC")),
    79: (_need("READ GROUP"), _need("READ TOPIC")),
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
        _need("READ GROUP"),
        _need("DESCRIBE TOPIC", "topics of the topology"),
        _need("CREATE TOPIC", "internal topics are created"),
    ),
    89: (_need("DESCRIBE GROUP"), _need("DESCRIBE TOPIC", "topics of the topology")),
    # DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets
    90: (_need("DESCRIBE GROUP"), _need("DESCRIBE TOPIC")),
    91: (_need("READ GROUP"), _need("READ TOPIC")),
    92: (_need("DELETE GROUP"), _need("READ TOPIC")),
}
