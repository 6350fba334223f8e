"""`Cluster`: metadata of brokers and topics.

The metadata comes from Metadata responses, and from the leaders that other responses name. Does no
I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from ...messages.metadata_response import (
    MetadataResponse,
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
    "format_partitions",
    "no_leader_error",
]

#: The leader epoch in requests and responses when none is known.
UNKNOWN_EPOCH: Final = -1

#: Brokers before Kafka 2.4, with Metadata below this version, may send old leader epochs while a
#: partition is reassigned. A client that used them would be fenced until the end of the
#: reassignment.
RELIABLE_EPOCHS: Final = 9

_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")
_NO_SUCH_PARTITION: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")
_UNKNOWN_SERVER_ERROR: Final = code_of("UNKNOWN_SERVER_ERROR")

#: The name of a topic and the number of a partition.
TopicPartition: TypeAlias = tuple[str, int]

#: The most partitions that a message names.
_SHOWN: Final = 10

_PARTITION_INDEX: Final = attrgetter("partition_index")


class Broker(NamedTuple):
    """A broker with its address, from a response."""

    node: int
    host: str
    port: int
    rack: str | None = None


class LeaderHint(NamedTuple):
    """The leader of a partition and its leader epoch, named by another broker (KIP-951)."""

    topic: str
    partition: int
    leader: int
    epoch: int


class PartitionInfo(NamedTuple):
    """A partition: its leader (-1 if there is none), leader epoch, replicas and in-sync replicas.

    The leader and the replicas are node ids.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic. `topic_id` is all zeros if the broker does not send ids."""

    name: str
    topic_id: Uuid
    partitions: dict[int, PartitionInfo]
    internal: bool = False
    error_code: int = 0

    def is_recreated_since(self, before: TopicInfo | None) -> bool:
        """Returns True if the topic was deleted and recreated since `before` (KIP-516).

        Returns False if `before` is None, or if this metadata or `before` has no topic id: an
        upgraded cluster assigns ids to topics that had none.
        """
        if before is None or ZERO_UUID in (self.topic_id, before.topic_id):
            return False
        return self.topic_id != before.topic_id


@dataclass(slots=True)
class Cluster:
    """The brokers and topics of the latest metadata.

    `known_nodes` has all node ids that this cluster has had so far, because a broker that has left
    may rejoin. `version` increases with every change.
    """

    cluster_id: str | None = None
    controller: int = -1
    brokers: dict[int, Address] = field(default_factory=dict)
    known_nodes: set[int] = field(default_factory=set)
    racks: dict[int, str] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    version: int = field(default=0, compare=False)

    def update(
        self, response: MetadataResponse, *, whole: bool = False, version: int = RELIABLE_EPOCHS
    ) -> list[TopicInfo]:
        """Applies a Metadata response; returns its topics in order, including topics with errors.

        Drops topics with an error, so that they are requested again. If the response is about the
        `whole` cluster, also drops topics that the response lacks. If the cluster id has changed,
        drops all earlier topics. Ignores the leader epochs of a response whose `version` is too
        old: these epochs are not reliable.
        """
        self.version += 1
        if version < RELIABLE_EPOCHS:
            for old in response.topics:
                for its in old.partitions:
                    its.leader_epoch = -1
        if self.cluster_id != response.cluster_id and None not in (
            self.cluster_id,
            response.cluster_id,
        ):
            self.topics.clear()  # another cluster has other leader epochs
            self.known_nodes.clear()
        self.cluster_id = response.cluster_id
        self.controller = response.controller_id
        self.brokers = {
            broker.node_id: Address(broker.host, broker.port) for broker in response.brokers
        }
        self.known_nodes.update(self.brokers)
        self.racks = {broker.node_id: broker.rack for broker in response.brokers if broker.rack}
        topics = [
            TopicInfo(
                name=topic.name or "",
                topic_id=topic.topic_id,
                internal=topic.is_internal,
                error_code=_topic_error(topic.error_code, version),
                partitions=self._newest(topic),
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

    def _newest(self, topic: MetadataResponseTopic) -> dict[int, PartitionInfo]:
        """Returns the partitions of `topic` by number, in ascending order.

        If the known metadata of a partition has a newer leader epoch, returns the known metadata:
        the broker that answered may lag behind other brokers (KIP-320). Partitions with equal
        replicas share one tuple, because a topic may have thousands of partitions.
        """
        info = self.topics.get(topic.name or "")
        is_same = info is not None and info.topic_id == topic.topic_id
        known = info.partitions if info is not None and is_same else {}
        shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        found: dict[int, PartitionInfo] = {}
        for part in sorted(topic.partitions, key=_PARTITION_INDEX):
            partition, epoch = part.partition_index, part.leader_epoch
            before = known.get(partition)
            if before is not None and 0 <= epoch < before.leader_epoch:
                found[partition] = before
                continue
            replicas, in_sync = tuple(part.replica_nodes), tuple(part.isr_nodes)
            found[partition] = PartitionInfo(
                partition,
                part.leader_id,
                epoch,
                shared.setdefault(replicas, replicas),
                shared.setdefault(in_sync, in_sync),
                part.error_code,
            )
        return found

    def update_brokers(self, brokers: Iterable[Broker]) -> None:
        """Applies the addresses of some brokers; all other brokers stay."""
        self.version += 1
        for each in brokers:
            self.brokers[each.node] = Address(each.host, each.port)
            if each.rack:
                self.racks[each.node] = each.rack

    def update_leader(self, hint: LeaderHint) -> bool:
        """Applies a leader with a higher leader epoch than that of the known leader (KIP-320).

        Returns False, and changes nothing, if the leader epoch is not higher, or if the partition
        or the broker is unknown.
        """
        info = self.topics.get(hint.topic)
        known = None if info is None else info.partitions.get(hint.partition)
        if info is None or known is None or hint.leader not in self.brokers:
            return False
        if hint.epoch <= known.leader_epoch:
            return False
        self.version += 1
        newer = known._replace(leader=hint.leader, leader_epoch=hint.epoch, error_code=0)
        partitions = {**info.partitions, hint.partition: newer}
        self.topics[hint.topic] = replace(info, partitions=partitions)
        return True

    def reset(self) -> None:
        """Drops the controller, brokers and topics; keeps the cluster id, and `known_nodes`."""
        self.version += 1
        self.controller = -1
        self.brokers.clear()
        self.racks.clear()
        self.topics.clear()

    def forget(self, topics: Iterable[str]) -> None:
        """Drops topics, so that their metadata is requested again."""
        self.version += 1
        for name in topics:
            self.topics.pop(name, None)

    def leader(self, topic: str, partition: int) -> int:
        """Returns the node id of the leader of a partition; -1 if no leader is known."""
        info = self.topics.get(topic)
        known = info.partitions.get(partition) if info is not None else None
        return -1 if known is None else known.leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        """Returns the leader epoch of a partition; -1 if it is unknown."""
        info = self.topics.get(topic)
        known = info.partitions.get(partition) if info is not None else None
        return -1 if known is None else known.leader_epoch

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Returns the name of the topic with this id; None if the id is unknown."""
        if topic_id == ZERO_UUID:
            return None
        for info in self.topics.values():
            if info.topic_id == topic_id:
                return info.name
        return None


