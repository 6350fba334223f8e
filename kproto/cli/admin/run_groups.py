"""Runs `kproto groups`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ...client import Client, TopicPartition
from ...client.admin import AdminError, ConsumerGroupDescription
from ...clock import SYSTEM_CLOCK
from ...wire.errors import BrokerResponseError, ConfigurationError
from ..command_error import CommandError
from ..terminal_words import terminal_text
from ..times import moment_of
from .confirming import confirm
from .group_resets import Bounds, offsets_of_file, reset_rows, shifted
from .rows import print_rows
from .run_topics import named_partitions
from .running import PartialResults, VerbFunction, run_verb

__all__ = ["run"]

_LAG_COLUMNS: Final = (
    "group",
    "topic",
    "partition",
    "committed",
    "log_end",
    "lag",
    "client",
    "host",
    "member",
)

_SUM_COLUMNS: Final = ("group", "topic", "partitions", "lag")

_KNOWN_TYPES: Final = ("Classic", "Consumer", "Share", "Streams")

#: The types and protocol types of groups of consumers; brokers before Kafka 3.8 tell no type.
_TYPES: Final = ("", "Classic", "Consumer")
_PROTOCOL_TYPES: Final = ("", "consumer")

#: Clears a terminal and moves the cursor to its first line.
_CLEAR: Final = "\x1b[H\x1b[2J"


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


async def _list(client: Client, options: argparse.Namespace) -> int:
    for each in options.types or ():
        if each.capitalize() not in _KNOWN_TYPES:
            raise ConfigurationError(f"--type {each}: the types are {', '.join(_KNOWN_TYPES)}")
    groups = await client.admin.list_groups(states=options.states, types=options.types)
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
    described = await partial.of(client.admin.describe_consumer_groups(options.groups))
    columns = ("group", "state", "type", "assignor", "member", "instance", "client", "host")
    rows = []
    for group in described.values():
        own: dict[str, Any] = {
            "group": group.group_id,
            "state": group.state,
            "type": group.type,
            "assignor": group.assignor,
        }
        rows += [
            {
                **own,
                "member": member.member_id,
                "instance": member.instance_id,
                "client": member.client_id,
                "host": member.host,
                "partitions": [f"{topic}:{number}" for topic, number in sorted(member.assignment)],
            }
            for member in group.members
        ] or [{**own, **dict.fromkeys([*columns[4:], "partitions"])}]
    print_rows(options, (*columns, "partitions"), rows)
    partial.raise_error()
    return 0


async def _lag(client: Client, options: argparse.Namespace) -> int:
    partial = PartialResults()
    rows = await _lag_rows(client, options.groups, partial)
    _print_lag(options, rows)
    partial.raise_error()
    return 0


async def _lag_rows(
    client: Client, groups: Iterable[str], partial: PartialResults
) -> list[dict[str, Any]]:
    """Returns a row for each partition with a committed offset or an owner.

    Adds the error of a named group that does not exist to `partial`.
    """
    described = await _described(client, groups, partial)
    rows: list[dict[str, Any]] = []
    for name in described:
        owners = {tp: member for member in described[name].members for tp in member.assignment}
        committed = await client.admin.list_consumer_group_offsets({name: None})
        lags = await client.admin.consumer_group_lag(name, [*committed[name], *owners])
        for (topic, number), lag in sorted(lags.items()):
            owner = owners.get((topic, number))
            rows.append(
                {
                    "group": name,
                    "topic": topic,
                    "partition": number,
                    "committed": None if lag.committed is None else lag.committed.offset,
                    "log_end": lag.log_end,
                    "lag": lag.lag,
                    "client": owner and owner.client_id,
                    "host": owner and owner.host,
                    "member": owner and owner.member_id,
                }
            )
    return rows


async def _described(
    client: Client, groups: Iterable[str], partial: PartialResults
) -> Mapping[str, ConsumerGroupDescription]:
    """Returns the named groups, or all groups of consumers; says which groups have no lag."""
    names = list(dict.fromkeys(groups))
    if names:
        return await partial.of(client.admin.describe_consumer_groups(names))
    listed = await client.admin.list_groups()
    others = [each for each in listed if each.type not in _TYPES]
    if others:
        kinds = " and ".join(sorted({each.type for each in others}))
        left_out = ", ".join(sorted(each.group_id for each in others))
        print(
            f"kproto: groups of the type {kinds} are left out, because these commands read groups "
            f"of consumers: {left_out}",
            file=sys.stderr,
        )
    names = sorted(
        each.group_id
        for each in listed
        if each.type in _TYPES and each.protocol_type in _PROTOCOL_TYPES
    )
    try:
        return await client.admin.describe_consumer_groups(names) if names else {}
    except AdminError as error:
        if any(not _is_deleted(each) for each in error.errors.values()):
            raise
        return error.results  # the other groups were deleted meanwhile


def _is_deleted(error: Exception) -> bool:
    return isinstance(error, BrokerResponseError) and error.name == "GROUP_ID_NOT_FOUND"


def _print_lag(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    if not options.sum:
        print_rows(options, _LAG_COLUMNS, rows)
        return
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["group"], row["topic"]
        total = sums.setdefault(key, dict(zip(_SUM_COLUMNS, (*key, 0, 0), strict=True)))
        total["partitions"] += 1
        total["lag"] += row["lag"] or 0
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


async def _reset(client: Client, options: argparse.Namespace) -> int:
    await _check_no_members(client, options.group)
    bounds = await _bounds(client, options)
    rows = reset_rows(bounds, await _wanted(client, options, bounds))
    print_rows(
        options,
        ("topic", "partition", "committed", "new", "log_end"),
        [row._asdict() for row in rows],
    )
    if options.dry_run:
        return 0
    if not confirm(options, f"commit {len(rows)} offsets for the group {options.group}"):
        return 1
    new = {(row.topic, row.partition): row.new for row in rows}
    await client.admin.alter_consumer_group_offsets(options.group, new)
    return 0


async def _check_no_members(client: Client, group: str) -> None:
    """Raises CommandError if the group has members; the coordinator would refuse the offsets."""
    try:
        described = await client.admin.describe_consumer_groups([group])
    except AdminError:  # a new group, or a group of another kind, which the commit refuses
        return
    members = described[group].members
    if members:
        names = sorted({each.client_id for each in members})
        raise CommandError(
            f"the group {group} has {len(members)} members ({', '.join(names)}): stop them first, "
            "because they would overwrite the new offsets"
        )


async def _bounds(client: Client, options: argparse.Namespace) -> dict[TopicPartition, Bounds]:
    """Returns the offsets of the partitions to reset. Raises CommandError if none is left."""
    tps: Iterable[TopicPartition]
    if options.topics:
        tps = await named_partitions(client, options.topics)
    elif options.from_file is not None:
        tps = _of_file(options.from_file)
    else:
        committed = await client.admin.list_consumer_group_offsets({options.group: None})
        tps = committed[options.group]
        if not tps:
            raise CommandError(
                f"the group {options.group} has no committed offsets; name the topics (--topic)"
            )
    lags = await client.admin.consumer_group_lag(options.group, tps)
    return {
        tp: Bounds(lag.committed and lag.committed.offset, lag.log_start, lag.log_end)
        for tp, lag in lags.items()
    }


async def _wanted(
    client: Client, options: argparse.Namespace, bounds: dict[TopicPartition, Bounds]
) -> dict[TopicPartition, int]:
    if options.to_earliest:
        return {tp: its.log_start for tp, its in bounds.items()}
    if options.to_latest:
        return {tp: its.log_end for tp, its in bounds.items()}
    if options.to_offset is not None:
        return {tp: int(options.to_offset) for tp in bounds}
    if options.shift is not None:
        return shifted(bounds, options.shift)
    if options.from_file is not None:
        found = _of_file(options.from_file)
        return {tp: offset for tp, offset in found.items() if tp in bounds}
    moment = moment_of("--to-time", options.to_time)
    listed = await client.admin.list_offsets(dict.fromkeys(bounds, moment))
    return {tp: each.offset for tp, each in listed.items()}


def _of_file(path: str) -> dict[TopicPartition, int]:
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    return offsets_of_file(text.splitlines())


async def _delete(client: Client, options: argparse.Namespace) -> int:
    names = list(dict.fromkeys(options.groups))
    if not confirm(options, f"delete the committed offsets of the groups {', '.join(names)}"):
        return 1
    await client.admin.delete_consumer_groups(names)
    return 0


async def _delete_offsets(client: Client, options: argparse.Namespace) -> int:
    tps = await named_partitions(client, options.topics)
    if not confirm(options, f"delete {len(tps)} committed offsets of the group {options.group}"):
        return 1
    try:
        await client.admin.delete_consumer_group_offsets(options.group, tps)
    except AdminError as error:
        others = [each for each in error.errors.values() if not _is_missing(each)]
        if others:
            raise
    return 0


def _is_missing(error: Exception) -> bool:
    return isinstance(error, BrokerResponseError) and error.name == "UNKNOWN_TOPIC_OR_PARTITION"


async def _remove_members(client: Client, options: argparse.Namespace) -> int:
    what = ", ".join(options.members) or "all members"
    if not confirm(options, f"remove {what} from the group {options.group}"):
        return 1
    members = options.members or None
    removed = await client.admin.remove_members_from_consumer_group(options.group, members)
    rows = ({"instance": each.instance_id, "member": each.member_id} for each in removed)
    print_rows(options, ("instance", "member"), rows)
    return 0


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "describe": _describe,
    "lag": _lag,
    "watch": _watch,
    "reset": _reset,
    "delete": _delete,
    "delete-offsets": _delete_offsets,
    "remove-members": _remove_members,
}
