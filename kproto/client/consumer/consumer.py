"""`Consumer`: reads topics and partitions without a group.

Here is how it begins, and where it ends; polling is `record_stream`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from ...wire.errors import ConfigurationError
from ..core.tasks import retrieve_exception
from ..fetch.fetch_buffer import FetchBuffer
from ..fetch.fetch_options import FetchOptions, ResetPolicy
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.start_options import Start, checked_start, checked_topics
from ..fetch.start_positions import StartPositions
from ..fetch.subscription_state import SubscriptionOptions, SubscriptionState
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .poll_status import PollStatus
from .record_stream import RecordStream

__all__ = ["Consumer", "Start"]


class Consumer(RecordStream):
    """Yields the records of partitions; made by `Client.consumer`.

    `async for record in consumer` yields one record after the other, `async for fetched in
    consumer.record_lists()` a `FetchedRecords` after the other, which is faster; `values` and
    `raw_batches` decode less, and are faster still. It is endless, unless `stop_at_end`: then it
    ends at the ends that the partitions had when it began. After an iteration is broken off,
    another one of any kind continues there. An `anext` that is cancelled, as by
    `asyncio.wait_for`, loses no record and ends nothing: the next one continues.

    Lost connections and retriable errors are waited out for `api_timeout_ms`. Raises
    BrokerResponseError for other errors, and CorruptBatchError for bytes that are no records,
    behind the records before them.
    """

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str] | Iterable[TopicPartition],
        *,
        start: Start,
        stop_at_end: bool,
        max_partition_fetch_bytes: int,
        max_wait_ms: int,
        read_committed: bool,
    ) -> None:
        checked_start(start)
        fetch_options = FetchOptions(
            max_partition_fetch_bytes,
            max_wait_ms,
            read_committed,
            _reset_policy(start),
        )
        fetch_options.check()
        options = SubscriptionOptions(start, checked_topics(topics), stop_at_end)
        buffer = FetchBuffer(view.observer.calls.on_records)
        subscriptions = SubscriptionState(view.settings, options, buffer)
        in_flight = InFlightFetches()
        owner = object()
        self._starts = StartPositions(
            view, subscriptions, start, in_flight, owner, read_committed=read_committed
        )
        self._look_up: asyncio.Task[None] | None = None
        status = PollStatus()
        super().__init__(view, fetch_options, subscriptions, in_flight, self._starts, status, owner)

    async def __aenter__(self) -> Self:
        self._view.home.check()
        try:
            await self._begin()
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
        """Ends every iteration, cancels the fetches in flight and closes their connections."""
        self._view.home.check()
        self._status.is_closed = True
        self._buffer.put_back_rest()
        self._subscriptions.high_watermarks.clear()
        await self._stop()

    async def _begin(self) -> None:
        """Looks up partitions and positions; after a cancelled poll, the next one continues."""
        if self._status.is_closed:
            raise ConfigurationError("the consumer is closed; make another one")
        while not (self._subscriptions.partitions or self._status.is_closed):
            if self._look_up is None:
                self._look_up = asyncio.create_task(self._starts.find())
                self._look_up.add_done_callback(retrieve_exception)
            task = self._look_up
            if not task.done():
                await asyncio.wait([task])
            self._look_up = None
            if not task.cancelled():
                task.result()
                return

    def _is_over(self) -> bool:
        return all(state.is_at_end for state in self._subscriptions.partitions.values())

    def _cancel(self) -> list[asyncio.Task[Any]]:
        tasks = super()._cancel()
        if self._look_up is not None and not self._look_up.done():
            self._look_up.cancel()
            tasks.append(self._look_up)
        return tasks


def _reset_policy(start: Start) -> ResetPolicy:
    """Returns where a consumer with that start continues if a position is out of range."""
    if isinstance(start, Mapping):
        return ResetPolicy.NONE
    return ResetPolicy.LATEST if start == "latest" else ResetPolicy.EARLIEST
