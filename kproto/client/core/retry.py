"""What an error means for whoever asked, and when to ask again: the client's one retry engine.

Owns the table of remedies and the arithmetic of attempts, deadline and backoff. Knows no
connection, no cluster and no task: `Attempts` says until when not to try again, and whoever has
it waits.
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
    "TICK_S",
    "Attempts",
    "Remedy",
    "backoff_ms",
    "by_code",
    "doubled_ms",
    "remedy_of",
    "remedy_of_code",
]

#: Shares of the wait that chance adds or takes away, so that clients do not retry in step.
JITTER: Final = 0.2

#: What the last attempt, which begins at the deadline, may take, in seconds: a broker that is back
#: answers within that.
LAST_ATTEMPT_S: Final = 0.1

#: Less than that before the deadline is no time, in seconds: timers are not more exact.
TICK_S: Final = 0.001

_NEVER: Final = float("inf")


class Remedy(Enum):
    """What mends an error. Each but the last asks again after a wait."""

    RETRY = "the same again"
    REFRESH = "ask for metadata, then the same again"
    FIND_COORDINATOR = "find the coordinator again, then the same again"
    FAIL = "tell the caller"


#: Retriable error codes that more than a wait mends; what is retriable at all, Kafka's own table
#: says.
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
    """A table of error names as one of codes."""
    return {code_of(name): remedy for name, remedy in table.items()}


_BY_CODE: Final[dict[int, Remedy]] = {
    code: Remedy.RETRY for code, known in ERRORS.items() if known.retriable
} | by_code(_REMEDIES)


def remedy_of_code(code: int) -> Remedy:
    """What mends an error code of a response."""
    return _BY_CODE.get(code, Remedy.FAIL)


def remedy_of(error: KprotoError) -> Remedy:
    """What mends an error: a broker that is silent or gone may have lost its partitions."""
    if isinstance(error, BrokerResponseError):
        return remedy_of_code(error.code)
    if isinstance(error, BrokerConnectionError | RequestTimeoutError):
        return Remedy.REFRESH
    return Remedy.FAIL


def backoff_ms(settings: ClientSettings, attempt: int, chance: float) -> float:
    """The wait in ms before retry number `attempt`, which counts from 1.

    Doubles from `retry_backoff_ms` up to `retry_backoff_max_ms`; `chance` is a random number of
    at least 0 and below 1 (KIP-580).
    """
    return doubled_ms(settings.retry_backoff_ms, settings.retry_backoff_max_ms, attempt, chance)


def doubled_ms(least: int, most: int, attempt: int, chance: float) -> float:
    """A wait in ms that doubles from `least` up to `most`, a fifth more or less by `chance`."""
    return float(min(least * 2.0 ** min(attempt - 1, 30), most) * (1 + JITTER * (2 * chance - 1)))


class Attempts:
    """Failures in a row of one operation. All times in seconds of the client's clock.

    `limit_ms` is how long it may go on: from `begun` or `begin`, else from the first failure.
    `not_before` is when the next attempt is due, `deadline` when the last one is.
    """

    __slots__ = ("_limit_s", "_settings", "count", "deadline", "error", "not_before")

    def __init__(
        self, settings: ClientSettings, limit_ms: int | None = None, begun: float | None = None
    ) -> None:
        limit_ms = settings.delivery_timeout_ms if limit_ms is None else limit_ms
        self._settings = settings
        self._limit_s = limit_ms / 1000
        self.deadline = _NEVER if begun is None else begun + self._limit_s
        self.count = 0
        self.error: KprotoError | None = None
        self.not_before = float("-inf")

    def begin(self, now: float) -> None:
        """Let the time run, unless it runs already."""
        if self.deadline == _NEVER:
            self.deadline = now + self._limit_s

    def asked(self, now: float) -> None:
        """Another attempt begins at `now`: time in which nobody asked does not count."""
        if self.count:
            self.deadline += max(0.0, now - self.not_before)
            self.not_before = now

    def go_on(self, now: float) -> None:
        """What the attempt began with is done, and the rest of it is due."""
        self.not_before = max(self.not_before, now)

    def at_once(self, now: float) -> None:
        """Leave out the wait after a failure: the next attempt is another broker's."""
        self.not_before = now

    def ends_at(self, now: float) -> float:
        """When an attempt that begins at `now` must have its answer."""
        return max(self.deadline, now + LAST_ATTEMPT_S) if self.count else self.deadline

    def failed(self, error: KprotoError, now: float) -> bool:
        """Take note of a failure; True when there is time for another attempt.

        The last wait ends at the deadline, however long it would be, so that all the time is used.
        """
        self.begin(now)
        self.count += 1
        self.error = error
        chance = random.random()  # noqa: S311 - jitter, no secret
        self.not_before = now + backoff_ms(self._settings, self.count, chance) / 1000
        if now >= self.deadline - TICK_S:
            return False
        self.not_before = min(self.not_before, self.deadline)
        return True

    def succeeded(self) -> None:
        """Begin anew: failures before a success do not count."""
        self.deadline = _NEVER
        self.count = 0
        self.error = None
        self.not_before = float("-inf")
