"""Whether topics have changed since the group agreed on who reads what. Plain data.

The leader watches all topics of its group, whoever subscribes by a pattern those that match. What
is only not known just now, as its leader moved, has not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Final

from ...protocol.error_codes import code_of
from ..metadata.cluster import TopicInfo
from .assignors.subscriptions import TopicRacks
from .subscription import Subscription

__all__ = ["Absent", "Watch", "partition_count"]

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")


def partition_count(info: TopicInfo) -> int:
    """How many partitions a topic has, from 0 on without a gap.

    A broker that has just heard of a topic may not know all of it.
    """
    count = 0
    while count in info.partitions:
        count += 1
    return count


class Absent:
    """Topics that a member subscribes to by name and that are not there: each is told once.

    That is not before they were not there for `patience_s`, in which one that was just created may
    become known; and again only where it was there meanwhile.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def heard(
        self, wanted: Container[str], topics: Iterable[TopicInfo], there: Container[str], now: float
    ) -> list[str]:
        """What is to be told, by an answer about some topics; others may be known to be there."""
        gone = [info.name for info in topics if info.error_code == _NO_SUCH_TOPIC]
        since = dict.fromkeys(gone, now) | self._since
        self._since = {
            name: moment
            for name, moment in since.items()
            if name in wanted and (name in gone or name not in there)
        }
        self._told &= self._since.keys()
        found = [
            name
            for name in sorted(self._since.keys() & set(gone) - self._told)
            if now - self._since[name] >= self._patience_s
        ]
        self._told.update(found)
        return found

    @property
    def looks_at(self) -> float:
        """When one that is not told yet may be."""
        untold = [moment for name, moment in self._since.items() if name not in self._told]
        return min(untold) + self._patience_s if untold else float("inf")


class Watch:
    """The topics as they were when the member joined."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # of the leader: how many partitions each topic had
        self._seen: dict[str, TopicInfo] = {}
        self._subscription = Subscription()
        self._joined: frozenset[str] = frozenset()
        #: What matches the pattern by now, what is forgotten just now included.
        self.matching: frozenset[str] = frozenset()

    def joined(self, subscription: Subscription, topics: frozenset[str]) -> None:
        """The member asked for these topics; it does not lead, as far as it knows."""
        self._subscription, self._joined = subscription, topics
        self.matching = topics
        self.follow()

    def follow(self) -> None:
        """Others watch the topics of the group."""
        self._counts.clear()
        self._seen.clear()

    def lead(self, wanted: Iterable[str], there: TopicRacks) -> None:
        """The member leads, and these are the topics of its group."""
        self.follow()
        self._counts = {topic: len(there.get(topic, ())) for topic in wanted}

    @property
    def topics(self) -> frozenset[str] | None:
        """What is to be asked for from time to time: None for every topic, nothing for none."""
        return None if self._subscription.pattern is not None else frozenset(self._counts)

    @property
    def missing(self) -> frozenset[str]:
        """Topics of the group that are not there yet."""
        return frozenset(topic for topic, count in self._counts.items() if not count)

    def differs(self, topics: Mapping[str, TopicInfo]) -> str | None:
        """Why to join again, by topics that happen to be known; None where nothing has changed."""
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

    def told(self, topics: Collection[TopicInfo], *, whole: bool) -> str | None:
        """The same by an answer that was asked for them: what lacks there is gone.

        `whole` where it is about every topic.
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
        return f"topic {topic} has {count} partitions, and had {before}"

    def is_of(self, subscription: Subscription) -> bool:
        """Whether the member has joined by that subscription."""
        return self._subscription == subscription

    def _matching(self, topics: frozenset[str]) -> str | None:
        self.matching = topics
        if topics == self._joined:
            return None
        came, went = sorted(topics - self._joined), sorted(self._joined - topics)
        told = [f"{name} matches" for name in came[:3]] + [f"{name} is gone" for name in went[:3]]
        return f"the topics of the pattern have changed: {', '.join(told)}"
