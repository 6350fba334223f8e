"""When a member asks again: failures in a row, and the moment before which it waits. Plain data."""

from __future__ import annotations

import random

from ..core.retry import backoff_ms
from ..settings import ClientSettings

__all__ = ["Backoff"]


class Backoff:
    """Failures of one kind of request. `not_before` is in seconds of the client's clock.

    It has no deadline, in contrast to `retry.Attempts`: a member is one for as long as its user
    wants.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self.count = 0
        self.not_before = float("-inf")

    def failed(self, now: float, *, at_once: bool = False) -> None:
        """Wait, but for a first failure that another try `at_once` mends."""
        self.count += 1
        self.not_before = now
        if self.count > 1 or not at_once:
            chance = random.random()  # noqa: S311 - jitter, no secret
            self.not_before += backoff_ms(self._settings, self.count, chance) / 1000

    def succeeded(self) -> None:
        """Begin anew."""
        self.count = 0
        self.not_before = float("-inf")
