"""`TopicHistory`: the topics of a consumer as metadata showed them first and last. Plain data."""

from __future__ import annotations

from collections.abc import Container, Mapping

from ...wire.uuid import Uuid
from ..metadata.cluster import TopicInfo, TopicPartition

__all__ = ["TopicHistory"]


class TopicHistory:
    """Tells whether a partition is new, and which topic is meant by a name."""

    __slots__ = ("_first", "_last")

    def __init__(self) -> None:
        self._first: dict[str, TopicInfo] = {}
        self._last: dict[str, TopicInfo] = {}

    def get(self, name: str) -> TopicInfo | None:
        """Returns a topic as it was looked at last."""
        return self._last.get(name)

    def id_of(self, name: str) -> Uuid:
        """Returns the id of a topic that was looked at."""
        return self._last[name].topic_id

    def look_at(self, info: TopicInfo) -> None:
        """Takes a topic for the one of its name that is read."""
        self._last[info.name] = info

    def see(self, topics: Mapping[str, TopicInfo]) -> None:
        """Notes topics that were not seen before."""
        for name, info in topics.items():
            self._first.setdefault(name, info)

    def keep(self, names: Container[str]) -> None:
        """Forgets how other topics looked last."""
        self._last = {name: info for name, info in self._last.items() if name in names}

    def is_new(self, tp: TopicPartition) -> bool:
        """Returns True if the topic got this partition, or was recreated, since it was seen first:
        no record of it was there to be skipped.
        """
        topic, partition = tp
        first, last = self._first.get(topic), self._last.get(topic)
        if first is None:
            return False
        return partition not in first.partitions or (
            last is not None and last.is_another_than(first)
        )
