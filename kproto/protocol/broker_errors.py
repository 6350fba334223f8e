"""Defines exception classes for error codes of brokers, as Kafka's clients do.

Only codes for which a caller may want an `except` clause have a class. The client raises a plain
`BrokerResponseError` for any other code. `BROKER_ERRORS` maps the names of codes to the classes.
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
    "InvalidRecordStateError",
    "InvalidShareSessionEpochError",
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
    "ShareSessionLimitReachedError",
    "ShareSessionNotFoundError",
    "StaleMemberEpochError",
    "TopicAuthorizationError",
    "TopicExistsError",
    "TransactionalIdAuthorizationError",
    "UnknownMemberIdError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
]


class AuthorizationError(BrokerResponseError):
    """The principal is not authorized; the subclass names the type of the resource."""


class TopicAuthorizationError(AuthorizationError):
    """TOPIC_AUTHORIZATION_FAILED (29): the principal is not authorized for the topic."""


class GroupAuthorizationError(AuthorizationError):
    """GROUP_AUTHORIZATION_FAILED (30): the principal is not authorized for the group."""


class ClusterAuthorizationError(AuthorizationError):
    """CLUSTER_AUTHORIZATION_FAILED (31): the principal is not authorized for the cluster."""


class TransactionalIdAuthorizationError(AuthorizationError):
    """TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53).

    The principal is not authorized for the transactional.id.
    """


class OffsetOutOfRangeError(BrokerResponseError):
    """OFFSET_OUT_OF_RANGE (1): the offset is before the log start offset or after the log end."""


class UnknownTopicOrPartitionError(BrokerResponseError):
    """UNKNOWN_TOPIC_OR_PARTITION (3): the broker has no such topic or partition.

    The topic or partition does not exist, was deleted, or is so new that the broker's metadata
    lacks it.
    """


class UnknownTopicIdError(BrokerResponseError):
    """UNKNOWN_TOPIC_ID (100): the broker has no topic with the id.

    The topic was deleted (perhaps recreated with another id), or is so new that the broker's
    metadata lacks it.
    """


class LeaderNotAvailableError(BrokerResponseError):
    """LEADER_NOT_AVAILABLE (5): the partition has no leader now, for example during an election."""


class NotLeaderOrFollowerError(BrokerResponseError):
    """NOT_LEADER_OR_FOLLOWER (6): the broker is not the leader of the partition.

    For a request that any replica may answer, such as a fetch from a follower (KIP-392), the broker
    is not a replica of the partition.
    """


class NotEnoughReplicasError(BrokerResponseError):
    """NOT_ENOUGH_REPLICAS (19), NOT_ENOUGH_REPLICAS_AFTER_APPEND (20).

    The partition has fewer in-sync replicas than min.insync.replicas. With the first code, the
    leader did not append the records; with the second, the leader appended them.
    """


class RecordTooLargeError(BrokerResponseError):
    """MESSAGE_TOO_LARGE (10): the record batch is larger than the topic's max.message.bytes."""


class InvalidTopicError(BrokerResponseError):
    """INVALID_TOPIC_EXCEPTION (17): the topic's name is invalid, or the topic refuses writes.

    Clients may not write to internal topics such as `__consumer_offsets`.
    """


class TopicExistsError(BrokerResponseError):
    """TOPIC_ALREADY_EXISTS (36): the cluster already has a topic of that name."""


class NotControllerError(BrokerResponseError):
    """NOT_CONTROLLER (41): the server is not the active controller."""


class CoordinatorNotAvailableError(BrokerResponseError):
    """COORDINATOR_NOT_AVAILABLE (15): the group or transactional.id has no coordinator now."""


class NotCoordinatorError(BrokerResponseError):
    """NOT_COORDINATOR (16): the broker is not the coordinator of the group or transactional.id."""


class IllegalGenerationError(BrokerResponseError):
    """ILLEGAL_GENERATION (22): the member's generation is not the group's current generation."""


class UnknownMemberIdError(BrokerResponseError):
    """UNKNOWN_MEMBER_ID (25): the group has no member with the id, or removed it."""


class RebalanceInProgressError(BrokerResponseError):
    """REBALANCE_IN_PROGRESS (27): the group is rebalancing, and the member must rejoin."""


class GroupIdNotFoundError(BrokerResponseError):
    """GROUP_ID_NOT_FOUND (69): the group does not exist, or has another group type."""


class FencedInstanceIdError(BrokerResponseError):
    """FENCED_INSTANCE_ID (82): a newer member with the same group.instance.id fenced this one.

    See KIP-345.
    """


class FencedMemberEpochError(BrokerResponseError):
    """FENCED_MEMBER_EPOCH (110): the coordinator fenced the member epoch (KIP-848).

    The member must abandon all its partitions and rejoin.
    """


class StaleMemberEpochError(BrokerResponseError):
    """STALE_MEMBER_EPOCH (113): the request has an outdated member epoch (KIP-848).

    The member must retry with the epoch of its next heartbeat response.
    """


class ProducerFencedError(BrokerResponseError):
    """PRODUCER_FENCED (90): a newer producer with the same transactional.id fenced this one."""


class InvalidRecordStateError(BrokerResponseError):
    """INVALID_RECORD_STATE (121): the member has no lock on an acknowledged record (KIP-932).

    The lock has ended, or the record is acknowledged already.
    """


class ShareSessionNotFoundError(BrokerResponseError):
    """SHARE_SESSION_NOT_FOUND (122): the broker has closed the share session (KIP-932)."""


class InvalidShareSessionEpochError(BrokerResponseError):
    """INVALID_SHARE_SESSION_EPOCH (123): the epoch of a share session is out of order (KIP-932)."""


class ShareSessionLimitReachedError(BrokerResponseError):
    """SHARE_SESSION_LIMIT_REACHED (133): the broker opens no further share session (KIP-932).

    The limit is `group.share.max.share.sessions` of the broker.
    """


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
    "INVALID_RECORD_STATE": InvalidRecordStateError,
    "SHARE_SESSION_NOT_FOUND": ShareSessionNotFoundError,
    "INVALID_SHARE_SESSION_EPOCH": InvalidShareSessionEpochError,
    "SHARE_SESSION_LIMIT_REACHED": ShareSessionLimitReachedError,
}
