"""Replaces generated parts of a page, between two marks; the rest of the page is handwritten."""

from __future__ import annotations

from pathlib import Path

__all__ = ["with_part", "write_part"]


def with_part(page: str, name: str, text: str) -> str:
    """Returns the page with `text` between the marks of part `name`.

    Raises ValueError if the page lacks the part.
    """
    begin, end = f"<!-- {name}: written by its command -->\n", f"<!-- {name}: up to here -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page has no part {name!r}: write {begin!r} and {end!r} into it")
    return f"{before}{begin}{text.strip()}\n{end}{after}"


def write_part(path: Path, name: str, text: str) -> None:
    """Replaces part `name` of the page at `path`. Raises ValueError or OSError."""
    page = path.read_text(encoding="utf-8")
    path.write_text(with_part(page, name, text), encoding="utf-8")
