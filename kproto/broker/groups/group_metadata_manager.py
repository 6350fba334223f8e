"""Holds the loaded groups of a cluster by group id, and converts groups between the protocols.

`GroupMetadataManager` creates groups of each type, and calls `write` with the records of each
change. `group_coordinator` writes the records to `__consumer_offsets`, and loads the groups from
it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from ...stored.coordinator_records import CoordinatorRecord
from ..api_error import api_error
from ..log_escaping import log_safe
from ..topics import Topics
from .classic_group import ClassicGroup
from .clock_reading import ClockReading
from .consumer import ConsumerGroup
from .consumer.group_change import GroupChange
from .consumer.persisted_state import PersistedState
from .coordinator_records import StoredGroup, group_record, group_tombstone
from .group_limits import ClassicGroupLimits, ConsumerGroupConfig, ShareGroupConfig
from .migration import convert_to_classic_group, convert_to_consumer_group, group_tombstones_of
from .share import ShareGroup

__all__ = ["AnyGroup", "GroupMetadataManager", "OffsetsGroup"]

logger = logging.getLogger("kproto.broker")

OffsetsGroup: TypeAlias = ClassicGroup | ConsumerGroup
"""A group that commits offsets."""

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup | ShareGroup
"""A group of any type."""

#: Returns the config of a group of the consumer protocol by its group id.
ConfigOf: TypeAlias = Callable[[str], ConsumerGroupConfig]

#: Returns the config of a share group by its group id.
ShareConfigOf: TypeAlias = Callable[[str], ShareGroupConfig]

Write: TypeAlias = Callable[[str, Sequence[CoordinatorRecord], ClockReading], None]


class GroupMetadataManager:
    """Holds the loaded groups by group id, and calls `write` with the records of each change.

    A classic group is stored before its first member joins, when it becomes Stable or Empty, and
    when a restarted static member of a Stable group gets a new member id. A group of the consumer
    protocol is stored at each change. `write` raises BrokerResponseError if the records cannot be
    stored.
    """

    def __init__(
        self,
        limits: ClassicGroupLimits,
        consumer: ConsumerGroupConfig | ConfigOf | None = None,
        topics: Topics | None = None,
        share: ShareConfigOf | None = None,
    ) -> None:
        self.write: Write = _discard
        self._limits = limits
        bounds = consumer or ConsumerGroupConfig()
        self._consumer_limits: ConfigOf = bounds if callable(bounds) else lambda group_id: bounds
        self._share_limits: ShareConfigOf = share or (lambda group_id: ShareGroupConfig())
        self._topics = Topics() if topics is None else topics
        self._groups: dict[str, AnyGroup] = {}

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def ids(self) -> tuple[str, ...]:
        """Returns the group ids of all loaded groups, in the order of creation or loading."""
        return tuple(self._groups)

    def find(self, group_id: str, now: ClockReading) -> AnyGroup | None:
        """Handles the expired timeouts of a group, then returns the group.

        Returns None if the group is not loaded.
        """
        group = self._groups.get(group_id)
        if group is None:
            return None
        group.advance(now)
        return self._groups.get(
            group_id
        )  # again, because `advance` may have replaced the group by a classic group

    def get_or_create(self, group_id: str, now: ClockReading, *, persist: bool) -> OffsetsGroup:
        """Returns the group; if it does not exist, creates an empty classic group.

        If `persist` is True, a new group is also stored. As in Kafka, a new group is stored before
        its first member joins. A group that is created to commit offsets is not stored. Raises
        INCONSISTENT_GROUP_PROTOCOL for a share group. Raises BrokerResponseError if the new group
        cannot be stored; then no group is created.
        """
        group = self.find(group_id, now)
        if isinstance(group, ShareGroup):
            raise api_error("INCONSISTENT_GROUP_PROTOCOL", f"group {group_id!r} is a share group")
        if group is None:
            group = self._new_classic_group(group_id, now)
            if persist:
                self._store(group, now)
            self._groups[group_id] = group
            logger.info("group %s is new", log_safe(group_id))
        return group

    def get_or_create_classic_group(self, group_id: str, now: ClockReading) -> OffsetsGroup:
        """Returns the group that a new member of the classic protocol joins.

        Creates a classic group if there is no group, or if there is an empty group of the consumer
        protocol. Raises the errors of `get_or_create`.
        """
        group = self.get_or_create(group_id, now, persist=True)
        if isinstance(group, ConsumerGroup) and not group.members:
            classic = self._new_classic_group(group_id, now)
            records = [
                *group_tombstones_of(group.persisted, group_id),
                group_record(group_id, classic.metadata),
            ]
            self.write(group_id, records, now)
            self._install(group, classic)
            return classic
        return group

    def get_or_create_consumer_group(self, group_id: str, now: ClockReading) -> ConsumerGroup:
        """Returns the group that a member of the consumer protocol joins.

        If the group does not exist, creates it; the group is added only when its first change is
        stored. Converts a classic group with members, and replaces a classic group without members.
        Raises GROUP_ID_NOT_FOUND if a classic group cannot be converted, and UNKNOWN_SERVER_ERROR
        during certain rebalances (`migration`).
        """
        group = self.find(group_id, now)
        if isinstance(group, ConsumerGroup):
            return group
        if isinstance(group, ShareGroup):
            raise api_error("GROUP_ID_NOT_FOUND", f"Group {group_id} is not a consumer group.")
        state: PersistedState | None = None
        pending_records: list[CoordinatorRecord] = []
        if group is not None and group.members:
            state, pending_records = convert_to_consumer_group(
                group, self._consumer_limits(group_id), self._topics
            )
        elif group is not None:
            pending_records = [group_tombstone(group_id)]
        return self._new_consumer_group(group_id, now, StoredGroup(None, state), pending_records)

    def get_or_create_share_group(self, group_id: str, now: ClockReading) -> ShareGroup:
        """Returns the share group that a member joins.

        If the group does not exist, creates it; the group is added only when its first change is
        stored. Raises GROUP_ID_NOT_FOUND if the group has another type.
        """
        group = self.find(group_id, now)
        if group is None:
            return self._new_share_group(group_id, now)
        if not isinstance(group, ShareGroup):
            raise api_error("GROUP_ID_NOT_FOUND", f"Group {group_id} is not a share group.")
        return group

    def restore(self, group_id: str, stored: StoredGroup, now: ClockReading) -> None:
        """Adds a group that was loaded from the log."""
        group: AnyGroup
        if stored.share is not None:
            group = self._new_share_group(group_id, now, stored)
        elif stored.consumer is not None:
            group = self._new_consumer_group(group_id, now, stored)
        else:
            group = self._new_classic_group(group_id, now)
        self._groups[group_id] = group
        group.offsets = stored.offsets
        if isinstance(group, ClassicGroup) and stored.metadata is not None:
            group.restore(stored.metadata, now)

    def all(self, now: ClockReading) -> Iterator[AnyGroup]:
        """Yields all loaded groups in the order of `ids`.

        First handles the expired timeouts of the groups.
        """
        for group_id in self.ids:
            group = self.find(group_id, now)
            if group is not None:
                yield group

    def delete(self, group: AnyGroup) -> None:
        """Removes a group; the caller has stored its tombstones."""
        del self._groups[group.group_id]
        group.mark_dead()
        logger.info("group %s is deleted", log_safe(group.group_id))

    def unload(self, group_id: str) -> None:
        """Removes a group from memory; the next coordinator loads it from the log."""
        self._groups.pop(group_id).unload()

    def end_transaction(self, group_id: str, producer_id: int, *, is_commit: bool) -> None:
        """Commits or drops the pending offsets of a producer in one loaded group."""
        self._groups[group_id].offsets.end_transaction(producer_id, is_commit=is_commit)

    def on_config_changed(self, group_id: str) -> None:
        """Applies changed dynamic configs to a group, if it is loaded."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.limits = self._consumer_limits(group_id)
        elif isinstance(group, ShareGroup):
            group.limits = self._share_limits(group_id)

    # The `GroupStore` of groups of the consumer protocol

    def store(
        self, group: ConsumerGroup, records: Sequence[CoordinatorRecord], now: ClockReading
    ) -> None:
        """Stores `records`; then adds `group` if it is new.

        A new group replaces a classic group with the same group id. Raises BrokerResponseError if
        the records cannot be stored; then the group is not added.
        """
        self.write(group.group_id, records, now)
        former = self._groups.get(group.group_id)
        if former is not group:
            self._install(former, group)

    def store_share_group(
        self, group: ShareGroup, records: Sequence[CoordinatorRecord], now: ClockReading
    ) -> None:
        """Stores `records`; then adds `group` if it is new. Raises BrokerResponseError."""
        self.write(group.group_id, records, now)
        if group.group_id not in self._groups:
            self._groups[group.group_id] = group
            logger.info("group %s is new, a share group", log_safe(group.group_id))

    def downgrade(
        self,
        group: ConsumerGroup,
        change: GroupChange,
        leaving: Collection[str],
        reason: str | None,
        now: ClockReading,
    ) -> None:
        """Replaces a group by a classic group, without the members `leaving`.

        If `reason` is not None, the classic group rebalances. Raises BrokerResponseError.
        """
        group_id, persisted = group.group_id, change.state
        metadata, protocols = convert_to_classic_group(persisted, leaving, self._topics, now)
        records = [*group_tombstones_of(persisted, group_id), group_record(group_id, metadata)]
        self.write(group_id, [*change.records, *records], now)
        classic = self._new_classic_group(group_id, now)
        self._install(group, classic)
        classic.restore(metadata, now)
        classic.restore_protocols(protocols, reason, now)

    def _install(self, former: AnyGroup | None, group: AnyGroup) -> None:
        """Adds a group in place of `former`, with the offsets of `former`.

        Delayed requests of a former classic group get REBALANCE_IN_PROGRESS.
        """
        self._groups[group.group_id] = group
        safe_id = log_safe(group.group_id)
        if former is None:
            logger.info("group %s is new, of the consumer protocol", safe_id)
            return
        group.offsets = former.offsets
        logger.info("group %s is now a %s group", safe_id, group.type)
        if isinstance(former, ClassicGroup):
            former.unload("REBALANCE_IN_PROGRESS")
        former.mark_dead()

    def _new_classic_group(self, group_id: str, now: ClockReading) -> ClassicGroup:
        return ClassicGroup(group_id, self._limits, self._store, now)

    def _new_consumer_group(
        self,
        group_id: str,
        now: ClockReading,
        stored: StoredGroup,
        pending_records: Sequence[CoordinatorRecord] = (),
    ) -> ConsumerGroup:
        return ConsumerGroup(
            group_id,
            self._consumer_limits(group_id),
            self._topics,
            self,
            now,
            state=stored.consumer,
            pending_records=pending_records,
        )

    def _new_share_group(
        self, group_id: str, now: ClockReading, stored: StoredGroup | None = None
    ) -> ShareGroup:
        return ShareGroup(
            group_id,
            self._share_limits(group_id),
            self._topics,
            self,
            now,
            state=None if stored is None else stored.share,
        )

    def _store(self, group: ClassicGroup, now: ClockReading) -> None:
        self.write(group.group_id, [group_record(group.group_id, group.metadata)], now)


def _discard(group_id: str, records: Sequence[CoordinatorRecord], now: ClockReading) -> None:
    """Ignores the records; is the default of `GroupMetadataManager.write`."""
