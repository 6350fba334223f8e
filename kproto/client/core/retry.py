"""The retry engine of the client: the remedy of each error, attempts, deadlines and backoff.

Plain data: `Attempts` has the earliest time of the next attempt, and its owner waits until then.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum
from typing import Final

from ...protocol.error_codes import ERRORS, code_of
from ...wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    KprotoError,
    RequestTimeoutError,
)
from ..settings import ClientSettings

__all__ = [
    "LAST_ATTEMPT_S",
    "TIMER_RESOLUTION_S",
    "Attempts",
    "Remedy",
    "backoff_ms",
    "by_code",
    "exponential_backoff_ms",
    "remedy_of",
    "remedy_of_code",
]

#: The jitter of a backoff, as a share of it: so clients do not retry at the same time.
JITTER: Final = 0.2

#: The time limit of the last attempt, which starts at the deadline, in seconds: a broker that is
#: available again responds within it.
LAST_ATTEMPT_S: Final = 0.1

#: A remaining time below this, in seconds, counts as over: timers are not more precise.
TIMER_RESOLUTION_S: Final = 0.001

_NEVER: Final = float("inf")


class Remedy(Enum):
    """The remedy of an error. All except FAIL include a retry after a backoff."""

    RETRY = "retry the request"
    REFRESH = "refresh metadata, then retry"
    FIND_COORDINATOR = "find the coordinator again, then retry"
    FAIL = "raise the error"


#: Retriable error codes that need more than a backoff. Kafka's own table says which are retriable.
_REMEDIES: Final[dict[str, Remedy]] = {
    "COORDINATOR_NOT_AVAILABLE": Remedy.FIND_COORDINATOR,
    "FENCED_LEADER_EPOCH": Remedy.REFRESH,
    "FETCH_SESSION_TOPIC_ID_ERROR": Remedy.REFRESH,
    "INCONSISTENT_TOPIC_ID": Remedy.REFRESH,
    "KAFKA_STORAGE_ERROR": Remedy.REFRESH,
    "LEADER_NOT_AVAILABLE": Remedy.REFRESH,
    "LISTENER_NOT_FOUND": Remedy.REFRESH,
    "NETWORK_EXCEPTION": Remedy.REFRESH,
    "NOT_CONTROLLER": Remedy.REFRESH,
    "NOT_COORDINATOR": Remedy.FIND_COORDINATOR,
    "NOT_LEADER_OR_FOLLOWER": Remedy.REFRESH,
    "REPLICA_NOT_AVAILABLE": Remedy.REFRESH,
    "UNKNOWN_TOPIC_ID": Remedy.REFRESH,
    "UNKNOWN_TOPIC_OR_PARTITION": Remedy.REFRESH,
}


def by_code(table: Mapping[str, Remedy]) -> dict[int, Remedy]:
    """Converts a table by error names to a table by error codes."""
    return {code_of(name): remedy for name, remedy in table.items()}


_BY_CODE: Final[dict[int, Remedy]] = {
    code: Remedy.RETRY for code, known in ERRORS.items() if known.retriable
} | by_code(_REMEDIES)


def remedy_of_code(code: int) -> Remedy:
    """Returns the remedy of an error code."""
    return _BY_CODE.get(code, Remedy.FAIL)


def remedy_of(error: KprotoError) -> Remedy:
    """Returns the remedy of an error.

    After a lost connection or a timeout metadata is refreshed, because the broker may have lost its
    partitions.
    """
    if isinstance(error, BrokerResponseError):
        return remedy_of_code(error.code)
    if isinstance(error, BrokerConnectionError | RequestTimeoutError):
        return Remedy.REFRESH
    return Remedy.FAIL


def backoff_ms(settings: ClientSettings, attempt: int, chance: float) -> float:
    """Returns the backoff in ms before retry number `attempt`, counted from 1 (KIP-580).

    It doubles from `retry_backoff_ms` up to `retry_backoff_max_ms`; `chance` is a random number,
    0 <= chance < 1.
    """
    return exponential_backoff_ms(
        settings.retry_backoff_ms, settings.retry_backoff_max_ms, attempt, chance
    )


def exponential_backoff_ms(least: int, most: int, attempt: int, chance: float) -> float:
    """Returns a backoff in ms that doubles from `least` up to `most`, with jitter by `chance`."""
    return float(min(least * 2.0 ** min(attempt - 1, 30), most) * (1 + JITTER * (2 * chance - 1)))


class Attempts:
    """Counts the consecutive failures of one operation.

    All times are in seconds of the client's clock. `limit_ms` bounds the operation, from
    `started_at` or `begin`, by default from the first failure. `not_before` is the time of the next
    attempt, `deadline` the time of the last attempt.
    """

    __slots__ = ("_limit_s", "_settings", "count", "deadline", "error", "not_before")

    def __init__(
        self, settings: ClientSettings, limit_ms: int | None = None, started_at: float | None = None
    ) -> None:
        limit_ms = settings.api_timeout_ms if limit_ms is None else limit_ms
        self._settings = settings
        self._limit_s = limit_ms / 1000
        self.deadline = _NEVER if started_at is None else started_at + self._limit_s
        self.count = 0
        self.error: KprotoError | None = None
        self.not_before = float("-inf")

    def begin(self, now: float) -> None:
        """Starts the time limit, unless it runs already."""
        if self.deadline == _NEVER:
            self.deadline = now + self._limit_s

    def on_attempt_started(self, now: float) -> None:
        """Starts another attempt at `now`; a wait beyond `not_before` moves the deadline."""
        if self.count:
            self.deadline += max(0.0, now - self.not_before)
            self.not_before = now

    def make_due(self, now: float) -> None:
        """Makes the second part of an attempt due, because its first part has succeeded."""
        self.not_before = max(self.not_before, now)

    def skip_backoff(self, now: float) -> None:
        """Skips the backoff after a failure, because the next attempt uses another broker."""
        self.not_before = now

    def ends_at(self, now: float) -> float:
        """Returns the deadline of an attempt that starts at `now`."""
        return max(self.deadline, now + LAST_ATTEMPT_S) if self.count else self.deadline

    def failed(self, error: KprotoError, now: float) -> bool:
        """Counts a failure; returns True if there is time for another attempt.

        The last backoff ends at the deadline, so that the last attempt starts there.
        """
        self.begin(now)
        self.count += 1
        self.error = error
        chance = random.random()  # noqa: S311 - jitter, no secret
        self.not_before = now + backoff_ms(self._settings, self.count, chance) / 1000
        if now >= self.deadline - TIMER_RESOLUTION_S:
            return False
        self.not_before = min(self.not_before, self.deadline)
        return True

    def succeeded(self) -> None:
        """Resets the failures and the deadline."""
        self.deadline = _NEVER
        self.count = 0
        self.error = None
        self.not_before = float("-inf")
