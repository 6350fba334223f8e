"""Which broker answers which request. A table, and what the odd rows need."""

from __future__ import annotations

from enum import Enum
from typing import Final

from ..messages.base import Message

__all__ = ["ROUTES", "CoordinatorType", "Route", "coordinator_key", "route_of"]


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
    "ConsumerGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "HeartbeatRequest": Route.GROUP_COORDINATOR,
    "JoinGroupRequest": Route.GROUP_COORDINATOR,
    "LeaveGroupRequest": Route.GROUP_COORDINATOR,
    "OffsetCommitRequest": Route.GROUP_COORDINATOR,
    "OffsetDeleteRequest": Route.GROUP_COORDINATOR,
    "OffsetFetchRequest": Route.GROUP_COORDINATOR,
    "ShareGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "StreamsGroupHeartbeatRequest": Route.GROUP_COORDINATOR,
    "SyncGroupRequest": Route.GROUP_COORDINATOR,
    "TxnOffsetCommitRequest": Route.GROUP_COORDINATOR,
    "AddOffsetsToTxnRequest": Route.TRANSACTION_COORDINATOR,
    "AddPartitionsToTxnRequest": Route.TRANSACTION_COORDINATOR,
    "EndTxnRequest": Route.TRANSACTION_COORDINATOR,
    "InitProducerIdRequest": Route.TRANSACTION_COORDINATOR,
    "AlterReplicaLogDirsRequest": Route.NAMED,
    "DescribeLogDirsRequest": Route.NAMED,
}


def route_of(request: Message) -> Route:
    """Who can answer `request`."""
    route = ROUTES.get(type(request).__name__, Route.ANY)
    if route is Route.TRANSACTION_COORDINATOR and not coordinator_key(request):
        return Route.ANY  # InitProducerId of a producer that is only idempotent
    return route


def coordinator_key(request: Message) -> str | None:
    """The group id or transactional id whose coordinator answers `request`."""
    names = {
        Route.GROUP_COORDINATOR: ("group_id",),
        Route.TRANSACTION_COORDINATOR: ("transactional_id", "v3_and_below_transactional_id"),
    }.get(ROUTES.get(type(request).__name__, Route.ANY), ())
    for name in names:
        key = getattr(request, name, None)
        if key:
            return str(key)
    return None
