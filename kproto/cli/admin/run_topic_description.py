"""Runs `kproto topics describe`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

from ...client import Client, TopicPartition
from ...client.admin import (
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    PartitionDescription,
    PartitionReassignment,
    TopicDescription,
)
from ...wire.errors import UnsupportedVersionError
from ..name_patterns import topics_of
from .rows import print_rows
from .running import PartialResults

__all__ = ["PartitionFacts", "describe"]

_COLUMNS: Final = (
    "topic",
    "partition",
    "leader",
    "leader_epoch",
    "replicas",
    "in_sync",
    "offline",
    "elr",
    "last_known_elr",
)

_MIN_ISR: Final = "min.insync.replicas"


class PartitionFacts:
    """Tells which partitions have too few replicas in sync.

    `min_isr` has min.insync.replicas by topic; `reassigned` the reassignments in progress, whose
    added replicas need not be in sync yet; `live` the node ids of the brokers that are not fenced.
    """

    def __init__(
        self,
        min_isr: Mapping[str, int],
        reassigned: Mapping[TopicPartition, PartitionReassignment],
        live: Collection[int],
    ) -> None:
        self._min_isr = min_isr
        self._reassigned = reassigned
        self._live = live

    def has(self, name: str, topic: str, each: PartitionDescription) -> bool:
        """Returns True if a partition is what an option names, such as `under-min-isr`."""
        moved = self._reassigned.get((topic, each.partition))
        if name == "under-replicated":
            replicas = len(moved.replicas) - len(moved.adding) if moved else len(each.replicas)
            return len(each.in_sync) < replicas
        if name == "unavailable":
            return each.leader not in self._live
        least = self._min_isr[topic]
        if name == "at-min-isr":
            return len(each.in_sync) == least
        return each.leader < 0 or len(each.in_sync) < least


async def describe(client: Client, options: argparse.Namespace) -> int:
    """Prints the partitions of topics; with `--with-overrides`, topics and their configs."""
    partial = PartialResults()
    filters: list[str] = options.filters or []
    has_internal = options.internal or (bool(filters) and not options.exclude_internal)
    if options.names or not has_internal:
        names = await topics_of(client, options.names or ["*"])
    else:
        names = sorted(await client.admin.list_topics(list_internal=True))
    found = await partial.of(client.admin.describe_topics(names)) if names else {}
    described = [
        topic for topic in found.values() if not (options.exclude_internal and topic.is_internal)
    ]
    if options.with_overrides:
        await _print_overrides(client, options, described)
    else:
        await _print_partitions(client, options, described, filters)
    partial.raise_error()
    return 0


async def _print_partitions(
    client: Client,
    options: argparse.Namespace,
    described: Collection[TopicDescription],
    filters: Collection[str],
) -> None:
    facts = await _facts(client, described, filters)
    rows = [
        {
            "topic": topic.name,
            "partition": each.partition,
            "leader": each.leader,
            "leader_epoch": each.leader_epoch,
            "replicas": each.replicas,
            "in_sync": each.in_sync,
            "offline": each.offline,
            "elr": each.eligible_leaders,
            "last_known_elr": each.last_known_eligible_leaders,
        }
        for topic in described
        for each in topic.partitions.values()
        if not filters or any(facts.has(name, topic.name, each) for name in filters)
    ]
    # Before Kafka 3.8, and without eligible.leader.replicas.version, brokers send none.
    unknown = [name for name in _COLUMNS[-2:] if all(row[name] is None for row in rows)]
    print_rows(options, _COLUMNS, rows, hidden=unknown)


async def _facts(
    client: Client, described: Collection[TopicDescription], filters: Collection[str]
) -> PartitionFacts:
    """Returns what the filters need to know; requests nothing else."""
    min_isr: dict[str, int] = {}
    if described and {"under-min-isr", "at-min-isr"}.intersection(filters):
        resources = [ConfigResource(ConfigResourceType.TOPIC, each.name) for each in described]
        configs = await client.admin.describe_configs(resources, names=[_MIN_ISR])
        min_isr = {each.name: int(its[_MIN_ISR].value or 1) for each, its in configs.items()}
    reassigned: Mapping[TopicPartition, PartitionReassignment] = {}
    if "under-replicated" in filters and _is_any_short(described):
        with suppress(UnsupportedVersionError):  # before Kafka 2.4
            reassigned = await client.admin.list_partition_reassignments()
    live: Collection[int] = ()
    if "unavailable" in filters:
        live = (await client.admin.describe_cluster()).brokers
    return PartitionFacts(min_isr, reassigned, live)


def _is_any_short(described: Iterable[TopicDescription]) -> bool:
    return any(
        len(each.in_sync) < len(each.replicas)
        for topic in described
        for each in topic.partitions.values()
    )


async def _print_overrides(
    client: Client, options: argparse.Namespace, described: Collection[TopicDescription]
) -> None:
    resources = [ConfigResource(ConfigResourceType.TOPIC, each.name) for each in described]
    configs = await client.admin.describe_configs(resources) if resources else {}
    rows = []
    for topic in described:
        own = {
            name: entry.value
            for name, entry in configs[ConfigResource(ConfigResourceType.TOPIC, topic.name)].items()
            if entry.source is ConfigSource.TOPIC
        }
        if own:
            replicas = [len(each.replicas) for each in topic.partitions.values()]
            rows.append(
                {
                    "topic": topic.name,
                    "partitions": len(topic.partitions),
                    "replicas": max(replicas, default=0),
                    "configs": own,
                }
            )
    print_rows(options, ("topic", "partitions", "replicas", "configs"), rows)
