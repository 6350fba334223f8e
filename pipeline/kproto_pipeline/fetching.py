"""Reading one offset range ahead of whoever consumes it, in a thread of its own.

Owns the thread, its asyncio loop and the bound on how much may wait. A fetch is sent as soon as
the one before it has arrived, while those records are still being decoded and handed on. Knows
nothing of Arrow or Spark.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kproto.client import Client, ClientSettings, FetchedPartition
from kproto.records import read_batches
from kproto.wire.errors import (
    BrokerResponseError,
    CorruptBatchError,
    ProtocolError,
    RequestTimeoutError,
)

from .batches import next_offset
from .offsets import DataLossError, OffsetRange

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from .options import ReadOptions

__all__ = ["open_client", "read_ahead"]

_OFFSET_OUT_OF_RANGE: Final = 1


def open_client(options: ReadOptions) -> Client:
    """A client with the settings that the options give."""
    settings = ClientSettings(
        client_id=options.client_id, request_timeout_ms=options.request_timeout_ms
    )
    return Client(options.bootstrap_servers, settings)


def read_ahead(options: ReadOptions, wanted: OffsetRange) -> Generator[bytes]:
    """The `records` bytes of the fetch responses that cover `wanted`, in order.

    Up to `buffer_bytes` wait for the consumer before fetching pauses. Closing the iterator ends
    the thread and its connections.

    Raises:
        DataLossError: the log no longer holds the range and the options ask to fail then.
        KprotoError: whatever the client raises.
    """
    ahead = _Ahead(options, wanted)
    ahead.start()
    try:
        yield from ahead.responses()
    finally:
        ahead.stop()


class _Ahead:
    """The fetching thread of one range. `responses` and `stop` belong to the consumer's thread."""

    def __init__(self, options: ReadOptions, wanted: OffsetRange) -> None:
        self._options = options
        self._wanted = wanted
        # Bounded by bytes, through `_room`. None is the end, an exception the failure.
        self._arrived: queue.SimpleQueue[bytes | BaseException | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._started = threading.Event()  # or failed to: then there is no loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None]
        self._room: asyncio.Event
        self._thread = threading.Thread(
            target=self._run, name=f"kproto-fetch {wanted}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Cancel what is still under way and wait for the thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nothing is under way
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def responses(self) -> Iterator[bytes]:
        while (item := self._arrived.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            assert self._loop is not None  # it brought the item
            with suppress(RuntimeError):  # the loop is closed: all has been fetched
                self._loop.call_soon_threadsafe(self._release, len(item))

    def _run(self) -> None:
        try:
            asyncio.run(self._fetch_all())
        except asyncio.CancelledError:
            self._arrived.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer's thread
            self._arrived.put(error)
        else:
            self._arrived.put(None)
        finally:
            self._started.set()

    async def _fetch_all(self) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._room = asyncio.Event()
        self._room.set()
        self._started.set()
        async with open_client(self._options) as client:
            await self._fetch_range(client)

    async def _fetch_range(self, client: Client) -> None:
        position = self._wanted.start
        progress_at = time.monotonic()
        while position < self._wanted.end:
            await self._room.wait()
            fetched = await self._fetch(client, position)
            if fetched is None:
                position = await self._passed_over(client, position)
                continue
            try:
                following = next_offset(fetched.records, position, self._wanted.end)
            except CorruptBatchError:
                self._deliver(fetched.records)  # the good batches in front of it
                raise
            if following > position:
                self._deliver(fetched.records)
                position = following
                progress_at = time.monotonic()
            elif fetched.records:
                for _ in read_batches(fetched.records):
                    pass  # What is broken may only say that it lies before: that comes first.
                raise ProtocolError(
                    f"{self._wanted}: all that the fetch from offset {position} brought lies "
                    "before it, and would be brought again"
                )
            elif fetched.high_watermark < self._wanted.end:
                if self._options.fail_on_data_loss:
                    raise self._lost(f"the log now ends at {fetched.high_watermark}")
                return
            elif (time.monotonic() - progress_at) * 1000 > self._options.request_timeout_ms:
                raise RequestTimeoutError(f"{self._wanted}: nothing arrived from {position} on")

    async def _fetch(self, client: Client, position: int) -> FetchedPartition | None:
        """One fetch response; None when the log does not have the offset."""
        try:
            return await client.fetch(
                self._wanted.topic,
                self._wanted.partition,
                position,
                max_bytes=self._options.fetch_max_bytes,
                max_wait_ms=self._options.fetch_wait_ms,
            )
        except BrokerResponseError as error:
            if error.code != _OFFSET_OUT_OF_RANGE:
                raise
            return None

    async def _passed_over(self, client: Client, position: int) -> int:
        """Where to go on when the log no longer has `position`: where it begins now.

        Raises:
            DataLossError: the options ask to fail then.
        """
        if self._options.fail_on_data_loss:
            raise self._lost(f"offset {position} is out of range")
        part = (self._wanted.topic, self._wanted.partition)
        first = (await client.list_offsets({part: "earliest"}))[part]
        # A log that ends before has been made anew: nothing of the range is left.
        return first if first > position else self._wanted.end

    def _lost(self, what: str) -> DataLossError:
        return DataLossError(
            f"{self._wanted}: {what}; the topic was cut or made anew while it was read. Set "
            "failOnDataLoss to false to read what is there"
        )

    def _deliver(self, records: bytes) -> None:
        self._waiting_bytes += len(records)
        if self._waiting_bytes >= self._options.buffer_bytes:
            self._room.clear()
        self._arrived.put(records)

    def _release(self, size: int) -> None:
        self._waiting_bytes -= size
        if self._waiting_bytes < self._options.buffer_bytes:
            self._room.set()
