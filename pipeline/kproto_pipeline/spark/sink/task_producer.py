"""Sends the encoded batches of one task with a producer, and waits for their acknowledgements.

The producer runs on the client loop, while the task encodes the next rows. Imports no Spark.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from kproto.client import DeliveryError, EncodedRecords
from kproto.wire.errors import KprotoError

from ..client_pool import shared_client, start_on_loop
from .errors import RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto.client import BatchDelivery, Client, Producer

    from ..options.option_table import WriteOptions
    from .micro_batch import WrittenRows

__all__ = ["EncodedBatch", "TaskProducer"]

#: The maximum number of lists of batches that are queued for the producer; a list has some
#: megabytes. The producer has a separate buffer limit.
_MAX_QUEUED: Final = 1


class EncodedBatch(NamedTuple):
    """A batch for one partition; `describe_row(index)` describes the row of a record for errors."""

    topic: str
    partition: int
    records: EncodedRecords
    describe_row: Callable[[int], str]


class TaskProducer:
    """The producer of a task, called from the task's threads; call `close` even after an error."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._queue_slots = threading.Semaphore(_MAX_QUEUED)
        self._queue: asyncio.Queue[Sequence[EncodedBatch] | None] = asyncio.Queue()
        self._failed = False
        self._task = start_on_loop(self._run())

    def send(self, batches: Sequence[EncodedBatch]) -> None:
        """Queues batches; blocks while the queue is full.

        Each call wakes the client loop once.

        Raises:
            RowError: an earlier batch could not be sent, or was not acknowledged.
            KprotoError: no broker is reachable.
        """
        self._queue_slots.acquire()
        if self._failed:
            self._task.result()
        self._task.call_soon(self._queue.put_nowait, batches)

    def finish(self, written: WrittenRows) -> None:
        """Waits until every batch is acknowledged. `written` are the rows of the task.

        Raises:
            RowError: a batch was not acknowledged; the message names the row and the cause.
            KprotoError: no broker is reachable.
        """
        self._task.call_soon(self._queue.put_nowait, None)
        self._task.result()

    def close(self) -> None:
        """Cancels unfinished sends and ignores their errors; does nothing after `finish`."""
        self._task.cancel()

    async def _run(self) -> None:
        try:
            async with shared_client(self._options.client, retry=True) as client:
                await self._send_all(client)
        finally:
            self._failed = True
            self._queue_slots.release(_MAX_QUEUED)

    async def _send_all(self, client: Client) -> None:
        # Batches are complete, so lingering would only delay them.
        async with client.producer(linger_ms=0, acks="all") as producer:
            await self._send_batches(producer, await self._queue.get())

    async def _send_batches(
        self, producer: Producer, batches: Sequence[EncodedBatch] | None
    ) -> None:
        """Sends `batches` and all batches after them; returns when all are acknowledged."""
        in_flight: list[tuple[BatchDelivery, EncodedBatch]] = []
        while batches is not None:
            in_flight += [(await _send(producer, batch), batch) for batch in batches]
            self._queue_slots.release()
            in_flight = await _unfinished(in_flight, wait_for_all=False)
            batches = await self._queue.get()
        await _unfinished(in_flight, wait_for_all=True)


async def _send(producer: Producer, batch: EncodedBatch) -> BatchDelivery:
    try:
        return await producer.send_batch(batch.topic, batch.partition, batch.records)
    except KprotoError as error:
        raise RowError(
            f"{batch.describe_row(0)}, for {batch.topic}-{batch.partition}: {error}"
        ) from error


async def _unfinished(
    in_flight: list[tuple[BatchDelivery, EncodedBatch]], *, wait_for_all: bool
) -> list[tuple[BatchDelivery, EncodedBatch]]:
    """Returns the deliveries that are not done; with `wait_for_all`, waits until all are done.

    Raises:
        RowError: a batch was not acknowledged.
    """
    pending = []
    for delivery, batch in in_flight:
        if not (wait_for_all or delivery.done()):
            pending.append((delivery, batch))
            continue
        try:
            await delivery
        except DeliveryError as error:
            row = batch.describe_row(delivery.failed()[0])
            raise RowError(
                f"{row} was not acknowledged by {batch.topic}-{batch.partition}: {error.cause}"
            ) from error
    return pending
