"""Runs the tasks that process records: one task polls, up to `workers` tasks call the handler.

`tracker` decides which records may be processed now. A worker acquires a shard, processes some of
its records (`handler_calls`), and acquires the next shard; the worker ends when no shard is ready.
The caller of `run` waits meanwhile, and drains the pool at the end: running handlers have
`drain_timeout_ms` to finish, and no task is left running.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final

from ...clock import Clock, Timer
from ...records import Record
from ...tasks import start_task
from ...wire.errors import ConfigurationError, UnreadableRecordError
from ..core.tasks import until_ended
from ..metadata.cluster import TopicPartition
from ..observing.log_lines import log
from .draining import DrainablePool, until_drained
from .failure_handler import FailureHandler
from .failure_headers import due_time
from .handler_calls import HandlerCalls
from .handlers import BatchHandler, RecordHandler, unreadable_record
from .ordered_shard import OrderedShard
from .ports import AckSink, ConsumerPort, RecordSink
from .retained_failures import RetainedFailures
from .run_summary import RunSummary
from .settings import RunSettings
from .shard import Shard
from .tracker import RecordTracker
from .worker import PoolWorker

__all__ = ["ProcessingPool"]

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class ProcessingPool(DrainablePool):
    """Processes the records of one `run()`, and queues records of at most `max_bytes`.

    If workers wait for records, the pool accepts one more list of records beyond `max_bytes`,
    because all queued records may be waiting for a retry or for their due time. Failure headers
    name `group_id`.
    """

    def __init__(
        self,
        consumer: ConsumerPort,
        acks: AckSink,
        clock: Clock,
        settings: RunSettings,
        handle: RecordHandler | BatchHandler,
        forward_producer: RecordSink | None,
        group_id: str,
        max_bytes: int,
        retained: RetainedFailures | None = None,
    ) -> None:
        super().__init__()
        self._consumer = consumer
        self._acks = acks
        self._clock = clock
        self.settings = settings
        self._has_unreadable = False
        self._group_id = group_id
        self._other_groups: set[str] = set()
        self._delays = {each.topic: each.delay_ms for each in settings.retry_topics}
        batch_size = handle.size if isinstance(handle, BatchHandler) else None
        self._tracker = RecordTracker(
            settings.order, settings.max_offset_gap, max_bytes, batch_size
        )
        self._failures = FailureHandler(
            self, self._tracker, clock, settings, forward_producer, group_id, retained
        )
        self._calls = HandlerCalls(handle, self._failures, clock, retained)
        self._is_suspended = False
        self._is_poll_waiting = False
        self._workers: set[PoolWorker] = set()
        self._timer: Timer | None = None
        self._timer_at = _NEVER
        self._commit_timer: Timer | None = None
        self._state_changed = asyncio.Event()
        self._has_ended = False
        self._drain_deadline = _LONG_AGO

    @property
    def summary(self) -> RunSummary:
        """The numbers of processed, retried and forwarded records so far."""
        shards = [worker.shard for worker in self._workers]
        handled = self._calls.handled + sum(
            x.uncounted for x in shards if isinstance(x, OrderedShard)
        )
        its = self._failures
        handled += its.handled
        return RunSummary(handled, its.retried, its.sent_to_retry, its.dead_letters)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of `summary` by name, for metrics."""
        return self.summary._asdict()

    @property
    def records_in_flight(self) -> int:
        """The number of records that handlers are processing now."""
        return sum(worker.in_flight for worker in self._workers if worker.shard is not None)

    @property
    def stopping(self) -> asyncio.Event:
        """Set by `stop` and `fail`."""
        return self._is_stopping

    @property
    def is_stopping(self) -> bool:
        """True after `stop` or `fail`: no further record is polled."""
        return self._is_stopping.is_set()

    @property
    def drain_remaining_ms(self) -> float:
        """The rest of `drain_timeout_ms`; 0 before the drain, and after `end_drain`."""
        return max(0.0, (self._drain_deadline - self._clock.monotonic()) * 1000)

    # Start and end

    async def until_stopped(self) -> None:
        """Polls and processes records until the pool stops, fails, or this call is cancelled.

        Then waits for running handlers for at most `drain_timeout_ms`: it drains the pool. A second
        cancellation ends the drain at once. A cancellation that is repeated in each iteration of
        the event loop, as by anyio, counts as one.
        """
        poll_task = start_task(self._poll_loop())
        poll_task.add_done_callback(self._on_poll_task_done)
        await until_drained(self, self._is_stopping, poll_task, self._drain_and_end)

    async def _drain_and_end(self, poll_task: asyncio.Task[None]) -> None:
        """Waits for running handlers, and ends all tasks and timers of the pool."""
        try:
            await self._drain(poll_task)
        except asyncio.CancelledError:  # the program cancels all tasks
            self._drain_deadline = _LONG_AGO
            raise
        finally:
            self._has_ended = True
            for timer in (self._timer, self._commit_timer):
                if timer is not None:
                    timer.cancel()
            self.cancel_handlers()
            await until_ended([poll_task, *(worker.task for worker in self._workers)])

    def stop(self) -> None:
        """Stops accepting records and starting handlers; the drain timeout counts from now."""
        if not self._is_stopping.is_set():
            self._is_stopping.set()
            self._drain_deadline = self._clock.monotonic() + self.settings.drain_timeout_ms / 1000
            self._tracker.drain_all()

    def end_drain(self) -> None:
        """Stops the pool, and cancels the handlers before `drain_timeout_ms` is over."""
        super().end_drain()
        self._drain_deadline = _LONG_AGO

    def cancel_handlers(self) -> None:
        """Cancels the handlers; their records do not count as processed."""
        self._is_cancelling = True
        self._state_changed.set()
        for worker in self._workers:
            worker.cancel()

    async def _drain(self, poll_task: asyncio.Task[None]) -> None:
        try:
            async with self._clock.timeout(self.drain_remaining_ms / 1000):
                while not self._is_cancelling and (
                    self._workers or not poll_task.done() or not self._tracker.is_idle
                ):
                    self._state_changed.clear()
                    await self._state_changed.wait()
        except TimeoutError:
            logger.warning(
                "records in flight were not finished within %d ms (drain_timeout_ms): their "
                "handlers are cancelled, and the records are redelivered",
                self.settings.drain_timeout_ms,
            )

    # Reading

    async def _poll_loop(self) -> None:
        while await self._consumer.poll_records(self):
            self._start_worker()
            await asyncio.sleep(0)  # lets the workers run

    def _on_poll_task_done(self, task: asyncio.Task[None]) -> None:
        self._state_changed.set()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)
        else:
            self.stop()

    @property
    def accepts_records(self) -> bool:
        """True if a worker is idle, or if the pool holds fewer bytes of records than its maximum.

        The pool holds the queued records and the records that handlers are processing. False if the
        pool is stopping.
        """
        if self._is_stopping.is_set() or self._is_suspended:
            return False
        tracker = self._tracker
        has_idle_worker = not tracker.ready and len(self._workers) < self.settings.workers
        return has_idle_worker or tracker.held_bytes < tracker.max_bytes

    @property
    def max_list_bytes(self) -> int:
        """The approximate maximum size of a polled list of records, in bytes."""
        return self._tracker.max_list_bytes

    @property
    def queued_bytes(self) -> int:
        """The size in bytes of all records that are queued, processed now, or wait for a retry."""
        return self._tracker.held_bytes

    def on_poll_refused(self) -> None:
        """Notes that a poll waits, because the pool accepts no records.

        The pool wakes this poll when it accepts records again.
        """
        self._is_poll_waiting = True

    def _wake_poll(self) -> None:
        """Wakes a waiting poll that the pool refused, if the pool accepts records again."""
        if self._is_poll_waiting and self.accepts_records:
            self._is_poll_waiting = False
            self._consumer.wake_poll()

    def accept_records(
        self, state: object, assignment_epoch: object, tp: TopicPartition, records: list[Record]
    ) -> None:
        """Queues records of a partition; applies backpressure if enough records are queued."""
        delay_ms = self._delays.get(tp[0])
        if delay_ms is None:
            shard = self._tracker.add(state, assignment_epoch, tp, records)
        else:
            now_ms = self._clock.now_ms()
            dues = [due_time(record, delay_ms, now_ms) for record in records]
            self._warn_of_other_groups(tp[0], {each.group for each in dues})
            due = self._clock.monotonic() + delay_ms / 1000
            due_ms = [each.at_ms for each in dues]
            shard = self._tracker.add(state, assignment_epoch, tp, records, due_ms, due)
            self._on_timer()
        if not shard.has_backpressure and self._tracker.needs_backpressure(shard):
            shard.has_backpressure = True
            self._consumer.apply_backpressure(tp)

    def accept_unreadable(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
        error: UnreadableRecordError,
    ) -> None:
        """Queues an unreadable record: it becomes a dead letter, or `run` raises `error`."""
        if not self._has_unreadable:
            self._has_unreadable = True
            self._calls.raise_unreadable()
            for worker in self._workers:  # they use the handler of the begin of their batch
                worker.stop_early()
        self.accept_records(state, assignment_epoch, tp, [unreadable_record(error)])

    def _warn_of_other_groups(self, topic: str, groups: set[str]) -> None:
        others = groups - {"", self._group_id} - self._other_groups
        self._other_groups |= others
        for group in sorted(others):
            text = (
                "group %s has sent records to retry topic %s, too; use a retry topic for each group"
            )
            log(logging.WARNING, text, group, topic)

    # RecordProcessor

    def first_incomplete(self, state: object) -> int | None:
        """Returns the first incomplete offset; None if all accepted records are processed."""
        return self._tracker.first_incomplete(state)

    def incomplete_offsets(self, state: object) -> tuple[int, list[int]] | None:
        """Returns the highest started offset, and the incomplete offsets up to that offset.

        Returns None if there is no incomplete offset. With order "partition", always returns None.
        """
        return self._tracker.incomplete_offsets(state)

    def first_queued(self, state: object) -> int | None:
        """Returns the offset of the first queued record of a partition; None if there is none.

        A queued record is accepted, but its processing has not started.
        """
        return self._tracker.first_queued(state)

    @property
    def queued_positions(self) -> dict[TopicPartition, int]:
        """The offset of the first queued record, for each partition with queued records."""
        return self._tracker.queued_positions

    def first_incomplete_offsets(self) -> dict[object, int]:
        """Returns the first incomplete offset of each partition with incomplete records."""
        return self._tracker.first_incomplete_offsets()

    def is_in_flight(self, epochs: Collection[object]) -> bool:
        """Returns True if a handler processes a record of these assignment epochs.

        Call it only after `drop`: before `drop`, queued records may also count.
        """
        return self._tracker.is_in_flight(epochs)

    @property
    def has_lost_in_flight(self) -> bool:
        """True if a handler processes a record of a lost partition.

        Another member may process the record, too.
        """
        return any(each.shard is not None and each.shard.is_lost for each in self._workers)

    def oldest_started_at(self, now: float) -> float:
        """Returns the start time of the oldest record that a handler is processing.

        Returns `now` if no record is being processed. Records of lost partitions do not count. The
        first call during the processing of a record counts as the start of that record, so the
        result may be later than the real start.
        """
        oldest = now
        for worker in self._workers:
            shard = worker.shard
            if shard is None or shard.is_lost:
                continue
            offset = worker.record.offset if worker.record is not None else shard.first_incomplete()
            marker = (shard, offset, shard.attempts.get(-1 if offset is None else offset))
            if marker != worker.marker:
                worker.marker = marker
                worker.started_at = now
            oldest = min(oldest, worker.started_at)
        return oldest

    def drop(self, state: object) -> int | None:
        """Drops the queued records of a partition.

        Returns the first dropped offset; None if there is none.
        """
        shard = self._tracker.shard_of(state)
        if shard is not None and shard.has_backpressure:
            shard.has_backpressure = False
            self._consumer.release_backpressure(shard.tp)
        dropped = self._tracker.drain(state)
        self._wake_poll()
        return dropped

    def forget(self, state: object) -> None:
        """Drops the queued records of a partition after a seek or reset of its position.

        The results of its records that are being processed are ignored.
        """
        self._tracker.discard(state)
        self._wake_poll()

    def abandon(self, states: Iterable[object], epochs: Collection[object]) -> None:
        """Drops partitions that other members may own.

        If `cancel_lost` is set, also cancels the handlers of their records, but only for partitions
        with one of the assignment `epochs`.
        """
        for state in states:
            self._tracker.discard(state)
        self._acks.on_lost(epochs)
        self._wake_poll()
        if self.settings.cancel_lost:
            for worker in self._workers:
                shard = worker.shard
                if shard is not None and shard.is_lost and shard.assignment_epoch in epochs:
                    worker.cancel()

    def pause(self, state: object) -> None:
        """Stops starting records of a partition until `resume`."""
        self._tracker.pause(state)

    def resume(self, state: object) -> None:
        """Allows the records of a paused partition to start."""
        self._tracker.resume(state)
        self._start_worker()

    # For transactions

    def suspend(self) -> None:
        """Drops all records, ignores the results of running handlers, and accepts no record."""
        self._is_suspended = True
        for state in self._tracker.states():
            self._tracker.discard(state)

    def continue_polling(self) -> None:
        """Accepts records again."""
        self._is_suspended = False
        self._wake_poll()

    @property
    def current_shard(self) -> Shard:
        """The shard of the record that the current task processes."""
        current = asyncio.current_task()
        for worker in self._workers:
            if worker.task is current and worker.shard is not None:
                return worker.shard
        raise ConfigurationError("a handler of run() calls this in its own task only")

    @property
    def is_called_by_handler(self) -> bool:
        """True if the caller is one of the handlers."""
        current = asyncio.current_task()
        return any(worker.task is current for worker in self._workers)

    # Workers

    def _start_worker(self) -> None:
        """Starts a worker, if a shard is ready and fewer than `workers` run."""
        if (
            self._tracker.ready
            and len(self._workers) < self.settings.workers
            and not self._is_cancelling
        ):
            worker = PoolWorker()
            worker.task = start_task(self._run_worker(worker))
            self._workers.add(worker)
            worker.task.add_done_callback(partial(self._on_worker_done, worker))

    def _on_worker_done(self, worker: PoolWorker, task: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        self._state_changed.set()
        if not task.cancelled() and task.exception() is not None:
            self.fail(task.exception() or RuntimeError("a worker failed"))
        self._start_worker()
        self._wake_poll()

    async def _run_worker(self, worker: PoolWorker) -> None:
        tracker = self._tracker
        consumer = self._consumer
        while not worker.is_cancelled:
            if consumer.is_out_of_session:
                await consumer.until_in_session()
            shard = tracker.acquire_shard()
            if shard is None:
                return
            self._start_worker()  # another worker takes the next shard
            worker.shard = shard
            worker.stops_early = False
            self._schedule_commit()
            started_at = self._clock.monotonic()
            try:
                await self._calls.process(worker, shard, started_at)
            finally:
                worker.shard = worker.record = None
                self._release_shard(shard)
            await self._calls.yield_to_loop(started_at)

    def _release_shard(self, shard: Shard) -> None:
        self._tracker.release_shard(shard)
        if shard.has_backpressure and not self._tracker.needs_backpressure(shard):
            shard.has_backpressure = False
            self._consumer.release_backpressure(shard.tp)
        if shard.is_draining:
            self._state_changed.set()
            self._consumer.on_drained(is_lost=shard.is_lost)
        self._wake_poll()
        self._schedule_commit()

    def _schedule_commit(self) -> None:
        if self._commit_timer is None and not self._has_ended:
            seconds = self.settings.commit_interval_ms / 1000
            self._commit_timer = self._clock.call_later(seconds, self._commit)

    def _commit(self) -> None:
        """Requests an early commit.

        Each worker ends its batch after the record that it is processing.
        """
        self._commit_timer = None
        for worker in self._workers:
            worker.stop_early()
        self._acks.acknowledge_soon()

    # Time

    def _on_timer(self) -> None:
        """Makes the delayed records that are due now ready for the workers."""
        self._timer_at = _NEVER
        self._tracker.move_due(self._clock.monotonic(), self._clock.now_ms())
        self.set_timer()
        self._start_worker()
        self._state_changed.set()

    def set_timer(self) -> None:
        """Sets the timer to the due time of the next record, unless the timer is due earlier."""
        due = self._tracker.next_due
        if due >= self._timer_at or self._has_ended:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due
        seconds = max(0.0, due - self._clock.monotonic())
        self._timer = self._clock.call_later(seconds, self._on_timer)
