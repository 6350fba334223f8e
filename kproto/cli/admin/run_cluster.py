"""Runs `kproto cluster`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, Final

from ...client import Client, TopicPartition
from ...client.admin import ElectionType, LogDirDescription
from ...wire.errors import ConfigurationError
from ..command_error import CommandError
from .confirming import confirm
from .rows import print_rows
from .run_topics import named_partition, named_partitions
from .running import PartialResults, VerbFunction, run_verb

__all__ = ["run"]

_REASSIGNMENT_COLUMNS: Final = (
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

_LOG_DIR_COLUMNS: Final = (
    "broker",
    "log_dir",
    "topic",
    "partition",
    "bytes",
    "offset_lag",
    "future",
    "error",
)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


async def _brokers(client: Client, options: argparse.Namespace) -> int:
    cluster = await client.admin.describe_cluster(include_fenced_brokers=options.fenced)
    rows = (
        {
            "broker": node,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "controller": node == cluster.controller,
            "fenced": broker.is_fenced,
            "cluster": cluster.cluster_id,
        }
        for node, broker in sorted(cluster.brokers.items())
    )
    columns = ("broker", "host", "port", "rack", "controller", "fenced", "cluster")
    print_rows(options, columns, rows)
    return 0


async def _features(client: Client, options: argparse.Namespace) -> int:
    found = await client.admin.describe_features()
    rows = []
    for name in sorted({*found.supported, *found.finalized}):
        supported, finalized = found.supported.get(name), found.finalized.get(name)
        rows.append(
            {
                "feature": name,
                "lowest": supported and supported.lowest,
                "highest": supported and supported.highest,
                # As Kafka's script: the level of a feature that is not finalized is 0.
                "finalized": 0 if finalized is None else finalized.highest,
                "epoch": found.finalized_epoch,
            }
        )
    print_rows(options, ("feature", "lowest", "highest", "finalized", "epoch"), rows)
    return 0


async def _quorum(client: Client, options: argparse.Namespace) -> int:
    quorum = await client.admin.describe_metadata_quorum()
    end = max((each.log_end_offset for each in quorum.voters), default=0)
    rows = [
        {
            "node": replica.replica_id,
            "role": "leader" if replica.replica_id == quorum.leader_id else role,
            "log_end": replica.log_end_offset,
            "lag": max(end - replica.log_end_offset, 0),
            "last_fetch_ms": replica.last_fetch_ms,
            "last_caught_up_ms": replica.last_caught_up_ms,
            "epoch": quorum.leader_epoch,
            "high_watermark": quorum.high_watermark,
        }
        for role, replicas in (("voter", quorum.voters), ("observer", quorum.observers))
        for replica in replicas
    ]
    columns = ("node", "role", "log_end", "lag", "last_fetch_ms", "last_caught_up_ms", "epoch")
    print_rows(options, (*columns, "high_watermark"), rows)
    return 0


async def _log_dirs(client: Client, options: argparse.Namespace) -> int:
    partial = PartialResults()
    found = await partial.of(client.admin.describe_log_dirs(options.brokers or None))
    rows = [
        row
        for node, log_dirs in sorted(found.items())
        for path, log_dir in log_dirs.items()
        for row in log_dir_rows(node, path, log_dir)
    ]
    print_rows(options, _LOG_DIR_COLUMNS, rows)
    partial.raise_error()
    return 0


def log_dir_rows(node: int, path: str, log_dir: LogDirDescription) -> list[dict[str, Any]]:
    """Returns a row for each replica in a log directory, and one for a directory without any.

    A directory that is offline has an error, and no replicas.
    """
    own: dict[str, Any] = {
        **dict.fromkeys(_LOG_DIR_COLUMNS),
        "broker": node,
        "log_dir": path,
        "error": log_dir.error and str(log_dir.error),
    }
    return [
        {
            **own,
            "topic": topic,
            "partition": number,
            "bytes": replica.size_bytes,
            "offset_lag": replica.offset_lag,
            "future": replica.is_future,
        }
        for (topic, number), replica in sorted(log_dir.replicas.items())
    ] or [own]


async def _reassignments(client: Client, options: argparse.Namespace) -> int:
    found = await client.admin.list_partition_reassignments()
    tps = await named_partitions(client, options.names) if options.names else list(found)
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
                "status": "in progress" if moved else "complete",
                "replicas": partition.replicas,
                "in_sync": partition.in_sync,
                "adding": adding,
                "removing": moved.removing if moved else (),
                "copied_bytes": min(copied, default=None),
                "leader_bytes": sizes.get((topic, number, partition.leader)) if moved else None,
            }
        )
    print_rows(options, _REASSIGNMENT_COLUMNS, rows)
    return 0


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


async def _reassign(client: Client, options: argparse.Namespace) -> int:
    if (options.replicas is None) == (not options.cancel):
        raise ConfigurationError("pass either --replicas ID,ID or --cancel")
    tp = await named_partition(client, options.name)
    replicas = None
    action = f"cancel the reassignment of {options.name}"
    if not options.cancel:
        try:
            replicas = [int(each) for each in options.replicas.split(",")]
        except ValueError:
            raise ConfigurationError(f"--replicas {options.replicas} is no list of ids") from None
        action = f"move {options.name} to the brokers {options.replicas}"
    if not confirm(options, action):
        return 1
    await client.admin.alter_partition_reassignments({tp: replicas})
    return 0


async def _elect(client: Client, options: argparse.Namespace) -> int:
    tps: list[TopicPartition] | None = None
    if options.names:
        tps = await named_partitions(client, options.names)
    kind = ElectionType.UNCLEAN if options.unclean else ElectionType.PREFERRED
    what = "all partitions" if tps is None else ", ".join(f"{topic}:{n}" for topic, n in tps)
    if not confirm(options, f"elect {kind.name.lower()} leaders of {what}"):
        return 1
    partial = PartialResults()
    elected = await partial.of(client.admin.elect_leaders(kind, tps))
    rows = (
        {"topic": topic, "partition": number, "elected": is_new}
        for (topic, number), is_new in sorted(elected.items())
    )
    print_rows(options, ("topic", "partition", "elected"), rows)
    partial.raise_error()
    return 0


async def _unregister(client: Client, options: argparse.Namespace) -> int:
    broker = (await client.admin.describe_cluster()).brokers.get(options.broker)
    if broker is not None and not broker.is_fenced:
        raise CommandError(
            f"broker {broker.node} answers at {broker.host}:{broker.port}: without its "
            "registration its replicas would be offline until it restarts; stop it first"
        )
    if not confirm(options, f"remove the registration of broker {options.broker}"):
        return 1
    await client.admin.unregister_broker(options.broker)
    return 0


_VERBS: Final[dict[str, VerbFunction]] = {
    "brokers": _brokers,
    "features": _features,
    "quorum": _quorum,
    "log-dirs": _log_dirs,
    "reassignments": _reassignments,
    "reassign": _reassign,
    "elect": _elect,
    "unregister": _unregister,
}
