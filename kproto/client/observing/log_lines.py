"""Writes log lines: one line per change of state, without control characters from brokers.

All lines go to the logger `kproto.client`: WARNING for events that an operator may have to act on,
INFO for other changes of state, DEBUG for each request and retry.
"""

from __future__ import annotations

import logging
from typing import Final

from ...protocol.sasl.text import printable
from ...wire.errors import BrokerConnectionError

__all__ = ["RetryLog", "format_target", "is_enabled", "log", "logs_changes", "reason_of"]

_log: Final = logging.getLogger("kproto.client")

#: Returns True if a level is enabled. It is called for each request, so it has no wrapper.
is_enabled: Final = _log.isEnabledFor

#: The names of operations in log lines.
_OPERATIONS: Final = {"produce": "producing to", "fetch": "fetching"}


def logs_changes() -> bool:
    """Returns True if INFO is enabled for the logger; changes of state are logged at INFO."""
    return is_enabled(logging.INFO)


def log(level: int, text: str, *values: object) -> None:
    """Logs a line; converts values to text of bounded length, without control characters."""
    if is_enabled(level):
        shown = [each if isinstance(each, int | float) else printable(str(each)) for each in values]
        _log.log(level, text, *shown, stacklevel=2)


def format_target(topic: str | None, partition: int | None) -> str:
    """Returns `topic[partition]`, the topic if `partition` is None, or "" if `topic` is None."""
    if topic is None:
        return ""
    return topic if partition is None else f"{topic}[{partition}]"


#: If an operation had no error for this many seconds, its partitions no longer wait for a retry:
#: retries are at most `retry_backoff_max_ms` apart, so the callers have stopped.
_FORGOTTEN_S: Final = 60.0


def reason_of(error: Exception) -> str:
    """Returns the text of an error; omits the broker's address of a BrokerConnectionError."""
    return error.reason if isinstance(error, BrokerConnectionError) else str(error)


class RetryLog:
    """Logs, for each operation, the first retried partition and the last recovered partition.

    So two lines report an outage, even if a broker with a thousand partitions is unavailable.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[tuple[str, int], None]] = {}
        self._since: dict[str, float] = {}
        self._last_error_at: dict[str, float] = {}
        self._max_waiting: dict[str, int] = {}

    def begin(self, what: str, topic: str, partition: int, error: Exception, now: float) -> None:
        """Adds a partition that waits for a retry since `now`, in seconds of the clock."""
        waiting = self._waiting.setdefault(what, {})
        if now - self._last_error_at.get(what, now) > _FORGOTTEN_S:
            waiting.clear()
        self._last_error_at[what] = now
        if not waiting:
            self._since[what] = now
            self._max_waiting[what] = 0
            log(
                logging.WARNING,
                "%s %s is retried: %s",
                _OPERATIONS.get(what, what),
                format_target(topic, partition),
                error,
            )
        waiting[topic, partition] = None
        self._max_waiting[what] = max(self._max_waiting[what], len(waiting))

    def end(
        self, what: str, topic: str, partition: int, now: float, *, has_failed: bool = False
    ) -> None:
        """Removes a partition whose operation has succeeded, or has failed for good (`has_failed`).

        Logs a line if no partition waits for a retry any more.
        """
        waiting = self._waiting.get(what)
        if not waiting or waiting.pop((topic, partition), self) is self or waiting:
            return
        log(
            logging.INFO,
            "%s %s %s, the last of %d partitions, after %.1f s",
            _OPERATIONS.get(what, what),
            format_target(topic, partition),
            "failed for good" if has_failed else "has recovered",
            self._max_waiting[what],
            now - self._since[what],
        )
