"""Maps the error of each request to the next action of a consumer-protocol member (KIP-848).

Rows name their KIPs; `groups.group_errors` has the rows of both protocols. A member retries an
error without a row if it is retriable, and ends otherwise.
"""

from __future__ import annotations

from typing import Final

from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ....protocol.error_codes import error_of_code
from ....wire.errors import BrokerResponseError, KprotoError, UnsupportedVersionError
from ..group_errors import EVERYWHERE, GroupRequest, Meaning, meaning_in
from ..group_protocol import GroupProtocolMismatchError

__all__ = ["error_in", "meaning_of"]

#: Errors of a member that has an epoch.
_IN_EPOCH: Final = {
    "UNKNOWN_MEMBER_ID": Meaning.MEMBER_UNKNOWN,
    "FENCED_MEMBER_EPOCH": Meaning.MEMBER_UNKNOWN,
    "GROUP_ID_NOT_FOUND": Meaning.MEMBER_UNKNOWN,  # deleted, or it changed its protocol
}

#: Errors that a retry cannot solve.
_SETTINGS: Final = {
    "GROUP_MAX_SIZE_REACHED": Meaning.FAIL,  # KIP-389: group.consumer.max.size
    "INVALID_REGULAR_EXPRESSION": Meaning.FAIL,  # the broker reads RE2
    "INVALID_REQUEST": Meaning.FAIL,
    "TOPIC_AUTHORIZATION_FAILED": Meaning.FAIL,
    "UNSUPPORTED_ASSIGNOR": Meaning.FAIL,  # group.consumer.assignors
}

#: A part of Kafka 3.9's error message, with GROUP_ID_NOT_FOUND, for a classic group with a member
#: that has no assignment yet, which Kafka 3.9 calls malformed. For permanent causes, such as the
#: migration policy or another group type, its message has "is not a consumer group". Kafka 4 has a
#: message for each cause.
_NO_ASSIGNMENT_YET: Final = "embedded consumer protocol is malformed"

_TABLE: Final[dict[GroupRequest, dict[str, Meaning]]] = {
    GroupRequest.COORDINATOR: {},
    GroupRequest.TOPICS: {},
    GroupRequest.JOIN: _SETTINGS
    | {
        "UNKNOWN_MEMBER_ID": Meaning.MEMBER_UNKNOWN,
        "FENCED_MEMBER_EPOCH": Meaning.MEMBER_UNKNOWN,
        "UNRELEASED_INSTANCE_ID": Meaning.UNRELEASED,
        "GROUP_ID_NOT_FOUND": Meaning.OTHER_PROTOCOL,  # the broker must not convert the group
        "INCONSISTENT_GROUP_PROTOCOL": Meaning.OTHER_PROTOCOL,
        "UNSUPPORTED_VERSION": Meaning.OTHER_PROTOCOL,  # the protocol is disabled in the cluster
        # Kafka 4 fails to convert a classic group whose first rebalance has not ended, or in which
        # a joining member does not support the previous assignor.
        "UNKNOWN_SERVER_ERROR": Meaning.UNCONVERTED,
    },
    GroupRequest.HEARTBEAT: _SETTINGS | _IN_EPOCH | {"UNSUPPORTED_VERSION": Meaning.OTHER_PROTOCOL},
    # STALE_MEMBER_EPOCH: the member has another epoch since, or the next response has it.
    GroupRequest.COMMIT: _IN_EPOCH | {"STALE_MEMBER_EPOCH": Meaning.STALE},
    GroupRequest.LEAVE: {},
}


def meaning_of(asked: GroupRequest, error: KprotoError) -> Meaning:
    """Returns the meaning of an error for the member."""
    if isinstance(error, GroupProtocolMismatchError):
        return Meaning.OTHER_PROTOCOL
    if isinstance(error, UnsupportedVersionError):
        return Meaning.FAIL
    meaning = meaning_in(EVERYWHERE | _TABLE[asked], error)
    if meaning is Meaning.OTHER_PROTOCOL and _NO_ASSIGNMENT_YET in str(error):
        return Meaning.UNCONVERTED
    return meaning


def error_in(
    answer: ConsumerGroupHeartbeatResponse, asked: GroupRequest, group_id: str
) -> BrokerResponseError:
    """Returns the error of a response, with the broker's message."""
    what = f"{asked.value}: group {group_id!r}"
    if answer.error_message:
        what += f": {answer.error_message}"
    return error_of_code(answer.error_code, what)
