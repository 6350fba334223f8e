"""`GroupConsumerCloser`: closes a group consumer, even if the close is cancelled.

A close stops `run`, revokes the partitions, commits processed offsets, leaves the group, and ends
all tasks of the consumer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, Protocol

from ...tasks import start_task
from ...wire.errors import KprotoError, RequestTimeoutError
from ..commits.committer import Committer
from ..commits.membership import GroupMembership
from ..core.retry import LAST_ATTEMPT_S
from ..core.tasks import shielded
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster_view import ClusterView
from .auto_commit import AutoCommit
from .group_effects import GroupEffectHandler
from .poll_status import PollStatus
from .rebalance_listener import RebalanceListenerInvoker
from .record_processing import RecordProcessing

__all__ = ["ClosedConsumer", "GroupConsumerCloser"]

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")

#: The least time in ms for the last two requests of a consumer: the commit, and the request to
#: leave the group.
_LAST_REQUESTS_MS: Final = round(2_000 * LAST_ATTEMPT_S)


class ClosedConsumer(Protocol):
    """The methods of `GroupConsumer` that this module calls."""

    async def _stop(self) -> None: ...
    def _description(self) -> str: ...


class GroupConsumerCloser:
    """Closes one group consumer; if a close is cancelled, the next call completes it.

    `member` is None for manually assigned partitions. The consumer sets `must_leave` when it starts
    the member. `leaves` is True if the member leaves the group by default; the argument of a close
    overrides it. `on_background_close` is called with the task of `start_background_close`.
    """

    def __init__(
        self,
        view: ClusterView,
        stream: ClosedConsumer,
        subscriptions: SubscriptionState,
        effect_handler: GroupEffectHandler,
        status: PollStatus,
        listener: RebalanceListenerInvoker,
        processing: RecordProcessing,
        auto_commit: AutoCommit,
        committer: Committer,
        member: GroupMembership[Any] | None,
        *,
        group_id: str,
        leaves: bool,
        on_background_close: Callable[[asyncio.Task[None]], object] | None,
    ) -> None:
        self._view = view
        self._stream = stream
        self._subscriptions = subscriptions
        self._effects = effect_handler
        self._status = status
        self._listener = listener
        self._processing = processing
        self._auto_commit = auto_commit
        self._committer = committer
        self._member = member
        self._group_id = group_id
        self._leaves = leaves
        self._on_background_close = on_background_close
        self._lock = asyncio.Lock()
        self.must_leave = False  # the member has started, and has not left the group yet
        self._is_limited = False  # a close was cancelled: later ones have a limit, too
        self._last_requests_by = _NEVER  # set at the limit of a close, in seconds of the clock
        self._background_close: asyncio.Task[None] | None = None

    async def close(self, leave: bool | None, timeout_ms: int | None) -> None:
        """Closes the consumer; see `GroupConsumer.close`."""
        most_ms = self._view.settings.api_timeout_ms
        closing = self._close(leave, most_ms if timeout_ms is None else min(timeout_ms, most_ms))
        try:
            if self._is_limited:  # an earlier close was cancelled
                await self._close_limited(closing, is_cancelled=True)
            else:
                await closing
        except asyncio.CancelledError:
            if not self._lock.locked():  # otherwise another task closes the consumer
                await self.close_after_error(leave, is_cancelled=True)
            raise
        fault = self._status.take_pending_error()
        if fault is not None:
            raise fault

    async def close_after_error(self, leave: bool | None, *, is_cancelled: bool) -> None:
        """Closes the consumer within `error_flush_ms`; logs an exception of a callback.

        Commits and leaves the group even if the call is cancelled, once or repeatedly.
        `is_cancelled` is True if the caller was cancelled before the call. Logs the
        RequestTimeoutError of a close that exceeds its limit.
        """
        try:
            await self._close_limited(self._close_unraised(leave), is_cancelled=is_cancelled)
        except RequestTimeoutError as timeout:
            logger.warning("not raised: %s", timeout)

    def start_background_close(self) -> None:
        """Starts a task that closes the consumer, because the program has dropped it."""
        task = self._background_close = start_task(self._close_in_background())
        if self._on_background_close is not None:
            self._on_background_close(task)

    @property
    def has_background_close(self) -> bool:
        """True once `start_background_close` was called."""
        return self._background_close is not None

    async def _close_in_background(self) -> None:
        try:
            await self.close(None, None)
        except Exception as error:  # noqa: BLE001 - no caller is left
            logger.warning("not raised: %s", error)

    async def _close_unraised(self, leave: bool | None) -> None:
        await self._close(leave, self._view.settings.error_flush_ms)
        if self._status.pending_error is not None:
            logger.warning("not raised: %s", self._status.pending_error)

    async def _close_limited(
        self, closing: Coroutine[Any, Any, None], *, is_cancelled: bool
    ) -> None:
        """Runs `closing`; after a cancellation, limits the time of callbacks and handlers.

        After a cancellation, callbacks and handlers have `max_cancelled_close_ms`, and are then
        cancelled. The consumer still commits and leaves the group, within `error_flush_ms`. Raises
        RequestTimeoutError if the commit and the leave take longer.
        """
        self._is_limited = self._is_limited or is_cancelled
        self._last_requests_by = _NEVER
        settings = self._view.settings
        try:
            await shielded(
                closing,
                self._view.clock,
                settings.max_cancelled_close_ms,
                what=f"the close of {self._stream._description()}",
                is_cancelled=self._is_limited,
                on_limit=self._on_limit,
                rest_ms=settings.error_flush_ms + _LAST_REQUESTS_MS,
            )
        except asyncio.CancelledError:
            self._is_limited = True
            raise

    def _on_limit(self) -> None:
        """Ends the callbacks and handlers for which the cancelled close waits."""
        clock, settings = self._view.clock, self._view.settings
        self._last_requests_by = clock.monotonic() + settings.error_flush_ms / 1000
        self._listener.end_callbacks()
        self._processing.end_drain()

    async def _close(self, leave: bool | None, limit_ms: int) -> None:
        """Closes the consumer; completes the steps of a close that was cancelled.

        If another task closes the consumer, first waits for that close, up to `limit_ms`. If the
        call is cancelled during this wait, the other close continues.
        """
        await self._processing.stop()
        self._effects.close()
        clock = self._view.clock
        until = min(clock.monotonic() + limit_ms / 1000, self._last_requests_by)
        is_alone = False
        with suppress(TimeoutError):
            async with clock.timeout(max(0.0, until - clock.monotonic())):
                is_alone = await self._lock.acquire()
        try:
            await self._close_steps(leave, until)
        finally:
            if is_alone:
                self._lock.release()

    async def _close_steps(self, leave: bool | None, until: float) -> None:
        member = self._member
        try:
            await self._auto_commit.stop()
            await self._listener.close(until)
            if member is not None and self.must_leave:
                await self._leave(member, leave, until)
                self.must_leave = False
        finally:
            async with AsyncExitStack() as ends:  # runs all of them, even if one is cancelled
                ends.push_async_callback(self._stream._stop)
                ends.callback(self._subscriptions.log_ends.clear)
                ends.push_async_callback(self._committer.close)
                if member is not None:
                    ends.push_async_callback(member.close)

    async def _leave(self, member: GroupMembership[Any], leave: bool | None, until: float) -> None:
        clock = self._view.clock
        until = max(until, clock.monotonic() + LAST_ATTEMPT_S)
        try:
            sends_leave = self._leaves if leave is None else leave
            limit_ms = round((until - clock.monotonic()) * 1000)
            leaving = member.leave(sends_leave, "the consumer is closed")
            await self._view.with_deadline(until, leaving, limit_ms)
        except KprotoError as error:
            logger.warning("group %s could not be left: %s", self._group_id, error)
