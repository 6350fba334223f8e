"""Decides, as a state machine, what a member of a classic group does next.

Owns the member id and the generation; `session` computes the end of the session. Does no I/O: the
driver passes the time in seconds, carries out the effects, and reports their results. `phases` has
the transition table, with KIPs.

The driver carries out one effect at a time, and sends heartbeats concurrently. A heartbeat may make
the running effect outdated: then `transition_count` has changed, and the driver ignores the result.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from ....messages.heartbeat_request import HeartbeatRequest
from ....messages.join_group_request import JoinGroupRequest
from ....messages.join_group_response import JoinGroupResponse
from ....messages.sync_group_response import SyncGroupResponse
from ....protocol.error_codes import code_of, error_of_code
from ....wire.errors import BrokerResponseError, DecodeError, KprotoError
from ...core.group_errors import ErrorAction, GroupRequest, classic_action
from ...metadata.cluster import TopicPartition
from ...settings import ClientSettings
from ..assignors.subscriptions import NO_GENERATION, Assignment
from ..assignors.subscriptions import Subscription as MemberSubscription
from ..backoff import Backoff
from ..effects import (
    ApplyAssignment,
    ComputeAssignment,
    LeaveIntent,
    MemberIdentity,
    Revoke,
    SendJoinGroup,
    SendLeaveGroup,
    SendSyncGroup,
    Step,
)
from ..protocol_data import assignment_bytes
from ..session import MemberSession
from ..settings import GroupSettings
from ..state_machine import MembershipStateMachine
from ..subscription import Subscription
from .phases import (
    ACCEPTING_COMMITS,
    HEARTBEATING,
    LEAVING_PHASES,
    REBALANCING,
    REQUESTS,
    TRANSITIONS,
    Event,
    Phase,
)
from .requests import LastAssignment, heartbeat_request, join_request, sync_request
from .responses import assigned_in, chosen_assignor

__all__ = ["ClassicMembership"]

_NEVER: Final = float("inf")

_MEMBER_ID_REQUIRED: Final = code_of("MEMBER_ID_REQUIRED")
_INCONSISTENT: Final = code_of("INCONSISTENT_GROUP_PROTOCOL")


class ClassicMembership(MembershipStateMachine[Phase, Event]):
    """Tracks one member of a classic group; `rack` is the rack of the member."""

    transitions = TRANSITIONS

    def __init__(self, settings: GroupSettings, client: ClientSettings) -> None:
        super().__init__(settings, Phase.UNSUBSCRIBED)
        self.rack = client.rack
        self.generation = NO_GENERATION
        self._cooperative = settings.cooperative
        self._session = MemberSession(settings, keeps_partitions=settings.cooperative)
        self._interval_s = settings.heartbeat_interval_s
        self._heartbeat_at = _NEVER
        self._step_backoff = Backoff(client)
        self._heartbeat_backoff = Backoff(client)
        self._rejoin_reason: str | None = None  # of a JoinGroup that is due
        self._join_reason = ""  # of the last JoinGroup
        self._lost = False
        self._revoke_until = 0.0
        self._owned_generation = NO_GENERATION
        #: Name of an assignor -> the last assignment that it made for this member.
        self._last_assignments: dict[str, LastAssignment] = {}
        self._requests_member_id = False
        self._lead: ComputeAssignment | None = None
        self._leave: SendLeaveGroup | None = None
        self._protocol = ""
        self._assignments: dict[str, bytes] = {}
        self._assigned: list[TopicPartition] = []
        self._leave_intent: LeaveIntent | None = None
        self._postponed_until = _NEVER  # a leave waits for a pending response until then

    # State

    @property
    def assignment_valid_until(self) -> float:
        if self.generation < 0:
            return -_NEVER
        return (
            self._session.stable_until if self.phase is Phase.STABLE else self._session.valid_until
        )

    def identity(self, now: float) -> MemberIdentity | None:
        if self.phase not in ACCEPTING_COMMITS or self._lost or now >= self.assignment_valid_until:
            return None
        instance_id = self.settings.instance_id
        return MemberIdentity(self.settings.group_id, self.member_id, self.generation, instance_id)

    @property
    def needs_member_id(self) -> bool:
        """Returns True if a dynamic member has no member id yet: the coordinator assigns it."""
        return not self.member_id and not self.settings.is_static

    @property
    def is_outside_group(self) -> bool:
        return self.phase in (Phase.UNSUBSCRIBED, Phase.FATAL)

    @property
    def has_ended(self) -> bool:
        return self.phase is Phase.FATAL

    @property
    def watches_topics(self) -> bool:
        return self.phase is Phase.STABLE

    @property
    def _is_leaving(self) -> bool:
        return self.phase in LEAVING_PHASES or self._leave_is_postponed

    # Subscription, rebalance and leave

    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        self.request_rejoin(f"the subscription is now {subscription}", now)

    def _join_if_subscribed(self, now: float) -> None:
        if self._may_join and self._transition(Event.SUBSCRIBED):
            self._start_revoking(now, lost=False)

    def request_rejoin(self, reason: str, now: float) -> None:
        """Requests a rebalance, at once or after the running rebalance."""
        self._rejoin_reason = self._rejoin_reason or reason
        if self.phase is Phase.STABLE:
            self._rebalance(now)

    def _rebalance(self, now: float) -> None:
        if self._rejoin_reason is not None and self._transition(Event.REBALANCE):
            self._log("rebalancing: %s", self._rejoin_reason)
            self._start_revoking(now, lost=False)

    def _start_revoking(self, now: float, *, lost: bool) -> None:
        """Starts a revocation: sets its deadline, and stores whether the partitions are `lost`."""
        self._lost = lost
        self._revoke_until = self._session.revoke_deadline(now)

    @property
    def _leave_is_postponed(self) -> bool:
        return self._postponed_until != _NEVER

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
        """Begins a leave; see `MembershipStateMachine.begin_leave`.

        Postpones the leave for at most `leave_timeout_ms` in two cases:
        - `leaves` is True, and a JoinGroup without a member id is pending. The member waits for the
          response, because it needs the member id for LeaveGroup. Without LeaveGroup the group
          would wait for the session timeout.
        - A cooperative member that will rejoin still owns its partitions in a running rebalance.
          The member waits for the end of the rebalance, because the broker may refuse commits
          during the rebalance.
        """
        until = self._session.revoke_deadline(now) if until is None else until
        leave_s = self.settings.leave_timeout_ms / 1000
        ends = ends or (self._leave_intent is not None and self._leave_intent.ends)
        intent = LeaveIntent(reason, leaves, ends, lost, until, leave_s)
        if self.phase is Phase.FATAL:
            return
        if self.phase is Phase.UNSUBSCRIBED:
            if ends:
                self._transition(Event.CLOSED)
            return
        self._leave_intent = intent
        if self.phase in (Phase.PREPARE_LEAVING, Phase.LEAVING):
            self._revoke_until = min(self._revoke_until, until)
            return
        keeps = self._cooperative and self.generation >= 0 and self.phase in REBALANCING
        if (self._requests_member_id and leaves) or (keeps and not (ends or lost)):
            self._postponed_until = now + leave_s
            return
        self._begin_leave(now)

    def _begin_leave(self, now: float) -> None:
        assert self._leave_intent is not None
        self._postponed_until = _NEVER
        self._requests_member_id = False
        until = self._leave_intent.until
        if self.phase in REBALANCING - ACCEPTING_COMMITS:
            # Brokers refuse commits until the rebalance ends, which other members may delay.
            until = min(until, now + self._leave_intent.leave_s)
        if self._transition(Event.LEAVE_REQUESTED):
            self._lost = self._leave_intent.lost or self.generation < 0
            self._revoke_until = until

    # Next effect

    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        if self.phase is Phase.JOINING:
            self._begin_postponed_leave(now)  # no JoinGroup is in flight: no response will arrive
        if self.phase in REQUESTS and now < self._step_backoff.not_before:
            return None
        match self.phase:
            case Phase.REVOKING:
                return Revoke(self._partitions_to_revoke(owned), self._lost, self._revoke_until)
            case Phase.PREPARE_LEAVING:
                return Revoke(frozenset(owned), self._lost, self._revoke_until)
            case Phase.JOINING:
                assert self.subscription is not None
                if self.generation < 0:
                    self._heartbeat_at = now + self._interval_s
                return SendJoinGroup(self.subscription)
            case Phase.LEADING:
                return self._lead
            case Phase.SYNCING:
                member = (self.settings, self.member_id, self.generation)
                return SendSyncGroup(sync_request(*member, self._protocol, self._assignments))
            case Phase.ASSIGNING:
                return None if self._session.needs_heartbeat else self._next_assignment(owned, now)
            case Phase.LEAVING:
                return self._leave
        return None

    def _partitions_to_revoke(self, owned: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        if self._lost or not self._cooperative or self.subscription is None:
            return frozenset(owned)
        return frozenset(tp for tp in owned if not self.subscription.includes(tp[0]))

    def next_at(self, now: float) -> float:
        deadlines = [self._postponed_until]
        if self.phase in REQUESTS:
            deadlines.append(self._step_backoff.not_before)
        if self._heartbeat_due:
            deadlines += [self._heartbeat_at, self.assignment_valid_until]
        elif self._waits_for_generation:
            deadlines.append(self._heartbeat_at)
        return min((deadline for deadline in deadlines if deadline > now), default=_NEVER)

    def tick(self, now: float) -> None:
        """Begins a postponed leave if the deadline of the leave has passed.

        Drops the generation after `assignment_valid_until`, as `MembershipStateMachine.tick`
        describes.
        """
        if now >= self._postponed_until:
            self._begin_leave(now)
        if self._heartbeat_due and now >= self.assignment_valid_until:
            silent_ms = self.settings.session_timeout_ms
            why = "a rebalance may have ended without this member (max_poll_interval_ms)"
            if self._session.has_timed_out(now):
                why = f"no heartbeat came through for {silent_ms} ms (session_timeout_ms)"
            self._lose_membership(why, now)

    # Heartbeats

    @property
    def _heartbeat_due(self) -> bool:
        return self.generation >= 0 and self.phase in HEARTBEATING

    @property
    def _waits_for_generation(self) -> bool:
        """True while the member waits for the JoinGroup response, and has a member id already.

        The member has no generation during this wait. A heartbeat can show if the broker still
        knows the member id.
        """
        return self.generation < 0 and bool(self.member_id) and self.phase is Phase.JOINING

    def heartbeat(self, now: float) -> HeartbeatRequest | None:
        """Returns the Heartbeat request that is due; None if none is due.

        If a joining member has no generation, the heartbeat checks that the group knows the member,
        because the response to JoinGroup may be lost unnoticed.
        """
        if not (self._heartbeat_due or self._waits_for_generation) or now < self._heartbeat_at:
            return None
        return heartbeat_request(self.settings, self.member_id, self.generation)

    def on_heartbeat_response(
        self, request: HeartbeatRequest, error: KprotoError | None, sent_at: float, now: float
    ) -> ErrorAction | None:
        """Processes the result of a heartbeat that was sent at `sent_at`.

        `error` is None if the heartbeat succeeded. Returns the action for the error; None if the
        caller has to do nothing. For a heartbeat of an earlier generation or member id, returns
        only FIND_COORDINATOR or None.
        """
        action = None if error is None else classic_action(GroupRequest.HEARTBEAT, error)
        if (request.member_id, request.generation_id) != (self.member_id, self.generation):
            return action if action is ErrorAction.FIND_COORDINATOR else None
        if self.generation < 0:
            return self._on_unsure_heartbeat(action, error, now)
        if action in (None, ErrorAction.REBALANCE):
            self._heartbeat_backoff.succeeded()
            self._session.on_heartbeat_answered(sent_at, stable=action is None)
            self._heartbeat_at = sent_at + self._interval_s
            # In other phases the rebalance is known, or the response to the next request shows it.
            if action is ErrorAction.REBALANCE and self.phase in (Phase.STABLE, Phase.ASSIGNING):
                self.request_rejoin("the coordinator has started a rebalance", now)
            return action
        self._heartbeat_backoff.failed(now)
        self._heartbeat_at = self._heartbeat_backoff.not_before
        assert error is not None
        if action is ErrorAction.GENERATION_LOST and self.phase is Phase.JOINING:
            # The rebalance has ended, and the response to JoinGroup is in flight or lost. JoinGroup
            # listed the owned partitions; no other member gets them before the session times out.
            self._heartbeat_at = now + self._interval_s
            return None
        assert action is not None
        self._apply_action(action, error, GroupRequest.HEARTBEAT, now)
        return action

    def _on_unsure_heartbeat(
        self, action: ErrorAction | None, error: KprotoError | None, now: float
    ) -> ErrorAction | None:
        """Processes the result of a heartbeat that the member sent without a generation.

        Returns the action for `error`. Ignores the error ILLEGAL_GENERATION: it shows that the
        group knows the member.
        """
        self._heartbeat_at = now + self._interval_s
        if not self._waits_for_generation:
            return action
        if action is ErrorAction.MEMBER_UNKNOWN:
            # The response to another JoinGroup shows if the member id is still valid.
            self.on_coordinator_moved(now)
        elif error is not None and action in (ErrorAction.FENCED, ErrorAction.FAIL):
            self._apply_action(action, error, GroupRequest.HEARTBEAT, now)
        return action

    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """Processes the error of an OffsetCommit that was sent with `identity`.

        Ignores the error if the member has another generation or member id now, or if it sends no
        heartbeats any more. Also ignores ILLEGAL_GENERATION while the member joins.
        """
        current = (identity.member_id, identity.generation) == (self.member_id, self.generation)
        if not current or not self._heartbeat_due:
            return
        action = classic_action(GroupRequest.COMMIT, error)
        if action is ErrorAction.REBALANCE:
            self.request_rejoin("a commit was refused, because the group rebalances", now)
        elif action is ErrorAction.GENERATION_LOST and self.phase is Phase.JOINING:
            return
        elif action in (
            ErrorAction.MEMBER_UNKNOWN,
            ErrorAction.GENERATION_LOST,
            ErrorAction.FENCED,
        ):
            self._apply_action(action, error, GroupRequest.COMMIT, now)

    # Results of effects

    def on_revoked(self, now: float) -> None:
        """Continues the rejoin, or leaves, after the driver has carried out a `Revoke`."""
        if self._lost:
            self.generation = NO_GENERATION
            self._owned_generation = NO_GENERATION
            self._lost = False
        self._transition(Event.REVOKED)
        if self.phase is Phase.LEAVING:
            self._prepare_leave(now)

    def join_request(
        self, topics: Iterable[str], owned: Collection[TopicPartition]
    ) -> JoinGroupRequest:
        """Returns the JoinGroup for the subscribed `topics`.

        `owned` are the partitions that the member owns now.

        Raises ConfigurationError if the user's own assignor fails to build its user data.
        """
        self._requests_member_id = not self.member_id
        self._join_reason, self._rejoin_reason = self._rejoin_reason or "the consumer starts", None
        return join_request(
            self.settings,
            self.member_id,
            MemberSubscription(tuple(topics), tuple(owned), self._owned_generation, self.rack),
            self._last_assignments,
            self._join_reason,
        )

    def on_join_response(
        self, response: JoinGroupResponse, sent_at: float, now: float
    ) -> ErrorAction | None:
        """Processes the response to a JoinGroup that was sent at `sent_at`.

        Returns the action for an error; None if there is none. A response with another protocol
        type, or with an assignor that the member lacks, is an error, too.
        """
        if response.error_code == _MEMBER_ID_REQUIRED and not self.member_id:
            self.member_id = response.member_id
            self._retry_request(now)
            return ErrorAction.USE_MEMBER_ID
        if response.error_code:
            return self.failed(self._error(response.error_code, GroupRequest.JOIN), now)
        self._requests_member_id = False
        self.member_id = response.member_id
        keeps_partitions = self._cooperative and self.generation >= 0
        self.generation = response.generation_id
        self._session.start_generation(
            self.generation, sent_at, now, keeps_partitions=keeps_partitions
        )
        heartbeat_now = keeps_partitions or self._session.needs_heartbeat
        self._heartbeat_at = now if heartbeat_now else sent_at + self._interval_s
        if self._leave_is_postponed and not keeps_partitions:
            self._begin_leave(now)
            return None
        leads = response.leader == response.member_id
        assignor = chosen_assignor(response, self.settings.resolved_assignors)
        if assignor is None:
            return self.failed(self._error(_INCONSISTENT, GroupRequest.JOIN), now)
        self._protocol = assignor.name
        self._assignments = {}
        if leads:
            self._lead = ComputeAssignment(response.members, assignor, response.skip_assignment)
        what = " as its leader" if leads else ""
        text = f"joined generation %d{what}, with %s"
        self._log(text, self.generation, self._protocol)
        self._transition(Event.ELECTED_LEADER if leads else Event.JOINED)
        return None

    def on_assignment_computed(self, assignment: Assignment) -> None:
        """Stores the assignment that the member has computed as the leader.

        If JoinGroup told the leader to skip the assignment, the assignment is empty: the group then
        keeps its previous assignment (KIP-814).
        """
        self._assignments = {each: assignment_bytes(its) for each, its in assignment.items()}
        self._lead = None
        self._transition(Event.ASSIGNMENT_COMPUTED)

    def on_sync_response(
        self, response: SyncGroupResponse, sent_at: float, now: float
    ) -> ErrorAction | None:
        """Processes the response to a SyncGroup that was sent at `sent_at`.

        Returns the action for an error; None if there is none. A response with another protocol
        type or name, or with a malformed assignment, is an error, too.
        """
        if response.error_code:
            return self.failed(self._error(response.error_code, GroupRequest.SYNC), now)
        try:
            tps = assigned_in(response, self._protocol)
        except DecodeError as error:
            return self.failed(error, now)
        if tps is None:
            return self.failed(self._error(_INCONSISTENT, GroupRequest.SYNC), now)
        self._session.on_stable(sent_at)
        if self._leave_is_postponed:
            self._transition(Event.SYNCED)
            self._begin_leave(now)
            return None
        assert self.subscription is not None
        self._step_backoff.succeeded()
        self._assigned = [tp for tp in tps if self.subscription.includes(tp[0])]
        others = sorted({topic for topic, _ in tps} - {topic for topic, _ in self._assigned})
        if others and self._rejoin_reason is None:  # else the subscription has changed since
            text = "the leader assigned partitions of topics that are not subscribed to: %s"
            self._log(text, ", ".join(others), level=logging.WARNING)
        self._owned_generation = self.generation
        self._last_assignments[self._protocol] = LastAssignment(tuple(tps), self.generation)
        self._assignments = {}
        self._transition(Event.SYNCED)
        return None

    def _next_assignment(self, owned: Collection[TopicPartition], now: float) -> ApplyAssignment:
        before, after = frozenset(owned), frozenset(self._assigned)
        added = tuple(tp for tp in self._assigned if tp not in before)
        return ApplyAssignment(before - after, added, self._session.revoke_deadline(now))

    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        """Continues after the driver has carried out an `ApplyAssignment`.

        Rejoins if a rebalance was requested during the `ApplyAssignment`. Also rejoins if
        partitions were revoked, because other members get these partitions in a second rebalance
        (KIP-429).
        """
        if step.revoked:
            self._rejoin_reason = self._rejoin_reason or "partitions were revoked for other members"
        self._transition(Event.ASSIGNMENT_APPLIED)
        self._rebalance(now)

    def _prepare_leave(self, now: float) -> None:
        """Prepares `SendLeaveGroup` if LeaveGroup must be sent; otherwise ends the membership.

        LeaveGroup is not sent if `leaves` is False, or if the member has no member id and no
        instance id.
        """
        intent = self._leave_intent
        assert intent is not None
        if not intent.leaves or not (self.member_id or self.settings.is_static):
            self.on_left(now)
            return
        instance_id = self.settings.instance_id
        until = now + intent.leave_s
        self._leave = SendLeaveGroup(self.member_id, instance_id, intent.reason, until)

    def on_left(self, now: float) -> None:
        """Ends the membership after LeaveGroup was answered or has failed.

        Also called if no LeaveGroup is needed.
        """
        intent, self._leave_intent = self._leave_intent, None
        assert intent is not None
        self.member_id = ""
        self.generation = self._owned_generation = NO_GENERATION
        self._rejoin_reason = None
        self._step_backoff.succeeded()
        self._transition(Event.CLOSED if intent.ends else Event.LEFT)
        if not intent.ends:
            self._join_if_subscribed(now)

    # Errors

    def on_coordinator_moved(self, now: float) -> None:
        """Repeats the pending JoinGroup or SyncGroup: another broker is the coordinator now."""
        if self._transition(Event.COORDINATOR_MOVED):
            self._retry_request(now)

    def failed(
        self, error: KprotoError, now: float, request: GroupRequest | None = None
    ) -> ErrorAction:
        """Processes the failure of the running effect; returns the action for the error."""
        request = request or REQUESTS.get(self.phase, GroupRequest.COORDINATOR)
        action = classic_action(request, error)
        if self.phase is Phase.LEAVING:  # no retry: the session times out anyway
            self.on_left(now)
            return action
        self._apply_action(action, error, request, now)
        return action

    def _error(self, code: int, request: GroupRequest) -> BrokerResponseError:
        return error_of_code(code, f"{request.value}: group {self.settings.group_id!r}")

    def _apply_action(
        self, action: ErrorAction, error: KprotoError, request: GroupRequest, now: float
    ) -> None:
        """Applies the action for the `error` of `request`."""
        is_step = request is not GroupRequest.HEARTBEAT and request is not GroupRequest.COMMIT
        if is_step and self._step_backoff.count == 0 and action is ErrorAction.FIND_COORDINATOR:
            self._log("%s is tried again: %s", request.value, error)
        match action:
            case ErrorAction.RETRY | ErrorAction.FIND_COORDINATOR | ErrorAction.USE_MEMBER_ID:
                if is_step:
                    self._step_backoff.failed(now)
                    self._retry_request(now)
            case ErrorAction.REBALANCE:
                self._step_backoff.failed(now, at_once=True)
                self._rejoin_reason = self._rejoin_reason or "the group rebalances already"
                self._rebalance(now)
                self._begin_postponed_leave(now)
            case ErrorAction.MEMBER_UNKNOWN | ErrorAction.GENERATION_LOST:
                self._step_backoff.failed(now, at_once=True)
                if action is ErrorAction.MEMBER_UNKNOWN:
                    self.member_id = ""
                self._lose_membership(str(error), now)
            case ErrorAction.FENCED | ErrorAction.FAIL:
                self.fail(error, now, leaves=action is ErrorAction.FAIL)

    def _retry_request(self, now: float) -> None:
        """Makes `step` send the failed request again.

        If a leave was postponed during the request, begins the leave instead.
        """
        if self.phase is Phase.JOINING:
            self._requests_member_id = False
            self._rejoin_reason = self._rejoin_reason or self._join_reason
        self._begin_postponed_leave(now)

    def _begin_postponed_leave(self, now: float) -> None:
        """Begins a postponed leave, because the response that it waited for will not arrive."""
        if self._leave_is_postponed:
            self._begin_leave(now)

    def _lose_membership(self, why: str, now: float) -> None:
        """Drops the generation, because other members may own the partitions by now."""
        had_generation = self.generation >= 0
        if not had_generation and self.phase is not Phase.JOINING:
            return
        if self._transition(Event.LOST):
            if had_generation:
                self._log("out of generation %d: %s", self.generation, why, level=logging.WARNING)
            self._start_revoking(now, lost=True)
            self._requests_member_id = False
            self.generation = NO_GENERATION
            self._rejoin_reason = self._rejoin_reason or "the membership was lost"
            self._begin_postponed_leave(now)

    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        """Ends the member because of `error`.

        If `leaves` is True, a dynamic member first sends LeaveGroup.
        """
        self._note_failure(error)
        sends_leave = leaves and bool(self.member_id) and not self.settings.is_static
        if not leaves:
            self.generation = NO_GENERATION
        self.begin_leave(
            "the consumer has failed", now, leaves=sends_leave, ends=True, lost=True, until=now
        )
        if self.phase is Phase.PREPARE_LEAVING and not self._lost and self._transition(Event.LOST):
            self._lost = True  # the partitions in revocation are lost
