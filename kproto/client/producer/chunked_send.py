"""`ChunkedSend`: sends many records as `Producer.send_many` does, one chunk after the other.

The blocking client uses it for iterators, because its calling thread reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...wire.errors import EncodeError, KprotoError
from ..producer_record import as_record
from .acks import Acks
from .batch import ProducerBatch
from .errors import DeliveryError
from .producer import Producer

__all__ = ["ChunkedSend"]


class ChunkedSend:
    """A call of `send_many` in chunks: `start`, `append` each chunk, then `finish`.

    Records of other calls for the topic may come between two chunks.
    """

    def __init__(self, producer: Producer[Any, Any], topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._acks = Acks()
        self._error: Exception | None = None
        self._incomplete: list[ProducerBatch] = []

    async def start(self) -> None:
        """Raises the errors that `send_many` raises before it reads an element."""
        self._producer._appender.check_accepts(self._topic)

    async def append(self, chunk: Sequence[Any]) -> bool:
        """Appends the records of a chunk; returns False if no further chunk must follow.

        That is the case after an error, which `finish` raises, and after a record has failed.
        """
        first_run, count = self._acks.run_count, len(self._acks)
        try:
            await self._producer._appender.append_many(self._topic, chunk, self._acks)
        except Exception as error:  # noqa: BLE001 - `finish` raises it
            self._error = error
            if isinstance(error, KprotoError) and not isinstance(
                error, DeliveryError | EncodeError
            ):
                # Such as the close of the producer, after the call has read the chunk.
                left = [as_record(each) for each in chunk[len(self._acks) - count :]]
                self._error = DeliveryError(self._topic, -1, left, error)
                self._error.__cause__ = error
            return False
        batches = [*self._incomplete, *self._acks.batches(first_run)]
        self._incomplete = [each for each in batches if not each.future.done()]
        return all(each.future.result() is None for each in batches if each.future.done())

    async def finish(self, error: Exception | None) -> Acks:
        """Waits until all records are acked, and returns the acks.

        Raises DeliveryError if records have failed, the error of a chunk, or `error`, which the
        iterator of the program has raised. A DeliveryError has an EncodeError as its cause if both
        have happened.
        """
        first = self._error or error
        left = first.records if isinstance(first, DeliveryError) else []
        failure = await self._producer._outcome(self._topic, self._acks, left)
        if failure is not None:
            raise failure from (error if isinstance(error, EncodeError) else first) or failure.cause
        if isinstance(first, DeliveryError) and isinstance(error, EncodeError):
            raise first from error
        if first is not None:
            raise first
        return self._acks
