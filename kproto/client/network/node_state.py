"""Tracks connection failures of a broker, and its reconnect backoff (KIP-144, KIP-580, KIP-601).

Plain data, without connections or event loop. All times are in seconds of the client's clock.
"""

from __future__ import annotations

from typing import Final

from ...wire.errors import KprotoError, RequestTimeoutError
from ..core.retry import exponential_backoff_ms
from ..settings import ClientSettings

__all__ = ["NodeState"]

_LONG_AGO: Final = float("-inf")


class NodeState:
    """The consecutive failures of connections to one broker.

    Counts failed attempts to connect, and connections that were lost with requests in flight. The
    next attempt starts at `not_before` or later. `failed_ip` is the IP address that failed last:
    the next attempt starts with the address after it. `error` is the error of the last attempt.
    `throttled_ms` is the sum of all throttle times of the broker, on all connections.
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
        """The timeout of the next attempt in ms (KIP-601).

        It doubles with each consecutive timeout, up to `connect_timeout_max_ms`.
        """
        least = self._settings.connect_timeout_ms
        most = max(least, self._settings.connect_timeout_max_ms)
        return round(min(least * 2.0 ** min(self.timeouts, 30), most))

    def failed(self, error: KprotoError, now: float, chance: float, ip: str | None = None) -> None:
        """Counts a failed attempt to connect, or a lost connection; the backoff starts at `now`.

        `chance` is a random number for the backoff, 0 <= chance < 1. `ip` is the IP address that
        failed, if known.
        """
        self.failures += 1
        self.timeouts = self.timeouts + 1 if isinstance(error, RequestTimeoutError) else 0
        self.error = error
        self.failed_ip = ip
        settings = self._settings
        wait_ms = exponential_backoff_ms(
            settings.reconnect_backoff_ms,
            settings.reconnect_backoff_max_ms,
            self.failures,
            chance,
        )
        self.not_before = now + wait_ms / 1000

    def succeeded(self) -> None:
        """Resets the failures after a success."""
        self.failures = self.timeouts = 0
        self.error = None
        self.failed_ip = None
        self.not_before = _LONG_AGO
