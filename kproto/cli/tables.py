"""Prints tables and JSON on standard output."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from ..wire.counted import counted
from .text_width import cut, pad, split, width_of, wrap

__all__ = [
    "escaped",
    "named",
    "print_json",
    "print_table",
    "print_wrapped",
    "ranges_text",
    "table_lines",
]

#: Minimum width, in columns of the terminal, of the last cell of a row that is printed beside the
#: other cells. If less width is left, the last cell is printed below the other cells.
LEAST_LAST_COLUMN: Final = 30

#: Minimum width, in columns of the terminal, of a column whose cells are wrapped.
LEAST_COLUMN: Final = 8

_GAP: Final = "  "
_BELOW: Final = 10

#: The parts between which a cell may be wrapped: words, and the words of a CamelCase name.
_PIECE: Final = re.compile(r"(?:[A-Z]+(?![a-z])|[A-Z]?[^A-Z\s]+|[A-Z])\s*")


def named(names: Sequence[str], noun: str) -> str:
    """Returns a number, its noun and the names, such as `2 topics (a, b)`."""
    return f"{counted(len(names), noun)} ({escaped(', '.join(names))})"


def escaped(text: str) -> str:
    """Returns `text` with escapes, such as `\\x1b` and `\\n`, for what a terminal would act on.

    Any client chooses the ids of groups and clients; a newline in one must not begin a row, and an
    escape sequence must not reach the terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def print_json(data: object) -> None:
    """Prints `data` as indented JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_wrapped(text: str) -> None:
    """Prints a line; breaks it at the terminal's width if the output is a terminal."""
    width = terminal_width()
    for line in [text] if width is None else wrap(text, max(width, 2)):
        print(line)


def ranges_text(versions: Sequence[int]) -> str:
    """Returns `0-2, 5` for 0, 1, 2, 5."""
    parts: list[list[int]] = []
    for version in versions:
        if parts and parts[-1][-1] == version - 1:
            parts[-1].append(version)
        else:
            parts.append([version])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def terminal_width() -> int | None:
    """Returns the width of the terminal in columns; None if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> None:
    """Prints a table; breaks lines at the terminal's width if the output is a terminal."""
    for line in table_lines(header, rows, width=terminal_width(), indent=indent):
        print(line)


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    indent: str = "",
) -> Iterator[str]:
    """Yields the lines of a table, the header first, without columns that are empty in every row.

    Yields nothing if there is no row.

    If a line is longer than `width` characters, the last cell is wrapped. If the other cells leave
    fewer than LEAST_LAST_COLUMN characters for the last cell, the last cell is printed below the
    other cells. If the other cells are too wide too, the widest of them are wrapped inside their
    columns, so that every cell stays readable. A line that is still too long is cut with an
    ellipsis.
    """
    if not rows:
        return
    filled = [at for at in range(len(header)) if any(row[at] for row in rows)]
    shown_rows = [[row[at] for at in filled] for row in [header, *rows]]
    widths = [max(width_of(row[at]) for row in shown_rows) for at in range(len(filled))]
    before = len(indent) + sum(size + len(_GAP) for size in widths[:-1])
    for row in shown_rows:
        cells = [pad(cell, size) for cell, size in zip(row, widths, strict=True)]
        line = (indent + _GAP.join(cells)).rstrip()
        if width is None or width_of(line) <= width:
            yield line
        elif width - before >= LEAST_LAST_COLUMN:
            first, *others = wrap(row[-1], width - before)
            yield indent + _GAP.join([*cells[:-1], first])
            yield from (" " * before + other for other in others)
        else:
            yield from _stacked(row, _narrowed(widths[:-1], width - len(indent)), width, indent)


def _stacked(row: Sequence[str], widths: Sequence[int], width: int, indent: str) -> Iterator[str]:
    """Yields a row whose last cell is below the other cells; `widths` are those of the others."""
    columns = [_wrapped(cell, size) for cell, size in zip(row[:-1], widths, strict=True)]
    for cells in zip_longest(*columns, fillvalue=""):
        padded = [pad(cell, size) for cell, size in zip(cells, widths, strict=True)]
        yield cut((indent + _GAP.join(padded)).rstrip(), width)
    below = " " * min(_BELOW, width // 4)
    yield from wrap(row[-1], max(width, 2), below)


def _narrowed(widths: Sequence[int], width: int) -> list[int]:
    """Returns the widths of columns in `width` characters: the widest columns become narrower.

    No column becomes narrower than LEAST_COLUMN.
    """
    narrowed = list(widths)
    while narrowed and sum(narrowed) + len(_GAP) * (len(narrowed) - 1) > width:
        widest = max(range(len(narrowed)), key=narrowed.__getitem__)
        if narrowed[widest] <= LEAST_COLUMN:
            break
        narrowed[widest] -= 1
    return narrowed


def _wrapped(cell: str, width: int) -> list[str]:
    """Returns the lines of a cell; breaks names before capital letters if possible.

    Every line has the indentation of the cell.
    """
    if width_of(cell) <= width:
        return [cell]
    margin = cell[: min(len(cell) - len(cell.lstrip()), width // 2)]
    lines = [""]
    for piece in _PIECE.findall(cell.lstrip()):
        rest = piece
        while len(margin) + width_of(lines[-1]) + width_of(rest.rstrip()) > width:
            room = 0 if lines[-1] else width - len(margin)
            if room:  # a piece that is longer than a line
                lines[-1], rest = split(rest, room)
            lines.append("")
        lines[-1] += rest
    return [margin + line.rstrip() for line in lines if line.strip()]
