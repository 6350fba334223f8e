"""Topics and their partitions, and what Kafka asks of a new topic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ..wire.uuid import Uuid
from .log import PartitionLog
from .refusal import refusal
from .sequences import ProducerSequences
from .topic_configs import TopicConfig

__all__ = ["INTERNAL_TOPICS", "Partition", "Topic", "Topics", "check_topic_name", "partition_count"]

_MAX_NAME_LENGTH: Final = 249
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")

_METADATA_LOG: Final = "__cluster_metadata"

#: Topics that belong to Kafka itself.
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)


class Partition:
    """One partition: its log, and the idempotent producers that write to it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.log = PartitionLog()
        self.sequences = ProducerSequences()


class Topic:
    """One topic; its partitions are numbered from 0."""

    def __init__(self, name: str, num_partitions: int, config: TopicConfig) -> None:
        self.name = name
        self.topic_id = Uuid.random()
        self.config = config
        self.partitions = [Partition(index) for index in range(num_partitions)]

    @property
    def is_internal(self) -> bool:
        """Whether the topic is Kafka's own."""
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition:
        """Raises UNKNOWN_TOPIC_OR_PARTITION."""
        if not 0 <= index < len(self.partitions):
            raise refusal(
                "UNKNOWN_TOPIC_OR_PARTITION",
                f"topic {self.name!r} has {len(self.partitions)} partitions, and none is {index}",
            )
        return self.partitions[index]


class Topics:
    """All topics, by name and by id."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def named(self, name: str) -> Topic:
        """Raises UNKNOWN_TOPIC_OR_PARTITION."""
        topic = self._by_name.get(name)
        if topic is None:
            raise refusal("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name!r}")
        return topic

    def with_id(self, topic_id: bytes) -> Topic:
        """Raises UNKNOWN_TOPIC_ID."""
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise refusal("UNKNOWN_TOPIC_ID", f"there is no topic with id {Uuid(topic_id)}")
        return topic

    def check_new_name(self, name: str) -> None:
        """Raises INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS or INVALID_REQUEST."""
        check_topic_name(name)
        if name == _METADATA_LOG:
            raise refusal("INVALID_REQUEST", f"{name} is the log of the controllers")
        if name in self._by_name:
            raise refusal("TOPIC_ALREADY_EXISTS", f"topic {name!r} exists already")
        for other in self._by_name:
            if _metric_name(other) == _metric_name(name):
                raise refusal(
                    "INVALID_TOPIC_EXCEPTION",
                    f"topic {name!r} collides with {other!r}: dots and underscores are the same "
                    "in the names of metrics",
                )

    def add(self, topic: Topic) -> None:
        """Take a topic whose name was checked."""
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic

    def remove(self, topic: Topic) -> None:
        """Delete a topic; whoever waits for its records is woken."""
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        for partition in topic.partitions:
            partition.log.notify()


def check_topic_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION for a name that no topic can have."""
    if name in ("", ".", "..") or len(name) > _MAX_NAME_LENGTH or not _LEGAL_NAME.fullmatch(name):
        raise refusal(
            "INVALID_TOPIC_EXCEPTION",
            f"{name[:_MAX_NAME_LENGTH]!r} cannot be the name of a topic: it takes 1 to "
            f"{_MAX_NAME_LENGTH} of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is neither "
            "'.' nor '..'",
        )


def partition_count(
    num_partitions: int,
    replication_factor: int,
    assignments: Mapping[int, Iterable[int]],
    *,
    node_id: int,
    default: int,
    most: int,
) -> int:
    """How many partitions a new topic gets, from what was asked; -1 stands for the default.

    Raises INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST and POLICY_VIOLATION.
    """
    if assignments:
        if num_partitions != -1 or replication_factor != -1:
            raise refusal(
                "INVALID_REQUEST",
                "with a manual assignment, partitions and replication factor must be -1",
            )
        _check_assignments(assignments, node_id)
        count = len(assignments)
    else:
        if num_partitions == 0 or num_partitions < -1:
            raise refusal(
                "INVALID_PARTITIONS", "partitions must be more than 0, or -1 for the default"
            )
        if replication_factor == 0 or replication_factor < -1:
            raise refusal(
                "INVALID_REPLICATION_FACTOR",
                "the replication factor must be more than 0, or -1 for the default",
            )
        if replication_factor > 1:
            raise refusal(
                "INVALID_REPLICATION_FACTOR",
                f"{replication_factor} replicas need as many brokers, and there is one",
            )
        count = default if num_partitions == -1 else num_partitions
    if count > most:
        raise refusal("POLICY_VIOLATION", f"{count} partitions are more than {most}")
    return count


def _check_assignments(assignments: Mapping[int, Iterable[int]], node_id: int) -> None:
    if sorted(assignments) != list(range(len(assignments))):
        raise refusal(
            "INVALID_REPLICA_ASSIGNMENT", "the partitions assigned must be 0, 1, 2 and so on"
        )
    for index, brokers in assignments.items():
        if list(brokers) != [node_id]:
            raise refusal(
                "INVALID_REPLICA_ASSIGNMENT",
                f"partition {index} can only be assigned to broker {node_id}, the only one",
            )


def _metric_name(name: str) -> str:
    return name.replace(".", "_")
