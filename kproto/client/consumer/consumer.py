"""`Consumer`: reads partitions it was given, without a group.

What a reader is asked and gives is `reader`'s, the partitions that it reads `partitions`'s; here
stands how it begins, and where it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from ...wire.errors import ConfigurationError
from ..core.tasks import retrieve_exception
from ..fetch.fetch_buffer import FetchBuffer
from ..fetch.fetcher import FetchOptions
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.manual_partitions import ManualPartitions, ReadOptions
from ..fetch.start_options import Start, checked_start, checked_topics
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .record_stream import RecordStream

__all__ = ["Consumer", "Start"]


class Consumer(RecordStream):
    """Yields the records of partitions; made by `Client.consumer`.

    `async for record in consumer` yields one record after the other, `async for fetched in
    consumer.record_lists()` a `FetchedRecords` after the other, which is faster; `values` and
    `raw_batches` give less, and are faster still. Endless, unless `stop_at_end`: then it ends at
    what were the ends of the partitions when it began. An iteration that was broken off goes on
    where it was when another is begun, of whatever kind. An `anext` that is cancelled, as by
    `asyncio.wait_for`, loses nothing and ends nothing: the next one goes on.

    Lost connections and errors that a new leader or a little time mends are waited out for
    `delivery_timeout_ms`. Raises BrokerResponseError for others, CorruptBatchError for bytes that
    are no records, behind the good ones before them.
    """

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str] | Iterable[TopicPartition],
        *,
        start: Start,
        stop_at_end: bool,
        max_bytes: int,
        max_wait_ms: int,
        read_committed: bool,
    ) -> None:
        checked_start(start)
        fetch_options = FetchOptions(
            max_bytes,
            max_wait_ms,
            read_committed,
            prefers_end=start == "latest",
            is_exact=isinstance(start, Mapping),
        )
        fetch_options.check()
        options = ReadOptions(start, stop_at_end, read_committed)
        self._beginning: asyncio.Task[None] | None = None
        owner = object()
        under_way = InFlightFetches()
        partitions = ManualPartitions(view, checked_topics(topics), options, under_way, owner)
        handing_out = FetchBuffer(view.observer.calls.on_records)
        super().__init__(view, fetch_options, partitions, under_way, handing_out, owner)
        self._given = partitions

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
        """End every iteration, give up the fetches under way and close their connections."""
        self._view.home.check()
        self._closed = True
        self._handing_out.put_back_rest()
        self._fetching.high_watermarks.clear()
        await self._stop()

    async def _begin(self) -> None:
        """Look for partitions and positions; who is cancelled finds them when he asks again."""
        if self._closed:
            raise ConfigurationError("the consumer is closed; make another one")
        while not (self._given.by_place or self._closed):
            if self._beginning is None:
                self._beginning = asyncio.create_task(self._given.find())
                self._beginning.add_done_callback(retrieve_exception)
            task = self._beginning
            if not task.done():
                await asyncio.wait([task])
            self._beginning = None
            if not task.cancelled():
                task.result()
                return

    def _is_over(self) -> bool:
        return all(state.is_at_end for state in self._given.by_place.values())

    def _cancel(self) -> list[asyncio.Task[Any]]:
        tasks = super()._cancel()
        if self._beginning is not None and not self._beginning.done():
            self._beginning.cancel()
            tasks.append(self._beginning)
        return tasks
