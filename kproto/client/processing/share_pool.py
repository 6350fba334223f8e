"""Processes the records of a share group: up to `workers` tasks call the handler (KIP-932).

Records have no order. A record is accepted when its handler returns. A failed record is released,
rejected or sent to the dead letter topic, as `share_policy` decides. The pool renews the locks of
all records that it holds, and drops waiting records whose locks have ended nevertheless.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from contextlib import suppress
from typing import Any, Final, Protocol

from ...clock import Clock, Timer
from ...records import Record
from ...tasks import start_task
from ...wire.errors import ConfigurationError, CorruptBatchError
from ..core.tasks import is_in_task, until_ended
from ..core.yielding import LoopYielder
from ..fetch.share.acquisition import LockLostError
from .draining import DrainablePool, until_drained
from .failure_headers import add_record_note, has_readable_headers
from .failure_log import log_failure
from .forwarding import send_forwarded
from .handlers import NotAsyncError, RecordHandler, UndecodableError
from .ports import RecordSink
from .run_summary import ShareRunSummary
from .settings import RunSettings
from .share_look_ahead import ShareLookAhead
from .share_policy import Accept, DeadLetter, Reject, Release, ShareStep, share_step

__all__ = ["LockedRecord", "SharePool", "SharePort"]

logger = logging.getLogger("kproto.client")

#: The pool renews a lock when this share of its duration is over, and checks the locks four times
#: as often.
_RENEW_AFTER: Final = 0.5
_CHECKS_IN_LOCK: Final = 8

#: A worker lets the event loop run after this many seconds of records whose handlers never wait.
_MAX_BATCH_S: Final = 0.005
_CLOCK_EVERY: Final = 16


class LockedRecord(Protocol):
    """The attributes of a record of a share group that the pool uses."""

    @property
    def delivery_count(self) -> int: ...


class SharePort(Protocol):
    """The methods of a share consumer that the pool calls."""

    async def poll_list(self, pool: object, most: int | None) -> list[Any] | None:
        """Returns records, all locked; None if the consumer is closed.

        Raises CorruptBatchError once for records that the consumer has rejected. The fetches for
        this call acquire at most `most` records, or as many as the settings of the consumer say if
        `most` is None.
        """
        ...

    @property
    def has_more(self) -> bool:
        """True if the last fetch has acquired as many records as it was allowed to."""
        ...

    def accept(self, record: Any) -> None: ...
    def release(self, record: Any) -> None: ...
    def reject(self, record: Any) -> None: ...

    def on_stopped(self) -> None:
        """Notes that the pool polls no more: no fetch may acquire records until the next poll."""
        ...

    def is_locked(self, record: Any) -> bool:
        """Returns True if the lock of a record has not ended."""
        ...

    def renew_if_due(self, record: Any, share: float) -> None:
        """Renews the lock of a record if `share` of its duration is over."""
        ...

    @property
    def lock_s(self) -> float:
        """The duration of a lock, in seconds; 0 if locks cannot be renewed."""
        ...


class _Worker:
    __slots__ = ("is_cancelled", "marker", "record", "started_at", "task")

    def __init__(self) -> None:
        self.task: asyncio.Task[None]
        self.record: Any = None
        self.marker: Any = None
        self.started_at = 0.0
        self.is_cancelled = False


class SharePool(DrainablePool):
    """Processes the records of one `run()` of a share consumer.

    Failure headers name `group_id`. `max_poll_records` is that of the consumer.
    """

    def __init__(
        self,
        port: SharePort,
        clock: Clock,
        settings: RunSettings,
        handle: RecordHandler,
        dead_letter_producer: RecordSink | None,
        group_id: str,
        max_poll_records: int,
    ) -> None:
        super().__init__()
        self._port = port
        self._clock = clock
        self._settings = settings
        self._handle = handle
        self._producer = dead_letter_producer
        self._group_id = group_id
        self._queue: deque[Any] = deque()
        self._look_ahead = ShareLookAhead(settings.workers, max_poll_records)
        self._delayed: dict[int, tuple[Any, Timer]] = {}  # by id, until their release
        self._workers: set[_Worker] = set()
        self._changed = asyncio.Event()
        self._is_ending = False
        self._drain_until = float("-inf")
        self._renew_timer: Timer | None = None
        self._yielder = LoopYielder()
        self.handled = self.released = self.rejected = self.dead_letters = 0

    @property
    def summary(self) -> ShareRunSummary:
        """The numbers of accepted, released, rejected and forwarded records so far."""
        return ShareRunSummary(self.handled, self.released, self.rejected, self.dead_letters)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of `summary` by name, for metrics."""
        return self.summary._asdict()

    @property
    def records_in_flight(self) -> int:
        """The number of records that handlers are processing now."""
        return sum(worker.record is not None for worker in self._workers)

    @property
    def is_called_by_handler(self) -> bool:
        """True if the caller is one of the handlers."""
        current = asyncio.current_task()
        return any(worker.task is current for worker in self._workers)

    def oldest_started_at(self, now: float) -> float:
        """Returns the start of the oldest record that a handler is processing; `now` if none is.

        The first call during the processing of a record counts as its start.
        """
        oldest = now
        for worker in self._workers:
            if worker.record is None:
                continue
            if worker.record is not worker.marker:
                worker.marker, worker.started_at = worker.record, now
            oldest = min(oldest, worker.started_at)
        return oldest

    # Start and end

    def use(self, settings: RunSettings) -> None:
        """Replaces the settings; call it before `until_stopped`."""
        self._settings = settings

    async def until_stopped(self) -> None:
        """Polls and processes records until the pool stops, fails, or this call is cancelled.

        Then waits for running handlers for at most `drain_timeout_ms`. A second cancellation
        cancels them at once.
        """
        poll_task = start_task(self._poll_loop())
        poll_task.add_done_callback(self._on_poll_done)
        await until_drained(self, self._is_stopping, poll_task, self._drain_and_end)

    async def _drain_and_end(self, poll_task: asyncio.Task[None]) -> None:
        try:
            with suppress(TimeoutError):
                left_s = max(0.0, self._drain_until - self._clock.monotonic())
                async with self._clock.timeout(left_s):
                    while self._workers and not self._is_cancelling:
                        self._changed.clear()
                        await self._changed.wait()
            if self._workers and not self._is_cancelling:
                logger.warning(
                    "records in flight were not finished within %d ms (drain_timeout_ms): their "
                    "handlers are cancelled, and the records are released",
                    self._settings.drain_timeout_ms,
                )
        finally:
            self._is_ending = True
            self.cancel_handlers()
            await until_ended([poll_task, *(worker.task for worker in self._workers)])
            if self._renew_timer is not None:
                self._renew_timer.cancel()
            self._release_held()

    def stop(self) -> None:
        """Stops starting handlers, and releases the records that have not started."""
        if not self._is_stopping.is_set():
            self._is_stopping.set()
            self._port.on_stopped()
            self._drain_until = self._clock.monotonic() + self._settings.drain_timeout_ms / 1000
            self._release_held()
            self._changed.set()

    def cancel_handlers(self) -> None:
        """Cancels the handlers; their records are released."""
        self._is_cancelling = True
        self._changed.set()
        for worker in self._workers:
            if not worker.is_cancelled:
                worker.is_cancelled = True
                worker.task.cancel()

    def _release_held(self) -> None:
        """Releases the queued records, and the failed records that wait for their release."""
        while self._queue:
            self._acknowledge(self._queue.popleft(), "release")
        for record, timer in [*self._delayed.values()]:
            timer.cancel()
            self._release_delayed(record)

    # Polling

    async def _poll_loop(self) -> None:
        while True:
            while len(self._queue) > self._look_ahead.refill_at:
                self._changed.clear()
                await self._changed.wait()
            if self._is_stopping.is_set():
                return
            try:
                records = await self._port.poll_list(self, self._records_to_acquire())
            except CorruptBatchError as error:
                logger.warning(
                    "group %s: records of %s[%s] that cannot be decoded are rejected, and the run "
                    "continues after them: %s",
                    self._group_id,
                    error.topic,
                    error.partition,
                    error,
                )
                continue
            if records is None:
                return
            self._queue.extend(records)
            if self._is_stopping.is_set():
                self._release_held()
                return
            self._look_ahead.on_filled(len(self._queue), self._clock.monotonic())
            self._schedule_renewal()
            self._start_worker()
            await asyncio.sleep(0)  # lets the workers run

    def _records_to_acquire(self) -> int | None:
        """Returns how many records the next fetches acquire; None if the settings say it."""
        queued, look_ahead = len(self._queue), self._look_ahead
        now = self._clock.monotonic()
        look_ahead.on_poll(queued, now, has_more=self._port.has_more)
        return look_ahead.fetch_limit(queued + self.records_in_flight)

    def _on_poll_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)
        else:
            self.stop()

    # Workers

    def _start_worker(self) -> None:
        if self._queue and len(self._workers) < self._settings.workers and not self._is_cancelling:
            worker = _Worker()
            worker.task = start_task(self._run_worker(worker))
            self._workers.add(worker)
            worker.task.add_done_callback(lambda task: self._on_worker_done(worker, task))

    def _on_worker_done(self, worker: _Worker, task: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if worker.record is not None:  # cancelled before it started, or failed
            self._acknowledge(worker.record, "release")
            worker.record = None
        if not task.cancelled() and task.exception() is not None:
            self.fail(task.exception() or RuntimeError("a worker failed"))
        self._start_worker()
        self._changed.set()

    async def _run_worker(self, worker: _Worker) -> None:
        queue, handle, port = self._queue, self._handle, self._port
        count = 0
        while queue and not worker.is_cancelled:
            if not port.is_locked(queue[0]):
                self._drop_unlocked()
                continue
            record = worker.record = queue.popleft()
            if queue and len(self._workers) < self._settings.workers:
                self._start_worker()
            try:
                await handle(record)
            except BaseException as error:
                if isinstance(error, GeneratorExit) and not is_in_task():
                    raise  # the event loop is closed: no await is possible
                worker.record = None
                await self._on_failed(worker, record, error)
            else:
                worker.record = None
                try:
                    port.accept(record)
                    self.handled += 1
                except (LockLostError, ConfigurationError) as error:
                    _log_lock_lost(record, error, "is processed")
            if len(queue) <= self._look_ahead.refill_at:
                self._changed.set()
            count += 1
            if not count % _CLOCK_EVERY:
                await self._yielder.yield_at_intervals(self._clock.monotonic())

    async def _on_failed(self, worker: _Worker, record: Any, error: BaseException) -> None:
        """Accepts, releases, rejects or forwards a record whose handler raised `error`."""
        if not isinstance(error, Exception | asyncio.CancelledError) or isinstance(
            error, NotAsyncError
        ):
            self._acknowledge(record, "release")
            self.fail(add_record_note(error, record))
            return
        if isinstance(error, asyncio.CancelledError):
            is_ending = worker.is_cancelled or (
                bool(worker.task.cancelling()) and await self._is_pool_ending(worker)
            )
            if is_ending:
                self._acknowledge(record, "release")
                return
        elif worker.is_cancelled:
            log_failure(record, error, "failed after its handler was cancelled")
            self._acknowledge(record, "release")
            return
        is_decoded = not isinstance(error, UndecodableError) and has_readable_headers(record)
        if isinstance(error, UndecodableError) and error.__cause__ is not None:
            error = error.__cause__
        chance = random.random()  # noqa: S311 - jitter, no secret
        step = share_step(
            self._settings, error, record.delivery_count, chance, is_decoded=is_decoded
        )
        await self._carry_out(worker, step, record, error)

    async def _is_pool_ending(self, worker: _Worker) -> bool:
        """Returns False if the handler has cancelled its own task, which then continues."""
        while worker.task.uncancel():
            pass
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return worker.is_cancelled or self._is_stopping.is_set()

    async def _carry_out(
        self, worker: _Worker, step: ShareStep, record: Any, error: BaseException
    ) -> None:
        if isinstance(step, Accept):
            self.handled += self._acknowledge(record, "accept")
        elif isinstance(step, Release):
            if step.wait_ms and not self._is_stopping.is_set():
                self._release_later(record, step.wait_ms)
            else:
                self.released += self._acknowledge(record, "release")
            if not step.stops:
                log_failure(record, error, "is released", logging.INFO)
        elif isinstance(step, Reject):
            log_failure(record, error, f"is rejected after {record.delivery_count} deliveries")
            self.rejected += self._acknowledge(record, "reject")
        else:
            await self._forward(worker, step, record, error)
        if step.stops:
            self.stop()

    def _release_later(self, record: Any, wait_ms: float) -> None:
        timer = self._clock.call_later(wait_ms / 1000, lambda: self._release_delayed(record))
        self._delayed[id(record)] = record, timer

    def _release_delayed(self, record: Any) -> None:
        self._delayed.pop(id(record), None)
        self.released += self._acknowledge(record, "release")

    async def _forward(
        self, worker: _Worker, step: DeadLetter, record: Any, error: BaseException
    ) -> None:
        assert self._producer is not None, "there is a dead letter topic"
        worker.record = record
        try:
            await send_forwarded(
                self._producer,
                step.topic,
                record,
                error,
                group_id=self._group_id,
                attempts=record.delivery_count,
                due_ms=None,
            )
        except asyncio.CancelledError:
            if not worker.is_cancelled:
                raise
            self._acknowledge(record, "release")
        except Exception as fault:  # noqa: BLE001 - `run` raises it
            fault.add_note(f"while sending it to {step.topic}, because its handler failed")
            self._acknowledge(record, "release")
            self.fail(add_record_note(fault, record))
        else:
            log_failure(record, error, f"was sent to {step.topic}")
            self.dead_letters += self._acknowledge(record, "accept")
        finally:
            worker.record = None

    def _acknowledge(self, record: Any, kind: str) -> bool:
        """Acknowledges a record; returns False, and logs the error, if its lock has ended."""
        try:
            getattr(self._port, kind)(record)
        except (LockLostError, ConfigurationError) as error:
            _log_lock_lost(record, error, f"cannot be acknowledged ({kind})")
            return False
        return True

    # Locks

    def _drop_unlocked(self) -> None:
        """Drops the queued records whose locks have ended: the group delivers them again."""
        queue = self._queue
        kept = [record for record in queue if self._port.is_locked(record)]
        logger.info(
            "group %s: %d waiting records are dropped before their handlers start, and are "
            "delivered again: their acquisition locks have ended",
            self._group_id,
            len(queue) - len(kept),
        )
        queue.clear()
        queue.extend(kept)
        self._changed.set()

    def _schedule_renewal(self) -> None:
        lock_s = self._port.lock_s
        if self._renew_timer is None and lock_s and not self._is_ending:
            self._renew_timer = self._clock.call_later(lock_s / _CHECKS_IN_LOCK, self._renew)

    def _renew(self) -> None:
        """Renews the locks of all held records when half of their duration is over."""
        self._renew_timer = None
        held = [worker.record for worker in self._workers if worker.record is not None]
        held += [*self._queue, *(record for record, _ in self._delayed.values())]
        for record in held:
            try:
                self._port.renew_if_due(record, _RENEW_AFTER)
            except (LockLostError, ConfigurationError):
                continue  # the acknowledgement of the record reports it
        if held:
            self._schedule_renewal()


def _log_lock_lost(record: Record, error: BaseException, what: str) -> None:
    log_failure(record, error, f"{what}, and is redelivered because its lock has ended")
