"""Maps the error of each request to the next action of a consumer-protocol member (KIP-848).

Rows name their KIPs; `groups.group_errors` has the rows of both protocols. A member retries an
error without a row if it is retriable, and ends otherwise.
"""

from __future__ import annotations

from typing import Final

from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ....protocol.error_codes import error_of_code
from ....wire.errors import BrokerResponseError, KprotoError, UnsupportedVersionError
from ..group_errors import COMMON_ACTIONS, ErrorAction, GroupRequest, action_in
from ..group_protocol import GroupProtocolMismatchError

__all__ = ["action_for", "error_in"]

#: Errors of a member that has an epoch.
_IN_EPOCH: Final = {
    "UNKNOWN_MEMBER_ID": ErrorAction.MEMBER_UNKNOWN,
    "FENCED_MEMBER_EPOCH": ErrorAction.MEMBER_UNKNOWN,
    "GROUP_ID_NOT_FOUND": ErrorAction.MEMBER_UNKNOWN,  # deleted, or it changed its protocol
}

#: Errors that a retry cannot solve.
_SETTINGS: Final = {
    "GROUP_MAX_SIZE_REACHED": ErrorAction.FAIL,  # KIP-389: group.consumer.max.size
    "INVALID_REGULAR_EXPRESSION": ErrorAction.FAIL,  # the broker reads RE2
    "INVALID_REQUEST": ErrorAction.FAIL,
    "TOPIC_AUTHORIZATION_FAILED": ErrorAction.FAIL,
    "UNSUPPORTED_ASSIGNOR": ErrorAction.FAIL,  # group.consumer.assignors
}

#: A part of Kafka 3.9's error message, with GROUP_ID_NOT_FOUND, for a classic group with a member
#: that has no assignment yet, which Kafka 3.9 calls malformed. For permanent causes, such as the
#: migration policy or another group type, its message has "is not a consumer group". Kafka 4 has a
#: message for each cause.
_NO_ASSIGNMENT_YET: Final = "embedded consumer protocol is malformed"

_TABLE: Final[dict[GroupRequest, dict[str, ErrorAction]]] = {
    GroupRequest.COORDINATOR: {},
    GroupRequest.TOPICS: {},
    GroupRequest.JOIN: _SETTINGS
    | {
        "UNKNOWN_MEMBER_ID": ErrorAction.MEMBER_UNKNOWN,
        "FENCED_MEMBER_EPOCH": ErrorAction.MEMBER_UNKNOWN,
        "UNRELEASED_INSTANCE_ID": ErrorAction.UNRELEASED,
        "GROUP_ID_NOT_FOUND": ErrorAction.OTHER_PROTOCOL,  # the broker must not convert the group
        "INCONSISTENT_GROUP_PROTOCOL": ErrorAction.OTHER_PROTOCOL,
        "UNSUPPORTED_VERSION": ErrorAction.OTHER_PROTOCOL,  # the cluster disables the protocol
        # Kafka 4 fails to convert a classic group whose first rebalance has not ended, or in which
        # a joining member does not support the previous assignor.
        "UNKNOWN_SERVER_ERROR": ErrorAction.UNCONVERTED,
    },
    GroupRequest.HEARTBEAT: _SETTINGS
    | _IN_EPOCH
    | {"UNSUPPORTED_VERSION": ErrorAction.OTHER_PROTOCOL},
    # STALE_MEMBER_EPOCH: the member has another epoch since, or the next response has it.
    GroupRequest.COMMIT: _IN_EPOCH | {"STALE_MEMBER_EPOCH": ErrorAction.STALE},
    GroupRequest.LEAVE: {},
}


def action_for(request: GroupRequest, error: KprotoError) -> ErrorAction:
    """Returns the action for an error for the member."""
    if isinstance(error, GroupProtocolMismatchError):
        return ErrorAction.OTHER_PROTOCOL
    if isinstance(error, UnsupportedVersionError):
        return ErrorAction.FAIL
    action = action_in(COMMON_ACTIONS | _TABLE[request], error)
    if action is ErrorAction.OTHER_PROTOCOL and _NO_ASSIGNMENT_YET in str(error):
        return ErrorAction.UNCONVERTED
    return action


def error_in(
    answer: ConsumerGroupHeartbeatResponse, request: GroupRequest, group_id: str
) -> BrokerResponseError:
    """Returns the error of a response, with the broker's message."""
    what = f"{request.value}: group {group_id!r}"
    if answer.error_message:
        what += f": {answer.error_message}"
    return error_of_code(answer.error_code, what)
