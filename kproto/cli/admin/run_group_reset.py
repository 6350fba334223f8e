"""Runs `kproto groups reset`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...client import Client, TopicPartition
from ...client.admin import AdminError
from ...wire.counted import counted, were
from ...wire.errors import ConfigurationError
from ..command_error import CommandError
from ..tables import escaped
from ..times import moment_of
from .confirming import confirm
from .group_resets import Bounds, moved_notes, reset_rows, shifted
from .group_types import SHARE, STREAMS, type_of_group
from .offset_files import FileOffsets, offsets_of_file
from .rows import print_rows
from .run_topics import named_partitions

__all__ = ["reset"]


async def reset(client: Client, options: argparse.Namespace) -> int:
    """Prints the new offsets, asks, and commits them; returns the exit code.

    For a share group, they are its start offsets.
    """
    if options.to_offset is not None and options.to_offset < 0:
        raise ConfigurationError("--to-offset must not be negative; --to-latest is the log end")
    of_file: FileOffsets | None = None
    if options.from_file is not None:
        of_file = _of_file(options.from_file, options.group)
    kind = await type_of_group(client, options.group)
    await _check_no_members(client, options.group, kind)
    bounds = await _bounds(client, options, kind, of_file)
    wanted = await _wanted(client, options, bounds, of_file)
    notes = [] if of_file is None else [*of_file.notes, *_unnamed(of_file, wanted)]
    for note in [*notes, *moved_notes(bounds, wanted)]:
        print(f"kproto: {escaped(note)}", file=sys.stderr)
    rows = reset_rows(bounds, wanted)
    name = "start_offset" if kind == SHARE else "committed"
    columns = ("topic", "partition", name, "new", "log_end")
    print_rows(options, columns, [dict(zip(columns, row, strict=True)) for row in rows])
    if options.dry_run:
        return 0
    what = f"{counted(len(rows), 'offset')} for the group {options.group}"
    if not confirm(options, f"set {what}" if kind == SHARE else f"commit {what}"):
        return 1
    new = {(row.topic, row.partition): row.new for row in rows}
    if kind == SHARE:
        await client.admin.alter_share_group_offsets(options.group, new)
    else:
        await client.admin.alter_consumer_group_offsets(options.group, new)
    return 0


async def _check_no_members(client: Client, group: str, kind: str) -> None:
    """Raises CommandError if the group has members; the coordinator would refuse the offsets."""
    described: Mapping[str, Any]
    try:
        if kind == SHARE:
            described = await client.admin.describe_share_groups([group])
        elif kind == STREAMS:
            described = await client.admin.describe_streams_groups([group])
        else:
            described = await client.admin.describe_consumer_groups([group])
    except AdminError:  # a new group, or a group of another kind, which the commit refuses
        return
    members = described[group].members
    if members:
        names = sorted({each.client_id for each in members})
        raise CommandError(
            f"the group {group} has {counted(len(members), 'member')} ({', '.join(names)}): stop "
            f"{'it' if len(members) == 1 else 'them'} first, because the offsets of a group with "
            "members cannot be changed"
        )


async def _bounds(
    client: Client, options: argparse.Namespace, kind: str, of_file: FileOffsets | None
) -> dict[TopicPartition, Bounds]:
    """Returns the offsets of the partitions to reset. Raises CommandError if none is left."""
    group: str = options.group
    tps: Iterable[TopicPartition] | None = None
    if options.topics:
        tps = await named_partitions(client, options.topics)
    elif of_file is not None:
        tps = of_file.offsets
    if kind == SHARE:
        return await _share_bounds(client, group, tps)
    if tps is None:
        committed = await client.admin.list_consumer_group_offsets({group: None})
        tps = committed[group]
        if not tps:
            raise CommandError(
                f"the group {group} has no committed offsets; name the topics (--topic)"
            )
    lags = await client.admin.consumer_group_lag(group, tps)
    return {
        tp: Bounds(lag.committed and lag.committed.offset, lag.log_start, lag.log_end)
        for tp, lag in lags.items()
    }


async def _share_bounds(
    client: Client, group: str, tps: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Bounds]:
    listed = (await client.admin.list_share_group_offsets({group: None}))[group]
    wanted = list(listed if tps is None else tps)
    if not wanted:
        raise CommandError(f"the group {group} has no start offsets; name the topics (--topic)")
    starts = await client.list_offsets(dict.fromkeys(wanted, "earliest"))
    ends = await client.list_offsets(dict.fromkeys(wanted, "latest"))
    bounds = {}
    for tp in wanted:
        known = listed.get(tp)
        bounds[tp] = Bounds(None if known is None else known.start_offset, starts[tp], ends[tp])
    return bounds


async def _wanted(
    client: Client,
    options: argparse.Namespace,
    bounds: dict[TopicPartition, Bounds],
    of_file: FileOffsets | None,
) -> dict[TopicPartition, int]:
    if options.to_earliest:
        return {tp: its.log_start for tp, its in bounds.items()}
    if options.to_latest:
        return {tp: its.log_end for tp, its in bounds.items()}
    if options.to_current:
        return {
            tp: its.log_end if its.committed is None else its.committed
            for tp, its in bounds.items()
        }
    if options.to_offset is not None:
        return {tp: int(options.to_offset) for tp in bounds}
    if options.shift is not None:
        return shifted(bounds, options.shift)
    if of_file is not None:
        found = {tp: offset for tp, offset in of_file.offsets.items() if tp in bounds}
        if not found:
            raise CommandError(
                f"{options.from_file} has no partition of {', '.join(options.topics)}"
            )
        return found
    moment = moment_of("--to-time", options.to_time)
    listed = await client.admin.list_offsets(dict.fromkeys(bounds, moment))
    # Without a record of the time or later, brokers answer -1.
    return {
        tp: bounds[tp].log_end if each.offset < 0 else each.offset for tp, each in listed.items()
    }


def _unnamed(of_file: FileOffsets, wanted: Mapping[TopicPartition, int]) -> list[str]:
    """Returns a note about the rows of partitions that `--topic` does not name."""
    left = [f"{tp[0]}:{tp[1]}" for tp in of_file.offsets if tp not in wanted]
    count = len(left)
    if not left:
        return []
    return [
        (
            f"{counted(count, 'row')} of partitions that --topic does not name {were(count)} not "
            "applied"
        )
    ]


def _of_file(path: str, group: str) -> FileOffsets:
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    return offsets_of_file(text.split("\n"), group)  # ids may have other line separators
