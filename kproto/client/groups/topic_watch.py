"""Detects changes of topics since the last assignment that make a rebalance necessary. Does no I/O.

The leader watches all topics of its group; a member with a pattern watches the topics that match. A
topic that is only temporarily unknown, for example because its leader moved, has not changed.
`MissingTopics` tracks subscribed topics that do not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Final

from ...protocol.error_codes import code_of
from ...wire.counted import counted
from ..metadata.cluster import TopicInfo
from .assignors.subscriptions import TopicRacks
from .subscription import Subscription

__all__ = ["MissingTopics", "TopicWatch", "partition_count"]

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")


def partition_count(info: TopicInfo) -> int:
    """Returns the number of partitions of a topic, counted from partition 0 up to the first gap.

    The metadata of a new topic may lack some of its partitions.
    """
    count = 0
    while count in info.partitions:
        count += 1
    return count


class MissingTopics:
    """Tracks topics that a member subscribes to by name and that do not exist, and reports them.

    A topic is reported after it was missing for `patience_s`, because brokers need time to learn of
    a new topic. A reported topic is reported again only if it has existed since the report.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: dict[str, float] = {}
        self._reported: set[str] = set()

    def to_report(
        self, wanted: Container[str], topics: Iterable[TopicInfo], known: Container[str], now: float
    ) -> list[str]:
        """Returns the topics to report as missing, after a Metadata response with `topics`.

        A topic is reported once, after it has been missing for `patience_s` seconds. `wanted` are
        the subscribed names; `known` are the topics with known metadata.
        """
        gone = [info.name for info in topics if info.error_code == _NO_SUCH_TOPIC]
        since = dict.fromkeys(gone, now) | self._since
        self._since = {
            name: since
            for name, since in since.items()
            if name in wanted and (name in gone or name not in known)
        }
        self._reported &= self._since.keys()
        found = [
            name
            for name in sorted(self._since.keys() & set(gone) - self._reported)
            if now - self._since[name] >= self._patience_s
        ]
        self._reported.update(found)
        return found

    @property
    def next_report_at(self) -> float:
        """Returns the time at which the next missing topic may be reported, in seconds.

        Returns infinity if all missing topics have been reported.
        """
        unreported = [since for name, since in self._since.items() if name not in self._reported]
        return min(unreported) + self._patience_s if unreported else float("inf")


class TopicWatch:
    """Compares topics and partition counts with those of the last assignment."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # of a leader: topic -> partition count
        self._seen: dict[str, TopicInfo] = {}
        self._subscription = Subscription()
        self._joined: frozenset[str] = frozenset()
        #: The topics that match the pattern now, temporarily unknown ones included.
        self.matching: frozenset[str] = frozenset()

    def joined(self, subscription: Subscription, topics: frozenset[str]) -> None:
        """Stores the topics of a join; the member is a follower until `lead` is called."""
        self._subscription, self._joined = subscription, topics
        self.matching = topics
        self.follow()

    def follow(self) -> None:
        """Stops watching the partition counts of the group's topics.

        Only the leader of a group watches them.
        """
        self._counts.clear()
        self._seen.clear()

    def lead(self, wanted: Iterable[str], known: TopicRacks) -> None:
        """Watches the topics of the group, because the member leads.

        `wanted` are the topics; `known` has their partitions.
        """
        self.follow()
        self._counts = {topic: len(known.get(topic, ())) for topic in wanted}

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics whose metadata must be refreshed regularly to detect changes.

        None stands for all topics, because any topic may match a pattern. Empty for a follower
        without a pattern.
        """
        return None if self._subscription.pattern is not None else frozenset(self._counts)

    @property
    def missing(self) -> frozenset[str]:
        """Returns the topics of the group that do not exist yet; empty for a follower."""
        return frozenset(topic for topic, count in self._counts.items() if not count)

    def rejoin_reason(self, topics: Mapping[str, TopicInfo]) -> str | None:
        """Returns the reason to rejoin, from known metadata; None if the topics are unchanged."""
        for topic in self._counts:
            info = topics.get(topic)
            if info is None or self._seen.get(topic) is info:
                continue
            change = self._changed(topic, partition_count(info))
            if change is not None:
                return change
            self._seen[topic] = info
        if self._subscription.pattern is None:
            return None
        return self._matching(self._subscription.among(topics.values()) | self._joined)

    def rejoin_reason_in_response(
        self, topics: Collection[TopicInfo], *, whole: bool
    ) -> str | None:
        """Compares the topics in a metadata response with the topics that the member watches.

        Returns the reason to rejoin; None if the topics are unchanged. `whole` is True if the
        response is about all topics. In this case, a watched topic that is not in the response was
        deleted.
        """
        by_name = {info.name: info for info in topics}
        for topic in self._counts:
            info = by_name.get(topic)
            if info is None:
                gone = whole
            else:
                gone = info.error_code == _NO_SUCH_TOPIC
            if gone or (info is not None and not info.error_code):
                count = 0 if gone or info is None else partition_count(info)
                change = self._changed(topic, count)
                if change is not None:
                    return change
        if self._subscription.pattern is None or not whole:
            return None
        unsure = {info.name for info in topics if info.error_code not in (0, _NO_SUCH_TOPIC)}
        return self._matching(self._subscription.among(topics) | (self._joined & unsure))

    def _changed(self, topic: str, count: int) -> str | None:
        before = self._counts[topic]
        if count == before:
            return None
        return f"topic {topic} has {counted(count, 'partition')}, and had {before}"

    def is_for_subscription(self, subscription: Subscription) -> bool:
        """Returns True if the member has joined with `subscription`."""
        return self._subscription == subscription

    def _matching(self, topics: frozenset[str]) -> str | None:
        self.matching = topics
        if topics == self._joined:
            return None
        new, deleted = sorted(topics - self._joined), sorted(self._joined - topics)
        changes = [f"{name} matches" for name in new[:3]]
        changes += [f"{name} is gone" for name in deleted[:3]]
        return f"the topics of the pattern have changed: {', '.join(changes)}"
