"""Measures what the client's metrics cost: the same work with `Observer` and `NullObserver`.

    python -m tools.bench.metrics [--records N] [--pairs N]

For the first row, a client writes the records with `send_many` and reads them. For the second row,
a client sends `--sends` records one by one and awaits each acknowledgement. The embedded broker
runs in another process, so that only the client's CPU time counts. A pair is one run with each
observer; the order alternates, and the result is the median of the pairs' ratios. The limit applies
to the first row.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import time
from typing import Final

from kproto import Client, NewTopic
from kproto.broker import Broker
from kproto.client.metadata import cluster_view as view
from kproto.client.observing.observer import NullObserver, Observer
from tools.bench.serving import served_by

#: The maximum share of CPU time that the metrics may add to `--records` records.
WANTED: Final = 0.02

VALUE: Final = b"v" * 100
OBSERVERS: Final = {"counted": Observer, "not counted": NullObserver}


async def serve() -> None:
    """Prints the broker's address, and runs the broker until its input ends."""
    async with Broker() as broker:
        print(broker.bootstrap, flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def many(bootstrap: str, records: int) -> float:
    """Returns the CPU seconds to write and read back `records` records.

    If `records` is above 100,000, rounds it down to a multiple of 100,000.
    """
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic("many", partitions=4))
        began = time.process_time()
        async with client.producer() as producer:
            values = [VALUE] * min(records, 100_000)
            for _ in range(records // len(values)):
                await producer.send_many("many", values)
        read = 0
        async for fetched in client.consumer("many", stop_at_end=True).record_lists():
            read += len(fetched.records)
        spent = time.process_time() - began
        assert read >= records - records % len(values)
        await client.delete_topics("many")
    return spent


async def single(bootstrap: str, sends: int) -> float:
    """Returns the CPU seconds of `sends` sends; each waits for its acknowledgement."""
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic("single", partitions=1))
        async with client.producer() as producer:
            await producer.send("single", VALUE)
            began = time.process_time()
            for _ in range(sends):
                await producer.send("single", VALUE)
            spent = time.process_time() - began
        await client.delete_topics("single")
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.metrics", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="records of a round")
    parser.add_argument("--sends", type=int, default=5_000, help="records that are sent one by one")
    parser.add_argument(
        "--pairs", type=int, default=20, help="how often both variants are measured"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve())
        return 0
    works = {
        f"{chosen.records:,} records written and read": (many, chosen.records),
        f"{chosen.sends:,} acknowledged sends": (single, chosen.sends),
    }
    shares = []
    print("| work | without metrics, s of CPU | with metrics | added |\n|---|---|---|---|")
    with served_by("tools.bench.metrics") as bootstrap:
        for name, (work, count) in works.items():
            spent: dict[str, list[float]] = {each: [] for each in OBSERVERS}
            asyncio.run(work(bootstrap, max(1, count // 10)))
            for pair in range(chosen.pairs):
                order = list(OBSERVERS)
                for each in order if pair % 2 else reversed(order):
                    view.Observer = OBSERVERS[each]  # type: ignore[attr-defined]
                    gc.collect()
                    spent[each].append(asyncio.run(work(bootstrap, count)))
                print(f"\r{name}: {pair + 1} of {chosen.pairs} pairs", end="", file=sys.stderr)
            print("\r\033[K", end="", file=sys.stderr)
            counted, without = spent["counted"], spent["not counted"]
            added = statistics.median(a / b for a, b in zip(counted, without, strict=True)) - 1
            shares.append(added)
            print(
                f"| {name} | {statistics.median(without):.2f} | {statistics.median(counted):.2f} "
                f"| {added:+.1%} |",
                flush=True,
            )
    if shares[0] > WANTED:
        print(f"the metrics add {shares[0]:.1%}; the limit is {WANTED:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
