"""`Consumer`: reads topics and partitions without a group.

`Consumer` looks up the start positions and the ends of partitions; `record_stream` polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ...records.type_variables import K, U, V
from ...tasks import start_task
from ...wire.errors import ConfigurationError
from ..core.tasks import retrieve_exception, shielded
from ..fetch.fetch_buffer import FetchBuffer
from ..fetch.fetch_options import DEFAULT_FETCH_OPTIONS, FetchOptions
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.start_options import (
    Start,
    check_start,
    checked_topics,
    parse_start,
    reset_policy_of,
    topic_of,
)
from ..fetch.start_positions import StartPositionLookup
from ..fetch.subscription_state import SubscriptionOptions, SubscriptionState
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .poll_status import PollStatus
from .record_stream import PollTimeoutError, RecordStream

if TYPE_CHECKING:
    from ...codecs.record_decoder import RecordDecoder

__all__ = ["Consumer", "Start"]

_NEVER: Final = float("inf")


class Consumer(RecordStream[K, V, U]):
    """Yields the records of partitions; `Client.consumer` creates it.

    `async for record in consumer` yields single records. `async for fetched in
    consumer.record_lists()` yields `FetchedRecords`, which is faster; `values` and `raw_batches`
    decode less, and are faster still. Iterations are endless; with `stop_at_end` they end at the
    log ends that the consumer finds when it looks up its start positions. After a `break`, another
    iteration of any kind continues after the last returned item. An `anext` that is cancelled, as
    by `asyncio.wait_for`, loses no record and does not end the iteration. `poll` returns records by
    partition within a timeout.

    After a lost connection or a retriable error code, requests are retried for `api_timeout_ms`;
    then the last error is raised. Raises BrokerResponseError for other error codes. For bytes that
    are no records, returns the records before the bytes, and then raises CorruptBatchError. Raises
    UnreadableRecordError once for an unreadable record; the next call continues after the record.
    With codecs, raises UndecodableRecordError in the same way. In annotations, `Consumer` yields
    records of bytes, and `Consumer[str, Order]` records with decoded keys and values.
    """

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str] | Iterable[TopicPartition],
        *,
        start: Start,
        stop_at_end: bool,
        fetch_options: FetchOptions = DEFAULT_FETCH_OPTIONS,
        decoder: RecordDecoder[K, V, U] | None = None,
    ) -> None:
        start = parse_start(start)
        check_start(start)
        fetch_options = fetch_options._replace(reset_policy=reset_policy_of(start))
        fetch_options.check()
        options = SubscriptionOptions(start, checked_topics(topics), stop_at_end)
        if fetch_options.allow_auto_create_topics:
            view.topic_creation.allow(map(topic_of, options.subscribed))
        buffer = FetchBuffer(
            view.observer.calls.on_records,
            max_decompressed_bytes=fetch_options.decompressed_limit,
            max_polled_bytes=fetch_options.processing_limit,
        )
        subscriptions = SubscriptionState(view.settings, options, buffer)
        in_flight = InFlightFetches()
        owner = object()
        self._starts = StartPositionLookup(
            view,
            subscriptions,
            start,
            in_flight,
            owner,
            read_committed=fetch_options.read_committed,
        )
        self._start_positions_task: asyncio.Task[None] | None = None
        status = PollStatus()
        super().__init__(
            view, fetch_options, subscriptions, in_flight, self._starts, status, owner, decoder
        )

    async def __aenter__(self) -> Self:
        self._view.loop_guard.check()
        self._loop = asyncio.get_running_loop()
        try:
            await self._prepare_poll()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends every iteration, cancels the fetches in flight and closes their connections.

        If the call is cancelled, it completes these steps before it raises CancelledError.
        """
        self._view.loop_guard.check()
        self._status.is_closed = True
        self._buffer.put_back_remaining()
        self._subscriptions.log_ends.clear()
        settings = self._view.settings
        await shielded(
            self._stop(),
            self._view.clock,
            settings.max_cancelled_close_ms,
            what=f"the close of {self._description()}",
        )

    def _is_left_open(self) -> bool:
        task = self._start_positions_task
        is_looking_up = task is not None and not task.done()
        return super()._is_left_open() or (is_looking_up and not self._status.is_closed)

    def _description(self) -> str:
        names = sorted(set(map(topic_of, self._subscriptions.options.subscribed)))
        return f"a consumer of {', '.join(names)}"

    async def _prepare_poll(self, ends_at: float = _NEVER) -> None:
        """Waits until the partitions and start positions are known; starts their look-up if needed.

        If the poll is cancelled, the look-up continues. Raises PollTimeoutError if the look-up has
        not ended at `ends_at`, in seconds of the clock.
        """
        if self._status.is_closed:
            raise ConfigurationError("the consumer is closed; create another one")
        while not (self._subscriptions.partitions or self._status.is_closed):
            if self._start_positions_task is None:
                self._start_positions_task = start_task(self._starts.find())
                self._start_positions_task.add_done_callback(retrieve_exception)
            task = self._start_positions_task
            if not task.done():
                await self._wait_for(task, ends_at)
            self._start_positions_task = None
            if not task.cancelled():
                task.result()
                return

    async def _wait_for(self, task: asyncio.Task[None], ends_at: float) -> None:
        """Waits until `task` is done; raises PollTimeoutError at `ends_at`.

        `task` continues after PollTimeoutError.
        """
        if ends_at == _NEVER:
            await asyncio.wait([task])
            return
        clock = self._view.clock
        with suppress(TimeoutError):
            async with clock.timeout(max(0.0, ends_at - clock.monotonic())):
                await asyncio.wait([task])
        if not task.done():
            raise PollTimeoutError

    @property
    def at_end(self) -> bool:
        """True if `stop_at_end` is set, and all records before the ends were returned."""
        has_started = bool(self._subscriptions.partitions)
        return has_started and self._buffer.is_empty and self._is_finished()

    def _is_finished(self) -> bool:
        return self._subscriptions.planner.is_finished

    def _cancel_fetches(self) -> list[asyncio.Task[Any]]:
        tasks = super()._cancel_fetches()
        if self._start_positions_task is not None and not self._start_positions_task.done():
            self._start_positions_task.cancel()
            tasks.append(self._start_positions_task)
        return tasks
