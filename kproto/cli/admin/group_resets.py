"""Computes the new offsets of `kproto groups reset`: plain functions on plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...client import TopicPartition
from ..command_error import CommandError

__all__ = ["Bounds", "ResetRow", "moved_notes", "reset_rows", "shifted"]


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

    `wanted` has the new offset of each partition.
    """
    rows = []
    for tp in sorted(wanted):
        its = bounds[tp]
        new = min(max(wanted[tp], its.log_start), its.log_end)
        rows.append(ResetRow(*tp, its.committed, new, its.log_end))
    return rows


def moved_notes(
    bounds: Mapping[TopicPartition, Bounds], wanted: Mapping[TopicPartition, int]
) -> list[str]:
    """Returns words for each wanted offset outside the log, which `reset_rows` moves."""
    notes = []
    for tp, offset in sorted(wanted.items()):
        its = bounds[tp]
        bound = f"beyond the log end {its.log_end}"
        if offset < its.log_start:
            bound = f"before the log start {its.log_start}"
        elif offset <= its.log_end:
            continue
        notes.append(f"{tp[0]}:{tp[1]}: offset {offset} is {bound}, which is the new offset")
    return notes


def shifted(bounds: Mapping[TopicPartition, Bounds], by: int) -> dict[TopicPartition, int]:
    """Returns the committed offsets moved by `by`, which may be outside the log.

    Raises CommandError for a partition without a committed offset.
    """
    missing = [f"{tp[0]}:{tp[1]}" for tp, its in bounds.items() if its.committed is None]
    if missing:
        raise CommandError(
            f"--shift needs committed offsets, and the group has none for {', '.join(missing)}"
        )
    return {tp: (its.committed or 0) + by for tp, its in bounds.items()}
