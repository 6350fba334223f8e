"""Compares the CPU time of two ways to read as a group member: `run` and iteration.

The handlers of `run` only count records.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from typing import Final

from kproto import Client, NewTopic, ProducerRecord, Record, Stop
from kproto.client.processing.settings import Order
from tools.bench.serving import served_by

from .reading import PARTITIONS, TOPIC, VALUE, as_member

__all__ = ["table"]

#: The maximum ratio of the CPU time of `run` to the CPU time of iteration, by `order` of `run`.
WANTED: Final[dict[Order, float]] = {"partition": 1.5, "key": 3.0, "none": 3.0}

KEYS: Final = 5_000
PLAIN: Final = "plain"


async def _write(bootstrap: str, records: int, partitions: int) -> None:
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(TOPIC, partitions=partitions))
        async with client.producer() as producer:
            for begin in range(0, records, 100_000):
                numbers = range(begin, min(begin + 100_000, records))
                some = [ProducerRecord(VALUE, b"key-%d" % (at % KEYS)) for at in numbers]
                await producer.send_many(TOPIC, some)


async def running(bootstrap: str, records: int, group: str, order: Order) -> float:
    """Returns the CPU seconds of `run` with a handler that only counts records."""
    async with Client(bootstrap) as client:
        began = time.process_time()
        count = 0

        async def handle(_record: Record) -> None:
            nonlocal count
            count += 1
            if count == records:
                raise Stop(done=True)

        async with client.consumer(TOPIC, group=group) as consumer:
            await consumer.run(handle, order=order)
        return time.process_time() - began


def table(records: int, pairs: int, partitions: int = PARTITIONS) -> bool:
    """Prints the table; returns True if `run` stays within the time limit of each `order`."""
    spent: dict[str, list[float]] = {way: [] for way in (PLAIN, *WANTED)}
    with served_by("tools.bench.groups") as bootstrap:
        asyncio.run(_write(bootstrap, records, partitions))
        for pair in range(-1, pairs):
            ways = [*spent]
            for way in ways if pair % 2 else reversed(ways):
                gc.collect()
                group = f"{way}-{pair}"
                order: Order | None = next((each for each in WANTED if each == way), None)
                work = (
                    as_member(bootstrap, records, group)
                    if order is None
                    else running(bootstrap, records, group, order)
                )
                seconds = asyncio.run(work)
                if pair >= 0:
                    spent[way].append(seconds)
            print(f"\r{pair + 1} of {pairs} pairs", end="", file=sys.stderr)
        print("\r\033[K", end="", file=sys.stderr)
    heads = f"{records:,} records, {partitions} partitions, empty handlers"
    print(f"| {heads} | µs of CPU a record | times iteration |")
    print("|---|---|---|")
    is_good = True
    for way, its in spent.items():
        times = statistics.median(b / a for a, b in zip(spent[PLAIN], its, strict=True))
        name = "`async for`" if way == PLAIN else f'`run(order="{way}")`'
        print(f"| {name} | {statistics.median(its) / records * 1e6:.2f} | {times:.2f} |")
        most = next((most for each, most in WANTED.items() if each == way), times)
        if times > most:
            print(f"{name} takes {times:.2f} times; the limit is {most}", file=sys.stderr)
            is_good = False
    return is_good
