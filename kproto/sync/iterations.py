"""Iterations over the records of a consumer: they wait for the event loop once a list of records.

The event loop's thread reads a list of records. The calling thread takes the records of the list
one after the other, without the event loop, and applies codecs to them: a step of the list's
iterator is one operation in Python, also while the event loop reads how far the iteration is. So a
record counts as processed when the caller asks for the next one, as in the asyncio client.

Ctrl-C may interrupt a poll whose record the caller has not received. The event loop then moves the
position back before that record, perhaps later. So an interrupted iteration, and a new one, polls
before it takes records without the event loop: the event loop carries out the poll afterwards.
Between the step of the list's iterator and the `return` of its record, an iteration calls no
function but the decoder, because CPython checks for signals when a function begins, after a call in
C, and in loops. If the decoder is interrupted, the record is given back.
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
from ..wire.errors import UndecodableRecordError

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

    def _give_back(self, record: Any) -> None: ...

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
    """The buffer of an iteration that has to poll, and of an iteration of the parent process."""

    def __init__(self) -> None:
        self.remaining: Iterator[Record] = iter(())


_NO_RECORDS: Final = _NoRecords()


class _Iteration(Iterator[T]):
    """Yields the items of an iteration of the asyncio client.

    The fetches in flight are cancelled at the end of the iteration, by `close`, and when the
    iteration is garbage-collected.
    """

    __slots__ = ("_consumer", "_iteration", "_poll")

    def __init__(self, consumer: Poller, iteration: _Source[T]) -> None:
        self._consumer = consumer
        self._iteration = iteration
        self._poll: Callable[[], Coroutine[Any, Any, Any]] = iteration.__anext__

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Returns the next item; a call that Ctrl-C interrupts removes no item."""
        return self._next()

    def _next(self) -> T:
        try:
            item: T = self._consumer._poll_call(self._poll)
        except StopAsyncIteration:
            raise StopIteration from None
        return item

    def close(self) -> None:
        """Ends the iteration: cancels the fetches in flight.

        Another iteration of the consumer continues after the last returned item. A group consumer
        that is used without `with` is closed: by default a dynamic member then leaves the group,
        and a static member stays.
        """
        self._consumer._end(self._iteration.aclose)


class _BufferedIteration(_Iteration[T]):
    """Takes records of a buffer; polls if the buffer is empty, and after an interruption."""

    __slots__ = ("__weakref__", "_buffer", "_polled")

    def __init__(
        self,
        consumer: Poller,
        iteration: _Source[T],
        poll: Callable[[], Coroutine[Any, Any, Any]],
        polled: _Buffer,
    ) -> None:
        super().__init__(consumer, iteration)
        self._poll = poll
        self._polled = polled
        self._buffer: _Buffer = _NO_RECORDS
        _iterations.add(self)

    def __next__(self) -> T:
        """Returns the next record; a call that Ctrl-C interrupts removes no record."""
        for record in self._buffer.remaining:
            return record  # type: ignore[return-value]  # without codecs, T is a record of bytes
        return self._poll_record()

    def _poll_record(self) -> T:
        self._buffer = _NO_RECORDS
        record = self._next()
        self._buffer = self._polled
        return record


class _DecodedIteration(_BufferedIteration[T]):
    """Decodes each record; the consumer gets back the record of an interrupted call."""

    __slots__ = ("_decode",)

    _decode: Callable[[Any], T]

    def __next__(self) -> T:
        """Returns the next record; a call that Ctrl-C interrupts removes no record.

        A share group then delivers the record again. Raises UndecodableRecordError for an
        undecodable record, unless the consumer returns an `Undecodable` for it; the next call
        continues after the record.
        """
        taken: Any = None
        try:
            for taken in self._buffer.remaining:
                return self._decode(taken)
            taken = self._poll_record()
            return self._decode(taken)
        except UndecodableRecordError:
            raise
        except BaseException:
            if taken is not None:
                self._buffer = _NO_RECORDS
                self._consumer._give_back(taken)
            raise


class RecordIteration(_BufferedIteration[Record[K, V] | U], Generic[K, V, U]):
    """Yields single records."""

    __slots__ = ()

    def __init__(self, consumer: Poller, iteration: record_stream.RecordIteration[K, V, U]) -> None:
        # The fast path of the asyncio iteration is left out.
        poll = partial(record_stream._Iteration.__anext__, iteration)
        super().__init__(consumer, iteration, poll, iteration._buffer)


class DecodedRecordIteration(_DecodedIteration[Record[K, V] | U], RecordIteration[K, V, U]):
    """Yields single records; the calling thread decodes them by the codecs of the consumer."""

    __slots__ = ()

    def __init__(
        self, consumer: Poller, iteration: record_stream.DecodedRecordIteration[K, V, U]
    ) -> None:
        super().__init__(consumer, iteration)
        self._decode = iteration._decoder.decode


def record_iteration(
    consumer: Poller, iteration: record_stream.RecordIteration[K, V, U]
) -> RecordIteration[K, V, U]:
    """Returns the blocking form of an iteration over single records."""
    if isinstance(iteration, record_stream.DecodedRecordIteration):
        return DecodedRecordIteration(consumer, iteration)
    return RecordIteration(consumer, iteration)


class ShareIteration(_BufferedIteration[ShareRecord[K, V] | U], Generic[K, V, U]):
    """Yields single records of a share consumer."""

    __slots__ = ()

    def __init__(
        self, consumer: Poller, iteration: share_iterations.ShareIteration[K, V, U]
    ) -> None:
        super().__init__(consumer, iteration, iteration._poll_record, iteration._buffer)


class DecodedShareIteration(_DecodedIteration[ShareRecord[K, V] | U], ShareIteration[K, V, U]):
    """Yields single records; the calling thread decodes them by the codecs of the consumer."""

    __slots__ = ()

    def __init__(
        self, consumer: Poller, iteration: share_iterations.DecodedShareIteration[K, V, U]
    ) -> None:
        super().__init__(consumer, iteration)
        self._decode = iteration._decode


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
_iterations: Final[WeakSet[_BufferedIteration[Any]]] = WeakSet()


def _drop_records() -> None:
    """Makes the iterations of a child process take no record that the parent has polled."""
    for each in [*_iterations]:
        each._buffer = each._polled = _NO_RECORDS


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
