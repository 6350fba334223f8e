"""The iterations over the records of a share consumer: single records, and lists of records.

A cancelled `anext` loses no record, and does not end the iteration. For this reason iterations are
no async generators: a cancellation ends an async generator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from ...records.type_variables import K, U, V
from ...wire.errors import UndecodableRecordError
from ..fetch.share.acquisition import ShareRecord
from ..fetch.share.buffer import ShareBuffer

if TYPE_CHECKING:
    from ...codecs.record_decoder import RecordDecoder

__all__ = ["DecodedShareIteration", "ShareIteration", "ShareListIteration"]

T = TypeVar("T")


class _PollSource(Protocol):
    """The methods of `ShareConsumer` that iterations call."""

    async def _poll(self, poller: object, take: Callable[[], T | None]) -> T | None: ...
    async def _end_iteration(self) -> None: ...


class _Iteration(AsyncIterator[T]):
    __slots__ = ("_buffer", "_consumer")

    def __init__(self, consumer: _PollSource, buffer: ShareBuffer) -> None:
        self._consumer = consumer
        self._buffer = buffer

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Ends the iteration; closes a consumer that is used without `async with`."""
        await self._consumer._end_iteration()


class ShareIteration(_Iteration[ShareRecord[K, V] | U], Generic[K, V, U]):
    """Yields single records of a share consumer; a cancelled `anext` loses no record."""

    __slots__ = ()

    async def __anext__(self) -> ShareRecord[K, V] | U:
        """Returns the next record; a cancelled call removes no record, and can be repeated."""
        # The fast path: for most records one more call would take longer than the rest.
        for record in self._buffer.remaining:
            return record  # type: ignore[return-value]  # without codecs, K and V are bytes
        return await self._poll_record()  # type: ignore[return-value]

    async def _poll_record(self) -> ShareRecord:
        polled = await self._consumer._poll(self, self._buffer.take_record)
        if polled is None:
            raise StopAsyncIteration
        return polled


class DecodedShareIteration(ShareIteration[K, V, U]):
    """Yields single records, decoded by the codecs of the consumer."""

    __slots__ = ("_decoder",)

    def __init__(
        self, consumer: _PollSource, buffer: ShareBuffer, decoder: RecordDecoder[K, V, U]
    ) -> None:
        super().__init__(consumer, buffer)
        self._decoder = decoder

    async def __anext__(self) -> ShareRecord[K, V] | U:
        """Returns the next record, as `ShareIteration` does.

        Raises UndecodableRecordError for an undecodable record, unless the consumer returns an
        `Undecodable` for it; the next call continues after the record.
        """
        for record in self._buffer.remaining:
            return self._decode(record)
        return self._decode(await self._poll_record())

    def _decode(self, record: ShareRecord) -> ShareRecord[K, V] | U:
        """Returns the decoded form of a returned record; reports an undecodable one."""
        try:
            decoded: Any = self._decoder.decode(record)
        except UndecodableRecordError:
            self._buffer.on_undecodable(record)
            raise
        returned: ShareRecord[K, V] | U = decoded
        return returned


class ShareListIteration(_Iteration[list[ShareRecord[K, V] | U]], Generic[K, V, U]):
    """Yields lists of records of a share consumer, each of one partition."""

    __slots__ = ("_take",)

    def __init__(
        self,
        consumer: _PollSource,
        buffer: ShareBuffer,
        decoder: RecordDecoder[K, V, U] | None = None,
    ) -> None:
        super().__init__(consumer, buffer)
        decode = None if decoder is None else decoder.decode_list
        self._take = partial(buffer.take_list, None, decode)

    async def __anext__(self) -> list[ShareRecord[K, V] | U]:
        """Returns the next list; a cancelled call removes no record, and can be repeated."""
        taken = await self._consumer._poll(self, self._take)
        if taken is None:
            raise StopAsyncIteration
        return taken[1]
