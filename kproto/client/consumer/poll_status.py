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
    """Plain data that the poll loop shares with listeners, auto-commit and the processor.

    One poll raises `fault`, at `raised_at` at the latest, in seconds of the clock. Each poll raises
    `failure`, the error that ended the member.
    """

    __slots__ = ("failure", "fault", "is_closed", "is_polling", "raised_at")

    def __init__(self) -> None:
        self.is_polling = False  # a poll waits for records
        self.is_closed = False
        self.fault: Exception | None = None
        self.raised_at = _NEVER
        self.failure: KprotoError | None = None

    def delay(self, fault: Exception, raised_at: float) -> None:
        """Makes a poll raise `fault` after the records before it, unless another fault waits."""
        if self.fault is None:
            self.fault = fault
            self.raised_at = raised_at

    def report(self, fault: Exception) -> None:
        """Makes the next poll raise `fault`; logs it if another fault waits."""
        if self.fault is None:
            self.delay(fault, _LONG_AGO)
        else:
            logger.warning("not raised: %s", fault)

    def take_fault(self) -> Exception | None:
        """Removes and returns the fault."""
        fault, self.fault = self.fault, None
        return fault
