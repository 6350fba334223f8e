"""Iterations over the records of a consumer: they wait for the event loop once a list of records.

The event loop's thread reads a list of records. The calling thread takes the records of the list
one after the other, without the event loop, and applies codecs to them: a step of the list's
iterator is one operation in Python, also while the event loop reads how far the iteration is. So a
record counts as processed when the caller asks for the next one, as in the asyncio client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final, Generic, Protocol, Self, TypeVar
from weakref import WeakSet

from ..client.consumer import record_stream, share_iterations
from ..client.fetch.completed_fetch import FetchedBatch, FetchedRecords, FetchedValues
from ..client.fetch.share.acquisition import ShareRecord
from ..records import Record
from ..records.type_variables import K, U, V

__all__ = [
    "DecodedRecordIteration",
    "DecodedShareIteration",
    "Poller",
    "RawBatchIteration",
    "RecordIteration",
    "RecordListIteration",
    "ShareIteration",
    "ShareListIteration",
    "ValueIteration",
    "record_iteration",
    "share_iteration",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Poller(Protocol):
    """The methods of a consumer that an iteration calls."""

    def _poll_call(
        self, function: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any
    ) -> R: ...

    def _end(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None: ...


class _Source(Protocol[T_co]):
    """An iteration of the asyncio client."""

    async def __anext__(self) -> T_co: ...

    async def aclose(self) -> None: ...


class _Buffer(Protocol):
    """The records that a consumer has polled, and that the caller has not taken."""

    @property
    def remaining(self) -> Iterator[Record]: ...


class _NoRecords:
    """The buffer of an iteration of the parent process."""

    def __init__(self) -> None:
        self.remaining: Iterator[Record] = iter(())


class _Iteration(Iterator[T]):
    """Yields the items of an iteration of the asyncio client.

    The fetches in flight are cancelled at the end of the iteration, by `close`, and when the
    iteration is garbage-collected.
    """

    __slots__ = ("_consumer", "_iteration")

    def __init__(self, consumer: Poller, iteration: _Source[T]) -> None:
        self._consumer = consumer
        self._iteration = iteration

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Returns the next item; a call that Ctrl-C interrupts removes no item."""
        return self._next()

    def _next(self) -> T:
        try:
            return self._consumer._poll_call(self._iteration.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """Ends the iteration: cancels the fetches in flight.

        Another iteration of the consumer continues after the last returned item. A group consumer
        that is used without `with` is closed: by default a dynamic member then leaves the group,
        and a static member stays.
        """
        self._consumer._end(self._iteration.aclose)


class RecordIteration(_Iteration[Record[K, V] | U], Generic[K, V, U]):
    """Yields single records."""

    __slots__ = ("__weakref__", "_buffer")

    def __init__(self, consumer: Poller, iteration: record_stream.RecordIteration[K, V, U]) -> None:
        super().__init__(consumer, iteration)
        self._buffer: _Buffer = iteration._buffer
        _iterations.add(self)

    def __next__(self) -> Record[K, V] | U:
        """Returns the next record; a call that Ctrl-C interrupts removes no record."""
        for record in self._buffer.remaining:
            return record  # type: ignore[return-value]  # without codecs, K and V are bytes
        return self._next()


class DecodedRecordIteration(RecordIteration[K, V, U]):
    """Yields single records; the calling thread decodes them by the codecs of the consumer."""

    __slots__ = ("_decoder", "_poll")

    def __init__(
        self, consumer: Poller, iteration: record_stream.DecodedRecordIteration[K, V, U]
    ) -> None:
        super().__init__(consumer, iteration)
        self._decoder = iteration._decoder
        self._poll: Any = partial(record_stream._Iteration.__anext__, iteration)

    def __next__(self) -> Record[K, V] | U:
        """Returns the next record; a call that Ctrl-C interrupts during its wait removes none.

        Raises UndecodableRecordError for an undecodable record, unless the consumer returns an
        `Undecodable` for it; the next call continues after the record.
        """
        for record in self._buffer.remaining:
            return self._decoder.decode(record)
        try:
            polled: Record = self._consumer._poll_call(self._poll)
        except StopAsyncIteration:
            raise StopIteration from None
        return self._decoder.decode(polled)


def record_iteration(
    consumer: Poller, iteration: record_stream.RecordIteration[K, V, U]
) -> RecordIteration[K, V, U]:
    """Returns the blocking form of an iteration over single records."""
    if isinstance(iteration, record_stream.DecodedRecordIteration):
        return DecodedRecordIteration(consumer, iteration)
    return RecordIteration(consumer, iteration)


class ShareIteration(_Iteration[ShareRecord[K, V] | U], Generic[K, V, U]):
    """Yields single records of a share consumer."""

    __slots__ = ("__weakref__", "_buffer")

    def __init__(
        self, consumer: Poller, iteration: share_iterations.ShareIteration[K, V, U]
    ) -> None:
        super().__init__(consumer, iteration)
        self._buffer: _Buffer = iteration._buffer
        _iterations.add(self)

    def __next__(self) -> ShareRecord[K, V] | U:
        """Returns the next record; a call that Ctrl-C interrupts removes no record."""
        for record in self._buffer.remaining:
            return record  # type: ignore[return-value]  # a share consumer has such records
        return self._next()


class DecodedShareIteration(ShareIteration[K, V, U]):
    """Yields single records; the calling thread decodes them by the codecs of the consumer."""

    __slots__ = ("_decode", "_poll")

    def __init__(
        self, consumer: Poller, iteration: share_iterations.DecodedShareIteration[K, V, U]
    ) -> None:
        super().__init__(consumer, iteration)
        self._decode: Callable[[Any], ShareRecord[K, V] | U] = iteration._decode
        self._poll = iteration._poll_record

    def __next__(self) -> ShareRecord[K, V] | U:
        """Returns the next record; a call that Ctrl-C interrupts during its wait removes none.

        Raises UndecodableRecordError for an undecodable record, unless the consumer returns an
        `Undecodable` for it; the next call continues after the record.
        """
        for record in self._buffer.remaining:
            return self._decode(record)
        try:
            polled = self._consumer._poll_call(self._poll)
        except StopAsyncIteration:
            raise StopIteration from None
        return self._decode(polled)


def share_iteration(
    consumer: Poller, iteration: share_iterations.ShareIteration[K, V, U]
) -> ShareIteration[K, V, U]:
    """Returns the blocking form of an iteration over single records of a share consumer."""
    if isinstance(iteration, share_iterations.DecodedShareIteration):
        return DecodedShareIteration(consumer, iteration)
    return ShareIteration(consumer, iteration)


class ShareListIteration(_Iteration[list[ShareRecord[K, V] | U]], Generic[K, V, U]):
    """Yields lists of records of a share consumer, each of one partition."""

    __slots__ = ()


#: All iterations, whose records belong to the parent process after a fork.
_iterations: Final[WeakSet[RecordIteration[Any, Any, Any] | ShareIteration[Any, Any, Any]]] = (
    WeakSet()
)


def _drop_records() -> None:
    """Makes the iterations of a child process take no record that the parent has polled."""
    for each in [*_iterations]:
        each._buffer = _NoRecords()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_records)


class RecordListIteration(_Iteration[FetchedRecords[K, V, U]], Generic[K, V, U]):
    """Yields `FetchedRecords`, none of them empty."""

    __slots__ = ()


class ValueIteration(_Iteration[FetchedValues[V, U]], Generic[V, U]):
    """Yields `FetchedValues`, none of them empty."""

    __slots__ = ()


class RawBatchIteration(_Iteration[FetchedBatch]):
    """Yields `FetchedBatch`: batches as brokers store them."""

    __slots__ = ()
