"""Reads the file of `kproto groups reset --from-file`: plain functions on plain data."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ...client import TopicPartition
from ...wire.counted import counted, were
from ..command_error import CommandError

__all__ = ["FileOffsets", "offsets_of_file"]

#: The columns of the offset to commit. The first that a file has is read, and no other; files of
#: `lag` have `committed` for groups of consumers, `start_offset` for share groups, or both.
_OFFSET_COLUMNS: Final = (("new",), ("offset",), ("committed", "start_offset"))

_WHERE: Final = ("group", "topic", "partition")

#: The columns that `kproto groups lag` and `reset` print besides.
_OTHER_COLUMNS: Final = ("log_end", "lag", "client", "host", "member")

_KNOWN: Final = (*_WHERE, *(name for names in _OFFSET_COLUMNS for name in names), *_OTHER_COLUMNS)

#: The columns of lines without a header, by their number, as Kafka's script exports them.
_WITHOUT_HEADER: Final = {
    3: ("topic", "partition", "offset"),
    4: ("group", "topic", "partition", "offset"),
}

#: Maximum number of groups or partitions that a note names.
_MAX_NAMES: Final = 5


class FileOffsets(NamedTuple):
    """The offsets of a file for one group; `notes` says which of its rows are not applied."""

    offsets: dict[TopicPartition, int]
    notes: list[str]


class _Row(NamedTuple):
    """A row of the file, with its line from 1."""

    line: int
    cells: Mapping[str, str]
    has_header: bool


def offsets_of_file(lines: Iterable[str], group: str) -> FileOffsets:
    """Returns the offsets that a file has for `group`.

    The lines are `topic,partition,offset` or `group,topic,partition,offset`; or CSV with a header
    or JSON objects, as `kproto groups lag` and `reset` print them. Of their columns, `new` is the
    offset, else `offset`, else `committed` or `start_offset`. Rows of other groups and rows with a
    header and without an offset are not applied. Raises CommandError for any other line, for an
    unknown column, for a partition that is there twice, and if no row has an offset of the group.
    """
    found: dict[TopicPartition, int] = {}
    line_of: dict[TopicPartition, int] = {}
    without: list[str] = []
    others: dict[str, int] = {}
    rows = 0
    for row in _rows(list(lines)):
        rows += 1
        its_group = row.cells.get("group", group)
        if its_group != group:
            others[its_group] = others.get(its_group, 0) + 1
            continue
        tp, offset = _offset_of(row)
        if tp in line_of:
            raise CommandError(
                f"lines {line_of[tp]} and {row.line} of the file are both for {tp[0]}:{tp[1]}: "
                "leave one"
            )
        line_of[tp] = row.line
        if offset is None:
            without.append(f"{tp[0]}:{tp[1]}")
        else:
            found[tp] = offset
    if rows and not line_of:
        raise CommandError(
            f"the file has no row of the group {group}, only rows of {_some(others)}"
        )
    if not found:
        raise CommandError("the file has no offsets: write lines of topic,partition,offset")
    notes = []
    if others:
        count = sum(others.values())
        notes.append(f"{counted(count, 'row')} of {_some(others)} {were(count)} not applied")
    if without:
        count = len(without)
        rows_text = counted(count, "row")
        notes.append(f"{rows_text} without an offset {were(count)} not applied: {_some(without)}")
    return FileOffsets(found, notes)


def _some(names: Iterable[str]) -> str:
    """Returns the first names, and the number of the others."""
    every = list(names)
    shown = ", ".join(every[:_MAX_NAMES])
    return shown if len(every) <= _MAX_NAMES else f"{shown} and {len(every) - _MAX_NAMES} more"


def _rows(lines: list[str]) -> Iterator[_Row]:
    first = next((line for line in lines if line.strip()), "")
    return _json_rows(lines) if first.lstrip().startswith("{") else _csv_rows(lines)


def _json_rows(lines: list[str]) -> Iterator[_Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries = json.loads(line)
        except ValueError as error:
            raise CommandError(f"line {number} of the file is no JSON: {error}") from None
        if not isinstance(entries, dict):
            raise _invalid(number, line)
        _check_columns(entries)
        yield _Row(number, {name: _text(value) for name, value in entries.items()}, True)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _csv_rows(lines: list[str]) -> Iterator[_Row]:
    columns: tuple[str, ...] = ()
    is_begun = has_header = False
    reader = csv.reader(lines, strict=True)
    try:
        for row in reader:
            if not row:
                continue
            if not is_begun:
                is_begun = True
                has_header = "topic" in row and "partition" in row
                if has_header:
                    columns = tuple(row)
                    _check_columns(columns)
                    continue
                columns = _WITHOUT_HEADER.get(len(row), ())
            if len(row) != len(columns):
                raise _invalid(reader.line_num, ",".join(row), columns if has_header else None)
            cells = dict(zip(columns, row, strict=True))
            yield _Row(reader.line_num, cells, has_header)
    except csv.Error as error:
        raise CommandError(f"line {reader.line_num} of the file is no CSV: {error}") from None


def _check_columns(columns: Iterable[str]) -> None:
    """Raises CommandError for a column that no output of `kproto groups` has, and for a double."""
    seen: set[str] = set()
    for name in columns:
        if name not in _KNOWN:
            raise CommandError(
                f"the file has the unknown column {name!r:.80}; known: {', '.join(_KNOWN)}"
            )
        if name in seen:
            raise CommandError(f"the file has the column {name} twice")
        seen.add(name)


def _offset_of(row: _Row) -> tuple[TopicPartition, int | None]:
    """Returns the partition of a row and its offset, None if the row has a header and no offset."""
    cells = row.cells
    names = next((some for some in _OFFSET_COLUMNS if any(each in cells for each in some)), ())
    text = next(filter(None, (cells.get(name) for name in names)), "")
    try:
        tp = cells["topic"], _number(cells["partition"])
        if not text and names and row.has_header:
            return tp, None
        return tp, _number(text)
    except (KeyError, ValueError):
        raise _invalid(row.line, ",".join(cells.values())) from None


def _number(text: str) -> int:
    """Returns a partition or an offset. Raises ValueError for other text and negative numbers."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _invalid(number: int, text: str, columns: Iterable[str] | None = None) -> CommandError:
    wanted = "topic,partition,offset" if columns is None else f"of the columns {','.join(columns)}"
    return CommandError(f"line {number} of the file is {text!r:.80}, not {wanted}")
