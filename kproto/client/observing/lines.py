"""Writes log lines: one line per change of state, without control characters of peers.

All lines go to the logger `kproto.client`: WARNING for events that an operator may have to act on,
INFO for other changes of state, DEBUG for each request and retry.
"""

from __future__ import annotations

import logging
from typing import Final

from ...protocol.sasl.text import printable
from ...wire.errors import BrokerConnectionError

__all__ = ["Troubles", "at", "reason_of", "say", "tells_changes", "wants"]

_log: Final = logging.getLogger("kproto.client")

#: Returns True if a level is enabled. It is called for each request, so it has no wrapper.
wants: Final = _log.isEnabledFor

#: The names of operations in log lines.
_DOING: Final = {"produce": "producing to", "fetch": "fetching"}


def tells_changes() -> bool:
    """Returns True if INFO is enabled."""
    return wants(logging.INFO)


def say(level: int, text: str, *values: object) -> None:
    """Logs a line; converts values to text of bounded length, without control characters."""
    if wants(level):
        shown = [each if isinstance(each, int | float) else printable(str(each)) for each in values]
        _log.log(level, text, *shown, stacklevel=2)


def at(topic: str | None, partition: int | None) -> str:
    """Formats a partition, a topic, or neither."""
    if topic is None:
        return ""
    return topic if partition is None else f"{topic}[{partition}]"


#: After this many seconds without an error no operation is retried any more, because retries are at
#: most `retry_backoff_max_ms` apart: the caller has abandoned it.
_FORGOTTEN_S: Final = 60.0


def reason_of(error: Exception) -> str:
    """Returns the reason of a connection error, without the address, which the line has already."""
    return error.reason if isinstance(error, BrokerConnectionError) else str(error)


class Troubles:
    """Logs the first partition that waits for a retry, and the last that recovers.

    So two lines report an outage, even if a broker with a thousand partitions is unavailable.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[tuple[str, int], None]] = {}
        self._since: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        self._most: dict[str, int] = {}

    def begin(self, what: str, topic: str, partition: int, error: Exception, now: float) -> None:
        """Adds a partition that waits for a retry since `now`, in seconds of the clock."""
        waiting = self._waiting.setdefault(what, {})
        if now - self._heard.get(what, now) > _FORGOTTEN_S:
            waiting.clear()
        self._heard[what] = now
        if not waiting:
            self._since[what] = now
            self._most[what] = 0
            say(
                logging.WARNING,
                "%s %s is retried: %s",
                _DOING.get(what, what),
                at(topic, partition),
                error,
            )
        waiting[topic, partition] = None
        self._most[what] = max(self._most[what], len(waiting))

    def end(
        self, what: str, topic: str, partition: int, now: float, *, is_given_up: bool = False
    ) -> None:
        """Removes a partition that has recovered, or whose operation has failed for good."""
        waiting = self._waiting.get(what)
        if not waiting or waiting.pop((topic, partition), self) is self or waiting:
            return
        say(
            logging.INFO,
            "%s %s %s, the last of %d partitions, after %.1f s",
            _DOING.get(what, what),
            at(topic, partition),
            "failed for good" if is_given_up else "has recovered",
            self._most[what],
            now - self._since[what],
        )
