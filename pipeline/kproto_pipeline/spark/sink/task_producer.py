"""The batches of one task on their way: given to a producer, and each acknowledged at the end.

Owns the task's producer, on the loop of this process's clients, and how much may wait for it. The
task encodes the next rows meanwhile. Knows no Spark, and of a row its place alone.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from kproto.client import DeliveryError, EncodedRecords
from kproto.wire.errors import KprotoError

from ..client_pool import begin, shared_client
from .errors import RowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.client import BatchDelivery, Client, Producer

    from ..options.option_table import WriteOptions

__all__ = ["EncodedBatch", "TaskProducer"]

#: How many encoded batches may wait to be given to the producer, which has a bound of its own.
_WAITING_BATCHES: Final = 8


class EncodedBatch(NamedTuple):
    """One batch for one partition; `place_of` says which row of the task a record of it is."""

    topic: str
    partition: int
    records: EncodedRecords
    place_of: Callable[[int], str]


class TaskProducer:
    """The producer of a task, as seen from its thread. To be ended by `close`, whatever happens."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._room = threading.Semaphore(_WAITING_BATCHES)
        self._given: asyncio.Queue[EncodedBatch | None] = asyncio.Queue()
        self._failed = False
        self._work = begin(self._run())

    def give(self, batch: EncodedBatch) -> None:
        """Let a batch be sent; waits for room.

        Raises:
            RowError: an earlier one was not acknowledged, or could not be given.
        """
        self._room.acquire()
        if self._failed:
            self._work.result()
        self._work.tell(self._given.put_nowait, batch)

    def finish(self) -> None:
        """Wait until every batch is acknowledged.

        Raises:
            RowError: one of them was not; the message says which row, and why.
        """
        self._work.tell(self._given.put_nowait, None)
        self._work.result()

    def close(self) -> None:
        """End what is still under way; behind `finish` there is nothing."""
        self._work.end()

    async def _run(self) -> None:
        try:
            async with shared_client(self._options.client, retry=True) as client:
                await self._send_all(client)
        finally:
            self._failed = True
            self._room.release(_WAITING_BATCHES)

    async def _send_all(self, client: Client) -> None:
        # What is sent is whole batches: there is nothing to wait for.
        async with client.producer(linger_ms=0) as producer:
            under_way: list[tuple[BatchDelivery, EncodedBatch]] = []
            while (batch := await self._given.get()) is not None:
                under_way.append((await _given(producer, batch), batch))
                self._room.release()
                under_way = await _settled(under_way, all_of_them=False)
            await _settled(under_way, all_of_them=True)


async def _given(producer: Producer, batch: EncodedBatch) -> BatchDelivery:
    try:
        return await producer.send_batch(batch.topic, batch.partition, batch.records)
    except KprotoError as error:
        raise RowError(
            f"{batch.place_of(0)}, for {batch.topic}-{batch.partition}: {error}"
        ) from error


async def _settled(
    under_way: list[tuple[BatchDelivery, EncodedBatch]], *, all_of_them: bool
) -> list[tuple[BatchDelivery, EncodedBatch]]:
    """Those that are not done yet; with `all_of_them`, wait for each.

    Raises:
        RowError: one was not acknowledged.
    """
    left = []
    for delivery, batch in under_way:
        if not (all_of_them or delivery.done):
            left.append((delivery, batch))
            continue
        try:
            await delivery
        except DeliveryError as error:
            place = batch.place_of(delivery.failed()[0])
            raise RowError(
                f"{place} was not acknowledged by {batch.topic}-{batch.partition}: {error.cause}"
            ) from error
    return left