def _topic_error(code: int, version: int) -> int:
    """Returns the error code of a topic in a Metadata response of `version`.

    Brokers before 0.10 answer UNKNOWN_SERVER_ERROR while no broker is registered that could have a
    replica of a new topic. Clients retry after LEADER_NOT_AVAILABLE.
    """
    return _NO_LEADER if version == 0 and code == _UNKNOWN_SERVER_ERROR else code


def no_leader_error(topics: Iterable[TopicInfo], topic: str, partition: int) -> BrokerResponseError:
    """Returns the error for a partition without a known leader.

    `topics` are the topics in a Metadata response. The error is the topic's own error if it has
    one, LEADER_NOT_AVAILABLE if the topic has the partition, else UNKNOWN_TOPIC_OR_PARTITION.
    """
    code = _NO_SUCH_PARTITION
    for info in topics:
        if info.name == topic:
            known = _NO_LEADER if partition in info.partitions else _NO_SUCH_PARTITION
            code = info.error_code or known
    return error_of_code(code, f"looking for the leader of {topic}[{partition}]")


def format_partitions(tps: Iterable[TopicPartition]) -> str:
    """Formats partitions for a message: `orders[0], orders[1]`; names the first 10 of them."""
    names = [f"{topic}[{partition}]" for topic, partition in sorted(tps)]
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
