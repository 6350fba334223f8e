"""`Delivery` and `BatchDelivery`: the outcome of records that a producer has appended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..client.producer import batch
from ..client.producer.batch import Ack
from ..client.producer.errors import DeliveryError
from ..client.producer_record import ProducerRecord
from ..wire.checks import check_whole_number
from ..wire.errors import RequestTimeoutError
from .client_binding import ClientBinding

__all__ = ["BatchDelivery", "Delivery"]


class Delivery:
    """The outcome of a record of `Producer.enqueue`: `ack = delivery.result()`.

    `result` raises DeliveryError, which has the record, if the record has failed. It may be called
    at any time, repeatedly, and in any thread. A delivery cannot be cancelled. The failure counts
    as reported once a caller has called `result` or `exception`; otherwise the next `flush` raises
    it.
    """

    __slots__ = ("_binding", "_delivery")

    def __init__(self, binding: ClientBinding, delivery: batch.Delivery) -> None:
        self._binding = binding
        self._delivery = delivery

    def done(self) -> bool:
        """Returns True if the outcome is known."""
        return self._delivery.done()

    def result(self, timeout_ms: int | None = None) -> Ack:
        """Waits for the outcome; returns the ack, or raises DeliveryError if the record has failed.

        Raises RequestTimeoutError if the outcome is not known after `timeout_ms`.
        """
        self._wait(timeout_ms)
        return self._delivery.result()

    def exception(self, timeout_ms: int | None = None) -> DeliveryError | None:
        """Waits for the outcome; returns the error, or None if the record was acked.

        Raises RequestTimeoutError if the outcome is not known after `timeout_ms`.
        """
        self._wait(timeout_ms)
        return self._delivery.exception()

    def _wait(self, timeout_ms: int | None) -> None:
        if timeout_ms is not None:
            check_whole_number("timeout_ms", timeout_ms, 0)
        if not self._delivery.done():
            self._binding.thread().call(_until_done, self._delivery, timeout_ms, undo=None)

    def add_done_callback(self, fn: Callable[[Delivery], object], /) -> None:
        """Calls `fn` with this delivery once the outcome is known, in the event loop's thread.

        `fn` must not block: blocking calls of `kproto.sync` raise ConfigurationError in it.
        """
        add = self._delivery.add_done_callback
        self._binding.thread().call_plain(add, lambda _: fn(self))

    @property
    def record(self) -> ProducerRecord:
        """The record of this delivery, for example to send it again."""
        return self._delivery.record

    def __repr__(self) -> str:
        return repr(self._delivery)


class BatchDelivery(Delivery):
    """The outcome of a batch of `Producer.send_batch`.

    `result` returns the `Ack` of the batch's first record; the offsets of the other records follow
    in order. If records have failed, `result` raises DeliveryError, which has these records.
    """

    __slots__ = ()


async def _until_done(delivery: batch.Delivery, timeout_ms: int | None) -> None:
    """Waits until the outcome is known; does not count as a report of a failure."""
    done = asyncio.get_running_loop().create_future()

    def wake(_: object) -> None:
        if not done.done():
            done.set_result(None)

    delivery.add_done_callback(wake)
    try:
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await done
    except TimeoutError:
        raise RequestTimeoutError(
            f"{delivery!r}: the record was not acknowledged within {timeout_ms} ms"
        ) from None
    finally:
        delivery.remove_done_callback(wake)
