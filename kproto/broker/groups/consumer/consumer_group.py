"""Implements a group of the consumer protocol: handles heartbeats and timeouts (KIP-848).

A member sends its subscription and its owned partitions, and gets its assignment. A change of
members, subscriptions or subscribed topics bumps the group epoch; the epoch stays the same if a
static member is only replaced or temporarily absent. An assignor computes the target assignment of
an epoch (`assignors`), and each member is reconciled with the target assignment step by step
(`current_assignment_builder`).

The records of each change (`group_change`) are stored before the change takes effect; if they
cannot be stored, the change has no effect. As in `classic_group`, there are no timers: callers call
`advance`. No response of this protocol is delayed. The order of checks is that of a coordinator of
Kafka 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple, Protocol

from ....protocol.consumer_protocol import PROTOCOL_TYPE
from ....stored.coordinator_records import CoordinatorRecord
from ....wire.errors import BrokerResponseError
from ...api_error import api_error
from ...log_escaping import log_safe
from ...topics import Topics
from ..clock_reading import ClockReading
from ..committed_offsets import CommittedOffsets
from ..group_limits import ConsumerGroupConfig
from .consumer_group_member import JOIN_EPOCH, LEAVE_STATIC_EPOCH, ConsumerGroupMember, MemberState
from .current_assignment_builder import is_within
from .group_change import NO_TOPIC_CHANGES_SEEN, GroupChange
from .heartbeat import ConsumerHeartbeat, ConsumerHeartbeatResult
from .persisted_state import ConsumerGroupState, PersistedState

__all__ = ["ConsumerGroup", "MemberTimeout", "SupportsGroupStorage"]

logger = logging.getLogger("kproto.broker")

#: If the records of an expired timeout could not be stored, the timeout is handled again after this
#: time in ms.
_STORE_RETRY_MS: Final = 1_000


class SupportsGroupStorage(Protocol):
    """Describes the methods of `GroupMetadataManager` that a group calls."""

    def store(
        self, group: ConsumerGroup, records: Sequence[CoordinatorRecord], now: ClockReading
    ) -> None:
        """Stores records, and adds the group if it is new. Raises BrokerResponseError."""

    def downgrade(
        self,
        group: ConsumerGroup,
        change: GroupChange,
        leaving: Collection[str],
        reason: str | None,
        now: ClockReading,
    ) -> None:
        """Replaces a group by a classic group, without the members `leaving`.

        The classic group has the members of the group after `change`. If `reason` is not None, the
        classic group starts a rebalance for this reason. Raises BrokerResponseError if the records
        cannot be stored.
        """


class MemberTimeout(Enum):
    """Names the timeouts of a member; the value is the reason to fence the member, for the log."""

    SESSION = "its session expired"
    REBALANCE = "it did not revoke partitions in time"
    JOIN = "it did not join again in time"
    SYNC = "it did not send SyncGroup in time"


class _Deadline(NamedTuple):
    """Holds the time at which a timeout expires, as `ClockReading.ms`.

    `epoch` is the member epoch at which the timeout was started.
    """

    ms: int
    epoch: int


class ConsumerGroup:
    """Implements a group of the consumer protocol; without `state`, the group is empty.

    `pending_records` are stored together with the first change. They are the tombstone of a classic
    group that this group replaces, or the records of the conversion of a classic group.
    """

    def __init__(
        self,
        group_id: str,
        limits: ConsumerGroupConfig,
        topics: Topics,
        group_store: SupportsGroupStorage,
        now: ClockReading,
        *,
        state: PersistedState | None = None,
        pending_records: Sequence[CoordinatorRecord] = (),
    ) -> None:
        self.group_id = group_id
        self.offsets = CommittedOffsets()
        self.persisted = state or PersistedState()
        self.limits = limits
        self.topics = topics
        self._group_store = group_store
        self._pending_records = tuple(pending_records)
        self._deadlines: dict[tuple[MemberTimeout, str], _Deadline] = {}
        self._dead = False
        self._seen_topic_changes = NO_TOPIC_CHANGES_SEEN
        #: When the group became empty, in ms since 1970; None if it has members. No record has this
        #: time: for an empty group that was loaded, it is the time of loading.
        self.last_empty_at: int | None = now.timestamp_ms
        for member in self.persisted.members.values():
            self.reset_session(member, now)
            self._update_rebalance_timer(member, now)
        self._update_last_empty_at(now)

    # State of the group

    @property
    def type(self) -> str:
        return "consumer"

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state(self) -> ConsumerGroupState:
        """Returns the state of the group; DEAD if it was deleted or replaced."""
        return ConsumerGroupState.DEAD if self._dead else self.persisted.group_state

    @property
    def members(self) -> dict[str, ConsumerGroupMember]:
        """Returns the members by member id, in the order in which they joined; not a copy."""
        return self.persisted.members

    @property
    def assignor(self) -> str:
        """Returns the assignor that most members prefer; the default if no member prefers any."""
        return self.persisted.assignor or self.limits.assignors[0]

    @property
    def next_deadline_ms(self) -> int | None:
        """Returns the time at which the next timeout expires; None if there is none.

        The time is a `ClockReading.ms`.
        """
        return min((deadline.ms for deadline in self._deadlines.values()), default=None)

    def is_subscribed_to(self, topic: str) -> bool:
        """Returns True if a member subscribes to the topic."""
        return topic in self.persisted.topics

    def check_deletable(self, now: ClockReading) -> None:
        """Raises NON_EMPTY_GROUP if the group has members."""
        self.advance(now)
        if self.persisted.members:
            raise api_error("NON_EMPTY_GROUP", f"group {self.group_id!r} is {self.state}")

    # Requests

    def heartbeat(
        self,
        request: ConsumerHeartbeat,
        new_id: str,
        now: ClockReading,
        may_describe: Callable[[str], bool] = lambda topic: True,
    ) -> ConsumerHeartbeatResult:
        """Handles a heartbeat of a joining or an existing member.

        `new_id` is the member id to use if the request has none, which only v0 allows.
        `may_describe` returns True if the client may describe a topic; a regular expression matches
        only such topics. Raises GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
        UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, INVALID_REGULAR_EXPRESSION, and the errors of
        `GroupCoordinator.append`.
        """
        self.advance(now)
        self.check_size(request.member_id, request.instance_id)
        change = self.start_change(now)
        previous = self._member(request, request.member_id or new_id, change)
        updated = _update_member(previous, request)
        has_changed, bumps_epoch = change.subscribe(updated)
        change.bump_group_epoch(bumps_epoch=bumps_epoch)
        change.update_target_assignment()
        member = change.reconcile(updated, request.owned, has_changed=has_changed)
        self.apply_change(change, now)
        self.reset_session(member, now)
        if member != updated:
            self._update_rebalance_timer(member, now)
        if change.needs_regex_refresh:
            self._resolve_regexes(may_describe, now)
        includes_assignment = (
            request.epoch == JOIN_EPOCH or request.is_full or member.assigned != previous.assigned
        )
        return ConsumerHeartbeatResult(
            member.member_id,
            member.epoch,
            self.limits.heartbeat_interval_ms,
            member.assigned if includes_assignment else None,
        )

    def leave(self, request: ConsumerHeartbeat, now: ClockReading) -> ConsumerHeartbeatResult:
        """Removes a member; a static member that sends epoch -2 stays, with its assignment.

        Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, and the errors of `GroupCoordinator.append`.
        """
        self.advance(now)
        member = self.check_member(request.member_id, request.instance_id)
        if request.instance_id is not None and request.epoch == LEAVE_STATIC_EPOCH:
            change = self.start_change(now)
            change.leave_static(member)
            self.apply_change(change, now)
        else:
            self.remove_members([member], "it left", now)
        return ConsumerHeartbeatResult(request.member_id, request.epoch)

    def check_member(self, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
        """Returns the member with `member_id`; checks its instance id if `instance_id` is not None.

        Raises UNKNOWN_MEMBER_ID, and FENCED_INSTANCE_ID if another member has the instance id.
        """
        if instance_id is not None:
            return self._check_static(member_id, instance_id)
        member = self.persisted.members.get(member_id)
        if member is None:
            raise _unknown(self.group_id, member_id)
        return member

    def check_size(self, member_id: str, instance_id: str | None) -> None:
        """Raises GROUP_MAX_SIZE_REACHED if the member is new and the group has its maximum size."""
        known = member_id in self.persisted.members or instance_id in self.persisted.static_ids
        if not known and len(self.persisted.members) >= self.limits.max_size:
            raise api_error(
                "GROUP_MAX_SIZE_REACHED",
                "The consumer group has reached its maximum capacity of "
                f"{self.limits.max_size} members.",
            )

    def _member(
        self, request: ConsumerHeartbeat, member_id: str, change: GroupChange
    ) -> ConsumerGroupMember:
        """Returns the member that sends a heartbeat; creates a member if the heartbeat joins."""
        joins = request.epoch == JOIN_EPOCH
        if request.instance_id is None:
            member = self.persisted.members.get(member_id)
            if member is None:
                if not joins:
                    raise _unknown(self.group_id, member_id)
                return ConsumerGroupMember(member_id)
        elif not joins:
            member = self._check_static(member_id, request.instance_id)
        else:
            return self._join_static(member_id, request.instance_id, change)
        _check_epoch(member, request)
        return member

    def _join_static(
        self, member_id: str, instance_id: str, change: GroupChange
    ) -> ConsumerGroupMember:
        former = self.persisted.static_member(instance_id)
        if former is None:
            return self.persisted.members.get(member_id, ConsumerGroupMember(member_id))
        if former.classic is None and former.epoch != LEAVE_STATIC_EPOCH:
            raise api_error(
                "UNRELEASED_INSTANCE_ID",
                f"Static member {member_id} with instance id {instance_id} cannot join the group "
                f"because the instance id is owned by {former.member_id} member.",
            )
        return change.replace_static(former, member_id)

    def _check_static(self, member_id: str, instance_id: str) -> ConsumerGroupMember:
        member = self.persisted.static_member(instance_id)
        if member is None:
            raise api_error("UNKNOWN_MEMBER_ID", f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            raise api_error(
                "FENCED_INSTANCE_ID",
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{member.member_id}.",
            )
        return member

    def _resolve_regexes(self, may_describe: Callable[[str], bool], now: ClockReading) -> None:
        """Resolves regular expressions as a separate change after a heartbeat, as Kafka does."""
        change = self.start_change(now)
        change.resolve_regexes(may_describe)
        try:
            self.apply_change(change, now)
        except BrokerResponseError as error:
            updated = log_safe(self.group_id)
            logger.warning("group %s: regular expressions are not resolved: %s", updated, error)

    # Timeouts

    def advance(self, now: ClockReading) -> None:
        """Fences the members whose timeouts have expired; each is fenced as of its own deadline."""
        while (
            (deadline := self.next_deadline_ms) is not None
            and deadline <= now.ms
            and not self._dead
        ):
            timer, member_id = min(self._deadlines, key=lambda it: self._deadlines[it].ms)
            epoch = self._deadlines.pop((timer, member_id)).epoch
            member = self.persisted.members.get(member_id)
            if member is None or (timer is MemberTimeout.REBALANCE and member.epoch != epoch):
                continue
            try:
                self.remove_members([member], timer.value, now.at(deadline))
            except BrokerResponseError as error:
                logger.warning("group %s is not stored: %s", log_safe(self.group_id), error)
                self._deadlines[timer, member_id] = _Deadline(now.ms + _STORE_RETRY_MS, epoch)

    def start_timer(
        self, timer: MemberTimeout, member: ConsumerGroupMember, timeout_ms: int, now: ClockReading
    ) -> None:
        """Starts a timeout of a member; the member is fenced when the timeout expires."""
        self._deadlines[timer, member.member_id] = _Deadline(now.ms + timeout_ms, member.epoch)

    def is_timer_running(self, timer: MemberTimeout, member_id: str) -> bool:
        """Returns True if a timeout of a member is running."""
        return (timer, member_id) in self._deadlines

    def stop_timer(self, timer: MemberTimeout, member_id: str) -> None:
        """Stops a timeout of a member; does nothing if the timeout is not running."""
        self._deadlines.pop((timer, member_id), None)

    def reset_session(self, member: ConsumerGroupMember, now: ClockReading) -> None:
        """Restarts the session timeout of a member."""
        timeout_ms = self.limits.session_timeout_ms
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        self.start_timer(MemberTimeout.SESSION, member, timeout_ms, now)

    def _update_rebalance_timer(self, member: ConsumerGroupMember, now: ClockReading) -> None:
        """Starts the rebalance timeout if the member must revoke partitions; else stops it.

        A member of the classic protocol has the timeouts JOIN and SYNC instead.
        """
        if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            self.start_timer(MemberTimeout.REBALANCE, member, member.rebalance_timeout_ms, now)
        else:
            self.stop_timer(MemberTimeout.REBALANCE, member.member_id)

    # Changes

    def start_change(self, now: ClockReading) -> GroupChange:
        """Returns a new change, which has a copy of the group's state."""
        return GroupChange(
            self.group_id,
            self.persisted,
            self.topics,
            self.limits,
            now,
            self._pending_records,
            self._seen_topic_changes,
        )

    def apply_change(self, change: GroupChange, now: ClockReading) -> None:
        """Stores the records of a change; then the change's state becomes the group's state.

        Raises BrokerResponseError if the records cannot be stored; then the group has not changed.
        """
        self._group_store.store(self, change.records, now)
        self._pending_records, self._seen_topic_changes = (), change.seen_topic_changes
        before, self.persisted = self.persisted, change.state
        for timer, member_id in tuple(self._deadlines):
            if member_id not in self.persisted.members:
                del self._deadlines[timer, member_id]
        self._update_last_empty_at(now)
        if (
            before.group_state is not self.persisted.group_state
            or before.epoch != self.persisted.epoch
        ):
            logger.info(
                "group %s is %s, epoch %d, %d members",
                log_safe(self.group_id),
                self.state,
                self.persisted.epoch,
                len(self.persisted.members),
            )

    def _update_last_empty_at(self, now: ClockReading) -> None:
        if self.persisted.members:
            self.last_empty_at = None
        elif self.last_empty_at is None:
            self.last_empty_at = now.timestamp_ms

    def remove_members(
        self, members: Iterable[ConsumerGroupMember], reason: str, now: ClockReading
    ) -> None:
        """Removes members, and downgrades the group if only members of the classic protocol remain.

        Does not downgrade if the migration policy or the maximum size of classic groups forbids it.
        Raises BrokerResponseError if the change cannot be stored.
        """
        removed = {it.member_id: it for it in members}
        if not removed:
            return
        for member_id in removed:
            logger.info("group %s: %s: %s", log_safe(self.group_id), log_safe(member_id), reason)
        if self._may_downgrade(removed):
            self.downgrade(self.start_change(now), removed, reason, now)
            return
        change = self.start_change(now)
        change.remove(removed.values())
        self.apply_change(change, now)

    def _may_downgrade(self, leaving: Collection[str]) -> bool:
        """Returns True if the group may become a classic group without the members `leaving`."""
        staying = [it for it in self.persisted.members.values() if it.member_id not in leaving]
        return bool(staying) and self._are_classic(staying, len(staying))

    def may_downgrade(self, replaced: ConsumerGroupMember) -> bool:
        """Returns True if the group may be downgraded when a classic member replaces `replaced`."""
        others = [it for it in self.persisted.members.values() if it is not replaced]
        return self._are_classic(others, len(others) + 1)

    def _are_classic(self, members: Iterable[ConsumerGroupMember], count: int) -> bool:
        return (
            all(it.classic is not None for it in members)
            and self.limits.migration.downgrades
            and count <= self.limits.classic_max_size
        )

    def downgrade(
        self, change: GroupChange, leaving: Collection[str], reason: str | None, now: ClockReading
    ) -> None:
        """Converts the group to a classic group; see `SupportsGroupStorage.downgrade`."""
        self._group_store.downgrade(self, change, leaving, reason, now)

    # Unloading

    def unload(self) -> None:
        """Stops all timeouts, because the node is no longer the coordinator."""
        self._deadlines.clear()

    def mark_dead(self) -> None:
        """Marks the group as deleted or replaced."""
        self._dead = True
        self._deadlines.clear()


