"""Objects that notify watchers of their changes: logs, partitions and groups.

`session` watches them for a `DelayedResponse`.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Watchable"]


class Watchable:
    """An object whose changes can be watched."""

    def __init__(self) -> None:
        #: Called without arguments at each change.
        self.watchers: set[Callable[[], None]] = set()

    def notify(self) -> None:
        """Calls all watchers."""
        for watcher in tuple(self.watchers):
            watcher()
