"""Which broker answers which request. A table of every request, and what the odd rows need.

Plain functions on plain data: what of a request is whose says `splitting`; `requests` finds the
brokers and asks them.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple

from ...messages.base import Message
from ...messages.init_producer_id_request import InitProducerIdRequest

__all__ = [
    "COORDINATORS",
    "ROUTES",
    "CoordinatorType",
    "Route",
    "coordinator_keys",
    "named_broker",
    "route_of",
]


class Route(Enum):
    """Who can answer a request."""

    ANY = "any broker"
    CONTROLLER = "the controller, or a broker that forwards to it"
    GROUP_COORDINATOR = "the coordinators of the groups it names"
    TRANSACTION_COORDINATOR = "the coordinators of the transactional ids it names"
    LEADER = "the leaders of the partitions it names"
    RESOURCES = "the brokers whose own settings it names; for all else any broker"
    REPLICAS = "every broker that has a replica of the partitions it names"
    EVERY_BROKER = "every broker, each for itself; the answers are merged"
    NAMED = "one certain broker, which the caller names"


class CoordinatorType(Enum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


#: Every request of the definitions, by api key.
ROUTES: Final[dict[str, Route]] = {
    "ProduceRequest": Route.LEADER,
    "FetchRequest": Route.LEADER,
    "ListOffsetsRequest": Route.LEADER,
    "MetadataRequest": Route.ANY,
    "LeaderAndIsrRequest": Route.NAMED,
    "StopReplicaRequest": Route.NAMED,
    "UpdateMetadataRequest": Route.NAMED,
    "ControlledShutdownRequest": Route.NAMED,
    "OffsetCommitRequest": Route.GROUP_COORDINATOR,
    "OffsetFetchRequest": Route.GROUP_COORDINATOR,
    "FindCoordinatorRequest": Route.ANY,
    "JoinGroupRequest": Route.GROUP_COORDINATOR,
    "HeartbeatRequest": Route.GROUP_COORDINATOR,
    "LeaveGroupRequest": Route.GROUP_COORDINATOR,
    "SyncGroupRequest": Route.GROUP_COORDINATOR,
    "DescribeGroupsRequest": Route.GROUP_COORDINATOR,
    "ListGroupsRequest": Route.EVERY_BROKER,
    "SaslHandshakeRequest": Route.NAMED,
    "ApiVersionsRequest": Route.ANY,
    "CreateTopicsRequest": Route.CONTROLLER,
    "DeleteTopicsRequest": Route.CONTROLLER,
    "DeleteRecordsRequest": Route.LEADER,
    "InitProducerIdRequest": Route.TRANSACTION_COORDINATOR,
    "OffsetForLeaderEpochRequest": Route.LEADER,
    "AddPartitionsToTxnRequest": Route.TRANSACTION_COORDINATOR,
    "AddOffsetsToTxnRequest": Route.TRANSACTION_COORDINATOR,
    "EndTxnRequest": Route.TRANSACTION_COORDINATOR,
    "WriteTxnMarkersRequest": Route.LEADER,
    "TxnOffsetCommitRequest": Route.GROUP_COORDINATOR,
    "DescribeAclsRequest": Route.ANY,
    "CreateAclsRequest": Route.CONTROLLER,
    "DeleteAclsRequest": Route.CONTROLLER,
    "DescribeConfigsRequest": Route.RESOURCES,
    "AlterConfigsRequest": Route.RESOURCES,
    "AlterReplicaLogDirsRequest": Route.REPLICAS,
    "DescribeLogDirsRequest": Route.EVERY_BROKER,
    "SaslAuthenticateRequest": Route.NAMED,
    "CreatePartitionsRequest": Route.CONTROLLER,
    "CreateDelegationTokenRequest": Route.CONTROLLER,
    "RenewDelegationTokenRequest": Route.CONTROLLER,
    "ExpireDelegationTokenRequest": Route.CONTROLLER,
    "DescribeDelegationTokenRequest": Route.ANY,
    "DeleteGroupsRequest": Route.GROUP_COORDINATOR,
    "ElectLeadersRequest": Route.CONTROLLER,
    "IncrementalAlterConfigsRequest": Route.RESOURCES,
    "AlterPartitionReassignmentsRequest": Route.CONTROLLER,
    "ListPartitionReassignmentsRequest": Route.CONTROLLER,
    "OffsetDeleteRequest": Route.GROUP_COORDINATOR,
    "DescribeClientQuotasRequest": Route.ANY,
    "AlterClientQuotasRequest": Route.CONTROLLER,
    "DescribeUserScramCredentialsRequest": Route.ANY,
    "AlterUserScramCredentialsRequest": Route.CONTROLLER,
    "VoteRequest": Route.NAMED,
    "BeginQuorumEpochRequest": Route.NAMED,
    "EndQuorumEpochRequest": Route.NAMED,
    "DescribeQuorumRequest": Route.ANY,
    "AlterPartitionRequest": Route.NAMED,
    "UpdateFeaturesRequest": Route.CONTROLLER,
    "EnvelopeRequest": Route.NAMED,
    "FetchSnapshotRequest": Route.NAMED,
    "DescribeClusterRequest": Route.ANY,
    "DescribeProducersRequest": Route.LEADER,
    "BrokerRegistrationRequest": Route.NAMED,
    "BrokerHeartbeatRequest": Route.NAMED,
    "UnregisterBrokerRequest": Route.CONTROLLER,
    "DescribeTransactionsRequest": Route.TRANSACTION_COORDINATOR,
    "ListTransactionsRequest": Route.EVERY_BROKER,
    "AllocateProducerIdsRequest": Route.NAMED,
    "ConsumerGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "ConsumerGroupDescribeRequest": Route.GROUP_COORDINATOR,
    "ControllerRegistrationRequest": Route.NAMED,
    "GetTelemetrySubscriptionsRequest": Route.ANY,
    "PushTelemetryRequest": Route.ANY,
    "AssignReplicasToDirsRequest": Route.NAMED,
    "ListConfigResourcesRequest": Route.ANY,
    "DescribeTopicPartitionsRequest": Route.ANY,
    "ShareGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "ShareGroupDescribeRequest": Route.GROUP_COORDINATOR,
    "ShareFetchRequest": Route.LEADER,
    "ShareAcknowledgeRequest": Route.LEADER,
    "AddRaftVoterRequest": Route.CONTROLLER,
    "RemoveRaftVoterRequest": Route.CONTROLLER,
    "UpdateRaftVoterRequest": Route.NAMED,
    # A share coordinator answers the next five; its key is no field of theirs.
    "InitializeShareGroupStateRequest": Route.NAMED,
    "ReadShareGroupStateRequest": Route.NAMED,
    "WriteShareGroupStateRequest": Route.NAMED,
    "DeleteShareGroupStateRequest": Route.NAMED,
    "ReadShareGroupStateSummaryRequest": Route.NAMED,
    "StreamsGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "StreamsGroupDescribeRequest": Route.GROUP_COORDINATOR,
    "DescribeShareGroupOffsetsRequest": Route.GROUP_COORDINATOR,
    "AlterShareGroupOffsetsRequest": Route.GROUP_COORDINATOR,
    "DeleteShareGroupOffsetsRequest": Route.GROUP_COORDINATOR,
    "StreamsGroupTopologyDescriptionUpdateRequest": Route.GROUP_COORDINATOR,
    "UnregisterControllerRequest": Route.CONTROLLER,
}


class CoordinatorRow(NamedTuple):
    """A coordinator's type, and the fields that hold ids of what it coordinates.

    An id stands in a field, or in a list of ids, or in a list of structs that have the first of
    the fields.
    """

    type: CoordinatorType
    fields: tuple[str, ...]


COORDINATORS: Final[dict[Route, CoordinatorRow]] = {
    Route.GROUP_COORDINATOR: CoordinatorRow(
        CoordinatorType.GROUP, ("group_id", "groups", "group_ids", "groups_names")
    ),
    Route.TRANSACTION_COORDINATOR: CoordinatorRow(
        CoordinatorType.TRANSACTION,
        (
            "transactional_id",
            "v3_and_below_transactional_id",
            "transactions",
            "transactional_ids",
        ),
    ),
}

#: Types of resources that are brokers (ConfigResource): its settings, and its loggers.
_BROKER_RESOURCES: Final = frozenset({4, 8})


def route_of(request: Message) -> Route:
    """Who can answer `request`. One that no table knows, such as a user's own, goes to any."""
    if isinstance(request, InitProducerIdRequest) and not request.transactional_id:
        return Route.ANY  # of a producer that is only idempotent
    return ROUTES.get(type(request).__name__, Route.ANY)


def coordinator_keys(request: Message) -> list[str]:
    """The group ids or transactional ids whose coordinators answer `request`, each once."""
    coordinator = COORDINATORS.get(ROUTES.get(type(request).__name__, Route.ANY))
    if coordinator is None:
        return []
    own = coordinator.fields
    found: dict[str, None] = {}
    for field in own:
        value = getattr(request, field, None)
        for element in value if isinstance(value, list) else [value]:
            key = element if isinstance(element, str) else getattr(element, own[0], None)
            if key:
                found[key] = None
    return list(found)


def named_broker(resource: Any) -> int | None:
    """The broker whose own settings or loggers a resource is; None where any broker knows it."""
    name = resource.resource_name
    if resource.resource_type not in _BROKER_RESOURCES or not name.isdecimal():
        return None
    return int(name)
