"""Builds ShareGroupHeartbeat, reads its responses, and explains its errors (KIP-932).

Plain functions on plain data. The first heartbeat after a join has all fields, later heartbeats
have only changes; after a heartbeat that failed, the member sends all fields again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ....messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from ....protocol.error_codes import error_of_code
from ....wire.errors import BrokerResponseError, KprotoError, UnsupportedVersionError
from ...core.group_errors import ErrorAction, GroupRequest, share_action
from ..heartbeat_phases import JOIN_EPOCH, LEAVE_EPOCH

__all__ = [
    "ShareHeartbeat",
    "action_for",
    "explained",
    "heartbeat_request",
    "leave_request",
]

#: Explanations by error name; `{group}` stands for the group id, `{topics}` for the subscription.
_EXPLANATIONS: Final = {
    "GROUP_AUTHORIZATION_FAILED": "the principal needs READ on the group",
    "GROUP_ID_NOT_FOUND": "{group!r} is the id of a group of another kind: use another id, or read "
    "with Client.consumer",
    "INCONSISTENT_GROUP_PROTOCOL": "{group!r} is the id of a group of another kind: use another "
    "id, or read with Client.consumer",
    "GROUP_MAX_SIZE_REACHED": "the group has as many members as its broker allows "
    "(group.share.max.size)",
    "INVALID_GROUP_ID": "the broker does not accept this group id",
    "TOPIC_AUTHORIZATION_FAILED": "the principal needs DESCRIBE and READ on all subscribed topics: "
    "{topics}",
    "UNSUPPORTED_VERSION": "the cluster has share groups disabled (feature share.version, Kafka "
    "4.2): enable the feature, or read with Client.consumer",
}


class ShareHeartbeat(NamedTuple):
    """A heartbeat, and the data of the member at the time of sending.

    `fields` are the subscribed topics: a later heartbeat has them only if they have changed.
    `incarnation` is the number of joins, leaves and losses before `sent_at`: if the number has
    changed, the response does not apply any more. `sent_at` is in seconds of the clock.
    """

    request: ShareGroupHeartbeatRequest
    fields: frozenset[str]
    incarnation: int
    sent_at: float

    @property
    def group_request(self) -> GroupRequest:
        """Returns JOIN for member epoch 0, and HEARTBEAT for any other epoch."""
        is_join = self.request.member_epoch == JOIN_EPOCH
        return GroupRequest.JOIN if is_join else GroupRequest.HEARTBEAT


def heartbeat_request(
    group_id: str,
    member: tuple[str, int],
    rack: str | None,
    topics: frozenset[str],
    known: frozenset[str] | None,
) -> ShareGroupHeartbeatRequest:
    """Returns the heartbeat of a member; `member` is its id and epoch.

    `known` has the topics of the last heartbeat that succeeded since the join; None makes the
    heartbeat have all fields.
    """
    member_id, epoch = member
    request = ShareGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)
    if known is None:
        request.rack_id = rack or None
    if known != topics:
        request.subscribed_topic_names = sorted(topics)
    return request


def leave_request(group_id: str, member_id: str) -> ShareGroupHeartbeatRequest:
    """Returns the last heartbeat of a member, which leaves the group."""
    return ShareGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, member_epoch=LEAVE_EPOCH
    )


def action_for(request: GroupRequest, error: KprotoError) -> ErrorAction:
    """Returns the action of the member after `request` failed with `error`."""
    if isinstance(error, UnsupportedVersionError):
        return ErrorAction.FAIL
    return share_action(request, error)


def explained(error: KprotoError, group_id: str, topics: frozenset[str]) -> KprotoError:
    """Returns the error with an explanation; the error itself if there is none for it."""
    if not isinstance(error, BrokerResponseError) or error.name not in _EXPLANATIONS:
        return error
    words = _EXPLANATIONS[error.name].format(group=group_id, topics=", ".join(sorted(topics)))
    return error_of_code(error.code, f"{error.detail}: {words}")
