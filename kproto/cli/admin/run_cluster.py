"""Runs `kproto cluster`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from ...client import Client, TopicPartition
from ...client.admin import ElectionType, LogDirDescription
from ..command_error import CommandError
from .confirming import confirm
from .rows import print_rows
from .run_api_versions import api_versions
from .run_controllers import add_controller, remove_controller
from .run_features import (
    disable,
    downgrade,
    feature_dependencies,
    features,
    upgrade,
    version_mapping,
)
from .run_quorum import quorum
from .run_reassignments import plan, reassign, reassignments
from .run_topics import named_partitions
from .running import PartialResults, VerbFunction, run_verb

__all__ = ["run"]

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
    if options.verb in _VERBS_WITHOUT_CLIENT:
        return _VERBS_WITHOUT_CLIENT[options.verb](options)
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


_VERBS_WITHOUT_CLIENT: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "version-mapping": version_mapping,
    "feature-dependencies": feature_dependencies,
}

_VERBS: Final[dict[str, VerbFunction]] = {
    "brokers": _brokers,
    "features": features,
    "upgrade-features": upgrade,
    "downgrade-features": downgrade,
    "disable-features": disable,
    "quorum": quorum,
    "add-controller": add_controller,
    "remove-controller": remove_controller,
    "log-dirs": _log_dirs,
    "api-versions": api_versions,
    "plan": plan,
    "reassign": reassign,
    "reassignments": reassignments,
    "elect": _elect,
    "unregister": _unregister,
}
