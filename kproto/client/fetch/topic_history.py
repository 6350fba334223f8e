"""`TopicHistory`: the first and the last metadata of each topic of a consumer. Does no I/O."""

from __future__ import annotations

from collections.abc import Container, Mapping

from ...wire.uuid import Uuid
from ..metadata.cluster import TopicInfo, TopicPartition

__all__ = ["TopicHistory"]


class TopicHistory:
    """Finds out whether a partition is new, and which topic id belongs to a topic name."""

    __slots__ = ("_first", "_last")

    def __init__(self) -> None:
        self._first: dict[str, TopicInfo] = {}
        self._last: dict[str, TopicInfo] = {}

    def get(self, name: str) -> TopicInfo | None:
        """Returns the last metadata of a topic; None if there is none."""
        return self._last.get(name)

    def id_of(self, name: str) -> Uuid:
        """Returns the id that the last metadata has for a topic.

        Raises KeyError without metadata.
        """
        return self._last[name].topic_id

    def set_current(self, info: TopicInfo) -> None:
        """Replaces the last metadata of a topic by `info`.

        The consumer reads the topic with the id in `info` from now on.
        """
        self._last[info.name] = info

    def add_first(self, topics: Mapping[str, TopicInfo]) -> None:
        """Adds the first metadata of topics that are new to the consumer."""
        for name, info in topics.items():
            self._first.setdefault(name, info)

    def retain(self, names: Container[str]) -> None:
        """Forgets the last metadata of all topics except `names`."""
        self._last = {name: info for name, info in self._last.items() if name in names}

    def is_new(self, tp: TopicPartition) -> bool:
        """Returns True if the partition was added after the client's first metadata of the topic.

        Also returns True if the topic was recreated after that metadata. The consumer reads a new
        partition from its start, because all its records are new.
        """
        topic, partition = tp
        first, last = self._first.get(topic), self._last.get(topic)
        if first is None:
            return False
        return partition not in first.partitions or (
            last is not None and last.is_recreated_since(first)
        )
