"""Defines `Watchable`: an object that notifies watchers of its changes.

Logs and classic groups are watchable: `session` watches them for a `DelayedResponse`. The group
coordinator watches `Partition.moved`, to unload the groups of a partition.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Watchable"]


class Watchable:
    """Notifies watchers of its changes."""

    def __init__(self) -> None:
        #: Called without arguments at each change.
        self.watchers: set[Callable[[], None]] = set()

    def notify(self) -> None:
        """Calls all watchers."""
        for watcher in tuple(self.watchers):
            watcher()
