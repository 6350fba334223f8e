"""Decides, as a state machine, what a member of the consumer protocol does next (KIP-848).

Owns the member id and epoch, the assigned and the owned partitions; `groups.session` counts how
long a broker knows the member. Knows no connection, no clock, no task and no record: times are
passed in, in seconds; it returns effects, and the driver reports their results. `phases` has the
table.

Effects, one at a time, and heartbeats, one at a time, run concurrently; heartbeats join,
acknowledge and keep the session. A heartbeat lists the partitions owned when it is sent, so that a
partition is never acknowledged before it is revoked.
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
)
from .phases import ACCEPTING_COMMITS, HEARTBEATING, LEAVING_PHASES, TRANSITIONS, Event, Phase
from .reconciliation import Difference, Told, assigned_in, difference, told_of
from .session_timeout import KAFKAS_SESSION_MS, session_by

__all__ = ["ConsumerMembership"]

_NEVER: Final = float("inf")

#: What a cluster says that has the protocol, and turned off: another look would say nothing else.
_TURNED_OFF: Final = "UNSUPPORTED_VERSION"

#: What a heartbeat with one of these epochs asks for.
_ASKED: Final = {JOINS: GroupRequest.JOIN, LEAVES_FOR_A_TIME: GroupRequest.LEAVE}


class ConsumerMembership(MembershipStateMachine[Phase, Event]):
    """The state of one member; `name_of` maps topic ids to names, as far as metadata does.

    If it `may_change`, a classic member may take its place.
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
        self._name_of = name_of
        self._names: dict[Uuid, str] = {}
        self._session = Session(settings, reads_on=True)
        self._session.session_ms = KAFKAS_SESSION_MS  # that of the settings is of classic groups
        self._told_session_ms: int | None = None
        self._interval_s = settings.heartbeat_interval_ms / 1000
        self._beat_at = _NEVER
        self._heartbeat_backoff = Backoff(client)
        self._steps = Backoff(client)
        self._resolving = Backoff(client)
        self._life = 0  # another one with each time that it joins or loses all
        self._is_prepared = False
        self._topics: frozenset[str] = frozenset()  # to subscribe to
        self._regex: str | None = None  # and the broker's pattern, beside or in place of them
        self._known: Said | None = None
        self._held: dict[TopicPartition, Uuid] = {}
        self._taking: dict[TopicPartition, Uuid] = {}
        self._assigned: Told = frozenset()
        self._unreleased_since: float | None = None
        self._unconverted_since: float | None = None
        self._convert_s = client.api_timeout_ms / 1000
        self._may_have_instance = False  # a coordinator may have the instance id as this member's
        self._releases = False  # that is told before it joins
        self._may_be_known = False  # a coordinator may have it as a member
        self._asks_for_id = False  # a heartbeat is out whose answer brings the member id
        self._lost = False
        self._until = 0.0
        self._parting: LeaveIntent | None = None
        self._leave_by = _NEVER

    # What it is

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
        """Returns the heartbeat interval, as the coordinator set it."""
        return round(self._interval_s * 1000)

    @property
    def session_ms(self) -> int:
        """Returns the session timeout: how long the member continues without an answer."""
        return self._session.session_ms

    def session_told(self, session_ms: int | None) -> None:
        """Stores the session timeout of the group; None if the broker does not disclose it."""
        self._told_session_ms = session_ms
        if session_ms is not None:
            self._session.session_ms = session_ms

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        return topic_id in (self._held.get(tp), self._taking.get(tp))

    def identity(self, now: float) -> MemberIdentity | None:
        if self.phase not in ACCEPTING_COMMITS or self._lost or now >= self.assignment_valid_until:
            return None
        instance_id = self.settings.instance_id
        group_id = self.settings.group_id
        return MemberIdentity(group_id, self.member_id, self.epoch, instance_id, has_epoch=True)

    # What its user wants

    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        self._is_prepared = self.phase is not Phase.JOINING and subscription.pattern is None
        if self._is_prepared:
            self._subscribe_to(subscription, subscription.topics)
        if self.phase in (Phase.RECONCILING, Phase.ACKNOWLEDGING, Phase.STABLE):
            self._say("the subscription is now %s", subscription)
            self._beat_at = min(self._beat_at, max(now, self._heartbeat_backoff.not_before))

    def prepared(self, step: Prepare, topics: frozenset[str], now: float) -> None:
        """Notes that a `Prepare` is done, with the topics to subscribe to by name."""
        self._steps.succeeded()
        if self.subscription is step.subscription:
            self._is_prepared = True
            self._subscribe_to(step.subscription, topics)
            self.matched(topics, now)

    def _subscribe_to(self, subscription: Subscription, topics: frozenset[str]) -> None:
        remote = subscription.remote
        self._topics, self._regex = topics, None if remote is None else remote.text

    def matched(self, topics: frozenset[str], now: float) -> None:
        """Updates the topics that match the pattern."""
        self._topics = topics
        known = self._known
        if known is None or (known.topics, known.regex) != (topics, self._regex):
            self._beat_at = min(self._beat_at, max(now, self._heartbeat_backoff.not_before))

    def request_rejoin(self, reason: str, now: float) -> None:
        text = "ignores the request to rebalance (%s): the coordinator assigns the partitions"
        self._say(text, reason)

    def _join_if_wanted(self, now: float) -> None:
        if (
            self.subscription is not None
            and not self._is_stale
            and self._transition(Event.SUBSCRIBED)
        ):
            self._begin_to_join(now)

    def _begin_to_join(self, now: float) -> None:
        self._life += 1
        self.epoch = JOINS
        self._lost = False
        self._is_prepared = False
        self._unconverted_since = None
        self._known = None
        self._held = {}
        self._assigned = frozenset()
        self._beat_at = max(now, self._heartbeat_backoff.not_before)

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
        ends = ends or (self._parting is not None and self._parting.ends)
        if self.is_out:
            if ends:
                self._transition(Event.CLOSED)
            return
        leave_s = self.settings.leave_timeout_ms / 1000
        self._parting = LeaveIntent(reason, leaves, ends, lost, until, leave_s)
        if self.phase in (Phase.PREPARE_LEAVING, Phase.LEAVING):
            self._until = min(self._until, until)
        elif self._transition(Event.LEAVE_REQUESTED):
            self._lost = lost or self.epoch <= JOINS
            self._until = until

    # What is due

    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        match self.phase:
            case Phase.JOINING | Phase.STABLE if not self._is_prepared:
                assert self.subscription is not None
                return Prepare(self.subscription) if now >= self._steps.not_before else None
            case Phase.RECONCILING:
                return self._reconciling(now)
            case Phase.FENCED:
                return Revoke(frozenset(owned), True, now)
            case Phase.PREPARE_LEAVING:
                return Revoke(frozenset(owned), self._lost, self._until)
            case Phase.LEAVING:
                return self._leaving(now)
        return None

    def _reconciling(self, now: float) -> Step:
        its = self._difference()
        if its.unresolved and not its.revoked and now >= self._resolving.not_before:
            return Resolve(its.unresolved)
        self._taking = its.added
        return ApplyAssignment(its.revoked, tuple(its.added), self._session.given_up_by(now))

    def _difference(self) -> Difference:
        assert self.subscription is not None
        return difference(self._held, self._assigned, self._named, self.subscription.wants)

    def _named(self, topic_id: Uuid) -> str | None:
        """Returns the name of a topic; it stays as long as a topic has that id."""
        if topic_id not in self._names:
            name = self._name_of(topic_id)
            if name is None:
                return None
            self._names[topic_id] = name
        return self._names[topic_id]

    def _leaving(self, now: float) -> LeaveByHeartbeat | None:
        """Returns the leave effect, once the member has an id."""
        parting = self._parting
        assert parting is not None
        if not self.member_id:
            return None
        epoch = LEAVES if parting.leaves else LEAVES_FOR_A_TIME
        until = now + parting.leave_s
        instance_id = self.settings.instance_id
        return LeaveByHeartbeat(self.member_id, instance_id, epoch, parting.reason, until)

    def _leave_in_silence(self, now: float) -> None:
        """Leaves without a heartbeat, because the coordinator does not know the member or must not
        hear of it.
        """
        if self.phase is not Phase.LEAVING:
            return
        parting = self._parting
        assert parting is not None
        waits = self._asks_for_id and now < self._leave_by
        is_told = self._may_be_known and (parting.leaves or self.settings.is_static)
        if not is_told or not (self.member_id or waits):
            self.left(now)

    def next_at(self, now: float) -> float:
        moments = []
        if self.phase in (Phase.JOINING, Phase.STABLE) and not self._is_prepared:
            moments.append(self._steps.not_before)
        if self._heartbeat_due:
            moments.append(self._beat_at)
        if self.epoch > JOINS:
            moments += [self.assignment_valid_until, self._resolving.not_before]
        if self.phase is Phase.LEAVING:
            moments.append(self._leave_by)
        return min((moment for moment in moments if moment > now), default=_NEVER)

    def tick(self, now: float) -> None:
        self._leave_in_silence(now)
        if self.epoch > JOINS and self.phase in HEARTBEATING and now >= self.assignment_valid_until:
            silent_ms = self.session_ms
            why = "what was to be given up may not have been in time (max_poll_interval_ms)"
            if self._session.is_silent(now):
                why = f"no heartbeat came through for {silent_ms} ms, the session of the group"
            self._lose(why, now)
        if self.phase is Phase.STABLE and self._is_to_reconcile(now):
            self._transition(Event.ASSIGNED)

    def _is_to_reconcile(self, now: float) -> bool:
        its = self._difference()
        asks = bool(its.unresolved) and now >= self._resolving.not_before
        return bool(its.revoked or its.added) or asks

    # Heartbeats

    @property
    def _heartbeat_due(self) -> bool:
        if self.phase is Phase.JOINING:
            return self._is_prepared and (bool(self._topics) or bool(self._regex))
        return self.epoch > JOINS and self.phase in HEARTBEATING and not self._lost

    def heartbeat_due(self, now: float) -> bool:
        """True if a heartbeat is due."""
        return self._heartbeat_due and now >= self._beat_at

    def heartbeat(self, version: int, now: float) -> Beat | None:
        """Returns the heartbeat to send now; None if none is due any more.

        Raises UnsupportedVersionError for a pattern that the coordinator is too old for.
        """
        if not self.heartbeat_due(now):
            return None
        if self._releases and self.phase is Phase.JOINING:
            instance_id = self.settings.instance_id
            leaving = LeaveByHeartbeat(self.member_id, instance_id, LEAVES_FOR_A_TIME, "", now)
            request = leaving.request(self.settings.group_id)
            return Beat(request, Said(frozenset(), None, frozenset()), self._life, now)
        if not self.member_id and version >= FIRST_OWN_ID:
            self.member_id = self._own_id
        says = Said(self._topics, self._regex, told_of(self._held))
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
        self._asks_for_id = not self.member_id
        return Beat(request, says, self._life, now)

    def on_heartbeat_response(
        self, beat: Beat, outcome: ConsumerGroupHeartbeatResponse | KprotoError, now: float
    ) -> Meaning | None:
        """Processes the outcome of a heartbeat; returns what its error means, if it counts."""
        if self._asks_for_id:
            self._asks_for_id = False
            if isinstance(outcome, ConsumerGroupHeartbeatResponse) and not outcome.error_code:
                self.member_id = outcome.member_id or ""
        asked = _ASKED.get(beat.request.member_epoch, GroupRequest.HEARTBEAT)
        if isinstance(outcome, ConsumerGroupHeartbeatResponse) and outcome.error_code:
            outcome = error_in(outcome, asked, self.settings.group_id)
        counts = beat.life == self._life and self._heartbeat_due
        if beat.request.member_epoch == LEAVES_FOR_A_TIME:
            return self._let_go(outcome, now)
        if isinstance(outcome, KprotoError):
            meaning = meaning_of(asked, outcome)
            if meaning is not Meaning.UNRELEASED:  # an answer was lost, or said nothing of that
                self._may_have_instance = True
            if counts:
                self._on_heartbeat_failed(meaning, outcome, asked, now)
                return meaning
            return meaning if meaning is Meaning.FIND_COORDINATOR else None
        if counts:
            self._answered(beat, outcome, now)
        return None

    def on_heartbeat_not_sent(self, error: KprotoError, now: float) -> Meaning:
        """Processes a due heartbeat that could not be sent."""
        asked = GroupRequest.JOIN if self.epoch == JOINS else GroupRequest.HEARTBEAT
        meaning = meaning_of(asked, error)
        if self._heartbeat_due:
            self._on_heartbeat_failed(meaning, error, asked, now)
        return meaning

    def _on_heartbeat_failed(
        self, meaning: Meaning, error: KprotoError, asked: GroupRequest, now: float
    ) -> None:
        self._known = None  # all is said again
        self._heartbeat_backoff.failed(now, at_once=meaning is Meaning.MEMBER_UNKNOWN)
        self._beat_at = self._heartbeat_backoff.not_before
        self._follow(meaning, error, asked, now)

    def _answered(self, beat: Beat, answer: ConsumerGroupHeartbeatResponse, now: float) -> None:
        """Processes an accepted heartbeat, which renews the session."""
        self._heartbeat_backoff.succeeded()
        self._unreleased_since = None
        self._unconverted_since = None
        self._may_have_instance = True
        assigned = assigned_in(answer)
        self._session.heard(beat.sent_at, calm=self._was_calm(beat, assigned))
        self._known = beat.said
        if answer.heartbeat_interval_ms > 0:
            self._take_interval(answer.heartbeat_interval_ms)
        self._beat_at = beat.sent_at + self._interval_s
        if self.member_id and answer.member_id not in (None, "", self.member_id):
            self.member_id = answer.member_id or self.member_id
        self.epoch = answer.member_epoch
        if assigned is not None:
            if assigned != self._assigned:
                self._resolving.succeeded()
            self._assigned = assigned
            self._names = {each: its for each, its in self._names.items() if self._uses(each)}
        if self._topics != beat.said.topics or self._regex != beat.said.regex:
            self._beat_at = now  # what is wanted has changed meanwhile
        if self.phase is Phase.JOINING:
            self._say("joined at epoch %d, as member %s", self.epoch, self.member_id)
            self._transition(Event.JOINED)
        elif self.phase is Phase.ACKNOWLEDGING:
            if beat.said.partitions == told_of(self._held) and beat.tells:
                self._transition(Event.ACKNOWLEDGED)
            else:
                self._beat_at = now
        if self.phase is Phase.STABLE and self._is_to_reconcile(now):
            self._transition(Event.ASSIGNED)

    def _take_interval(self, interval_ms: int) -> None:
        """Stores the heartbeat interval; without a known session timeout it determines that too.

        Heartbeats are as frequent while the coordinator may wait for the member.
        """
        if self._told_session_ms is None:
            self._session.session_ms = session_by(interval_ms)
        limits = (self.session_ms, self.settings.max_poll_interval_ms)
        self._interval_s = min(interval_ms, min(limits) / BEATS_IN_TIME) / 1000
        self._session.interval_s = self._interval_s

    def _was_calm(self, beat: Beat, assigned: Told | None) -> bool:
        """True if the coordinator waited for no revocation when it got that heartbeat.

        It would have said so in the answer to the one before, unless that answer was lost.
        """
        before = self._assigned if self._known is not None or assigned is None else assigned
        return beat.said.partitions <= before

    def _uses(self, topic_id: Uuid) -> bool:
        return topic_id in self._held.values() or any(
            each == topic_id for each, _ in self._assigned
        )

    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        current = (identity.member_id, identity.generation) == (self.member_id, self.epoch)
        if not current or not self._heartbeat_due:
            return
        meaning = meaning_of(GroupRequest.COMMIT, error)
        if meaning is Meaning.STALE:
            self._beat_at = min(self._beat_at, max(now, self._heartbeat_backoff.not_before))
        elif meaning in (Meaning.MEMBER_UNKNOWN, Meaning.FENCED):
            self._follow(meaning, error, GroupRequest.COMMIT, now)

    # What came of a step

    def resolved(self, now: float) -> None:
        """Notes that a `Resolve` is done: ids without a name are requested again later."""
        if self._difference().unresolved:
            self._resolving.failed(now)
        else:
            self._resolving.succeeded()

    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        for tp in step.revoked:
            self._held.pop(tp, None)
        self._held.update((tp, self._taking[tp]) for tp in step.added)
        if self._transition(Event.RECONCILED):
            self._beat_at = max(now, self._heartbeat_backoff.not_before)

    def on_revoked(self, now: float) -> None:
        self._held = {}
        if self._lost:
            self.epoch = JOINS
        self._transition(Event.REVOKED)
        if self.phase is Phase.JOINING:
            self._begin_to_join(now)
        elif self.phase is Phase.LEAVING:
            assert self._parting is not None
            self._leave_by = now + self._parting.leave_s
            self._leave_in_silence(now)

    def left(self, now: float) -> None:
        parting, self._parting = self._parting, None
        assert parting is not None
        self._leave_by = _NEVER
        self._may_be_known = False
        self._asks_for_id = False
        self._life += 1
        self.epoch = JOINS
        self._lost = False
        self._steps.succeeded()
        late = Event.LEFT_STALE if self._is_stale else Event.LEFT
        self._transition(Event.CLOSED if parting.ends else late)
        if not parting.ends:
            self._join_if_wanted(now)

    # Errors

    def failed(self, error: KprotoError, now: float) -> Meaning:
        asked = GroupRequest.LEAVE if self.phase is Phase.LEAVING else GroupRequest.COORDINATOR
        meaning = meaning_of(asked, error)
        if asked is GroupRequest.LEAVE:  # it was tried: the session ends by itself
            self.left(now)
        else:
            self._steps.failed(now)
            self._follow(meaning, error, asked, now)
        return meaning

    def _follow(
        self, meaning: Meaning, error: KprotoError, asked: GroupRequest, now: float
    ) -> None:
        """Does what an error means; the following heartbeat is known already."""
        match meaning:
            case Meaning.MEMBER_UNKNOWN:
                self._may_be_known = False
                self._lose(str(error), now)
            case Meaning.UNRELEASED:
                self._wait_for_release(error, now)
            case Meaning.UNCONVERTED if not self._may_change:
                self._wait_for_conversion(error, now)
            case Meaning.OTHER_PROTOCOL | Meaning.UNCONVERTED:
                self._refuse_kind(error, now)
            case Meaning.FENCED | Meaning.FAIL:
                self.fail(error, now, leaves=meaning is Meaning.FAIL)
            case Meaning.FIND_COORDINATOR if self._heartbeat_backoff.count + self._steps.count == 1:
                self._say("%s is tried again: %s", asked.value, error)

    def _wait_for_release(self, error: KprotoError, now: float) -> None:
        """Retries while another member has the instance id, for the length of a session.

        That member may have gone without a word; or it stays; or it was this member, which lost its
        epoch.
        """
        if self._may_have_instance and self.member_id:
            self._may_have_instance = False
            self._releases = True
            self._beat_at = now
        elif self._unreleased_since is None:
            self._unreleased_since = now
            text = "waiting until the session of another instance %s is over: %s"
            self._say(text, self.settings.instance_id, error, level=logging.WARNING)
        elif now - self._unreleased_since > self.session_ms / 1000 + self._interval_s:
            self.fail(error, now, leaves=False)

    def _wait_for_conversion(self, error: KprotoError, now: float) -> None:
        """Retries while the classic members seem to be in a rebalance, as for a commit."""
        if self._unconverted_since is None:
            self._unconverted_since = now
            text = "waiting until the classic group can be converted: %s"
            self._say(text, error, level=logging.WARNING)
        elif now - self._unconverted_since > self._convert_s:
            self.fail(error, now, leaves=False)

    def _let_go(
        self, outcome: ConsumerGroupHeartbeatResponse | KprotoError, now: float
    ) -> Meaning | None:
        """Processes the release of the instance id, which is refused if another member has it."""
        meaning = (
            meaning_of(GroupRequest.LEAVE, outcome) if isinstance(outcome, KprotoError) else None
        )
        if meaning in (Meaning.RETRY, Meaning.FIND_COORDINATOR):
            self._heartbeat_backoff.failed(now)
            self._beat_at = self._heartbeat_backoff.not_before
            return meaning
        self._releases = False
        self._beat_at = now
        return None

    def _refuse_kind(self, error: KprotoError, now: float) -> None:
        """Ends this member: another look at the group decides the protocol, or it fails."""
        if self._may_change:
            is_certain = isinstance(error, BrokerResponseError) and error.name == _TURNED_OFF
            error = GroupProtocolMismatchError(str(error), is_certain=is_certain)
        self.fail(error, now, leaves=False)

    def _lose(self, why: str, now: float) -> None:
        """Notes that the assignment may belong to other members by now."""
        if self.phase is Phase.PREPARE_LEAVING and self._lost:
            return
        if not self._transition(Event.FENCED):
            return
        if self.epoch > JOINS:
            self._say("out of epoch %d: %s", self.epoch, why, level=logging.WARNING)
        self._life += 1
        self.epoch = JOINS
        if self.phase is Phase.JOINING:
            self._begin_to_join(now)
        else:
            self._lost = True

    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        self._note_failure(error)
        if not leaves:
            self._may_be_known = False
        tells = leaves and not self.settings.is_static
        self.begin_leave(
            "the consumer has failed", now, leaves=tells, ends=True, lost=True, until=now
        )
        if (
            self.phase is Phase.PREPARE_LEAVING
            and not self._lost
            and self._transition(Event.FENCED)
        ):
            self._lost = True  # what was being revoked is lost
