"""`ProducerCloser`: flushes and closes a producer, even if the close is cancelled.

A close aborts the open transaction, waits for the calls that append records and for the batches,
and ends all tasks of the producer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final

from ...wire.counted import counted, were
from ...wire.errors import RequestTimeoutError
from ..core.tasks import shielded
from ..metadata.cluster_view import ClusterView
from ..observing.log_lines import log
from ..producer_record import ProducerRecord
from .accumulator import RecordAccumulator
from .appender import RecordAppender
from .errors import DeliveryError
from .failed_deliveries import SETTLE_ITERATIONS
from .producer_transactions import ProducerTransactions
from .sender import Sender

__all__ = ["ProducerCloser"]

logger = logging.getLogger("kproto.client")

#: Names the close in the error of `shielded`.
_CLOSE: Final = "the close of a producer"


class ProducerCloser:
    """Flushes and closes one producer.

    `transactions` is None for a producer without a transactional id. `undelivered` gets the records
    by topic that fail during a close, if no call raises their error.
    """

    def __init__(
        self,
        view: ClusterView,
        accumulator: RecordAccumulator,
        sender: Sender,
        appender: RecordAppender,
        transactions: ProducerTransactions | None,
        undelivered: dict[str, list[ProducerRecord]],
    ) -> None:
        self._view = view
        self._accumulator = accumulator
        self._sender = sender
        self._appender = appender
        self._transactions = transactions
        self._undelivered = undelivered
        self._lock = asyncio.Lock()

    # Flushing

    async def flush(self, timeout_ms: int | None) -> None:
        """Waits until all records are acked or have failed; see `Producer.flush`."""
        if not await self._within_timeout(timeout_ms, self._until_all_completed()):
            waiting = len(self._appender.append_queues.tickets())
            incomplete = self._accumulator.incomplete_records
            calls = ""
            if waiting:
                have = "has" if waiting == 1 else "have"
                calls = f", and {counted(waiting, 'call')} {have} more records"
            if waiting or incomplete:
                raise RequestTimeoutError(
                    f"{counted(incomplete, 'record')} {were(incomplete)} not acknowledged within "
                    f"{timeout_ms} ms{calls}"
                )
        self._raise_unretrieved()

    async def send_buffered(self, timeout_ms: int | None) -> None:
        """Waits as `flush` does, but raises no error, because `close` raises it."""
        await self._within_timeout(timeout_ms, self._until_all_completed())

    async def _within_timeout(self, timeout_ms: int | None, waiting: Awaitable[object]) -> bool:
        """Waits for at most `timeout_ms`; returns True if `waiting` has ended."""
        if timeout_ms is None:
            await waiting
            return True
        try:
            async with self._view.clock.timeout(timeout_ms / 1000):
                await waiting
        except TimeoutError:
            return False
        return True

    async def _until_all_completed(self) -> None:
        await self._until_calls_done()
        await self.until_batches_completed()

    async def _until_calls_done(self) -> None:
        """Waits for the calls that are waiting for metadata or memory now.

        Returns when each of these calls has appended its records, or has failed.
        """
        self._appender.append_collected()
        tickets = self._appender.append_queues.tickets()
        if tickets:
            self._appender.stop_lingering()
            await asyncio.wait([ticket.removal() for ticket in tickets])

    async def until_batches_completed(self) -> None:
        """Waits for the outcome of all appended records."""
        if self._accumulator.incomplete:
            self._appender.stop_lingering()
            await asyncio.wait(set(self._accumulator.incomplete))
        await self._until_failures_settled()

    async def _until_failures_settled(self) -> None:
        """Waits until tasks and callbacks have read the failures of their deliveries.

        Waits for a few iterations of the event loop at most.
        """
        for _ in range(SETTLE_ITERATIONS + 1):
            if not self._accumulator.failed_deliveries.is_settling:
                return
            await asyncio.sleep(0)

    def _unretrieved(self) -> DeliveryError | None:
        """Returns one error for all failed deliveries that no caller has awaited.

        Returns None if there are no such deliveries.
        """
        return self._accumulator.failed_deliveries.take()

    def _raise_unretrieved(self) -> None:
        failure = self._unretrieved()
        if failure is not None:
            raise failure from failure.cause

    def _report_undelivered(self, failure: DeliveryError | None) -> None:
        """Logs how many records have failed, and adds these records to `undelivered`.

        The number includes the records that were dropped to save memory; these cannot be added.
        """
        if failure is None:
            return
        for topic, records in failure.by_topic.items():
            self._undelivered.setdefault(topic, []).extend(records)
        if not failure.records:
            logger.warning("%s", failure)
        elif failure.dropped:
            count = len(failure.records)
            logger.warning("%s; `undelivered` of the producer has the other %d", failure, count)
        else:
            logger.warning("%s; `undelivered` of the producer has the records", failure)

    # Closing

    async def close(self, timeout_ms: int | None) -> None:
        """Sends all records of earlier calls, and closes the producer; see `Producer.close`."""
        self._appender.is_closed = True
        self._appender.append_collected()
        clock = self._view.clock
        ends_at = None if timeout_ms is None else clock.monotonic() + timeout_ms / 1000
        is_alone = await self._within_timeout(timeout_ms, self._lock.acquire())
        try:
            await self._close_by(ends_at)
        finally:
            if is_alone:
                self._lock.release()
        self._raise_unretrieved()

    async def close_after_error(self, timeout_ms: int | None) -> None:
        """Closes the producer within `timeout_ms`, by default `error_flush_ms`.

        If the call is cancelled, once or repeatedly, it sends records for up to
        `max_cancelled_close_ms`. Logs the records that were not delivered, and raises DeliveryError
        with them.
        """
        settings = self._view.settings
        if timeout_ms is None:
            timeout_ms = settings.error_flush_ms
        failure = await shielded(
            self._close_unraised(timeout_ms),
            self._view.clock,
            settings.max_cancelled_close_ms,
            what=_CLOSE,
        )
        if failure is not None:
            raise failure from failure.cause

    async def _close_unraised(self, timeout_ms: int) -> DeliveryError | None:
        """Closes the producer within `timeout_ms`; returns and logs the records that failed."""
        try:
            await self.close(timeout_ms)
        except DeliveryError as failure:
            self._report_undelivered(failure)
            return failure
        return None

    async def _close_by(self, ends_at: float | None) -> None:
        """Sends records until `ends_at`, in seconds of the clock.

        Records that are not acked at `ends_at` fail.
        """
        try:
            await self._close_transactions(ends_at)
            await self._send_all(ends_at)
            await self._sender.close()
            await self._until_failures_settled()
        except asyncio.CancelledError:
            settings = self._view.settings
            left_ms = self._left_ms(ends_at)
            rest_ms = settings.error_flush_ms
            if left_ms is not None:
                rest_ms = min(left_ms, rest_ms)
            try:
                await shielded(
                    self._send_rest(rest_ms),
                    self._view.clock,
                    settings.max_cancelled_close_ms,
                    what=_CLOSE,
                    is_cancelled=True,
                )
            except RequestTimeoutError as timeout:
                log(logging.WARNING, "not raised, because the call was cancelled: %s", timeout)
            raise

    async def _send_rest(self, timeout_ms: int) -> None:
        """Sends the remaining records for at most `timeout_ms`.

        Logs the records that failed, because no call raises them.
        """
        ends_at = self._view.clock.monotonic() + timeout_ms / 1000
        try:
            await self._close_transactions(ends_at)
            await self._send_all(ends_at)
        finally:
            self._appender.append_queues.close()
            await self._sender.close()
            await self._until_failures_settled()
            self._report_undelivered(self._unretrieved())

    async def _close_transactions(self, ends_at: float | None) -> None:
        """Aborts an open transaction; waits at most until `ends_at`, in seconds of the clock."""
        if self._transactions is not None:
            await self._within_timeout(self._left_ms(ends_at), self._transactions.close())
            await self._transactions.stop()

    async def _send_all(self, ends_at: float | None) -> None:
        """Waits until all records are acked or have failed, at most until `ends_at`.

        `ends_at` is in seconds of the clock; None sets no limit. First waits for the calls that
        append records; calls that are not done in time fail. Then waits for the batches.
        """
        limit_ms = self._view.settings.delivery_timeout_ms
        # If the time is over, the calls whose records are incomplete raise the error.
        left_ms = self._left_ms(ends_at)
        calls_ms = limit_ms if left_ms is None else min(limit_ms, left_ms)
        await self._within_timeout(calls_ms, self._until_calls_done())
        self._appender.append_queues.close()
        await self._within_timeout(self._left_ms(ends_at), self.until_batches_completed())

    def _left_ms(self, ends_at: float | None) -> int | None:
        if ends_at is None:
            return None
        return max(0, round((ends_at - self._view.clock.monotonic()) * 1000))
