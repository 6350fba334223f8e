"""Sends the requests of a member of a share group (KIP-932).

`MemberDriver` runs the member, `membership` decides its next effect.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ....messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from ....messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ....wire.errors import KprotoError, UnsupportedVersionError
from ....wire.uuid import Uuid
from ...metadata.cluster import TopicPartition
from ...metadata.cluster_view import ClusterView
from ...network.connection import BrokerConnection
from ..assignment_listener import AssignmentListener
from ..driver import HeartbeatSender, MemberDriver, OnResult
from ..effects import LeaveByHeartbeat, PrepareHeartbeat, ResolveTopicNames
from ..heartbeat_phases import JOIN_EPOCH
from ..settings import GroupSettings
from .heartbeats import ShareHeartbeat, action_for, leave_request
from .membership import ShareMembership

__all__ = ["ShareMember"]

#: The session timeout to assume for the timeout of a heartbeat, in ms: the default of
#: group.share.session.timeout.ms.
_SESSION_MS: Final = 45_000


class ShareMember(MemberDriver[ShareMembership]):
    """Runs a member of a share group; see `MemberDriver`."""

    def __init__(
        self, view: ClusterView, settings: GroupSettings, listener: AssignmentListener
    ) -> None:
        membership = ShareMembership(settings, view.settings, view.cluster.topic_name)
        super().__init__(view, settings, listener, membership, checks_group_first=False)

    @property
    def member_id(self) -> str:
        """The id of the member, which the member has chosen itself."""
        return self._membership.member_id

    def topic_id_of(self, tp: TopicPartition) -> Uuid | None:
        """Returns the topic id of a partition that is being added, or that the member has."""
        return self._membership.topic_id_of(tp)

    def _on_topics_differ(self, change: str, now: float) -> None:
        """Does nothing: the coordinator watches the topics."""

    # Effects

    async def _carry_out_protocol_step(
        self, step: PrepareHeartbeat | ResolveTopicNames
    ) -> OnResult:
        if isinstance(step, PrepareHeartbeat):
            return await self._prepare(step)
        with suppress(KprotoError):
            await self._view.refresh_ids(step.ids)
        return self._membership.on_resolved

    async def _prepare(self, step: PrepareHeartbeat) -> OnResult:
        """Finds the coordinator, checks that it has share groups, and requests the topics."""
        self._check_support(await self._coordinator.connection())
        wanted = await self._topics_to_join(step.subscription)

        def on_result(now: float) -> None:
            self._watch.joined(step.subscription, wanted)
            self._membership.on_prepared(step, wanted, now)

        return on_result

    def _check_support(self, connection: BrokerConnection) -> None:
        """Raises UnsupportedVersionError if the coordinator does not have share groups."""
        if ShareGroupHeartbeatRequest.API_KEY not in connection.ranges:
            raise UnsupportedVersionError(
                f"the coordinator of group {self.settings.group_id!r} has no ShareGroupHeartbeat "
                "(KIP-932): share groups need brokers of Kafka 4.2 or later with the feature "
                "share.version; with older brokers read with Client.consumer"
            )

    async def _send_leave_once(self, step: LeaveByHeartbeat) -> None:
        request = leave_request(self.settings.group_id, step.member_id)
        try:
            connection = await self._coordinator.connection()
            answer = await connection.request(request)
        except KprotoError:
            self._coordinator.forget()
            raise
        self._check_leave_response([answer.error_code], action_for)

    # Heartbeats

    def _heartbeat_to_send(self, now: float) -> HeartbeatSender | None:
        return self._send_heartbeat if self._membership.heartbeat_due(now) else None

    async def _send_heartbeat(self) -> OnResult:
        membership = self._membership
        outcome: ShareGroupHeartbeatResponse | KprotoError
        beat: ShareHeartbeat | None = None
        try:
            connection = await self._coordinator.connection()
            self._check_support(connection)
            beat = membership.heartbeat(self._clock.monotonic())
            if beat is None:
                return lambda now: None
            self._counts.joins += beat.request.member_epoch == JOIN_EPOCH
            timeout_ms = self._heartbeat_timeout_ms(membership.interval_ms, _SESSION_MS)
            outcome = await connection.request(beat.request, timeout_ms=timeout_ms)
        except KprotoError as error:
            outcome = error

        def on_result(now: float) -> None:
            if beat is None:
                assert isinstance(outcome, KprotoError)
                self._handle_action(membership.on_heartbeat_not_sent(outcome, now))
                return
            self._handle_action(membership.on_heartbeat_response(beat, outcome, now))
            if not isinstance(outcome, KprotoError) and not outcome.error_code:
                self._counts.heartbeats += 1

        return on_result
