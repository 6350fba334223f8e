"""`RebalanceListenerInvoker`: changes the assignment in Kafka's order, and calls the callbacks.

Fetching of a revoked partition stops at once. When its returned records are processed, `on_revoked`
is called, its processed offset is committed if `auto_commit` is True, and the partition is released
to other members. The member decides which partitions are assigned and revoked; `subscription_state`
owns their states.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from ...wire.errors import ConfigurationError, KprotoError
from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.committer import Committer
from ..core.retry import LAST_ATTEMPT_S
from ..fetch.partition_state import TopicPartitionState
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition, format_partitions
from ..metadata.cluster_view import ClusterView
from ..processing.run_transactions import RunTransactions
from .group_effects import GroupEffectHandler
from .poll_status import PollStatus

__all__ = ["CallbackHolder", "RebalanceCallback", "RebalanceCallbacks", "RebalanceListenerInvoker"]

logger = logging.getLogger("kproto.client")

#: A function or a coroutine function of a list of partitions, in ascending order.
RebalanceCallback: TypeAlias = Callable[[list[TopicPartition]], Awaitable[object] | None]

_States: TypeAlias = Mapping[TopicPartition, TopicPartitionState]

#: The least time in seconds for the commit of revoked partitions, even if records were in flight
#: until the deadline of the revocation. While other members wait for the partitions, the
#: coordinator still accepts commits for them.
_MIN_COMMIT_S: Final = 5.0


_OVER: Final = "the time of the cancelled close is over (error_flush_ms and cancelled_close_ms)"


class RebalanceCallbacks(NamedTuple):
    """The user's callbacks. If `on_lost` is None, `on_revoked` is called instead, as in Kafka."""

    on_assigned: RebalanceCallback | None = None
    on_revoked: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None

    def check(self) -> None:
        """Raises ConfigurationError if a callback is neither None nor callable."""
        for name, each in self._asdict().items():
            if each is not None and not callable(each):
                raise ConfigurationError(f"{name} is {each!r:.80}; it must be a function, or None")


class CallbackHolder:
    """Holds the user's callbacks for the consumer.

    The task of a member refers to `RebalanceListenerInvoker`, and a callback may refer to the
    consumer. The invoker refers to this holder only weakly, so that the task does not prevent the
    garbage collection of the consumer.
    """

    __slots__ = ("__weakref__", "callbacks")

    def __init__(self, callbacks: RebalanceCallbacks) -> None:
        self.callbacks = callbacks


