"""Writes tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["code", "table"]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; a bar or a line break within a cell is escaped."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Returns the text as code, nothing for none."""
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
