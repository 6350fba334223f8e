"""`__consumer_offsets`: which node coordinates a group, and what the log says of its groups.

Owns the topic's name, settings and partitions by group, the writing of records (KIP-211 decides
what ends), and the reading of groups again when their coordinator is another. Whoever changes a
group writes here what it has changed; a coordinator that took over, or whose log lost its end, has
the groups as the log has them. Knows no request, no clock and no connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from ...records import Record, RecordBatch
from ...stored.coordinator_records import CoordinatorRecord
from ...wire.errors import BrokerResponseError, KprotoError
from ..coordinators import partition_of
from ..leadership import NO_LEADER
from ..lines import one_line
from ..refusal import refusal
from ..storage.partition import Partition
from ..topics import Topic, Topics
from .consumer import ConsumerGroup
from .groups import AnyGroup, Groups
from .migration import replaced
from .moment import Moment
from .offsets import TopicPartition, expired
from .states import GroupState
from .stored import (
    OFFSETS_TOPIC,
    batch_of,
    group_tombstone,
    load,
    offset_tombstone,
)

__all__ = ["OFFSETS_TOPIC", "OFFSETS_TOPIC_CONFIGS", "OffsetsTopic"]

logger = logging.getLogger("kproto.broker")

#: What Kafka creates the topic with; its segments are 100 MiB (offsets.topic.segment.bytes).
OFFSETS_TOPIC_CONFIGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
)

#: What a coordinator answers where a batch is larger than its log takes.
_TOO_LARGE: Final = "UNKNOWN_SERVER_ERROR"

#: What a coordinator answers where its log does not take what it writes: Kafka's
#: CoordinatorOperationExceptionHelper.
_ERRORS_OF_WRITING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "KAFKA_STORAGE_ERROR": "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS": "COORDINATOR_NOT_AVAILABLE",
        "MESSAGE_TOO_LARGE": _TOO_LARGE,
    }
)


class _Loaded(NamedTuple):
    """A partition whose groups are at hand, of so many; `unload` is called when it moves."""

    partition: Partition
    partitions: int
    unload: Callable[[], None]


class OffsetsTopic:
    """The groups of a cluster, each with the coordinator that leads its partition.

    `retention_ms` is how long offsets are kept, `check_interval_ms` how long a group without
    members and offsets is (offsets.retention.minutes, offsets.retention.check.interval.ms).
    """

    def __init__(
        self, topics: Topics, groups: Groups, *, retention_ms: int, check_interval_ms: int
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._retention_ms = retention_ms
        self._check_interval_ms = check_interval_ms
        self._loaded: dict[int, _Loaded] = {}
        groups.write = self.append

    # Who coordinates

    @property
    def topic(self) -> Topic | None:
        """The topic; None before it is created."""
        return self._topics.get(OFFSETS_TOPIC)

    def partition(self, group_id: str) -> Partition | None:
        """The partition of a group; None before the topic is created.

        Its `moved` tells of another coordinator.
        """
        topic = self.topic
        if topic is None:
            return None
        return topic.partitions[partition_of(group_id, len(topic.partitions))]

    def coordinator(self, group_id: str) -> int:
        """The node that coordinates a group; NO_LEADER for none."""
        partition = self.partition(group_id)
        return NO_LEADER if partition is None else partition.led.leader

    def check(self, node_id: int, group_id: str) -> Partition:
        """The partition of a group that this node coordinates. Raises NOT_COORDINATOR."""
        partition = self.partition(group_id)
        if partition is None or partition.led.leader != node_id:
            raise refusal("NOT_COORDINATOR", f"broker {node_id} does not coordinate that group")
        return partition

    # Groups

    def find(self, node_id: int, group_id: str, now: Moment) -> AnyGroup | None:
        """A group, as it is now; None where there is none. Raises NOT_COORDINATOR."""
        self._load(self.check(node_id, group_id), now)
        group = self._groups.find(group_id, now)
        return None if group is None or self._expire(group, now) else group

    def find_or_create(self, node_id: int, group_id: str, now: Moment) -> AnyGroup:
        """The same; a group that is not there is made, and not written. Raises NOT_COORDINATOR."""
        return self.find(node_id, group_id, now) or self._groups.find_or_create(
            group_id, now, keep=False
        )

    def to_join(self, node_id: int, group_id: str, now: Moment) -> AnyGroup:
        """The group for a member of the classic protocol that has no id yet.

        Raises NOT_COORDINATOR, and as `append` does.
        """
        self.find(node_id, group_id, now)
        return self._groups.to_join(group_id, now)

    def consumer_group(self, node_id: int, group_id: str, now: Moment) -> ConsumerGroup:
        """The group for a member of the consumer protocol that joins.

        Raises NOT_COORDINATOR, and GROUP_ID_NOT_FOUND for a classic group that stays one.
        """
        self.find(node_id, group_id, now)
        return self._groups.consumer_group(group_id, now)

    def all_of(self, node_id: int, now: Moment) -> list[AnyGroup]:
        """Every group that a node coordinates, as it is now."""
        topic = self.topic
        for partition in () if topic is None else topic.partitions:
            if partition.led.leader == node_id:
                self._load(partition, now)
        return [
            group
            for group in self._groups.all(now)
            if self.coordinator(group.group_id) == node_id and not self._expire(group, now)
        ]

    # What the log says

    def append(self, group_id: str, records: Sequence[CoordinatorRecord], now: Moment) -> None:
        """Write what a change of a group has changed, as one batch; nothing for no records.

        Whoever changes a group writes first: what cannot be written has not happened. Raises
        NOT_COORDINATOR where there is no log, or no room in it, COORDINATOR_NOT_AVAILABLE where too
        few replicas are in sync, and UNKNOWN_SERVER_ERROR for more than a batch of the topic may
        hold, as Kafka does.
        """
        topic = self.topic
        partition = self.partition(group_id)
        if topic is None or partition is None:
            raise refusal("NOT_COORDINATOR", f"there is no {OFFSETS_TOPIC}")
        if not records:
            return
        batch = RecordBatch(batch_of(records, now.date_ms))
        try:
            topic.check_in_sync(partition.index)
            if batch.size_in_bytes > topic.config.max_message_bytes:
                raise refusal(
                    "MESSAGE_TOO_LARGE",
                    f"the batch has {batch.size_in_bytes} bytes, and {OFFSETS_TOPIC} takes "
                    f"{topic.config.max_message_bytes}",
                )
            partition.log.append(batch, now.date_ms)
        except BrokerResponseError as error:
            raise refusal(_ERRORS_OF_WRITING.get(error.name, error.name), error.detail) from None

    def forget_topic(self, deleted: Topic, now: Moment) -> None:
        """The offsets of a topic that was deleted go with it.

        Where nobody coordinates a group they stay, as in Kafka, where nobody hears of it.
        """
        topic = self.topic
        for partition in () if topic is None else topic.partitions:
            if partition.led.leader != NO_LEADER:
                self._load(partition, now)
        for group in self._groups.all(now):
            if self.coordinator(group.group_id) != NO_LEADER:
                gone = group.offsets.of_deleted(deleted.name, deleted.topic_id)
                self._remove(group, gone, now)

    def delete(self, group: AnyGroup, now: Moment) -> None:
        """A group and its offsets are no more. Raises as `append` does."""
        places = [place for place, _ in group.offsets]
        records = [offset_tombstone(group.group_id, *place) for place in places]
        if isinstance(group, ConsumerGroup):
            records += replaced(group.kept, group.group_id)
        else:
            records.append(group_tombstone(group.group_id))
        self.append(group.group_id, records, now)
        self._groups.delete(group)

    def _expire(self, group: AnyGroup, now: Moment) -> bool:
        """Drop what has had its time; whether the group went with it."""
        places = expired(group, now.date_ms, self._retention_ms)
        if group.state == GroupState.EMPTY and len(places) == len(group.offsets):
            since = group.last_empty_at
            if places or since is None or now.date_ms - since >= self._check_interval_ms:
                return self._let_go(group, places, now)
        self._remove(group, places, now)
        return False

    def _let_go(self, group: AnyGroup, places: Sequence[TopicPartition], now: Moment) -> bool:
        """A group whose last offsets, `places`, have had their time goes with them; whether so."""
        try:
            self.delete(group, now)
        except BrokerResponseError as error:
            if places and error.name == _TOO_LARGE and self._remove(group, places, now):
                return self._let_go(group, (), now)
            said = one_line(group.group_id)
            logger.warning("group %s stays, though over: %s", said, error)
            return False
        return True

    def _remove(self, group: AnyGroup, places: Sequence[TopicPartition], now: Moment) -> bool:
        """Drop offsets, in as many batches as it takes, as in Kafka; whether all are gone."""
        try:
            records = [offset_tombstone(group.group_id, *place) for place in places]
            self.append(group.group_id, records, now)
        except BrokerResponseError as error:
            if error.name == _TOO_LARGE and len(places) > 1:
                half = len(places) // 2
                first, second = places[:half], places[half:]
                return self._remove(group, first, now) and self._remove(group, second, now)
            said = one_line(group.group_id)
            logger.warning("offsets of group %s stay, though over: %s", said, error)
            return False
        for place in places:
            group.offsets.remove(*place)
        return True

    def unload(self) -> None:
        """Nobody coordinates for now: all that wait hear so."""
        for index in tuple(self._loaded):
            self._unload(index)

    def _load(self, partition: Partition, now: Moment) -> None:
        """Have the groups of a partition as its log says, until its leader or its end changes."""
        topic = self.topic
        assert topic is not None
        index = partition.index
        if index in self._loaded:
            return
        unload = partial(self._unload, index)
        self._loaded[index] = _Loaded(partition, len(topic.partitions), unload)
        partition.moved.watchers.add(unload)
        found = load(_records(partition))
        for group_id, stored in found.items():
            self._groups.restore(group_id, stored, now)
        if found:
            logger.info("%s-%d: %d groups are read", OFFSETS_TOPIC, index, len(found))

    def _unload(self, index: int) -> None:
        loaded = self._loaded.pop(index)
        loaded.partition.moved.watchers.discard(loaded.unload)
        for group_id in self._groups.ids:
            if partition_of(group_id, loaded.partitions) == index:
                self._groups.unload(group_id)


def _records(partition: Partition) -> Iterator[Record]:
    """Every record of a log, but for batches that cannot be read: an admin may write some."""
    for batch in partition.log:
        if batch.is_control:
            continue
        try:
            records = list(batch.records(from_offset=partition.log.start_offset))
        except KprotoError as error:
            logger.warning("%s-%d is read past: %s", OFFSETS_TOPIC, partition.index, error)
            continue
        yield from records
