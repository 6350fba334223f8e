"""Routes requests: a table of all requests, with the brokers that answer them.

Plain functions on plain data: `fan_out` splits requests; `request_router` finds the brokers and
sends the requests.
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
    """The brokers that can answer a request."""

    ANY = "any broker"
    CONTROLLER = "the controller, or a broker that forwards to it"
    GROUP_COORDINATOR = "the coordinators of the groups it names"
    TRANSACTION_COORDINATOR = "the coordinators of the transactional ids it names"
    LEADER = "the leaders of the partitions it names"
    RESOURCES = "the brokers whose own settings it names; any broker for other resources"
    REPLICAS = "every broker that has a replica of the partitions it names"
    EVERY_BROKER = "every broker; the responses are merged"
    NAMED = "one specific broker, which the caller must name"


class CoordinatorType(Enum):
    """The key types of FindCoordinator that the client uses."""

    GROUP = 0
    TRANSACTION = 1


#: All requests of the definitions, in the order of their API keys.
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
    # A share coordinator answers the next five requests; they have no field with its key.
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


class CoordinatorKeyFields(NamedTuple):
    """The type of a coordinator, and the names of the request fields with its keys.

    The keys are group ids or transactional ids. The value of such a request field is a key, a list
    of keys, or a list of structs. If it is a list of structs, the field of the struct with the name
    `fields[0]` has the key.
    """

    type: CoordinatorType
    fields: tuple[str, ...]


COORDINATORS: Final[dict[Route, CoordinatorKeyFields]] = {
    Route.GROUP_COORDINATOR: CoordinatorKeyFields(
        CoordinatorType.GROUP, ("group_id", "groups", "group_ids", "groups_names")
    ),
    Route.TRANSACTION_COORDINATOR: CoordinatorKeyFields(
        CoordinatorType.TRANSACTION,
        (
            "transactional_id",
            "v3_and_below_transactional_id",
            "transactions",
            "transactional_ids",
        ),
    ),
}

#: Types of config resources that belong to a broker: its configs and its loggers.
_BROKER_RESOURCES: Final = frozenset({4, 8})


def route_of(request: Message) -> Route:
    """Returns the route of `request`.

    The route is ANY for a request that the table lacks, such as a request of the user's own, and
    for InitProducerId without a transactional id.
    """
    if isinstance(request, InitProducerIdRequest) and not request.transactional_id:
        return Route.ANY  # an idempotent producer without transactions
    return ROUTES.get(type(request).__name__, Route.ANY)


def coordinator_keys(request: Message) -> list[str]:
    """Returns the group ids or transactional ids whose coordinators answer `request`, each once."""
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
    """Returns the node id of the only broker that can answer for a config resource.

    Returns None if any broker can answer.
    """
    name = resource.resource_name
    if resource.resource_type not in _BROKER_RESOURCES or not name.isdecimal():
        return None
    return int(name)
