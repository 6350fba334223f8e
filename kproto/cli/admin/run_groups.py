"""Runs `kproto groups`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any, Final

from ...client import Client
from ...client.admin import AdminError, MemberToRemove
from ...clock import SYSTEM_CLOCK
from ...wire.counted import counted
from ...wire.errors import BrokerResponseError, ConfigurationError, KprotoError
from ..command_error import CommandError
from ..name_patterns import has_pattern, topics_of
from ..tables import escaped, named
from ..terminal_words import terminal_text
from .confirming import confirm
from .group_rows import Row, described_rows, lag_columns, lag_notes, lag_rows
from .group_types import SHARE, STREAMS, all_groups, named_groups, type_of_group
from .known_names import known_names
from .rows import print_rows
from .run_group_reset import reset
from .run_topics import named_partitions
from .running import PartialResults, VerbFunction, run_verb

__all__ = ["run"]

_SUM_COLUMNS: Final = ("group", "topic", "partitions", "lag")

_KNOWN_TYPES: Final = ("Classic", "Consumer", "Share", "Streams")

#: The states of groups of all types, as of Java's GroupState.
_KNOWN_STATES: Final = (
    "Empty",
    "Stable",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)

#: Clears a terminal and moves the cursor to its first line.
_CLEAR: Final = "\x1b[H\x1b[2J"


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


async def _list(client: Client, options: argparse.Namespace) -> int:
    types = known_names("--type", options.types, _KNOWN_TYPES)
    states = known_names("--state", options.states, _KNOWN_STATES)
    groups = await client.admin.list_groups(states=states, types=types)
    rows = (
        {
            "group": each.group_id,
            "type": each.type,
            "protocol_type": each.protocol_type,
            "state": each.state,
        }
        for each in sorted(groups, key=lambda each: each.group_id)
    )
    print_rows(options, ("group", "type", "protocol_type", "state"), rows)
    return 0


async def _describe(client: Client, options: argparse.Namespace) -> int:
    partial = PartialResults()
    groups = await named_groups(client, options.groups)
    rows = await described_rows(client, groups, partial)
    columns = ["group", "state", "type", "assignor", "coordinator"]
    columns += ["member", "instance", "client", "host"]
    if len(groups.streams) < len(groups) or not groups:
        columns.append("partitions")
    if groups.streams:
        columns.append("tasks")
    print_rows(options, columns, rows)
    partial.raise_error()
    return 0


async def _lag(client: Client, options: argparse.Namespace) -> int:
    partial = PartialResults()
    rows = await _lag_rows(client, options.groups, partial)
    _print_lag(options, rows)
    for note in lag_notes(rows):
        print(f"kproto: {escaped(note)}", file=sys.stderr)
    partial.raise_error()
    return 0


async def _lag_rows(client: Client, names: list[str], partial: PartialResults) -> list[Row]:
    """Returns the rows of the named groups, or of all groups.

    If no group is named, a group that is deleted during the call is no error.
    """
    if names:
        return await lag_rows(client, await named_groups(client, names), partial)
    own = PartialResults()
    rows = await lag_rows(client, await all_groups(client), own)
    partial.errors += [error for error in own.errors if not _is_of_deleted(error)]
    return rows


def _is_of_deleted(error: KprotoError) -> bool:
    errors = error.errors.values() if isinstance(error, AdminError) else [error]
    return all(
        isinstance(each, BrokerResponseError) and each.name == "GROUP_ID_NOT_FOUND"
        for each in errors
    )


def _print_lag(options: argparse.Namespace, rows: list[Row]) -> None:
    if not options.sum:
        print_rows(options, lag_columns(rows), rows)
        return
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["group"], row["topic"]
        total = sums.setdefault(key, dict(zip(_SUM_COLUMNS, (*key, 0, 0), strict=True)))
        total["partitions"] += 1
        total["lag"] += max(row["lag"] or 0, 0)
    print_rows(options, _SUM_COLUMNS, sums.values())


async def _watch(client: Client, options: argparse.Namespace) -> int:
    is_live = sys.stdout.isatty() and not options.json and not options.csv
    left = options.count
    while left is None or left > 0:
        partial = PartialResults()
        rows = await _lag_rows(client, options.groups, partial)
        if not rows:
            partial.raise_error()
        if is_live:
            sys.stdout.write(_CLEAR)
        _print_lag(options, rows)
        for error in partial.errors:  # the other groups are still watched
            print(f"kproto: {terminal_text(error)}", file=sys.stderr)
        sys.stdout.flush()
        left = None if left is None else left - 1
        if left != 0:
            await SYSTEM_CLOCK.sleep(options.interval / 1000)
    return 0


async def _delete(client: Client, options: argparse.Namespace) -> int:
    names = options.groups
    if has_pattern(names):
        names = await named_groups(client, names, needs_match=True)
    names = list(dict.fromkeys(names))
    whose = "its" if len(names) == 1 else "their"
    if not confirm(options, f"delete {named(names, 'group')} with {whose} offsets"):
        return 1
    await client.admin.delete_consumer_groups(names)
    return 0


async def _delete_offsets(client: Client, options: argparse.Namespace) -> int:
    group: str = options.group
    if await type_of_group(client, group) == SHARE:
        return await _delete_share_offsets(client, options)
    tps = await named_partitions(client, options.topics)
    if not confirm(options, f"delete {counted(len(tps), 'committed offset')} of the group {group}"):
        return 1
    try:
        await client.admin.delete_consumer_group_offsets(group, tps)
    except AdminError as error:
        others = [each for each in error.errors.values() if not _is_missing(each)]
        if others:
            raise
    return 0


async def _delete_share_offsets(client: Client, options: argparse.Namespace) -> int:
    for name in options.topics:
        if ":" in name:
            raise ConfigurationError(
                f"{name!r} is no TOPIC: {options.group} is a share group, whose offsets are "
                "deleted for whole topics"
            )
    names = await topics_of(client, options.topics, needs_match=True)
    action = f"delete the start offsets of the group {options.group} for {named(names, 'topic')}"
    if not confirm(options, action):
        return 1
    await client.admin.delete_share_group_offsets(options.group, names)
    return 0


def _is_missing(error: Exception) -> bool:
    return isinstance(error, BrokerResponseError) and error.name == "UNKNOWN_TOPIC_OR_PARTITION"


async def _remove_members(client: Client, options: argparse.Namespace) -> int:
    kind = await type_of_group(client, options.group)
    if kind in (SHARE, STREAMS):
        raise CommandError(
            f"{options.group} is a {kind.lower()} group, from which brokers remove no members by "
            "request: stop the members, and they leave it"
        )
    what = ", ".join(options.members) or "all members"
    if not confirm(options, f"remove {what} from the group {options.group}"):
        return 1
    members = options.members or None
    try:
        removed = await client.admin.remove_members_from_consumer_group(options.group, members)
    except AdminError as error:
        _print_members(options, error.results)
        raise
    _print_members(options, removed)
    return 0


def _print_members(options: argparse.Namespace, members: Iterable[MemberToRemove]) -> None:
    rows = [{"instance": each.instance_id, "member": each.member_id} for each in members]
    if rows:
        print_rows(options, ("instance", "member"), rows)


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "describe": _describe,
    "lag": _lag,
    "watch": _watch,
    "reset": reset,
    "delete": _delete,
    "delete-offsets": _delete_offsets,
    "remove-members": _remove_members,
}
