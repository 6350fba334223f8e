"""Runs the verbs of `kproto cluster` that plan, start, show and cancel reassignments."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ...client import Client, TopicPartition
from ...client.admin import (
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    PartitionReassignment,
)
from ...wire.counted import counted
from ...wire.errors import ConfigurationError
from ..command_error import CommandError
from ..name_patterns import topics_of
from ..progress import amount
from .confirming import confirm
from .planned_log_dirs import cancel_log_dirs, log_dir_states, move_log_dirs
from .reassignment_plans import (
    ANY_DIRECTORY,
    PlannedReplicas,
    plan_of_text,
    text_of_plan,
)
from .reassignment_throttles import (
    ConfigChanges,
    log_dir_throttle,
    merged,
    partition_moves,
    throttle,
    throttle_removal,
)
from .replica_proposals import proposed_replicas
from .rows import print_rows
from .run_topics import named_partition, named_partitions

__all__ = ["plan", "reassign", "reassignments", "status_of"]

_COLUMNS: Final = (
    "topic",
    "partition",
    "status",
    "replicas",
    "in_sync",
    "adding",
    "removing",
    "copied_bytes",
    "leader_bytes",
)

#: The columns of a plan beside the replicas of the cluster.
_PLAN_COLUMNS: Final = ("topic", "partition", "replicas", "new")

#: Seconds between two looks at reassignments in progress.
_INTERVAL_S: Final = 1.0

_COMPLETE: Final = "complete"
_IN_PROGRESS: Final = "in progress"
_DIFFERENT: Final = "different"


async def plan(client: Client, options: argparse.Namespace) -> int:
    """Prints a plan that spreads topics over brokers, and writes it to a file."""
    brokers = list(dict.fromkeys(_ids("--brokers", options.brokers)))
    cluster = await _known_brokers(client, brokers, "--brokers")
    names = await topics_of(client, options.names, needs_match=True)
    described = await client.admin.describe_topics(names)
    running = await client.admin.list_partition_reassignments()
    current = {
        (topic.name, number): partition.replicas
        for topic in described.values()
        for number, partition in topic.partitions.items()
    }
    # A reassignment in progress has the former replicas, too.
    current |= {tp: _after(running[tp]) for tp in running.keys() & current.keys()}
    racks = {broker: cluster[broker].rack for broker in brokers}
    proposed = proposed_replicas(current, brokers, racks)
    if options.file is not None:
        _write_plan(options.file, proposed)
    print_rows(options, _PLAN_COLUMNS, _plan_rows(current, proposed))
    return 0


def _plan_rows(
    current: Mapping[TopicPartition, Iterable[int]], new: Mapping[TopicPartition, Iterable[int]]
) -> list[dict[str, Any]]:
    return [
        {"topic": tp[0], "partition": tp[1], "replicas": current[tp], "new": replicas}
        for tp, replicas in sorted(new.items())
    ]


def _write_plan(path: str, replicas: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    text = text_of_plan(
        {tp: PlannedReplicas(its, (ANY_DIRECTORY,) * len(its)) for tp, its in replicas.items()}
    )
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error}") from None


def _read_plan(path: str) -> dict[TopicPartition, PlannedReplicas]:
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    return plan_of_text(text, path)


def _ids(option: str, text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise ConfigurationError(f"{option} {text} is no list of ids") from None


async def _known_brokers(client: Client, wanted: Iterable[int], where: str) -> Mapping[int, Any]:
    """Returns the brokers of the cluster. Raises CommandError if one of `wanted` is not there."""
    brokers = (await client.admin.describe_cluster()).brokers
    missing = sorted(set(wanted) - set(brokers))
    if missing:
        raise CommandError(
            f"{where} names unknown brokers: {', '.join(map(str, missing))}; the cluster has "
            f"{', '.join(map(str, sorted(brokers)))}"
        )
    return brokers


async def _replicas_of(
    client: Client, tps: Collection[TopicPartition], path: str
) -> dict[TopicPartition, tuple[int, ...]]:
    """Returns the replicas of partitions; raises CommandError for a missing partition."""
    described = await client.admin.describe_topics(sorted({topic for topic, _ in tps}))
    missing = [f"{t}:{number}" for t, number in tps if number not in described[t].partitions]
    if missing:
        raise CommandError(f"{path} names partitions that do not exist: {', '.join(missing)}")
    return {(t, number): described[t].partitions[number].replicas for t, number in tps}


# Start and cancel


async def reassign(client: Client, options: argparse.Namespace) -> int:
    """Starts or cancels the reassignment of a partition, or those of a plan file."""
    ways = (options.replicas is not None) + options.cancel
    _check(options)
    if options.plan is None:
        if options.name is None or ways != 1:
            raise ConfigurationError(
                "pass TOPIC:PARTITION and either --replicas ID,ID or --cancel, or --plan FILE"
            )
        return await _reassign_one(client, options)
    if options.name is not None or options.replicas is not None:
        raise ConfigurationError("--plan FILE names the partitions and their replicas")
    wanted = _read_plan(options.plan)
    if options.cancel:
        return await _cancel_plan(client, options, wanted)
    return await _execute(client, options, wanted)


def _check(options: argparse.Namespace) -> None:
    """Raises ConfigurationError for an option that would have no effect."""
    starts = {
        "--throttle": options.throttle is not None,
        "--log-dir-throttle": options.log_dir_throttle is not None,
        "--additional": options.additional,
        "--rollback": options.rollback is not None,
        "--wait": options.wait,
    }
    for name, is_given in {**starts, "--keep-throttle": options.keep_throttle}.items():
        if is_given and options.plan is None:
            raise ConfigurationError(f"{name} needs --plan FILE")
        if is_given and options.cancel != (name not in starts):
            raise ConfigurationError(f"{name} is {'not ' if name in starts else ''}for --cancel")


async def _reassign_one(client: Client, options: argparse.Namespace) -> int:
    tp = await named_partition(client, options.name)
    replicas = None
    action = f"cancel the reassignment of {options.name}"
    if not options.cancel:
        replicas = _ids("--replicas", options.replicas)
        action = f"move {options.name} to the brokers {options.replicas}"
    if not confirm(options, action):
        return 1
    may_change = not options.disallow_replication_factor_change
    await client.admin.alter_partition_reassignments(
        {tp: replicas}, allow_replication_factor_change=may_change
    )
    return 0


async def _execute(
    client: Client, options: argparse.Namespace, wanted: Mapping[TopicPartition, PlannedReplicas]
) -> int:
    running = await client.admin.list_partition_reassignments()
    if running and not options.additional:
        raise CommandError(
            f"{counted(len(running), 'reassignment')} in progress: --additional starts those of "
            "the plan, too"
        )
    await _known_brokers(
        client, (each for its in wanted.values() for each in its.replicas), options.plan
    )
    current = await _replicas_of(client, wanted, options.plan)
    new = {tp: its.replicas for tp, its in wanted.items()}
    print_rows(options, _PLAN_COLUMNS, _plan_rows(current, new))
    sys.stdout.flush()
    if not confirm(options, f"reassign {counted(len(new), 'partition')}"):
        return 1
    if options.rollback is not None:
        before = {tp: _before(running[tp]) for tp in running if tp in current}
        _write_plan(options.rollback, {**current, **before})
    changes: ConfigChanges = {}
    if options.throttle is not None:
        changes = throttle(partition_moves(running, current, wanted), options.throttle)
    if options.log_dir_throttle is not None:
        changes = merged(changes, log_dir_throttle(wanted, options.log_dir_throttle))
    try:
        if changes:
            await client.admin.incremental_alter_configs(changes)
        # Before the replicas are created, so that their broker creates them in this directory.
        await move_log_dirs(client, wanted)
        may_change = not options.disallow_replication_factor_change
        await client.admin.alter_partition_reassignments(
            new, allow_replication_factor_change=may_change
        )
        if options.wait:
            await _wait(client, wanted)
            if changes:
                await _remove_throttles(client, wanted)
                changes = {}
    finally:  # also after an error, and after Ctrl-C while it waits
        if changes:
            _note_throttles(options.plan)
    return 0


def _note_throttles(path: str) -> None:
    command = f"kproto cluster reassignments --plan {path} --remove-throttle"
    print(f"kproto: the throttles stay until `{command}` removes them", file=sys.stderr)


async def _wait(client: Client, wanted: Mapping[TopicPartition, PlannedReplicas]) -> None:
    """Waits until the reassignments of the plan are complete; prints their progress."""
    is_terminal = sys.stderr.isatty()
    said = None
    while True:
        running = await client.admin.list_partition_reassignments(wanted)
        states = await log_dir_states(client, wanted)
        moving = sum(state == _IN_PROGRESS for state in states.values())
        if not running and not moving:
            break
        sizes = await _replica_sizes(client, running)
        copied = sum(
            sizes.get((*tp, broker), 0) for tp, its in running.items() for broker in its.adding
        )
        text = f"{counted(len(running), 'reassignment')} in progress, {amount(copied)} copied"
        if moving:
            text += f", {counted(moving, 'replica')} between log directories"
        if is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif text != said:
            print(text, file=sys.stderr)
        said = text
        await asyncio.sleep(_INTERVAL_S)
    if is_terminal and said is not None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


async def _cancel_plan(
    client: Client, options: argparse.Namespace, wanted: Mapping[TopicPartition, PlannedReplicas]
) -> int:
    running = await client.admin.list_partition_reassignments(wanted)
    if not running:
        print("kproto: no reassignment of the plan is in progress", file=sys.stderr)
    names = ", ".join(f"{topic}:{number}" for topic, number in sorted(running))
    action = f"cancel the reassignments of {names}" if running else "remove the throttles"
    if not confirm(options, action):
        return 1
    if running:
        await client.admin.alter_partition_reassignments(dict.fromkeys(running))
    await cancel_log_dirs(client, wanted)
    if not options.keep_throttle:
        await _remove_throttles(client, wanted)
    rows = [
        {"topic": tp[0], "partition": tp[1], "replicas": _before(its)}
        for tp, its in sorted(running.items())
    ]
    print_rows(options, _PLAN_COLUMNS[:3], rows)
    return 0


def _before(its: PartitionReassignment) -> tuple[int, ...]:
    """Returns the replicas to which a cancelled reassignment goes back."""
    return tuple(each for each in its.replicas if each not in its.adding)


def _after(its: PartitionReassignment) -> tuple[int, ...]:
    """Returns the replicas after a reassignment."""
    return tuple(each for each in its.replicas if each not in its.removing)


# Show, and remove throttles


async def reassignments(client: Client, options: argparse.Namespace) -> int:
    """Prints reassignments with their progress; of a plan, also whether it is carried out."""
    if options.plan is None:
        if options.remove_throttle:
            raise ConfigurationError("--remove-throttle needs --plan FILE")
        return await _list(client, options)
    if options.names:
        raise ConfigurationError("--plan FILE names the partitions")
    wanted = _read_plan(options.plan)
    await _replicas_of(client, wanted, options.plan)
    found = await client.admin.list_partition_reassignments(wanted)
    rows = await _rows(client, list(wanted), found)
    dirs = await log_dir_states(client, wanted)
    different = []
    for row in rows:
        tp = (row["topic"], row["partition"])
        row["planned"] = wanted[tp].replicas
        row["status"] = status_of(wanted[tp], row["replicas"], found.get(tp), dirs.get(tp))
        if row["status"] == _DIFFERENT:
            different.append(f"{tp[0]}:{tp[1]}")
    print_rows(options, (*_COLUMNS[:3], "planned", *_COLUMNS[3:]), rows)
    in_progress = sum(row["status"] == _IN_PROGRESS for row in rows)
    if options.remove_throttle:
        if in_progress:
            raise CommandError(
                f"{counted(in_progress, 'reassignment')} in progress: the throttles stay"
            )
        await _remove_throttles(client, wanted)
    elif not in_progress and await _has_throttles(client, wanted):
        _note_throttles(options.plan)
    if different:
        raise CommandError(
            f"{', '.join(different)}: not as in the plan, and no reassignment is in progress"
        )
    return 0


def status_of(
    planned: PlannedReplicas,
    replicas: Iterable[int],
    running: PartitionReassignment | None,
    log_dir_state: str | None,
) -> str:
    """Returns `complete`, `in progress` or `different` for a partition of a plan.

    `log_dir_state` is that of its replicas whose log directories are in the plan.
    """
    if running is not None:
        return _IN_PROGRESS
    if tuple(replicas) != planned.replicas:
        return _DIFFERENT
    return log_dir_state or _COMPLETE


async def _list(client: Client, options: argparse.Namespace) -> int:
    found = await client.admin.list_partition_reassignments()
    tps = await named_partitions(client, options.names) if options.names else list(found)
    print_rows(options, _COLUMNS, await _rows(client, tps, found))
    return 0


async def _rows(
    client: Client,
    tps: Collection[TopicPartition],
    found: Mapping[TopicPartition, PartitionReassignment],
) -> list[dict[str, Any]]:
    described = await client.admin.describe_topics({topic for topic, _ in tps}) if tps else {}
    sizes = await _replica_sizes(client, tps) if found else {}
    rows = []
    for topic, number in sorted(tps):
        moved = found.get((topic, number))
        partition = described[topic].partitions[number]
        adding = moved.adding if moved else ()
        copied = [sizes.get((topic, number, broker), 0) for broker in adding]
        rows.append(
            {
                "topic": topic,
                "partition": number,
                "status": _IN_PROGRESS if moved else _COMPLETE,
                "replicas": partition.replicas,
                "in_sync": partition.in_sync,
                "adding": adding,
                "removing": moved.removing if moved else (),
                "copied_bytes": min(copied, default=None),
                "leader_bytes": sizes.get((topic, number, partition.leader)) if moved else None,
            }
        )
    return rows


async def _replica_sizes(
    client: Client, tps: Iterable[TopicPartition]
) -> dict[tuple[str, int, int], int]:
    """Returns the sizes of replicas in bytes, by topic, partition and broker."""
    wanted = set(tps)
    return {
        (*tp, node): replica.size_bytes
        for node, log_dirs in (await client.admin.describe_log_dirs()).items()
        for log_dir in log_dirs.values()
        for tp, replica in log_dir.replicas.items()
        if tp in wanted
    }


async def _removal(
    client: Client, wanted: Mapping[TopicPartition, PlannedReplicas]
) -> ConfigChanges:
    """Returns the changes that remove the throttles of the plan's topics and of all brokers."""
    brokers = (await client.admin.describe_cluster()).brokers
    return throttle_removal(brokers, (topic for topic, _ in wanted))


async def _remove_throttles(
    client: Client, wanted: Mapping[TopicPartition, PlannedReplicas]
) -> None:
    """Removes the throttles; the rates stay while other reassignments are in progress."""
    changes = await _removal(client, wanted)
    running = await client.admin.list_partition_reassignments()
    others = sum(tp not in wanted for tp in running)
    if others:
        print(
            f"kproto: {counted(others, 'other reassignment')} in progress: the rates of the "
            "brokers stay",
            file=sys.stderr,
        )
        changes = {
            resource: its
            for resource, its in changes.items()
            if resource.type is not ConfigResourceType.BROKER
        }
    await client.admin.incremental_alter_configs(changes)


async def _has_throttles(client: Client, wanted: Mapping[TopicPartition, PlannedReplicas]) -> bool:
    changes = await _removal(client, wanted)
    names = {change.name for its in changes.values() for change in its}
    found: Mapping[ConfigResource, Mapping[str, ConfigEntry]]
    found = await client.admin.describe_configs(changes, names=names)
    sources = (ConfigSource.TOPIC, ConfigSource.DYNAMIC_BROKER)
    return any(entry.source in sources for its in found.values() for entry in its.values())
