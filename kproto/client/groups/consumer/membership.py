"""Decides, as a state machine, what a member of the consumer protocol does next (KIP-848).

Owns the member id and epoch; `reconciliation` has the assigned and the owned partitions,
`groups.session` the end of the session, `phases` the transition table. Knows no connection, no
clock, no task and no record: the driver passes in the times, in seconds, carries out the effects
and reports their results.

The driver runs at most one effect and one heartbeat at the same time. Heartbeats join, acknowledge
and renew the session. A heartbeat lists the partitions owned when it is sent, so that a revocation
is never acknowledged before it is done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ....wire.errors import BrokerResponseError, KprotoError
from ....wire.uuid import Uuid
from ...metadata.cluster import TopicPartition
from ...settings import ClientSettings
from ..backoff import Backoff
from ..effects import (
    ApplyAssignment,
    LeaveByHeartbeat,
    LeaveIntent,
    MemberIdentity,
    Prepare,
    Resolve,
    Revoke,
    Step,
)
from ..group_errors import GroupRequest, Meaning
from ..group_protocol import GroupProtocolMismatchError
from ..session import Session
from ..settings import BEATS_IN_TIME, GroupSettings
from ..state_machine import MembershipStateMachine
from ..subscription import Subscription
from .heartbeat_errors import error_in, meaning_of
from .heartbeats import (
    FIRST_OWN_ID,
    JOINS,
    LEAVES,
    LEAVES_FOR_A_TIME,
    Beat,
    Said,
    heartbeat_request,
    release_heartbeat,
)
from .phases import ACCEPTING_COMMITS, HEARTBEATING, LEAVING_PHASES, TRANSITIONS, Event, Phase
from .reconciliation import Difference, Reconciliation, Told, assigned_in, told_of
from .session_timeout import KAFKAS_SESSION_MS, session_by

__all__ = ["ConsumerMembership"]

_NEVER: Final = float("inf")

#: The error if the protocol is disabled in the cluster: another check would not change the result.
_DISABLED: Final = "UNSUPPORTED_VERSION"


class ConsumerMembership(MembershipStateMachine[Phase, Event]):
    """The state of one member; `name_of` returns the name of a topic id, if metadata has it.

    If it `may_change`, a classic member may replace it.
    """

    transitions = TRANSITIONS

    def __init__(
        self,
        settings: GroupSettings,
        client: ClientSettings,
        name_of: Callable[[Uuid], str | None],
        *,
        may_change: bool = False,
    ) -> None:
        super().__init__(settings, Phase.UNSUBSCRIBED)
        self.rack = client.rack
        self.epoch = JOINS
        self._may_change = may_change
        self._own_id = str(Uuid.random())
        self._partitions = Reconciliation(name_of)
        self._session = Session(settings, reads_on=True)
        self._session.session_ms = KAFKAS_SESSION_MS  # the setting is for classic groups only
        self._disclosed_session_ms: int | None = None
        self._interval_s = settings.heartbeat_interval_ms / 1000
        self._heartbeat_at = _NEVER
        self._heartbeat_backoff = Backoff(client)
        self._step_backoff = Backoff(client)
        self._resolve_backoff = Backoff(client)
        self._incarnation = 0  # counts joins, leaves and losses of all partitions
        self._is_prepared = False
        self._topics: frozenset[str] = frozenset()  # subscribed by name
        self._regex: str | None = None  # the `TopicPattern` of the subscription
        self._known: Said | None = None  # the fields of the last answered heartbeat
        self._unreleased_since: float | None = None
        self._unconverted_since: float | None = None
        self._conversion_timeout_s = client.api_timeout_ms / 1000
        self._may_have_instance = False  # this member may have the instance id at the coordinator
        self._releases_instance = False  # the next heartbeat releases the instance id
        self._may_be_known = False  # the coordinator may know the member
        self._requests_member_id = False  # the response to the pending heartbeat has the member id
        self._lost = False
        self._revoke_until = 0.0
        self._leave_intent: LeaveIntent | None = None
        self._leave_by = _NEVER

    # State

    @property
    def is_out(self) -> bool:
        return self.phase in (Phase.UNSUBSCRIBED, Phase.STALE, Phase.FATAL)

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.FATAL

    @property
    def is_reading(self) -> bool:
        joins = self.phase is Phase.JOINING and self._is_prepared
        return joins or self.phase in (Phase.RECONCILING, Phase.ACKNOWLEDGING, Phase.STABLE)

    @property
    def _is_leaving(self) -> bool:
        return self.phase in LEAVING_PHASES

    @property
    def assignment_valid_until(self) -> float:
        return self._session.until if self.epoch > JOINS else -_NEVER

    @property
    def interval_ms(self) -> int:
        """Returns the heartbeat interval in ms, by the last response of the coordinator."""
        return round(self._interval_s * 1000)

    @property
    def session_ms(self) -> int:
        """Returns the session timeout in ms: without responses the member stops reading then."""
        return self._session.session_ms

    def session_told(self, session_ms: int | None) -> None:
        """Stores the session timeout of the group in ms; None if it is not disclosed."""
        self._disclosed_session_ms = session_ms
        if session_ms is not None:
            self._session.session_ms = session_ms

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        return self._partitions.is_assigned(tp, topic_id)

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
            self._say("the subscription is now %s", subscription)
            self._send_heartbeat_soon(now)

    def prepared(self, step: Prepare, topics: frozenset[str], now: float) -> None:
        """Notes that a `Prepare` is done; `topics` are to be subscribed by name."""
        self._step_backoff.succeeded()
        if self.subscription is step.subscription:
            self._is_prepared = True
            self._subscribe_to(step.subscription, topics)
            self.matched(topics, now)

    def _subscribe_to(self, subscription: Subscription, topics: frozenset[str]) -> None:
        remote = subscription.remote
        self._topics, self._regex = topics, None if remote is None else remote.text

    def matched(self, topics: frozenset[str], now: float) -> None:
        """Updates the topics that match the pattern; sends a heartbeat if they have changed."""
        self._topics = topics
        known = self._known
        if known is None or (known.topics, known.regex) != (topics, self._regex):
            self._send_heartbeat_soon(now)

    def request_rejoin(self, reason: str, now: float) -> None:
        text = "ignores the request to rebalance (%s): the coordinator assigns the partitions"
        self._say(text, reason)

    def _join_if_wanted(self, now: float) -> None:
        if self._may_join and self._transition(Event.SUBSCRIBED):
            self._begin_to_join(now)

    def _begin_to_join(self, now: float) -> None:
        self._incarnation += 1
        self.epoch = JOINS
        self._lost = False
        self._is_prepared = False
        self._unconverted_since = None
        self._known = None
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
        until = self._session.given_up_by(now) if until is None else until
        ends = ends or (self._leave_intent is not None and self._leave_intent.ends)
        if self.is_out:
            if ends:
                self._transition(Event.CLOSED)
            return
        leave_s = self.settings.leave_timeout_ms / 1000
        self._leave_intent = LeaveIntent(reason, leaves, ends, lost, until, leave_s)
        if self.phase in (Phase.PREPARE_LEAVING, Phase.LEAVING):
            self._revoke_until = min(self._revoke_until, until)
        elif self._transition(Event.LEAVE_REQUESTED):
            self._lost = lost or self.epoch <= JOINS
            self._revoke_until = until

    # Next effect

    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        match self.phase:
            case Phase.JOINING | Phase.STABLE if not self._is_prepared:
                assert self.subscription is not None
                return Prepare(self.subscription) if now >= self._step_backoff.not_before else None
            case Phase.RECONCILING:
                return self._reconciling(now)
            case Phase.FENCED:
                return Revoke(frozenset(owned), True, now)
            case Phase.PREPARE_LEAVING:
                return Revoke(frozenset(owned), self._lost, self._revoke_until)
            case Phase.LEAVING:
                return self._next_leave(now)
        return None

    def _reconciling(self, now: float) -> Step:
        its = self._difference()
        if its.unresolved and not its.revoked and now >= self._resolve_backoff.not_before:
            return Resolve(its.unresolved)
        self._partitions.start(its)
        return ApplyAssignment(its.revoked, tuple(its.added), self._session.given_up_by(now))

    def _difference(self) -> Difference:
        assert self.subscription is not None
        return self._partitions.difference(self.subscription.wants)

    def _next_leave(self, now: float) -> LeaveByHeartbeat | None:
        """Returns the leave effect; None until the member has an id."""
        intent = self._leave_intent
        assert intent is not None
        if not self.member_id:
            return None
        epoch = LEAVES if intent.leaves else LEAVES_FOR_A_TIME
        until = now + intent.leave_s
        instance_id = self.settings.instance_id
        return LeaveByHeartbeat(self.member_id, instance_id, epoch, intent.reason, until)

    def _leave_without_heartbeat(self, now: float) -> None:
        """Leaves at once if no heartbeat is needed, or none can be sent without a member id."""
        if self.phase is not Phase.LEAVING:
            return
        intent = self._leave_intent
        assert intent is not None
        waits = self._requests_member_id and now < self._leave_by
        sends_heartbeat = self._may_be_known and (intent.leaves or self.settings.is_static)
        if not sends_heartbeat or not (self.member_id or waits):
            self.left(now)

    def next_at(self, now: float) -> float:
        moments = []
        if self.phase in (Phase.JOINING, Phase.STABLE) and not self._is_prepared:
            moments.append(self._step_backoff.not_before)
        if self._heartbeat_due:
            moments.append(self._heartbeat_at)
        if self.epoch > JOINS:
            moments += [self.assignment_valid_until, self._resolve_backoff.not_before]
        if self.phase is Phase.LEAVING:
            moments.append(self._leave_by)
        return min((moment for moment in moments if moment > now), default=_NEVER)

    def tick(self, now: float) -> None:
        self._leave_without_heartbeat(now)
        if self.epoch > JOINS and self.phase in HEARTBEATING and now >= self.assignment_valid_until:
            why = "partitions may not have been revoked in time (max_poll_interval_ms)"
            if self._session.is_silent(now):
                why = f"no heartbeat came through for {self.session_ms} ms, the session timeout"
            self._lose(why, now)
        if self.phase is Phase.STABLE and self._is_to_reconcile(now):
            self._transition(Event.ASSIGNED)

    def _is_to_reconcile(self, now: float) -> bool:
        its = self._difference()
        asks = bool(its.unresolved) and now >= self._resolve_backoff.not_before
        return bool(its.revoked or its.added) or asks

    # Heartbeats

    @property
    def _heartbeat_due(self) -> bool:
        if self.phase is Phase.JOINING:
            return self._is_prepared and (bool(self._topics) or bool(self._regex))
        return self.epoch > JOINS and self.phase in HEARTBEATING and not self._lost

    def _send_heartbeat_soon(self, now: float) -> None:
        earliest = max(now, self._heartbeat_backoff.not_before)
        self._heartbeat_at = min(self._heartbeat_at, earliest)

    def heartbeat_due(self, now: float) -> bool:
        """Returns True if a heartbeat is due."""
        return self._heartbeat_due and now >= self._heartbeat_at

    def heartbeat(self, version: int, now: float) -> Beat | None:
        """Returns the heartbeat to send now; None if none is due any more.

        Raises UnsupportedVersionError if the coordinator is too old for a pattern.
        """
        if not self.heartbeat_due(now):
            return None
        if self._releases_instance and self.phase is Phase.JOINING:
            return release_heartbeat(self.settings, self.member_id, self._incarnation, now)
        if not self.member_id and version >= FIRST_OWN_ID:
            self.member_id = self._own_id
        says = Said(self._topics, self._regex, told_of(self._partitions.owned))
        request = heartbeat_request(
            self.settings,
            self.rack,
            (self.member_id, self.epoch),
            says,
            self._known,
            version,
            acknowledges=self.phase is Phase.ACKNOWLEDGING,
        )
        self._may_be_known = True
        self._requests_member_id = not self.member_id
        return Beat(request, says, self._incarnation, now)

    def on_heartbeat_response(
        self, beat: Beat, outcome: ConsumerGroupHeartbeatResponse | KprotoError, now: float
    ) -> Meaning | None:
        """Processes the outcome of a heartbeat; returns the meaning of its error, if current."""
        if self._requests_member_id:
            self._requests_member_id = False
            if isinstance(outcome, ConsumerGroupHeartbeatResponse) and not outcome.error_code:
                self.member_id = outcome.member_id or ""
        if isinstance(outcome, ConsumerGroupHeartbeatResponse) and outcome.error_code:
            outcome = error_in(outcome, beat.kind, self.settings.group_id)
        is_current = beat.life == self._incarnation and self._heartbeat_due
        if beat.request.member_epoch == LEAVES_FOR_A_TIME:
            return self._on_instance_released(outcome, now)
        if isinstance(outcome, KprotoError):
            meaning = meaning_of(beat.kind, outcome)
            if meaning is not Meaning.UNRELEASED:  # the coordinator may have registered the id
                self._may_have_instance = True
            if is_current:
                self._on_heartbeat_failed(meaning, outcome, beat.kind, now)
                return meaning
            return meaning if meaning is Meaning.FIND_COORDINATOR else None
        if is_current:
            self._answered(beat, outcome, now)
        return None

    def on_heartbeat_not_sent(self, error: KprotoError, now: float) -> Meaning:
        """Processes the failure to send a heartbeat; returns the meaning of the error."""
        asked = GroupRequest.JOIN if self.epoch == JOINS else GroupRequest.HEARTBEAT
        meaning = meaning_of(asked, error)
        if self._heartbeat_due:
            self._on_heartbeat_failed(meaning, error, asked, now)
        return meaning

    def _on_heartbeat_failed(
        self, meaning: Meaning, error: KprotoError, asked: GroupRequest, now: float
    ) -> None:
        self._known = None  # the next heartbeat has all fields
        self._heartbeat_backoff.failed(now, at_once=meaning is Meaning.MEMBER_UNKNOWN)
        self._heartbeat_at = self._heartbeat_backoff.not_before
        self._follow(meaning, error, asked, now)

    def _answered(self, beat: Beat, answer: ConsumerGroupHeartbeatResponse, now: float) -> None:
        """Processes the response to a heartbeat, which renews the session."""
        self._heartbeat_backoff.succeeded()
        self._unreleased_since = None
        self._unconverted_since = None
        self._may_have_instance = True
        assigned = assigned_in(answer)
        self._session.heard(beat.sent_at, calm=self._was_calm(beat, assigned))
        self._known = beat.said
        if answer.heartbeat_interval_ms > 0:
            self._take_interval(answer.heartbeat_interval_ms)
        self._heartbeat_at = beat.sent_at + self._interval_s
        if self.member_id and answer.member_id not in (None, "", self.member_id):
            self.member_id = answer.member_id or self.member_id
        self.epoch = answer.member_epoch
        if assigned is not None and self._partitions.assign(assigned):
            self._resolve_backoff.succeeded()
        if self._topics != beat.said.topics or self._regex != beat.said.regex:
            self._heartbeat_at = now  # the subscription has changed since
        if self.phase is Phase.JOINING:
            self._say("joined at epoch %d, as member %s", self.epoch, self.member_id)
            self._transition(Event.JOINED)
        elif self.phase is Phase.ACKNOWLEDGING:
            if beat.said.partitions == told_of(self._partitions.owned) and beat.tells:
                self._transition(Event.ACKNOWLEDGED)
            else:
                self._heartbeat_at = now
        if self.phase is Phase.STABLE and self._is_to_reconcile(now):
            self._transition(Event.ASSIGNED)

    def _take_interval(self, interval_ms: int) -> None:
        """Stores the heartbeat interval; derives the session timeout if it is not disclosed.

        Sends at least `BEATS_IN_TIME` heartbeats in the session and in `max_poll_interval_ms`.
        """
        if self._disclosed_session_ms is None:
            self._session.session_ms = session_by(interval_ms)
        limits = (self.session_ms, self.settings.max_poll_interval_ms)
        self._interval_s = min(interval_ms, min(limits) / BEATS_IN_TIME) / 1000
        self._session.interval_s = self._interval_s

    def _was_calm(self, beat: Beat, assigned: Told | None) -> bool:
        """Returns True if the coordinator waited for no revocation when it got that heartbeat.

        A revocation would be in the previous response, unless that response was lost.
        """
        before = self._partitions.assigned
        if self._known is None and assigned is not None:
            before = assigned
        return beat.said.partitions <= before

    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        current = (identity.member_id, identity.generation) == (self.member_id, self.epoch)
        if not current or not self._heartbeat_due:
            return
        meaning = meaning_of(GroupRequest.COMMIT, error)
        if meaning is Meaning.STALE:
            self._send_heartbeat_soon(now)
        elif meaning in (Meaning.MEMBER_UNKNOWN, Meaning.FENCED):
            self._follow(meaning, error, GroupRequest.COMMIT, now)

    # Results of effects

    def resolved(self, now: float) -> None:
        """Notes that a `Resolve` is done; starts a backoff if ids have no name yet."""
        if self._difference().unresolved:
            self._resolve_backoff.failed(now)
        else:
            self._resolve_backoff.succeeded()

    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        self._partitions.finish(step.revoked, step.added)
        if self._transition(Event.RECONCILED):
            self._heartbeat_at = max(now, self._heartbeat_backoff.not_before)

    def on_revoked(self, now: float) -> None:
        self._partitions.owned = {}
        if self._lost:
            self.epoch = JOINS
        self._transition(Event.REVOKED)
        if self.phase is Phase.JOINING:
            self._begin_to_join(now)
        elif self.phase is Phase.LEAVING:
            assert self._leave_intent is not None
            self._leave_by = now + self._leave_intent.leave_s
            self._leave_without_heartbeat(now)

    def left(self, now: float) -> None:
        intent, self._leave_intent = self._leave_intent, None
        assert intent is not None
        self._leave_by = _NEVER
        self._may_be_known = False
        self._requests_member_id = False
        self._incarnation += 1
        self.epoch = JOINS
        self._lost = False
        self._step_backoff.succeeded()
        late = Event.LEFT_STALE if self._is_stale else Event.LEFT
        self._transition(Event.CLOSED if intent.ends else late)
        if not intent.ends:
            self._join_if_wanted(now)

    # Errors

    def failed(self, error: KprotoError, now: float) -> Meaning:
        asked = GroupRequest.LEAVE if self.phase is Phase.LEAVING else GroupRequest.COORDINATOR
        meaning = meaning_of(asked, error)
        if asked is GroupRequest.LEAVE:  # no retry: the session times out anyway
            self.left(now)
        else:
            self._step_backoff.failed(now)
            self._follow(meaning, error, asked, now)
        return meaning

    def _follow(
        self, meaning: Meaning, error: KprotoError, asked: GroupRequest, now: float
    ) -> None:
        """Acts on the meaning of an error; the caller has scheduled the next heartbeat."""
        match meaning:
            case Meaning.MEMBER_UNKNOWN:
                self._may_be_known = False
                self._lose(str(error), now)
            case Meaning.UNRELEASED:
                self._wait_for_release(error, now)
            case Meaning.UNCONVERTED if not self._may_change:
                self._wait_for_conversion(error, now)
            case Meaning.OTHER_PROTOCOL | Meaning.UNCONVERTED:
                self._end_for_other_protocol(error, now)
            case Meaning.FENCED | Meaning.FAIL:
                self.fail(error, now, leaves=meaning is Meaning.FAIL)
            case Meaning.FIND_COORDINATOR:
                if self._heartbeat_backoff.count + self._step_backoff.count == 1:
                    self._say("%s is tried again: %s", asked.value, error)

    def _wait_for_release(self, error: KprotoError, now: float) -> None:
        """Retries for the session timeout while another member has the instance id.

        That member may have failed without leaving, or may still run; or it was this member, which
        lost its epoch and releases the instance id first.
        """
        if self._may_have_instance and self.member_id:
            self._may_have_instance = False
            self._releases_instance = True
            self._heartbeat_at = now
        elif self._unreleased_since is None:
            self._unreleased_since = now
            text = "waiting until the session of another instance %s has ended: %s"
            self._say(text, self.settings.instance_id, error, level=logging.WARNING)
        elif now - self._unreleased_since > self.session_ms / 1000 + self._interval_s:
            self.fail(error, now, leaves=False)

    def _wait_for_conversion(self, error: KprotoError, now: float) -> None:
        """Retries for `api_timeout_ms` while a rebalance of the classic members may be running."""
        if self._unconverted_since is None:
            self._unconverted_since = now
            text = "waiting until the classic group can be converted: %s"
            self._say(text, error, level=logging.WARNING)
        elif now - self._unconverted_since > self._conversion_timeout_s:
            self.fail(error, now, leaves=False)

    def _on_instance_released(
        self, outcome: ConsumerGroupHeartbeatResponse | KprotoError, now: float
    ) -> Meaning | None:
        """Processes the release of the instance id; it fails if another member has the id."""
        meaning = (
            meaning_of(GroupRequest.LEAVE, outcome) if isinstance(outcome, KprotoError) else None
        )
        if meaning in (Meaning.RETRY, Meaning.FIND_COORDINATOR):
            self._heartbeat_backoff.failed(now)
            self._heartbeat_at = self._heartbeat_backoff.not_before
            return meaning
        self._releases_instance = False
        self._heartbeat_at = now
        return None

    def _end_for_other_protocol(self, error: KprotoError, now: float) -> None:
        """Ends this member: a classic member replaces it if it `may_change`, else it fails."""
        if self._may_change:
            is_certain = isinstance(error, BrokerResponseError) and error.name == _DISABLED
            error = GroupProtocolMismatchError(str(error), is_certain=is_certain)
        self.fail(error, now, leaves=False)

    def _lose(self, why: str, now: float) -> None:
        """Drops the epoch, because other members may own the partitions by now."""
        if self.phase is Phase.PREPARE_LEAVING and self._lost:
            return
        if not self._transition(Event.FENCED):
            return
        if self.epoch > JOINS:
            self._say("out of epoch %d: %s", self.epoch, why, level=logging.WARNING)
        self._incarnation += 1
        self.epoch = JOINS
        if self.phase is Phase.JOINING:
            self._begin_to_join(now)
        else:
            self._lost = True

    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        self._note_failure(error)
        if not leaves:
            self._may_be_known = False
        sends_leave = leaves and not self.settings.is_static
        self.begin_leave(
            "the consumer has failed", now, leaves=sends_leave, ends=True, lost=True, until=now
        )
        revokes = self.phase is Phase.PREPARE_LEAVING and not self._lost
        if revokes and self._transition(Event.FENCED):
            self._lost = True  # the partitions in revocation are lost
