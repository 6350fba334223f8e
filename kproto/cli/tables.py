"""Prints tables and JSON on standard output."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["print_json", "print_table", "table_lines"]

#: Minimum width, in characters, of the last cell of a row that is printed beside the other cells.
#: If less width is left, the last cell is printed below the other cells.
LEAST_LAST_COLUMN: Final = 30

_GAP: Final = "  "
_BELOW: Final = 10


def print_json(data: object) -> None:
    """Prints `data` as indented JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> None:
    """Prints a table; breaks lines at the terminal's width if the output is a terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in table_lines(header, rows, width=width, indent=indent):
        print(line)


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    indent: str = "",
) -> Iterator[str]:
    """Yields the lines of a table, the header first, without columns that are empty in every row.

    If a line is longer than `width` characters, the last cell is wrapped. If the other cells leave
    fewer than LEAST_LAST_COLUMN characters for the last cell, the last cell is printed below the
    other cells, whose line is cut at `width` with an ellipsis.
    """
    filled = [at for at in range(len(header)) if any(row[at] for row in rows)]
    shown_rows = [[row[at] for at in filled] for row in [header, *rows]]
    widths = [max(len(row[at]) for row in shown_rows) for at in range(len(filled))]
    before = len(indent) + sum(size + len(_GAP) for size in widths[:-1])
    for row in shown_rows:
        cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
        line = (indent + _GAP.join(cells)).rstrip()
        if width is None or len(line) <= width:
            yield line
        elif width - before >= LEAST_LAST_COLUMN:
            first, *others = textwrap.wrap(row[-1], width - before)
            yield indent + _GAP.join([*cells[:-1], first])
            yield from (" " * before + other for other in others)
        else:
            yield _cut((indent + _GAP.join(cells[:-1])).rstrip(), width)
            below = " " * min(_BELOW, width // 4)
            yield from textwrap.wrap(
                row[-1], max(width, 2), initial_indent=below, subsequent_indent=below
            )


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
