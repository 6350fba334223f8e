"""Holds the committed offsets of a group, and the offsets of open transactions (KIP-98, KIP-447).

Also finds expired offsets (KIP-211).

Times are parameters, in ms since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from ...wire.uuid import ZERO_UUID, Uuid

__all__ = [
    "CommittedOffset",
    "CommittedOffsets",
    "ExpirableGroup",
    "TopicPartition",
    "exceeds_max_length",
    "expired_offsets",
]

#: The leader epoch of a commit without one.
NO_EPOCH: Final = -1


class TopicPartition(NamedTuple):
    """Names a partition by its topic and index."""

    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    """Holds a committed offset and its metadata.

    `offset` is the offset of the next record to read. `commit_ms` is the time of the commit, and
    `expire_ms` the time at which the offset expires, in ms since 1970; `expire_ms` is None if
    offsets.retention.minutes applies. `topic_id` is the topic id at the time of the commit, zero if
    it was unknown.
    """

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    commit_ms: int = -1
    expire_ms: int | None = None
    topic_id: Uuid = ZERO_UUID

    def is_of(self, topic_id: Uuid) -> bool:
        """Returns True if the offset was committed for the topic with `topic_id`.

        Returns False if the topic was deleted and recreated after the commit. A zero (unknown) id
        matches any id.
        """
        return ZERO_UUID in (self.topic_id, topic_id) or self.topic_id == topic_id


class _PendingOffset(NamedTuple):
    """Holds an offset that takes effect when its transaction commits.

    `position` is higher than the position of every earlier commit, in or outside of a transaction.
    """

    position: int
    committed: CommittedOffset


class CommittedOffsets:
    """Holds the committed offsets of one group by topic and partition.

    Offsets of an open transaction are pending: they take effect when the transaction commits,
    unless the partition has a later commit by then.
    """

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[int, CommittedOffset]] = {}
        # Pending offsets by producer id. Commits have ascending positions; `_positions` has those
        # of the offsets in `_by_topic`.
        self._pending: dict[int, dict[TopicPartition, _PendingOffset]] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._next_position = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_topic.values()))

    def __iter__(self) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        """Yields all offsets, grouped by topic, in the order of the topics' first commits."""
        for topic, partitions in self._by_topic.items():
            for partition, committed in partitions.items():
                yield TopicPartition(topic, partition), committed

    @property
    def topics(self) -> list[str]:
        """Returns the names of the topics with committed offsets."""
        return list(self._by_topic)

    def of_topic(self, topic: str) -> dict[int, CommittedOffset]:
        """Returns the offsets of one topic by partition, as a copy; empty if there are none."""
        return dict(self._by_topic.get(topic, ()))

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """Returns the offset of one partition; None if nothing is committed."""
        return self._by_topic.get(topic, {}).get(partition)

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Stores the committed offset of a partition, in place of an older committed offset."""
        self._put(TopicPartition(topic, partition), committed, self._new_position())

    def _put(self, tp: TopicPartition, committed: CommittedOffset, position: int) -> None:
        self._by_topic.setdefault(tp.topic, {})[tp.partition] = committed
        self._positions[tp] = position

    def _new_position(self) -> int:
        self._next_position += 1
        return self._next_position

    @property
    def has_pending(self) -> bool:
        """Returns True if an open transaction has offsets of this group."""
        return bool(self._pending)

    def is_pending(self, topic: str, partition: int) -> bool:
        """Returns True if an open transaction has an offset of the partition (KIP-447)."""
        tp = TopicPartition(topic, partition)
        return any(tp in offsets for offsets in self._pending.values())

    def put_pending(
        self, producer_id: int, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        """Stores an offset that takes effect when the producer's transaction commits."""
        pending = _PendingOffset(self._new_position(), committed)
        self._pending.setdefault(producer_id, {})[TopicPartition(topic, partition)] = pending

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Commits or drops the pending offsets of a producer.

        As in Kafka, a pending offset is dropped if the partition has a later commit.
        """
        for tp, pending in self._pending.pop(producer_id, {}).items():
            if is_commit and pending.position > self._positions.get(tp, 0):
                self._put(tp, pending.committed, pending.position)

    @property
    def partitions(self) -> list[TopicPartition]:
        """Returns the partitions with committed or pending offsets."""
        committed = [tp for tp, _ in self]
        pending = (tp for offsets in self._pending.values() for tp in offsets)
        return list(dict.fromkeys((*committed, *pending)))

    def remove(self, topic: str, partition: int) -> bool:
        """Removes the offset of a partition; returns True if the partition had a committed offset.

        As in Kafka, also drops the pending offsets of the partition.
        """
        tp = TopicPartition(topic, partition)
        for producer_id, pending in tuple(self._pending.items()):
            pending.pop(tp, None)
            if not pending:
                del self._pending[producer_id]
        offsets = self._by_topic.get(topic, {})
        self._positions.pop(tp, None)
        if offsets.pop(partition, None) is None:
            return False
        if not offsets:
            del self._by_topic[topic]
        return True

    def of_deleted_topic(self, topic: str, topic_id: Uuid) -> list[TopicPartition]:
        """Returns the partitions with committed or pending offsets for the deleted topic.

        Offsets that were committed for another topic of the same name are not included.
        """
        found = [
            TopicPartition(topic, partition)
            for partition, committed in self.of_topic(topic).items()
            if committed.is_of(topic_id)
        ]
        found += [
            tp
            for offsets in self._pending.values()
            for tp, pending in offsets.items()
            if tp.topic == topic and pending.committed.is_of(topic_id)
        ]
        return list(dict.fromkeys(found))


class ExpirableGroup(Protocol):
    """Describes the attributes of a group that `expired_offsets` uses.

    `last_empty_at` is the time at which the group became empty, in ms since 1970; None if unknown.
    """

    offsets: CommittedOffsets

    @property
    def type(self) -> str: ...

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def state(self) -> str: ...

    @property
    def last_empty_at(self) -> int | None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...


def expired_offsets(group: ExpirableGroup, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Returns the partitions of a group whose offsets have expired at `now_ms` (KIP-211).

    An offset expires `retention_ms` after a time that depends on the group:

    | group | time |
    |---|---|
    | without a protocol type (it never had a member) | the commit |
    | of the consumer protocol | the commit |
    | classic and empty | when the last member left; if unknown, the commit |
    | classic and stable, with the protocol type `consumer` | the commit |
    | any other | offsets do not expire |

    Offsets of topics to which a member subscribes do not expire, and neither do offsets that an
    open transaction may change. A commit with an expiration time of its own (OffsetCommit v2 to v4)
    expires at that time instead.
    """
    if group.protocol_type is None or group.type == "consumer":
        since: int | None = None
    elif group.state == "Empty":
        since = group.last_empty_at
    elif group.protocol_type == "consumer" and group.state == "Stable":
        since = None
    else:
        return []
    return [
        tp
        for tp, committed in group.offsets
        if not group.is_subscribed_to(tp.topic)
        and _end(committed, since, retention_ms) <= now_ms
        and not group.offsets.is_pending(*tp)
    ]


def _end(committed: CommittedOffset, since: int | None, retention_ms: int) -> int:
    if committed.expire_ms is not None:
        return committed.expire_ms
    return (committed.commit_ms if since is None else since) + retention_ms


def exceeds_max_length(metadata: str | None, most: int) -> bool:
    """Returns True if the metadata of a commit has more than `most` UTF-16 units.

    Kafka checks the same length: Java measures the length of a string in UTF-16 units.
    """
    return metadata is not None and len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * most
