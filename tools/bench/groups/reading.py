"""Compares the CPU time of a consumer in a group with the CPU time of one without a group."""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from typing import Final

from kproto import Client, NewTopic
from kproto.broker import Broker
from tools.bench.serving import served_by

__all__ = ["PARTITIONS", "TOPIC", "VALUE", "as_member", "serve", "table"]

#: The maximum CPU time per record that a group adds, as a share of the time without a group.
WANTED: Final = 0.05

TOPIC: Final = "read"
PARTITIONS: Final = 4
VALUE: Final = b"v" * 100
WAYS: Final = ("by hand", "as a member")


async def serve() -> None:
    """Prints the broker's address, and runs the broker until standard input ends."""
    async with Broker() as broker:
        print(broker.bootstrap, flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def _write(bootstrap: str, records: int) -> None:
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(TOPIC, partitions=PARTITIONS))
        async with client.producer() as producer:
            for begin in range(0, records, 100_000):
                await producer.send_many(TOPIC, [VALUE] * min(100_000, records - begin))


async def by_hand(bootstrap: str, records: int, _: str) -> float:
    """Returns the CPU seconds to read `records` records one by one without a group."""
    async with Client(bootstrap) as client:
        began = time.process_time()
        count = 0
        async with client.consumer(TOPIC) as consumer:
            async for _record in consumer:
                count += 1
                if count == records:
                    break
        return time.process_time() - began


async def as_member(bootstrap: str, records: int, group: str) -> float:
    """Returns the CPU seconds to read `records` records as the only member, with auto-commit."""
    async with Client(bootstrap) as client:
        began = time.process_time()
        count = 0
        async with client.consumer(TOPIC, group=group) as consumer:
            async for _record in consumer:
                count += 1
                if count == records:
                    break
        return time.process_time() - began


def table(records: int, pairs: int) -> bool:
    """Prints the table; returns True if group membership adds at most `WANTED` to the CPU time."""
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    with served_by("tools.bench.groups") as bootstrap:
        asyncio.run(_write(bootstrap, records))
        for pair in range(-1, pairs):
            for way in WAYS if pair % 2 else reversed(WAYS):
                gc.collect()
                work = by_hand if way == WAYS[0] else as_member
                seconds = asyncio.run(work(bootstrap, records, f"group-{pair}"))
                if pair >= 0:
                    spent[way].append(seconds)
            print(f"\r{pair + 1} of {pairs} pairs", end="", file=sys.stderr)
        print("\r\033[K", end="", file=sys.stderr)
    hand, member = (spent[way] for way in WAYS)
    added = statistics.median(b / a for a, b in zip(hand, member, strict=True)) - 1
    print("| work | without a group, µs of CPU a record | as a member | added |\n|---|---|---|---|")
    each = [statistics.median(its) / records * 1e6 for its in (hand, member)]
    print(f"| {records:,} records one by one | {each[0]:.2f} | {each[1]:.2f} | {added:+.1%} |")
    if added > WANTED:
        print(f"a group adds {added:.1%}; at most {WANTED:.0%} is allowed", file=sys.stderr)
    return added <= WANTED
