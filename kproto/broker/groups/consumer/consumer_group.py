"""One group of the consumer protocol: what heartbeats and the passing of time make of it (KIP-848).

A member says what it subscribes to and what it holds, and hears what it shall hold. Each change of
members, subscriptions or topics raises the epoch of the group; for that epoch an assignor decides
who shall have what (`assignors`), and each member is led there step by step (`reconciling`).

Whatever changes is a record first (`change`): only what could be stored counts. Time is lazy, as in
`groups.group`: whoever touches a group calls `advance` first. Nobody waits for a group of this
kind. The order of checks is that of a coordinator of Kafka 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple, Protocol

from ....protocol.consumer_protocol import PROTOCOL_TYPE
from ....stored.coordinator import CoordinatorRecord
from ....wire.errors import BrokerResponseError
from ...api_error import api_error
from ...log_escaping import log_safe
from ...topics import Topics
from ..clock_reading import ClockReading
from ..committed_offsets import CommittedOffsets
from ..group_config import ConsumerGroupConfig
from .consumer_group_member import JOIN_EPOCH, LEAVE_STATIC_EPOCH, ConsumerGroupMember, MemberState
from .current_assignment_builder import is_within
from .group_change import NO_TOPIC_CHANGES_SEEN, GroupChange
from .heartbeat import ConsumerHeartbeat, ConsumerHeartbeatResult
from .persisted_state import ConsumerGroupState, PersistedState

__all__ = ["ConsumerGroup", "GroupStore", "Timer"]

logger = logging.getLogger("kproto.broker")

#: When a change is tried again that time has brought and that could not be written, in ms.
_AGAIN_MS: Final = 1_000


class GroupStore(Protocol):
    """Who keeps groups: stores what changes, and makes a classic group of another."""

    def store(
        self, group: ConsumerGroup, records: Sequence[CoordinatorRecord], now: ClockReading
    ) -> None:
        """Write records, and have the group be that of its id. Raises BrokerResponseError."""

    def downgrade(
        self,
        group: ConsumerGroup,
        change: GroupChange,
        leaving: Collection[str],
        why: str | None,
        now: ClockReading,
    ) -> None:
        """Make a classic group of one that is as a change has it, without those that leave.

        For a reason, `why`, its members join again. Raises BrokerResponseError.
        """


class Timer(Enum):
    """What a member has to do in time; the text says what it failed to."""

    SESSION = "its session is over"
    REBALANCE = "it did not give up partitions in time"
    JOIN = "it did not join again in time"
    SYNC = "it did not ask for its assignment in time"


class _Due(NamedTuple):
    """`epoch` is that of the member when it was told to do something."""

    ms: int
    epoch: int


class ConsumerGroup:
    """A new one is empty. `written` are records that go before all others, of what it replaces."""

    def __init__(
        self,
        group_id: str,
        limits: ConsumerGroupConfig,
        topics: Topics,
        group_store: GroupStore,
        now: ClockReading,
        *,
        state: PersistedState | None = None,
        written: Sequence[CoordinatorRecord] = (),
    ) -> None:
        self.group_id = group_id
        self.offsets = CommittedOffsets()
        self.persisted = state or PersistedState()
        self.limits = limits
        self.topics = topics
        self._group_store = group_store
        self._written = tuple(written)
        self._due: dict[tuple[Timer, str], _Due] = {}
        self._dead = False
        self._seen = NO_TOPIC_CHANGES_SEEN
        #: Since when nobody is a member, in ms since 1970; not stored, so from when it was loaded.
        self.last_empty_at: int | None = now.timestamp_ms
        for member in self.persisted.members.values():
            self.reset_session(member, now)
            self._watch_rebalance(member, now)
        self._note_members(now)

    # What others want to know

    @property
    def type(self) -> str:
        return "consumer"

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state(self) -> ConsumerGroupState:
        """What the group is doing."""
        return ConsumerGroupState.DEAD if self._dead else self.persisted.group_state

    @property
    def members(self) -> dict[str, ConsumerGroupMember]:
        """By member id, in the order in which they joined. Not to be changed."""
        return self.persisted.members

    @property
    def assignor(self) -> str:
        """That which most members want, or the default."""
        return self.persisted.assignor or self.limits.assignors[0]

    @property
    def next_deadline_ms(self) -> int | None:
        """When the group next changes by itself, as `ClockReading.ms`; None for never."""
        return min((due.ms for due in self._due.values()), default=None)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return topic in self.persisted.topics

    def check_deletable(self, now: ClockReading) -> None:
        """Raises NON_EMPTY_GROUP."""
        self.advance(now)
        if self.persisted.members:
            raise api_error("NON_EMPTY_GROUP", f"group {self.group_id!r} is {self.state}")

    # What a request does

    def heartbeat(
        self,
        request: ConsumerHeartbeat,
        new_id: str,
        now: ClockReading,
        may_describe: Callable[[str], bool] = lambda topic: True,
    ) -> ConsumerHeartbeatResult:
        """Take a member in, or let it go on; `new_id` is for one that has no id (v0).

        `may_describe` tells of which topics the member may hear. Raises GROUP_MAX_SIZE_REACHED,
        UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID,
        INVALID_REGULAR_EXPRESSION, and what the log answers.
        """
        self.advance(now)
        self.check_room(request.member_id, request.instance_id)
        change = self.begin(now)
        former = self._member(request, request.member_id or new_id, change)
        said = _said(former, request)
        has_changed, raises = change.subscribe(said)
        change.bump_group_epoch(raises=raises)
        change.update_target_assignment()
        member = change.reconcile(said, request.owned, has_changed=has_changed)
        self.finish(change, now)
        self.reset_session(member, now)
        if member != said:
            self._watch_rebalance(member, now)
        if change.needs_regex_refresh:
            self._look_up(may_describe, now)
        tells = request.epoch == JOIN_EPOCH or request.is_full or member.assigned != former.assigned
        return ConsumerHeartbeatResult(
            member.member_id,
            member.epoch,
            self.limits.heartbeat_interval_ms,
            member.assigned if tells else None,
        )

    def leave(self, request: ConsumerHeartbeat, now: ClockReading) -> ConsumerHeartbeatResult:
        """Let a member go, a static one for a while if it says so.

        Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, and what the log answers.
        """
        self.advance(now)
        member = self.check_member(request.member_id, request.instance_id)
        if request.instance_id is not None and request.epoch == LEAVE_STATIC_EPOCH:
            change = self.begin(now)
            change.leave_static(member)
            self.finish(change, now)
        else:
            self.fence([member], "it left", now)
        return ConsumerHeartbeatResult(request.member_id, request.epoch)

    def check_member(self, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
        """The member. Raises UNKNOWN_MEMBER_ID, and FENCED_INSTANCE_ID for a former self."""
        if instance_id is not None:
            return self._check_static(member_id, instance_id)
        member = self.persisted.members.get(member_id)
        if member is None:
            raise _unknown(self.group_id, member_id)
        return member

    def check_room(self, member_id: str, instance_id: str | None) -> None:
        """Raises GROUP_MAX_SIZE_REACHED for one that would be a member too many."""
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
        """Who sends a heartbeat: a member, or one that joins."""
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

    def _look_up(self, may_describe: Callable[[str], bool], now: ClockReading) -> None:
        """Expressions are looked up when their members have their answers, as in Kafka."""
        change = self.begin(now)
        change.resolve_regexes(may_describe)
        try:
            self.finish(change, now)
        except BrokerResponseError as error:
            said = log_safe(self.group_id)
            logger.warning("group %s: expressions are not looked up: %s", said, error)

    # What time does

    def advance(self, now: ClockReading) -> None:
        """Carry out what has come due, each at its own moment."""
        while (due := self.next_deadline_ms) is not None and due <= now.ms and not self._dead:
            timer, member_id = min(self._due, key=lambda it: self._due[it].ms)
            epoch = self._due.pop((timer, member_id)).epoch
            member = self.persisted.members.get(member_id)
            if member is None or (timer is Timer.REBALANCE and member.epoch != epoch):
                continue
            try:
                self.fence([member], timer.value, now.at(due))
            except BrokerResponseError as error:
                logger.warning("group %s is not written: %s", log_safe(self.group_id), error)
                self._due[timer, member_id] = _Due(now.ms + _AGAIN_MS, epoch)

    def watch(
        self, timer: Timer, member: ConsumerGroupMember, timeout_ms: int, now: ClockReading
    ) -> None:
        """Have a member fenced if it does not do something in time."""
        self._due[timer, member.member_id] = _Due(now.ms + timeout_ms, member.epoch)

    def is_watched(self, timer: Timer, member_id: str) -> bool:
        """Whether a member has to do something."""
        return (timer, member_id) in self._due

    def unwatch(self, timer: Timer, member_id: str) -> None:
        """It has done it."""
        self._due.pop((timer, member_id), None)

    def reset_session(self, member: ConsumerGroupMember, now: ClockReading) -> None:
        """A member has shown that it lives: its session begins anew."""
        timeout_ms = self.limits.session_timeout_ms
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        self.watch(Timer.SESSION, member, timeout_ms, now)

    def _watch_rebalance(self, member: ConsumerGroupMember, now: ClockReading) -> None:
        """A member of this protocol has its rebalance timeout to give up partitions."""
        if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            self.watch(Timer.REBALANCE, member, member.rebalance_timeout_ms, now)
        else:
            self.unwatch(Timer.REBALANCE, member.member_id)

    # Changes

    def begin(self, now: ClockReading) -> GroupChange:
        """A change, on a copy."""
        return GroupChange(
            self.group_id, self.persisted, self.topics, self.limits, now, self._written, self._seen
        )

    def finish(self, change: GroupChange, now: ClockReading) -> None:
        """Store a change and have it count. Raises BrokerResponseError; then nothing has changed.

        A new group is one from its first change on.
        """
        self._group_store.store(self, change.records, now)
        self._written, self._seen = (), change.seen
        before, self.persisted = self.persisted, change.state
        for timer, member_id in tuple(self._due):
            if member_id not in self.persisted.members:
                del self._due[timer, member_id]
        self._note_members(now)
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

    def _note_members(self, now: ClockReading) -> None:
        if self.persisted.members:
            self.last_empty_at = None
        elif self.last_empty_at is None:
            self.last_empty_at = now.timestamp_ms

    def fence(self, members: Iterable[ConsumerGroupMember], why: str, now: ClockReading) -> None:
        """Let members go; where classic ones alone are left, the group becomes a classic one.

        Raises BrokerResponseError.
        """
        gone = {it.member_id: it for it in members}
        if not gone:
            return
        for member_id in gone:
            logger.info("group %s: %s: %s", log_safe(self.group_id), log_safe(member_id), why)
        if self._may_downgrade(gone):
            self.downgrade(self.begin(now), gone, why, now)
            return
        change = self.begin(now)
        change.remove(gone.values())
        self.finish(change, now)

    def _may_downgrade(self, leaving: Collection[str]) -> bool:
        """Whether classic members alone are left, and the policy lets the group become so."""
        staying = [it for it in self.persisted.members.values() if it.member_id not in leaving]
        return bool(staying) and self._are_classic(staying, len(staying))

    def may_be_classic(self, replaced: ConsumerGroupMember) -> bool:
        """The same where a classic member comes in the place of another one."""
        others = [it for it in self.persisted.members.values() if it is not replaced]
        return self._are_classic(others, len(others) + 1)

    def _are_classic(self, members: Iterable[ConsumerGroupMember], count: int) -> bool:
        return (
            all(it.classic is not None for it in members)
            and self.limits.migration.downgrades
            and count <= self.limits.classic_max_size
        )

    def downgrade(
        self, change: GroupChange, leaving: Collection[str], why: str | None, now: ClockReading
    ) -> None:
        """Become a classic group. Raises BrokerResponseError."""
        self._group_store.downgrade(self, change, leaving, why, now)

    # Where a group goes

    def unload(self) -> None:
        """The coordinator is one no more: nothing is due any more."""
        self._due.clear()

    def mark_dead(self) -> None:
        """The group is deleted, or another is in its place."""
        self._dead = True
        self._due.clear()


def _said(member: ConsumerGroupMember, request: ConsumerHeartbeat) -> ConsumerGroupMember:
    """The member with what it says now; what it leaves out stays."""
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
    """Raises FENCED_MEMBER_EPOCH.

    The epoch of before is taken from one that holds nothing but what it was assigned: the answer
    that told the new one may have been lost.
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
