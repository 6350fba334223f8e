"""Tables and JSON on standard output, for the commands that print what they found."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence

__all__ = ["print_json", "print_table", "table_lines"]

_GAP = "  "
_CUT = "…"


def print_json(data: object) -> None:
    """Print plain data, indented."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> None:
    """Print a table; on a terminal its lines are cut where that ends, elsewhere they are whole."""
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
    """The lines of a table, the header first; columns that are empty in every row are left out.

    The last column has no width of its own. Lines longer than `width` end with an ellipsis.
    """
    filled = [at for at in range(len(header)) if any(row[at] for row in rows)]
    kept = [[row[at] for at in filled] for row in [header, *rows]]
    widths = [max(len(row[at]) for row in kept) for at in range(len(filled))]
    for row in kept:
        cells = (cell.ljust(size) for cell, size in zip(row, widths, strict=True))
        line = (indent + _GAP.join(cells)).rstrip()
        cut = width is not None and len(line) > width
        yield line[: (width or 1) - 1] + _CUT if cut else line
