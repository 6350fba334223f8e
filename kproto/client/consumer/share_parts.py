"""`ShareParts`: the fetcher, the group member and the close of a share consumer.

None of these objects references the consumer, so that Python can destroy a consumer that the
program has dropped; the parts are then closed in the background.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from ...tasks import start_task
from ...wire.errors import KprotoError, RequestTimeoutError
from ..core.retry import LAST_ATTEMPT_S
from ..core.tasks import shielded
from ..fetch.share.acquisition import AcknowledgeType, OffsetState, ShareRecord
from ..fetch.share.fetcher import ShareFetcher
from ..fetch.share.requests import AcknowledgeResult, FetchLimits, ShareFetchOptions
from ..groups.share.member import ShareMember
from ..groups.share.settings import ShareGroupSettings
from ..groups.subscription import Subscription
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..observing.log_lines import log
from ..processing.share_pool import SharePool
from .poll_status import PollStatus

__all__ = ["ResultCallback", "ShareParts"]

logger = logging.getLogger("kproto.client")

#: Gets the result of the acknowledgements of one partition in one request.
ResultCallback: TypeAlias = Callable[[AcknowledgeResult], object]

_NEVER: Final = float("inf")


class _PollSource(Protocol):
    """The method of a share consumer that the port of a pool calls."""

    async def _poll(self, poller: object, take: Callable[[], Any], ends_at: float = ...) -> Any: ...


class ShareParts:
    """The parts of one share consumer; `close` closes them, also after a cancelled close."""

    def __init__(
        self,
        view: ClusterView,
        settings: ShareGroupSettings,
        limits: FetchLimits,
        on_acknowledged: ResultCallback | None,
        on_background_close: Callable[[asyncio.Task[None]], object] | None,
    ) -> None:
        self._view = view
        self._settings = settings
        self._on_acknowledged = on_acknowledged
        self._on_background_close = on_background_close
        self.status = PollStatus()
        options = ShareFetchOptions(
            settings.group_id, limits, settings.limits_records, settings.is_explicit
        )
        self._arrival = asyncio.Event()
        self.member = ShareMember(view, settings.member_settings, self)
        self.fetcher = ShareFetcher(
            view,
            options,
            self.member.member_id,
            on_arrival=self._arrival.set,
            on_error=self._on_error,
            on_results=self._on_results,
        )
        self.pool: SharePool | None = None
        self._run_ended = asyncio.Event()
        self._has_started = False
        self._lock = asyncio.Lock()
        self._last_poll_at = 0.0
        self._returned_at: float | None = None
        self._begun_count = 0
        self._processing_s = 0.0  # of the records of the current fetch
        self._progress: object = None

    def start(self, subscription: Subscription) -> None:
        """Starts the member and the fetcher."""
        self._has_started = True
        self._last_poll_at = self._view.clock.monotonic()
        self.subscribe(subscription)
        self.member.start()
        self.fetcher.start()

    def subscribe(self, subscription: Subscription) -> None:
        """Replaces the subscription; releases the records of other topics that wait in a buffer."""
        self.member.subscribe(subscription)
        self.fetcher.subscribe(subscription.topics)

    # Polls

    def on_poll(self, now: float) -> None:
        """Notes a poll: returned records are accepted, unless acknowledgement is explicit."""
        if self._returned_at is not None:
            self._processing_s += now - self._returned_at
            self._returned_at = None
        self._last_poll_at = now
        self.fetcher.resume()
        self.fetcher.accept_returned()
        self.member.on_poll()

    def on_returned(self, now: float) -> None:
        """Notes that a poll returns records."""
        self._last_poll_at = self._returned_at = now
        begun_count = self.fetcher.buffer.begun_count
        if begun_count != self._begun_count:
            self._begun_count = begun_count
            self.fetcher.last_processing_s, self._processing_s = self._processing_s, 0.0
        self.fetcher.on_list_returned()
        self.fetcher.wake()  # the next list may be fetched in advance

    async def until_arrival(self, ends_at: float) -> None:
        """Waits until records or an error arrive, or the consumer is closed, or until `ends_at`."""
        self._arrival.clear()
        self.fetcher.wake()
        if ends_at == _NEVER:
            await self._arrival.wait()
            return
        clock = self._view.clock
        try:
            async with clock.timeout(max(0.0, ends_at - clock.monotonic())):
                await self._arrival.wait()
        except TimeoutError:
            return

    def _on_error(self, error: KprotoError) -> None:
        """Makes the next poll raise `error`; nothing is fetched before that poll."""
        self.status.report_error(error)
        self.fetcher.pause()
        self._arrival.set()

    def _on_results(self, results: list[AcknowledgeResult]) -> None:
        for result in results:
            if self._on_acknowledged is not None:
                try:
                    self._on_acknowledged(result)
                except Exception as fault:  # noqa: BLE001 - the next poll raises it
                    self.status.report_error(fault)
                    self._arrival.set()
            elif result.error is not None:
                log(
                    logging.WARNING,
                    "group %s: acknowledgements of %s[%d] have failed, and the records may be "
                    "delivered again: %s",
                    self._settings.group_id,
                    result.topic,
                    result.partition,
                    result.error,
                )

    # AssignmentListener

    def owned_partitions(self) -> Collection[TopicPartition]:
        """Returns the assigned partitions."""
        return self.fetcher.assigned

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        """Removes partitions; their records keep their locks, and are returned and acknowledged."""
        self.fetcher.revoke(tps)

    async def on_partitions_lost(self, tps: Collection[TopicPartition]) -> None:
        """Removes the partitions of a member that was fenced."""
        self.fetcher.revoke(tps)

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        """Adds partitions."""
        ids = {tp: self.member.topic_id_of(tp) for tp in tps}
        self.fetcher.assign({tp: each for tp, each in ids.items() if each is not None})

    def on_member_failed(self, error: KprotoError) -> None:
        """Makes each poll raise the error that ended the member."""
        self.status.fatal_error = error
        self._arrival.set()

    def poll_interval_exceeded(self, now: float) -> bool:
        """Returns True if the last poll was more than `max_poll_interval_ms` before `now`."""
        progress = self.fetcher.buffer.progress
        if self.pool is not None:
            self._last_poll_at = self.pool.oldest_started_at(now)
        elif self.status.is_polling or progress != self._progress:
            self._last_poll_at = now
        self._progress = progress
        return now - self._last_poll_at > self._settings.max_poll_interval_ms / 1000

    # Run

    def pool_port(self, source: _PollSource) -> SharePortOfConsumer:
        """Returns the port of the pool of `run`."""
        return SharePortOfConsumer(source, self.fetcher, self._view)

    def begin_run(self, pool: SharePool) -> None:
        """Stores the pool of a `run`."""
        self.pool = pool
        self._run_ended.clear()

    def end_run(self) -> None:
        """Forgets the pool of a `run`."""
        self.pool = None
        self.fetcher.limit_acquisition(None)
        self._last_poll_at = self._view.clock.monotonic()
        self._run_ended.set()

    # Close

    async def close(self, limit_ms: int) -> None:
        """Closes the parts; see `ShareConsumer.close`."""
        await self._close_limited(limit_ms, is_cancelled=False)

    async def close_after_error(self, limit_ms: int, *, is_cancelled: bool) -> None:
        """Closes the parts within `limit_ms`; logs the error of a close that takes too long."""
        try:
            await self._close_limited(limit_ms, is_cancelled=is_cancelled)
        except RequestTimeoutError as timeout:
            logger.warning("not raised: %s", timeout)

    def start_background_close(self) -> None:
        """Starts a task that closes the parts, because the program has dropped the consumer."""
        task = start_task(self._close_in_background())
        if self._on_background_close is not None:
            self._on_background_close(task)

    async def _close_in_background(self) -> None:
        try:
            await self.close(self._view.settings.error_flush_ms)
        except Exception as error:  # noqa: BLE001 - no caller is left
            logger.warning("not raised: %s", error)

    async def _close_limited(self, limit_ms: int, *, is_cancelled: bool) -> None:
        self.fetcher.pause()  # before the first wait: a prefetch would cost its records a delivery
        await shielded(
            self._close(limit_ms),
            self._view.clock,
            self._view.settings.max_cancelled_close_ms,
            what=f"the close of a consumer of the share group {self._settings.group_id!r}",
            is_cancelled=is_cancelled,
            on_limit=self._on_limit,
            rest_ms=self._view.settings.error_flush_ms,
        )

    def _on_limit(self) -> None:
        if self.pool is not None:
            self.pool.end_drain()

    async def _close(self, limit_ms: int) -> None:
        pool = self.pool
        if pool is not None:
            pool.stop()
            await self._run_ended.wait()
        self.status.is_closed = True
        self._arrival.set()
        async with self._lock:
            if not self._has_started:
                return
            clock = self._view.clock
            until = clock.monotonic() + limit_ms / 1000
            self.fetcher.accept_processed()
            try:
                async with clock.timeout(max(0.0, until - clock.monotonic())):
                    await self.fetcher.close()
            except TimeoutError:
                logger.warning(
                    "group %s: the share sessions were not closed within %d ms; the brokers "
                    "release the records when the connections are closed",
                    self._settings.group_id,
                    limit_ms,
                )
            finally:
                try:
                    await self.fetcher.end()
                finally:
                    await self._leave(until)
            self._has_started = False

    async def _leave(self, until: float) -> None:
        clock = self._view.clock
        until = max(until, clock.monotonic() + LAST_ATTEMPT_S)
        limit_ms = round((until - clock.monotonic()) * 1000)
        try:
            await self._view.with_deadline(until, self.member.leave(True), limit_ms)
        except KprotoError as error:
            logger.warning("group %s could not be left: %s", self._settings.group_id, error)
        finally:
            await self.member.close()


class SharePortOfConsumer:
    """The `SharePort` of a share consumer."""

    def __init__(self, source: _PollSource, fetcher: ShareFetcher, view: ClusterView) -> None:
        self._source = source
        self._fetcher = fetcher
        self._clock = view.clock

    async def poll_list(self, pool: object, most: int | None) -> list[Any] | None:
        """Returns records; None if the consumer is closed."""
        self._fetcher.limit_acquisition(most)
        buffer = self._fetcher.buffer
        if most is None:
            taken = await self._source._poll(pool, buffer.take_list)
            return None if taken is None else taken[1]
        # All fetched records: the pool counts the records that it holds.
        polled = await self._source._poll(pool, partial(buffer.take_polled, sys.maxsize))
        return None if polled is None else [each for its in polled.values() for each in its]

    @property
    def has_more(self) -> bool:
        """True if the last fetch has acquired as many records as it was allowed to."""
        return self._fetcher.has_more

    def accept(self, record: Any) -> None:
        """Accepts a record."""
        self._fetcher.acknowledge(record, AcknowledgeType.ACCEPT)

    def release(self, record: Any) -> None:
        """Releases a record."""
        self._fetcher.acknowledge(record, AcknowledgeType.RELEASE)

    def reject(self, record: Any) -> None:
        """Rejects a record."""
        self._fetcher.acknowledge(record, AcknowledgeType.REJECT)

    def on_stopped(self) -> None:
        """Sends the acknowledgements from now on without fetching."""
        self._fetcher.pause()

    def is_locked(self, record: ShareRecord) -> bool:
        """Returns True if the lock of a record has not ended."""
        acquisition = record.acquisition
        return (
            acquisition is not None
            and self._clock.monotonic() < acquisition.locked_until_of(record.offset)
            and acquisition.states[record.offset - acquisition.first] != OffsetState.LOST
        )

    def renew_if_due(self, record: ShareRecord, share: float) -> None:
        """Renews the lock of a record if `share` of its duration is over."""
        acquisition = record.acquisition
        if acquisition is None:
            return
        left_s = acquisition.locked_until_of(record.offset) - self._clock.monotonic()
        if left_s <= self.lock_s * (1 - share) and not acquisition.is_acknowledged(record.offset):
            self._fetcher.acknowledge(record, AcknowledgeType.RENEW)

    @property
    def lock_s(self) -> float:
        """The duration of a lock, in seconds; 0 if locks cannot be renewed."""
        fetcher = self._fetcher
        return (fetcher.lock_timeout_ms or 0) / 1000 if fetcher.can_renew else 0.0
