"""Holds topics by name and by topic id, and validates new topic names.

`replica_placement` places the replicas before a `Topic` is created.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ..wire.counted import counted
from ..wire.uuid import Uuid
from .api_error import api_error
from .leader_and_isr import LeaderAndIsr
from .replica_placement import Replicas
from .storage.log_cleaner import apply_compaction
from .storage.partition import Cleanup, Partition
from .storage.retention import apply_retention
from .storage.storage_limit import StorageLimit
from .topic_configs import TopicConfig

__all__ = ["INTERNAL_TOPICS", "METADATA_LOG", "Topic", "Topics", "check_topic_name"]

_MAX_NAME_LENGTH: Final = 249
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")

#: The topic of the KRaft controllers' log, which clients may not create.
METADATA_LOG: Final = "__cluster_metadata"

#: Kafka's internal topics.
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)


class Topic:
    """Holds a topic with its configs and partitions.

    `replicas` has the replicas of each partition, from partition 0 on. `elect` returns the initial
    leader and ISR of a partition for its replicas.
    """

    def __init__(
        self,
        name: str,
        replicas: Sequence[Replicas],
        config: TopicConfig,
        storage_limit: StorageLimit | None = None,
        *,
        elect: Callable[[Replicas], LeaderAndIsr] = LeaderAndIsr.first,
    ) -> None:
        self.name = name
        self.topic_id = Uuid.random()
        self.config = config
        #: The configs on nodes whose dynamic broker configs set other defaults, by node id.
        self._config_by_node: Mapping[int, TopicConfig] = {}
        self._storage_limit = storage_limit
        self._elect = elect
        self.partitions: list[Partition] = []
        self.add_partitions(replicas)

    def add_partitions(self, replicas: Sequence[Replicas]) -> None:
        """Adds partitions after the present partitions; `replicas` has the replicas of each."""
        self.partitions += [
            Partition(index, leader_and_isr=self._elect(its), storage_limit=self._storage_limit)
            for index, its in enumerate(replicas, len(self.partitions))
        ]

    @property
    def is_internal(self) -> bool:
        """Returns True if the topic is one of Kafka's internal topics."""
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition:
        """Returns a partition. Raises UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
        if not 0 <= index < len(self.partitions):
            raise api_error(
                "UNKNOWN_TOPIC_OR_PARTITION",
                f"topic {self.name!r} has {counted(len(self.partitions), 'partition')}, and none "
                f"is {index}",
            )
        return self.partitions[index]

    def config_at(self, node: int) -> TopicConfig:
        """Returns the configs of the topic on a node."""
        return self._config_by_node.get(node, self.config)

    def config_of(self, index: int) -> TopicConfig:
        """Returns the configs that apply to a partition: those on its leader."""
        return self.config_at(self.partition(index).leader_and_isr.leader)

    def replace_config(self, config: TopicConfig, by_node: Mapping[int, TopicConfig]) -> None:
        """Replaces the configs; `by_node` has the configs on nodes that differ from `config`."""
        self.config = config
        self._config_by_node = by_node

    def after_cleanup(self, index: int, now_ms: int) -> Partition:
        """Applies cleanup.policy to a partition, and returns it. Raises the error of `partition`.

        Deletes expired records, and compacts the log of a compacted topic.
        """
        partitions = self.partitions
        partition = partitions[index] if 0 <= index < len(partitions) else self.partition(index)
        log = partition.log
        config = self.config
        if self._config_by_node:
            config = self.config_at(partition.leader_and_isr.leader)
        last = partition.last_cleanup
        if (
            last is not None
            and last.config is config
            and last.end_offset == log.end_offset
            and last.start_offset == log.start_offset
            and now_ms <= last.until_ms
        ):
            return partition
        until_ms = apply_retention(log, config, now_ms)
        if config.requires_keys:
            partition.last_cleanup = None
            apply_compaction(partition, config, now_ms)
        else:
            partition.last_cleanup = Cleanup(config, log.start_offset, log.end_offset, until_ms)
        return partition

    def check_leader(self, index: int, node_id: int, leader_epoch: int = -1) -> None:
        """Checks that the node leads a partition, for requests that only the leader handles.

        `leader_epoch` is the current leader epoch in the request, negative if the client has none
        (KIP-320). The epoch is checked only if the node has a replica. Raises UNKNOWN_LEADER_EPOCH,
        FENCED_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER, or the error of `partition`.
        """
        leader_and_isr = self.partition(index).leader_and_isr
        if node_id in leader_and_isr.replicas:
            self.check_epoch(index, leader_epoch)
        leader = leader_and_isr.leader
        if leader != node_id:
            raise api_error(
                "NOT_LEADER_OR_FOLLOWER",
                f"partition {index} of topic {self.name!r} is led by broker {leader}, not by "
                f"{node_id}",
            )

    def check_in_sync(self, index: int) -> None:
        """Raises NOT_ENOUGH_REPLICAS if the ISR is too small.

        The ISR must have min.insync.replicas nodes, or all replicas if the partition has fewer
        replicas.
        """
        leader_and_isr = self.partition(index).leader_and_isr
        least = min(self.config_of(index).min_insync_replicas, len(leader_and_isr.replicas))
        if len(leader_and_isr.in_sync) < least:
            raise api_error(
                "NOT_ENOUGH_REPLICAS",
                f"{len(leader_and_isr.in_sync)} replicas are in sync; min.insync.replicas requires "
                f"{least}",
            )

    def check_epoch(self, index: int, leader_epoch: int) -> None:
        """Checks the leader epoch in a request that followers may also answer (KIP-392).

        A negative epoch is not checked. Raises UNKNOWN_LEADER_EPOCH or FENCED_LEADER_EPOCH, or the
        error of `partition`.
        """
        current = self.partition(index).log.epochs.current
        if leader_epoch > current:
            raise api_error(
                "UNKNOWN_LEADER_EPOCH", f"the leader epoch is {current}, not {leader_epoch}"
            )
        if 0 <= leader_epoch < current:
            raise api_error(
                "FENCED_LEADER_EPOCH", f"the leader epoch is {current}, no longer {leader_epoch}"
            )


class Topics:
    """Holds all topics of a cluster."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        #: How many topics were created, including those that were deleted later, and how often
        #: partitions were added to topics.
        self.created_count = 0
        #: How many topics were deleted.
        self.deleted_count = 0

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> Topic | None:
        """Returns the topic with a name; None if there is none."""
        return self._by_name.get(name)

    def named(self, name: str) -> Topic:
        """Returns the topic with a name. Raises UNKNOWN_TOPIC_OR_PARTITION if there is none."""
        topic = self._by_name.get(name)
        if topic is None:
            raise api_error("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name!r}")
        return topic

    def with_id(self, topic_id: bytes) -> Topic:
        """Returns the topic with a topic id. Raises UNKNOWN_TOPIC_ID if there is none."""
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise api_error("UNKNOWN_TOPIC_ID", f"there is no topic with id {Uuid(topic_id)}")
        return topic

    def name_of(self, topic_id: bytes) -> str:
        """Returns the name of the topic with a topic id; empty if there is none."""
        topic = self._by_id.get(topic_id)
        return "" if topic is None else topic.name

    def requested(self, name: str, topic_id: bytes, *, by_id: bool) -> Topic:
        """Returns the topic of a request, by `topic_id` if `by_id` is set, else by `name`.

        Older versions of a request have the name, newer versions the topic id. Raises
        UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION if there is no such topic.
        """
        return self.with_id(topic_id) if by_id else self.named(name)

    def check_new_name(self, name: str) -> None:
        """Checks the name of a topic to create.

        Raises INVALID_TOPIC_EXCEPTION for an invalid name, and for a name that differs from an
        existing name only in dots and underscores. Raises TOPIC_ALREADY_EXISTS for an existing
        name, and INVALID_REQUEST for the name of the controllers' log.
        """
        check_topic_name(name)
        if name == METADATA_LOG:
            raise api_error("INVALID_REQUEST", f"{name} is the log of the controllers")
        if name in self._by_name:
            raise api_error("TOPIC_ALREADY_EXISTS", f"topic {name!r} exists already")
        for other in self._by_name:
            if _metric_name(other) == _metric_name(name):
                raise api_error(
                    "INVALID_TOPIC_EXCEPTION",
                    f"topic {name!r} collides with {other!r}: dots and underscores are the same "
                    "in the names of metrics",
                )

    def add(self, topic: Topic) -> None:
        """Adds a topic; the caller has called `check_new_name`."""
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self.created_count += 1

    def on_partitions_added(self) -> None:
        """Makes the groups that subscribe to a topic notice its new partitions."""
        self.created_count += 1

    def apply_cleanup(self, now_ms: int) -> None:
        """Applies the cleanup.policy of each topic to its logs at `now_ms`."""
        for topic in self:
            for partition in topic.partitions:
                topic.after_cleanup(partition.index, now_ms)

    def remove(self, topic: Topic) -> None:
        """Deletes a topic and its records, and notifies the watchers of its partitions."""
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        self.deleted_count += 1
        for partition in topic.partitions:
            partition.log.delete_before(partition.log.end_offset)
            partition.log.notify()
            partition.moved.notify()


def check_topic_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION if `name` is not a valid topic name."""
    if name in ("", ".", "..") or len(name) > _MAX_NAME_LENGTH or not _LEGAL_NAME.fullmatch(name):
        raise api_error(
            "INVALID_TOPIC_EXCEPTION",
            f"{name[:_MAX_NAME_LENGTH]!r} cannot be the name of a topic: a name has 1 to "
            f"{_MAX_NAME_LENGTH} of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is not "
            "'.' or '..'",
        )


def _metric_name(name: str) -> str:
    return name.replace(".", "_")