class RebalanceListenerInvoker:
    """The `AssignmentListener` of the member; runs one callback at a time, in the order of calls.

    `holder` has the callbacks; the consumer keeps `holder` alive.
    """

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        effect_handler: GroupEffectHandler,
        status: PollStatus,
        holder: CallbackHolder,
        *,
        auto_commit: bool,
        max_poll_interval_ms: int,
    ) -> None:
        self._view = view
        self._subscriptions = subscriptions
        self._effects = effect_handler
        self._status = status
        self._holder = weakref.ref(holder)
        self._auto_commit = auto_commit
        self._max_poll_s = max_poll_interval_ms / 1000
        self.committer: Committer  # set later: its member needs this listener
        self.transactions: RunTransactions | None = None  # during `run` with a transactional id
        self._lock = asyncio.Lock()
        self._poll_event = asyncio.Event()
        self._callback_task: asyncio.Task[object] | None = None  # runs a callback
        self._is_closing = False
        self._close_task: asyncio.Task[object] | None = None  # runs `close`
        self._is_over_limit = False  # `close` calls no further callback

    # The AssignmentListener

    def owned_partitions(self) -> Collection[TopicPartition]:
        """Returns the assigned partitions, including partitions that are being revoked."""
        return [*self._subscriptions.partitions, *self._subscriptions.revocations.tps]

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        """Revokes partitions by `until`, in seconds of the clock; the member can commit until then.

        Waits until their returned records are processed, but at most until `until`, and at most
        until max_poll_interval_ms after the last poll. Then calls `on_revoked`. With `auto_commit`,
        commits processed offsets. Without `auto_commit`, or if `on_revoked` raised, commits only
        start offsets. Also waits for explicit commits in flight.

        If the member cancels this call, the member later reports the partitions as lost, or revokes
        them again. The second revocation calls `on_revoked` only if the first call of `on_revoked`
        has not returned.
        """
        self._effects.apply_topic_metadata()  # avoids a commit for a topic that was recreated
        revoked, effects = self._subscriptions.mark_pending_revocation(tps)
        self._effects.apply(effects)
        try:
            async with self._lock:
                revoked = self._subscriptions.revocations.resume(revoked, tps)
                await self._finish_revocation(revoked, until)
        except asyncio.CancelledError:
            self._subscriptions.revocations.interrupt(revoked)
            raise
        self._subscriptions.abandon(revoked)
        self._subscriptions.complete_revocation(revoked)

    async def on_partitions_lost(self, tps: Collection[TopicPartition]) -> None:
        """Drops partitions that other members may own already; their offsets are not committed.

        If this call is cancelled, the next call of `on_partitions_lost`, `assign` or `close` first
        repeats the user's callback `on_lost`.
        """
        _, effects = self._subscriptions.on_partitions_lost(tps)
        self._effects.apply(effects)
        async with self._lock:
            await self._report_losses()

    async def _report_losses(self) -> None:
        """Calls `on_lost` for lost partitions for which no call of `on_lost` has returned yet."""
        unreported = self._subscriptions.revocations.unreported_losses
        losses = frozenset(unreported)
        await self._call("on_lost", losses)
        unreported -= losses

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        """Adds partitions, except after `close`; fetches wait until `on_assigned` returns."""
        async with self._lock:
            if self._is_closing:
                return
            await self._report_losses()
            added = [tp for tp in tps if tp not in self._subscriptions.partitions]
            cluster = self._view.cluster
            effects = self._subscriptions.assign(
                added, cluster.topics, cluster.version, self._effects.member
            )
            self._effects.apply(effects)
            try:
                await self._call("on_assigned", added)
            finally:
                self._effects.apply(self._subscriptions.on_callback_returned(added))

    def on_member_failed(self, error: KprotoError) -> None:
        """Drops all assigned partitions, and makes each poll raise `error`.

        Partitions that are being revoked are not dropped.
        """
        self._effects.apply(self._subscriptions.drop_all())
        self._effects.fail(error)

    def poll_interval_exceeded(self, now: float) -> bool:
        """Returns True if the last poll was more than max_poll_interval_ms before `now`.

        During `run`, this time counts from the start of the oldest record that a handler processes,
        not from the last poll. Returns False during `close`.
        """
        return not self._is_closing and now - self._last_poll_at(now) > self._max_poll_s

    # For the consumer

    def hold(self, holder: CallbackHolder) -> None:
        """Refers weakly to `holder` again: garbage collection may have cleared the reference."""
        self._holder = weakref.ref(holder)

    def on_poll(self) -> None:
        """Wakes a revocation that waits for the processing of records: the caller polls again.

        The revocation then checks again whether all records are processed.
        """
        self._poll_event.set()

    @property
    def is_callback_running(self) -> bool:
        """True while a callback runs."""
        return self._callback_task is not None

    @property
    def is_in_callback(self) -> bool:
        """True if a callback runs in the current task."""
        return self._callback_task is not None and self._callback_task is asyncio.current_task()

    async def close(self, until: float) -> None:
        """Revokes all partitions like `revoke`, but does not wait for the processing of records.

        Later calls of `assign` do nothing. If a call of `close` is cancelled, the next call
        completes the close: it commits the offsets, and calls `on_revoked` if `on_revoked` has not
        returned in the earlier call. If another callback still runs at `until`, in seconds of the
        clock, `close` does not call `on_revoked` and commits no offset. The member cancels that
        callback when it leaves.
        """
        self._is_closing = True
        self._close_task = asyncio.current_task()
        self._poll_event.set()
        revoked, effects = self._subscriptions.mark_pending_revocation(
            list(self._subscriptions.partitions)
        )
        self._effects.apply(effects)
        try:
            async with self._view.clock.timeout(max(0.0, until - self._view.clock.monotonic())):
                await self._lock.acquire()
        except TimeoutError:
            logger.warning(
                "%s: revoked without on_revoked and without a last commit, because another "
                "callback is still running",
                format_partitions(revoked),
            )
            return
        try:
            await self._report_losses()
            # A cancelled close has not completed its revocation: this one does.
            revoked = self._subscriptions.revocations.committable() | revoked
            await self._finish_revocation(revoked, until)
        finally:
            self._lock.release()
        self._subscriptions.complete_revocation(revoked)

    def end_callbacks(self) -> None:
        """Cancels the callback that `close` calls, and makes `close` call no further callback.

        `close` continues: it commits start offsets, and the member can leave the group.
        """
        self._is_over_limit = True
        if self._close_task is not None and self._callback_task is self._close_task:
            self._close_task.cancel()

    # Revoking and calling

    async def _finish_revocation(self, revoked: _States, until: float) -> None:
        """Waits for the processing of records, calls `on_revoked`, and commits due offsets."""
        await self._until_processed(revoked, until)
        revocations = self._subscriptions.revocations
        revocations.on_listener_called(revoked)
        has_returned = await self._call("on_revoked", revocations.not_returned(revoked))
        if has_returned:
            revocations.on_listener_returned(revoked)
        others_until = until if self._is_closing else self._view.clock.monotonic() + _MIN_COMMIT_S
        if has_returned and self._auto_commit:
            await self._commit_before_release(CommitRequest(CommitKind.DUE, revoked), until)
        elif self._subscriptions.commit_state.start_offsets(revoked):
            await self._commit_before_release(
                CommitRequest(CommitKind.START_OFFSETS, revoked), until
            )
        if self.transactions is not None:
            await self.transactions.end_before_release(others_until)
        await self.committer.end(others_until)

    def _last_poll_at(self, now: float) -> float:
        return self._subscriptions.poll.last_poll_at(now, is_polling=self._status.is_polling)

    async def _until_processed(self, revoked: _States, until: float) -> None:
        """Waits until the returned records of `revoked` are processed, or the consumer is closed.

        Waits at most until the earlier of `until` and max_poll_interval_ms after the last poll.
        """
        view = self._view
        last_poll_at = self._last_poll_at(view.clock.monotonic())
        until = min(until, last_poll_at + self._max_poll_s)
        try:
            async with view.clock.timeout(max(0.0, until - view.clock.monotonic())):
                while not self._is_closing and self._subscriptions.poll.has_in_flight(revoked):
                    self._poll_event.clear()
                    await self._poll_event.wait()
        except TimeoutError:
            logger.warning(
                "%s: revoked with a record in flight, because the last poll was more than "
                "max_poll_interval_ms ago: the record is redelivered",
                format_partitions(revoked),
            )

    async def _call(self, name: str, tps: Iterable[TopicPartition]) -> bool:
        """Calls the user's callback `name` with the sorted partitions.

        If the user has set no `on_lost`, calls `on_revoked` instead. Returns True if the callback
        has returned. Also returns True if no callback is set or there are no partitions, because
        then there is nothing to call. Returns False if the callback raised an exception, which the
        next poll raises. Also returns False if `end_callbacks` has cancelled the callback, or does
        not allow the call.
        """
        partitions = sorted(tps)
        holder = self._holder()
        callbacks = RebalanceCallbacks() if holder is None else holder.callbacks
        callback: RebalanceCallback | None = getattr(callbacks, name)
        if callback is None and name == "on_lost":
            callback = callbacks.on_revoked
        if callback is None or not partitions:
            return True
        is_limited = asyncio.current_task() is self._close_task
        if is_limited and self._is_over_limit:
            logger.warning(
                "%s was not called for %s: %s", name, format_partitions(partitions), _OVER
            )
            return False
        logger.info("%s: %s", name, format_partitions(partitions))
        self._callback_task = task = asyncio.current_task()
        assert task is not None, "the member and `close` have tasks"
        before = task.cancelling()
        try:
            answer = callback(partitions)
            if inspect.isawaitable(answer):
                await answer
            if task.cancelling() > before:
                raise asyncio.CancelledError  # the callback has swallowed the cancellation
        except asyncio.CancelledError:
            if not (is_limited and self._is_over_limit) or task.uncancel() > before:
                raise
            logger.warning(
                "%s was cancelled for %s: %s", name, format_partitions(partitions), _OVER
            )
            return False
        except Exception as error:  # noqa: BLE001 - the next poll raises it
            error.add_note(f"raised by {name} for {format_partitions(partitions)}")
            if isinstance(error, StopAsyncIteration):  # it would end an iteration silently
                fault = RuntimeError(f"{name} raised StopAsyncIteration")
                fault.__cause__ = error
                self._effects.report(fault)
            else:
                self._effects.report(error)
            return False
        finally:
            self._callback_task = None
        return True

    async def _commit_before_release(self, request: CommitRequest, until: float) -> None:
        """Commits offsets before other members read the partitions; logs a failure."""
        clock = self._view.clock
        min_s = LAST_ATTEMPT_S if self._is_closing else _MIN_COMMIT_S
        left_s = max(min_s, until - clock.monotonic())
        limit_ms = min(round(left_s * 1000), self._view.settings.api_timeout_ms)
        try:
            await self.committer.commit(request, limit_ms)
        except KprotoError as error:
            left = self._subscriptions.committable.offsets_to_commit(request, clock.monotonic())
            if left:
                logger.warning(
                    "%s: processed offsets were not committed: %s", format_partitions(left), error
                )
