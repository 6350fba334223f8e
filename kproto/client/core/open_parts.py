"""`OpenParts`: the producers and consumers of a client, which are closed with it."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar

from ...clock import Clock
from ...tasks import start_task
from .tasks import until_ended

__all__ = ["OpenConsumer", "OpenParts", "OpenProducer"]

C = TypeVar("C", bound="OpenConsumer")
P = TypeVar("P", bound="OpenProducer")


class OpenProducer(Protocol):
    """The methods of a producer that end it."""

    async def close(self, *, timeout_ms: int | None = ...) -> None: ...
    async def _close_after_error(self, timeout_ms: int | None = ...) -> None: ...
    async def _send_buffered(self, timeout_ms: int | None) -> None: ...


class OpenConsumer(Protocol):
    """The methods of a consumer that end it."""

    def _check_may_close(self) -> None: ...
    async def close(self) -> None: ...
    async def _close_after_error(self) -> None: ...


class OpenParts:
    """References producers and consumers weakly: a part that the program has dropped is not closed.

    The tasks and timers of a producer keep it alive while it has incomplete records. After an error
    or a cancellation, the parts have `flush_ms` to end.
    """

    __slots__ = ("_clock", "_consumers", "_flush_ms", "_producers")

    def __init__(self, clock: Clock, flush_ms: int) -> None:
        self._clock = clock
        self._flush_ms = flush_ms
        self._producers: weakref.WeakSet[OpenProducer] = weakref.WeakSet()
        self._consumers: weakref.WeakSet[OpenConsumer] = weakref.WeakSet()

    def add_producer(self, producer: P) -> P:
        """Adds a producer; returns it."""
        self._producers.add(producer)
        return producer

    def add_consumer(self, consumer: C) -> C:
        """Adds a consumer; returns it."""
        self._consumers.add(consumer)
        return consumer

    def check_may_close(self) -> None:
        """Raises ConfigurationError if a handler or callback of a consumer makes the call."""
        for consumer in self._consumers:
            consumer._check_may_close()

    async def close(self, timeout_ms: int | None) -> list[BaseException]:
        """Closes all parts; returns the errors of the closes.

        Producers send their records within `timeout_ms`. A cancelled call closes them as after an
        error, even if it is cancelled again, and then raises CancelledError.
        """
        return await self._until_closed(self._close(timeout_ms, is_after_error=False))

    async def close_after_error(self) -> list[BaseException]:
        """Closes all parts because of an exception of the program; returns their errors."""
        return await self._until_closed(self._close(self._flush_ms, is_after_error=True))

    async def _until_closed(
        self, closing: Coroutine[Any, Any, list[BaseException]]
    ) -> list[BaseException]:
        # A cancelled close of a part may hold the last other reference to the part.
        parts = [*self._producers, *self._consumers]
        try:
            return await closing
        except asyncio.CancelledError:
            await until_ended([start_task(self._close(self._flush_ms, is_after_error=True))])
            raise
        finally:
            del parts

    async def _close(self, timeout_ms: int | None, *, is_after_error: bool) -> list[BaseException]:
        """Closes producers and consumers; the parts that other tasks close are awaited, too.

        Producers send their records first: a consumer may then commit the offsets of the records
        from which these were made. Then the consumers are closed, and then the producers, to which
        handlers may have sent more records.
        """
        began = self._clock.monotonic()
        errors = await _gathered(each._send_buffered(timeout_ms) for each in self._producers)
        errors += await _gathered(
            each._close_after_error() if is_after_error else each.close()
            for each in self._consumers
        )
        if timeout_ms is not None:
            timeout_ms = max(0, timeout_ms - round((self._clock.monotonic() - began) * 1000))
        errors += await _gathered(
            each._close_after_error(timeout_ms)
            if is_after_error
            else each.close(timeout_ms=timeout_ms)
            for each in self._producers
        )
        return errors


async def _gathered(closes: Iterable[Coroutine[Any, Any, None]]) -> list[BaseException]:
    """Runs the closes concurrently; returns their errors.

    If the caller is cancelled, the closes are cancelled, too, and end before the call does.
    """
    outcomes = await asyncio.gather(*closes, return_exceptions=True)
    return [each for each in outcomes if isinstance(each, BaseException)]
