"""What every client of the bench is told, sends and gives back. Knows no client.

Imports the standard library alone: it runs under our interpreter and under that of the peers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple, TypeAlias

#: A work takes a `Task` and returns a `Measured`, or a coroutine that does.
Works: TypeAlias = dict[str, Callable[["Task"], Any]]

VALUE: Final = b"v" * 100

#: A batch of about a megabyte: what brokers take by default, and the same for every client.
BATCH_BYTES: Final = 1_000_000

#: Records that are made before the clock starts and given over and over. kproto's `send_many` gets
#: them as one list, as a program would that has gathered so many; aiokafka and kafka-python wait
#: for as many at once.
CHUNK: Final = 100_000

#: The first of so many parts of what is consumed is start-up: it covers the first fetch.
WARM_SHARE: Final = 20

#: Different sets of headers that records carry in turn; each has its own id and time.
HEADER_SETS: Final = 1_000

SENDS_TO_WARM: Final = 200

#: Rounds of concurrent sends behind the one that warms; their median counts.
ROUNDS: Final = 5


class Task(NamedTuple):
    """One work of one client. `records` in all; made with `keyed` and `headers`, or not."""

    client: str
    work: str
    bootstrap: str
    topic: str
    records: int
    keyed: bool = False
    headers: bool = False


class Measured(NamedTuple):
    """Seconds and CPU seconds of the whole process, for each record (or send, or start)."""

    seconds: float
    cpu: float


class SkippedError(Exception):
    """The client cannot do this work; says why."""


class Meter:
    """Wall time and CPU time of all threads of the process, since it was made."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self, count: int) -> Measured:
        """What each of `count` took."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return Measured(wall / count, cpu / count)


class Reading:
    """Counts what comes in lists; measures from behind the start-up on."""

    def __init__(self, records: int) -> None:
        self.measured = Measured(0, 0)
        self._records = records
        self._warm = warm_records(records)
        self._seen = 0
        self._began = 0
        self._meter: Meter | None = None

    def is_done(self, came: int) -> bool:
        """Take note of `came` records more; whether these were the last.

        Raises RuntimeError where all came as start-up.
        """
        self._seen += came
        if self._meter is None:
            if self._seen >= self._records:
                raise RuntimeError(f"all {self._records} records came at once: ask for more")
            if self._seen >= self._warm:
                self._meter, self._began = Meter(), self._seen
        elif self._seen >= self._records:
            self.measured = self._meter.stop(self._seen - self._began)
            return True
        return False


def warm_records(records: int) -> int:
    """Returns how many of `records` that are consumed are start-up."""
    return records // WARM_SHARE


async def read_records(records: AsyncIterator[Any], count: int) -> Measured:
    """Read so many records one by one, key and value of each, the first of them to warm up."""
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


async def read_headers(records: AsyncIterator[Any], count: int) -> Measured:
    """Returns the same, and the headers of each."""
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


def chunks(records: int) -> list[int]:
    """Returns the sizes of the chunks of `records`."""
    return [min(CHUNK, records - begin) for begin in range(0, records, CHUNK)]


def keys(count: int) -> list[bytes]:
    """So many keys of 8 bytes."""
    return [b"%08d" % index for index in range(count)]


def header_sets() -> list[list[tuple[str, bytes]]]:
    """Six headers of a CloudEvent each."""
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
    """Key and headers of each record of a chunk; None where the task wants none."""
    made = keys(CHUNK) if task.keyed else [None] * CHUNK
    sets = header_sets() if task.headers else [None]
    return [(key, sets[index % len(sets)]) for index, key in enumerate(made)]


def middle_of_sends(times: list[float], whole: Measured) -> Measured:
    """Returns the median time of a send; of the CPU time what each took."""
    return Measured(statistics.median(times), whole.cpu)


def middle_of_rounds(rounds: list[Measured]) -> Measured:
    """Returns the medians of rounds."""
    return Measured(
        statistics.median(each.seconds for each in rounds),
        statistics.median(each.cpu for each in rounds),
    )
