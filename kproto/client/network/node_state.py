"""Tracks how connecting to a broker went, and when to try again (KIP-144, KIP-580, KIP-601).

Plain data: knows no connection and no loop. All times are in seconds of the client's clock.
"""

from __future__ import annotations

from typing import Final

from ...wire.errors import KprotoError, RequestTimeoutError
from ..core.retry import doubled_ms
from ..settings import ClientSettings

__all__ = ["NodeState"]

_LONG_AGO: Final = float("-inf")


class NodeState:
    """Failures in a row of opening connections to one broker.

    Nobody tries before `not_before`. `failed_ip` is the address that failed last: the next attempt
    begins with the one behind it. `error` is what the last attempt ended with. `throttled_ms` is
    how long the broker has had this client wait by its quotas, on all connections together.
    """

    __slots__ = (
        "_settings",
        "error",
        "failed_ip",
        "failures",
        "not_before",
        "throttled_ms",
        "timeouts",
    )

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self.failures = 0
        self.timeouts = 0
        self.not_before = _LONG_AGO
        self.failed_ip: str | None = None
        self.error: KprotoError | None = None
        self.throttled_ms = 0

    @property
    def connect_timeout_ms(self) -> int:
        """Returns the limit of the next attempt in ms: doubles after each attempt that timed out
        (KIP-601).
        """
        least = self._settings.connect_timeout_ms
        most = max(least, self._settings.connect_timeout_max_ms)
        return round(min(least * 2.0 ** min(self.timeouts, 30), most))

    def failed(self, error: KprotoError, now: float, chance: float, ip: str | None = None) -> None:
        """Notes an attempt that failed at `now`; `chance` is a random number, 0 <= chance < 1."""
        self.failures += 1
        self.timeouts = self.timeouts + 1 if isinstance(error, RequestTimeoutError) else 0
        self.error = error
        self.failed_ip = ip
        settings = self._settings
        wait_ms = doubled_ms(
            settings.reconnect_backoff_ms,
            settings.reconnect_backoff_max_ms,
            self.failures,
            chance,
        )
        self.not_before = now + wait_ms / 1000

    def succeeded(self) -> None:
        """Forgets the failures before a success."""
        self.failures = self.timeouts = 0
        self.error = None
        self.failed_ip = None
        self.not_before = _LONG_AGO
