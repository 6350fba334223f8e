"""Holds the committed offsets of a group, and finds expired offsets (KIP-211).

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

    `offset` is the offset of the next record to read. `commit_ms` is when it was committed, and
    `expire_ms` when it expires, in ms since 1970; `expire_ms` is None if offsets.retention.minutes
    applies. `topic_id` is the topic id at the time of the commit, zero if it was unknown.
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


class CommittedOffsets:
    """Holds the committed offsets of one group by topic and partition."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[int, CommittedOffset]] = {}

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
        """Stores the committed offset of a partition, in place of an older one."""
        self._by_topic.setdefault(topic, {})[partition] = committed

    def remove(self, topic: str, partition: int) -> bool:
        """Removes the offset of a partition; returns True if there was one."""
        offsets = self._by_topic.get(topic, {})
        if offsets.pop(partition, None) is None:
            return False
        if not offsets:
            del self._by_topic[topic]
        return True

    def of_deleted_topic(self, topic: str, topic_id: Uuid) -> list[TopicPartition]:
        """Returns the partitions with offsets that were committed for the deleted topic.

        Offsets that were committed for another topic of the same name are not included.
        """
        return [
            TopicPartition(topic, partition)
            for partition, committed in self.of_topic(topic).items()
            if committed.is_of(topic_id)
        ]


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
    | without a protocol type, that is without members so far | the commit |
    | of the consumer protocol | the commit |
    | classic and empty | when the last member left; if unknown, the commit |
    | classic and stable, with the protocol type `consumer` | the commit |
    | any other | offsets do not expire |

    Offsets of topics to which a member subscribes do not expire. A commit with an expiration time
    of its own (OffsetCommit v2 to v4) expires at that time instead.
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
        if not group.is_subscribed_to(tp.topic) and _end(committed, since, retention_ms) <= now_ms
    ]


def _end(committed: CommittedOffset, since: int | None, retention_ms: int) -> int:
    if committed.expire_ms is not None:
        return committed.expire_ms
    return (committed.commit_ms if since is None else since) + retention_ms


def exceeds_max_length(metadata: str | None, most: int) -> bool:
    """Returns True if the metadata of a commit has more than `most` UTF-16 units.

    That is the length of a Java string, which Kafka checks.
    """
    return metadata is not None and len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * most
