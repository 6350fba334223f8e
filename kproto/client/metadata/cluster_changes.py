"""Formats changes of the cluster as log lines. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...wire.counted import counted
from ..settings import Address
from .cluster import Cluster, TopicInfo

__all__ = ["MetadataChangeLogger"]

#: The most topics whose last metadata stays in memory after the cluster has dropped them: the
#: client may request these topics again.
MAX_FORGOTTEN: Final = 1_000

#: The most partitions of a topic that a line names.
_NAMED: Final = 5


class MetadataChangeLogger:
    """Compares the cluster with the brokers and topics that it had before.

    Keeps the last metadata of up to `MAX_FORGOTTEN` topics that the cluster has dropped, and
    compares them if the cluster has them again.
    """

    def __init__(self) -> None:
        self._brokers: dict[int, Address] = {}
        self._topics: dict[str, TopicInfo] = {}

    def log_lines(self, cluster: Cluster) -> list[str]:
        """Returns lines for brokers that joined, left or moved, and for topics that changed.

        A topic changes if its leaders move, if it gets partitions, or if it is recreated. The
        brokers of the first metadata, and topics in their first metadata, get no line. A new
        controller gets no line, because KRaft brokers return any broker as the controller
        (KIP-590).
        """
        lines = [*self._of_cluster(cluster)]
        for name, info in cluster.topics.items():
            known = self._topics.get(name)
            if known is not info:
                lines += () if known is None else _of_topic(known, info)
                self._topics[name] = info
        if len(self._topics) > len(cluster.topics) + MAX_FORGOTTEN:
            forgotten = [name for name in self._topics if name not in cluster.topics]
            for name in forgotten[: len(forgotten) - MAX_FORGOTTEN // 2]:
                del self._topics[name]
        self._brokers = dict(cluster.brokers)
        return lines

    def _of_cluster(self, now: Cluster) -> Iterator[str]:
        if not self._brokers:
            return
        for node in sorted(self._brokers.keys() | now.brokers.keys()):
            was, address = self._brokers.get(node), now.brokers.get(node)
            if was is None:
                yield f"broker {node} has joined, at {address}"
            elif address is None:
                yield f"broker {node}, at {was}, has left"
            elif was != address:
                yield f"broker {node} has moved from {was} to {address}"


def _of_topic(before: TopicInfo, now: TopicInfo) -> Iterator[str]:
    if now.is_recreated_since(before):
        yield f"topic {now.name} was recreated: its id is {now.topic_id}, not {before.topic_id}"
        return
    moved = [
        f"[{number}] from {before.partitions[number].leader} to {part.leader}"
        f" (epoch {part.leader_epoch})"
        for number, part in now.partitions.items()
        if number in before.partitions and part.leader != before.partitions[number].leader
    ]
    if moved:
        more = f" and {len(moved) - _NAMED} more" if len(moved) > _NAMED else ""
        yield f"topic {now.name}: leaders moved: {', '.join(moved[:_NAMED])}{more}"
    if len(now.partitions) > len(before.partitions):
        yield (
            f"topic {now.name} has {counted(len(now.partitions), 'partition')}, before it had "
            f"{len(before.partitions)}"
        )
