"""Implements a share group: handles heartbeats and session timeouts (KIP-932).

A member sends its subscription, and gets its assignment. A change of members, subscriptions or
subscribed topics bumps the group epoch, and the assignor computes the target assignment of the
epoch. Because members share partitions, no member waits for another member.

A partition is assigned only if the share coordinator has its state. So the first heartbeat with a
topic returns a `ShareStateInitialization`, and the next heartbeat bumps the group epoch again and
returns the partitions.

The records of each change are stored before the change takes effect; if they cannot be stored, the
change has no effect. There are no timers: callers call `advance`. The order of checks is that of a
coordinator of Kafka 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from ....stored.coordinator_records import CoordinatorRecord
from ....wire.errors import BrokerResponseError
from ....wire.uuid import Uuid
from ...api_error import api_error
from ...coordinators import java_hash
from ...log_escaping import log_safe
from ...topics import Topics
from ..clock_reading import ClockReading
from ..committed_offsets import CommittedOffsets
from ..consumer.assignors import GroupSpec, MemberSpec
from ..consumer.consumer_group_member import JOIN_EPOCH, Partitions
from ..consumer.persisted_state import metadata_hash
from ..group_limits import ShareGroupConfig
from ..java_order import copied_size, in_java_order, in_timeline_order
from . import share_group_records as records
from .share_group_state import (
    ShareGroupMember,
    ShareGroupState,
    SharePersistedState,
    TopicInitialization,
)
from .share_heartbeat import ShareHeartbeat, ShareHeartbeatResult
from .simple_assignor import assign_simple

__all__ = ["ShareGroup", "ShareStateInitialization", "SupportsShareGroupStorage"]

logger = logging.getLogger("kproto.broker")

#: If the records of an expired timeout could not be stored, the timeout is handled again after this
#: time in ms.
_STORE_RETRY_MS: Final = 1_000

#: The value of `_seen_topic_changes` before the group has first compared its topics.
_NO_TOPIC_CHANGES_SEEN: Final = -1

#: The start offset of a new share state: share.auto.offset.reset decides at the first fetch.
_UNINITIALIZED: Final = -1
#: The start offset of partitions that were added to a known topic: no record is skipped.
_EARLIEST: Final = 0

#: The name of the only assignor.
_ASSIGNOR: Final = "simple"


class ShareStateInitialization(NamedTuple):
    """Holds the partitions of one topic whose share state the share coordinator must create."""

    topic_id: Uuid
    partitions: frozenset[int]
    state_epoch: int
    start_offset: int


class SupportsShareGroupStorage(Protocol):
    """Describes the method of `GroupMetadataManager` that a share group calls."""

    def store_share_group(
        self, group: ShareGroup, records: Sequence[CoordinatorRecord], now: ClockReading
    ) -> None:
        """Stores records, and adds the group if it is new. Raises BrokerResponseError."""


class ShareGroup:
    """Implements a share group; without `state`, the group is empty."""

    def __init__(
        self,
        group_id: str,
        limits: ShareGroupConfig,
        topics: Topics,
        group_store: SupportsShareGroupStorage,
        now: ClockReading,
        *,
        state: SharePersistedState | None = None,
    ) -> None:
        self.group_id = group_id
        #: A share group commits no offsets; the share coordinator stores its positions.
        self.offsets = CommittedOffsets()
        self.persisted = state or SharePersistedState()
        self.limits = limits
        self._topics = topics
        self._group_store = group_store
        #: When the session of each member expires, as `ClockReading.ms`, by member id.
        self._sessions: dict[str, int] = {}
        self._dead = False
        self._seen_topic_changes = _NO_TOPIC_CHANGES_SEEN
        #: Empty share groups do not expire, so the time is not tracked.
        self.last_empty_at: int | None = None
        for member_id in self.persisted.members:
            self._reset_session(member_id, now)

    # State of the group

    @property
    def type(self) -> str:
        return "share"

    @property
    def protocol_type(self) -> str:
        return "share"

    @property
    def assignor(self) -> str:
        return _ASSIGNOR

    @property
    def state(self) -> ShareGroupState:
        """Returns the state of the group; DEAD if it was deleted."""
        return ShareGroupState.DEAD if self._dead else self.persisted.group_state

    @property
    def members(self) -> dict[str, ShareGroupMember]:
        """Returns the members by member id; not a copy."""
        return self.persisted.members

    @property
    def next_deadline_ms(self) -> int | None:
        """Returns when the next session expires, as `ClockReading.ms`; None without members."""
        return min(self._sessions.values(), default=None)

    def is_subscribed_to(self, topic: str) -> bool:
        """Returns True if a member subscribes to the topic."""
        return topic in self.persisted.topics

    def check_deletable(self, now: ClockReading) -> None:
        """Raises NON_EMPTY_GROUP if the group has members."""
        self.advance(now)
        if self.persisted.members:
            raise api_error("NON_EMPTY_GROUP", f"group {self.group_id!r} is {self.state}")

    # Requests

    def heartbeat(self, request: ShareHeartbeat, now: ClockReading) -> ShareHeartbeatResult:
        """Handles a heartbeat of a joining or an existing member.

        If `pending_initializations` is not empty afterwards, the caller initializes these
        partitions, and then calls `on_initialized` or `on_initialization_failed`. Raises
        GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, and the errors of
        `GroupCoordinator.append`.
        """
        self.advance(now)
        self._check_size(request.member_id)
        change = _ShareGroupChange(self.group_id, self.persisted, self._topics, self.limits, now)
        member = self._member(request)
        updated = _update_member(member, request)
        has_changed = change.subscribe(member, updated)
        bumps_epoch = has_changed or (
            self.persisted.target_epoch >= self.persisted.epoch and self.persisted.awaits_assignment
        )
        changes = self._topics.created_count + self._topics.deleted_count
        if bumps_epoch or self._seen_topic_changes != changes:
            change.bump_group_epoch(bumps_epoch=bumps_epoch)
        change.update_target_assignment()
        reconciled = change.reconcile(updated, has_changed=has_changed)
        change.initialize_topics()
        self._apply(change.records, change.state, now)
        self._seen_topic_changes = changes
        self._reset_session(reconciled.member_id, now)
        includes_assignment = (
            request.epoch == JOIN_EPOCH
            or request.topics is not None
            or reconciled.assigned != member.assigned
        )
        return ShareHeartbeatResult(
            reconciled.member_id,
            reconciled.epoch,
            self.limits.heartbeat_interval_ms,
            reconciled.assigned if includes_assignment else None,
        )

    def leave(self, request: ShareHeartbeat, now: ClockReading) -> ShareHeartbeatResult:
        """Removes a member.

        Raises UNKNOWN_MEMBER_ID, and the errors of `GroupCoordinator.append`.
        """
        self.advance(now)
        if request.member_id not in self.persisted.members:
            raise self._unknown(request.member_id)
        self._remove(request.member_id, "it left", now)
        return ShareHeartbeatResult(request.member_id, request.epoch)

    def _check_size(self, member_id: str) -> None:
        if len(self.members) >= self.limits.max_size and member_id not in self.members:
            raise api_error(
                "GROUP_MAX_SIZE_REACHED",
                "The share group has reached its maximum capacity of "
                f"{self.limits.max_size} members.",
            )

    def _member(self, request: ShareHeartbeat) -> ShareGroupMember:
        """Returns the member that sends a heartbeat; creates a member if the heartbeat joins.

        The previous member epoch is accepted, because the member possibly did not receive the
        response with the current epoch.
        """
        member = self.persisted.members.get(request.member_id)
        if member is None:
            if request.epoch != JOIN_EPOCH:
                raise self._unknown(request.member_id)
            return ShareGroupMember(request.member_id)
        if request.epoch == JOIN_EPOCH:
            return member
        if request.epoch > member.epoch:
            raise api_error(
                "FENCED_MEMBER_EPOCH",
                f"The share group member has a greater member epoch ({request.epoch}) than the one "
                f"known by the group coordinator ({member.epoch}). The member must abandon all its "
                "partitions and rejoin.",
            )
        if request.epoch not in (member.epoch, member.previous_epoch):
            raise api_error(
                "FENCED_MEMBER_EPOCH",
                f"The share group member has a smaller member epoch ({request.epoch}) than the one "
                f"known by the group coordinator ({member.epoch}), and it does not match the "
                f"previous member epoch ({member.previous_epoch}). The member must abandon all its "
                "partitions and rejoin.",
            )
        return member

    def _unknown(self, member_id: str) -> BrokerResponseError:
        return api_error(
            "UNKNOWN_MEMBER_ID", f"Member {member_id} is not a member of group {self.group_id}."
        )

    # Share states

    def pending_initializations(self) -> list[ShareStateInitialization]:
        """Returns the partitions whose share state must be created.

        A new topic starts at the offset of share.auto.offset.reset. Partitions that were added to a
        known topic start at offset 0.
        """
        state = self.persisted
        return [
            ShareStateInitialization(
                topic_id,
                it.partitions,
                state.epoch,
                _EARLIEST if topic_id in state.initialized else _UNINITIALIZED,
            )
            for topic_id, it in state.initializing.items()
        ]

    def start_initialization(
        self, topics: Mapping[Uuid, frozenset[int]], now: ClockReading
    ) -> None:
        """Stores that share states of partitions are to be created.

        Raises the errors of `GroupCoordinator.append`.
        """
        state = self.persisted
        waiting = dict(state.initializing)
        for topic_id, partitions in topics.items():
            none = TopicInitialization(self._topics.name_of(topic_id), frozenset())
            known = waiting.get(topic_id, none)
            waiting[topic_id] = known._replace(partitions=known.partitions | partitions)
        deleting = {it: name for it, name in state.deleting.items() if it not in waiting}
        self._store_partitions(waiting, state.initialized, deleting, now)

    def on_initialized(
        self, initialized: Iterable[ShareStateInitialization], now: ClockReading
    ) -> None:
        """Stores that the share states of partitions exist; the next heartbeat assigns them.

        Raises the errors of `GroupCoordinator.append`.
        """
        state = self.persisted
        topics = dict(state.initialized)
        waiting = dict(state.initializing)
        for it in initialized:
            name = self._topics.name_of(it.topic_id)
            known = topics.get(it.topic_id, TopicInitialization(name, frozenset()))
            topics[it.topic_id] = TopicInitialization(name, known.partitions | it.partitions)
            waiting = _without(waiting, it)
        self._store_partitions(waiting, topics, state.deleting, now)

    def on_initialization_failed(
        self, failed: Iterable[ShareStateInitialization], now: ClockReading
    ) -> None:
        """Stores that share states were not created; the next heartbeat tries again.

        Raises the errors of `GroupCoordinator.append`.
        """
        state = self.persisted
        waiting = dict(state.initializing)
        for it in failed:
            waiting = _without(waiting, it)
        self._store_partitions(waiting, state.initialized, state.deleting, now)

    def partitions_with_state(self) -> dict[Uuid, frozenset[int]]:
        """Returns the partitions that possibly have a share state, by topic id.

        Includes the topics whose share states were not all deleted before.
        """
        state = self.persisted
        found = {it: topic.partitions for it, topic in state.initialized.items()}
        for topic_id, topic in state.initializing.items():
            found[topic_id] = found.get(topic_id, frozenset()) | topic.partitions
        for topic_id, name in state.deleting.items():
            existing = self._topics.get(name)
            count = 0 if existing is None else len(existing.partitions)
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(range(count))
        return found

    def remove_topics(
        self, topic_ids: Collection[Uuid], now: ClockReading, *, deletes: bool = False
    ) -> None:
        """Stores that topics have no share state any more, or, with `deletes`, soon have none.

        Raises the errors of `GroupCoordinator.append`.
        """
        state = self.persisted
        deleting = {it: name for it, name in state.deleting.items() if it not in topic_ids}
        if deletes:
            deleting |= {it: self._topics.name_of(it) for it in topic_ids}
        self._store_partitions(
            {it: topic for it, topic in state.initializing.items() if it not in topic_ids},
            {it: topic for it, topic in state.initialized.items() if it not in topic_ids},
            deleting,
            now,
        )

    def _store_partitions(
        self,
        initializing: Mapping[Uuid, TopicInitialization],
        initialized: Mapping[Uuid, TopicInitialization],
        deleting: Mapping[Uuid, str],
        now: ClockReading,
    ) -> None:
        record = records.partition_metadata(self.group_id, initializing, initialized, deleting)
        state = self.persisted.copy()
        state.replay(record)
        self._apply([record], state, now)

    # Timeouts

    def advance(self, now: ClockReading) -> None:
        """Removes the members whose sessions have expired, each as of its own deadline."""
        while (deadline := self.next_deadline_ms) is not None and deadline <= now.ms:
            member_id = min(self._sessions, key=self._sessions.__getitem__)
            del self._sessions[member_id]
            try:
                self._remove(member_id, "its session expired", now.at(deadline))
            except BrokerResponseError as error:
                logger.warning("group %s is not stored: %s", log_safe(self.group_id), error)
                self._sessions[member_id] = now.ms + _STORE_RETRY_MS

    def _reset_session(self, member_id: str, now: ClockReading) -> None:
        self._sessions[member_id] = now.ms + self.limits.session_timeout_ms

    # Changes

    def _remove(self, member_id: str, reason: str, now: ClockReading) -> None:
        change = _ShareGroupChange(self.group_id, self.persisted, self._topics, self.limits, now)
        change.remove(member_id)
        self._apply(change.records, change.state, now)
        logger.info("group %s: %s: %s", log_safe(self.group_id), log_safe(member_id), reason)

    def _apply(
        self,
        written: Sequence[CoordinatorRecord],
        state: SharePersistedState,
        now: ClockReading,
    ) -> None:
        """Stores the records of a change; then `state` becomes the group's state.

        Raises BrokerResponseError if the records cannot be stored; then the group has not changed.
        """
        self._group_store.store_share_group(self, written, now)
        before, self.persisted = self.persisted, state
        for member_id in tuple(self._sessions):
            if member_id not in state.members:
                del self._sessions[member_id]
        if before.epoch != state.epoch:
            logger.info(
                "group %s is %s, epoch %d, %d members",
                log_safe(self.group_id),
                self.state,
                state.epoch,
                len(state.members),
            )

    # Unloading

    def unload(self) -> None:
        """Stops all timeouts, because the node is no longer the coordinator."""
        self._sessions.clear()

    def mark_dead(self) -> None:
        """Marks the group as deleted."""
        self._dead = True
        self._sessions.clear()


class _ShareGroupChange:
    """Computes a change of a share group; `records` are the records to append.

    `state` is the state of the group after the change.
    """

    def __init__(
        self,
        group_id: str,
        before: SharePersistedState,
        topics: Topics,
        limits: ShareGroupConfig,
        now: ClockReading,
    ) -> None:
        self.records: list[CoordinatorRecord] = []
        self.state = before.copy()
        self._group_id = group_id
        self._before = before
        self._topics = topics
        self._limits = limits
        self._now = now

    def _write(self, *written: CoordinatorRecord) -> None:
        for record in written:
            self.records.append(record)
            self.state.replay(record)

    def subscribe(self, member: ShareGroupMember, updated: ShareGroupMember) -> bool:
        """Stores the fields of a member; returns True if its subscription has changed."""
        if updated != member or member.member_id not in self.state.members:
            self._write(records.member_metadata(self._group_id, updated))
        return updated.topics != member.topics

    def remove(self, member_id: str) -> None:
        """Removes a member, and bumps the group epoch."""
        self._write(*records.member_tombstones(self._group_id, member_id))
        self._write(records.group_epoch(self._group_id, self.state.epoch + 1, self._hash()))
        if not self.state.members:
            self._write(records.target_epoch(self._group_id, self.state.epoch, 0))

    def bump_group_epoch(self, *, bumps_epoch: bool) -> None:
        """Bumps the group epoch if `bumps_epoch` is set, or if the subscribed topics changed."""
        found = self._hash()
        if bumps_epoch or found != self.state.metadata_hash:
            self._write(records.group_epoch(self._group_id, self.state.epoch + 1, found))

    def _hash(self) -> int:
        return metadata_hash(self.state.topics, self._topics)

    def update_target_assignment(self) -> None:
        """Computes a target assignment if the present one was computed for an older group epoch.

        Does nothing within the assignment interval after the last computation (KIP-1263).
        """
        state = self.state
        if state.epoch <= state.target_epoch:
            return
        interval_ms = self._limits.assignment_interval_ms
        elapsed_ms = self._now.timestamp_ms - state.target_ms
        if interval_ms and state.target_ms and elapsed_ms < interval_ms:
            return
        spec = self._spec()
        assignable = {it: topic.partitions for it, topic in state.initialized.items()}
        found = assign_simple(spec, assignable)
        for member_id in spec.member_ids:
            target = {it: frozenset(its) for it, its in found.get(member_id, {}).items()}
            if state.targets.get(member_id) != target:
                self._write(records.target_assignment(self._group_id, member_id, target))
        self._write(records.target_epoch(self._group_id, state.epoch, self._now.timestamp_ms))

    def _spec(self) -> GroupSpec:
        state = self.state
        former = in_timeline_order(self._before.members, java_hash)
        ordered = [it for it in dict.fromkeys((*former, *state.members)) if it in state.members]
        members = {
            it: MemberSpec(
                dict.fromkeys(self._topic_ids(state.members[it])).keys(),
                None,
                state.targets.get(it, {}),
            )
            for it in ordered
        }
        topic_ids = frozenset[Uuid]().union(*(it.topics for it in members.values()))
        counts = {it: len(self._topics.with_id(it).partitions) for it in topic_ids}
        return GroupSpec(members, counts, state.is_homogeneous)

    def _topic_ids(self, member: ShareGroupMember) -> list[Uuid]:
        """Returns the ids of a member's topics that exist, in the order of Kafka's hash set."""
        names = sorted(member.topics)
        topics = map(self._topics.get, in_java_order(names, java_hash, copied_size(len(names))))
        return [it.topic_id for it in topics if it is not None]

    def reconcile(self, member: ShareGroupMember, *, has_changed: bool) -> ShareGroupMember:
        """Reconciles a member with its target assignment; returns the updated member.

        The member gets the partitions of its target assignment whose topics it subscribes to.
        """
        epoch = self.state.target_epoch
        if member.epoch == epoch and not has_changed:
            return member
        subscribed = frozenset(self._topic_ids(member))
        target: Partitions = self.state.targets.get(member.member_id, {})
        updated = replace(
            member, assigned={it: its for it, its in target.items() if it in subscribed}
        )
        if member.epoch != epoch:
            updated = replace(updated, epoch=epoch, previous_epoch=member.epoch)
        if updated != member:
            self._write(records.current_assignment(self._group_id, updated))
        return updated

    def initialize_topics(self) -> None:
        """Adds partitions of subscribed topics without a share state to `initializing`."""
        state = self.state
        waiting = dict(state.initializing)
        for name in sorted(state.topics):
            topic = self._topics.get(name)
            if topic is None:
                continue
            none = TopicInitialization(name, frozenset())
            known = state.initialized.get(topic.topic_id, none).partitions
            needed = frozenset(range(len(topic.partitions))) - known
            if needed:
                waiting[topic.topic_id] = TopicInitialization(name, needed)
        if waiting != state.initializing:
            deleting = {it: name for it, name in state.deleting.items() if it not in waiting}
            self._write(
                records.partition_metadata(self._group_id, waiting, state.initialized, deleting)
            )


def _update_member(member: ShareGroupMember, request: ShareHeartbeat) -> ShareGroupMember:
    """Returns the member with the fields of a heartbeat; null fields do not change the member."""
    return replace(
        member,
        rack=member.rack if request.rack is None else request.rack,
        topics=member.topics if request.topics is None else request.topics,
        client_id=request.client_id,
        client_host=request.client_host,
    )


def _without(
    waiting: Mapping[Uuid, TopicInitialization], done: ShareStateInitialization
) -> dict[Uuid, TopicInitialization]:
    """Returns `waiting` without the partitions that are initialized."""
    found = dict(waiting)
    topic = found.pop(done.topic_id, None)
    if topic is not None and topic.partitions - done.partitions:
        found[done.topic_id] = topic._replace(partitions=topic.partitions - done.partitions)
    return found
