"""What one can wait for: a thing that tells whoever asked that it has changed.

Knows neither who waits nor how; `waiting` does the waiting.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Watchable"]


class Watchable:
    """Something that changes."""

    def __init__(self) -> None:
        #: Called without arguments at each change.
        self.watchers: set[Callable[[], None]] = set()

    def notify(self) -> None:
        """Call whoever waits."""
        for watcher in tuple(self.watchers):
            watcher()
