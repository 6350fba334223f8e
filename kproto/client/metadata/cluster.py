"""What the client knows of the cluster: plain data, from Metadata and hints of other responses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from ...messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ...protocol.error_codes import code_of, error_of_code
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID, Uuid
from ..settings import Address

__all__ = [
    "UNKNOWN_EPOCH",
    "Broker",
    "Cluster",
    "LeaderHint",
    "PartitionInfo",
    "TopicInfo",
    "TopicPartition",
    "named",
    "why_unled",
]

#: The leader epoch in requests and responses when none is known.
UNKNOWN_EPOCH: Final = -1

#: Brokers before Kafka 2.4, whose Metadata ends before this version, may tell old leader epochs
#: while a partition is reassigned: who believed them would be fenced until that is over.
RELIABLE_EPOCHS: Final = 9

_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")
_NO_SUCH_PARTITION: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")

#: A topic's name, and the number of one of its partitions.
TopicPartition: TypeAlias = tuple[str, int]

#: Names of partitions in one line.
_SHOWN: Final = 10


class Broker(NamedTuple):
    """A broker as a response names it."""

    node: int
    host: str
    port: int
    rack: str | None = None


class LeaderHint(NamedTuple):
    """Who leads a partition and since which leader epoch, by who was asked in vain (KIP-951)."""

    topic: str
    partition: int
    leader: int
    epoch: int


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

    def is_another_than(self, before: TopicInfo | None) -> bool:
        """Whether the topic was deleted and made anew since `before` (KIP-516).

        Unknown where one of both tells no id: a cluster that learns of ids gives them to topics
        that it has.
        """
        if before is None or ZERO_UUID in (self.topic_id, before.topic_id):
            return False
        return self.topic_id != before.topic_id


@dataclass(slots=True)
class Cluster:
    """Brokers and topics as last heard of; `ever` are all nodes that were, as one may come back."""

    cluster_id: str | None = None
    controller: int = -1
    brokers: dict[int, Address] = field(default_factory=dict)
    ever: set[int] = field(default_factory=set)
    racks: dict[int, str] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)

    def update(
        self, response: MetadataResponse, *, whole: bool = False, version: int = RELIABLE_EPOCHS
    ) -> list[TopicInfo]:
        """Take over a response; returns its topics in its order, those with errors too.

        A topic with an error is forgotten, so that it is asked for again; so is every other one
        when the response is about the `whole` cluster. Leader epochs are taken where the `version`
        of Metadata can be relied on for them.
        """
        if version < RELIABLE_EPOCHS:
            for told in response.topics:
                for its in told.partitions:
                    its.leader_epoch = -1
        if self.cluster_id != response.cluster_id and None not in (
            self.cluster_id,
            response.cluster_id,
        ):
            self.topics.clear()  # of another cluster, whose leader epochs count for themselves
            self.ever.clear()
        self.cluster_id = response.cluster_id
        self.controller = response.controller_id
        self.brokers = {
            broker.node_id: Address(broker.host, broker.port) for broker in response.brokers
        }
        self.ever.update(self.brokers)
        self.racks = {broker.node_id: broker.rack for broker in response.brokers if broker.rack}
        topics = [
            TopicInfo(
                name=topic.name or "",
                topic_id=topic.topic_id,
                internal=topic.is_internal,
                error_code=topic.error_code,
                partitions={
                    part.partition_index: self._newer(topic, part)
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

    def _newer(
        self, topic: MetadataResponseTopic, part: MetadataResponsePartition
    ) -> PartitionInfo:
        """What is known of a partition, or what a response says: a broker may lag (KIP-320)."""
        known = self.topics.get(topic.name or "")
        if known is not None and known.topic_id == topic.topic_id:
            before = known.partitions.get(part.partition_index)
            if before is not None and 0 <= part.leader_epoch < before.leader_epoch:
                return before
        return PartitionInfo(
            part.partition_index,
            part.leader_id,
            part.leader_epoch,
            tuple(part.replica_nodes),
            tuple(part.isr_nodes),
            part.error_code,
        )

    def hear_brokers(self, brokers: Iterable[Broker]) -> None:
        """Take over where brokers are; a response that names some does not end the others."""
        for each in brokers:
            self.brokers[each.node] = Address(each.host, each.port)
            if each.rack:
                self.racks[each.node] = each.rack

    def hear_leader(self, hint: LeaderHint) -> bool:
        """Take over who leads a partition; False where that is no news, or its broker unknown.

        An epoch that is not above the one known tells nothing new (KIP-320).
        """
        info = self.topics.get(hint.topic)
        known = None if info is None else info.partitions.get(hint.partition)
        if info is None or known is None or hint.leader not in self.brokers:
            return False
        if hint.epoch <= known.leader_epoch:
            return False
        newer = replace(known, leader=hint.leader, leader_epoch=hint.epoch, error_code=0)
        partitions = {**info.partitions, hint.partition: newer}
        self.topics[hint.topic] = replace(info, partitions=partitions)
        return True

    def begin_anew(self) -> None:
        """Forget brokers and topics; which cluster it was stays known, to be compared."""
        self.controller = -1
        self.brokers.clear()
        self.racks.clear()
        self.topics.clear()

    def forget(self, topics: Iterable[str]) -> None:
        """Drop topics whose leaders have turned out to be others."""
        for name in topics:
            self.topics.pop(name, None)

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; -1 when that is not known."""
        info = self.topics.get(topic)
        known = info.partitions.get(partition) if info is not None else None
        return -1 if known is None else known.leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        """Since which leader epoch that node leads it; -1 when that is not known."""
        info = self.topics.get(topic)
        known = info.partitions.get(partition) if info is not None else None
        return -1 if known is None else known.leader_epoch

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


def named(places: Iterable[TopicPartition]) -> str:
    """Partitions in a message or a line: `orders[0], orders[1]`; of many the first."""
    names = [f"{topic}[{partition}]" for topic, partition in sorted(places)]
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
