"""Sends the requests of a classic member: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

`MemberDriver` runs the member, `membership` decides its next effect.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import Any, Final

from ....messages.base import Request
from ....messages.heartbeat_request import HeartbeatRequest
from ....messages.leave_group_request import LeaveGroupRequest
from ....protocol.error_codes import error_of_code
from ....wire.errors import KprotoError
from ...core.group_errors import ErrorAction, classic_action
from ...metadata.cluster import TopicInfo
from ...metadata.cluster_view import ClusterView
from ..assignment_listener import AssignmentListener
from ..driver import HeartbeatSender, MemberDriver, OnResult
from ..effects import (
    ComputeAssignment,
    MemberIdentity,
    SendJoinGroup,
    SendLeaveGroup,
    SendSyncGroup,
)
from ..group_protocol import GroupProtocolMismatchError, has_consumer_groups
from ..leader import compute_assignment, subscriptions_in, topic_error, topic_racks
from ..settings import GroupSettings
from .membership import ClassicMembership

__all__ = ["AssignmentListener", "ClassicMember", "MemberIdentity"]

#: The leader uses metadata younger than this, in ms, without another request, so that a group of
#: one member starts faster.
_YOUNG_MS: Final = 100


class ClassicMember(MemberDriver[ClassicMembership]):
    """Runs a member of a classic group; see `MemberDriver`."""

    def __init__(
        self,
        view: ClusterView,
        settings: GroupSettings,
        listener: AssignmentListener,
        *,
        checks_group_first: bool = False,
    ) -> None:
        membership = ClassicMembership(settings, view.settings)
        super().__init__(
            view, settings, listener, membership, checks_group_first=checks_group_first
        )

    def _on_coordinator_moved(self) -> None:
        self._membership.on_coordinator_moved(self._clock.monotonic())
        self._changed.set()

    def _on_topics_differ(self, change: str, now: float) -> None:
        self._membership.request_rejoin(change, now)

    # Effects

    async def _carry_out_protocol_step(
        self, step: SendJoinGroup | ComputeAssignment | SendSyncGroup
    ) -> OnResult:
        match step:
            case SendJoinGroup():
                return await self._join(step)
            case ComputeAssignment():
                return await self._lead(step)
            case SendSyncGroup():
                return await self._sync(step)

    async def _check_group_protocol(self) -> None:
        """Raises GroupProtocolMismatchError if the group has no members of the classic protocol.

        Checks nothing if the coordinator does not support the consumer protocol.
        """
        node = await self._view.group_coordinator(self.settings.group_id)
        connection = self._view.open_connection(node)
        if connection is None:
            connection = await self._coordinator.connection()
        if not has_consumer_groups(connection.ranges):
            return
        if not await self._has_live_classic_members(connection):
            raise GroupProtocolMismatchError("the group has no members of the classic protocol")

    async def _join(self, step: SendJoinGroup) -> OnResult:
        if self.checks_group_first and self._membership.generation < 0:
            await self._check_group_protocol()
        wanted = await self._topics_to_join(step.subscription)

        def request() -> Request[Any]:
            self._counts.joins += 1
            return self._membership.join_request(wanted, self._listener.owned_partitions())

        coordinator = self._coordinator
        ask = (
            coordinator.request_member_id
            if self._membership.needs_member_id
            else coordinator.send_join_or_sync
        )
        response, sent_at = await ask(request)

        def on_result(now: float) -> None:
            self._watch.joined(step.subscription, wanted)
            self._handle_action(self._membership.on_join_response(response, sent_at, now))
            current_subscription = self._membership.subscription
            if (
                current_subscription is not None and current_subscription != step.subscription
            ):  # it changed during the join
                self._membership.request_rejoin(
                    f"the subscription is now {current_subscription}", now
                )

        return on_result

    async def _lead(self, step: ComputeAssignment) -> OnResult:
        subscriptions = subscriptions_in(step.members)
        for member_id, error in subscriptions.unreadable.items():
            text = "the subscription of member %s is malformed, it gets no partitions: %s"
            self._log(text, member_id, error, level=logging.WARNING)
        topics = await self._topics(subscriptions.topics)
        subscription = self._membership.subscription
        if subscription is not None:
            refused = topic_error(topics, subscription.topics)
            if refused is not None:
                raise refused
        existing = topic_racks(topics, self._view.cluster)
        assignment = (
            {} if step.skip else compute_assignment(step.assignor, existing, subscriptions.members)
        )

        def on_result(now: float) -> None:
            self._watch.lead(subscriptions.topics, existing)
            self._schedule_refresh()
            self._membership.on_assignment_computed(assignment)

        return on_result

    async def _topics(self, names: Collection[str]) -> list[TopicInfo]:
        """Returns the metadata of the topics `names`.

        If a topic's metadata is missing or older than `_YOUNG_MS`, requests the metadata of all
        `names`.
        """
        view = self._view
        young = self._clock.monotonic() - _YOUNG_MS / 1000
        known = [
            view.cluster.topics[name]
            for name in names
            if name in view.cluster.topics and view.has_metadata_since(name, young)
        ]
        return known if len(known) == len(names) else await view.refresh(names)

    async def _sync(self, step: SendSyncGroup) -> OnResult:
        response, sent_at = await self._coordinator.send_join_or_sync(lambda: step.request)
        return lambda now: self._handle_action(
            self._membership.on_sync_response(response, sent_at, now)
        )

    async def _send_leave_once(self, step: SendLeaveGroup) -> None:
        """Sends LeaveGroup. Raises its error; the caller retries retriable errors."""
        group_id = self.settings.group_id
        try:
            connection = await self._coordinator.connection()
            version = connection.version_of(LeaveGroupRequest)
            answer = await connection.request(step.request(group_id, version), version=version)
        except KprotoError:
            self._coordinator.forget()
            raise
        codes = [answer.error_code, *(each.error_code for each in answer.members)]
        self._check_leave_response(codes, classic_action)

    # Heartbeats

    def _heartbeat_to_send(self, now: float) -> HeartbeatSender | None:
        request = self._membership.heartbeat(now)
        return None if request is None else partial(self._send_heartbeat, request)

    async def _send_heartbeat(self, request: HeartbeatRequest) -> OnResult:
        its = self.settings
        timeout_ms = self._heartbeat_timeout_ms(its.heartbeat_interval_ms, its.session_timeout_ms)
        sent_at = self._clock.monotonic()
        error: KprotoError | None = None
        try:
            connection = await self._coordinator.heartbeat_connection()
            sent_at = self._clock.monotonic()
            answer = await connection.request(request, timeout_ms=timeout_ms)
        except KprotoError as lost:
            error = lost
        else:
            if answer.error_code:
                what = f"heartbeat: group {self.settings.group_id!r}"
                error = error_of_code(answer.error_code, what)

        def on_result(now: float) -> None:
            action = self._membership.on_heartbeat_response(request, error, sent_at, now)
            self._handle_action(action)
            if error is None or action is ErrorAction.REBALANCE:
                self._counts.heartbeats += 1

        return on_result
