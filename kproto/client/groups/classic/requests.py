"""Builds the requests of a classic member. Plain functions; `effects` builds LeaveGroup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....messages.heartbeat_request import HeartbeatRequest
from ....messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from ....messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from ....protocol.consumer_protocol import PROTOCOL_TYPE
from ....wire.errors import ConfigurationError
from ...metadata.cluster import TopicPartition
from ..assignor import Assignor
from ..assignors.subscriptions import NO_GENERATION, Subscription
from ..effects import MAX_REASON_LENGTH
from ..protocol_data import subscription_bytes
from ..settings import GroupSettings

__all__ = ["LastAssignment", "heartbeat_request", "join_request", "sync_request"]


class LastAssignment(NamedTuple):
    """The last assignment of a member by one assignor, and the generation of the assignment."""

    tps: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


def join_request(
    settings: GroupSettings,
    member_id: str,
    subscription: Subscription,
    last: Mapping[str, LastAssignment],
    reason: str,
) -> JoinGroupRequest:
    """Returns the JoinGroup of a member with the subscription `subscription`.

    `last` maps the name of each assignor to the last assignment that the assignor made for the
    member. Raises ConfigurationError if the user's own assignor fails to build its user data.
    """
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.max_poll_interval_ms,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[
            JoinGroupRequestProtocol(
                name=each.name,
                metadata=subscription_bytes(
                    subscription._replace(
                        user_data=_user_data(
                            each, subscription, last.get(each.name, LastAssignment())
                        )
                    )
                ),
            )
            for each in settings.resolved_assignors
        ],
        reason=reason[:MAX_REASON_LENGTH],
    )


def sync_request(
    settings: GroupSettings,
    member_id: str,
    generation: int,
    protocol: str,
    assignments: Mapping[str, bytes],
) -> SyncGroupRequest:
    """Returns the SyncGroup of a member; the leader sends the `assignments` of all members."""
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,  # KIP-559
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=each, assignment=data)
            for each, data in assignments.items()
        ],
    )


def heartbeat_request(settings: GroupSettings, member_id: str, generation: int) -> HeartbeatRequest:
    """Returns the heartbeat of a member; `generation` is NO_GENERATION if the member has none."""
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.instance_id,
    )


def _user_data(
    assignor: Assignor, subscription: Subscription, last: LastAssignment
) -> bytes | None:
    if assignor.user_data is None:
        return None
    try:
        data = assignor.user_data(subscription.topics, last.tps, last.generation)
    except Exception as error:
        raise ConfigurationError(
            f"user_data of the assignor {assignor.name!r} raised {error!r}"
        ) from error
    if data is not None and not isinstance(data, bytes):
        raise ConfigurationError(
            f"user_data of the assignor {assignor.name!r} returned {data!r:.80}; it must be "
            "bytes, or None"
        )
    return data