def _update_member(member: ConsumerGroupMember, request: ConsumerHeartbeat) -> ConsumerGroupMember:
    """Returns the member with the fields of a heartbeat; null fields do not change the member."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack=member.rack if request.rack is None else request.rack,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=member.assignor if request.assignor is None else request.assignor,
        topics=member.topics if request.topics is None else request.topics,
        regex=member.regex if request.regex is None else request.regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _check_epoch(member: ConsumerGroupMember, request: ConsumerHeartbeat) -> None:
    """Raises FENCED_MEMBER_EPOCH if the epoch of the request is not accepted.

    The member's current epoch and JOIN_EPOCH are accepted. The member's previous epoch is accepted
    if the request reports owned partitions, and all of these partitions are assigned to the member.
    In this case, the member possibly did not receive the response with the current epoch.
    """
    if request.epoch == JOIN_EPOCH or request.epoch == member.epoch:
        return
    if request.epoch > member.epoch:
        what = "greater"
    elif request.epoch == member.previous_epoch and is_within(request.owned, member.assigned):
        return
    else:
        what = "smaller"
    raise api_error(
        "FENCED_MEMBER_EPOCH",
        f"The consumer group member has a {what} member epoch ({request.epoch}) than the one known "
        f"by the group coordinator ({member.epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _unknown(group_id: str, member_id: str) -> BrokerResponseError:
    return api_error(
        "UNKNOWN_MEMBER_ID", f"Member {member_id} is not a member of group {group_id}."
    )
