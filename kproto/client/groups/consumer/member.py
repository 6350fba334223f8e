"""Sends the requests of a member of the consumer protocol (KIP-848).

`MemberDriver` runs the member, `membership` decides its next effect.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ....messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ....messages.describe_configs_request import DescribeConfigsRequest
from ....wire.errors import KprotoError, UnsupportedVersionError
from ...core.retry import Remedy, remedy_of
from ...metadata.cluster_view import ClusterView
from ...network.connection import BrokerConnection
from ..assignment_listener import AssignmentListener
from ..driver import HeartbeatSender, MemberDriver, OnResult
from ..effects import LeaveByHeartbeat, PrepareHeartbeat, ResolveTopicNames
from ..group_protocol import GroupProtocolMismatchError, check_pattern, has_consumer_groups
from ..heartbeat_phases import JOIN_EPOCH, Phase
from ..settings import GroupSettings
from ..subscription import Subscription
from .heartbeat_errors import action_for
from .heartbeats import Heartbeat
from .membership import ConsumerMembership
from .session_timeout import is_denied, session_ms_in, session_timeout_request

__all__ = ["ConsumerMember"]

#: After more than this many unanswered requests for the session timeout of the group in a row, the
#: member joins without the timeout, and derives it from the heartbeat interval.
_MAX_UNANSWERED: Final = 3


class ConsumerMember(MemberDriver[ConsumerMembership]):
    """Runs a member of a group of the consumer protocol; see `MemberDriver`."""

    def __init__(
        self,
        view: ClusterView,
        settings: GroupSettings,
        listener: AssignmentListener,
        *,
        checks_group_first: bool = False,
    ) -> None:
        name_of = view.cluster.topic_name
        membership = ConsumerMembership(
            settings, view.settings, name_of, may_change_protocol=checks_group_first
        )
        super().__init__(
            view, settings, listener, membership, checks_group_first=checks_group_first
        )
        self._requests_session = True  # until the broker denies it
        self._session_refresh_at = 0.0
        self._unanswered = 0  # requests for the session timeout, in a row

    def _on_topics_differ(self, change: str, now: float) -> None:
        subscription = self._membership.subscription
        if subscription is None or subscription.pattern is None:
            return
        if not self._watch.is_for_subscription(subscription):
            return  # the next metadata refresh is for the changed subscription
        self._log("%s", change)
        topics = self._watch.matching
        self._watch.joined(subscription, topics)
        self._membership.on_topics_matched(topics, now)

    # Effects

    async def _carry_out_protocol_step(
        self, step: PrepareHeartbeat | ResolveTopicNames
    ) -> OnResult:
        if isinstance(step, PrepareHeartbeat):
            return await self._prepare(step)
        return await self._resolve(step)

    async def _prepare(self, step: PrepareHeartbeat) -> OnResult:
        """Determines the topics to subscribe to; requests all topics for a compiled pattern.

        Before a join it first checks the protocol of the group, and requests the session timeout.
        """
        if self._membership.phase is Phase.JOINING:
            connection = await self._check_group_protocol(step)
            session_ms = await self._request_session(connection)
            self._membership.on_session_timeout_known(session_ms)
        wanted = await self._topics_to_join(step.subscription)

        def on_result(now: float) -> None:
            self._watch.joined(step.subscription, wanted)
            self._membership.on_prepared(step, wanted, now)

        return on_result

    async def _request_session(self, connection: BrokerConnection) -> int | None:
        """Returns the session timeout of the group in ms; None if the broker does not disclose it.

        A member without DESCRIBE_CONFIGS on the group does not request the timeout again, because
        brokers log denied requests.

        Raises a retriable error up to `_MAX_UNANSWERED` times in a row, so that the member retries.
        The retries matter because two members might read one partition if the member assumed a
        wrong timeout. Returns None after more retriable errors, and after any other error.
        """
        membership = self._membership
        requested_at = self._clock.monotonic()
        self._session_refresh_at = requested_at + membership.session_ms / 1000
        if not self._requests_session or DescribeConfigsRequest.API_KEY not in connection.ranges:
            return None
        timeout_ms = self._heartbeat_timeout_ms(membership.interval_ms, membership.session_ms)
        request = session_timeout_request(self.settings.group_id)
        try:
            answer = await connection.request(request, timeout_ms=timeout_ms)
        except KprotoError as error:
            self._unanswered += 1
            if remedy_of(error) is Remedy.FAIL or self._unanswered > _MAX_UNANSWERED:
                return None
            raise
        self._unanswered = 0
        session_ms = session_ms_in(answer)
        self._requests_session = not is_denied(answer)
        if session_ms is not None:
            self._session_refresh_at = requested_at + session_ms / 1000
        return session_ms

    async def _check_group_protocol(self, step: PrepareHeartbeat) -> BrokerConnection:
        """Returns a connection to the coordinator of the group.

        If `checks_group_first` is True and the group has classic members, raises
        GroupProtocolMismatchError, or ConfigurationError for a `TopicPattern`. Raises the errors of
        `_check_support`.
        """
        group_id = self.settings.group_id
        connection = await self._coordinator.connection()
        self._check_support(connection, step.subscription)
        if self.checks_group_first and await self._has_live_classic_members(connection):
            check_pattern(step.subscription, group_id, "with members")
            raise GroupProtocolMismatchError("the group has members of the classic protocol")
        return connection

    def _check_support(self, connection: BrokerConnection, subscription: Subscription) -> None:
        """Raises an error if the coordinator does not support the protocol.

        During a rolling upgrade or downgrade a later coordinator may not support it. The error is
        ConfigurationError for a `TopicPattern`. Without a pattern, the error is
        GroupProtocolMismatchError if the member may change to the classic protocol, and otherwise
        UnsupportedVersionError.
        """
        group_id = self.settings.group_id
        if has_consumer_groups(connection.ranges):
            return
        why = "by its coordinator, which is older than the consumer protocol"
        check_pattern(subscription, group_id, why)
        if self.checks_group_first:
            raise GroupProtocolMismatchError("the coordinator supports only the classic protocol")
        raise UnsupportedVersionError(
            f"the coordinator of group {group_id!r} has no ConsumerGroupHeartbeat (KIP-848, "
            'Kafka 4.0): leave group_protocol at "auto", or use "classic"'
        )

    async def _resolve(self, step: ResolveTopicNames) -> OnResult:
        with suppress(KprotoError):
            await self._view.refresh_ids(step.ids)
        return self._membership.on_resolved

    async def _send_leave_once(self, step: LeaveByHeartbeat) -> None:
        group_id = self.settings.group_id
        try:
            connection = await self._coordinator.connection()
            answer = await connection.request(step.request(group_id))
        except KprotoError:
            self._coordinator.forget()
            raise
        self._check_leave_response([answer.error_code], action_for)

    # Heartbeats

    def _heartbeat_to_send(self, now: float) -> HeartbeatSender | None:
        membership = self._membership
        if membership.heartbeat_due(now):
            return self._send_heartbeat
        is_old = self._requests_session and now >= self._session_refresh_at
        return (
            self._refresh_session
            if is_old and membership.watches_topics and membership.epoch > JOIN_EPOCH
            else None
        )

    async def _refresh_session(self) -> OnResult:
        """Refreshes the session timeout; keeps the old timeout if the broker returns none."""
        session_ms: int | None = None
        with suppress(KprotoError):
            session_ms = await self._request_session(await self._coordinator.connection())
        if session_ms is None:
            return lambda now: None
        return lambda now: self._membership.on_session_timeout_known(session_ms)

    async def _send_heartbeat(self) -> OnResult:
        membership = self._membership
        outcome: ConsumerGroupHeartbeatResponse | KprotoError
        beat: Heartbeat | None = None
        try:
            connection = await self._coordinator.connection()
            if membership.subscription is not None:
                self._check_support(connection, membership.subscription)
            version = connection.version_of(ConsumerGroupHeartbeatRequest)
            beat = membership.heartbeat(version, self._clock.monotonic())
            if beat is None:
                return lambda now: None
            self._counts.joins += beat.request.member_epoch == JOIN_EPOCH
            interval_ms, session_ms = membership.interval_ms, membership.session_ms
            timeout_ms = self._heartbeat_timeout_ms(interval_ms, session_ms)
            outcome = await connection.request(beat.request, version=version, timeout_ms=timeout_ms)
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
