"""What clients say of themselves, fit to be sent, and for one line of the log."""

from __future__ import annotations

__all__ = ["is_encodable", "log_safe"]


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can carry it: no half of a surrogate pair stands alone."""
    return not any("\ud800" <= each <= "\udfff" for each in text)


def log_safe(value: object) -> str:
    r"""`value` as text; what would end the line or steer a terminal is escaped, as `\n`.

    Client ids, names of users and of certificates are anything that can be written in UTF-8;
    without this a client could write lines of its own into the log.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
