"""`ProcessingPool`: the tasks that handle records. What may be handled when, says `tracker`.

One task reads, and up to `workers` handle: each takes a lane, handles some of it, and takes the
next; it ends where there is none. Who has called `run` waits meanwhile, and sees to the end: what
is in hand then has its time, and no task is left.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final

from ...clock import Clock, Timer
from ...records import Header, Record
from ..core.tasks import is_in_task, until_ended
from ..core.yielding import LoopYielder
from ..fetch.in_flight_records import AdaptiveBatchSize
from ..metadata.cluster import TopicPartition
from ..observing.lines import say
from .failure_headers import due_of, headers_with, noted, origin_of, text_of
from .failure_log import say_failed, say_untold
from .failure_policy import Forward, Retry, next_step, stop_in
from .handlers import Handle, NotAsyncError, UndecodableError
from .ports import ConsumerPort, RecordSink
from .settings import RunSettings, RunSummary
from .shards import OrderedShard, Shard, UnorderedShard
from .tracker import Tracker
from .worker import Worker

__all__ = ["ProcessingPool"]

logger = logging.getLogger("kproto.client")

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")

#: A portion ends when its handlers have taken so long, in seconds.
_LONG_S: Final = 0.02

#: After so many records of a portion it is looked whether it takes that long: handlers that are
#: fast at first may be slow, and hold up the loop.
_LOOK: Final = 16


class ProcessingPool:
    """One `run` of a consumer. `group_id` is told to whoever finds a record that failed."""

    def __init__(
        self,
        host: ConsumerPort,
        clock: Clock,
        settings: RunSettings,
        handle: Handle,
        outlet: RecordSink | None,
        group_id: str,
    ) -> None:
        self._host = host
        self._clock = clock
        self.settings = settings
        self._handle = handle
        self._outlet = outlet
        self._group_id = group_id
        self._other_groups: set[str] = set()
        self._delays = {each.topic: each.delay_ms for each in settings.retry_topics}
        self._tracker = Tracker(settings.order, settings.max_ahead)
        self._workers: set[Worker] = set()
        self._portions = AdaptiveBatchSize()
        self._yielder = LoopYielder()
        self._timer: Timer | None = None
        self._timer_at = _NEVER
        self._commits_by: Timer | None = None
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_hurried = False
        self._is_over = False
        self._ends_by = _LONG_AGO
        self._error: BaseException | None = None
        self._handled = self._retried = self._put_off = self._dead_letters = 0

    @property
    def summary(self) -> RunSummary:
        """What was done so far."""
        lanes = [worker.lane for worker in self._workers]
        handled = self._handled + sum(x.handled for x in lanes if isinstance(x, OrderedShard))
        return RunSummary(handled, self._retried, self._put_off, self._dead_letters)

    @property
    def counts(self) -> dict[str, int]:
        """The same by name, for metrics."""
        return self.summary._asdict()

    @property
    def in_hand(self) -> int:
        """How many records are in hand."""
        return sum(worker.lane is not None for worker in self._workers)

    @property
    def error(self) -> BaseException | None:
        """What has ended it before its time."""
        return self._error

    @property
    def left_ms(self) -> float:
        """What is left of `drain_timeout_ms` once it is to stop; nothing cancelled once more."""
        return max(0.0, (self._ends_by - self._clock.monotonic()) * 1000)

    # From the beginning to the end

    async def until_stopped(self) -> None:
        """Read and handle, until somebody has it stop, or something fails.

        However it ends, what is in hand is finished, within `drain_timeout_ms`; also cancelled.
        Cancelled once more, that is, too, at once.
        """
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(self._read_ended)
        cancelled: asyncio.CancelledError | None = None
        try:
            try:
                await self._stopping.wait()
            except asyncio.CancelledError as error:
                cancelled = error
            self.stop()
            reader.cancel()
            self._ends_by = self._clock.monotonic() + self.settings.drain_timeout_ms / 1000
            try:
                await self._drain(reader)
            except asyncio.CancelledError as error:
                if cancelled is not None:
                    raise
                cancelled = error
                await self._drain(reader)
        except asyncio.CancelledError:
            self._ends_by = _LONG_AGO
            raise
        finally:
            self._is_over = True
            for timer in (self._timer, self._commits_by):
                if timer is not None:
                    timer.cancel()
            self.hurry()
            await until_ended([reader, *(worker.task for worker in self._workers)])
        if cancelled is not None:
            raise cancelled

    def stop(self) -> None:
        """Take no more, and begin nothing."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._tracker.part_all()

    def signalled(self) -> None:
        """Stop; told so again, at once."""
        if self._stopping.is_set():
            self.hurry()
        self.stop()

    def hurry(self) -> None:
        """Cancel what is in hand, which is not done."""
        self._is_hurried = True
        self._changed.set()
        for worker in self._workers:
            worker.cancel()

    def fail(self, error: BaseException) -> None:
        """End with this error, or with one that came before."""
        if self._error is None:
            self._error = error
        elif error is not self._error:
            say_untold(error)
        self.stop()

    async def _drain(self, reader: asyncio.Task[None]) -> None:
        try:
            async with self._clock.timeout(self.left_ms / 1000):
                while not self._is_hurried and (
                    self._workers or not reader.done() or not self._tracker.is_idle
                ):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            logger.warning(
                "what was in hand was not finished within %d ms (drain_timeout_ms): it is "
                "cancelled, and comes again",
                self.settings.drain_timeout_ms,
            )

    # Reading

    async def _read(self) -> None:
        while await self._host.take_next(self):
            self._spawn()
            await asyncio.sleep(0)  # for who has nothing to wait for to handle what came

    def _read_ended(self, task: asyncio.Task[None]) -> None:
        self._changed.set()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)
        else:
            self.stop()

    @property
    def is_taking(self) -> bool:
        """Whether it takes records."""
        return not self._stopping.is_set()

    def take(
        self, state: object, claim: object, place: TopicPartition, records: list[Record]
    ) -> None:
        """Have these handled."""
        delay_ms = self._delays.get(place[0])
        if delay_ms is None:
            lane = self._tracker.add(state, claim, place, records)
        else:
            now_ms = self._clock.now_ms()
            told = [due_of(record, delay_ms, now_ms) for record in records]
            self._look_at_groups(place[0], {each.group for each in told})
            due = self._clock.monotonic() + delay_ms / 1000
            due_ms = [each.at_ms for each in told]
            lane = self._tracker.add(state, claim, place, records, due_ms, due)
            self._ripen()
        if not lane.is_full and self._tracker.is_full(lane):
            lane.is_full = True
            self._host.apply_backpressure(place)

    def _look_at_groups(self, topic: str, groups: set[str]) -> None:
        others = groups - {"", self._group_id} - self._other_groups
        self._other_groups |= others
        for group in sorted(others):
            text = (
                "group %s has put records into %s, which are handled here, too; each wants its own"
            )
            say(logging.WARNING, text, group, topic)

    # What is told of the partitions

    def first_incomplete(self, state: object) -> int | None:
        """The first offset that is not done; None where all are that were taken."""
        return self._tracker.lowest(state)

    def incomplete_offsets(self, state: object) -> tuple[int, list[int]] | None:
        """See `RecordProcessor`."""
        return self._tracker.ahead(state)

    def first_queued(self, state: object) -> int | None:
        """The first offset that was taken and never in hand."""
        return self._tracker.first_waiting(state)

    @property
    def queued_positions(self) -> dict[TopicPartition, int]:
        """That of each partition of which there are some."""
        return self._tracker.waiting

    def left_undone(self) -> dict[object, int]:
        """The first offset that is not done of each partition."""
        return self._tracker.left_undone()

    def is_in_flight(self, epochs: Collection[object]) -> bool:
        """Whether something of these is in hand."""
        return self._tracker.is_under_way(epochs)

    @property
    def has_lost(self) -> bool:
        """Whether something is in hand that others may have, too."""
        return any(each.lane is not None and each.lane.is_lost for each in self._workers)

    def oldest_started_at(self, now: float) -> float:
        """Since when the oldest has been in hand, as far as those who look can tell: not later."""
        oldest = now
        for worker in self._workers:
            lane = worker.lane
            if lane is None or lane.is_lost:
                continue
            offset = worker.record.offset if worker.record is not None else lane.lowest()
            sign = (lane, offset, lane.attempts.get(-1 if offset is None else offset))
            if sign != worker.sign:
                worker.sign = sign
                worker.since = now
            oldest = min(oldest, worker.since)
        return oldest

    def drop(self, state: object) -> int | None:
        """No more of a partition is to be begun; see `Tracker.part`."""
        lane = self._tracker.lane_of(state)
        if lane is not None and lane.is_full:
            lane.is_full = False
            self._host.release_backpressure(lane.place)
        return self._tracker.part(state)

    def forget(self, state: object) -> None:
        """The partition is read from elsewhere: what was taken counts for nothing."""
        self._tracker.lose(state)

    def abandon(self, states: Iterable[object], epochs: Collection[object]) -> None:
        """Others have these now: what is in hand of them is cancelled, or left to end."""
        for state in states:
            self._tracker.lose(state)
        if self.settings.cancel_lost:
            for worker in self._workers:
                lane = worker.lane
                if lane is not None and lane.is_lost and lane.claim in epochs:
                    worker.cancel()

    def pause(self, state: object) -> None:
        """Begin nothing of a partition until it goes on."""
        self._tracker.pause(state)

    def resume(self, state: object) -> None:
        """Go on with one that was paused."""
        self._tracker.go_on(state)
        self._spawn()

    @property
    def is_mine(self) -> bool:
        """Whether who asks is one of the handlers."""
        current = asyncio.current_task()
        return any(worker.task is current for worker in self._workers)

    # Workers

    def _spawn(self) -> None:
        """Have one more handle, if there is something to be handled."""
        if (
            self._tracker.ready
            and len(self._workers) < self.settings.workers
            and not self._is_hurried
        ):
            worker = Worker()
            worker.task = asyncio.create_task(self._work(worker))
            self._workers.add(worker)
            worker.task.add_done_callback(partial(self._worked, worker))

    def _worked(self, worker: Worker, task: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        self._changed.set()
        if not task.cancelled() and task.exception() is not None:
            self.fail(task.exception() or RuntimeError("a worker failed"))
        self._spawn()

    async def _work(self, worker: Worker) -> None:
        tracker = self._tracker
        host = self._host
        while not worker.is_cancelled:
            if host.is_out_of_session:
                await host.until_in_session()
            lane = tracker.next_lane()
            if lane is None:
                return
            self._spawn()  # while this one waits, the next may work
            worker.lane = lane
            worker.is_cut = False
            self._commit_in_time()
            began = self._clock.monotonic()
            try:
                if isinstance(lane, OrderedShard):
                    failed = await self._in_order(lane, began)
                else:
                    assert isinstance(lane, UnorderedShard), "there are no others"
                    failed = await self._any(worker, lane, began)
                if failed is not None:
                    await self._failed(worker, lane, *failed)
            finally:
                worker.lane = worker.record = None
                self._put_back(lane)
            await self._give_way(began)

    def _lasts_long(self, began: float) -> bool:
        return self._clock.monotonic() - began > _LONG_S

    async def _in_order(
        self, lane: OrderedShard, began: float
    ) -> tuple[Record, BaseException] | None:
        """Handle some of a lane, one after the other; returns one that failed."""
        handle = self._handle
        lane.counted = lane.taken
        record: Record | None = None
        lane.is_busy = True
        try:
            size = self._portions.size
            for first in range(0, size, _LOOK):
                if first and self._lasts_long(began):
                    break
                for record in islice(lane.rest, min(_LOOK, size - first)):
                    await handle(record)
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not is_in_task():
                raise  # the loop is closed, and nothing can be awaited
            assert record is not None, "nothing else raises"
            self._count(lane)
            return record, error
        lane.is_busy = False
        if lane.attempts:
            lane.attempts.clear()
        self._count(lane)
        return None

    def _count(self, lane: OrderedShard) -> None:
        self._handled += lane.handled
        lane.counted += lane.handled

    async def _any(
        self, worker: Worker, lane: UnorderedShard, began: float
    ) -> tuple[Record, BaseException] | None:
        """Handle some of a lane of which others handle some, too; returns one that failed."""
        handle = self._handle
        ready = lane.ready
        done = lane.done
        record: Record | None = None
        try:
            for count in range(1, self._portions.size + 1):
                if not ready or worker.is_cut:
                    break
                if not count % _LOOK and self._lasts_long(began):
                    break
                record = worker.record = ready.popleft()
                if record.offset > lane.edge:
                    lane.edge = record.offset
                await handle(record)
                done(record)
                self._handled += 1
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not is_in_task():
                raise  # the loop is closed, and nothing can be awaited
            assert record is not None, "nothing else raises"
            return record, error
        return None

    def _put_back(self, lane: Shard) -> None:
        self._tracker.put_back(lane)
        if lane.is_full and not self._tracker.is_full(lane):
            lane.is_full = False
            self._host.release_backpressure(lane.place)
        if lane.is_parting:
            self._changed.set()
            self._host.on_drained(is_lost=lane.is_lost)
        self._commit_in_time()

    def _commit_in_time(self) -> None:
        if self._commits_by is None and not self._is_over:
            seconds = self.settings.commit_interval_ms / 1000
            self._commits_by = self._clock.call_later(seconds, self._commit)

    def _commit(self) -> None:
        """Commit what is done; portions whose handlers became slow have lasted long enough."""
        self._commits_by = None
        for worker in self._workers:
            worker.cut()
        self._host.commit_soon()

    async def _give_way(self, began: float) -> None:
        """Let others have their turn, as handlers may have held up the loop."""
        now = self._clock.monotonic()
        self._portions.on_records_returned(began)
        took = self._portions.on_poll(now)
        await self._yielder.at_intervals(now, took)

    # What failed

    async def _failed(
        self, worker: Worker, lane: Shard, record: Record, error: BaseException
    ) -> None:
        stop = stop_in(error)
        if stop is not None:
            if error is not stop and not stop.done:
                say_failed(record, error, "is not done, and comes again")
            if stop.done and not lane.is_lost:
                lane.done(record)
                self._handled += 1
            else:
                lane.leave(record)
            self.stop()
        elif isinstance(error, NotAsyncError) or not isinstance(
            error, Exception | asyncio.CancelledError
        ):
            lane.leave(record)
            self.fail(noted(error, record))
        elif lane.is_lost or worker.is_cancelled:
            lane.leave(record)
            if isinstance(error, Exception):
                say_failed(record, error, "counts for nothing, as the record is not done anyway")
        elif worker.task.cancelling() and await self._is_ending(worker):
            lane.leave(record)
        else:
            await self._decide(worker, lane, record, error)

    async def _is_ending(self, worker: Worker) -> bool:
        """Whether this ends, when somebody else has cancelled a worker.

        As who cancels all tasks does: then `run` is told in the same turn of the loop. A handler
        that cancels its own task has failed, and the task is as it was.
        """
        while worker.task.uncancel():
            pass
        with suppress(asyncio.CancelledError):  # one that was not raised yet, or ours
            await asyncio.sleep(0)
        return worker.is_cancelled or self._stopping.is_set()

    async def _decide(
        self, worker: Worker, lane: Shard, record: Record, error: BaseException
    ) -> None:
        is_readable = not isinstance(error, UndecodableError)
        if not is_readable and error.__cause__ is not None:
            error = error.__cause__
        attempts = lane.failed(record)
        chance = random.random()  # noqa: S311 - jitter, no secret
        step = next_step(
            self.settings, record.topic, error, attempts, chance, is_readable=is_readable
        )
        if isinstance(step, Retry):
            self._retried += 1
            self._put_off_for(lane, record, step.wait_ms)
        elif isinstance(step, Forward):
            await self._send_on(worker, lane, record, error, attempts, step)
        else:
            lane.leave(record)
            self.fail(noted(error, record))

    def _put_off_for(self, lane: Shard, record: Record, wait_ms: float) -> None:
        if lane.is_lost:
            lane.leave(record)
            return
        lane.put_off(record)
        self._tracker.later(lane, record, self._clock.monotonic() + wait_ms / 1000)
        self._arm()

    async def _send_on(
        self,
        worker: Worker,
        lane: Shard,
        record: Record,
        error: BaseException,
        attempts: int,
        step: Forward,
    ) -> None:
        assert self._outlet is not None, "there are topics to send to"
        due_ms = None if step.delay_ms is None else self._clock.now_ms() + step.delay_ms
        try:
            origin = origin_of(record)
            attempts += origin.attempts
            headers: list[Header] = headers_with(origin, error, self._group_id, attempts, due_ms)
            await self._outlet.send(step.topic, record.value, key=record.key, headers=headers)
        except asyncio.CancelledError:
            if worker.is_cancelled:
                lane.leave(record)
                return
            self._put_off_for(lane, record, 0.0)
            raise
        except Exception as fault:  # noqa: BLE001 - it is told
            why = f"{type(error).__name__}: {text_of(error)}"
            fault.add_note(f"it was to be sent to {step.topic}, as its handler failed: {why}")
            lane.leave(record)
            self.fail(noted(fault, record))
        else:
            lane.done(record)
            level = logging.WARNING
            if step.delay_ms is None:
                self._dead_letters += 1
            else:
                self._put_off += 1
                level = logging.INFO
            say_failed(record, error, f"goes to {step.topic}", level)

    # Time

    def _ripen(self) -> None:
        """Have what is due handled."""
        self._timer_at = _NEVER
        self._tracker.ripe(self._clock.monotonic(), self._clock.now_ms())
        self._arm()
        self._spawn()
        self._changed.set()

    def _arm(self) -> None:
        """Look again when the next is due."""
        due = self._tracker.next_due
        if due >= self._timer_at or self._is_over:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due
        seconds = max(0.0, due - self._clock.monotonic())
        self._timer = self._clock.call_later(seconds, self._ripen)
