"""Defines the base class of members that join, leave and get their assignment by heartbeats.

`consumer.membership` (KIP-848) and `share.membership` (KIP-932) define its subclasses. The base
class owns the member epoch and the time of the next heartbeat; `reconciliation` compares the
assignment with the partitions of the consumer. Does no I/O: the driver passes the time in seconds,
runs one effect and one heartbeat at a time, and reports their results.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from ...messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ...messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ...protocol.error_codes import error_of_code
from ...wire.errors import KprotoError
from ...wire.uuid import Uuid
from ..core.group_errors import ErrorAction, GroupRequest
from ..metadata.cluster import TopicPartition
from ..settings import ClientSettings
from .backoff import Backoff
from .effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    LeaveIntent,
    PrepareHeartbeat,
    ResolveTopicNames,
    Revoke,
    Step,
)
from .heartbeat_phases import JOIN_EPOCH, LEAVING_PHASES, Event, Phase
from .reconciliation import AssignmentReconciliation, Difference, assigned_in
from .settings import GroupSettings
from .state_machine import MembershipStateMachine

__all__ = ["HeartbeatMembership", "HeartbeatResponse"]

_NEVER: Final = float("inf")

HeartbeatResponse: TypeAlias = ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse


class SentHeartbeat(Protocol):
    """A heartbeat, and the data of the member at the time of sending.

    `fields` are the fields that may change from one heartbeat to the next.
    """

    @property
    def fields(self) -> Any: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def sent_at(self) -> float: ...
    @property
    def group_request(self) -> GroupRequest: ...


BeatT = TypeVar("BeatT", bound=SentHeartbeat)


class HeartbeatMembership(MembershipStateMachine[Phase, Event], Generic[BeatT]):
    """Tracks one member.

    `name_of` returns the name of a topic id; None if the metadata lacks it.
    """

    #: The words for the group in the text of an error.
    group_noun: ClassVar[str]

    def __init__(
        self,
        settings: GroupSettings,
        client: ClientSettings,
        name_of: Callable[[Uuid], str | None],
    ) -> None:
        super().__init__(settings, Phase.UNSUBSCRIBED)
        self.rack = client.rack
        self.epoch = JOIN_EPOCH
        self._partitions = AssignmentReconciliation(name_of)
        self._interval_s = settings.heartbeat_interval_ms / 1000
        self._heartbeat_at = _NEVER
        self._heartbeat_backoff = Backoff(client)
        self._step_backoff = Backoff(client)
        self._resolve_backoff = Backoff(client)
        self._incarnation = 0  # counts joins, leaves and losses
        self._is_prepared = False
        self._known_fields: Any = None  # of the last answered heartbeat
        self._may_be_known = False  # the coordinator may know the member
        self._leave_intent: LeaveIntent | None = None

    # Defined by each protocol

    @property
    @abstractmethod
    def _heartbeat_due(self) -> bool:
        """True if the member sends heartbeats in its present phase."""

    @abstractmethod
    def _action_for(self, request: GroupRequest, error: KprotoError) -> ErrorAction:
        """Returns the action of the member after `request` failed with `error`."""

    @abstractmethod
    def _has_changed(self, beat: BeatT) -> bool:
        """Returns True if the subscription has changed since a heartbeat."""

    @abstractmethod
    def _set_heartbeat_interval(self, interval_ms: int) -> None:
        """Stores the heartbeat interval of the coordinator, or a shorter interval."""

    @abstractmethod
    def _revoke_deadline(self, now: float) -> float:
        """Returns the time until which a revocation may wait for the processing of records."""

    @abstractmethod
    def _revoke_step(self, now: float, owned: Collection[TopicPartition]) -> Revoke:
        """Returns the effect that revokes all partitions before the member leaves."""

    @abstractmethod
    def _leave_step(self, now: float) -> LeaveByHeartbeat | None:
        """Returns the effect that sends the last heartbeat; None if it cannot be sent yet."""

    @abstractmethod
    def _leave_without_heartbeat(self, now: float) -> None:
        """Ends a leave at once if the member need not or cannot send a heartbeat."""

    def _request_leave(self, until: float, *, lost: bool) -> None:
        """Makes the transition to the leave, unless the member leaves already."""
        self._transition(Event.LEAVE_REQUESTED)

    def _on_leaving(self, now: float) -> None:
        """Continues after the phase has become LEAVING."""
        self._leave_without_heartbeat(now)

    def _on_acknowledgement_answered(self, beat: BeatT, now: float) -> None:
        """Processes the response to a heartbeat in the phase ACKNOWLEDGING."""

    def _next_interval_s(self) -> float:
        """Returns the time to the next heartbeat, in seconds."""
        return self._interval_s

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
        return joins or self.phase in (Phase.RECONCILING, Phase.ACKNOWLEDGING, Phase.STABLE)

    @property
    def _is_leaving(self) -> bool:
        return self.phase in LEAVING_PHASES

    @property
    def interval_ms(self) -> int:
        """Returns the heartbeat interval in ms; `heartbeat_interval_ms` before the first response.

        It is the coordinator's interval, or a third of the session timeout (consumer protocol) or
        of `max_poll_interval_ms` if that is shorter.
        """
        return round(self._interval_s * 1000)

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        return self._partitions.is_assigned(tp, topic_id)

    # Subscription and leave

    def _join_if_subscribed(self, now: float) -> None:
        if self._may_join and self._transition(Event.SUBSCRIBED):
            self._start_joining(now)

    def _start_joining(self, now: float) -> None:
        self._incarnation += 1
        self.epoch = JOIN_EPOCH
        self._is_prepared = False
        self._known_fields = None
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
        until = self._revoke_deadline(now) if until is None else until
        ends = ends or (self._leave_intent is not None and self._leave_intent.ends)
        if self.is_outside_group:
            if ends:
                self._transition(Event.CLOSED)
            return
        leave_s = self.settings.leave_timeout_ms / 1000
        self._leave_intent = LeaveIntent(reason, leaves, ends, lost, until, leave_s)
        self._request_leave(until, lost=lost)

    # Next effect

    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        match self.phase:
            case Phase.JOINING | Phase.STABLE if not self._is_prepared:
                assert self.subscription is not None
                return (
                    PrepareHeartbeat(self.subscription)
                    if now >= self._step_backoff.not_before
                    else None
                )
            case Phase.RECONCILING:
                return self._reconcile_step(now)
            case Phase.FENCED:
                return Revoke(frozenset(owned), True, now)
            case Phase.PREPARE_LEAVING:
                return self._revoke_step(now, owned)
            case Phase.LEAVING:
                return self._leave_step(now)
        return None

    def _reconcile_step(self, now: float) -> Step:
        its = self._difference()
        if its.unresolved and not its.revoked and now >= self._resolve_backoff.not_before:
            return ResolveTopicNames(its.unresolved)
        self._partitions.start(its)
        return ApplyAssignment(its.revoked, tuple(its.added), self._revoke_deadline(now))

    def _difference(self) -> Difference:
        assert self.subscription is not None
        return self._partitions.difference(self.subscription.includes)

    def next_at(self, now: float) -> float:
        deadlines = self._deadlines()
        if self.phase in (Phase.JOINING, Phase.STABLE) and not self._is_prepared:
            deadlines.append(self._step_backoff.not_before)
        if self._heartbeat_due:
            deadlines.append(self._heartbeat_at)
        return min((deadline for deadline in deadlines if deadline > now), default=_NEVER)

    @abstractmethod
    def _deadlines(self) -> list[float]:
        """Returns the times of the work that only this protocol has."""

    def tick(self, now: float) -> None:
        self._leave_without_heartbeat(now)
        if self.phase is Phase.STABLE and self._must_reconcile(now):
            self._transition(Event.ASSIGNED)

    def _must_reconcile(self, now: float) -> bool:
        its = self._difference()
        asks = bool(its.unresolved) and now >= self._resolve_backoff.not_before
        return bool(its.revoked or its.added) or asks

    # Heartbeats

    def _send_heartbeat_soon(self, now: float) -> None:
        earliest = max(now, self._heartbeat_backoff.not_before)
        self._heartbeat_at = min(self._heartbeat_at, earliest)

    def heartbeat_due(self, now: float) -> bool:
        """Returns True if a heartbeat is due."""
        return self._heartbeat_due and now >= self._heartbeat_at

    def on_heartbeat_response(
        self,
        beat: BeatT,
        outcome: HeartbeatResponse | KprotoError,
        now: float,
    ) -> ErrorAction | None:
        """Processes the response or the error of a heartbeat.

        Returns the action for the error; None if the caller has to do nothing.
        """
        outcome = self._error_in(outcome, beat.group_request)
        is_current = beat.incarnation == self._incarnation and self._heartbeat_due
        if isinstance(outcome, KprotoError):
            action = self._action_for(beat.group_request, outcome)
            if is_current:
                self._on_heartbeat_failed(action, outcome, beat.group_request, now)
                return action
            return action if action is ErrorAction.FIND_COORDINATOR else None
        if is_current:
            self._on_success(beat, outcome, now)
        return None

    def _error_in(
        self, outcome: HeartbeatResponse | KprotoError, request: GroupRequest
    ) -> HeartbeatResponse | KprotoError:
        """Returns the error of a response, with the broker's message; `outcome` if it has none."""
        if isinstance(outcome, KprotoError) or not outcome.error_code:
            return outcome
        what = f"{request.value}: {self.group_noun} {self.settings.group_id!r}"
        if outcome.error_message:
            what += f": {outcome.error_message}"
        return error_of_code(outcome.error_code, what)

    def on_heartbeat_not_sent(self, error: KprotoError, now: float) -> ErrorAction:
        """Processes the failure to send a heartbeat; returns the action for the error."""
        request = GroupRequest.JOIN if self.epoch == JOIN_EPOCH else GroupRequest.HEARTBEAT
        action = self._action_for(request, error)
        if self._heartbeat_due:
            self._on_heartbeat_failed(action, error, request, now)
        return action

    def _on_heartbeat_failed(
        self, action: ErrorAction, error: KprotoError, request: GroupRequest, now: float
    ) -> None:
        self._known_fields = None  # the next heartbeat has all fields
        self._heartbeat_backoff.failed(now, at_once=action is ErrorAction.MEMBER_UNKNOWN)
        self._heartbeat_at = self._heartbeat_backoff.not_before
        self._apply_action(action, error, request, now)

    def _on_success(self, beat: BeatT, answer: HeartbeatResponse, now: float) -> None:
        """Processes a heartbeat response without an error."""
        self._heartbeat_backoff.succeeded()
        self._known_fields = beat.fields
        if answer.heartbeat_interval_ms > 0:
            self._set_heartbeat_interval(answer.heartbeat_interval_ms)
        self.epoch = answer.member_epoch
        assigned = assigned_in(answer)
        if assigned is not None and self._partitions.assign(assigned):
            self._resolve_backoff.succeeded()
        self._heartbeat_at = beat.sent_at + self._next_interval_s()
        if self._has_changed(beat):
            self._heartbeat_at = now
        if self.phase is Phase.JOINING:
            self._log("joined at epoch %d, as member %s", self.epoch, self.member_id)
            self._transition(Event.JOINED)
        elif self.phase is Phase.ACKNOWLEDGING:
            self._on_acknowledgement_answered(beat, now)
        if self.phase is Phase.STABLE and self._must_reconcile(now):
            self._transition(Event.ASSIGNED)

    # Results of effects

    def on_resolved(self, now: float) -> None:
        """Continues after the driver has carried out a `ResolveTopicNames`.

        Starts a backoff if topic ids still have no name.
        """
        if self._difference().unresolved:
            self._resolve_backoff.failed(now)
        else:
            self._resolve_backoff.succeeded()

    def on_revoked(self, now: float) -> None:
        self._partitions.drop_owned()
        self._transition(Event.REVOKED)
        if self.phase is Phase.JOINING:
            self._start_joining(now)
        elif self.phase is Phase.LEAVING:
            self._on_leaving(now)

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
        action = self._action_for(request, error)
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
                self._lose_membership(str(error), now)
            case ErrorAction.FAIL:
                self.fail(error, now, leaves=True)
            case ErrorAction.FIND_COORDINATOR:
                if self._heartbeat_backoff.count + self._step_backoff.count == 1:
                    self._log("%s is tried again: %s", request.value, error)

    def _lose_membership(self, why: str, now: float) -> bool:
        """Drops the member epoch; returns False if the phase does not allow it.

        The coordinator may not know the epoch any more, and other members may own the partitions.
        """
        if not self._transition(Event.FENCED):
            return False
        if self.epoch > JOIN_EPOCH:
            self._log("out of epoch %d: %s", self.epoch, why, level=logging.WARNING)
        self._incarnation += 1
        self.epoch = JOIN_EPOCH
        if self.phase is Phase.JOINING:
            self._start_joining(now)
        return True

    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        self._note_failure(error)
        if not leaves:
            self._may_be_known = False
        sends_leave = leaves and not self.settings.is_static
        self.begin_leave(
            "the consumer has failed", now, leaves=sends_leave, ends=True, lost=True, until=now
        )
