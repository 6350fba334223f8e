"""The errors for rows that cannot be written."""

from __future__ import annotations

from kproto.wire.errors import KprotoError

__all__ = ["ExactlyOnceError", "RowError"]


class RowError(KprotoError):
    """A row cannot be written, or was not acknowledged; the message names the row and the cause."""


class ExactlyOnceError(KprotoError):
    """A micro-batch cannot be written exactly once; the message has the cause and a remedy."""
