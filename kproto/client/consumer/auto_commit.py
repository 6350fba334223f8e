"""`AutoCommits`: what a consumer of a group commits by itself while it reads.

With `auto_commit` what is done, now and then; in any case, and at once, where a partition begins
that would begin elsewhere later. When that is due says `committing`, of which partitions
`ownership`; what goes when they do, or at the end, is not committed here. Knows no reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ...wire.errors import KprotoError
from ..commits.commit_state import CommitState
from ..commits.committer import Committer, Membership
from ..commits.requests import ToCommit
from ..core.retry import Attempts
from ..metadata.cluster import TopicPartition, named
from ..metadata.cluster_view import ClusterView
from .rebalance_listener import RebalanceListenerInvoker

__all__ = ["AutoCommits"]

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")

#: What an auto-commit has at the least, in ms: a loop that is busy is late for a short interval.
_LEAST_MS: Final = 1_000


class AutoCommits:
    """Those of one consumer, in a task of their own from `begin` to `end`.

    `tell` is told what ended that task before its time. Without a `membership` there is none to be
    waited for.
    """

    def __init__(
        self,
        view: ClusterView,
        committing: CommitState,
        ownership: RebalanceListenerInvoker,
        committer: Committer,
        membership: Membership | None,
        *,
        auto_commit: bool,
        interval_ms: int,
        tell: Callable[[Exception], None],
    ) -> None:
        self._view = view
        self._is_auto = auto_commit
        self._limit_ms = min(max(interval_ms, _LEAST_MS), view.settings.delivery_timeout_ms)
        self._committing = committing
        self._ownership = ownership
        self._committer = committer
        self._membership = membership
        self._tell = tell
        self._is_due = asyncio.Event()  # before its time
        self._failures = Attempts(view.settings)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Commit from now on."""
        if self._is_auto:
            self._committing.begin(self._view.clock.monotonic())
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Commit no more; one that is under way goes on, and is waited for by the next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def passing(self, place: TopicPartition, its: ToCommit) -> None:
        """A partition begins where nobody would begin later: that is to be committed at once."""
        self._committing.began(place, its)
        self._is_due.set()

    def hurry(self) -> None:
        """Commit what is done now, or once the commit that is under way is over; after one that
        failed, when the backoff is over.
        """
        if self._is_auto:
            self._is_due.set()

    async def _run(self) -> None:
        due = self._ownership.due if self._is_auto else self._ownership.begun
        failures = self._failures
        while True:
            await self._view.until(failures.not_before)
            await self._until_due()
            if self._membership is None or self._membership.identity is not None:
                try:
                    await self._committer.commit(due, self._limit_ms)
                except KprotoError as error:
                    failures.failed(error, self._view.clock.monotonic())
                    left = due()
                    if left:
                        logger.warning(
                            "%s: what is done was not committed, and will be later: %s",
                            named(left),
                            error,
                        )
                else:
                    failures.succeeded()
            if self._is_auto or self._ownership.begun():
                self._committing.begin(self._view.clock.monotonic())
            else:
                self._committing.rest()

    async def _until_due(self) -> None:
        left_s = self._committing.next_at - self._view.clock.monotonic()
        if left_s == _NEVER:
            await self._is_due.wait()
        else:
            with suppress(TimeoutError):
                async with self._view.clock.timeout(max(0.0, left_s)):
                    await self._is_due.wait()
        self._is_due.clear()

    def _ended(self, task: asyncio.Task[None]) -> None:
        fault = None if task.cancelled() else task.exception()
        if isinstance(fault, Exception):
            fault.add_note("nothing more is committed by itself")
            self._tell(fault)
