"""`OpenParts`: the producers and consumers of a client, which are closed with it."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from ...clock import Clock
from ...wire.errors import ConfigurationError, RequestTimeoutError
from .tasks import shielded, until_ended

__all__ = ["OpenConsumer", "OpenParts", "OpenProducer"]

logger = logging.getLogger("kproto.client")

C = TypeVar("C", bound="OpenConsumer")
P = TypeVar("P", bound="OpenProducer")


class OpenProducer(Protocol):
    """The methods that end a producer, and the transactional id of the producer."""

    @property
    def transactional_id(self) -> str | None: ...
    @property
    def is_closed(self) -> bool: ...

    async def close(self, *, timeout_ms: int | None = ...) -> None: ...
    async def _close_after_error(self, timeout_ms: int | None = ...) -> None: ...
    async def _send_buffered(self, timeout_ms: int | None) -> None: ...


class OpenConsumer(Protocol):
    """Declares the methods that close a consumer."""

    def _check_may_close(self) -> None: ...
    async def _close_within(self, timeout_ms: int | None) -> None: ...
    async def _close_after_error(self, *, is_cancelled: bool = ...) -> None: ...


class OpenParts:
    """Holds the producers and consumers of a client by weak references.

    `close` does not close a producer or consumer that the program has dropped. While a producer has
    incomplete records, its tasks and timers prevent its garbage collection. After an error or a
    cancellation, producers have `flush_ms` to send their records. A close ends at most `limit_ms`
    after a cancellation.
    """

    __slots__ = (
        "_background_closes",
        "_clock",
        "_consumers",
        "_flush_ms",
        "_limit_ms",
        "_producers",
    )

    def __init__(self, clock: Clock, flush_ms: int, limit_ms: int) -> None:
        self._clock = clock
        self._flush_ms = flush_ms
        self._limit_ms = limit_ms
        self._producers: weakref.WeakSet[OpenProducer] = weakref.WeakSet()
        self._consumers: weakref.WeakSet[OpenConsumer] = weakref.WeakSet()
        self._background_closes: set[asyncio.Task[None]] = set()

    def add_producer(self, producer: P) -> P:
        """Adds a producer; returns it."""
        self._producers.add(producer)
        return producer

    def add_consumer(self, consumer: C) -> C:
        """Adds a consumer; returns it."""
        self._consumers.add(consumer)
        return consumer

    def add_background_close(self, task: asyncio.Task[None]) -> None:
        """Adds a task that closes a dropped consumer; the close of the client waits for it."""
        self._background_closes.add(task)
        task.add_done_callback(self._background_closes.discard)

    def check_transactional_id(self, transactional_id: str) -> None:
        """Raises ConfigurationError if an open producer has the transactional id."""
        for producer in self._producers:
            if producer.transactional_id == transactional_id and not producer.is_closed:
                raise ConfigurationError(
                    f"transactional_id {transactional_id!r} is that of an open producer of this "
                    "client, which would be fenced: close it first, or use another id"
                )

    def check_may_close(self) -> None:
        """Raises ConfigurationError if a handler or callback of a consumer makes the call."""
        for consumer in self._consumers:
            consumer._check_may_close()

    async def close(self, timeout_ms: int | None) -> list[BaseException]:
        """Closes all parts; returns the errors of the closes.

        Producers send their records within `timeout_ms`, and the requests of consumers end within
        the rest of it. If the call is cancelled, it closes all
        parts by `close_after_error`, even if it is cancelled again, and then raises CancelledError.
        """
        # A cancelled close of a part may hold the last other reference to the part.
        parts = [*self._producers, *self._consumers]
        try:
            return await self._close(timeout_ms)
        except asyncio.CancelledError:
            await self.close_after_error(is_cancelled=True)
            raise
        finally:
            del parts

    async def close_after_error(self, *, is_cancelled: bool) -> list[BaseException]:
        """Closes all producers and consumers after an exception; returns the errors of the closes.

        `is_cancelled` is True if the exception is CancelledError. If the closes are not completed
        within the limit, logs a RequestTimeoutError, and returns only this error. If this call is
        cancelled, it still closes the producers and consumers, and then raises CancelledError.
        """
        try:
            return await shielded(
                self._close_in_time(is_cancelled=is_cancelled),
                self._clock,
                self._limit_ms,
                what="the close of the client",
                is_cancelled=is_cancelled,
            )
        except RequestTimeoutError as timeout:
            logger.warning("not raised: %s", timeout)
            return [timeout]

    async def _close(self, timeout_ms: int | None) -> list[BaseException]:
        """Closes producers and consumers; also waits for parts that other tasks are closing.

        First the producers send their buffered records: a handler may have produced them from
        records whose offsets the consumer then commits. Next the consumers are closed. The
        producers are closed last, because handlers may send more records while the consumers are
        closed.
        """
        began = self._clock.monotonic()
        errors = await _gathered(each._send_buffered(timeout_ms) for each in self._producers)
        left_ms = self._left_ms(timeout_ms, began)
        closes = [each._close_within(left_ms) for each in self._consumers]
        errors += await _gathered([*closes, self._until_dropped_closed()])
        left_ms = self._left_ms(timeout_ms, began)
        return errors + await _gathered(each.close(timeout_ms=left_ms) for each in self._producers)

    async def _close_in_time(self, *, is_cancelled: bool) -> list[BaseException]:
        """Closes all parts as `_close` does, within `flush_ms`."""
        began = self._clock.monotonic()
        errors = await _gathered(each._send_buffered(self._flush_ms) for each in self._producers)
        try:
            closes = [
                each._close_after_error(is_cancelled=is_cancelled) for each in self._consumers
            ]
            errors += await _gathered([*closes, self._end_background_closes()])
        finally:  # also if the consumers need the whole time: a send must not wait forever
            left_ms = self._left_ms(self._flush_ms, began)
            errors += await _gathered(each._close_after_error(left_ms) for each in self._producers)
        return errors

    async def _until_dropped_closed(self) -> None:
        """Waits until the dropped consumers are closed."""
        await asyncio.sleep(0)  # the event loop calls dropped consumers, which start to close
        if self._background_closes:
            await asyncio.wait(self._background_closes)

    async def _end_background_closes(self) -> None:
        """Waits for at most `flush_ms` until the dropped consumers are closed.

        Then cancels the closes that have not ended. A cancelled close still completes, within its
        own limit.
        """
        try:
            with suppress(TimeoutError):
                async with self._clock.timeout(self._flush_ms / 1000):
                    await self._until_dropped_closed()
        finally:
            tasks = [*self._background_closes]
            for task in tasks:
                task.cancel()
            await until_ended(tasks)

    def _left_ms(self, timeout_ms: int | None, began: float) -> int | None:
        if timeout_ms is None:
            return None
        return max(0, timeout_ms - round((self._clock.monotonic() - began) * 1000))


async def _gathered(closes: Iterable[Coroutine[Any, Any, None]]) -> list[BaseException]:
    """Runs the coroutines `closes` concurrently; returns their errors.

    If the caller is cancelled, the coroutines are also cancelled, and end before this call ends.
    """
    outcomes = await asyncio.gather(*closes, return_exceptions=True)
    return [each for each in outcomes if isinstance(each, BaseException)]
