"""Decides, as a state machine, what a member of a share group does next (KIP-932).

Owns the member id and epoch; `consumer.reconciliation` compares the assignment with the partitions
of the consumer, and `phases` has the transition table. Does no I/O: the driver passes the time in
seconds, runs one effect and one heartbeat at a time, and reports their results. Brokers do not
check the membership when they return records: acquisition locks, not sessions, protect the records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from ....messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ....wire.errors import BrokerResponseError, KprotoError
from ....wire.uuid import Uuid
from ...core.group_errors import ErrorAction, GroupRequest
from ...metadata.cluster import TopicPartition
from ...settings import ClientSettings
from ..backoff import Backoff
from ..consumer.reconciliation import AssignmentReconciliation, Difference
from ..effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    LeaveIntent,
    MemberIdentity,
    PrepareHeartbeat,
    ResolveTopicNames,
    Revoke,
    Step,
)
from ..settings import MIN_HEARTBEATS, GroupSettings
from ..state_machine import MembershipStateMachine
from ..subscription import Subscription
from .heartbeats import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareHeartbeat,
    action_for,
    assigned_in,
    error_in,
    explained,
    heartbeat_request,
)
from .phases import HEARTBEATING, LEAVING_PHASES, TRANSITIONS, Event, Phase

__all__ = ["ShareMembership"]

_NEVER: Final = float("inf")

#: A member without partitions sends its second heartbeat after `_FIRST_S` seconds; the time to the
#: next heartbeat doubles, up to `_MOST_S` or to the interval of the coordinator.
_FIRST_S: Final = 0.1
_MOST_S: Final = 1.0


class ShareMembership(MembershipStateMachine[Phase, Event]):
    """Tracks one member. `name_of` returns the name of a topic id; None if the metadata lacks it.

    The member chooses its id, which never changes: the acquired records of a member that was fenced
    and rejoins keep their locks.
    """

    transitions = TRANSITIONS

    def __init__(
        self,
        settings: GroupSettings,
        client: ClientSettings,
        name_of: Callable[[Uuid], str | None],
    ) -> None:
        super().__init__(settings, Phase.UNSUBSCRIBED)
        self.rack = client.rack
        self.epoch = JOIN_EPOCH
        self.member_id = str(Uuid.random())
        self._partitions = AssignmentReconciliation(name_of)
        self._interval_s = settings.heartbeat_interval_ms / 1000
        self._heartbeat_at = _NEVER
        self._heartbeat_backoff = Backoff(client)
        self._step_backoff = Backoff(client)
        self._resolve_backoff = Backoff(client)
        self._incarnation = 0  # counts joins, leaves and losses
        self._is_prepared = False
        self._known_topics: frozenset[str] | None = None  # of the last answered heartbeat
        self._empty_answers = 0  # answers in a row without partitions
        self._may_be_known = False  # the coordinator may know the member
        self._leave_intent: LeaveIntent | None = None

    # State

    @property
    def is_outside_group(self) -> bool:
        return self.phase in (Phase.UNSUBSCRIBED, Phase.STALE, Phase.FATAL)

    @property
    def has_ended(self) -> bool:
        return self.phase is Phase.FATAL

    @property
    def watches_topics(self) -> bool:
        joins = self.phase is Phase.JOINING and self._is_prepared
        return joins or self.phase in HEARTBEATING

    @property
    def _is_leaving(self) -> bool:
        return self.phase in LEAVING_PHASES

    @property
    def assignment_valid_until(self) -> float:
        return _NEVER if self.epoch > JOIN_EPOCH else -_NEVER

    @property
    def interval_ms(self) -> int:
        """Returns the heartbeat interval in ms.

        It is the coordinator's interval, or a third of `max_poll_interval_ms` if that is shorter.
        """
        return round(self._interval_s * 1000)

    @property
    def _topics(self) -> frozenset[str]:
        return frozenset() if self.subscription is None else self.subscription.topics

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        return self._partitions.is_assigned(tp, topic_id)

    def topic_id_of(self, tp: TopicPartition) -> Uuid | None:
        """Returns the topic id of a partition that is being added, or that the member has."""
        return self._partitions.topic_id_of(tp)

    def identity(self, now: float) -> MemberIdentity | None:
        """Returns None: a member of a share group commits no offsets."""
        return None

    # Subscription and leave

    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        if self.phase in HEARTBEATING:
            self._log("the subscription is now %s", subscription)
            self._send_heartbeat_soon(now)

    def on_prepared(self, step: PrepareHeartbeat, topics: frozenset[str], now: float) -> None:
        """Continues after the driver has carried out a `PrepareHeartbeat`.

        `topics` are the topics to subscribe to.
        """
        self._step_backoff.succeeded()
        self._is_prepared = True
        self._send_heartbeat_soon(now)

    def request_rejoin(self, reason: str, now: float) -> None:
        self._log("ignores the request to rebalance (%s): the coordinator assigns", reason)

    def _join_if_subscribed(self, now: float) -> None:
        if self._may_join and self._transition(Event.SUBSCRIBED):
            self._start_joining(now)

    def _start_joining(self, now: float) -> None:
        self._incarnation += 1
        self.epoch = JOIN_EPOCH
        self._is_prepared = False
        self._known_topics = None
        self._partitions.reset()
        self._heartbeat_at = max(now, self._heartbeat_backoff.not_before)

    def begin_leave(
        self,
        reason: str,
        now: float,
        *,
        leaves: bool,
        ends: bool,
        lost: bool = False,
        until: float | None = None,
    ) -> None:
        ends = ends or (self._leave_intent is not None and self._leave_intent.ends)
        if self.is_outside_group:
            if ends:
                self._transition(Event.CLOSED)
            return
        leave_s = self.settings.leave_timeout_ms / 1000
        until = now if until is None else until
        self._leave_intent = LeaveIntent(reason, leaves, ends, lost, until, leave_s)
        self._transition(Event.LEAVE_REQUESTED)

    # Next effect

    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        match self.phase:
            case Phase.JOINING if not self._is_prepared:
                if now < self._step_backoff.not_before:
                    return None
                assert self.subscription is not None
                return PrepareHeartbeat(self.subscription)
            case Phase.RECONCILING:
                return self._reconcile_step(now)
            case Phase.FENCED:
                return Revoke(frozenset(owned), True, now)
            case Phase.PREPARE_LEAVING:
                return Revoke(frozenset(owned), False, now)
            case Phase.LEAVING:
                intent = self._leave_intent
                assert intent is not None
                until = now + intent.leave_s
                return LeaveByHeartbeat(self.member_id, None, LEAVE_EPOCH, intent.reason, until)
        return None

    def _reconcile_step(self, now: float) -> Step:
        its = self._difference()
        if its.unresolved and not its.revoked and now >= self._resolve_backoff.not_before:
            return ResolveTopicNames(its.unresolved)
        self._partitions.start(its)
        return ApplyAssignment(its.revoked, tuple(its.added), now)

    def _difference(self) -> Difference:
        assert self.subscription is not None
        return self._partitions.difference(self.subscription.includes)

    def next_at(self, now: float) -> float:
        deadlines = []
        if self.phase is Phase.JOINING and not self._is_prepared:
            deadlines.append(self._step_backoff.not_before)
        if self._heartbeat_due:
            deadlines.append(self._heartbeat_at)
        if self.phase is Phase.STABLE:
            deadlines.append(self._resolve_backoff.not_before)
        return min((deadline for deadline in deadlines if deadline > now), default=_NEVER)

    def tick(self, now: float) -> None:
        if self.phase is Phase.LEAVING:
            intent = self._leave_intent
            assert intent is not None
            if not self._may_be_known or not intent.leaves:
                self.on_left(now)
        if self.phase is Phase.STABLE and self._must_reconcile(now):
            self._transition(Event.ASSIGNED)

    def _must_reconcile(self, now: float) -> bool:
        its = self._difference()
        asks = bool(its.unresolved) and now >= self._resolve_backoff.not_before
        return bool(its.revoked or its.added) or asks

    # Heartbeats

    @property
    def _heartbeat_due(self) -> bool:
        if self.phase is Phase.JOINING:
            return self._is_prepared and bool(self._topics)
        return self.epoch > JOIN_EPOCH and self.phase in HEARTBEATING

    def _send_heartbeat_soon(self, now: float) -> None:
        earliest = max(now, self._heartbeat_backoff.not_before)
        self._heartbeat_at = min(self._heartbeat_at, earliest)

    def heartbeat_due(self, now: float) -> bool:
        """Returns True if a heartbeat is due."""
        return self._heartbeat_due and now >= self._heartbeat_at

    def heartbeat(self, now: float) -> ShareHeartbeat | None:
        """Returns the heartbeat that is due; None if none is due."""
        if not self.heartbeat_due(now):
            return None
        topics = self._topics
        request = heartbeat_request(
            self.settings.group_id,
            (self.member_id, self.epoch),
            self.rack,
            topics,
            self._known_topics,
        )
        self._may_be_known = True
        return ShareHeartbeat(request, topics, self._incarnation, now)

    def on_heartbeat_response(
        self, beat: ShareHeartbeat, outcome: ShareGroupHeartbeatResponse | KprotoError, now: float
    ) -> ErrorAction | None:
        """Processes the response or the error of a heartbeat.

        Returns the action for the error; None if the caller has to do nothing.
        """
        if isinstance(outcome, ShareGroupHeartbeatResponse) and outcome.error_code:
            outcome = error_in(outcome, beat.group_request, self.settings.group_id)
        is_current = beat.incarnation == self._incarnation and self._heartbeat_due
        if isinstance(outcome, KprotoError):
            action = action_for(beat.group_request, outcome)
            if is_current:
                self._on_heartbeat_failed(action, outcome, beat.group_request, now)
                return action
            return action if action is ErrorAction.FIND_COORDINATOR else None
        if is_current:
            self._on_success(beat, outcome, now)
        return None

    def on_heartbeat_not_sent(self, error: KprotoError, now: float) -> ErrorAction:
        """Processes the failure to send a heartbeat; returns the action for the error."""
        request = GroupRequest.JOIN if self.epoch == JOIN_EPOCH else GroupRequest.HEARTBEAT
        action = action_for(request, error)
        if self._heartbeat_due:
            self._on_heartbeat_failed(action, error, request, now)
        return action

    def _on_heartbeat_failed(
        self, action: ErrorAction, error: KprotoError, request: GroupRequest, now: float
    ) -> None:
        self._known_topics = None  # the next heartbeat has all fields
        self._heartbeat_backoff.failed(now, at_once=action is ErrorAction.MEMBER_UNKNOWN)
        self._heartbeat_at = self._heartbeat_backoff.not_before
        self._apply_action(action, error, request, now)

    def _on_success(
        self, beat: ShareHeartbeat, answer: ShareGroupHeartbeatResponse, now: float
    ) -> None:
        self._heartbeat_backoff.succeeded()
        self._known_topics = beat.topics
        if answer.heartbeat_interval_ms > 0:
            longest_ms = self.settings.max_poll_interval_ms / MIN_HEARTBEATS
            self._interval_s = min(answer.heartbeat_interval_ms, longest_ms) / 1000
        self.epoch = answer.member_epoch
        assigned = assigned_in(answer)
        if assigned is not None and self._partitions.assign(assigned):
            self._resolve_backoff.succeeded()
        self._heartbeat_at = beat.sent_at + self._next_interval_s()
        if self._topics != beat.topics:
            self._heartbeat_at = now  # the subscription has changed since
        if self.phase is Phase.JOINING:
            self._log("joined at epoch %d, as member %s", self.epoch, self.member_id)
            self._transition(Event.JOINED)
        elif self.phase is Phase.STABLE and self._must_reconcile(now):
            self._transition(Event.ASSIGNED)

    def _next_interval_s(self) -> float:
        """Returns the time to the next heartbeat, in seconds.

        A new group assigns no partitions until the share coordinator has stored its start offsets,
        which takes some 100 ms. A member without partitions sends heartbeats more often, so that
        it need not wait for a whole interval.
        """
        if self._partitions.assigned:
            self._empty_answers = 0
            return self._interval_s
        self._empty_answers += 1
        soon_s = _FIRST_S * 2.0 ** min(self._empty_answers - 1, 10)
        return min(self._interval_s, soon_s, _MOST_S)

    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """Does nothing: a member of a share group commits no offsets."""

    # Results of effects

    def on_resolved(self, now: float) -> None:
        """Continues after a `ResolveTopicNames`; starts a backoff if ids still have no name."""
        if self._difference().unresolved:
            self._resolve_backoff.failed(now)
        else:
            self._resolve_backoff.succeeded()

    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        self._partitions.finish(step.revoked, step.added)
        self._transition(Event.RECONCILED)

    def on_revoked(self, now: float) -> None:
        self._partitions.drop_owned()
        self._transition(Event.REVOKED)
        if self.phase is Phase.JOINING:
            self._start_joining(now)
        elif self.phase is Phase.LEAVING:
            self.tick(now)

    def on_left(self, now: float) -> None:
        intent, self._leave_intent = self._leave_intent, None
        assert intent is not None
        self._may_be_known = False
        self._incarnation += 1
        self.epoch = JOIN_EPOCH
        self._step_backoff.succeeded()
        late = Event.LEFT_STALE if self._is_stale else Event.LEFT
        self._transition(Event.CLOSED if intent.ends else late)
        if not intent.ends:
            self._join_if_subscribed(now)

    # Errors

    def failed(self, error: KprotoError, now: float) -> ErrorAction:
        request = GroupRequest.LEAVE if self.phase is Phase.LEAVING else GroupRequest.COORDINATOR
        action = action_for(request, error)
        if request is GroupRequest.LEAVE:  # no retry: the session times out anyway
            self.on_left(now)
        else:
            self._step_backoff.failed(now)
            self._apply_action(action, error, request, now)
        return action

    def _apply_action(
        self, action: ErrorAction, error: KprotoError, request: GroupRequest, now: float
    ) -> None:
        """Applies the action for an error; the caller has scheduled the next heartbeat."""
        match action:
            case ErrorAction.MEMBER_UNKNOWN:
                self._may_be_known = False
                self._lose_membership(str(error))
                if self.phase is Phase.JOINING:
                    self._start_joining(now)
            case ErrorAction.FAIL:
                self.fail(error, now, leaves=True)
            case ErrorAction.FIND_COORDINATOR:
                if self._heartbeat_backoff.count + self._step_backoff.count == 1:
                    self._log("%s is tried again: %s", request.value, error)

    def _lose_membership(self, why: str) -> None:
        """Drops the member epoch, because the coordinator does not know it any more."""
        if not self._transition(Event.FENCED):
            return
        if self.epoch > JOIN_EPOCH:
            self._log("out of epoch %d: %s", self.epoch, why, level=logging.WARNING)
        self._incarnation += 1
        self.epoch = JOIN_EPOCH

    def _note_failure(self, error: KprotoError) -> None:
        if self.error is None:
            self.error = explained(error, self.settings.group_id, self._topics)
            self._log("the member has failed: %s", self.error, level=logging.WARNING)

    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        self._note_failure(error)
        if not leaves:
            self._may_be_known = False
        self.begin_leave(
            "the consumer has failed", now, leaves=leaves, ends=True, lost=True, until=now
        )
