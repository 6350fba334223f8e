"""Computes one change of a group of the consumer protocol: its records, and the resulting state.

A change has a copy of the state. The caller stores the records, and then replaces the group's state
by the copy. The steps are those of Kafka's GroupMetadataManager (KIP-848), without timers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from ....stored.coordinator_records import CoordinatorRecord
from ....wire.uuid import Uuid
from ...coordinators import java_hash
from ...topics import Topics
from ..clock_reading import ClockReading
from ..group_limits import ConsumerGroupConfig
from ..java_order import copied_size, in_java_order, in_timeline_order
from . import consumer_group_records
from .assignors import GroupSpec, MemberSpec, assign
from .consumer_group_member import JOIN_EPOCH, LEAVE_STATIC_EPOCH, ConsumerGroupMember, Partitions
from .current_assignment_builder import reconcile
from .persisted_state import NEVER, PersistedState, metadata_hash
from .regex_resolution import ResolvedRegex, check_expression, needs_regex_refresh, resolve_regexes

__all__ = ["NO_TOPIC_CHANGES_SEEN", "GroupChange"]

#: The value of `seen_topic_changes` before the group has first compared its topics.
NO_TOPIC_CHANGES_SEEN: Final = -1


class GroupChange:
    """Computes a change of a group; `records` are the records to append.

    `before` is the state of the group before the change, `state` the state after the change.
    """

    def __init__(
        self,
        group_id: str,
        before: PersistedState,
        topics: Topics,
        limits: ConsumerGroupConfig,
        now: ClockReading,
        pending_records: Sequence[CoordinatorRecord] = (),
        seen_topic_changes: int = NO_TOPIC_CHANGES_SEEN,
    ) -> None:
        self.before = before
        #: How many topics had been created in the cluster, plus how many had been deleted, when the
        #: group last compared its topics.
        self.seen_topic_changes = seen_topic_changes
        self.state = before.copy()
        self.records: list[CoordinatorRecord] = list(pending_records)
        #: Whether regular expressions must be resolved after the change.
        self.needs_regex_refresh = False
        #: The assignors that the changed member preferred before and prefers now.
        self._votes: tuple[str | None, str | None] = None, None
        #: Whether all members have the same subscription; see `bump_group_epoch`.
        self._is_homogeneous = before.is_homogeneous
        self._group_id = group_id
        self._topics = topics
        self._limits = limits
        self._now = now

    def write(self, *records: CoordinatorRecord) -> None:
        """Adds records to the change and replays them."""
        for record in records:
            self.records.append(record)
            self.state.replay(record)

    # Members

    def subscribe(self, updated: ConsumerGroupMember) -> tuple[bool, bool]:
        """Stores the fields of a new or existing member.

        Returns two booleans: whether the subscription has changed, and whether the group epoch must
        be bumped. Until a new regular expression is resolved, it matches no topic and does not bump
        the epoch. Raises INVALID_REGULAR_EXPRESSION.
        """
        member = self.state.members.get(updated.member_id, ConsumerGroupMember(updated.member_id))
        self._votes = member.assignor, updated.assignor
        counts = self.state.regex_counts
        if updated != member:
            self.write(consumer_group_records.member_metadata(self._group_id, updated))
        has_changed = updated.topics != member.topics
        before = self.before.assignor or self._limits.assignors[0]
        bumps_epoch = has_changed or before != self._assignor
        is_new = False
        if updated.regex != member.regex:
            has_changed = True
            if member.regex and counts[member.regex] == 1:
                self.write(consumer_group_records.regex_tombstone(self._group_id, member.regex))
            if not updated.regex or updated.regex in self.state.regexes:
                bumps_epoch = True
            elif not counts[updated.regex]:
                check_expression(updated.regex)
                is_new = True
        self.needs_regex_refresh = needs_regex_refresh(
            self.state.regex_counts,
            self.before.regexes,
            is_new=is_new,
            version=self._topics.created_count,
            timestamp_ms=self._now.timestamp_ms,
            interval_ms=self._limits.regex_refresh_interval_ms,
        )
        return has_changed, bumps_epoch

    def replace_static(self, former: ConsumerGroupMember, member_id: str) -> ConsumerGroupMember:
        """Replaces the static member `former` by a new member, and returns the new member.

        The new member has the id `member_id`, and the current and target assignment of `former`.
        """
        member = replace(former, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        target = self.state.target_assignment_of(former.member_id)
        self.write(
            *consumer_group_records.member_tombstones(self._group_id, former.member_id),
            consumer_group_records.member_metadata(self._group_id, member),
            consumer_group_records.target_assignment(self._group_id, member_id, target),
            consumer_group_records.current_assignment(self._group_id, member),
        )
        return member

    def leave_static(self, member: ConsumerGroupMember) -> None:
        """Sets the epoch of a static member to -2, because it has left temporarily.

        The member keeps its assignment.
        """
        rested = {topic_id: dict.fromkeys(its, 0) for topic_id, its in member.assigned.items()}
        self.write(
            consumer_group_records.current_assignment(
                self._group_id,
                replace(member, epoch=LEAVE_STATIC_EPOCH, assigned=rested, revoking={}),
            )
        )

    def remove(self, members: Iterable[ConsumerGroupMember]) -> None:
        """Removes members, and regular expressions that no remaining member uses.

        Bumps the group epoch.
        """
        removed = list(members)
        counts = self.state.regex_counts
        for member in removed:
            self.write(*consumer_group_records.member_tombstones(self._group_id, member.member_id))
        for text, count in Counter(it.regex for it in removed if it.regex).items():
            if counts[text] == count:
                self.write(consumer_group_records.regex_tombstone(self._group_id, text))
        self.write(
            consumer_group_records.group_epoch(self._group_id, self.state.epoch + 1, self._hash())
        )
        if not self.state.members:
            self.write(consumer_group_records.target_epoch(self._group_id, self.state.epoch, NEVER))

    # Target assignment

    def bump_group_epoch(self, *, bumps_epoch: bool) -> None:
        """Bumps the group epoch if `bumps_epoch` is set, or if the subscribed topics have changed.

        As in Kafka, topics are compared only after a topic of the cluster was created or deleted.
        If the topics are compared or `bumps_epoch` is set, the call also determines whether all
        members have the same subscription. The assignor uses this result even if a member without a
        subscription joins later.
        """
        changes = self._topics.created_count + self._topics.deleted_count
        if bumps_epoch or self.seen_topic_changes != changes:
            self.seen_topic_changes = changes
            self._is_homogeneous = self.state.is_homogeneous
            self._bump_epoch(bumps_epoch=bumps_epoch)

    def _bump_epoch(self, *, bumps_epoch: bool) -> None:
        found = self._hash()
        if bumps_epoch or found != self.state.metadata_hash:
            self.write(
                consumer_group_records.group_epoch(self._group_id, self.state.epoch + 1, found)
            )

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
        found = assign(self._assignor, spec)
        for member_id in spec.member_ids:
            target = {it: frozenset(its) for it, its in found.get(member_id, {}).items()}
            if state.targets.get(member_id) != target:
                self.write(
                    consumer_group_records.target_assignment(self._group_id, member_id, target)
                )
        self.write(
            consumer_group_records.target_epoch(self._group_id, state.epoch, self._now.timestamp_ms)
        )

    @property
    def _assignor(self) -> str:
        """Returns the assignor that most members prefer; the default if no member prefers any.

        If assignors have equal votes, an assignor without votes before the change wins; if there is
        no such assignor, the first in the order of `PersistedState.votes` wins. In Kafka, both
        assignors are in the same bucket of a hash map, in which a new key comes first.
        """
        votes = self.before.votes
        former, preferred = self._votes
        if former is not None and former in votes:
            votes[former] -= 1
            if not votes[former]:
                del votes[former]
        if preferred is not None and preferred in votes:
            votes[preferred] += 1
        elif preferred is not None:
            votes = {preferred: 1, **votes}
        return max(votes, key=votes.__getitem__, default=self._limits.assignors[0])

    def _members(self) -> list[ConsumerGroupMember]:
        """Returns the members in the order in which Kafka inserts them into the assignor's map.

        The former members come first, in their iteration order; the new members follow.
        """
        former = in_timeline_order(self.before.members, java_hash)
        members = self.state.members
        return [members[it] for it in dict.fromkeys((*former, *members)) if it in members]

    def _spec(self) -> GroupSpec:
        state = self.state
        members = {
            it.member_id: MemberSpec(
                self.subscribed(it), it.instance_id, state.target_assignment_of(it.member_id)
            )
            for it in self._members()
        }
        topic_ids = frozenset[Uuid]().union(*(it.topics for it in members.values()))
        partitions = {it: len(self._topics.with_id(it).partitions) for it in topic_ids}
        return GroupSpec(members, partitions, self._is_homogeneous)

    def subscribed(self, member: ConsumerGroupMember) -> AbstractSet[Uuid]:
        """Returns the topic ids of a member's subscription, in the order of Kafka's hash set.

        Omits topics that do not exist.
        """
        names = sorted(self.state.topics_of(member))
        topics = map(self._topics.get, in_java_order(names, java_hash, copied_size(len(names))))
        return dict.fromkeys(it.topic_id for it in topics if it is not None).keys()

    def reconcile(
        self, member: ConsumerGroupMember, owned: Partitions | None, *, has_changed: bool
    ) -> ConsumerGroupMember:
        """Reconciles a member with its target assignment; returns the updated member.

        `owned` are the partitions that the member's request reports as owned; None if the request
        does not have them. `has_changed` is True if the member's subscription has changed.
        """
        updated = reconcile(
            member,
            self.state.target_assignment_of(member.member_id),
            self.state.target_epoch,
            subscribed=self.subscribed(member),
            unreleased=self.state.owned,
            owned=owned,
            has_changed=has_changed,
        )
        if updated != member:
            self.write(consumer_group_records.current_assignment(self._group_id, updated))
        return updated

    # Regular expressions

    def resolve_regexes(self, may_describe: Callable[[str], bool]) -> None:
        """Resolves all regular expressions.

        Bumps the group epoch if an expression matches different topics than before, or if a
        subscribed topic has changed.
        """
        found = resolve_regexes(
            self.state.regex_counts,
            (topic.name for topic in self._topics),
            may_describe,
            self._topics.created_count,
            self._now.timestamp_ms,
        )
        none = ResolvedRegex(frozenset(), 0, 0)
        bumps_epoch = False
        for text, its in found.items():
            bumps_epoch = bumps_epoch or self.state.regexes.get(text, none).topics != its.topics
            self.write(consumer_group_records.regex(self._group_id, text, its))
        self._bump_epoch(bumps_epoch=bumps_epoch)
