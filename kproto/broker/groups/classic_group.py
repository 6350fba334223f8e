"""One classic group: what requests and the passing of time make of it, by the table in `states`.

Time is lazy: whoever touches a group calls `advance` first, which carries out what has come due,
each at its own moment. What a request waits for is an `Awaited`; `next_ms` says when the group next
changes by itself, and who waits is notified when that, or an answer, has come nearer. Knows no
message, no clock and no coordinator.

KIP-62, 134, 345, 394, 559, 800, 814. The order of checks is that of a coordinator of Kafka 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ...protocol.consumer_protocol import PROTOCOL_TYPE
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..log_escaping import log_safe
from ..watchable import Watchable
from .admission import asks, has_room, supports
from .answers import NO_ERROR, Awaited, JoinAnswer, SyncAnswer, ToldMember
from .asked import Joining, Leaving, Syncing
from .classic_group_state import CAME_FROM, Event, GroupState, Then, then
from .classic_members import Roster
from .clock_reading import Moment
from .committed_offsets import Offsets
from .group_config import GroupLimits
from .group_metadata import GroupMetadata
from .kept import fill, metadata_of
from .members import Member, ProtocolsOf
from .phases import JoinPhase, SyncPhase

__all__ = ["Group"]

logger = logging.getLogger("kproto.broker")

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState


class Group(Watchable):
    """A new one is Empty. `store` is called when what is kept of it is about to change.

    It raises where that cannot be written; then it has not happened, and who asked for it hears so.
    """

    def __init__(
        self,
        group_id: str,
        limits: GroupLimits,
        store: Callable[[Group, Moment], None],
        now: Moment,
    ) -> None:
        super().__init__()
        self.group_id = group_id
        self.state = EMPTY
        #: Since when, in ms since 1970.
        self.state_since_ms: int | None = now.date_ms
        self.generation = 0
        #: That of the members, such as `consumer`; None for a group that never had one.
        self.protocol_type: str | None = None
        #: That of the generation, such as `range`.
        self.protocol: str | None = None
        self.offsets = Offsets()
        self._limits = limits
        self._store = store
        self._roster = Roster()
        self._former = DEAD
        self._topics: frozenset[str] | None = None
        #: Members that have not sent SyncGroup in this generation.
        self._to_sync: set[str] = set()
        self._join_phase: JoinPhase | None = None
        self._sync_phase: SyncPhase | None = None
        #: Somebody joined since the delay of the first rebalance began.
        self._grew = False
        self._answered = False

    # What others want to know

    @property
    def type(self) -> str:
        return "classic"

    @property
    def members(self) -> dict[str, Member]:
        """By member id, in the order in which they joined. Not to be changed."""
        return self._roster.members

    @property
    def static_ids(self) -> dict[str, str]:
        """The member ids of static members, by instance id. Not to be changed."""
        return self._roster.static_ids

    @property
    def pending_ids(self) -> tuple[str, ...]:
        """Member ids that were given to somebody who has not joined yet (KIP-394)."""
        return tuple(self._roster.pending)

    @property
    def leader(self) -> str | None:
        """The member id of the leader."""
        return self._roster.leader

    @property
    def last_empty_at(self) -> int | None:
        """Since when nobody is a member, in ms since 1970; None while somebody is."""
        return self.state_since_ms if self.state is EMPTY else None

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic; where that cannot be known, whether it may."""
        if self._topics is None:
            return self.protocol_type == PROTOCOL_TYPE
        return topic in self._topics

    @property
    def next_ms(self) -> int | None:
        """When the group next changes by itself, as `Moment.ms`; None for never."""
        return min(
            (
                *self._roster.pending.values(),
                *(it.deadline_ms for it in self.members.values() if it.deadline_ms is not None),
                *(it.ends_ms for it in (self._join_phase, self._sync_phase) if it is not None),
            ),
            default=None,
        )

    # What a request does

    def join(self, asked: Joining, new_id: str, now: Moment) -> Awaited[JoinAnswer]:
        """Take a member in, or in again; `new_id` is for one that has no id yet."""
        before = self._enter(now)
        awaited = self._join(asked, new_id, now)
        self._leave_off(before, now)
        return awaited

    def sync(self, asked: Syncing, now: Moment) -> Awaited[SyncAnswer]:
        """Give a member its assignment, or take those of the leader."""
        before = self._enter(now)
        awaited = self._sync(asked, now)
        self._leave_off(before, now)
        return awaited

    def heartbeat(
        self, member_id: str, instance_id: str | None, generation: int, now: Moment
    ) -> None:
        """Let a session go on.

        Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
        """
        before = self._enter(now)
        member = self._roster.check(member_id, instance_id)
        self._check_generation(generation)
        self._live_on(member, now)
        self._leave_off(before, now)  # a shorter session than before is over sooner
        if then(Event.HEARTBEAT, self.state) is Then.CALL_BACK:
            raise api_error("REBALANCE_IN_PROGRESS", f"group {self.group_id!r} rebalances")

    def leave(self, leaving: Iterable[Leaving], now: Moment) -> list[str]:
        """Let members go; for each the name of an error code."""
        before = self._enter(now)
        errors = [self._leave(one) for one in leaving]
        if NO_ERROR in errors:
            self._carry_out(Event.LEFT, "members left", now)
        self._leave_off(before, now)
        return errors

    def check_deletable(self, now: Moment) -> None:
        """Raises NON_EMPTY_GROUP."""
        self.advance(now)
        if then(Event.DELETED, self.state) is not Then.REMOVE:
            raise api_error("NON_EMPTY_GROUP", f"group {self.group_id!r} is {self.state}")

    # What time does

    def advance(self, now: Moment) -> None:
        """Carry out what has come due, each at its own moment."""
        before = self.next_ms
        while (due := self.next_ms) is not None and due <= now.ms:
            self._come_due(now.at(due))
        self._notify_if_nearer(before)

    def _come_due(self, now: Moment) -> None:
        if self._join_phase is not None and self._join_phase.ends_ms <= now.ms:
            self._end_join_phase(self._join_phase, now)
        elif self._sync_phase is not None and self._sync_phase.ends_ms <= now.ms:
            self._end_sync_phase(self._sync_phase, now)
        else:
            self._end_sessions(now)

    def _end_join_phase(self, phase: JoinPhase, now: Moment) -> None:
        longer = phase.put_off(self._limits.initial_rebalance_delay_ms) if self._grew else None
        if longer is None:
            self._begin_generation(now)
        else:
            self._join_phase, self._grew = longer, False

    def _end_sync_phase(self, phase: SyncPhase, now: Moment) -> None:
        self._sync_phase = None
        if phase.generation == self.generation and self._to_sync:
            for member_id in tuple(self._to_sync):
                self._remove(member_id)
            self._rebalance("members sent no SyncGroup in time", now)

    def _end_sessions(self, now: Moment) -> None:
        for member_id, deadline_ms in tuple(self._roster.pending.items()):
            if deadline_ms <= now.ms:
                self._remove(member_id)
                self._carry_out(Event.PENDING_OVER, "a new member did not join", now)
                return
        for member in self.members.values():
            if member.deadline_ms is not None and member.deadline_ms <= now.ms:
                member.deadline_ms = None
                if member.is_new or not member.is_waiting:
                    self._remove(member.member_id)
                    said = log_safe(member.member_id)
                    self._carry_out(Event.SESSION_OVER, f"the session of {said} is over", now)
                return

    # Where a coordinator goes and comes

    def turn_back(self) -> None:
        """All that wait hear that the group rebalances, and stay members.

        Nobody's session begins anew by that, so one that does not come back is missed late.
        """
        self._tell_waiting("REBALANCE_IN_PROGRESS")
        self._notify_if_nearer(self.next_ms)

    def _tell_waiting(self, error: str) -> None:
        for member in self.members.values():
            self._answer_join(member, JoinAnswer(member.member_id, error))
            self._answer_sync(member, SyncAnswer(error))

    def unload(self, error: str = "NOT_COORDINATOR") -> None:
        """The coordinator is one no more: all that wait hear so, and nothing is due any more."""
        self._tell_waiting(error)
        self._roster.clear()
        self._to_sync.clear()
        self._join_phase = self._sync_phase = None
        self._answered = False
        self.notify()

    def restore(self, stored: GroupMetadata, now: Moment) -> None:
        """Be what the log says, a stable generation or an empty group; sessions begin anew."""
        self.generation, self.protocol = stored.generation, stored.protocol
        self.protocol_type, self.state_since_ms = stored.protocol_type, stored.state_ms
        self.state = STABLE if stored.members else EMPTY
        fill(self._roster, stored, now)
        self._topics = self._roster.subscribed(self.protocol_type, self.protocol)
        if len(self.members) > self._limits.max_size:
            self._rebalance("the group is larger than group_max_size", now)

    def begin_anew(self, protocols: ProtocolsOf, reason: str | None, now: Moment) -> None:
        """Have what members of a group support that was of the consumer protocol.

        For a reason they join again.
        """
        for member_id, its in protocols.items():
            self.members[member_id].protocols = its
        if reason is not None:
            self._rebalance(reason, now)

    @property
    def metadata(self) -> GroupMetadata:
        """What is stored of it: a stable generation, or an empty group."""
        return metadata_of(
            self._roster, self.generation, self.protocol_type, self.protocol, self.state_since_ms
        )

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises UNKNOWN_MEMBER_ID, and FENCED_INSTANCE_ID for a former self."""
        self._roster.check(member_id, instance_id)

    def live_on(self, member_id: str, now: Moment) -> None:
        """A member has shown that it lives, as a commit does; its session begins anew."""
        before = self._enter(now)
        self._live_on(self.members[member_id], now)
        self._leave_off(before, now)

    def bury(self) -> None:
        """The group is deleted."""
        self.state = DEAD

    # JoinGroup

    def _join(self, asked: Joining, new_id: str, now: Moment) -> Awaited[JoinAnswer]:
        if not has_room(self._roster, self.state, self._limits.max_size, asked.member_id):
            self._remove(asked.member_id)
            return _refused("GROUP_MAX_SIZE_REACHED", "")
        if not supports(self._roster, self.state, self.protocol_type, asked):
            return _refused("INCONSISTENT_GROUP_PROTOCOL", asked.member_id)
        if not asked.member_id:
            return self._join_without_id(asked, new_id, now)
        if asked.member_id in self._roster.pending:
            if asked.instance_id is not None:  # ids are given to dynamic members alone
                return _refused("UNKNOWN_SERVER_ERROR", "")
            return self._add(asked, asked.member_id, now)
        try:
            member = self._roster.check(asked.member_id, asked.instance_id)
        except BrokerResponseError as error:
            return Awaited(JoinAnswer(asked.member_id, error.name))
        return self._join_again(member, asked, now)

    def _join_without_id(self, asked: Joining, new_id: str, now: Moment) -> Awaited[JoinAnswer]:
        if asked.instance_id is not None:
            known = self.static_ids.get(asked.instance_id)
            if known is not None:
                return self._replace(self.members[known], asked, new_id, now)
        elif asked.needs_member_id:
            self._roster.pending[new_id] = now.ms + asked.session_timeout_ms
            return _refused("MEMBER_ID_REQUIRED", new_id)
        return self._add(asked, new_id, now)

    def _add(self, asked: Joining, member_id: str, now: Moment) -> Awaited[JoinAnswer]:
        awaited = Awaited[JoinAnswer]()
        member = Member(
            member_id,
            asked.instance_id,
            asked.client_id,
            asked.client_host,
            asked.session_timeout_ms,
            asked.rebalance_timeout_ms,
            asked.protocols,
            is_new=True,
            deadline_ms=now.ms + self._limits.new_member_join_timeout_ms,
            joining=awaited,
        )
        if self.state is PREPARING and self._former is EMPTY:
            self._grew = True
        if not self.members:
            self.protocol_type = asked.protocol_type
        self._roster.add(member)
        self._carry_out(Event.NEW_MEMBER, asked.because("a new member"), now)
        return awaited

    def _join_again(self, member: Member, asked: Joining, now: Moment) -> Awaited[JoinAnswer]:
        event = Event.SAME_REJOINED
        if asked.protocols != member.protocols:
            event = Event.CHANGED_REJOINED
        elif member.member_id == self.leader:
            event = Event.LEADER_REJOINED
        if then(event, self.state) is Then.TELL:
            leads = member.member_id == self.leader
            return Awaited(self._told(member, self._roster.told(self.protocol) if leads else ()))
        awaited = asks(member, asked)
        self._carry_out(event, asked.because(event.value), now)
        return awaited

    def _replace(
        self, former: Member, asked: Joining, new_id: str, now: Moment
    ) -> Awaited[JoinAnswer]:
        """A static member has begun anew: its former self hears so, its assignment stays."""
        former_leader = self.leader
        self._answer_join(former, JoinAnswer(former.member_id, "FENCED_INSTANCE_ID"))
        self._answer_sync(former, SyncAnswer("FENCED_INSTANCE_ID"))
        member = self._roster.replace(former, new_id)
        self._awaits_sync_of(new_id, former.member_id)
        self._live_on(member, now)  # for as long as its former self wanted
        awaited = asks(member, asked)
        event = Event.REPLACED
        if self.state is STABLE and self._roster.elect_protocol() != self.protocol:
            event = Event.REPLACED_CHANGED
        if then(event, self.state) is not Then.TELL_REPLACED:
            self._carry_out(event, asked.because(event.value), now)
            return awaited
        try:
            self._store(self, now)
        except BrokerResponseError as error:
            told = replace(self._told(member, ()), member_id="", leader=former_leader or "")
            self._answer_join(member, replace(told, error=error.name))
            self._take_back(former, member, now)
            return awaited
        leads = member.member_id == self.leader
        if asked.may_skip:
            told = replace(
                self._told(member, self._roster.told(self.protocol) if leads else ()),
                skip_assignment=leads,
            )
        else:  # who cannot skip it shall not take itself for the leader
            told = replace(self._told(member, ()), leader=former_leader or "")
        self._answer_join(member, told)
        return awaited

    def _take_back(self, former: Member, member: Member, now: Moment) -> None:
        """A static member has not begun anew: its former self is a member again, as it was."""
        self._roster.swap(member, former)
        self._awaits_sync_of(former.member_id, member.member_id)
        self._live_on(former, now)

    def _awaits_sync_of(self, member_id: str, instead_of: str) -> None:
        if instead_of in self._to_sync:
            self._to_sync.remove(instead_of)
            self._to_sync.add(member_id)

    # SyncGroup

    def _sync(self, asked: Syncing, now: Moment) -> Awaited[SyncAnswer]:
        try:
            member = self._roster.check(asked.member_id, asked.instance_id)
            self._check_generation(asked.generation)
        except BrokerResponseError as error:
            return Awaited(SyncAnswer(error.name))
        if not asked.is_of(self.protocol_type, self.protocol):
            return Awaited(SyncAnswer("INCONSISTENT_GROUP_PROTOCOL"))
        leads = member.member_id == self.leader
        what = then(Event.LEADER_SYNCED if leads else Event.SYNCED, self.state)
        if what is Then.REBALANCE_IN_PROGRESS:
            return Awaited(SyncAnswer("REBALANCE_IN_PROGRESS"))
        self._to_sync.discard(member.member_id)
        if not self._to_sync:
            self._sync_phase = None
        if what is Then.TELL:
            return Awaited(self._assigned(member))
        awaited = member.syncing = member.syncing or Awaited()
        if what is Then.ASSIGN:
            self._assign(asked.assignments, now)
        return awaited

    def _assign(self, assignments: Mapping[str, bytes], now: Moment) -> None:
        """Who is not named is assigned nothing; nobody is, where that cannot be written."""
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        try:
            self._store(self, now)
        except BrokerResponseError as error:
            self._take_back_assignments(error.name, now)
            self._rebalance(f"the assignments are not written: {error}", now)
            return
        self._move(STABLE, "the leader assigned", now)
        for member in self.members.values():
            if self._answer_sync(member, self._assigned(member)):
                self._live_on(member, now)

    def _take_back_assignments(self, error: str, now: Moment) -> None:
        """Nobody is assigned anything, and who waits for it hears of the error."""
        for member in self.members.values():
            member.assignment = b""
            if self._answer_sync(member, SyncAnswer(error)):
                self._live_on(member, now)

    # Rebalances

    def _carry_out(self, event: Event, reason: str, now: Moment) -> None:
        """What the table says for the group as a whole."""
        what = then(event, self.state)
        if what is Then.REBALANCE:
            self._rebalance(reason, now)
        elif self._may_go_on(what) and self._roster.have_all_joined:
            self._begin_generation(now)

    def _may_go_on(self, what: Then) -> bool:
        """Whether joining is over once all have joined; a first rebalance waits for its delay."""
        return what is Then.GATHER_AT_ONCE or (what is Then.GATHER and self._former is not EMPTY)

    def _rebalance(self, reason: str, now: Moment) -> None:
        """The members shall join again; a first rebalance waits for more of them (KIP-134)."""
        if self.state is COMPLETING:
            self._take_back_assignments("REBALANCE_IN_PROGRESS", now)
        self._to_sync.clear()
        self._sync_phase = None
        timeout_ms = self._roster.rebalance_timeout_ms
        is_first = self.state is EMPTY
        self._move(PREPARING, reason, now)
        if is_first:
            delay_ms = self._limits.initial_rebalance_delay_ms
            self._join_phase = JoinPhase.first(now.ms, delay_ms, timeout_ms)
        elif self._roster.have_all_joined:
            self._begin_generation(now)
        else:
            self._join_phase = JoinPhase(now.ms + timeout_ms)

    def _begin_generation(self, now: Moment) -> None:
        """The next generation, of all who have joined and of static members, who may come later."""
        self._join_phase = None
        for member in tuple(self.members.values()):
            if member.joining is None and member.instance_id is None:
                self._remove(member.member_id)
        if not self._roster.elect_leader() and self.members:
            # Static members alone, none of which has joined: their sessions decide.
            self._join_phase = JoinPhase(now.ms + max(1, self._roster.rebalance_timeout_ms))
            return
        self.generation += 1
        self._to_sync = set(self.members)
        if not self.members:
            self.protocol = None
            self._topics = self._roster.subscribed(self.protocol_type, self.protocol)
            self._move(EMPTY, "nobody is left", now)
            self._store_empty(now)
            return
        self.protocol = self._roster.elect_protocol()
        self._topics = self._roster.subscribed(self.protocol_type, self.protocol)
        self._move(COMPLETING, "all have joined, or their time is over", now)
        self._sync_phase = SyncPhase(now.ms + self._roster.rebalance_timeout_ms, self.generation)
        told = self._roster.told(self.protocol)
        for member in self.members.values():
            leads = member.member_id == self.leader
            self._answer_join(member, self._told(member, told if leads else ()))
            self._live_on(member, now)
            member.is_new = False

    def _store_empty(self, now: Moment) -> None:
        """Where that cannot be written, the next coordinator has members whose sessions end."""
        try:
            self._store(self, now)
        except BrokerResponseError as error:
            logger.warning("group %s is not written: %s", log_safe(self.group_id), error)

    def _move(self, state: GroupState, reason: str, now: Moment) -> None:
        assert self.state in CAME_FROM[state], f"{self.state} cannot become {state}"
        self._former, self.state = self.state, state
        self.state_since_ms = now.date_ms
        logger.info(
            "group %s is %s, generation %d, %d members: %s",
            log_safe(self.group_id),
            state,
            self.generation,
            len(self.members),
            log_safe(reason),
        )

    # Members

    def _leave(self, leaving: Leaving) -> str:
        """Let one go; the name of an error code."""
        try:
            member_id = self._roster.id_of(leaving.member_id, leaving.instance_id)
        except BrokerResponseError as error:
            return error.name
        self._remove(member_id)
        logger.info(
            "group %s: %s left: %s",
            log_safe(self.group_id),
            log_safe(member_id),
            log_safe(leaving.reason or "no reason given"),
        )
        return NO_ERROR

    def _remove(self, member_id: str) -> None:
        """Let a member go, or an id; what it waits for is answered with UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is not None:
            self._answer_join(member, JoinAnswer("", "UNKNOWN_MEMBER_ID"))
            self._answer_sync(member, SyncAnswer("UNKNOWN_MEMBER_ID"))
        self._roster.remove(member_id)

    def _live_on(self, member: Member, now: Moment) -> None:
        member.deadline_ms = now.ms + member.session_timeout_ms

    def _check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise api_error(
                "ILLEGAL_GENERATION",
                f"group {self.group_id!r} has generation {self.generation}, not {generation}",
            )

    # Answers

    def _told(self, member: Member, members: tuple[ToldMember, ...]) -> JoinAnswer:
        return JoinAnswer(
            member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=members,
        )

    def _assigned(self, member: Member) -> SyncAnswer:
        return SyncAnswer(
            protocol_type=self.protocol_type, protocol=self.protocol, assignment=member.assignment
        )

    def _answer_join(self, member: Member, answer: JoinAnswer) -> None:
        awaited, member.joining = member.joining, None
        if awaited is not None:
            awaited.answer = answer
            self._answered = True

    def _answer_sync(self, member: Member, answer: SyncAnswer) -> bool:
        awaited, member.syncing = member.syncing, None
        if awaited is not None:
            awaited.answer = answer
            self._answered = True
        return awaited is not None

    # Whoever waits

    def _enter(self, now: Moment) -> int | None:
        self.advance(now)
        return self.next_ms

    def _leave_off(self, before: int | None, now: Moment) -> None:
        """After a request: what is due at once is done, as a delay of nothing is."""
        self.advance(now)
        self._notify_if_nearer(before)

    def _notify_if_nearer(self, before: int | None) -> None:
        """Wake who waits where there is an answer, or something earlier to wait for."""
        after = self.next_ms
        is_nearer = after is not None and (before is None or after < before)
        if self._answered or is_nearer:
            self._answered = False
            self.notify()


def _refused(error: str, member_id: str) -> Awaited[JoinAnswer]:
    return Awaited(JoinAnswer(member_id, error))
