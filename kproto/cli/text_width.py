"""Measures, wraps and cuts text by its width in columns of a terminal.

A wide character, such as a Chinese one, takes two columns (East Asian width W or F); a combining
mark takes none. Python's `len`, `ljust` and `textwrap` count characters.
"""

from __future__ import annotations

import textwrap
import unicodedata

__all__ = ["cut", "pad", "split", "width_of", "wrap"]


def width_of(text: str) -> int:
    """Returns the width of a printable text in columns."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int) -> str:
    """Returns the text with spaces up to `width` columns."""
    return text + " " * (width - width_of(text))


def cut(text: str, width: int) -> str:
    """Returns the text; if it is wider than `width` columns, cuts it and adds an ellipsis."""
    return f"{split(text, width - 1)[0]}…" if split(text, width)[1] else text


def split(text: str, width: int) -> tuple[str, str]:
    """Returns the longest start of the text that has at most `width` columns, and the rest.

    The combining marks of a character stay with it.
    """
    if text.isascii():
        return text[:width], text[width:]
    left = width
    for at, character in enumerate(text):
        left -= _columns(character)
        if left < 0:
            return text[:at], text[at:]
    return text, ""


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Returns the lines of the text, each of at most `width` columns with its `indent`.

    A line has at least one character, even if the character is wider.
    """
    if text.isascii():
        return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)
    room = max(width - len(indent), 1)
    lines: list[str] = []
    for word in text.split():
        if lines and width_of(lines[-1]) + 1 + width_of(word) <= room:
            lines[-1] += f" {word}"
            continue
        rest = word
        while rest:
            line, rest = split(rest, max(room, _columns(rest[0])))
            lines.append(line)
    return [indent + line for line in lines]
