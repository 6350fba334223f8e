"""`RecordStream`: the poll loop of a consumer, and the iterations over it.

A poll returns what is buffered; before that the next fetches are sent, so that brokers work while
the caller processes records. A cancelled `anext` loses no record and ends nothing, so iterations
are objects and not async generators, which would end with it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol, Self, TypeVar

from ...records import Record
from ...wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    CorruptBatchError,
    KprotoError,
    MissingCodecError,
    RequestTimeoutError,
)
from ..core.yielding import LoopYielder
from ..fetch.completed_fetch import FetchedBatch, FetchedRecords, FetchedValues
from ..fetch.effects import FetchShell
from ..fetch.fetch_buffer import FetchBuffer
from ..fetch.fetch_options import FetchOptions
from ..fetch.fetcher import Fetcher
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .poll_status import PollStatus

__all__ = [
    "RawBatchIteration",
    "RecordIteration",
    "RecordListIteration",
    "RecordStream",
    "ValueIteration",
]

T = TypeVar("T")

_NEVER: Final = float("inf")


class _Source(Protocol):
    """The stream of an iteration."""

    async def _poll(self, reader: object, take: Callable[[], T | None]) -> T | None: ...
    async def _end_iteration(self) -> None: ...
    def _on_dropped(self, reader: object) -> None: ...


class _Iteration(AsyncIterator[T]):
    """An iteration; at its end, by `aclose`, or when it is dropped, its fetches are cancelled."""

    __slots__ = ("_buffer", "_reader", "_source")

    def __init__(self, source: _Source, buffer: FetchBuffer) -> None:
        self._source = source
        self._buffer = buffer
        self._reader = object()

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    def _take(self) -> T | None:
        """Takes what is next from the buffer; None if it is empty."""

    async def __anext__(self) -> T:
        """Returns the next one; cancelled, it takes nothing, and may be called again."""
        fetched = await self._source._poll(self._reader, self._take)
        if fetched is None:
            raise StopAsyncIteration
        return fetched

    async def aclose(self) -> None:
        """Cancels the fetches in flight; another iteration continues where this one ended.

        Without a block, a group consumer is closed: it leaves its group.
        """
        await self._source._end_iteration()

    def __del__(self) -> None:
        self._source._on_dropped(self._reader)


class RecordIteration(_Iteration[Record]):
    """Yields one record after the other."""

    __slots__ = ()

    async def __anext__(self) -> Record:
        # Mostly this is all: another call would cost much beside it.
        for record in self._buffer.rest:
            return record
        return await super().__anext__()

    def _take(self) -> Record | None:
        return self._buffer.take_record()


class RecordListIteration(_Iteration[FetchedRecords]):
    """Yields `FetchedRecords`, none of them empty."""

    __slots__ = ()

    def _take(self) -> FetchedRecords | None:
        return self._buffer.take_records()


class ValueIteration(_Iteration[FetchedValues]):
    """Yields `FetchedValues`, none of them empty."""

    __slots__ = ()

    def _take(self) -> FetchedValues | None:
        return self._buffer.take_values()


class RawBatchIteration(_Iteration[FetchedBatch]):
    """Yields `FetchedBatch`."""

    __slots__ = ()

    def _take(self) -> FetchedBatch | None:
        return self._buffer.take_batch()


class RecordStream(ABC):
    """Polls what is fetched of `subscriptions`, over connections of `owner`.

    Plain and group consumers are streams; they say how they begin, and when they end.
    """

    def __init__(
        self,
        view: ClusterView,
        options: FetchOptions,
        subscriptions: SubscriptionState,
        in_flight: InFlightFetches,
        shell: FetchShell,
        status: PollStatus,
        owner: object,
    ) -> None:
        self._view = view
        self._max_wait_ms = options.max_wait_ms
        self._owner = owner
        self._subscriptions = subscriptions
        self._buffer = subscriptions.poll.buffer
        self._in_flight = in_flight
        self._status = status
        self._yielder = LoopYielder()
        self._fetcher = Fetcher(view, options, subscriptions, in_flight, shell, owner)
        view.observer.consumer(self, subscriptions.high_watermarks)
        self._reader: object = None  # the iteration that polled last
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition, behind the last one returned.

        Empty until the consumer has begun.
        """
        return self._subscriptions.positions

    @abstractmethod
    async def _begin(self) -> None:
        """Prepares a poll: partitions and positions, or the session. May be called again."""

    @abstractmethod
    def _is_over(self) -> bool:
        """Returns True if all wanted records were returned, when the buffer is empty."""

    def __aiter__(self) -> RecordIteration:
        return RecordIteration(self, self._buffer)

    def record_lists(self) -> RecordListIteration:
        """Iterates over `FetchedRecords`: lists of records of one partition, with its name.

        A list has the records of one batch, of a part of a large one, or of several small ones.
        """
        return RecordListIteration(self, self._buffer)

    def values(self) -> ValueIteration:
        """Iterates over `FetchedValues`: lists of values of one partition, without keys.

        Records are checked as by the other iterations. Values have no offsets, and offsets cannot
        be counted, because compaction and transactions leave gaps; `next_offset` is behind them.
        """
        return ValueIteration(self, self._buffer)

    def raw_batches(self) -> RawBatchIteration:
        """Iterates over `FetchedBatch`: batches as brokers store them, to be forwarded or decoded.

        Their checksums are right; nothing is decompressed or decoded. Control batches and, with
        `read_committed`, batches of aborted transactions are left out. A batch is returned whole:
        the first may have records before the start offset, the last of `stop_at_end` records behind
        the end, and a batch whose records were returned in part is returned with these again.
        """
        return RawBatchIteration(self, self._buffer)

    # Polling

    async def _poll(self, reader: object, take: Callable[[], T | None]) -> T | None:
        """Returns what `take` takes for the iteration `reader`, once there is any; None at the end.

        Cancelled, it loses nothing.
        """
        self._view.home.check()
        if self._status.is_polling:
            raise ConfigurationError(
                "another iteration of this consumer waits for records; read it in one task, or "
                "make a consumer for each"
            )
        if self._status.is_closed and reader is self._reader:
            return None  # the consumer was closed during the iteration
        self._reader = reader
        self._status.is_polling = True
        try:
            fetched = await self._next(take)
            if fetched is None:
                await self._stop()
        except RequestTimeoutError as silent:
            await self._stop()
            # No TimeoutError: a caller of `asyncio.wait_for` would take it for its own.
            raise BrokerConnectionError(str(silent)) from silent
        except Exception:
            await self._stop()
            raise
        finally:
            self._status.is_polling = False
        return fetched

    async def _stop(self) -> None:
        """Cancels the fetches in flight and closes their connections; a poll begins again."""
        try:
            await asyncio.gather(*self._cancel(), return_exceptions=True)
        finally:
            self._fetcher.close_sessions()
            await self._view.release(self._owner)

    async def _end_iteration(self) -> None:
        await self._stop()

    def _on_dropped(self, reader: object) -> None:
        """Cancels the fetches of an iteration that was garbage-collected, in any thread."""
        if reader is self._reader and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._abandon, reader)

    def _abandon(self, reader: object) -> None:
        if reader is self._reader:
            self._cancel()
            self._fetcher.close_sessions()
            self._view.abort(self._owner)

    def _cancel(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._in_flight.cancel() if not task.done()]

    async def _next(self, take: Callable[[], T | None]) -> T | None:
        """Returns what `take` takes; None at the end. Cancelled, it cancels no fetch."""
        await self._begin()
        self._loop = asyncio.get_running_loop()
        now = self._view.clock.monotonic()
        if now >= self._yielder.next_at:
            has_yielded = await self._yielder.at_intervals(now, unless=not self._in_flight.fetches)
            if has_yielded and self._status.is_closed:
                return None
        while True:
            fetched = self._taken(take)
            if fetched is not None:
                return fetched
            if self._status.fault is not None and not self._is_fault_delayed():
                fault = self._status.take_fault()
                assert fault is not None, "there is one"
                raise fault
            if self._status.is_closed or self._is_over():
                return None
            await self._fetch_once()

    def _is_fault_delayed(self) -> bool:
        """Returns True while a fault waits for fetches in flight.

        It waits for as long as a broker may hold a fetch, so that partitions of a slower broker are
        read by a caller that polls again after each fault.
        """
        return (
            bool(self._in_flight.fetches) and self._view.clock.monotonic() < self._status.raised_at
        )

    def _taken(self, take: Callable[[], T | None]) -> T | None:
        """Returns what `take` takes from the buffer; None if it is empty.

        If a batch cannot be decoded, the position goes back to it: later batches are dropped, and
        the fetch in flight is of another position, so that the next one finds the fault again.
        """
        try:
            return take()
        except (CorruptBatchError, MissingCodecError) as error:
            state = self._subscriptions.rewind_broken()
            error.add_note(f"while reading {state.topic}[{state.partition}] of Kafka")
            raise

    # Fetching

    async def _fetch_once(self) -> None:
        """Starts what is due, waits until a part is done or more is due, and takes responses."""
        # Behind a fault nothing is begun until it is raised.
        due_at = self._fetcher.start_due() if self._status.fault is None else self._status.raised_at
        await self._in_flight.first(None if due_at == _NEVER else self._view.until(due_at))
        if self._status.is_closed:
            return
        try:
            self._fetcher.take_completed()
            if self._buffer.ready and self._status.fault is None:
                self._fetcher.start_due()
        except KprotoError as fault:
            raised_at = self._view.clock.monotonic() + self._max_wait_ms / 1000
            self._status.delay(fault, raised_at)
