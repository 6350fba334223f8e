"""Maps errors to what a member of the consumer protocol does next, by its request (KIP-848).

Each row names its KIP; rows of both protocols are in `groups.group_errors`. An error without a row
is retried if it is retriable, and ends the member otherwise.
"""

from __future__ import annotations

from typing import Final

from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ....protocol.error_codes import error_of_code
from ....wire.errors import BrokerResponseError, KprotoError, UnsupportedVersionError
from ..group_errors import EVERYWHERE, GroupRequest, Meaning, meaning_in
from ..group_protocol import GroupProtocolMismatchError

__all__ = ["error_in", "meaning_of"]

#: Of a member that has an epoch.
_IN_EPOCH: Final = {
    "UNKNOWN_MEMBER_ID": Meaning.MEMBER_UNKNOWN,
    "FENCED_MEMBER_EPOCH": Meaning.MEMBER_UNKNOWN,
    "GROUP_ID_NOT_FOUND": Meaning.MEMBER_UNKNOWN,  # deleted, or of the other kind by now
}

#: Nothing that another heartbeat mends.
_SETTINGS: Final = {
    "GROUP_MAX_SIZE_REACHED": Meaning.FAIL,  # KIP-389: group.consumer.max.size
    "INVALID_REGULAR_EXPRESSION": Meaning.FAIL,  # the broker reads RE2
    "INVALID_REQUEST": Meaning.FAIL,
    "TOPIC_AUTHORIZATION_FAILED": Meaning.FAIL,
    "UNSUPPORTED_ASSIGNOR": Meaning.FAIL,  # group.consumer.assignors
}

#: What Kafka 3.9 says, beside GROUP_ID_NOT_FOUND, of a classic group in which a member has no
#: assignment yet: it takes that for broken. Of what no time mends, as a policy that forbids it or
#: a group of another type, it says "is not a consumer group"; Kafka 4 has a sentence for each.
_NO_ASSIGNMENT_YET: Final = "embedded consumer protocol is malformed"

_TABLE: Final[dict[GroupRequest, dict[str, Meaning]]] = {
    GroupRequest.COORDINATOR: {},
    GroupRequest.TOPICS: {},
    GroupRequest.JOIN: _SETTINGS
    | {
        "UNKNOWN_MEMBER_ID": Meaning.MEMBER_UNKNOWN,
        "FENCED_MEMBER_EPOCH": Meaning.MEMBER_UNKNOWN,
        "UNRELEASED_INSTANCE_ID": Meaning.UNRELEASED,
        "GROUP_ID_NOT_FOUND": Meaning.OTHER_PROTOCOL,  # a classic group that may not be converted
        "INCONSISTENT_GROUP_PROTOCOL": Meaning.OTHER_PROTOCOL,
        "UNSUPPORTED_VERSION": Meaning.OTHER_PROTOCOL,  # the cluster has it, and turned off
        # Kafka 4 of a classic group whose first rebalance is not over, or in which a member joins
        # that does not support the assignor of before: it fails at converting it.
        "UNKNOWN_SERVER_ERROR": Meaning.UNCONVERTED,
    },
    GroupRequest.HEARTBEAT: _SETTINGS | _IN_EPOCH | {"UNSUPPORTED_VERSION": Meaning.OTHER_PROTOCOL},
    # The member has got another epoch since, or is about to hear of it.
    GroupRequest.COMMIT: _IN_EPOCH | {"STALE_MEMBER_EPOCH": Meaning.STALE},
    GroupRequest.LEAVE: {},
}


def meaning_of(asked: GroupRequest, error: KprotoError) -> Meaning:
    """Returns what an error means for the member."""
    if isinstance(error, GroupProtocolMismatchError):
        return Meaning.OTHER_PROTOCOL  # the coordinator is older than this kind, or a classic one's
    if isinstance(error, UnsupportedVersionError):
        return Meaning.FAIL
    meaning = meaning_in(EVERYWHERE | _TABLE[asked], error)
    if meaning is Meaning.OTHER_PROTOCOL and _NO_ASSIGNMENT_YET in str(error):
        return Meaning.UNCONVERTED
    return meaning


def error_in(
    answer: ConsumerGroupHeartbeatResponse, asked: GroupRequest, group_id: str
) -> BrokerResponseError:
    """Returns the error of a response, with the text of its broker."""
    what = f"{asked.value}: group {group_id!r}"
    if answer.error_message:
        what += f": {answer.error_message}"
    return error_of_code(answer.error_code, what)
