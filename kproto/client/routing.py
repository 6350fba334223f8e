"""Which broker answers which request. A table, and what the odd rows need."""

from __future__ import annotations

from enum import Enum
from typing import Final

from ..messages.base import Message
from ..messages.init_producer_id_request import InitProducerIdRequest

__all__ = ["ROUTES", "CoordinatorType", "Route", "coordinator_keys", "route_of"]


class Route(Enum):
    """Who can answer a request."""

    ANY = "any broker"
    CONTROLLER = "the controller, or a broker that forwards to it"
    GROUP_COORDINATOR = "the coordinator of a group"
    TRANSACTION_COORDINATOR = "the coordinator of a transactional id"
    LEADER = "the leaders of the partitions it names"
    NAMED = "one certain broker, which the caller names"


class CoordinatorType(Enum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


#: By request name; all others go to any broker.
ROUTES: Final[dict[str, Route]] = {
    "ProduceRequest": Route.LEADER,
    "FetchRequest": Route.LEADER,
    "ListOffsetsRequest": Route.LEADER,
    "DeleteRecordsRequest": Route.LEADER,
    "OffsetForLeaderEpochRequest": Route.LEADER,
    "DescribeProducersRequest": Route.LEADER,
    "ShareAcknowledgeRequest": Route.LEADER,
    "ShareFetchRequest": Route.LEADER,
    "AlterPartitionReassignmentsRequest": Route.CONTROLLER,
    "AlterUserScramCredentialsRequest": Route.CONTROLLER,
    "CreateAclsRequest": Route.CONTROLLER,
    "CreateDelegationTokenRequest": Route.CONTROLLER,
    "CreatePartitionsRequest": Route.CONTROLLER,
    "CreateTopicsRequest": Route.CONTROLLER,
    "DeleteAclsRequest": Route.CONTROLLER,
    "DeleteTopicsRequest": Route.CONTROLLER,
    "ElectLeadersRequest": Route.CONTROLLER,
    "ListPartitionReassignmentsRequest": Route.CONTROLLER,
    "UpdateFeaturesRequest": Route.CONTROLLER,
    "AlterShareGroupOffsetsRequest": Route.GROUP_COORDINATOR,
    "ConsumerGroupDescribeRequest": Route.GROUP_COORDINATOR,
    "ConsumerGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "DeleteGroupsRequest": Route.GROUP_COORDINATOR,
    "DeleteShareGroupOffsetsRequest": Route.GROUP_COORDINATOR,
    "DescribeGroupsRequest": Route.GROUP_COORDINATOR,
    "DescribeShareGroupOffsetsRequest": Route.GROUP_COORDINATOR,
    "HeartbeatRequest": Route.GROUP_COORDINATOR,
    "JoinGroupRequest": Route.GROUP_COORDINATOR,
    "LeaveGroupRequest": Route.GROUP_COORDINATOR,
    "OffsetCommitRequest": Route.GROUP_COORDINATOR,
    "OffsetDeleteRequest": Route.GROUP_COORDINATOR,
    "OffsetFetchRequest": Route.GROUP_COORDINATOR,
    "ShareGroupDescribeRequest": Route.GROUP_COORDINATOR,
    "ShareGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "StreamsGroupDescribeRequest": Route.GROUP_COORDINATOR,
    "StreamsGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "StreamsGroupTopologyDescriptionUpdateRequest": Route.GROUP_COORDINATOR,
    "SyncGroupRequest": Route.GROUP_COORDINATOR,
    "TxnOffsetCommitRequest": Route.GROUP_COORDINATOR,
    "AddOffsetsToTxnRequest": Route.TRANSACTION_COORDINATOR,
    "AddPartitionsToTxnRequest": Route.TRANSACTION_COORDINATOR,
    "DescribeTransactionsRequest": Route.TRANSACTION_COORDINATOR,
    "EndTxnRequest": Route.TRANSACTION_COORDINATOR,
    "InitProducerIdRequest": Route.TRANSACTION_COORDINATOR,
    "AlterReplicaLogDirsRequest": Route.NAMED,
    "DescribeLogDirsRequest": Route.NAMED,
}


#: Where a request holds the group ids or transactional ids that it is about: in a field, or in a
#: list of ids or of structs that have them.
_KEYS: Final[dict[Route, tuple[str, ...]]] = {
    Route.GROUP_COORDINATOR: ("group_id", "groups", "group_ids", "groups_names"),
    Route.TRANSACTION_COORDINATOR: (
        "transactional_id",
        "v3_and_below_transactional_id",
        "transactions",
        "transactional_ids",
    ),
}


def route_of(request: Message) -> Route:
    """Who can answer `request`."""
    route = ROUTES.get(type(request).__name__, Route.ANY)
    if isinstance(request, InitProducerIdRequest) and not request.transactional_id:
        return Route.ANY  # of a producer that is only idempotent
    return route


def coordinator_keys(request: Message) -> list[str]:
    """The group ids or transactional ids whose coordinators answer `request`, each once."""
    route = ROUTES.get(type(request).__name__, Route.ANY)
    own = _KEYS.get(route, ())
    found: dict[str, None] = {}
    for field in own:
        value = getattr(request, field, None)
        for element in value if isinstance(value, list) else [value]:
            key = element if isinstance(element, str) else getattr(element, own[0], None)
            if key:
                found[key] = None
    return list(found)
