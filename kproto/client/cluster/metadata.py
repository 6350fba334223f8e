"""What the client knows of the cluster, as plain data made from Metadata responses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...messages.metadata_response import MetadataResponse
from ...protocol.error_codes import code_of, error_of_code
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID, Uuid
from ..settings import Address

__all__ = ["Cluster", "PartitionInfo", "TopicInfo", "TopicPartition", "why_unled"]

_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")
_NO_SUCH_PARTITION: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")

#: A topic's name, and the number of one of its partitions.
TopicPartition: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition: who leads it (-1 when nobody does) and since which leader epoch."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic. `topic_id` is all zeros when the broker is too old to tell it."""

    name: str
    topic_id: Uuid
    partitions: dict[int, PartitionInfo]
    internal: bool = False
    error_code: int = 0


@dataclass(slots=True)
class Cluster:
    """Brokers and topics as last heard of."""

    cluster_id: str | None = None
    controller: int = -1
    brokers: dict[int, Address] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)

    def update(self, response: MetadataResponse, *, whole: bool = False) -> list[TopicInfo]:
        """Take over a response; returns its topics in its order, those with errors too.

        A topic with an error is forgotten, so that it is asked for again; so is every other one
        when the response is about the `whole` cluster.
        """
        self.cluster_id = response.cluster_id
        self.controller = response.controller_id
        self.brokers = {
            broker.node_id: Address(broker.host, broker.port) for broker in response.brokers
        }
        topics = [
            TopicInfo(
                name=topic.name or "",
                topic_id=topic.topic_id,
                internal=topic.is_internal,
                error_code=topic.error_code,
                partitions={
                    part.partition_index: PartitionInfo(
                        part.partition_index,
                        part.leader_id,
                        part.leader_epoch,
                        tuple(part.replica_nodes),
                        tuple(part.isr_nodes),
                        part.error_code,
                    )
                    for part in sorted(topic.partitions, key=lambda part: part.partition_index)
                },
            )
            for topic in response.topics
        ]
        if whole:
            self.topics.clear()
        for topic in topics:
            if topic.error_code:
                self.topics.pop(topic.name, None)
            else:
                self.topics[topic.name] = topic
        return topics

    def forget(self, topics: Iterable[str]) -> None:
        """Drop topics whose leaders have turned out to be others."""
        for name in topics:
            self.topics.pop(name, None)

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; -1 when that is not known."""
        info = self.topics.get(topic)
        known = info.partitions.get(partition) if info is not None else None
        return -1 if known is None else known.leader

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The topic of that id, as long as it is known."""
        if topic_id == ZERO_UUID:
            return None
        for info in self.topics.values():
            if info.topic_id == topic_id:
                return info.name
        return None


def why_unled(topics: Iterable[TopicInfo], topic: str, partition: int) -> BrokerResponseError:
    """Why nobody can be asked for a partition, by the answer to a Metadata request."""
    code = _NO_SUCH_PARTITION
    for info in topics:
        if info.name == topic:
            known = _NO_LEADER if partition in info.partitions else _NO_SUCH_PARTITION
            code = info.error_code or known
    return error_of_code(code, f"looking for the leader of {topic}[{partition}]")
