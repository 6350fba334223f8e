"""How long to wait before a retry."""

from __future__ import annotations

import random

from .settings import ClientSettings

__all__ = ["backoff_ms", "backoff_s"]

#: Shares of the wait that chance adds or takes away, so that clients do not retry in step.
JITTER = 0.2


def backoff_ms(settings: ClientSettings, attempt: int, chance: float) -> float:
    """The wait in ms before retry number `attempt`, which counts from 1.

    Doubles from `retry_backoff_ms` up to `retry_backoff_max_ms`; `chance` is a random number of
    at least 0 and below 1 (KIP-580).
    """
    wait = settings.retry_backoff_ms * 2.0 ** min(attempt - 1, 30)
    return float(min(wait, settings.retry_backoff_max_ms) * (1 + JITTER * (2 * chance - 1)))


def backoff_s(settings: ClientSettings, attempt: int) -> float:
    """The wait as `asyncio.sleep` takes it, in seconds, with a chance drawn."""
    return backoff_ms(settings, attempt, random.random()) / 1000  # noqa: S311 - jitter, no secret
