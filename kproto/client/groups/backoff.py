"""Tracks consecutive failures of a member's requests, and the backoff after them. Does no I/O."""

from __future__ import annotations

import random

from ..core.retry import backoff_ms
from ..settings import ClientSettings

__all__ = ["Backoff"]


class Backoff:
    """Counts the consecutive failures of one request, and has the time of its next attempt.

    `not_before` is the time of the next attempt, in seconds of the client's clock; -infinity if
    `count` is 0. Unlike `retry.Attempts`, a backoff has no deadline: a member retries as long as
    its consumer is open.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self.count = 0
        self.not_before = float("-inf")

    def failed(self, now: float, *, at_once: bool = False) -> None:
        """Counts a failure and starts a backoff; with `at_once` the first retry has no backoff."""
        self.count += 1
        self.not_before = now
        if self.count > 1 or not at_once:
            chance = random.random()  # noqa: S311 - jitter, no secret
            self.not_before += backoff_ms(self._settings, self.count, chance) / 1000

    def succeeded(self) -> None:
        """Resets the number of failures, and ends the backoff."""
        self.count = 0
        self.not_before = float("-inf")
