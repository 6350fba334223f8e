"""Writes numbers of things in texts for people."""

from __future__ import annotations

__all__ = ["counted", "were"]


def counted(number: int, noun: str, *, separator: str = "") -> str:
    """Returns a number and its noun, such as `1 record` and `2 records`.

    `separator` is written between thousands, such as ",".
    """
    return f"{number:{separator}} {noun}{'' if number == 1 else 's'}"


def were(number: int) -> str:
    """Returns the verb for a number of things: "was" or "were"."""
    return "was" if number == 1 else "were"
