"""`PollStatus`: whether a consumer polls, is closed or has failed, and the errors of its polls."""

from __future__ import annotations

import logging
from typing import Final

from ...wire.errors import KprotoError

__all__ = ["PollStatus"]

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class PollStatus:
    """Holds data that the poll loop shares with the rebalance listener, auto-commit and `run`.

    A poll raises `pending_error` once, at `raise_by` (seconds of the clock) at the latest. Every
    poll raises `fatal_error`, the error that ended the member.
    """

    __slots__ = ("fatal_error", "is_closed", "is_polling", "pending_error", "raise_by")

    def __init__(self) -> None:
        self.is_polling = False  # a poll waits for records
        self.is_closed = False
        self.pending_error: Exception | None = None
        self.raise_by = _NEVER
        self.fatal_error: KprotoError | None = None

    def defer_error(self, error: Exception, raise_by: float) -> None:
        """Makes a poll raise `error` by `raise_by`; does nothing if another error is pending."""
        if self.pending_error is None:
            self.pending_error = error
            self.raise_by = raise_by

    def report_error(self, error: Exception) -> None:
        """Makes the next poll raise `error`; only logs `error` if another error is pending."""
        if self.pending_error is None:
            self.defer_error(error, _LONG_AGO)
        else:
            logger.warning("not raised: %s", error)

    def take_pending_error(self) -> Exception | None:
        """Removes and returns the pending error; returns None if there is none."""
        error, self.pending_error = self.pending_error, None
        return error
