"""Measures what the blocking client costs: the same work with `kproto.Client` and without `await`.

    python -m tools.bench.sync [--records N] [--calls N] [--pairs N]

The embedded broker runs in another process. A pair is one run with each client; the order
alternates, and a number is the median of the pairs. Each row has the time by the clock, and the CPU
time of the process, which a busy machine changes less.

A call is a request for metadata that the client has already, so that it waits for no broker.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import kproto
import kproto.sync
from tools.bench.serving import served_by

VALUE: Final = b"v" * 100
TOPIC: Final = "sync"

#: The most that the blocking client may add: microseconds for a call, and for a record that an
#: iteration returns; and the share of time for `send_many` with a list.
CALL_US: Final = 100.0
ITERATION_US: Final = 0.3
SEND_MANY: Final = 0.05


class Spent(NamedTuple):
    """Microseconds for one operation, by the clock and of CPU time."""

    clock: float
    cpu: float


class Timer:
    """Measures the time since its creation."""

    def __init__(self) -> None:
        self._clock = time.perf_counter()
        self._cpu = time.process_time()

    def per(self, operations: int) -> Spent:
        """Returns the time of one of `operations`."""
        clock = time.perf_counter() - self._clock
        cpu = time.process_time() - self._cpu
        return Spent(clock / operations * 1e6, cpu / operations * 1e6)


async def with_asyncio(bootstrap: str, calls: int, records: int) -> dict[str, Spent]:
    """Returns the times of the asyncio client, by row."""
    found = {}
    async with kproto.Client(bootstrap) as client:
        await client.topic(TOPIC)
        timer = Timer()
        for _ in range(calls):
            await client.topic(TOPIC)
        found["a call"] = timer.per(calls)
        values = [VALUE] * records
        async with client.producer() as producer:
            await producer.send_many(TOPIC, values[:1000])
            timer = Timer()
            await producer.send_many(TOPIC, values)
            found["send_many with a list"] = timer.per(records)
            timer = Timer()
            await producer.send_many(TOPIC, iter(values))
            found["send_many with an iterator"] = timer.per(records)
        for row, group in (("iteration", None), ("iteration of a group", "sync")):
            start = {"group": group} if group else {}
            async with client.consumer(TOPIC, **start) as consumer:  # type: ignore[call-overload]
                left = records
                iteration = aiter(consumer)
                await anext(iteration)
                timer = Timer()
                async for _ in iteration:
                    left -= 1
                    if not left:
                        break
                found[row] = timer.per(records)
    return found


def without_await(bootstrap: str, calls: int, records: int) -> dict[str, Spent]:
    """Returns the times of the blocking client, by row."""
    found = {}
    with kproto.sync.Client(bootstrap) as client:
        client.topic(TOPIC)
        timer = Timer()
        for _ in range(calls):
            client.topic(TOPIC)
        found["a call"] = timer.per(calls)
        values = [VALUE] * records
        with client.producer() as producer:
            producer.send_many(TOPIC, values[:1000])
            timer = Timer()
            producer.send_many(TOPIC, values)
            found["send_many with a list"] = timer.per(records)
            timer = Timer()
            producer.send_many(TOPIC, iter(values))
            found["send_many with an iterator"] = timer.per(records)
        for row, group in (("iteration", None), ("iteration of a group", "sync")):
            start = {"group": group} if group else {}
            with client.consumer(TOPIC, **start) as consumer:  # type: ignore[call-overload]
                left = records
                iteration = iter(consumer)
                next(iteration)
                timer = Timer()
                for _ in iteration:
                    left -= 1
                    if not left:
                        break
                found[row] = timer.per(records)
    return found


def measured(
    bootstrap: str, calls: int, records: int, pairs: int
) -> tuple[dict[str, list[Spent]], dict[str, list[Spent]]]:
    """Returns the times of all pairs, of the asyncio client and of the blocking client."""
    times: tuple[dict[str, list[Spent]], dict[str, list[Spent]]] = ({}, {})
    runs: list[Callable[[], dict[str, Spent]]] = [
        lambda: asyncio.run(with_asyncio(bootstrap, calls, records)),
        lambda: without_await(bootstrap, calls, records),
    ]
    for pair in range(pairs):
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        for which in order:
            with kproto.sync.Client(bootstrap) as client:
                client.create_topics(kproto.NewTopic(TOPIC, partitions=1))
            for row, spent in runs[which]().items():
                times[which].setdefault(row, []).append(spent)
            with kproto.sync.Client(bootstrap) as client:
                client.delete_topics(TOPIC)
    return times


def table(
    ours: dict[str, list[Spent]], theirs: dict[str, list[Spent]]
) -> tuple[list[str], list[str]]:
    """Returns the lines of the table, and a line for each row that costs too much."""
    lines = ["| µs | asyncio | blocking | more | asyncio, CPU | blocking, CPU | more |"]
    lines.append("|---|---|---|---|---|---|---|")
    failed = []
    for row, asyncio_times in theirs.items():
        cells = [row]
        for part in ("clock", "cpu"):
            before = statistics.median(getattr(each, part) for each in asyncio_times)
            after = statistics.median(getattr(each, part) for each in ours[row])
            cells += [f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}"]
            if part == "cpu":
                failed += [*_judged(row, before, after)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines, failed


def _judged(row: str, before: float, after: float) -> Iterator[str]:
    """Yields a line if a row costs more than its limit; judges CPU time."""
    if row == "a call" and after - before > CALL_US:
        yield f"{row}: {after - before:.1f} µs more, at most {CALL_US}"
    elif row == "send_many with a list" and after > before * (1 + SEND_MANY):
        yield f"{row}: {after / before - 1:.1%} more, at most {SEND_MANY:.0%}"
    elif row.startswith("iteration") and after - before > ITERATION_US:
        yield f"{row}: {after - before:.2f} µs more, at most {ITERATION_US}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.sync", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="records of a run")
    parser.add_argument("--calls", type=int, default=5_000, help="calls of a run")
    parser.add_argument("--pairs", type=int, default=5, help="runs with each client")
    options = parser.parse_args()
    with served_by("tools.bench.metrics") as bootstrap:
        theirs, ours = measured(bootstrap, options.calls, options.records, options.pairs)
    lines, failed = table(ours, theirs)
    print("\n".join(lines))
    for each in failed:
        print(each, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
