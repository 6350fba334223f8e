"""Reads and writes plans of reassignments: plain functions on plain data.

A plan file has the JSON of `kafka-reassign-partitions.sh`, which reads and writes the same files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeGuard

from ...client import TopicPartition
from ..command_error import CommandError

__all__ = ["ANY_DIRECTORY", "PlannedReplicas", "plan_of_text", "text_of_plan"]

#: The log directory of a replica that the broker chooses.
ANY_DIRECTORY: Final = "any"

_VERSION: Final = 1


class PlannedReplicas(NamedTuple):
    """The node ids of the replicas of a partition, the preferred leader first, and their paths.

    `log_dirs` has the path of a log directory, or `any`, for each replica.
    """

    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...]


def text_of_plan(plan: Mapping[TopicPartition, PlannedReplicas]) -> str:
    """Returns the JSON of a plan file, a line."""
    partitions = [
        {"topic": tp[0], "partition": tp[1], "replicas": its.replicas, "log_dirs": its.log_dirs}
        for tp, its in sorted(plan.items())
    ]
    document = {"version": _VERSION, "partitions": partitions}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def plan_of_text(text: str, source: str) -> dict[TopicPartition, PlannedReplicas]:
    """Returns the plan in the JSON of a plan file; errors name the file, `source`.

    Raises CommandError for other text, for a partition without replicas, and for a partition or a
    replica that is there twice.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CommandError(f"{source} is no JSON: {error}") from None
    listed = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(listed, list) or document.get("version", _VERSION) != _VERSION:
        raise CommandError(
            f'{source} is no plan: it must have "version": 1 and "partitions": […], as '
            "kproto cluster plan and kafka-reassign-partitions.sh --generate write"
        )
    plan: dict[TopicPartition, PlannedReplicas] = {}
    for number, each in enumerate(listed, 1):
        where = f"partition {number} of {source}"
        tp, its = _planned(each, where)
        if tp in plan:
            raise CommandError(f"{where}: {tp[0]}:{tp[1]} is there twice")
        plan[tp] = its
    if not plan:
        raise CommandError(f"{source} has no partitions")
    return plan


def _planned(each: Any, where: str) -> tuple[TopicPartition, PlannedReplicas]:
    found = each if isinstance(each, dict) else {}
    topic, partition, replicas = (found.get(name) for name in ("topic", "partition", "replicas"))
    if not isinstance(topic, str) or not _is_id(partition):
        raise CommandError(f'{where} has no "topic" and "partition"')
    if not isinstance(replicas, list) or not replicas or not all(map(_is_id, replicas)):
        raise CommandError(f"{where}: {topic}:{partition} has no replicas, which are node ids")
    if len(set(replicas)) < len(replicas):
        raise CommandError(f"{where}: {topic}:{partition} has a replica twice")
    log_dirs = found.get("log_dirs", [ANY_DIRECTORY] * len(replicas))
    if (
        not isinstance(log_dirs, list)
        or len(log_dirs) != len(replicas)
        or not all(isinstance(path, str) for path in log_dirs)
    ):
        raise CommandError(
            f'{where}: "log_dirs" of {topic}:{partition} must have a path or "any" for each replica'
        )
    return (topic, partition), PlannedReplicas(tuple(replicas), tuple(log_dirs))


def _is_id(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
