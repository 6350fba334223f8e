"""`LeaderRefresh`: requests metadata of the partitions that a share consumer fetches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from ....protocol.error_codes import code_of, error_of_code
from ....tasks import start_task
from ....wire.errors import KprotoError
from ...core.retry import Attempts
from ...metadata.cluster_view import ClusterView
from .partition_groups import PartitionGroups

__all__ = ["LeaderRefresh"]

_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")

_NEVER: Final = float("inf")


class LeaderRefresh:
    """Requests metadata if a leader is unknown, or if the metadata of a topic is too old.

    One request is in flight at a time; `on_refreshed` is called after each. `on_refreshed` updates
    `groups`.
    """

    def __init__(
        self, view: ClusterView, groups: PartitionGroups, on_refreshed: Callable[[], object]
    ) -> None:
        self._view = view
        self._groups = groups
        self._on_refreshed = on_refreshed
        self._attempts = Attempts(view.settings)
        self._task: asyncio.Task[None] | None = None
        self._is_ended = False

    def end(self) -> list[asyncio.Task[None]]:
        """Starts no further request; returns the task of the running one, to be cancelled."""
        self._is_ended = True
        return [] if self._task is None else [self._task]

    @property
    def next_at(self) -> float:
        """The time of the next request, in seconds of the clock; infinity if none is scheduled."""
        is_scheduled = self._task is None and self._groups.unknown
        return self._attempts.not_before if is_scheduled else _NEVER

    def start_due(self, now: float) -> None:
        """Starts a request if one is due."""
        if now < self._attempts.not_before:
            return
        view = self._view
        stale = {each for each in self._groups.topics if not view.has_current_metadata(each)}
        self.start(stale | self._groups.unknown)

    def start(self, topics: Collection[str]) -> None:
        """Starts a request for topics, unless a request is in flight."""
        if topics and self._task is None and not self._is_ended:
            self._task = start_task(self._request(topics))

    async def _request(self, topics: Collection[str]) -> None:
        fault: KprotoError | None = None
        try:
            await self._view.refresh(topics)
        except KprotoError as error:
            fault = error
        self._task = None
        self._on_refreshed()
        if fault is None and self._groups.unknown:
            fault = error_of_code(_NO_LEADER, "looking for leaders")
        if fault is None:
            self._attempts.succeeded()
        else:
            self._attempts.failed(fault, self._view.clock.monotonic())
