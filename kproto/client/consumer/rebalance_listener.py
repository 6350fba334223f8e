"""`RebalanceListenerInvoker`: changes the assignment in Kafka's order, and calls the callbacks.

A partition that is revoked is not fetched any more at once. When its records in flight are
processed, `on_revoked` is called, what is processed is committed, and other members may have it.
The member decides what is assigned and revoked; `subscription_state` has the partitions.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from ...wire.errors import ConfigurationError, KprotoError
from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.committer import Committer
from ..core.retry import LAST_ATTEMPT_S
from ..fetch.partition_state import TopicPartitionState
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition, named
from ..metadata.cluster_view import ClusterView
from .group_shell import GroupShell
from .poll_status import PollStatus

__all__ = ["Callback", "Callbacks", "RebalanceListenerInvoker"]

logger = logging.getLogger("kproto.client")

#: A function or a coroutine function that is called with partitions, in order.
Callback: TypeAlias = Callable[[list[TopicPartition]], Awaitable[object] | None]

_States: TypeAlias = Mapping[TopicPartition, TopicPartitionState]

#: The least time of the last commits, in seconds, also if records were in flight for all of the
#: time: while other members wait for partitions, the coordinator still takes their commits.
_LEAST_S: Final = 5.0


class Callbacks(NamedTuple):
    """The callbacks of the user. As in Kafka, `on_revoked` is called if there is no `on_lost`."""

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    def check(self) -> None:
        """Raises ConfigurationError for what cannot be called."""
        for name, each in self._asdict().items():
            if each is not None and not callable(each):
                raise ConfigurationError(f"{name} is {each!r:.80}; it must be a function, or None")


class RebalanceListenerInvoker:
    """The `AssignmentListener` of the member. Changes are made one at a time, in their order."""

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        shell: GroupShell,
        status: PollStatus,
        callbacks: Callbacks,
        *,
        auto_commit: bool,
        max_poll_interval_ms: int,
    ) -> None:
        self._view = view
        self._subscriptions = subscriptions
        self._shell = shell
        self._status = status
        self._callbacks = callbacks
        self._auto_commit = auto_commit
        self._max_poll_s = max_poll_interval_ms / 1000
        self.committer: Committer  # which knows the member, which knows this
        self._lock = asyncio.Lock()
        self._polled = asyncio.Event()
        self._caller: asyncio.Task[object] | None = None  # runs a callback
        self._is_closing = False

    # The AssignmentListener

    def owned_partitions(self) -> Collection[TopicPartition]:
        """Returns the assigned partitions, those that are being revoked included."""
        return [*self._subscriptions.partitions, *self._subscriptions.revocations.tps]

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        """Revokes these while the member can still commit them: not beyond `until`, in seconds.

        Returns when none of their records is in flight, or has been for too long, when `on_revoked`
        has returned, and when what is processed is committed, explicit commits of that moment
        included. If it is cancelled, they are lost next, or revoked once more: then `on_revoked` is
        called again, unless it had returned.
        """
        self._shell.notice_topics()  # no offset of a deleted topic is committed of its successor
        gone, effects = self._subscriptions.mark_pending_revocation(tps)
        self._shell.carry_out(effects)
        try:
            async with self._lock:
                gone = self._subscriptions.revocations.resume(gone, tps)
                await self._finish_revocation(gone, until)
        except asyncio.CancelledError:
            self._subscriptions.revocations.interrupt(gone)
            raise
        self._subscriptions.abandon(gone)
        self._subscriptions.complete_revocation(gone)

    async def on_partitions_lost(self, tps: Collection[TopicPartition]) -> None:
        """Drops partitions that other members have already: nothing of them is committed.

        If it is cancelled, `on_lost` is called again before the next callback: when the member
        loses the rest, which may be none.
        """
        _, effects = self._subscriptions.on_partitions_lost(tps)
        self._shell.carry_out(effects)
        async with self._lock:
            await self._report_losses()

    async def _report_losses(self) -> None:
        """Calls `on_lost` for losses of which it was not called, or was interrupted."""
        unreported = self._subscriptions.revocations.unreported_losses
        losses = frozenset(unreported)
        await self._call("on_lost", losses)
        unreported -= losses

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        """Adds these; they are fetched when `on_assigned` has returned."""
        async with self._lock:
            if self._is_closing:
                return
            await self._report_losses()
            added = [tp for tp in tps if tp not in self._subscriptions.partitions]
            topics = self._view.cluster.topics
            self._shell.carry_out(self._subscriptions.assign(added, topics, self._shell.member))
            try:
                await self._call("on_assigned", added)
            finally:
                self._shell.carry_out(self._subscriptions.on_callback_returned(added))

    def on_member_failed(self, error: KprotoError) -> None:
        """Drops all partitions that are not being revoked, because the member cannot go on."""
        self._shell.carry_out(self._subscriptions.drop_all())
        self._shell.fail(error)

    def poll_interval_exceeded(self, now: float) -> bool:
        """Returns True if the last poll was longer ago than max_poll_interval_ms."""
        return not self._is_closing and now - self._last_poll_at(now) > self._max_poll_s

    # For the consumer

    def on_poll(self) -> None:
        """Records in flight may be processed now: a revocation looks again."""
        self._polled.set()

    @property
    def is_telling(self) -> bool:
        """True while a callback runs."""
        return self._caller is not None

    @property
    def is_calling(self) -> bool:
        """True if a callback runs in the current task."""
        return self._caller is not None and self._caller is asyncio.current_task()

    async def close(self, until: float) -> None:
        """Revokes everything, and assigns nothing more; records in flight are not waited for.

        A callback that runs has until then, in seconds: the member ends it when it leaves.
        """
        self._is_closing = True
        self._polled.set()
        gone, effects = self._subscriptions.mark_pending_revocation(
            list(self._subscriptions.partitions)
        )
        self._shell.carry_out(effects)
        try:
            async with self._view.clock.timeout(max(0.0, until - self._view.clock.monotonic())):
                await self._lock.acquire()
        except TimeoutError:
            logger.warning(
                "%s: given up without a word or a last commit: a callback is not at its end yet",
                named(gone),
            )
            return
        try:
            await self._report_losses()
            await self._finish_revocation(gone, until)
        finally:
            self._lock.release()
        self._subscriptions.complete_revocation(gone)

    # How

    async def _finish_revocation(self, gone: _States, until: float) -> None:
        """Waits for records in flight, calls `on_revoked`, and commits what is processed."""
        await self._until_processed(gone, until)
        revocations = self._subscriptions.revocations
        revocations.on_listener_called(gone)
        has_returned = await self._call("on_revoked", revocations.not_returned(gone))
        if has_returned:
            revocations.on_listener_returned(gone)
        others_until = until if self._is_closing else self._view.clock.monotonic() + _LEAST_S
        if has_returned and self._auto_commit:
            await self._commit_last(CommitRequest(CommitKind.DUE, gone), until)
        elif self._subscriptions.commit_state.begun(gone):
            await self._commit_last(CommitRequest(CommitKind.START_OFFSETS, gone), until)
        await self.committer.end(others_until)

    def _last_poll_at(self, now: float) -> float:
        return self._subscriptions.poll.last_poll_at(now, is_polling=self._status.is_polling)

    async def _until_processed(self, gone: _States, until: float) -> None:
        """Waits until no record of these is in flight."""
        view = self._view
        last_poll_at = self._last_poll_at(view.clock.monotonic())
        until = min(until, last_poll_at + self._max_poll_s)
        try:
            async with view.clock.timeout(max(0.0, until - view.clock.monotonic())):
                while not self._is_closing and self._subscriptions.poll.has_in_flight(gone):
                    self._polled.clear()
                    await self._polled.wait()
        except TimeoutError:
            logger.warning(
                "%s: given up with a record in the user's hands, who has not asked for the next "
                "within max_poll_interval_ms: it comes again",
                named(gone),
            )

    async def _call(self, name: str, tps: Iterable[TopicPartition]) -> bool:
        """Calls a callback; returns False if it raised, which the next poll raises again."""
        told = sorted(tps)
        callback: Callback | None = getattr(self._callbacks, name)
        if callback is None and name == "on_lost":
            callback = self._callbacks.on_revoked
        if callback is None or not told:
            return True
        logger.info("%s: %s", name, named(told))
        self._caller = caller = asyncio.current_task()
        assert caller is not None, "the member and `close` have tasks"
        before = caller.cancelling()
        try:
            answer = callback(told)
            if inspect.isawaitable(answer):
                await answer
            if caller.cancelling() > before:
                raise asyncio.CancelledError  # which the callback has swallowed
        except Exception as error:  # noqa: BLE001 - the next poll raises it
            error.add_note(f"raised by {name} for {named(told)}")
            if isinstance(error, StopAsyncIteration):  # which would end an iteration in silence
                fault = RuntimeError(f"{name} raised StopAsyncIteration")
                fault.__cause__ = error
                self._shell.report(fault)
            else:
                self._shell.report(error)
            return False
        finally:
            self._caller = None
        return True

    async def _commit_last(self, request: CommitRequest, until: float) -> None:
        """Commits partitions before other members read them."""
        clock = self._view.clock
        least_s = LAST_ATTEMPT_S if self._is_closing else _LEAST_S
        left_s = max(least_s, until - clock.monotonic())
        limit_ms = min(round(left_s * 1000), self._view.settings.api_timeout_ms)
        try:
            await self.committer.commit(request, limit_ms)
        except KprotoError as error:
            left = self._subscriptions.offsets_to_commit(request, clock.monotonic())
            if left:
                logger.warning("%s: what is done was not committed: %s", named(left), error)
