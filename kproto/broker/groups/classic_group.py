"""Implements a group of the classic protocol; executes the actions of `classic_group_state`.

The group has no timers: callers call `advance`, which handles expired timeouts. A delayed response
is a `PendingResult`. `next_deadline_ms` is the time at which the next timeout expires. The group
notifies its watchers when a pending result is complete, and when the next deadline becomes earlier.

Sources: KIP-62, KIP-134, KIP-345, KIP-394, KIP-559, KIP-800, KIP-814. The order of checks is that
of a coordinator of Kafka 4.4.0.
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
from .classic_group_state import (
    PREVIOUS_STATES,
    Action,
    ClassicGroupState,
    Event,
    JoinDeadline,
    SyncDeadline,
    action_for,
)
from .classic_members import (
    NO_ERROR,
    ClassicMember,
    ClassicMembers,
    JoinRequest,
    JoinResult,
    LeavingMember,
    PendingJoin,
    PendingResult,
    PendingSync,
    ProtocolsOf,
    SyncRequest,
    SyncResult,
)
from .clock_reading import ClockReading
from .committed_offsets import CommittedOffsets
from .group_limits import ClassicGroupLimits
from .group_metadata import GroupMetadata, metadata_of, restore_members

__all__ = ["ClassicGroup"]

logger = logging.getLogger("kproto.broker")

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState


class ClassicGroup(Watchable):
    """Implements a classic group; a new group is Empty.

    `store` is called to store changed metadata. If `store` raises BrokerResponseError, new
    assignments or a new member id do not take effect, and the delayed requests get the error. A
    group without members becomes Empty even if `store` fails.
    """

    def __init__(
        self,
        group_id: str,
        limits: ClassicGroupLimits,
        store: Callable[[ClassicGroup, ClockReading], None],
        now: ClockReading,
    ) -> None:
        super().__init__()
        self.group_id = group_id
        self.state = EMPTY
        #: When the group entered its state, in ms since 1970; None if unknown.
        self.state_since_ms: int | None = now.timestamp_ms
        self.generation = 0
        #: The protocol type of the members, such as `consumer`; None before the first member.
        self.protocol_type: str | None = None
        #: The protocol of the generation, such as `range`.
        self.protocol: str | None = None
        self.offsets = CommittedOffsets()
        self._limits = limits
        self._store = store
        self._members = ClassicMembers()
        self._previous_state = DEAD
        self._topics: frozenset[str] | None = None
        self._join_deadline: JoinDeadline | None = None
        self._sync_deadline: SyncDeadline | None = None
        #: Whether a member has joined since the current delay of the first rebalance began.
        self._member_joined_during_delay = False

    # State of the group

    @property
    def type(self) -> str:
        return "classic"

    @property
    def members(self) -> dict[str, ClassicMember]:
        """Returns the members by member id, in the order of joining; not a copy."""
        return self._members.members

    @property
    def static_ids(self) -> dict[str, str]:
        """Returns the member ids of static members by instance id; not a copy."""
        return self._members.static_ids

    @property
    def pending_ids(self) -> tuple[str, ...]:
        """Returns the member ids sent with MEMBER_ID_REQUIRED that have not joined (KIP-394)."""
        return tuple(self._members.pending)

    @property
    def leader(self) -> str | None:
        """Returns the member id of the leader; None if the group has no members."""
        return self._members.leader

    @property
    def last_empty_at(self) -> int | None:
        """Returns the time at which the group became Empty, in ms since 1970.

        Returns None if the group is not Empty, or if the time is unknown.
        """
        return self.state_since_ms if self.state is EMPTY else None

    def is_subscribed_to(self, topic: str) -> bool:
        """Returns True if a member subscribes to the topic.

        If the subscriptions of the group are unknown, returns True if the protocol type is
        `consumer`.
        """
        if self._topics is None:
            return self.protocol_type == PROTOCOL_TYPE
        return topic in self._topics

    @property
    def next_deadline_ms(self) -> int | None:
        """Returns the time at which the next timeout expires; None if there is none.

        The time is a `ClockReading.ms`.
        """
        members_ms = self._members.next_deadline_ms
        return min(
            (
                *(() if members_ms is None else (members_ms,)),
                *(
                    it.ends_ms
                    for it in (self._join_deadline, self._sync_deadline)
                    if it is not None
                ),
            ),
            default=None,
        )

    # Requests

    def join(self, request: JoinRequest, new_id: str, now: ClockReading) -> PendingJoin:
        """Handles a JoinGroup; `new_id` is the member id to use if the request has none."""
        before = self._start_request(now)
        pending = self._join(request, new_id, now)
        self._finish_request(before, now)
        return pending

    def sync(self, request: SyncRequest, now: ClockReading) -> PendingSync:
        """Handles a SyncGroup.

        In CompletingRebalance, a follower's result is pending until the SyncGroup of the leader.
        """
        before = self._start_request(now)
        pending = self._sync(request, now)
        self._finish_request(before, now)
        return pending

    def heartbeat(
        self, member_id: str, instance_id: str | None, generation: int, now: ClockReading
    ) -> None:
        """Resets the session timeout of a member.

        Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION. After the reset, raises
        REBALANCE_IN_PROGRESS if the member must join again.
        """
        before = self._start_request(now)
        member = self._members.check(member_id, instance_id)
        self._check_generation(generation)
        member.reset_session(now.ms)
        self._finish_request(
            before, now
        )  # notifies watchers if a shorter session timeout makes the deadline earlier
        if action_for(Event.HEARTBEAT, self.state) is Action.RESET_SESSION_AND_REJOIN:
            raise api_error("REBALANCE_IN_PROGRESS", f"group {self.group_id!r} rebalances")

    def leave(self, leaving: Iterable[LeavingMember], now: ClockReading) -> list[str]:
        """Removes members; returns an error name for each, such as UNKNOWN_MEMBER_ID or NONE."""
        before = self._start_request(now)
        errors = [self._leave(one) for one in leaving]
        if NO_ERROR in errors:
            self._apply(Event.MEMBERS_LEFT, "members left", now)
        self._finish_request(before, now)
        return errors

    def check_deletable(self, now: ClockReading) -> None:
        """Raises NON_EMPTY_GROUP if the group is not Empty."""
        self.advance(now)
        if action_for(Event.GROUP_DELETED, self.state) is not Action.REMOVE:
            raise api_error("NON_EMPTY_GROUP", f"group {self.group_id!r} is {self.state}")

    # Deadlines

    def advance(self, now: ClockReading) -> None:
        """Handles the expired timeouts in order; each is handled as if `now` were its deadline."""
        before = self.next_deadline_ms
        while (due := self.next_deadline_ms) is not None and due <= now.ms:
            self._run_due(now.at(due))
        self._notify_if_earlier(before)

    def _run_due(self, now: ClockReading) -> None:
        if self._join_deadline is not None and self._join_deadline.ends_ms <= now.ms:
            self._on_join_deadline(self._join_deadline, now)
        elif self._sync_deadline is not None and self._sync_deadline.ends_ms <= now.ms:
            self._on_sync_deadline(self._sync_deadline, now)
        else:
            self._expire_sessions(now)

    def _on_join_deadline(self, deadline: JoinDeadline, now: ClockReading) -> None:
        delay_ms = self._limits.initial_rebalance_delay_ms
        extended = deadline.extended(delay_ms) if self._member_joined_during_delay else None
        if extended is None:
            self._complete_join(now)
        else:
            self._join_deadline, self._member_joined_during_delay = extended, False

    def _on_sync_deadline(self, deadline: SyncDeadline, now: ClockReading) -> None:
        self._sync_deadline = None
        if deadline.generation == self.generation and self._members.pending_sync:
            for member_id in tuple(self._members.pending_sync):
                self._members.remove(member_id)
            self._prepare_rebalance("members sent no SyncGroup in time", now)

    def _expire_sessions(self, now: ClockReading) -> None:
        for member_id, deadline_ms in tuple(self._members.pending.items()):
            if deadline_ms <= now.ms:
                self._members.remove(member_id)
                self._apply(Event.PENDING_MEMBER_EXPIRED, "a new member did not join", now)
                return
        for member in self.members.values():
            if member.deadline_ms is not None and member.deadline_ms <= now.ms:
                member.deadline_ms = None
                if member.is_new or not member.is_waiting:
                    self._members.remove(member.member_id)
                    safe_id = log_safe(member.member_id)
                    self._apply(Event.SESSION_EXPIRED, f"the session of {safe_id} expired", now)
                return

    # Loading, unloading and conversion

    def fail_pending_requests(self) -> None:
        """Completes all delayed JoinGroups and SyncGroups with REBALANCE_IN_PROGRESS.

        The members stay; their session timeouts are not reset.
        """
        self._members.fail_pending("REBALANCE_IN_PROGRESS")
        self._notify_if_earlier(self.next_deadline_ms)

    def unload(self, error: str = "NOT_COORDINATOR") -> None:
        """Completes all delayed requests with `error`, removes the members, and stops all timeouts.

        `error` is an error name.
        """
        self._members.fail_pending(error)
        self._members.clear()
        self._join_deadline = self._sync_deadline = None
        self.notify()

    def restore(self, stored: GroupMetadata, now: ClockReading) -> None:
        """Restores a stored group, and restarts the sessions of its members.

        Starts a rebalance if the group has more members than `group_max_size`.
        """
        self.generation, self.protocol = stored.generation, stored.protocol
        self.protocol_type, self.state_since_ms = stored.protocol_type, stored.state_ms
        self.state = STABLE if stored.members else EMPTY
        restore_members(self._members, stored, now)
        self._topics = self._members.subscribed(self.protocol_type, self.protocol)
        if len(self.members) > self._limits.max_size:
            self._prepare_rebalance("the group is larger than group_max_size", now)

    def restore_protocols(
        self, protocols: ProtocolsOf, reason: str | None, now: ClockReading
    ) -> None:
        """Sets the members' protocols, after a downgrade from the consumer protocol.

        If `reason` is not None, starts a rebalance.
        """
        for member_id, its in protocols.items():
            self.members[member_id].protocols = its
        if reason is not None:
            self._prepare_rebalance(reason, now)

    @property
    def metadata(self) -> GroupMetadata:
        """Returns the metadata to store."""
        return metadata_of(
            self._members, self.generation, self.protocol_type, self.protocol, self.state_since_ms
        )

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID for a static member that was replaced."""
        self._members.check(member_id, instance_id)

    def reset_session(self, member_id: str, now: ClockReading) -> None:
        """Resets the session timeout of a member, for example after a commit."""
        before = self._start_request(now)
        self.members[member_id].reset_session(now.ms)
        self._finish_request(before, now)

    def mark_dead(self) -> None:
        """Marks the group as deleted."""
        self.state = DEAD

    # JoinGroup

    def _join(self, request: JoinRequest, new_id: str, now: ClockReading) -> PendingJoin:
        if not self._members.has_capacity(self.state, self._limits.max_size, request.member_id):
            self._members.remove(request.member_id)
            return _refused("GROUP_MAX_SIZE_REACHED", "")
        if not self._members.supports_protocols_of(request, self.state, self.protocol_type):
            return _refused("INCONSISTENT_GROUP_PROTOCOL", request.member_id)
        if not request.member_id:
            return self._join_without_id(request, new_id, now)
        if request.member_id in self._members.pending:
            if request.instance_id is not None:  # only dynamic members get member ids in advance
                return _refused("UNKNOWN_SERVER_ERROR", "")
            return self._add(request, request.member_id, now)
        try:
            member = self._members.check(request.member_id, request.instance_id)
        except BrokerResponseError as error:
            return PendingResult(JoinResult(request.member_id, error.name))
        return self._rejoin(member, request, now)

    def _join_without_id(self, request: JoinRequest, new_id: str, now: ClockReading) -> PendingJoin:
        if request.instance_id is not None:
            known = self.static_ids.get(request.instance_id)
            if known is not None:
                return self._replace(self.members[known], request, new_id, now)
        elif request.requires_known_member_id:
            self._members.pending[new_id] = now.ms + request.session_timeout_ms
            return _refused("MEMBER_ID_REQUIRED", new_id)
        return self._add(request, new_id, now)

    def _add(self, request: JoinRequest, member_id: str, now: ClockReading) -> PendingJoin:
        deadline_ms = now.ms + self._limits.new_member_join_timeout_ms
        member = ClassicMember.joining(member_id, request, deadline_ms)
        pending = member.await_join(request)
        if self.state is PREPARING and self._previous_state is EMPTY:
            self._member_joined_during_delay = True
        if not self.members:
            self.protocol_type = request.protocol_type
        self._members.add(member)
        self._apply(Event.MEMBER_JOINED, request.with_reason("a new member"), now)
        return pending

    def _rejoin(
        self, member: ClassicMember, request: JoinRequest, now: ClockReading
    ) -> PendingJoin:
        event = Event.FOLLOWER_REJOINED_UNCHANGED
        if request.protocols != member.protocols:
            event = Event.REJOINED_WITH_CHANGES
        elif member.member_id == self.leader:
            event = Event.LEADER_REJOINED
        if action_for(event, self.state) is Action.RESPOND:
            return PendingResult(self._join_result(member))
        pending = member.await_join(request)
        self._apply(event, request.with_reason(event.value), now)
        return pending

    def _replace(
        self, former: ClassicMember, request: JoinRequest, new_id: str, now: ClockReading
    ) -> PendingJoin:
        """Replaces the member id of a restarted static member, and fences the former member id."""
        former_leader = self.leader
        self._members.complete_join(former, JoinResult(former.member_id, "FENCED_INSTANCE_ID"))
        self._members.complete_sync(former, SyncResult("FENCED_INSTANCE_ID"))
        member = self._members.replace(former, new_id)
        member.reset_session(now.ms)  # with the former member's session timeout
        pending = member.await_join(request)
        event = Event.STATIC_MEMBER_REPLACED
        if self.state is STABLE and self._members.select_protocol() != self.protocol:
            event = Event.STATIC_MEMBER_REPLACED_WITH_CHANGES
        if action_for(event, self.state) is not Action.RESPOND_TO_REPLACED_MEMBER:
            self._apply(event, request.with_reason(event.value), now)
            return pending
        try:
            self._store(self, now)
        except BrokerResponseError as error:
            result = replace(self._join_result(member), members=(), leader=former_leader or "")
            self._members.complete_join(member, replace(result, member_id="", error=error.name))
            self._restore_replaced_member(former, member, now)
            return pending
        result = self._join_result(member)
        if request.supports_skipping_assignment:
            result = replace(result, skip_assignment=member.member_id == self.leader)
        else:  # a member that cannot skip the assignment must not become the leader
            result = replace(result, members=(), leader=former_leader or "")
        self._members.complete_join(member, result)
        return pending

    def _restore_replaced_member(
        self, former: ClassicMember, member: ClassicMember, now: ClockReading
    ) -> None:
        """Undoes `_replace`: restores `former`, and restarts the session of `former`."""
        self._members.swap(member, former)
        former.reset_session(now.ms)

    # SyncGroup

    def _sync(self, request: SyncRequest, now: ClockReading) -> PendingSync:
        try:
            member = self._members.check(request.member_id, request.instance_id)
            self._check_generation(request.generation)
        except BrokerResponseError as error:
            return PendingResult(SyncResult(error.name))
        if not request.matches_protocol(self.protocol_type, self.protocol):
            return PendingResult(SyncResult("INCONSISTENT_GROUP_PROTOCOL"))
        leads = member.member_id == self.leader
        action = action_for(Event.LEADER_SYNCED if leads else Event.FOLLOWER_SYNCED, self.state)
        if action is Action.REBALANCE_IN_PROGRESS:
            return PendingResult(SyncResult("REBALANCE_IN_PROGRESS"))
        self._members.pending_sync.discard(member.member_id)
        if not self._members.pending_sync:
            self._sync_deadline = None
        if action is Action.RESPOND:
            return PendingResult(self._sync_result(member))
        pending = member.pending_sync = member.pending_sync or PendingResult()
        if action is Action.STORE_ASSIGNMENT:
            self._assign(request.assignments, now)
        return pending

    def _assign(self, assignments: Mapping[str, bytes], now: ClockReading) -> None:
        """Stores the assignments that the leader sent.

        A member for which the leader sent no assignment gets an empty assignment. If the
        assignments cannot be stored, clears all assignments, and starts a rebalance.
        """
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        try:
            self._store(self, now)
        except BrokerResponseError as error:
            self._clear_assignments(error.name, now)
            self._prepare_rebalance(f"the assignments are not stored: {error}", now)
            return
        self._transition(STABLE, "the leader sent the assignment", now)
        for member in self.members.values():
            if self._members.complete_sync(member, self._sync_result(member)):
                member.reset_session(now.ms)

    def _clear_assignments(self, error: str, now: ClockReading) -> None:
        """Clears all members' assignments, and completes the delayed SyncGroups with `error`."""
        for member in self.members.values():
            member.assignment = b""
            if self._members.complete_sync(member, SyncResult(error)):
                member.reset_session(now.ms)

    # Rebalances

    def _apply(self, event: Event, reason: str, now: ClockReading) -> None:
        """Starts a rebalance or completes the join phase, as `action_for` decides.

        Completes the join phase only if all members have joined.
        """
        action = action_for(event, self.state)
        if action is Action.PREPARE_REBALANCE:
            self._prepare_rebalance(reason, now)
        elif self._may_complete_join(action) and self._members.has_all_joined:
            self._complete_join(now)

    def _may_complete_join(self, action: Action) -> bool:
        """Returns True if `action` may complete the join phase.

        In a first rebalance, MAYBE_COMPLETE_JOIN does not complete the join phase before the
        initial rebalance delay has passed.
        """
        return action is Action.MAYBE_COMPLETE_JOIN_WITHOUT_DELAY or (
            action is Action.MAYBE_COMPLETE_JOIN and self._previous_state is not EMPTY
        )

    def _prepare_rebalance(self, reason: str, now: ClockReading) -> None:
        """Starts a rebalance: members must join again.

        In an Empty group, starts the initial rebalance delay. In any other group, completes the
        join phase at once if all members have joined already.
        """
        if self.state is COMPLETING:
            self._clear_assignments("REBALANCE_IN_PROGRESS", now)
        self._members.pending_sync.clear()
        self._sync_deadline = None
        timeout_ms = self._members.rebalance_timeout_ms
        is_first = self.state is EMPTY
        self._transition(PREPARING, reason, now)
        if is_first:
            delay_ms = self._limits.initial_rebalance_delay_ms
            self._join_deadline = JoinDeadline.first(now.ms, delay_ms, timeout_ms)
        elif self._members.has_all_joined:
            self._complete_join(now)
        else:
            self._join_deadline = JoinDeadline(now.ms + timeout_ms)

    def _complete_join(self, now: ClockReading) -> None:
        """Starts the next generation with the members that have joined, and all static members.

        Removes dynamic members that have not joined. If no member is left, the group becomes Empty.
        If only static members are left and none of them has joined, starts no generation, but waits
        for JoinGroup again.
        """
        self._join_deadline = None
        for member in tuple(self.members.values()):
            if member.pending_join is None and member.instance_id is None:
                self._members.remove(member.member_id)
        if not self._members.elect_leader() and self.members:
            # There are only static members, and none has joined: wait again, until they join or
            # their sessions expire.
            self._join_deadline = JoinDeadline(now.ms + max(1, self._members.rebalance_timeout_ms))
            return
        self.generation += 1
        self._members.expect_sync()
        if not self.members:
            self.protocol = None
            self._topics = self._members.subscribed(self.protocol_type, self.protocol)
            self._transition(EMPTY, "no member is left", now)
            self._store_empty(now)
            return
        self.protocol = self._members.select_protocol()
        self._topics = self._members.subscribed(self.protocol_type, self.protocol)
        self._transition(
            COMPLETING, "all members have joined, or the join deadline has passed", now
        )
        self._sync_deadline = SyncDeadline(
            now.ms + self._members.rebalance_timeout_ms, self.generation
        )
        for member in self.members.values():
            self._members.complete_join(member, self._join_result(member))
            member.reset_session(now.ms)
            member.is_new = False

    def _store_empty(self, now: ClockReading) -> None:
        """Stores the group, which is Empty; logs a warning if it cannot be stored.

        After such a failure, a later coordinator loads the group with its former members.
        """
        try:
            self._store(self, now)
        except BrokerResponseError as error:
            logger.warning("group %s is not stored: %s", log_safe(self.group_id), error)

    def _transition(self, state: ClassicGroupState, reason: str, now: ClockReading) -> None:
        assert self.state in PREVIOUS_STATES[state], f"{self.state} cannot become {state}"
        self._previous_state, self.state = self.state, state
        self.state_since_ms = now.timestamp_ms
        logger.info(
            "group %s is %s, generation %d, %d members: %s",
            log_safe(self.group_id),
            state,
            self.generation,
            len(self.members),
            log_safe(reason),
        )

    # Members

    def _leave(self, leaving: LeavingMember) -> str:
        """Removes one member; returns an error name, NONE for success."""
        try:
            member_id = self._members.id_to_remove(leaving.member_id, leaving.instance_id)
        except BrokerResponseError as error:
            return error.name
        self._members.remove(member_id)
        logger.info(
            "group %s: %s left: %s",
            log_safe(self.group_id),
            log_safe(member_id),
            log_safe(leaving.reason or "no reason given"),
        )
        return NO_ERROR

    def _check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise api_error(
                "ILLEGAL_GENERATION",
                f"group {self.group_id!r} has generation {self.generation}, not {generation}",
            )

    # Results

    def _join_result(self, member: ClassicMember) -> JoinResult:
        leads = member.member_id == self.leader
        return JoinResult(
            member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=self._members.join_result_members(self.protocol) if leads else (),
        )

    def _sync_result(self, member: ClassicMember) -> SyncResult:
        return SyncResult(
            protocol_type=self.protocol_type, protocol=self.protocol, assignment=member.assignment
        )

    # Watchers

    def _start_request(self, now: ClockReading) -> int | None:
        self.advance(now)
        return self.next_deadline_ms

    def _finish_request(self, before: int | None, now: ClockReading) -> None:
        """Handles timeouts that expire at once after a request, such as a rebalance delay of 0."""
        self.advance(now)
        self._notify_if_earlier(before)

    def _notify_if_earlier(self, before: int | None) -> None:
        """Notifies watchers if a result is complete, or if the next deadline is before `before`.

        `before` is the next deadline before a change, as `ClockReading.ms`; None if there was none.
        """
        after = self.next_deadline_ms
        is_nearer = after is not None and (before is None or after < before)
        if self._members.has_completed_results or is_nearer:
            self._members.has_completed_results = False
            self.notify()


def _refused(error: str, member_id: str) -> PendingJoin:
    return PendingResult(JoinResult(member_id, error))
