"""Computes the new offsets of `kproto groups reset`: plain functions on plain data."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...client import TopicPartition
from ..command_error import CommandError

__all__ = ["Bounds", "ResetRow", "offsets_of_file", "reset_rows", "shifted"]


#: The columns that may have the offset of a row.
_OFFSET_COLUMNS: Final = ("offset", "committed", "start_offset")


class Bounds(NamedTuple):
    """The offsets of a partition: committed (None if there is none), log start and log end."""

    committed: int | None
    log_start: int
    log_end: int


class ResetRow(NamedTuple):
    """The offset that a group has committed for a partition, and the new one."""

    topic: str
    partition: int
    committed: int | None
    new: int
    log_end: int


def reset_rows(
    bounds: Mapping[TopicPartition, Bounds], wanted: Mapping[TopicPartition, int]
) -> list[ResetRow]:
    """Returns a row for each partition, sorted; an offset outside the log is moved to its bound.

    `wanted` has the new offset of each partition; -1 stands for the log end.
    """
    rows = []
    for tp in sorted(wanted):
        its = bounds[tp]
        to = its.log_end if wanted[tp] < 0 else wanted[tp]
        new = min(max(to, its.log_start), its.log_end)
        rows.append(ResetRow(*tp, its.committed, new, its.log_end))
    return rows


def shifted(bounds: Mapping[TopicPartition, Bounds], by: int) -> dict[TopicPartition, int]:
    """Returns the committed offsets moved by `by`, at least 0.

    Raises CommandError for a partition without a committed offset.
    """
    missing = [f"{tp[0]}:{tp[1]}" for tp, its in bounds.items() if its.committed is None]
    if missing:
        raise CommandError(
            f"--shift needs committed offsets, and the group has none for {', '.join(missing)}"
        )
    return {tp: max((its.committed or 0) + by, 0) for tp, its in bounds.items()}


def offsets_of_file(lines: Iterable[str]) -> dict[TopicPartition, int]:
    """Returns the offsets in lines of `topic,partition,offset`.

    A header names the columns, as of `kproto groups lag --csv`: then `topic`, `partition` and
    `committed` (or `start_offset`, or `offset`) are read, and rows without an offset are left out.
    Raises CommandError for other lines.
    """
    rows = [row for row in csv.reader(lines) if row]
    columns = ["topic", "partition", "offset"]
    first = 1
    if rows and "topic" in rows[0] and "partition" in rows[0]:
        columns = rows.pop(0)
        first = 2
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(rows, first):
        cells = dict(zip(columns, row, strict=False))
        offset = next(filter(None, map(cells.get, _OFFSET_COLUMNS)), "")
        if not offset and len(row) == len(columns):
            continue
        try:
            found[cells["topic"], int(cells["partition"])] = int(offset)
        except (KeyError, ValueError):
            raise CommandError(
                f"line {number} of the file is {','.join(row)!r:.80}, not topic,partition,offset"
            ) from None
    if not found:
        raise CommandError("the file has no offsets: write lines of topic,partition,offset")
    return found
