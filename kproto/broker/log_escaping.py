"""Makes text of clients safe for one line of the log, and checks that UTF-8 can encode it."""

from __future__ import annotations

__all__ = ["is_encodable", "log_safe"]


def is_encodable(text: str) -> bool:
    """Returns whether UTF-8 can encode the text: it has no lone surrogate."""
    return not any("\ud800" <= each <= "\udfff" for each in text)


def log_safe(value: object) -> str:
    r"""Returns `value` as text in one line: characters that are not printable are escaped, as `\n`.

    Client ids and the names of users and certificates may be any UTF-8. Without escapes, a client
    could forge lines of the log or steer the terminal that shows it.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
