"""`PollStatus`: whether a consumer polls, is closed or has failed, and what a poll raises next."""

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

    `fault` is raised by a poll once, at `raised_at` at the latest, in seconds of the clock;
    `failure`, which ended the member, by each poll.
    """

    __slots__ = ("failure", "fault", "is_closed", "is_polling", "raised_at")

    def __init__(self) -> None:
        self.is_polling = False  # a poll waits for records
        self.is_closed = False
        self.fault: Exception | None = None
        self.raised_at = _NEVER
        self.failure: KprotoError | None = None

    def delay(self, fault: Exception, raised_at: float) -> None:
        """Has a poll raise `fault` behind the records that came before it, if it is the first."""
        if self.fault is None:
            self.fault = fault
            self.raised_at = raised_at

    def report(self, fault: Exception) -> None:
        """Has the next poll raise `fault`; logs it if another one is raised first."""
        if self.fault is None:
            self.delay(fault, _LONG_AGO)
        else:
            logger.warning("nobody was told: %s", fault)

    def take_fault(self) -> Exception | None:
        """Removes and returns the fault."""
        fault, self.fault = self.fault, None
        return fault
