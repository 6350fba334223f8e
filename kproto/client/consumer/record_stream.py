"""`RecordStream`: the poll loop of a consumer, and the iterations over it.

A poll that receives records sends the next fetches before it returns the records, so that fetches
are in flight while the caller processes them. A cancelled `anext` or `poll` loses no record, and a
cancelled `anext` does not end the iteration. For this reason iterations are no async generators: a
cancellation ends an async generator.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from ...codecs.undecodable import Undecodable
from ...records import Record
from ...records.type_variables import K, U, V
from ...unclosed import call_in_loop, finalize, warn_unclosed
from ...wire.checks import check_whole_number
from ...wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    CorruptBatchError,
    KprotoError,
    MissingCodecError,
    RequestTimeoutError,
    UndecodableRecordError,
    UnreadableRecordError,
)
from ..core.yielding import LoopYielder
from ..fetch.broken_batches import locate_broken_batch
from ..fetch.completed_fetch import FetchedBatch, FetchedRecords, FetchedValues
from ..fetch.effects import EffectHandler
from ..fetch.fetch_buffer import FetchBuffer
from ..fetch.fetch_options import FetchOptions
from ..fetch.fetcher import Fetcher
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..observing.log_lines import log
from .poll_status import PollStatus

if TYPE_CHECKING:
    from ...codecs.record_decoder import RecordDecoder

__all__ = [
    "PollTimeoutError",
    "RawBatchIteration",
    "RecordIteration",
    "RecordListIteration",
    "RecordStream",
    "ValueIteration",
]

T = TypeVar("T")

_NEVER: Final = float("inf")


class PollTimeoutError(Exception):
    """Raised if a poll has found no record within its timeout; `RecordStream.poll` handles it."""


class _IterationKey:
    """Identifies an iteration as the poller of its consumer."""

    __slots__ = ()


class _PollSource(Protocol):
    """The methods of `RecordStream` that iterations call."""

    async def _poll(self, poller: object, take: Callable[[], T | None]) -> T | None: ...
    async def _end_iteration(self) -> None: ...
    def _on_iteration_dropped(self, poller: object) -> None: ...


class _Iteration(AsyncIterator[T]):
    """Yields items of one type.

    The fetches in flight are cancelled at the end of the iteration, by `aclose`, and when the
    iteration is garbage-collected.
    """

    __slots__ = ("_buffer", "_poller", "_source")

    def __init__(self, source: _PollSource, buffer: FetchBuffer) -> None:
        self._buffer = buffer
        self._poller = _IterationKey()
        self._source = source

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    def _take(self) -> T | None:
        """Removes the next item from the buffer, and returns it; None if the buffer is empty."""

    async def __anext__(self) -> T:
        """Returns the next item; a cancelled call removes no item, and can be repeated."""
        fetched = await self._source._poll(self._poller, self._take)
        if fetched is None:
            raise StopAsyncIteration
        return fetched

    async def aclose(self) -> None:
        """Ends the iteration: cancels the fetches in flight.

        Another iteration of the consumer continues after the last returned item. A group consumer
        that is used without `async with` is closed: by default a dynamic member then leaves the
        group, and a static member stays.
        """
        await self._source._end_iteration()

    def __del__(self) -> None:
        source: _PollSource | None = getattr(self, "_source", None)
        if source is not None:  # Ctrl-C may have interrupted `__init__`
            source._on_iteration_dropped(self._poller)


class RecordIteration(_Iteration[Record[K, V] | U], Generic[K, V, U]):
    """Yields single records."""

    __slots__ = ()

    async def __anext__(self) -> Record[K, V] | U:
        # The fast path: for most records one more call would take longer than the rest.
        for record in self._buffer.remaining:
            return record  # type: ignore[return-value]  # without codecs, K and V are bytes
        return await super().__anext__()

    def _take(self) -> Record[K, V] | U | None:
        return self._buffer.take_record()  # type: ignore[return-value]


class DecodedRecordIteration(RecordIteration[K, V, U]):
    """Yields single records, decoded by the codecs of the consumer."""

    __slots__ = ("_decoder",)

    def __init__(
        self, source: _PollSource, buffer: FetchBuffer, decoder: RecordDecoder[K, V, U]
    ) -> None:
        super().__init__(source, buffer)
        self._decoder = decoder

    async def __anext__(self) -> Record[K, V] | U:
        for record in self._buffer.remaining:
            return self._decoder.decode(record)
        polled: Any = await _Iteration.__anext__(self)
        return self._decoder.decode(polled)


class RecordListIteration(_Iteration[FetchedRecords[K, V, U]], Generic[K, V, U]):
    """Yields `FetchedRecords`, none of them empty."""

    __slots__ = ("_decoder",)

    def __init__(
        self,
        source: _PollSource,
        buffer: FetchBuffer,
        decoder: RecordDecoder[K, V, U] | None = None,
    ) -> None:
        super().__init__(source, buffer)
        self._decoder = decoder

    def _take(self) -> FetchedRecords[K, V, U] | None:
        if self._decoder is None:
            return self._buffer.take_records()  # type: ignore[return-value]
        return self._buffer.take_decoded(self._decoder.decode_list)


class ValueIteration(_Iteration[FetchedValues[V, U]], Generic[V, U]):
    """Yields `FetchedValues`, none of them empty."""

    __slots__ = ("_decoder",)

    def __init__(
        self,
        source: _PollSource,
        buffer: FetchBuffer,
        decoder: RecordDecoder[Any, V, U] | None = None,
    ) -> None:
        super().__init__(source, buffer)
        self._decoder = decoder

    def _take(self) -> FetchedValues[V, U] | None:
        if self._decoder is None:
            return self._buffer.take_values()  # type: ignore[return-value]
        fetched = self._buffer.take_decoded(self._decoder.decode_list)
        if fetched is None:
            return None
        values: list[Any] = [
            each if isinstance(each, Undecodable) else each.value for each in fetched.records
        ]
        return FetchedValues(
            fetched.topic,
            fetched.partition,
            values,
            fetched.records[-1].offset + 1,
            fetched.high_watermark,
        )


class RawBatchIteration(_Iteration[FetchedBatch]):
    """Yields `FetchedBatch`: batches as brokers store them."""

    __slots__ = ()

    def _take(self) -> FetchedBatch | None:
        return self._buffer.take_batch()


class RecordStream(ABC, Generic[K, V, U]):
    """Polls records of the partitions in `subscriptions`, over its own connections.

    `owner` identifies these connections in the connection pool. `decoder` decodes keys and values;
    if it is None, they stay bytes. The subclasses `Consumer` and `GroupConsumer` implement how a
    consumer starts and ends.
    """

    if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
        __class_getitem__ = classmethod(GenericAlias)

    def __init__(
        self,
        view: ClusterView,
        options: FetchOptions,
        subscriptions: SubscriptionState,
        in_flight: InFlightFetches,
        effect_handler: EffectHandler,
        status: PollStatus,
        owner: object,
        decoder: RecordDecoder[K, V, U] | None,
    ) -> None:
        self._view = view
        self._decoder = decoder
        self._max_wait_ms = options.max_wait_ms
        self._max_poll_records = options.max_poll_records
        self._owner = owner
        self._subscriptions = subscriptions
        self._buffer = subscriptions.poll.buffer
        self._in_flight = in_flight
        self._effect_handler = effect_handler
        self._status = status
        self._yielder = LoopYielder()
        self._fetcher = Fetcher(view, options, subscriptions, in_flight, effect_handler, owner)
        view.observer.consumer(self, subscriptions.log_ends)
        self._poller: object = None  # the iteration that polled last
        self._loop: asyncio.AbstractEventLoop | None = None  # set when the consumer starts

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        _finalize(self._warn_if_left_open)

    def _warn_if_left_open(self) -> None:
        # Without the attribute `_loop`, `__init__` has failed.
        loop: asyncio.AbstractEventLoop | None = getattr(self, "_loop", None)
        if loop is None or not self._is_left_open():
            return
        if not loop.is_closed() and self._is_closed_with_iteration():
            return  # Python destroys both, in any order
        call_in_loop(loop, self._abandon)
        warn_unclosed(self._description(), self)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The position of each partition: the offset of the next record to return.

        The dict is empty until the consumer has started.
        """
        return self._subscriptions.positions

    def _check_may_close(self) -> None:
        """Raises ConfigurationError if the call is not made in the event loop of the client."""
        self._view.loop_guard.check()

    @abstractmethod
    async def close(self) -> None:
        """Closes the consumer."""

    async def _close_within(self, timeout_ms: int | None) -> None:
        """Closes the consumer; the requests of the close have `timeout_ms`, or the default."""
        await self.close()

    def _is_left_open(self) -> bool:
        """Returns True if the consumer has fetches or connections, and was not closed."""
        has_fetches = bool(self._in_flight.fetches)
        return not self._status.is_closed and (
            has_fetches or self._view.has_connections_of(self._owner)
        )

    def _is_closed_with_iteration(self) -> bool:
        """Returns True if an iteration made the last poll.

        In this case, the `__del__` of the iteration ends the work of the consumer.
        """
        return isinstance(self._poller, _IterationKey)

    def _abandon(self) -> None:
        """Marks the consumer as closed, and cancels its fetches.

        Called if the consumer was garbage-collected without `close`.
        """
        self._status.is_closed = True
        self._abort_fetches()

    @abstractmethod
    def _description(self) -> str:
        """Returns the name of the consumer in a warning."""

    async def _close_after_error(
        self, leave: bool | None = None, *, is_cancelled: bool = False
    ) -> None:
        """Closes the consumer because of an exception of the program.

        `leave` has an effect only for a group consumer. `is_cancelled` is True if the exception is
        CancelledError.
        """
        await self.close()

    @abstractmethod
    async def _prepare_poll(self, ends_at: float = _NEVER) -> None:
        """Prepares a poll: looks up partitions and positions, or joins the group.

        Raises PollTimeoutError if the poll is not prepared at `ends_at`, in seconds of the clock.
        """

    @abstractmethod
    def _is_finished(self) -> bool:
        """Returns True if all wanted records were returned; called when the buffer is empty."""

    def __aiter__(self) -> RecordIteration[K, V, U]:
        if self._decoder is None:
            return RecordIteration(self, self._buffer)
        return DecodedRecordIteration(self, self._buffer, self._decoder)

    def record_lists(self) -> RecordListIteration[K, V, U]:
        """Iterates over `FetchedRecords`: each has a list of records of one partition.

        A list has the records of one batch, of a part of a large batch, or of several small
        batches. With codecs, a list ends before an undecodable record, and the next call raises the
        error.
        """
        return RecordListIteration(self, self._buffer, self._decoder)

    def values(self) -> ValueIteration[V, U]:
        """Iterates over `FetchedValues`: each has a list of values of one partition, without keys.

        Records are validated as by `record_lists`. The values have no offsets. An offset cannot be
        computed by counting back from `next_offset`, because compaction and transactions leave
        gaps. With codecs, the keys are decoded, too, because an undecodable key makes a record
        undecodable.
        """
        return ValueIteration(self, self._buffer, self._decoder)

    def raw_batches(self) -> RawBatchIteration:
        """Iterates over `FetchedBatch`: batches as brokers store them, to be forwarded or decoded.

        The checksums of the batches are verified; the batches are neither decompressed nor decoded.
        Control batches and, with `read_committed`, batches of aborted transactions are left out.
        Batches are returned whole. So the first batch may have records before the start offset, and
        with `stop_at_end` the last batch may have records after the end. If another iteration has
        returned some records of a batch, `raw_batches` returns them again with the batch. Codecs
        are not applied.
        """
        return RawBatchIteration(self, self._buffer)

    # Polling

    async def poll(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record[K, V] | U]]:
        """Returns buffered records by partition; waits up to `timeout_ms` for the first record.

        Like `KafkaConsumer.poll` of Java's client, returns as soon as records are buffered, and
        returns at most `max_records`, by default `max_poll_records`. The dict is empty if no record
        arrives within `timeout_ms`, if the consumer is closed during the call, and at the end with
        `stop_at_end`. If `timeout_ms` is 0, starts the fetches that are due, and returns the
        buffered records. As in an iteration, records count as processed when the caller polls
        again; a call that returns no record is also a poll. A cancelled call loses no record.

        Outside `async with`, the first poll of a group consumer looks up manually assigned
        partitions; this look-up may take longer than `timeout_ms`. Raises the errors of an
        iteration, and ConfigurationError for an invalid argument. An error of one partition loses
        no record of another partition.
        """
        check_whole_number("timeout_ms", timeout_ms, 0)
        most = self._max_poll_records
        if max_records is not None:
            check_whole_number("max_records", max_records, 1)
            most = max_records
        ends_at = self._view.clock.monotonic() + timeout_ms / 1000
        try:
            decode = None if self._decoder is None else self._decoder.decode_list
            take = partial(self._buffer.take_polled, most, decode)
            return await self._poll(object(), take, ends_at) or {}
        except PollTimeoutError:
            return {}

    async def _poll(
        self, poller: object, take: Callable[[], T | None], ends_at: float = _NEVER
    ) -> T | None:
        """Waits until the function `take` returns an item of the buffer, and returns it.

        Returns None if the consumer has ended: no item follows. `poller` identifies the iteration
        or call that polls. A cancelled call loses no record. Raises PollTimeoutError if there is no
        item at `ends_at`, in seconds of the clock.
        """
        self._view.loop_guard.check()
        if self._status.is_polling:
            raise ConfigurationError(
                "another iteration of this consumer waits for records; iterate in one task, or "
                "create a consumer for each task"
            )
        if self._status.is_closed and poller is self._poller:
            return None  # the consumer was closed during the iteration
        self._poller = poller
        self._status.is_polling = True
        try:
            fetched = await self._poll_until_available(take, ends_at)
            if fetched is None:
                await self._stop()
        except (PollTimeoutError, UnreadableRecordError, UndecodableRecordError):
            raise  # the fetches in flight continue, and the next poll takes their records
        except RequestTimeoutError as timeout:
            await self._stop()
            # RequestTimeoutError is a TimeoutError: callers of `asyncio.wait_for` would take it for
            # their own timeout.
            raise BrokerConnectionError(str(timeout)) from timeout
        except Exception:
            await self._stop()
            raise
        finally:
            self._status.is_polling = False
        return fetched

    async def _stop(self) -> None:
        """Cancels the fetches in flight and closes their connections; a poll connects again."""
        try:
            await asyncio.gather(*self._cancel_fetches(), return_exceptions=True)
        finally:
            self._fetcher.close_sessions()
            await self._view.release(self._owner)

    async def _end_iteration(self) -> None:
        await self._stop()

    def _on_iteration_dropped(self, poller: object) -> None:
        """Cancels the fetches of a garbage-collected iteration; may run in any thread."""
        if poller is self._poller and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._abort_iteration, poller)

    def _return_in_flight(self) -> None:
        """Moves positions back before the records of the last poll: no caller has received them.

        The blocking client calls it, if its calling thread was interrupted when the poll had ended.
        """
        for state, offset, _ in [*self._buffer.in_flight.values()]:
            effects = self._subscriptions.rewind(state, offset, state.processed_bitmap)
            self._effect_handler.apply(effects)

    def _abort_iteration(self, poller: object) -> None:
        if poller is self._poller:
            self._abort_fetches()

    def _abort_fetches(self) -> None:
        self._cancel_fetches()
        self._fetcher.close_sessions()
        self._view.abort(self._owner)

    def _cancel_fetches(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._in_flight.cancel() if not task.done()]

    async def _poll_until_available(self, take: Callable[[], T | None], ends_at: float) -> T | None:
        """Waits until `take` returns an item of the buffer; returns the item.

        Returns None if the consumer is closed, or has returned all wanted records (`stop_at_end`).
        If the call is cancelled, or raises PollTimeoutError at `ends_at`, the fetches in flight
        continue.
        """
        self._loop = asyncio.get_running_loop()
        await self._prepare_poll(ends_at)
        now = self._view.clock.monotonic()
        if now >= self._yielder.next_at:
            has_yielded = await self._yielder.yield_at_intervals(
                now, unless=not self._in_flight.fetches
            )
            if has_yielded and self._status.is_closed:
                return None
        is_last = False
        while True:
            fetched = self._take_or_rewind(take)
            if fetched is not None:
                return fetched
            if self._status.pending_error is not None and not self._is_error_deferred():
                fault = self._status.take_pending_error()
                assert fault is not None, "there is one"
                raise fault
            if self._status.is_closed or self._is_finished():
                return None
            if is_last:
                raise PollTimeoutError
            # Even a poll with the timeout 0 starts fetches, and processes completed ones.
            is_last = self._view.clock.monotonic() >= ends_at
            await self._fetch_once(ends_at)

    def _is_error_deferred(self) -> bool:
        """Returns True if the pending error must wait, because fetches are still in flight.

        The error waits for up to max_wait_ms, the time for which a broker may delay a fetch. So a
        caller that polls again after each error also reads the partitions of slower brokers.
        """
        return (
            bool(self._in_flight.fetches) and self._view.clock.monotonic() < self._status.raise_by
        )

    def _take_or_rewind(self, take: Callable[[], T | None]) -> T | None:
        """Returns the result of `take`; None if the buffer is empty.

        If a record is unreadable, logs and raises the error; the next call continues after the
        record.

        If a batch is corrupt or its codec is missing, moves the position back to the batch, drops
        the later batches of the partition, and raises the error. Responses to fetches in flight are
        then ignored, because these fetches start at another position. The next fetch starts at the
        batch that cannot be decoded, so the error is raised again.
        """
        try:
            return take()
        except UnreadableRecordError as error:
            log(logging.WARNING, "the consumer cannot read %s", error)
            raise
        except (CorruptBatchError, MissingCodecError) as error:
            state = self._subscriptions.rewind_broken()
            locate_broken_batch(error, state)
            raise

    # Fetching

    async def _fetch_once(self, ends_at: float = _NEVER) -> None:
        """Starts due fetches, waits until a fetch completes or is due, and buffers responses.

        Waits until `ends_at` at most, in seconds of the clock.
        """
        # A fault must be raised before further fetches start.
        due_at = (
            self._fetcher.start_due()
            if self._status.pending_error is None
            else self._status.raise_by
        )
        due_at = min(due_at, ends_at)
        await self._in_flight.first(None if due_at == _NEVER else self._view.sleep_until(due_at))
        if not self._status.is_closed:
            self._process_completed()

    def _process_completed(self) -> None:
        """Buffers responses, and starts the next fetches if there are records to return.

        If the rest of a large response follows, a task processes it, so that the caller gets the
        first record before.
        """
        try:
            if not self._fetcher.take_completed():
                self._in_flight.start_lookup("rest of a response", self._process_rest())
            elif self._buffer.ready and self._status.pending_error is None:
                self._fetcher.start_due()
        except KprotoError as fault:
            raised_at = self._view.clock.monotonic() + self._max_wait_ms / 1000
            self._status.defer_error(fault, raised_at)

    async def _process_rest(self) -> None:
        if not self._status.is_closed:
            self._process_completed()
