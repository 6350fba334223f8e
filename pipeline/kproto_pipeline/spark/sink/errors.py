"""The error for a row that cannot be written."""

from __future__ import annotations

from kproto.wire.errors import KprotoError

__all__ = ["RowError"]


class RowError(KprotoError):
    """A row cannot be written, or was not acknowledged; the message names the row and the cause."""
