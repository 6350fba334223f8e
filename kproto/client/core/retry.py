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

#: The largest share of a backoff that is added or subtracted at random, so that clients do not
#: retry at the same time.
JITTER: Final = 0.2

#: The time limit in seconds of an attempt that starts at the deadline. A broker that is available
#: again responds within this time.
LAST_ATTEMPT_S: Final = 0.1

#: A remaining time below this, in seconds, counts as over: timers are not more precise.
TIMER_RESOLUTION_S: Final = 0.001

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class Remedy(Enum):
    """The remedy of an error. All remedies except FAIL include a retry after a backoff."""

    RETRY = "retry the request"
    REFRESH = "refresh metadata, then retry"
    FIND_COORDINATOR = "find the coordinator again, then retry"
    FAIL = "raise the error"


#: Retriable error codes that need more than a backoff. `ERRORS` lists all retriable error codes.
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
    """Converts a table with error names as keys to a table with error codes as keys."""
    return {code_of(name): remedy for name, remedy in table.items()}


_BY_CODE: Final[dict[int, Remedy]] = {
    code: Remedy.RETRY for code, known in ERRORS.items() if known.retriable
} | by_code(_REMEDIES)


def remedy_of_code(code: int) -> Remedy:
    """Returns the remedy of an error code."""
    return _BY_CODE.get(code, Remedy.FAIL)


def remedy_of(error: KprotoError) -> Remedy:
    """Returns the remedy of an error.

    After a lost connection or a timeout the remedy is REFRESH (refresh metadata), because the
    partitions may have new leaders. The remedy of any other client-side error is FAIL.
    """
    if isinstance(error, BrokerResponseError):
        return remedy_of_code(error.code)
    if isinstance(error, BrokerConnectionError | RequestTimeoutError):
        return Remedy.REFRESH
    return Remedy.FAIL


def backoff_ms(settings: ClientSettings, attempt: int, chance: float) -> float:
    """Returns the backoff in ms before retry number `attempt`, counted from 1 (KIP-580).

    The backoff doubles with each retry, from `retry_backoff_ms` up to `retry_backoff_max_ms`, plus
    or minus the jitter. `chance` is a random number for the jitter, 0 <= chance < 1.
    """
    return exponential_backoff_ms(
        settings.retry_backoff_ms, settings.retry_backoff_max_ms, attempt, chance
    )


def exponential_backoff_ms(least: int, most: int, attempt: int, chance: float) -> float:
    """Returns the backoff in ms before retry number `attempt`, counted from 1.

    The backoff is `least` before the first retry, and doubles up to `most`, plus or minus the
    jitter. `chance` is a random number for the jitter, 0 <= chance < 1.
    """
    return float(min(least * 2.0 ** min(attempt - 1, 30), most) * (1 + JITTER * (2 * chance - 1)))


class Attempts:
    """Counts the consecutive failures of one operation.

    The next attempt is due at `not_before`, and the last attempt is due at `deadline`; both times
    are in seconds of the client's clock. The deadline is `limit_ms` after the start of the
    operation. The operation starts at `started_at`. Without `started_at` it starts at the call of
    `begin`, or at the first failure if the failure is earlier. `limit_ms` is `api_timeout_ms` by
    default.
    """

    __slots__ = ("_limit_ms", "_settings", "count", "deadline", "error", "not_before")

    def __init__(
        self, settings: ClientSettings, limit_ms: int | None = None, started_at: float | None = None
    ) -> None:
        self._settings = settings
        self._limit_ms = settings.api_timeout_ms if limit_ms is None else limit_ms
        self.deadline = _NEVER if started_at is None else started_at + self._limit_ms / 1000
        self.count = 0
        self.error: KprotoError | None = None
        self.not_before = _LONG_AGO

    def begin(self, now: float) -> None:
        """Starts the time limit at `now`, unless it runs already."""
        if self.deadline == _NEVER:
            self.deadline = now + self._limit_ms / 1000

    def limit_to(self, deadline: float) -> None:
        """Sets the deadline to `deadline`, because another limit applies to the present error.

        `deadline` is in seconds of the clock.
        """
        self.deadline = deadline

    def on_attempt_started(self, now: float) -> None:
        """Stores that an attempt starts at `now`.

        If a retry starts later than its due time `not_before`, the deadline moves by this delay.
        """
        if self.count:
            self.deadline += max(0.0, now - self.not_before)
            self.not_before = now

    def make_due(self, now: float) -> None:
        """Makes the second part of an attempt due at `now`, because the first part has succeeded.

        The first part is, for example, a metadata refresh. The duration of the first part does not
        move the deadline.
        """
        self.not_before = max(self.not_before, now)

    def skip_backoff(self, now: float) -> None:
        """Skips the backoff after a failure, because the next attempt uses another broker."""
        self.not_before = now

    def shorten_backoff(self, at: float) -> None:
        """Makes the next attempt due at `at`, unless it is due earlier."""
        self.not_before = min(self.not_before, at)

    def ends_at(self, now: float) -> float:
        """Returns the deadline of an attempt that starts at `now`.

        A retry may run for at least `LAST_ATTEMPT_S`, even beyond `deadline`.
        """
        return max(self.deadline, now + LAST_ATTEMPT_S) if self.count else self.deadline

    def failed(self, error: KprotoError, now: float) -> bool:
        """Counts a failure; returns True if there is time for another attempt.

        A backoff that would end after the deadline is shortened: the last attempt starts at the
        deadline.
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
        self.not_before = _LONG_AGO
