"""Escapes text from clients for the log, and checks that UTF-8 can encode text."""

from __future__ import annotations

__all__ = ["is_encodable", "log_safe"]


def is_encodable(text: str) -> bool:
    """Returns True if UTF-8 can encode `text`; False if `text` contains a lone surrogate."""
    return not any("\ud800" <= each <= "\udfff" for each in text)


def log_safe(value: object) -> str:
    r"""Returns `value` as text, with escapes such as `\n` for characters that are not printable.

    Client ids, user names and certificate subjects may contain any character. Without escapes, a
    client could forge lines of the log, or control the terminal that shows the log.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
