"""Defines the exception classes of error codes that callers catch, as in Kafka's clients.

Any other code is a plain `BrokerResponseError`. `BROKER_ERRORS` maps the name of a code to a class.
"""

from __future__ import annotations

from typing import Final

from ..wire.errors import BrokerResponseError

__all__ = [
    "BROKER_ERRORS",
    "AuthorizationError",
    "ClusterAuthorizationError",
    "CoordinatorNotAvailableError",
    "FencedInstanceIdError",
    "FencedMemberEpochError",
    "GroupAuthorizationError",
    "GroupIdNotFoundError",
    "IllegalGenerationError",
    "InvalidTopicError",
    "LeaderNotAvailableError",
    "NotControllerError",
    "NotCoordinatorError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OffsetOutOfRangeError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RecordTooLargeError",
    "StaleMemberEpochError",
    "TopicAuthorizationError",
    "TopicExistsError",
    "TransactionalIdAuthorizationError",
    "UnknownMemberIdError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
]


class AuthorizationError(BrokerResponseError):
    """The principal lacks an ACL; the subclass names the resource."""


class TopicAuthorizationError(AuthorizationError):
    """TOPIC_AUTHORIZATION_FAILED (29)."""


class GroupAuthorizationError(AuthorizationError):
    """GROUP_AUTHORIZATION_FAILED (30)."""


class ClusterAuthorizationError(AuthorizationError):
    """CLUSTER_AUTHORIZATION_FAILED (31)."""


class TransactionalIdAuthorizationError(AuthorizationError):
    """TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53)."""


class OffsetOutOfRangeError(BrokerResponseError):
    """OFFSET_OUT_OF_RANGE (1): the log does not have the offset."""


class UnknownTopicOrPartitionError(BrokerResponseError):
    """UNKNOWN_TOPIC_OR_PARTITION (3): it does not exist, or the broker does not know it yet."""


class UnknownTopicIdError(BrokerResponseError):
    """UNKNOWN_TOPIC_ID (100): the topic was deleted, or the broker does not know it yet."""


class LeaderNotAvailableError(BrokerResponseError):
    """LEADER_NOT_AVAILABLE (5): the partition has no leader now."""


class NotLeaderOrFollowerError(BrokerResponseError):
    """NOT_LEADER_OR_FOLLOWER (6): the broker does not lead the partition any more."""


class NotEnoughReplicasError(BrokerResponseError):
    """NOT_ENOUGH_REPLICAS (19), NOT_ENOUGH_REPLICAS_AFTER_APPEND (20): see min.insync.replicas.

    After NOT_ENOUGH_REPLICAS_AFTER_APPEND the leader has stored the records.
    """


class RecordTooLargeError(BrokerResponseError):
    """MESSAGE_TOO_LARGE (10): above max.message.bytes."""


class InvalidTopicError(BrokerResponseError):
    """INVALID_TOPIC_EXCEPTION (17): no topic can have that name."""


class TopicExistsError(BrokerResponseError):
    """TOPIC_ALREADY_EXISTS (36): the cluster has a topic of that name."""


class NotControllerError(BrokerResponseError):
    """NOT_CONTROLLER (41): the broker is not the controller."""


class CoordinatorNotAvailableError(BrokerResponseError):
    """COORDINATOR_NOT_AVAILABLE (15): no broker coordinates the group or the transaction now."""


class NotCoordinatorError(BrokerResponseError):
    """NOT_COORDINATOR (16): another broker coordinates the group or the transaction."""


class IllegalGenerationError(BrokerResponseError):
    """ILLEGAL_GENERATION (22): the group has another generation by now."""


class UnknownMemberIdError(BrokerResponseError):
    """UNKNOWN_MEMBER_ID (25): the group does not have the member any more."""


class RebalanceInProgressError(BrokerResponseError):
    """REBALANCE_IN_PROGRESS (27): the group rebalances, and the member must rejoin."""


class GroupIdNotFoundError(BrokerResponseError):
    """GROUP_ID_NOT_FOUND (69): there is no such group."""


class FencedInstanceIdError(BrokerResponseError):
    """FENCED_INSTANCE_ID (82): another member has the same group.instance.id (KIP-345)."""


class FencedMemberEpochError(BrokerResponseError):
    """FENCED_MEMBER_EPOCH (110): the coordinator removed the member from its group (KIP-848)."""


class StaleMemberEpochError(BrokerResponseError):
    """STALE_MEMBER_EPOCH (113): the member has another epoch by now (KIP-848)."""


class ProducerFencedError(BrokerResponseError):
    """PRODUCER_FENCED (90): another producer has the same transactional.id."""


#: The class of an error, by Kafka's name of the code.
BROKER_ERRORS: Final[dict[str, type[BrokerResponseError]]] = {
    "OFFSET_OUT_OF_RANGE": OffsetOutOfRangeError,
    "UNKNOWN_TOPIC_OR_PARTITION": UnknownTopicOrPartitionError,
    "LEADER_NOT_AVAILABLE": LeaderNotAvailableError,
    "NOT_LEADER_OR_FOLLOWER": NotLeaderOrFollowerError,
    "MESSAGE_TOO_LARGE": RecordTooLargeError,
    "COORDINATOR_NOT_AVAILABLE": CoordinatorNotAvailableError,
    "NOT_COORDINATOR": NotCoordinatorError,
    "INVALID_TOPIC_EXCEPTION": InvalidTopicError,
    "NOT_ENOUGH_REPLICAS": NotEnoughReplicasError,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": NotEnoughReplicasError,
    "ILLEGAL_GENERATION": IllegalGenerationError,
    "UNKNOWN_MEMBER_ID": UnknownMemberIdError,
    "REBALANCE_IN_PROGRESS": RebalanceInProgressError,
    "TOPIC_AUTHORIZATION_FAILED": TopicAuthorizationError,
    "GROUP_AUTHORIZATION_FAILED": GroupAuthorizationError,
    "CLUSTER_AUTHORIZATION_FAILED": ClusterAuthorizationError,
    "TOPIC_ALREADY_EXISTS": TopicExistsError,
    "NOT_CONTROLLER": NotControllerError,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": TransactionalIdAuthorizationError,
    "GROUP_ID_NOT_FOUND": GroupIdNotFoundError,
    "FENCED_INSTANCE_ID": FencedInstanceIdError,
    "PRODUCER_FENCED": ProducerFencedError,
    "UNKNOWN_TOPIC_ID": UnknownTopicIdError,
    "FENCED_MEMBER_EPOCH": FencedMemberEpochError,
    "STALE_MEMBER_EPOCH": StaleMemberEpochError,
}
