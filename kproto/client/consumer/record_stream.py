"""`RecordStream`: who reads what is fetched, from his question to what he is given.

It asks each leader for all its partitions in one fetch, and asks again before it hands out what
came, so that the brokers work while the user does. Its turns are `fetching`'s. Which partitions
there are, and since when, says who inherits it: `consumer` has those that it was given.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ...wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    CorruptBatchError,
    KprotoError,
    MissingCodecError,
    RequestTimeoutError,
)
from ..fetch.fetch_buffer import (
    FetchBuffer,
    RawBatchIteration,
    RecordIteration,
    RecordListIteration,
    ValueIteration,
)
from ..fetch.fetcher import Fetcher, FetchOptions
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.manual_partitions import FetchablePartitions
from ..fetch.partition_state import NOT_FOUND
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView

__all__ = ["RecordStream"]

T = TypeVar("T")

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")

#: Who reads without waiting for anything else lets the event loop turn so often, in seconds: what
#: comes meanwhile is read from the socket, and the broker sends on. Other tasks have their turn.
_GIVE_WAY_S: Final = 0.001


class RecordStream(ABC):
    """Hands out what is fetched of `partitions`, over the connections of `owner`."""

    def __init__(
        self,
        view: ClusterView,
        options: FetchOptions,
        partitions: FetchablePartitions,
        under_way: InFlightFetches,
        handing_out: FetchBuffer,
        owner: object,
    ) -> None:
        self._view = view
        self._max_wait_ms = options.max_wait_ms
        self._owner = owner  # has the connections
        self._closed = False
        self._under_way = under_way
        self._fault: Exception | None = None  # told behind the records that came before it
        self._told_at = _NEVER  # by then, in seconds of the clock
        self._gives_way_at = _LONG_AGO
        self._has_turned = True  # the loop, since that was set
        self._handing_out = handing_out
        self._ready = handing_out.ready
        self._partitions = partitions
        self._fetching = Fetcher(view, options, partitions, under_way, handing_out, owner)
        view.observer.consumer(self, self._fetching.high_watermarks)
        self._reader: object = None  # the iteration that asked last
        self._is_asked = False  # it waits
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition, behind the last one handed out.

        Empty until the consumer has begun.
        """
        found = {
            place: state.position
            for place, state in self._partitions.by_place.items()
            if state.position != NOT_FOUND
        }
        return found | self._handing_out.positions

    @abstractmethod
    async def _begin(self) -> None:
        """What is to be there before anything is fetched. Cancelled, it is asked for again."""

    @abstractmethod
    def _is_over(self) -> bool:
        """Whether all that is wanted has been handed out, when nothing waits to be."""

    def __aiter__(self) -> RecordIteration:
        return RecordIteration(self, self._handing_out)

    def record_lists(self) -> RecordListIteration:
        """Iterate over `FetchedRecords`: the `records` of one partition, and where they stood.

        They are those of one batch, of a part of a large one, or of some small ones.
        """
        return RecordListIteration(self, self._handing_out)

    def values(self) -> ValueIteration:
        """Iterate over `FetchedValues`: the `values` of one partition, without keys and the rest.

        What is left out is checked as for records. The offsets of values are not told, and cannot
        be counted, since compaction and transactions leave gaps; `next_offset` is behind them.
        """
        return ValueIteration(self, self._handing_out)

    def raw_batches(self) -> RawBatchIteration:
        """Iterate over `FetchedBatch`: batches as they came, to be passed on or opened elsewhere.

        Their checksums are right; nothing is decompressed or decoded. Control batches and, with
        `read_committed`, those of aborted transactions are left out. A batch is given whole: the
        first may hold records before the offset asked for, the last of `stop_at_end` some behind
        the end, and one of which some records have been handed out comes again with these.
        """
        return RawBatchIteration(self, self._handing_out)

    # What iterations ask

    async def _next_fetched(self, reader: object, take: Callable[[], T | None]) -> T | None:
        """What `take` gives to the iteration `reader`, once there is something; None at the end."""
        self._view.home.check()
        if self._is_asked:
            raise ConfigurationError(
                "another iteration of this consumer waits for records; read it in one task, or "
                "make a consumer for each"
            )
        if self._closed and reader is self._reader:
            return None  # it was closed while this one was read
        self._reader = reader
        self._is_asked = True
        try:
            fetched = await self._next(take)
            if fetched is None:
                await self._stop()
        except RequestTimeoutError as silent:
            await self._stop()
            # Not as a TimeoutError, which who polls by `asyncio.wait_for` would take for his own.
            raise BrokerConnectionError(str(silent)) from silent
        except Exception:
            await self._stop()
            raise
        finally:
            self._is_asked = False
        return fetched

    async def _stop(self) -> None:
        """Give up the fetches under way, and their connections; an iteration begins them again."""
        try:
            await asyncio.gather(*self._cancel(), return_exceptions=True)
        finally:
            self._fetching.close_sessions()
            await self._view.release(self._owner)

    def _dropped(self, reader: object) -> None:
        """The iteration of `reader` was dropped: give up what is under way for it."""
        if reader is self._reader and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._abandon, reader)

    def _abandon(self, reader: object) -> None:
        if reader is self._reader:
            self._cancel()
            self._fetching.close_sessions()
            self._view.abort(self._owner)

    def _cancel(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._under_way.cancel() if not task.done()]

    async def _next(self, take: Callable[[], T | None]) -> T | None:
        """What `take` gives; None at the end. Cancelled, it leaves what is under way."""
        await self._begin()
        self._loop = asyncio.get_running_loop()
        now = self._view.clock.monotonic()
        if now >= self._gives_way_at:
            if not self._has_turned and self._under_way.fetches:
                await asyncio.sleep(0)
                if self._closed:
                    return None
            self._gives_way_at = now + _GIVE_WAY_S
            self._has_turned = False
            asyncio.get_running_loop().call_soon(self._turned)
        while True:
            fetched = self._taken(take)
            if fetched is not None:
                return fetched
            if self._fault is not None and not self._is_held_back():
                fault, self._fault = self._fault, None
                raise fault
            if self._closed or self._is_over():
                return None
            await self._turn()

    def _turned(self) -> None:
        self._has_turned = True

    def _is_held_back(self) -> bool:
        """Whether a fault is still to wait for what is under way.

        It does for as long as a broker may hold a fetch, so that partitions of a slower broker go
        on for who reads on behind each fault.
        """
        return bool(self._under_way.fetches) and self._view.clock.monotonic() < self._told_at

    def _taken(self, take: Callable[[], T | None]) -> T | None:
        """What `take` gives of what came; None where nothing is left of it.

        Where a batch cannot be opened its partition goes back to it: what came behind is dropped,
        and the fetch under way is for another position, so that the next one finds the fault again.
        """
        try:
            return take()
        except (CorruptBatchError, MissingCodecError) as error:
            unreadable = self._handing_out.drop_unreadable()
            state = unreadable.state
            state.position = unreadable.from_offset
            error.add_note(f"while reading {state.topic}[{state.partition}] of Kafka")
            raise

    # Fetching

    async def _turn(self) -> None:
        """Start what is due, wait until some of it is done or more is due, and take what came."""
        # Behind a fault nothing is begun until it is told.
        moment = self._fetching.start_what_is_due() if self._fault is None else self._told_at
        await self._under_way.first(None if moment == _NEVER else self._view.until(moment))
        if self._closed:
            return
        try:
            self._fetching.take_what_came()
            if self._ready and self._fault is None:
                self._fetching.start_what_is_due()
        except KprotoError as fault:
            if self._fault is None:
                self._fault = fault
                self._told_at = self._view.clock.monotonic() + self._max_wait_ms / 1000
