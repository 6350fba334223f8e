"""All groups of a cluster, by id. Knows no coordinator: who asks has found out who that is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from ...stored.coordinator_records import CoordinatorRecord
from ..lines import one_line
from ..topics import Topics
from .consumer import ConsumerGroup, ConsumerLimits
from .consumer.change import Change
from .consumer.state import ConsumerState
from .group import Group
from .limits import GroupLimits
from .migration import downgraded, replaced, upgraded
from .moment import Moment
from .stored import StoredGroup, group_record, group_tombstone

__all__ = ["AnyGroup", "Groups"]

logger = logging.getLogger("kproto.broker")

AnyGroup: TypeAlias = Group | ConsumerGroup
"""A group of either protocol."""

#: What bounds a group of the consumer protocol, by its id.
LimitsOf: TypeAlias = Callable[[str], ConsumerLimits]

Write: TypeAlias = Callable[[str, Sequence[CoordinatorRecord], Moment], None]


class Groups:
    """The groups that coordinators have at hand; `write` is called with what each changes.

    A classic group is stored when its first member makes it, and when it is stable or empty, one of
    the consumer protocol whenever it changes. `write` raises BrokerResponseError where that cannot
    be written.
    """

    def __init__(
        self,
        limits: GroupLimits,
        consumer: ConsumerLimits | LimitsOf | None = None,
        topics: Topics | None = None,
    ) -> None:
        self.write: Write = _forget
        self._limits = limits
        bounds = consumer or ConsumerLimits()
        self._consumer_limits: LimitsOf = bounds if callable(bounds) else lambda group_id: bounds
        self._topics = Topics() if topics is None else topics
        self._groups: dict[str, AnyGroup] = {}

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all groups, in the order in which they were made."""
        return tuple(self._groups)

    def find(self, group_id: str, now: Moment) -> AnyGroup | None:
        """The group as it is now; None where there is none."""
        group = self._groups.get(group_id)
        if group is None:
            return None
        group.advance(now)
        return self._groups.get(group_id)  # another, where the last of its protocol has gone

    def find_or_create(self, group_id: str, now: Moment, *, keep: bool) -> AnyGroup:
        """The same; an empty classic one where there was none, which is stored for `keep`.

        As in Kafka, a group is stored before its first member joins, and not because somebody
        commits offsets, which are stored themselves. Raises BrokerResponseError where that cannot
        be written; then there is no such group.
        """
        group = self.find(group_id, now)
        if group is None:
            group = self._made(group_id, now)
            if keep:
                self._store(group, now)
            self._groups[group_id] = group
            logger.info("group %s is new", one_line(group_id))
        return group

    def to_join(self, group_id: str, now: Moment) -> AnyGroup:
        """The group that a member of the classic protocol joins that has no id yet.

        A classic one is made where there is none, and in place of an empty one of the consumer
        protocol. Raises BrokerResponseError.
        """
        group = self.find_or_create(group_id, now, keep=True)
        if isinstance(group, ConsumerGroup) and not group.members:
            classic = self._made(group_id, now)
            records = [*replaced(group.kept, group_id), group_record(group_id, classic.metadata)]
            self.write(group_id, records, now)
            self._take_place(group, classic)
            return classic
        return group

    def consumer_group(self, group_id: str, now: Moment) -> ConsumerGroup:
        """The group that a member of the consumer protocol joins.

        A new one is one of the cluster's once it has stored something, and so is one in place of a
        classic group: an empty one is replaced, one with members is converted if it can be. Raises
        GROUP_ID_NOT_FOUND where it cannot, and UNKNOWN_SERVER_ERROR where it cannot yet.
        """
        group = self.find(group_id, now)
        if isinstance(group, ConsumerGroup):
            return group
        state: ConsumerState | None = None
        written: list[CoordinatorRecord] = []
        if group is not None and group.members:
            state, written = upgraded(group, self._consumer_limits(group_id), self._topics)
        elif group is not None:
            written = [group_tombstone(group_id)]
        return self._made_consumer(group_id, now, StoredGroup(None, state), written)

    def restore(self, group_id: str, stored: StoredGroup, now: Moment) -> None:
        """Take a group as the log says it; without metadata it is one of simple consumers."""
        group: AnyGroup
        if stored.consumer is not None:
            group = self._made_consumer(group_id, now, stored)
        else:
            group = self._made(group_id, now)
        self._groups[group_id] = group
        group.offsets = stored.offsets
        if isinstance(group, Group) and stored.metadata is not None:
            group.restore(stored.metadata, now)

    def all(self, now: Moment) -> Iterator[AnyGroup]:
        """Every group as it is now, in the order in which they were made."""
        for group_id in self.ids:
            group = self.find(group_id, now)
            if group is not None:
                yield group

    def delete(self, group: AnyGroup) -> None:
        """Forget a group, in which nobody is any more."""
        del self._groups[group.group_id]
        group.bury()
        logger.info("group %s is deleted", one_line(group.group_id))

    def unload(self, group_id: str) -> None:
        """The coordinator of a group is one no more; the next reads the log."""
        self._groups.pop(group_id).unload()

    def bound(self, group_id: str) -> None:
        """What bounds a group is something else from now on."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.limits = self._consumer_limits(group_id)

    # What groups of the consumer protocol ask of their keeper

    def store(
        self, group: ConsumerGroup, records: Sequence[CoordinatorRecord], now: Moment
    ) -> None:
        """Write records, and have the group be that of its id. Raises BrokerResponseError."""
        self.write(group.group_id, records, now)
        former = self._groups.get(group.group_id)
        if former is not group:
            self._take_place(former, group)

    def downgrade(
        self,
        group: ConsumerGroup,
        change: Change,
        leaving: Collection[str],
        why: str | None,
        now: Moment,
    ) -> None:
        """Make a classic group of one that is as a change has it, without those that leave.

        For a reason, `why`, its members join again. Raises BrokerResponseError.
        """
        group_id, kept = group.group_id, change.state
        metadata, protocols = downgraded(kept, leaving, self._topics, now)
        records = [*replaced(kept, group_id), group_record(group_id, metadata)]
        self.write(group_id, [*change.records, *records], now)
        classic = self._made(group_id, now)
        self._take_place(group, classic)
        classic.restore(metadata, now)
        classic.begin_anew(protocols, why, now)

    def _take_place(self, former: AnyGroup | None, group: AnyGroup) -> None:
        """Let a group be that of its id, with the offsets of the one that was."""
        self._groups[group.group_id] = group
        said = one_line(group.group_id)
        if former is None:
            logger.info("group %s is new, of the consumer protocol", said)
            return
        group.offsets = former.offsets
        logger.info("group %s is a %s group from now on", said, group.type)
        if isinstance(former, Group):
            former.unload("REBALANCE_IN_PROGRESS")
        former.bury()

    def _made(self, group_id: str, now: Moment) -> Group:
        return Group(group_id, self._limits, self._store, now)

    def _made_consumer(
        self,
        group_id: str,
        now: Moment,
        stored: StoredGroup,
        written: Sequence[CoordinatorRecord] = (),
    ) -> ConsumerGroup:
        return ConsumerGroup(
            group_id,
            self._consumer_limits(group_id),
            self._topics,
            self,
            now,
            state=stored.consumer,
            written=written,
        )

    def _store(self, group: Group, now: Moment) -> None:
        self.write(group.group_id, [group_record(group.group_id, group.metadata)], now)


def _forget(group_id: str, records: Sequence[CoordinatorRecord], now: Moment) -> None:
    """Where nothing is stored."""
