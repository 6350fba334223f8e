"""What is wrong with a row, or with writing it."""

from __future__ import annotations

from kproto.wire.errors import KprotoError

__all__ = ["RowError"]


class RowError(KprotoError):
    """A row that cannot be written, or was not acknowledged; the message says which, and why."""
