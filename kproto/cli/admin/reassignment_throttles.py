"""Computes the configs that throttle reassignments (KIP-73): plain functions on plain data.

They are those of `kafka-reassign-partitions.sh`, which can remove them, too: the rates are configs
of brokers, and the throttled replicas configs of topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...client import TopicPartition
from ...client.admin import (
    AlterConfigOp,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    PartitionReassignment,
)
from .reassignment_plans import ANY_DIRECTORY, PlannedReplicas

__all__ = [
    "RATES",
    "THROTTLED_REPLICAS",
    "ConfigChanges",
    "PartitionMove",
    "log_dir_throttle",
    "merged",
    "partition_moves",
    "throttle",
    "throttle_removal",
]

_LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"

#: The configs of brokers with the rates of the leaders and the followers, in bytes per second.
_REPLICATION_RATES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
)

#: All configs of brokers with rates, in bytes per second.
RATES: Final = (*_REPLICATION_RATES, _LOG_DIR_RATE)

#: The configs of topics with the throttled replicas of leaders and followers.
THROTTLED_REPLICAS: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)

#: Changes of configs by resource, as `Admin.incremental_alter_configs` takes them.
ConfigChanges = dict[ConfigResource, list[AlterConfigOp]]


class PartitionMove(NamedTuple):
    """The brokers from which the replicas of a partition are copied, and those that get one."""

    sources: frozenset[int]
    destinations: frozenset[int]


def partition_moves(
    in_progress: Mapping[TopicPartition, PartitionReassignment],
    current: Mapping[TopicPartition, Iterable[int]],
    plan: Mapping[TopicPartition, PlannedReplicas],
) -> dict[TopicPartition, PartitionMove]:
    """Returns the moves of the reassignments in progress and of a plan.

    `current` has the replicas of the partitions of the plan. A partition whose reassignment is in
    progress is copied from its replicas before that reassignment.
    """
    moves = {
        tp: PartitionMove(frozenset(its.replicas) - frozenset(its.adding), frozenset(its.adding))
        for tp, its in in_progress.items()
    }
    for tp, planned in plan.items():
        sources = moves[tp].sources if tp in moves else frozenset(current[tp])
        moves[tp] = PartitionMove(sources, frozenset(planned.replicas) - sources)
    return moves


def throttle(moves: Mapping[TopicPartition, PartitionMove], rate: int) -> ConfigChanges:
    """Returns the configs that limit the moves to `rate` bytes/s for each broker."""
    changes: ConfigChanges = {}
    for topic in sorted({tp[0] for tp in moves}):
        its = {tp[1]: move for tp, move in sorted(moves.items()) if tp[0] == topic}
        values = (
            [f"{number}:{each}" for number, move in its.items() for each in sorted(move.sources)],
            [
                f"{number}:{each}"
                for number, move in its.items()
                for each in sorted(move.destinations)
            ],
        )
        changes[ConfigResource(ConfigResourceType.TOPIC, topic)] = [
            AlterConfigOp(name, ",".join(value))
            for name, value in zip(THROTTLED_REPLICAS, values, strict=True)
        ]
    brokers = {each for move in moves.values() for each in move.sources | move.destinations}
    return changes | _rates(brokers, _REPLICATION_RATES, rate)


def log_dir_throttle(plan: Mapping[TopicPartition, PlannedReplicas], rate: int) -> ConfigChanges:
    """Returns the configs that limit moves between log directories to `rate` bytes/s."""
    brokers = {
        broker
        for its in plan.values()
        for broker, path in zip(its.replicas, its.log_dirs, strict=True)
        if path != ANY_DIRECTORY
    }
    return _rates(brokers, (_LOG_DIR_RATE,), rate)


def _rates(brokers: Iterable[int], names: Iterable[str], rate: int) -> ConfigChanges:
    wanted = list(names)
    return {
        ConfigResource(ConfigResourceType.BROKER, str(broker)): [
            AlterConfigOp(name, str(rate)) for name in wanted
        ]
        for broker in sorted(brokers)
    }


def merged(first: ConfigChanges, second: ConfigChanges) -> ConfigChanges:
    """Returns the changes of both."""
    return {
        resource: [*first.get(resource, ()), *second.get(resource, ())]
        for resource in {**first, **second}
    }


def throttle_removal(brokers: Iterable[int], topics: Iterable[str]) -> ConfigChanges:
    """Returns the changes that remove all throttles of `brokers` and `topics`."""
    resources = {
        **{
            ConfigResource(ConfigResourceType.BROKER, str(broker)): RATES
            for broker in sorted(set(brokers))
        },
        **{
            ConfigResource(ConfigResourceType.TOPIC, topic): THROTTLED_REPLICAS
            for topic in sorted(set(topics))
        },
    }
    return {
        resource: [AlterConfigOp(name, op=ConfigOpType.DELETE) for name in names]
        for resource, names in resources.items()
    }
