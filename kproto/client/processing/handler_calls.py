"""Calls the handler of `run` with the records of a shard, one by one or in batches."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Final

from ...clock import Clock
from ...records import Record
from ..core.tasks import is_in_task
from ..core.yielding import LoopYielder
from ..fetch.in_flight_records import AdaptiveBatchSize
from .failure_handler import FailureHandler
from .handlers import BatchHandler, RecordHandler, raise_unreadable
from .ordered_shard import OrderedShard
from .retained_failures import RetainedFailures
from .shard import Shard
from .unordered_shard import UnorderedShard
from .worker import PoolWorker

__all__ = ["HandlerCalls"]

#: A worker ends its batch of records after this many seconds of processing.
_MAX_BATCH_S: Final = 0.02


#: The worker checks the duration of a batch after this many records: fast handlers may become slow,
#: and block the event loop.
_CLOCK_EVERY: Final = 16


class HandlerCalls:
    """Calls `handle` for the workers of one pool, and counts the processed records (`handled`).

    `failures` handles the failed records.
    """

    def __init__(
        self,
        handle: RecordHandler | BatchHandler,
        failures: FailureHandler,
        clock: Clock,
        retained: RetainedFailures | None,
    ) -> None:
        self._batch_handler: BatchHandler | None = None
        self._handle: RecordHandler = _handle_no_record
        if isinstance(handle, BatchHandler):
            self._batch_handler = handle
        else:
            self._handle = handle
        self._failures = failures
        self._clock = clock
        self._retained = retained
        self._batch_size = AdaptiveBatchSize()
        self._yielder = LoopYielder()
        self.handled = 0

    def raise_unreadable(self) -> None:
        """Makes the handler raise the error of each unreadable record that follows."""
        self._handle = partial(raise_unreadable, self._handle)

    async def process(self, worker: PoolWorker, shard: Shard, started_at: float) -> None:
        """Processes some records of a shard, or one batch, and handles the failed records.

        `started_at` is the start of this call, in seconds of the clock.
        """
        failed: tuple[Record, BaseException] | None = None
        if self._batch_handler is not None:
            assert isinstance(shard, UnorderedShard), "batches have no other shards"
            await self._process_batch(worker, shard, self._batch_handler)
        elif isinstance(shard, OrderedShard):
            failed = await self._process_in_order(shard, started_at)
        else:
            assert isinstance(shard, UnorderedShard), "there are no others"
            failed = await self._process_unordered(worker, shard, started_at)
        if failed is not None:
            await self._failures.handle(worker, shard, *failed)

    def _is_batch_overdue(self, started_at: float) -> bool:
        return self._clock.monotonic() - started_at > _MAX_BATCH_S

    async def _process_in_order(
        self, shard: OrderedShard, started_at: float
    ) -> tuple[Record, BaseException] | None:
        """Processes some records of a shard, one by one, until a handler fails.

        Returns the failed record with its error; None if no record failed.
        """
        handle = self._handle
        shard.counted = shard.started_count
        record: Record | None = None
        shard.is_busy = True
        try:
            size = self._batch_size.size
            for first in range(0, size, _CLOCK_EVERY):
                if first and self._is_batch_overdue(started_at):
                    break
                for record in islice(shard.remaining, min(_CLOCK_EVERY, size - first)):
                    await handle(record)
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not is_in_task():
                raise  # the event loop is closed: no await is possible
            assert record is not None, "nothing else raises"
            self._count_processed(shard)
            return record, error
        shard.is_busy = False
        if shard.attempts:
            shard.attempts.clear()
        self._count_processed(shard)
        return None

    def _count_processed(self, shard: OrderedShard) -> None:
        self.handled += shard.uncounted
        shard.counted += shard.uncounted

    async def _process_unordered(
        self, worker: PoolWorker, shard: UnorderedShard, started_at: float
    ) -> tuple[Record, BaseException] | None:
        """Processes some records of a shard that several workers share, until a handler fails.

        Returns the failed record with its error; None if no record failed.
        """
        handle = self._handle
        ready = shard.ready
        complete = shard.complete
        record: Record | None = None
        try:
            for count in range(1, self._batch_size.size + 1):
                if not ready or worker.stops_early:
                    break
                if not count % _CLOCK_EVERY and self._is_batch_overdue(started_at):
                    break
                record = worker.record = ready.popleft()
                if record.offset > shard.highest_started:
                    shard.highest_started = record.offset
                await handle(record)
                complete(record)
                self.handled += 1
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not is_in_task():
                raise  # the event loop is closed: no await is possible
            assert record is not None, "nothing else raises"
            return record, error
        return None

    async def _process_batch(
        self, worker: PoolWorker, shard: UnorderedShard, handler: BatchHandler
    ) -> None:
        """Processes one batch of a shard; retries or forwards each of its failed records."""
        size = handler.size
        if self._retained is not None:
            size = self._retained.batch_size(shard.ready, size)
        records = shard.take_batch(size)
        worker.record = records[0]
        worker.in_flight = len(records)
        failed: list[tuple[Record, BaseException]]
        try:
            try:
                failed = await handler(records)
            except GeneratorExit as error:
                if not is_in_task():
                    raise  # the event loop is closed: no await is possible
                failed = [(record, error) for record in records]
            failed_offsets = {record.offset for record, _ in failed}
            for record in records:
                if record.offset not in failed_offsets:
                    shard.complete(record)
                    self.handled += 1
            await self._failures.handle_all(worker, shard, failed)
        finally:
            worker.in_flight = 1
            shard.end_batch()

    async def yield_to_loop(self, started_at: float) -> None:
        """Adapts the batch size; yields to the event loop if handlers have blocked it."""
        now = self._clock.monotonic()
        self._batch_size.on_records_returned(started_at)
        took = self._batch_size.on_poll(now)
        await self._yielder.yield_at_intervals(now, took)


async def _handle_no_record(record: Record) -> None:
    """Does nothing; is the handler of single records if `run` processes batches."""
