"""Handles requests of classic members in a group of the consumer protocol (KIP-848, migration).

The requests are JoinGroup, SyncGroup, Heartbeat and LeaveGroup. The generation is the member epoch,
the group has no leader, and SyncGroup returns the assignment of the server-side assignor. No
response is delayed: a member does not wait for the other members. The order of checks is that of
Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....protocol.consumer_protocol import PROTOCOL_TYPE
from ....wire.errors import BrokerResponseError, DecodeError
from ...api_error import api_error
from ...log_escaping import log_safe
from ..classic_members import (
    NO_ERROR,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from ..clock_reading import ClockReading
from ..group_limits import MigrationPolicy
from .classic_subscriptions import Subscription, assignment_bytes, read_subscription
from .consumer_group import ConsumerGroup, MemberTimeout
from .consumer_group_member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    MemberState,
    without_epochs,
)
from .group_change import GroupChange

__all__ = ["heartbeat", "join", "leave", "sync"]


def join(group: ConsumerGroup, request: JoinRequest, new_id: str, now: ClockReading) -> JoinResult:
    """Handles a JoinGroup; the result has the generation and the protocol, or an error name.

    `new_id` is the member id to use if the request has none.
    """
    group.advance(now)
    try:
        return _join(group, request, new_id, now)
    except BrokerResponseError as error:
        return JoinResult("", error.name)


def _join(group: ConsumerGroup, request: JoinRequest, new_id: str, now: ClockReading) -> JoinResult:
    if group.limits.migration is MigrationPolicy.DISABLED:
        raise api_error("INCONSISTENT_GROUP_PROTOCOL", "the migration of groups is disabled")
    member_id = request.member_id or new_id
    group.check_size(member_id, request.instance_id)
    _check_protocols(group, request)
    if not request.member_id and request.instance_id is None and request.requires_known_member_id:
        return JoinResult(member_id, "MEMBER_ID_REQUIRED")
    change = group.start_change(now)
    existing = group.persisted.static_member(request.instance_id)
    former = _member(group, change, request, member_id)
    is_last = existing is not None and existing.classic is None and group.may_downgrade(existing)
    try:
        subscription = read_subscription(request.protocols[0].metadata, group.topics)
    except DecodeError as error:
        raise api_error(
            "UNKNOWN_SERVER_ERROR", f"the subscription cannot be read: {error}"
        ) from None
    member = _update_member(former, request, subscription)
    has_changed, _ = change.subscribe(member)
    change.bump_group_epoch(bumps_epoch=has_changed)
    if is_last:
        is_behind = change.state.target_epoch < change.state.epoch
        if not has_changed:
            member = change.reconcile(member, subscription.owned, has_changed=False)
        why = "a changed subscription" if has_changed else "an outdated assignment" * is_behind
        group.downgrade(change, (), why or None, now)
        return _join_result(member)
    change.update_target_assignment()
    member = change.reconcile(member, subscription.owned, has_changed=has_changed)
    group.apply_change(change, now)
    group.stop_timer(MemberTimeout.JOIN, member_id)
    group.reset_session(member, now)
    group.start_timer(MemberTimeout.SYNC, member, request.rebalance_timeout_ms, now)
    return _join_result(member)


def _join_result(member: ConsumerGroupMember) -> JoinResult:
    assert member.classic is not None
    return JoinResult(
        member.member_id,
        generation=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol=member.classic.protocols[0].name,
    )


def _check_protocols(group: ConsumerGroup, request: JoinRequest) -> None:
    """Raises INCONSISTENT_GROUP_PROTOCOL for a request whose protocols do not fit the group.

    The request must have the protocol type `consumer`, and a protocol that all classic members
    support.
    """
    others = [
        {protocol.name for protocol in it.classic.protocols}
        for it in group.members.values()
        if it.classic is not None
    ]
    if request.protocol_type != PROTOCOL_TYPE or not any(
        all(name in its for its in others) for name in request.names
    ):
        raise api_error(
            "INCONSISTENT_GROUP_PROTOCOL",
            f"Member {request.member_id}'s protocols are not supported.",
        )


def _member(
    group: ConsumerGroup, change: GroupChange, request: JoinRequest, member_id: str
) -> ConsumerGroupMember:
    """Returns the joining member, existing or new.

    If a static member joins without a member id, it replaces the member that has its instance id.
    """
    if request.instance_id is None:
        return group.members.get(member_id, ConsumerGroupMember(member_id))
    if request.member_id:
        return group.check_member(member_id, request.instance_id)
    former = group.persisted.static_member(request.instance_id)
    return (
        ConsumerGroupMember(member_id)
        if former is None
        else change.replace_static(former, member_id)
    )


def _update_member(
    member: ConsumerGroupMember, request: JoinRequest, subscription: Subscription
) -> ConsumerGroupMember:
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack=subscription.rack or member.rack,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=subscription.topics,
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMemberMetadata(request.session_timeout_ms, request.protocols),
    )


def sync(group: ConsumerGroup, request: SyncRequest, now: ClockReading) -> SyncResult:
    """Handles a SyncGroup; the result has the member's assignment, or an error name."""
    group.advance(now)
    try:
        member, part = _classic(group, request.member_id, request.instance_id, request.generation)
        if not request.matches_protocol(PROTOCOL_TYPE, part.protocols[0].name):
            raise api_error("INCONSISTENT_GROUP_PROTOCOL", "the member has another protocol")
        is_behind = group.persisted.epoch > member.epoch
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            _require_rejoin(group, member, now)
            raise api_error("REBALANCE_IN_PROGRESS", f"group {group.group_id!r} rebalances")
    except BrokerResponseError as error:
        return SyncResult(error.name)
    group.stop_timer(MemberTimeout.SYNC, member.member_id)
    group.reset_session(member, now)
    assigned = without_epochs(member.assigned)
    return SyncResult(
        protocol_type=request.protocol_type,
        protocol=request.protocol,
        assignment=assignment_bytes(assigned, group.topics, part.protocols[0].metadata),
    )


