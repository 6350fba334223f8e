"""Decides, as a state machine, what a member of a classic group does next.

Owns the member id and generation; `session` counts how long a broker knows the member. Knows no
connection, no clock, no task and no record: times are passed in, in seconds; it returns effects,
and the driver reports their results. `phases` has the transition table, with KIPs.

Effects, one at a time, and heartbeats run concurrently. A heartbeat may show that the running
effect is outdated: `turn` has changed then, and the result does not count.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from ....messages.heartbeat_request import HeartbeatRequest
from ....messages.join_group_request import JoinGroupRequest
from ....messages.join_group_response import JoinGroupResponse
from ....messages.sync_group_response import SyncGroupResponse
from ....protocol.consumer_protocol import PROTOCOL_TYPE
from ....protocol.error_codes import code_of, error_of_code
from ....wire.errors import BrokerResponseError, DecodeError, KprotoError
from ...metadata.cluster import TopicPartition
from ...settings import ClientSettings
from ..assignors.subscriptions import NO_GENERATION, Assignment
from ..assignors.subscriptions import Subscription as Told
from ..backoff import Backoff
from ..effects import (
    ApplyAssignment,
    Join,
    Lead,
    Leave,
    LeaveIntent,
    MemberIdentity,
    Revoke,
    Step,
    Sync,
)
from ..group_errors import GroupRequest, Meaning, meaning_of
from ..protocol_data import assignment_bytes, read_assignment
from ..session import Session
from ..settings import GroupSettings
from ..state_machine import MembershipStateMachine
from ..subscription import Subscription
from .phases import ACCEPTING_COMMITS, HEARTBEATING, TRANSITIONS, Event, Phase
from .requests import Last, heartbeat_request, join_request, sync_request

__all__ = ["ClassicMembership"]

_NEVER: Final = float("inf")

#: Phases from JoinGroup to the answer of SyncGroup.
_REBALANCING: Final = frozenset((Phase.JOINING, Phase.LEADING, Phase.SYNCING))

#: Phases of a member that is in no group, or about to leave.
_GOING: Final = frozenset((Phase.UNSUBSCRIBED, Phase.PREPARE_LEAVING, Phase.LEAVING, Phase.FATAL))

_MEMBER_ID_REQUIRED: Final = code_of("MEMBER_ID_REQUIRED")
_INCONSISTENT: Final = code_of("INCONSISTENT_GROUP_PROTOCOL")

#: Phases that a request is made in, and what it asks for.
_ASKING: Final = {
    Phase.JOINING: GroupRequest.JOIN,
    Phase.LEADING: GroupRequest.TOPICS,
    Phase.SYNCING: GroupRequest.SYNC,
    Phase.LEAVING: GroupRequest.LEAVE,
}


class ClassicMembership(MembershipStateMachine[Phase, Event]):
    """The state of one member; `rack` is its rack."""

    transitions = TRANSITIONS

    def __init__(self, settings: GroupSettings, client: ClientSettings) -> None:
        super().__init__(settings, Phase.UNSUBSCRIBED)
        self.rack = client.rack
        self.generation = NO_GENERATION
        self._cooperative = settings.cooperative
        self._session = Session(settings, reads_on=settings.cooperative)
        self._interval_s = settings.beat_interval_s
        self._beat_at = _NEVER
        self._steps = Backoff(client)
        self._heartbeat_backoff = Backoff(client)
        self._why: str | None = None  # join again, as soon as that can be
        self._join_reason = ""
        self._lost = False
        self._until = 0.0
        self._owned_generation = NO_GENERATION
        #: By assignor, what this member got last and in which generation.
        self._last: dict[str, Last] = {}
        self._is_asking_for_id = False
        self._lead: Lead | None = None
        self._leave: Leave | None = None
        self._protocol = ""
        self._assignments: dict[str, bytes] = {}
        self._assigned: list[TopicPartition] = []
        self._parting: LeaveIntent | None = None
        self._parts_by = _NEVER  # the answer to a first JoinGroup is waited for until then

    # What it is

    @property
    def assignment_valid_until(self) -> float:
        """Returns when the session may end, unless a heartbeat is answered before."""
        if self.generation < 0:
            return -_NEVER
        return self._session.calm_until if self.phase is Phase.STABLE else self._session.until

    def identity(self, now: float) -> MemberIdentity | None:
        """Returns the identity for commits; None while a broker would refuse them."""
        if self.phase not in ACCEPTING_COMMITS or self._lost or now >= self.assignment_valid_until:
            return None
        instance_id = self.settings.instance_id
        return MemberIdentity(self.settings.group_id, self.member_id, self.generation, instance_id)

    @property
    def has_no_id(self) -> bool:
        """True if the coordinator gives the member an id before it joins (KIP-394)."""
        return not self.member_id and not self.settings.is_static

    @property
    def is_out(self) -> bool:
        return self.phase in (Phase.UNSUBSCRIBED, Phase.FATAL)

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.FATAL

    @property
    def is_reading(self) -> bool:
        return self.phase is Phase.STABLE

    @property
    def _is_leaving(self) -> bool:
        return self.phase in _GOING or self._is_parting

    # What its user wants

    def _on_subscription_changed(self, subscription: Subscription, now: float) -> None:
        self.request_rejoin(f"the subscription is now {subscription}", now)

    def _join_if_wanted(self, now: float) -> None:
        if (
            self.subscription is not None
            and not self._is_stale
            and self._transition(Event.SUBSCRIBED)
        ):
            self._start_due_work(now, lost=False)

    def request_rejoin(self, reason: str, now: float) -> None:
        """Requests a rebalance, at once or after the running one."""
        self._why = self._why or reason
        if self.phase is Phase.STABLE:
            self._rebalance(now)

    def _rebalance(self, now: float) -> None:
        if self._why is not None and self._transition(Event.REBALANCE):
            self._say("rebalancing: %s", self._why)
            self._start_due_work(now, lost=False)

    def _start_due_work(self, now: float, *, lost: bool) -> None:
        """Starts to revoke what the member may not keep."""
        self._lost = lost
        self._until = self._session.given_up_by(now)

    @property
    def _is_parting(self) -> bool:
        return self._parts_by != _NEVER

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
        """Revokes all and leaves, for good if it `ends`; the coordinator is told if it `leaves`.

        A JoinGroup without a member id is answered first: the answer brings the id for LeaveGroup,
        without which the group would wait for this member until its session ends. If partitions
        were kept, the running rebalance is waited for as long as leaving may take: brokers accept
        no commit of the previous generation before its end.
        """
        until = self._session.given_up_by(now) if until is None else until
        leave_s = self.settings.leave_timeout_ms / 1000
        ends = ends or (self._parting is not None and self._parting.ends)
        parting = LeaveIntent(reason, leaves, ends, lost, until, leave_s)
        if self.phase is Phase.FATAL:
            return
        if self.phase is Phase.UNSUBSCRIBED:
            if ends:
                self._transition(Event.CLOSED)
            return
        self._parting = parting
        if self.phase in (Phase.PREPARE_LEAVING, Phase.LEAVING):
            self._until = min(self._until, until)
            return
        keeps = self._cooperative and self.generation >= 0 and self.phase in _REBALANCING
        if (self._is_asking_for_id and leaves) or (keeps and not (ends or lost)):
            self._parts_by = now + leave_s
            return
        self._begin_leave(now)

    def _begin_leave(self, now: float) -> None:
        assert self._parting is not None
        self._parts_by = _NEVER
        self._is_asking_for_id = False
        until = self._parting.until
        if self.phase in _REBALANCING - ACCEPTING_COMMITS:  # perhaps for as long as others take
            until = min(until, now + self._parting.leave_s)
        if self._transition(Event.LEAVE_REQUESTED):
            self._lost = self._parting.lost or self.generation < 0
            self._until = until

    # What is due

    def step(self, now: float, owned: Collection[TopicPartition]) -> Step | None:
        """Returns the next effect, when none is running; `owned` are the partitions that
        are read.
        """
        if self.phase is Phase.JOINING:
            self._begin_leave_now(now)  # no JoinGroup is out whose answer could be waited for
        if self.phase in _ASKING and now < self._steps.not_before:
            return None
        match self.phase:
            case Phase.REVOKING:
                return Revoke(self._not_kept(owned), self._lost, self._until)
            case Phase.PREPARE_LEAVING:
                return Revoke(frozenset(owned), self._lost, self._until)
            case Phase.JOINING:
                assert self.subscription is not None
                if self.generation < 0:
                    self._beat_at = now + self._interval_s
                return Join(self.subscription)
            case Phase.LEADING:
                return self._lead
            case Phase.SYNCING:
                who = (self.settings, self.member_id, self.generation)
                return Sync(sync_request(*who, self._protocol, self._assignments))
            case Phase.ASSIGNING:
                return None if self._session.needs_beat else self._taking_on(owned, now)
            case Phase.LEAVING:
                return self._leave
        return None

    def _not_kept(self, owned: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        if self._lost or not self._cooperative or self.subscription is None:
            return frozenset(owned)
        return frozenset(tp for tp in owned if not self.subscription.wants(tp[0]))

    def next_at(self, now: float) -> float:
        """Returns when to look again; work due `now` has been started."""
        moments = [self._parts_by]
        if self.phase in _ASKING:
            moments.append(self._steps.not_before)
        if self._heartbeat_due:
            moments += [self._beat_at, self.assignment_valid_until]
        elif self._is_unsure:
            moments.append(self._beat_at)
        return min((moment for moment in moments if moment > now), default=_NEVER)

    def tick(self, now: float) -> None:
        """Notes the time: the session may have ended without a word of the broker."""
        if now >= self._parts_by:
            self._begin_leave(now)
        if self._heartbeat_due and now >= self.assignment_valid_until:
            silent_ms = self.settings.session_timeout_ms
            why = "a rebalance may have ended without this member (max_poll_interval_ms)"
            if self._session.is_silent(now):
                why = f"no heartbeat came through for {silent_ms} ms (session_timeout_ms)"
            self._lose(why, now)

    # Heartbeats

    @property
    def _heartbeat_due(self) -> bool:
        return self.generation >= 0 and self.phase in HEARTBEATING

    @property
    def _is_unsure(self) -> bool:
        """True if it waits for its first generation, and may ask whether the broker knows it."""
        return self.generation < 0 and bool(self.member_id) and self.phase is Phase.JOINING

    def heartbeat(self, now: float) -> HeartbeatRequest | None:
        """Returns the heartbeat that is due.

        While a member waits for its first generation, the heartbeat asks whether the group waits
        for it: a response to JoinGroup may be lost without a sign.
        """
        if not (self._heartbeat_due or self._is_unsure) or now < self._beat_at:
            return None
        return heartbeat_request(self.settings, self.member_id, self.generation)

    def on_heartbeat_response(
        self, request: HeartbeatRequest, error: KprotoError | None, sent_at: float, now: float
    ) -> Meaning | None:
        """Processes the outcome of a heartbeat sent then; returns what its error means, if it
        counts.
        """
        meaning = None if error is None else meaning_of(GroupRequest.HEARTBEAT, error)
        if (request.member_id, request.generation_id) != (self.member_id, self.generation):
            return meaning if meaning is Meaning.FIND_COORDINATOR else None
        if self.generation < 0:
            return self._reassured(meaning, error, now)
        if meaning in (None, Meaning.REBALANCE):
            self._heartbeat_backoff.succeeded()
            self._session.heard(sent_at, calm=meaning is None)
            self._beat_at = sent_at + self._interval_s
            # In any other phase the rebalance is known, or the next request tells of it.
            if meaning is Meaning.REBALANCE and self.phase in (Phase.STABLE, Phase.ASSIGNING):
                self.request_rejoin("the coordinator says so", now)
            return meaning
        self._heartbeat_backoff.failed(now)
        self._beat_at = self._heartbeat_backoff.not_before
        assert error is not None
        if meaning is Meaning.GENERATION_LOST and self.phase is Phase.JOINING:
            # The group has joined, and the answer that says so is under way or lost. What this
            # member reads it has claimed; nobody gets it before its session is over.
            self._beat_at = now + self._interval_s
            return None
        assert meaning is not None
        self._follow(meaning, error, GroupRequest.HEARTBEAT, now)
        return meaning

    def _reassured(
        self, meaning: Meaning | None, error: KprotoError | None, now: float
    ) -> Meaning | None:
        """Processes a heartbeat without a generation: that the member has none is no news."""
        self._beat_at = now + self._interval_s
        if not self._is_unsure:
            return meaning
        if meaning is Meaning.MEMBER_UNKNOWN:
            self.on_coordinator_moved(
                now
            )  # the answer to JoinGroup, asked again, says what becomes of the id
        elif error is not None and meaning in (Meaning.FENCED, Meaning.FAIL):
            self._follow(meaning, error, GroupRequest.HEARTBEAT, now)
        return meaning

    def on_commit_refused(
        self, error: BrokerResponseError, identity: MemberIdentity, now: float
    ) -> None:
        """Processes the error of an OffsetCommit; ignores that of an earlier generation."""
        current = (identity.member_id, identity.generation) == (self.member_id, self.generation)
        if not current or not self._heartbeat_due:
            return
        meaning = meaning_of(GroupRequest.COMMIT, error)
        if meaning is Meaning.REBALANCE:
            self.request_rejoin("a commit was refused, as the group rebalances", now)
        elif meaning is Meaning.GENERATION_LOST and self.phase is Phase.JOINING:
            return
        elif meaning in (Meaning.MEMBER_UNKNOWN, Meaning.GENERATION_LOST, Meaning.FENCED):
            self._follow(meaning, error, GroupRequest.COMMIT, now)

    # What came of a step

    def on_revoked(self, now: float) -> None:
        """Notes that a `Revoke` is done."""
        if self._lost:
            self.generation = NO_GENERATION
            self._owned_generation = NO_GENERATION
            self._lost = False
        self._transition(Event.REVOKED)
        if self.phase is Phase.LEAVING:
            self._leaving(now)

    def join_request(
        self, topics: Iterable[str], owned: Collection[TopicPartition]
    ) -> JoinGroupRequest:
        """Returns the JoinGroup of a `Join`. Raises ConfigurationError for a fault of an own
        assignor.

        It carries everything that the group must know, so that no further rebalance is needed.
        """
        self._is_asking_for_id = not self.member_id
        self._join_reason, self._why = self._why or "the consumer begins", None
        return join_request(
            self.settings,
            self.member_id,
            Told(tuple(topics), tuple(owned), self._owned_generation, self.rack),
            self._last,
            self._join_reason,
        )

    def on_join_response(
        self, response: JoinGroupResponse, sent_at: float, now: float
    ) -> Meaning | None:
        """Processes the response to a JoinGroup sent then; returns what its error means."""
        if response.error_code == _MEMBER_ID_REQUIRED and not self.member_id:
            self.member_id = response.member_id
            self._again(now)
            return Meaning.USE_MEMBER_ID
        if response.error_code:
            return self.failed(self._error(response.error_code, GroupRequest.JOIN), now)
        self._is_asking_for_id = False
        self.member_id = response.member_id
        reads_on = self._cooperative and self.generation >= 0
        self.generation = response.generation_id
        self._session.begin(self.generation, sent_at, now, reads_on=reads_on)
        beats_now = reads_on or self._session.needs_beat
        self._beat_at = now if beats_now else sent_at + self._interval_s
        if self._is_parting and not reads_on:
            self._begin_leave(now)
            return None
        leads = response.leader == response.member_id
        names = {each.name: each for each in self.settings.chosen}
        assignor = names.get(response.protocol_name or "")
        if response.protocol_type not in (None, PROTOCOL_TYPE) or assignor is None:
            return self.failed(self._error(_INCONSISTENT, GroupRequest.JOIN), now)
        self._protocol = assignor.name
        self._assignments = {}
        if leads:
            self._lead = Lead(response.members, assignor, response.skip_assignment)
        what = " as its leader" if leads else ""
        text = f"joined generation %d{what}, with %s"
        self._say(text, self.generation, self._protocol)
        self._transition(Event.ELECTED_LEADER if leads else Event.JOINED)
        return None

    def on_assignment_computed(self, assignment: Assignment) -> None:
        """Stores the assignment that the leader computed; None keeps the previous one."""
        self._assignments = {each: assignment_bytes(its) for each, its in assignment.items()}
        self._lead = None
        self._transition(Event.ASSIGNMENT_COMPUTED)

    def on_sync_response(
        self, response: SyncGroupResponse, sent_at: float, now: float
    ) -> Meaning | None:
        """Processes the response to a SyncGroup sent then; returns what its error means."""
        if response.error_code:
            return self.failed(self._error(response.error_code, GroupRequest.SYNC), now)
        wrong = response.protocol_type not in (None, PROTOCOL_TYPE)
        if wrong or response.protocol_name not in (None, self._protocol):
            return self.failed(self._error(_INCONSISTENT, GroupRequest.SYNC), now)
        try:
            tps = read_assignment(response.assignment)
        except DecodeError as error:
            return self.failed(error, now)
        self._session.calm(sent_at)
        if self._is_parting:
            self._transition(Event.SYNCED)
            self._begin_leave(now)
            return None
        assert self.subscription is not None
        self._steps.succeeded()
        self._assigned = [tp for tp in tps if self.subscription.wants(tp[0])]
        others = sorted({topic for topic, _ in tps} - {topic for topic, _ in self._assigned})
        if others and self._why is None:  # else it has unsubscribed from them since
            told = ", ".join(others)
            text = "the leader gave partitions of topics that are not subscribed to: %s"
            self._say(text, told, level=logging.WARNING)
        self._owned_generation = self.generation
        self._last[self._protocol] = Last(tuple(tps), self.generation)
        self._assignments = {}
        self._transition(Event.SYNCED)
        return None

    def _taking_on(self, owned: Collection[TopicPartition], now: float) -> ApplyAssignment:
        before, after = frozenset(owned), frozenset(self._assigned)
        added = tuple(tp for tp in self._assigned if tp not in before)
        return ApplyAssignment(before - after, added, self._session.given_up_by(now))

    def on_assignment_applied(self, step: ApplyAssignment, now: float) -> None:
        """The assignment is applied. Revoked partitions move in a second rebalance (KIP-429)."""
        if step.revoked:
            self._why = self._why or "partitions were given up, which others wait for"
        self._transition(Event.ASSIGNMENT_APPLIED)
        self._rebalance(now)

    def _leaving(self, now: float) -> None:
        """Returns the leave effect, if the coordinator knows the member and must hear of it."""
        parting = self._parting
        assert parting is not None
        if not parting.leaves or not (self.member_id or self.settings.is_static):
            self.left(now)
            return
        instance_id = self.settings.instance_id
        until = now + parting.leave_s
        self._leave = Leave(self.member_id, instance_id, parting.reason, until)

    def left(self, now: float) -> None:
        """Notes that the coordinator was told of the leave, or that its time is over."""
        parting, self._parting = self._parting, None
        assert parting is not None
        self.member_id = ""
        self.generation = self._owned_generation = NO_GENERATION
        self._why = None
        self._steps.succeeded()
        self._transition(Event.CLOSED if parting.ends else Event.LEFT)
        if not parting.ends:
            self._join_if_wanted(now)

    # Errors

    def on_coordinator_moved(self, now: float) -> None:
        """Drops the pending response: another broker coordinates."""
        if self._transition(Event.COORDINATOR_MOVED):
            self._again(now)

    def failed(self, error: KprotoError, now: float, asked: GroupRequest | None = None) -> Meaning:
        """Processes the failure of the running effect; returns what it means."""
        asked = asked or _ASKING.get(self.phase, GroupRequest.COORDINATOR)
        meaning = meaning_of(asked, error)
        if self.phase is Phase.LEAVING:  # it was tried: the session ends by itself
            self.left(now)
            return meaning
        self._follow(meaning, error, asked, now)
        return meaning

    def _error(self, code: int, asked: GroupRequest) -> BrokerResponseError:
        return error_of_code(code, f"{asked.value}: group {self.settings.group_id!r}")

    def _follow(
        self, meaning: Meaning, error: KprotoError, asked: GroupRequest, now: float
    ) -> None:
        """Does what an error means."""
        is_step = asked is not GroupRequest.HEARTBEAT and asked is not GroupRequest.COMMIT
        if is_step and self._steps.count == 0 and meaning is Meaning.FIND_COORDINATOR:
            self._say("%s is tried again: %s", asked.value, error)
        match meaning:
            case Meaning.RETRY | Meaning.FIND_COORDINATOR | Meaning.USE_MEMBER_ID:
                if is_step:
                    self._steps.failed(now)
                    self._again(now)
            case Meaning.REBALANCE:
                self._steps.failed(now, at_once=True)
                self._why = self._why or "the group rebalances already"
                self._rebalance(now)
                self._begin_leave_now(now)
            case Meaning.MEMBER_UNKNOWN | Meaning.GENERATION_LOST:
                self._steps.failed(now, at_once=True)
                if meaning is Meaning.MEMBER_UNKNOWN:
                    self.member_id = ""
                self._lose(str(error), now)
            case Meaning.FENCED | Meaning.FAIL:
                self.fail(error, now, leaves=meaning is Meaning.FAIL)

    def _again(self, now: float) -> None:
        """Repeats the request of this phase."""
        if self.phase is Phase.JOINING:
            self._is_asking_for_id = False
            self._why = self._why or self._join_reason
        self._begin_leave_now(now)

    def _begin_leave_now(self, now: float) -> None:
        """Continues a postponed leave: what it waited for does not come any more."""
        if self._is_parting:
            self._begin_leave(now)

    def _lose(self, why: str, now: float) -> None:
        """Notes that the assignment may belong to other members by now."""
        was_in = self.generation >= 0
        if not was_in and self.phase is not Phase.JOINING:
            return
        if self._transition(Event.LOST):
            if was_in:
                self._say("out of generation %d: %s", self.generation, why, level=logging.WARNING)
            self._start_due_work(now, lost=True)
            self._is_asking_for_id = False
            self.generation = NO_GENERATION
            self._why = self._why or "the membership was lost"
            self._begin_leave_now(now)

    def fail(self, error: KprotoError, now: float, *, leaves: bool) -> None:
        """Ends the member with an error, after it has left."""
        self._note_failure(error)
        tells = leaves and bool(self.member_id) and not self.settings.is_static
        if not leaves:
            self.generation = NO_GENERATION
        self.begin_leave(
            "the consumer has failed", now, leaves=tells, ends=True, lost=True, until=now
        )
        if self.phase is Phase.PREPARE_LEAVING and not self._lost and self._transition(Event.LOST):
            self._lost = True  # what was being revoked is lost
