"""Decides, as a state machine, what a member of the consumer protocol does next (KIP-848).

`heartbeat_membership` has what this member has in common with a member of a share group,
`groups.session` computes the end of the session, and `phases` has the transition table. By
heartbeats the member joins, acknowledges its partitions and renews its session. The partitions in a
heartbeat are those that the member owns when the heartbeat is sent: no heartbeat acknowledges an
unfinished revocation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from ....wire.errors import BrokerResponseError, KprotoError
from ....wire.uuid import Uuid
from ...core.group_errors import ErrorAction, GroupRequest
from ...metadata.cluster import TopicPartition
from ...settings import ClientSettings
from ..effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    MemberIdentity,
    PrepareHeartbeat,
    Revoke,
)
from ..group_protocol import GroupProtocolMismatchError
from ..heartbeat_membership import HeartbeatMembership, HeartbeatResponse
from ..heartbeat_phases import JOIN_EPOCH, LEAVE_EPOCH, Event, Phase
from ..reconciliation import TopicIdPartitions, assigned_in
from ..session import MemberSession
from ..settings import MIN_HEARTBEATS, GroupSettings
from ..subscription import Subscription
from .heartbeat_errors import action_for
from .heartbeats import (
    CLIENT_MEMBER_ID_VERSION,
    STATIC_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatFields,
    heartbeat_request,
    release_heartbeat,
)
from .phases import ACCEPTING_COMMITS, HEARTBEATING, TRANSITIONS
from .session_timeout import DEFAULT_SESSION_MS, session_ms_for

__all__ = ["ConsumerMembership"]

_NEVER: Final = float("inf")

#: The error if the consumer protocol is disabled in the cluster. After this error, the classic
#: member that replaces this member need not check the protocol of the group.
_DISABLED: Final = "UNSUPPORTED_VERSION"


class ConsumerMembership(HeartbeatMembership[Heartbeat]):
    """Tracks one member. `name_of` returns the name of a topic id; None if the metadata lacks it.

    With `may_change_protocol` a classic member replaces this member if the group uses the classic
    protocol.
    """

    transitions = TRANSITIONS
    group_noun = "group"

    def __init__(
        self,
        settings: GroupSettings,
        client: ClientSettings,
        name_of: Callable[[Uuid], str | None],
        *,
        may_change_protocol: bool = False,
    ) -> None:
        super().__init__(settings, client, name_of)
        self._may_change_protocol = may_change_protocol
        self._generated_member_id = str(Uuid.random())
        self._session = MemberSession(settings, keeps_partitions=True)
        self._session.session_ms = DEFAULT_SESSION_MS  # the setting is for classic groups only
        self._disclosed_session_ms: int | None = None
        self._topics: frozenset[str] = frozenset()  # subscribed by name
        self._regex: str | None = None  # the `TopicPattern` of the subscription
        self._unreleased_since: float | None = None
        self._unconverted_since: float | None = None
        self._conversion_timeout_s = client.api_timeout_ms / 1000
        self._may_have_instance = False  # this member may have the instance id at the coordinator
        self._releases_instance = False  # the next heartbeat releases the instance id
        self._requests_member_id = False  # the response to the pending heartbeat has the member id
        self._lost = False
        self._revoke_until = 0.0
        self._leave_by = _NEVER

    # State

    @property
    def assignment_valid_until(self) -> float:
        return self._session.valid_until if self.epoch > JOIN_EPOCH else -_NEVER

    @property
    def session_ms(self) -> int:
        """Returns the session timeout in ms.

        If no heartbeat is answered for that time, the member stops reading.
        """
        return self._session.session_ms

    def on_session_timeout_known(self, session_ms: int | None) -> None:
        """Stores the session timeout of the group, in ms.

        If the broker does not disclose the timeout, `session_ms` is None, and the member derives
        the session timeout from the heartbeat interval.
        """
        self._disclosed_session_ms = session_ms
        if session_ms is not None:
            self._session.session_ms = session_ms

    def identity(self, now: float) -> MemberIdentity | None:
        if self.phase not in ACCEPTING_COMMITS or self._lost or now >= self.assignment_valid_until:
            return None
        its = self.settings
        member = (its.group_id, self.member_id, self.epoch, its.instance_id)
        return MemberIdentity(*member, has_epoch=True)

    # Subscription and leave

    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        self._is_prepared = self.phase is not Phase.JOINING and subscription.pattern is None
        if self._is_prepared:
            self._subscribe_to(subscription, subscription.topics)
        if self.phase in (Phase.RECONCILING, Phase.ACKNOWLEDGING, Phase.STABLE):
            self._log("the subscription is now %s", subscription)
            self._send_heartbeat_soon(now)

    def on_prepared(self, step: PrepareHeartbeat, topics: frozenset[str], now: float) -> None:
        """Continues after the driver has carried out a `PrepareHeartbeat`.

        `topics` are the topic names to subscribe to. They are ignored if the subscription has
        changed since the `PrepareHeartbeat` was created.
        """
        self._step_backoff.succeeded()
        if self.subscription is step.subscription:
            self._is_prepared = True
            self._subscribe_to(step.subscription, topics)
            self.on_topics_matched(topics, now)

    def _subscribe_to(self, subscription: Subscription, topics: frozenset[str]) -> None:
        broker_pattern = subscription.broker_pattern
        self._topics, self._regex = topics, None if broker_pattern is None else broker_pattern.text

    def on_topics_matched(self, topics: frozenset[str], now: float) -> None:
        """Updates the subscribed topic names, for example after a pattern has matched other topics.

        Schedules a heartbeat if the coordinator does not know these names.
        """
        self._topics = topics
        known = self._known_fields
        if known is None or (known.topics, known.regex) != (topics, self._regex):
            self._send_heartbeat_soon(now)

    def request_rejoin(self, reason: str, now: float) -> None:
        text = "ignores the request to rebalance (%s): the coordinator assigns the partitions"
        self._log(text, reason)

    def _start_joining(self, now: float) -> None:
        self._lost = False
        self._unconverted_since = None
        super()._start_joining(now)

    def _revoke_deadline(self, now: float) -> float:
        return self._session.revoke_deadline(now)

    def _request_leave(self, until: float, *, lost: bool) -> None:
        if self.phase in (Phase.PREPARE_LEAVING, Phase.LEAVING):
            self._revoke_until = min(self._revoke_until, until)
        elif self._transition(Event.LEAVE_REQUESTED):
            self._lost = lost or self.epoch <= JOIN_EPOCH
            self._revoke_until = until

    # Next effect

    def _revoke_step(self, now: float, owned: Collection[TopicPartition]) -> Revoke:
        return Revoke(frozenset(owned), self._lost, self._revoke_until)

    def _leave_step(self, now: float) -> LeaveByHeartbeat | None:
        """Returns the effect that sends the last heartbeat; None until the member has an id."""
        intent = self._leave_intent
        assert intent is not None
        if not self.member_id:
            return None
        epoch = LEAVE_EPOCH if intent.leaves else STATIC_LEAVE_EPOCH
        until = now + intent.leave_s
        instance_id = self.settings.instance_id
        return LeaveByHeartbeat(self.member_id, instance_id, epoch, intent.reason, until)

    def _leave_without_heartbeat(self, now: float) -> None:
        """Ends a leave at once if the member need not or cannot send a heartbeat.

        Without a member id, the member cannot send a heartbeat. If a pending response may have the
        id, the leave waits for that response until a deadline.
        """
        if self.phase is not Phase.LEAVING:
            return
        intent = self._leave_intent
        assert intent is not None
        waits = self._requests_member_id and now < self._leave_by
        sends_heartbeat = self._may_be_known and (intent.leaves or self.settings.is_static)
        if not sends_heartbeat or not (self.member_id or waits):
            self.on_left(now)

    def _deadlines(self) -> list[float]:
        deadlines = []
        if self.epoch > JOIN_EPOCH:
            deadlines += [self.assignment_valid_until, self._resolve_backoff.not_before]
        if self.phase is Phase.LEAVING:
            deadlines.append(self._leave_by)
        return deadlines

    def tick(self, now: float) -> None:
        has_epoch = self.epoch > JOIN_EPOCH and self.phase in HEARTBEATING
        if has_epoch and now >= self.assignment_valid_until:
            why = "partitions may not have been revoked in time (max_poll_interval_ms)"
            if self._session.has_timed_out(now):
                why = f"no heartbeat came through for {self.session_ms} ms, the session timeout"
            self._lose_membership(why, now)
        super().tick(now)

    # Heartbeats

    @property
    def _heartbeat_due(self) -> bool:
        if self.phase is Phase.JOINING:
            return self._is_prepared and (bool(self._topics) or bool(self._regex))
        return self.epoch > JOIN_EPOCH and self.phase in HEARTBEATING and not self._lost

    def heartbeat(self, version: int, now: float) -> Heartbeat | None:
        """Returns the heartbeat that is due; None if none is due.

        Raises UnsupportedVersionError if the subscription has a `TopicPattern`, which this
        `version` of ConsumerGroupHeartbeat does not support.
        """
        if not self.heartbeat_due(now):
            return None
        if self._releases_instance and self.phase is Phase.JOINING:
            return release_heartbeat(self.settings, self.member_id, self._incarnation, now)
        if not self.member_id and version >= CLIENT_MEMBER_ID_VERSION:
            self.member_id = self._generated_member_id
        fields = HeartbeatFields(self._topics, self._regex, self._partitions.owned_ids)
        request = heartbeat_request(
            self.settings,
            self.rack,
            (self.member_id, self.epoch),
            fields,
            self._known_fields,
            version,
            acknowledges=self.phase is Phase.ACKNOWLEDGING,
        )
        self._may_be_known = True
        self._requests_member_id = not self.member_id
        return Heartbeat(request, fields, self._incarnation, now)

    def on_heartbeat_response(
        self, beat: Heartbeat, outcome: HeartbeatResponse | KprotoError, now: float
    ) -> ErrorAction | None:
        request = beat.group_request
        if self._requests_member_id:
            self._requests_member_id = False
            if not isinstance(outcome, KprotoError) and not outcome.error_code:
                self.member_id = outcome.member_id or ""
        outcome = self._error_in(outcome, request)
        if beat.request.member_epoch == STATIC_LEAVE_EPOCH:
            return self._on_instance_released(outcome, now)
        if (
            isinstance(outcome, KprotoError)
            and self._action_for(request, outcome) is not ErrorAction.UNRELEASED
        ):  # the coordinator may have the instance id
            self._may_have_instance = True
        return super().on_heartbeat_response(beat, outcome, now)

    def _on_success(self, beat: Heartbeat, answer: HeartbeatResponse, now: float) -> None:
        """Processes a heartbeat response without an error, which renews the session."""
        self._unreleased_since = None
        self._unconverted_since = None
        self._may_have_instance = True
        is_stable = self._was_stable(beat, assigned_in(answer))
        self._session.on_heartbeat_answered(beat.sent_at, stable=is_stable)
        if self.member_id and answer.member_id not in (None, "", self.member_id):
            self.member_id = answer.member_id or self.member_id
        super()._on_success(beat, answer, now)

    def _has_changed(self, beat: Heartbeat) -> bool:
        return self._topics != beat.fields.topics or self._regex != beat.fields.regex

    def _on_acknowledgement_answered(self, beat: Heartbeat, now: float) -> None:
        if beat.lists_owned and beat.fields.partitions == self._partitions.owned_ids:
            self._transition(Event.ACKNOWLEDGED)
        else:
            self._heartbeat_at = now

    def _set_heartbeat_interval(self, interval_ms: int) -> None:
        """Stores the coordinator's heartbeat interval, or a shorter interval: see `interval_ms`.

        If the broker does not disclose the session timeout, derives the timeout from the interval.
        """
        if self._disclosed_session_ms is None:
            self._session.session_ms = session_ms_for(interval_ms)
        limits = (self.session_ms, self.settings.max_poll_interval_ms)
        self._interval_s = min(interval_ms, min(limits) / MIN_HEARTBEATS) / 1000
        self._session.interval_s = self._interval_s

    def _was_stable(self, beat: Heartbeat, assigned: TopicIdPartitions | None) -> bool:
        """Returns False if the coordinator still waited for a revocation when it received `beat`.

        The coordinator waited if `beat` lists an owned partition that is not in the member's
        assignment. The member knows this assignment from the response before `beat`. If that
        response was lost, the assignment is `assigned`, from the response to `beat`.
        """
        before = self._partitions.assigned
        if self._known_fields is None and assigned is not None:
            before = assigned
        return beat.fields.partitions <= before

    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        current = (identity.member_id, identity.generation) == (self.member_id, self.epoch)
        if not current or not self._heartbeat_due:
            return
        action = self._action_for(GroupRequest.COMMIT, error)
        if action is ErrorAction.STALE:
            self._send_heartbeat_soon(now)
        elif action in (ErrorAction.MEMBER_UNKNOWN, ErrorAction.FENCED):
            self._apply_action(action, error, GroupRequest.COMMIT, now)

    # Results of effects

    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        self._partitions.finish(step.revoked, step.added)
        if self._transition(Event.RECONCILED):
            self._heartbeat_at = max(now, self._heartbeat_backoff.not_before)

    def on_revoked(self, now: float) -> None:
        if self._lost:
            self.epoch = JOIN_EPOCH
        super().on_revoked(now)

    def _on_leaving(self, now: float) -> None:
        assert self._leave_intent is not None
        self._leave_by = now + self._leave_intent.leave_s
        self._leave_without_heartbeat(now)

    def on_left(self, now: float) -> None:
        self._leave_by = _NEVER
        self._requests_member_id = False
        self._lost = False
        super().on_left(now)

    # Errors

    def _action_for(self, request: GroupRequest, error: KprotoError) -> ErrorAction:
        return action_for(request, error)

    def _apply_action(
        self, action: ErrorAction, error: KprotoError, request: GroupRequest, now: float
    ) -> None:
        """Applies the action for an error; the caller has scheduled the next heartbeat."""
        match action:
            case ErrorAction.UNRELEASED:
                self._wait_for_release(error, now)
            case ErrorAction.UNCONVERTED if not self._may_change_protocol:
                self._wait_for_conversion(error, now)
            case ErrorAction.OTHER_PROTOCOL | ErrorAction.UNCONVERTED:
                self._end_for_other_protocol(error, now)
            case ErrorAction.FENCED:
                self.fail(error, now, leaves=False)
            case _:
                super()._apply_action(action, error, request, now)

    def _wait_for_release(self, error: KprotoError, now: float) -> None:
        """Waits until another member releases the instance id.

        The other member may be running, or may have failed without leaving. If the wait lasts
        longer than the session timeout plus a heartbeat interval, this member fails with `error`.

        This member may itself still hold the instance id, from the time before it lost its epoch.
        In that case a heartbeat first releases the instance id.
        """
        if self._may_have_instance and self.member_id:
            self._may_have_instance = False
            self._releases_instance = True
            self._heartbeat_at = now
        elif self._unreleased_since is None:
            self._unreleased_since = now
            text = "waiting until the session of another instance %s has ended: %s"
            self._log(text, self.settings.instance_id, error, level=logging.WARNING)
        elif now - self._unreleased_since > self.session_ms / 1000 + self._interval_s:
            self.fail(error, now, leaves=False)

    def _wait_for_conversion(self, error: KprotoError, now: float) -> None:
        """Waits while a rebalance of the classic members may delay the conversion of the group.

        If the wait lasts longer than `api_timeout_ms`, the member fails with `error`.
        """
        if self._unconverted_since is None:
            self._unconverted_since = now
            text = "waiting until the classic group can be converted: %s"
            self._log(text, error, level=logging.WARNING)
        elif now - self._unconverted_since > self._conversion_timeout_s:
            self.fail(error, now, leaves=False)

    def _on_instance_released(
        self, outcome: HeartbeatResponse | KprotoError, now: float
    ) -> ErrorAction | None:
        """Processes the result of the heartbeat that releases the instance id.

        After a retriable error, makes the member send the heartbeat again, and returns the action
        for the error. After any other result, makes the member join, and returns None. The join
        fails if another member still has the instance id.
        """
        if isinstance(outcome, KprotoError):
            action = self._action_for(GroupRequest.LEAVE, outcome)
            if action in (ErrorAction.RETRY, ErrorAction.FIND_COORDINATOR):
                self._heartbeat_backoff.failed(now)
                self._heartbeat_at = self._heartbeat_backoff.not_before
                return action
        self._releases_instance = False
        self._heartbeat_at = now
        return None

    def _end_for_other_protocol(self, error: KprotoError, now: float) -> None:
        """Ends this member; a classic member replaces it if `_may_change_protocol` is True."""
        if self._may_change_protocol:
            is_certain = isinstance(error, BrokerResponseError) and error.name == _DISABLED
            error = GroupProtocolMismatchError(str(error), is_certain=is_certain)
        self.fail(error, now, leaves=False)

    def _lose_membership(self, why: str, now: float) -> bool:
        is_lost = self.phase is Phase.PREPARE_LEAVING and self._lost
        if is_lost or not super()._lose_membership(why, now):
            return False
        if self.phase is not Phase.JOINING:
            self._lost = True
        return True

    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        super().fail(error, now, leaves=leaves)
        revokes = self.phase is Phase.PREPARE_LEAVING and not self._lost
        if revokes and self._transition(Event.FENCED):
            self._lost = True  # the partitions in revocation are lost