def heartbeat(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    now: ClockReading,
) -> None:
    """Resets the session timeout of a member.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION. Raises REBALANCE_IN_PROGRESS
    if the member must join again. The member must do so after a bump of the group epoch, to revoke
    partitions, or to get further partitions of its target assignment.
    """
    group.advance(now)
    member, _ = _classic(group, member_id, instance_id, generation)
    group.reset_session(member, now)
    has_rest = member.state is MemberState.UNRELEASED_PARTITIONS and not _awaits_release(
        group, member
    )
    if (
        member.epoch < group.persisted.epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or has_rest
    ):
        _require_rejoin(group, member, now)
        raise api_error("REBALANCE_IN_PROGRESS", f"group {group.group_id!r} rebalances")


def leave(group: ConsumerGroup, leaving: Iterable[LeavingMember], now: ClockReading) -> list[str]:
    """Handles a LeaveGroup: removes members of either protocol.

    Returns an error name for each member, NONE for success.
    """
    group.advance(now)
    errors, leaving_members = [], []
    for one in leaving:
        try:
            if one.instance_id is not None and not one.member_id:
                member = group.persisted.static_member(one.instance_id)
                if member is None:
                    raise api_error("UNKNOWN_MEMBER_ID", f"{log_safe(one.instance_id)} is unknown")
            else:
                member = group.check_member(one.member_id, one.instance_id)
        except BrokerResponseError as error:
            errors.append(error.name)
        else:
            errors.append(NO_ERROR)
            leaving_members.append(member)
    group.remove_members(leaving_members, "it left", now)
    return errors


def _classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
    """Returns a member that uses the classic protocol, and the data that only such members have.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member = group.check_member(member_id, instance_id)
    if member.classic is None:
        raise api_error(
            "UNKNOWN_MEMBER_ID", f"Member {member_id} does not use the classic protocol."
        )
    if member.epoch != generation:
        raise api_error(
            "ILLEGAL_GENERATION", f"member {member_id} is at epoch {member.epoch}, not {generation}"
        )
    return member, member.classic


def _require_rejoin(group: ConsumerGroup, member: ConsumerGroupMember, now: ClockReading) -> None:
    """Starts the timeout for the member to join again; does nothing if that timeout is running."""
    if not group.is_timer_running(MemberTimeout.JOIN, member.member_id):
        group.start_timer(MemberTimeout.JOIN, member, member.rebalance_timeout_ms, now)


def _awaits_release(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Returns True if another member must first revoke a partition that `member` is to get."""
    owned = group.persisted.owned
    return any(
        (topic_id, index) in owned
        for topic_id, its in group.persisted.target_assignment_of(member.member_id).items()
        for index in its - member.assigned.get(topic_id, {}).keys()
    )
