"""Decides and carries out what follows the failure of a handler: retry, forward, or end of `run`.

`failure_policy` has the rules; a `Stop` and a cancellation are handled here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from typing import Protocol

from ...clock import Clock
from ...records import Record
from ...wire.errors import UnreadableRecordError
from .failure_headers import add_record_note, error_text, has_readable_headers
from .failure_log import log_failure
from .failure_policy import Forward, Retry, find_stop, next_step
from .forwarding import send_forwarded
from .handlers import InvalidFailuresError, NotAsyncError, UndecodableError
from .ports import RecordSink
from .retained_failures import RetainedFailures, TransactionRestartedError
from .settings import RunSettings
from .shard import Shard
from .tracker import RecordTracker
from .worker import PoolWorker

__all__ = ["FailureHandler", "PoolControl"]


class PoolControl(Protocol):
    """The attributes and methods of the pool that `FailureHandler` uses."""

    @property
    def is_stopping(self) -> bool: ...

    @property
    def error(self) -> BaseException | None: ...

    def stop(self) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    def set_timer(self) -> None: ...


class FailureHandler:
    """Handles the failures of one pool, and counts the results.

    `handled` counts the records that a `Stop` has marked as done. Failure headers name `group_id`.
    If transactions commit the records, `retained` keeps the failures after the abort of a
    transaction.
    """

    def __init__(
        self,
        pool: PoolControl,
        tracker: RecordTracker,
        clock: Clock,
        settings: RunSettings,
        forward_producer: RecordSink | None,
        group_id: str,
        retained: RetainedFailures | None = None,
    ) -> None:
        self._pool = pool
        self._tracker = tracker
        self._clock = clock
        self._settings = settings
        self._forward_producer = forward_producer
        self._group_id = group_id
        self._retained = retained
        self.handled = self.retried = self.sent_to_retry = self.dead_letters = 0

    async def handle(
        self, worker: PoolWorker, shard: Shard, record: Record, error: BaseException
    ) -> None:
        """Abandons, completes, retries or forwards the failed record, and may end the pool.

        `error` is the exception that the handler raised for the record.
        """
        if isinstance(error, TransactionRestartedError):
            shard.abandon(record)
            return
        stop = find_stop(error)
        if stop is not None:
            if error is not stop and not stop.done:
                log_failure(record, error, "is not processed, and is redelivered")
            if stop.done and not shard.is_lost:
                shard.complete(record)
                self.handled += 1
            else:
                shard.abandon(record)
            self._pool.stop()
        elif isinstance(error, NotAsyncError | InvalidFailuresError) or not isinstance(
            error, Exception | asyncio.CancelledError
        ):
            shard.abandon(record)
            self._pool.fail(add_record_note(error, record))
        elif shard.is_lost or worker.is_cancelled:
            shard.abandon(record)
            if isinstance(error, Exception):
                what = "failed after its partition was lost or its handler cancelled"
                level = logging.WARNING if self._retained is None else logging.DEBUG
                log_failure(record, error, what, level)
        elif worker.task.cancelling() and await self._is_ending(worker):
            shard.abandon(record)
        else:
            await self._apply_policy(worker, shard, record, error)

    async def _is_ending(self, worker: PoolWorker) -> bool:
        """Returns True if a worker that was cancelled must end, because the pool ends.

        A program that cancels all tasks cancels `run` in the same iteration of the event loop as
        the worker, so the call waits for the end of that iteration. Returns False if the handler
        has cancelled its own task: the handler has failed, and the task continues.
        """
        while worker.task.uncancel():
            pass
        with suppress(asyncio.CancelledError):  # a pending cancellation, or that of the pool
            await asyncio.sleep(0)
        return worker.is_cancelled or self._pool.is_stopping

    async def _apply_policy(
        self, worker: PoolWorker, shard: Shard, record: Record, error: BaseException
    ) -> None:
        is_decoded = not isinstance(
            error, UndecodableError | UnreadableRecordError
        ) and has_readable_headers(record)
        if isinstance(error, UndecodableError) and error.__cause__ is not None:
            error = error.__cause__
        retained = self._retained
        attempts = (
            shard.count_failure(record) if retained is None else retained.count_failure(record)
        )
        chance = random.random()  # noqa: S311 - jitter, no secret
        step = next_step(
            self._settings, record.topic, error, attempts, chance, is_decoded=is_decoded
        )
        if retained is not None and not isinstance(step, Retry):
            retained.on_last_attempt(record, error)
        if isinstance(step, Retry):
            self.retried += 1
            self._retry_later(shard, record, step.wait_ms)
        elif isinstance(step, Forward):
            await self._forward(worker, shard, record, error, attempts, step)
        else:
            shard.abandon(record)
            self._pool.fail(add_record_note(error, record))

    def _retry_later(self, shard: Shard, record: Record, wait_ms: float) -> None:
        if shard.is_lost:
            shard.abandon(record)
            return
        shard.retry_later(record)
        self._tracker.schedule(shard, record, self._clock.monotonic() + wait_ms / 1000)
        self._pool.set_timer()

    async def _forward(
        self,
        worker: PoolWorker,
        shard: Shard,
        record: Record,
        error: BaseException,
        attempts: int,
        step: Forward,
    ) -> None:
        producer, retained = self._forward_producer, self._retained
        assert producer is not None, "there are topics to send to"
        due_ms = None if step.delay_ms is None else self._clock.now_ms() + step.delay_ms
        try:
            await send_forwarded(
                producer,
                step.topic,
                record,
                error,
                group_id=self._group_id,
                attempts=attempts,
                due_ms=due_ms,
                refused_forms=() if retained is None else retained.refused_forms_of(record),
            )
        except TransactionRestartedError as restarted:
            if restarted.too_large is not None and retained is not None:
                retained.on_form_refused(record, restarted.too_large)
            shard.abandon(record)
        except asyncio.CancelledError:
            if worker.is_cancelled:
                shard.abandon(record)
                return
            self._retry_later(shard, record, 0.0)
            raise
        except Exception as fault:  # noqa: BLE001 - `run` raises it
            why = f"{type(error).__name__}: {error_text(error)}"
            fault.add_note(f"while sending it to {step.topic}, because its handler failed: {why}")
            shard.abandon(record)
            self._pool.fail(add_record_note(fault, record))
        else:
            shard.complete(record)
            level = logging.WARNING
            if step.delay_ms is None:
                self.dead_letters += 1
            else:
                self.sent_to_retry += 1
                level = logging.INFO
            log_failure(record, error, f"was sent to {step.topic}", level)

    async def handle_all(
        self,
        worker: PoolWorker,
        shard: Shard,
        failed: list[tuple[Record, BaseException]],
    ) -> None:
        """Applies `handle` to each failed record of a batch, in the order of the offsets."""
        is_ending = bool(failed and worker.task.cancelling()) and await self._is_ending(worker)
        reported: BaseException | None = None
        for at, (record, error) in enumerate(failed):
            if (is_ending and find_stop(error) is None) or error is reported:
                shard.abandon(record)
                continue
            try:
                await self.handle(worker, shard, record, error)
            except BaseException:
                for other, _ in failed[at + 1 :]:
                    shard.abandon(other)
                raise
            if self._pool.error is error:
                reported = error  # its note names the first record
