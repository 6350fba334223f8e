"""`AutoCommit`: commits in the background while a group consumer reads.

With `auto_commit` it commits processed offsets once per interval. `AutoCommit` commits the start
offset of a partition at once, even without `auto_commit`, if a later member would otherwise start
at another offset, for example if `start` is "latest". `commit_state` decides when a commit is due;
the rebalance listener commits revoked partitions.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Final

from ...tasks import start_task
from ...wire.errors import KprotoError
from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.committer import Committer
from ..commits.membership import GroupMembership
from ..core.retry import Attempts
from ..core.tasks import LONGEST_TIMER_S
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import format_partitions
from ..metadata.cluster_view import ClusterView
from .group_effects import GroupEffectHandler

__all__ = ["AutoCommit"]

logger = logging.getLogger("kproto.client")

#: The least timeout of an auto-commit, in ms: in a busy event loop a commit may take this long.
_MIN_TIMEOUT_MS: Final = 1_000

_START_OFFSETS: Final = CommitRequest(CommitKind.START_OFFSETS)


class AutoCommit:
    """Commits in its own task from `start` to `stop`.

    With a `membership` it commits only while the member can commit. Without a `membership`, for
    manually assigned partitions, it commits whenever a commit is due.
    """

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        committer: Committer,
        membership: GroupMembership[Any] | None,
        effect_handler: GroupEffectHandler,
        *,
        auto_commit: bool,
        interval_ms: int,
    ) -> None:
        self._view = view
        self._is_auto = auto_commit
        self._limit_ms = min(max(interval_ms, _MIN_TIMEOUT_MS), view.settings.api_timeout_ms)
        self._subscriptions = subscriptions
        self._committer = committer
        self._membership = membership
        self._effects = effect_handler
        self._request = CommitRequest(CommitKind.DUE) if auto_commit else _START_OFFSETS
        self._failures = Attempts(view.settings)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the task."""
        if self._is_auto:
            self._subscriptions.commit_state.start_interval(self._view.clock.monotonic())
        self._task = start_task(self._run())
        self._task.add_done_callback(self._on_task_done)

    async def stop(self) -> None:
        """Ends the task; a commit in flight continues, and the next commit waits for it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def commit_soon(self) -> None:
        """Commits processed offsets before the interval is over; no effect without `auto_commit`.

        The commit waits for a commit in flight, and for the backoff after a failed commit.
        """
        if self._is_auto:
            self._effects.commit_now.set()

    async def _run(self) -> None:
        clock = self._view.clock
        commit_state = self._subscriptions.commit_state
        failures = self._failures
        while True:
            await self._view.sleep_until(failures.not_before)
            await self._until_due()
            if self._membership is None or self._membership.identity is not None:
                try:
                    await self._committer.commit(self._request, self._limit_ms)
                except KprotoError as error:
                    failures.failed(error, clock.monotonic())
                    left = self._subscriptions.committable.offsets_to_commit(
                        self._request, clock.monotonic()
                    )
                    if left:
                        logger.warning(
                            "%s: processed offsets were not committed, and will be retried: %s",
                            format_partitions(left),
                            error,
                        )
                else:
                    failures.succeeded()
            now = clock.monotonic()
            if self._is_auto or self._subscriptions.committable.offsets_to_commit(
                _START_OFFSETS, now
            ):
                commit_state.start_interval(now)
            else:
                commit_state.stop_interval()

    async def _until_due(self) -> None:
        left_s = self._subscriptions.commit_state.next_at - self._view.clock.monotonic()
        with suppress(TimeoutError):
            async with self._view.clock.timeout(min(max(0.0, left_s), LONGEST_TIMER_S)):
                await self._effects.commit_now.wait()
        self._effects.commit_now.clear()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        fault = None if task.cancelled() else task.exception()
        if isinstance(fault, Exception):
            fault.add_note("auto-commit has stopped")
            self._effects.report(fault)
