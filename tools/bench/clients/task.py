"""The tasks of the bench's clients, and the measuring code that they share.

Imports the standard library only, because it runs in the environment of kproto and in that of the
other clients.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

#: Maps a name to the function to measure. The function takes a Task, and returns a TimePerRecord or
#: a coroutine that returns one.
Works: TypeAlias = dict[str, Callable[["Task"], Any]]

VALUE: Final = b"v" * 100

#: The batch size of every client: about a megabyte, the brokers' default maximum.
BATCH_BYTES: Final = 1_000_000

#: The number of records that are created before the measurement and sent repeatedly. kproto's
#: `send_many` gets these records as one list, as from a program that collects records. aiokafka and
#: kafka-python await this many acknowledgements together.
CHUNK: Final = 100_000

#: A consumer reads the first 1/`WARM_SHARE` of the records before the measurement, as start-up.
WARM_SHARE: Final = 20

#: The number of different sets of headers. The records use these sets in turn.
HEADER_SETS: Final = 1_000

SENDS_TO_WARM: Final = 200

#: The number of other callers that send records, one after the other, beside a measured caller.
OTHER_SENDERS: Final = 200

#: The number of measured rounds of concurrent sends, after a warm-up round; the result is the
#: median.
ROUNDS: Final = 5


class Task(NamedTuple):
    """Identifies a measurement: `client` and `work`, the name of the client's function to measure.

    With `keyed`, the records have keys; with `headers`, the records have headers.
    """

    client: str
    work: str
    bootstrap: str
    topic: str
    records: int
    keyed: bool = False
    headers: bool = False


class TimePerRecord(NamedTuple):
    """Seconds, and CPU seconds of the whole process, per record (or per send, or per start)."""

    seconds: float
    cpu: float


class SkippedError(Exception):
    """The client cannot run the function `Task.work`; the message is the reason."""


class Meter:
    """Measures wall time, and CPU time of all threads, from its creation until `stop`."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self, count: int) -> TimePerRecord:
        """Returns the measured times divided by `count`."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return TimePerRecord(wall / count, cpu / count)


class ReadMeter:
    """Counts records that arrive in lists; does not measure the first records (see `WARM_SHARE`).

    When `is_done` has returned True, `measured` is the result.
    """

    def __init__(self, records: int) -> None:
        self.measured = TimePerRecord(0, 0)
        self._records = records
        self._warm = warm_records(records)
        self._seen = 0
        self._began = 0
        self._meter: Meter | None = None

    def is_done(self, came: int) -> bool:
        """Counts `came` more records; returns True if they complete the requested number.

        Raises RuntimeError if all records arrived during start-up.
        """
        self._seen += came
        if self._meter is None:
            if self._seen >= self._records:
                raise RuntimeError(f"all {self._records} records came at once: use more records")
            if self._seen >= self._warm:
                self._meter, self._began = Meter(), self._seen
        elif self._seen >= self._records:
            self.measured = self._meter.stop(self._seen - self._began)
            return True
        return False


def warm_records(records: int) -> int:
    """Returns how many of the `records` records are read before the measurement begins."""
    return records // WARM_SHARE


async def read_records(records: AsyncIterator[Any], count: int) -> TimePerRecord:
    """Reads `count` records one by one, with key and value.

    Does not measure the first records (see `WARM_SHARE`), which count as start-up.
    """
    left = await _warmed(records, count)
    seen = 0
    meter = Meter()
    async for record in records:
        _ = record.key
        _ = record.value
        seen += 1
        if seen == left:
            break
    return meter.stop(left)


async def read_headers(records: AsyncIterator[Any], count: int) -> TimePerRecord:
    """Reads like `read_records`, and accesses the headers of each record, too."""
    left = await _warmed(records, count)
    seen = headers = 0
    meter = Meter()
    async for record in records:
        _ = record.key
        _ = record.value
        headers += len(record.headers)
        seen += 1
        if seen == left:
            break
    measured = meter.stop(left)
    assert headers == len(header_sets()[0]) * left
    return measured


async def _warmed(records: AsyncIterator[Any], count: int) -> int:
    warm = warm_records(count)
    for _ in range(warm):
        await anext(records)
    return count - warm


async def times_beside(send: Callable[[bytes], Awaitable[object]], count: int) -> TimePerRecord:
    """Returns the median time of a send beside `OTHER_SENDERS` coroutines that send in a loop.

    `send` sends a record with a key, and waits for its acknowledgement. The CPU time is that of one
    of all records, if each coroutine sends as many records as the measured one.
    """
    first, *others = keys(1 + OTHER_SENDERS)
    is_over = False

    async def send_until_over(key: bytes) -> None:
        while not is_over:
            await send(key)

    tasks = [asyncio.create_task(send_until_over(key)) for key in others]
    for _ in range(SENDS_TO_WARM):
        await send(first)
    times = []
    meter = Meter()
    for _ in range(count):
        start = time.perf_counter()
        await send(first)
        times.append(time.perf_counter() - start)
    measured = meter.stop((1 + OTHER_SENDERS) * count)
    is_over = True
    await asyncio.gather(*tasks)
    return middle_of_sends(times, measured)


def chunks(records: int) -> list[int]:
    """Returns the sizes of the chunks into which `records` are split."""
    return [min(CHUNK, records - begin) for begin in range(0, records, CHUNK)]


def keys(count: int) -> list[bytes]:
    """Returns `count` keys of 16 bytes."""
    return [b"%016d" % index for index in range(count)]


def header_sets() -> list[list[tuple[str, bytes]]]:
    """Returns the header sets, each with the six headers of a different CloudEvent."""
    return [
        [
            ("ce_specversion", b"1.0"),
            ("ce_id", b"2013-01-01T05:00:00-UA-%04d" % index),
            ("ce_source", b"/flights/ewr"),
            ("ce_type", b"com.example.flight.departed"),
            ("ce_time", b"2013-01-01T10:%02d:%02dZ" % divmod(index % 3600, 60)),
            ("content-type", b"application/json"),
        ]
        for index in range(HEADER_SETS)
    ]


def records_of_chunk(task: Task) -> list[tuple[bytes | None, list[tuple[str, bytes]] | None]]:
    """Returns (key, headers) of each record of a chunk.

    The keys are None unless `task.keyed`; the headers are None unless `task.headers`.
    """
    made = keys(CHUNK) if task.keyed else [None] * CHUNK
    sets = header_sets() if task.headers else [None]
    return [(key, sets[index % len(sets)]) for index, key in enumerate(made)]


def middle_of_sends(times: list[float], whole: TimePerRecord) -> TimePerRecord:
    """Returns the median wall time of a send, and the mean CPU time."""
    return TimePerRecord(statistics.median(times), whole.cpu)


def middle_of_rounds(rounds: list[TimePerRecord]) -> TimePerRecord:
    """Returns the medians of the rounds' times."""
    return TimePerRecord(
        statistics.median(each.seconds for each in rounds),
        statistics.median(each.cpu for each in rounds),
    )
