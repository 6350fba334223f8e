"""Measures `kproto proxy`: compares clients behind the proxy with the same clients without it.

    python -m tools.bench.proxy [--records 500000] [--repeat 3]

Uses one real broker, topics of one partition, and 100-byte values. Every measurement is a separate
process, and begins after start-up. Each turn measures the direct connection and every variant of
the proxy once; every second turn does so in reverse order. The results are medians of the turns,
and medians of the ratios within a turn.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tools.bench.clients.processes import ROOT, run_task
from tools.bench.clients.results import line_of
from tools.bench.clients.rows import SENDS, SHARES
from tools.bench.clients.task import Task
from tools.bench.clients.topics import delete_topic, fill_topic, make_topic
from tools.kafka import KafkaNode

BROKER: Final = "4.4.0"

#: The records that a new broker receives before the first measurement.
WARMING: Final = 200_000

#: The minimum number of records of a turn: a few fetches must not return all of them.
LEAST_RECORDS: Final = 50_000

START_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.02

DIRECT: Final = "directly"

#: By column: the proxy's options. All have `--rewrite`, because clients would otherwise connect to
#: the brokers' advertised addresses.
WAYS: Final = {
    "proxy -q": ("--rewrite", "-q"),
    "proxy, a line a message": ("--rewrite",),
    "proxy -q --record": ("--rewrite", "-q", "--record", "recording"),
}


class Work(NamedTuple):
    """A row of the table: a client, and `work`, the name of the function that measures it.

    With `reads`, the function reads the filled topic; with `sends`, it sends one record at a
    time.
    """

    name: str
    client: str
    work: str
    reads: bool
    sends: bool = False


WORKS: Final = (
    Work("kproto, send_many", "kproto", "produce", reads=False),
    Work("kproto, consume by record_lists()", "kproto", "batches", reads=True),
    Work("kproto, one acknowledged send at a time, p50", "kproto", "send", reads=False, sends=True),
    Work("confluent-kafka, produce", "confluent_kafka", "produce", reads=False),
    Work("confluent-kafka, consume", "confluent_kafka", "batches", reads=True),
    Work("aiokafka, produce", "aiokafka", "produce", reads=False),
    Work("aiokafka, consume", "aiokafka", "batches", reads=True),
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="kproto-bench-")))
        broker = stack.enter_context(KafkaNode(BROKER)).bootstrap
        with made_topic(broker, "warm", WARMING) as warm:
            run_task(Task("kproto", "batches", broker, warm, WARMING), folder)
        seconds: dict[str, list[dict[str, float]]] = defaultdict(list)
        with made_topic(broker, "filled", options.records) as filled:
            for turn in range(options.repeat):
                for work in WORKS:
                    seconds[work.name].append(
                        one_turn(work, turn, broker, filled, options.records, folder)
                    )
    sys.stderr.write("\n")
    print("\n".join(table(seconds)))
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.proxy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--records", type=int, default=500_000, help="of a turn; aiokafka gets half"
    )
    parser.add_argument("--repeat", type=int, default=3, help="turns")
    options = parser.parse_args(arguments)
    if options.records < LEAST_RECORDS or options.repeat < 1:
        parser.error(f"--records must be at least {LEAST_RECORDS}, --repeat at least 1")
    return options


def one_turn(
    work: Work, turn: int, broker: str, filled: str, records: int, folder: Path
) -> dict[str, float]:
    """Returns the seconds per record or send, without the proxy and with each of its variants."""
    found = {}
    ways = [DIRECT, *WAYS]
    count = SENDS if work.sends else records // SHARES.get(work.client, 1)
    for way in reversed(ways) if turn % 2 else ways:
        print(f"\rturn {turn + 1}, {work.name}, {way:<80}", end="", file=sys.stderr, flush=True)
        with ExitStack() as stack:
            topic = filled if work.reads else stack.enter_context(made_topic(broker, "own", 0))
            address = broker
            if way != DIRECT:
                address = stack.enter_context(proxy(broker, WAYS[way], folder))
            told = run_task(Task(work.client, work.work, address, topic, count), folder)
        if "seconds" not in told:
            raise SystemExit(f"{work.name}, {way}: {told}")
        found[way] = float(told["seconds"])
    return found


@contextmanager
def made_topic(broker: str, name: str, records: int) -> Iterator[str]:
    """Yields a new topic with `records` records, and deletes the topic afterwards."""
    topic = f"bench-proxy-{name}-{time.monotonic_ns()}"
    asyncio.run(make_topic(broker, topic, 1))
    try:
        if records:
            asyncio.run(fill_topic(broker, topic, records, headers=False))
        yield topic
    finally:
        asyncio.run(delete_topic(broker, topic))


@contextmanager
def proxy(broker: str, options: Sequence[str], folder: Path) -> Iterator[str]:
    """Yields the address of a proxy to the broker; its output and recordings go to `folder`."""
    log = folder / "log"
    command = [sys.executable, "-m", "kproto", "proxy", "127.0.0.1:0", broker, *options]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command, stdout=out, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}
        ) as process,
    ):
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while not (line := log.read_text("utf-8")).endswith("\n"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the proxy does not listen: {line}")
                time.sleep(POLL_S)
            yield line.split()[-1]
            process.send_signal(signal.SIGINT)
            process.wait(START_TIMEOUT_S)
        finally:
            process.kill()


def table(seconds: dict[str, list[dict[str, float]]]) -> list[str]:
    """Returns a Markdown table: rate or time without the proxy, and the ratios with the proxy."""
    lines = [line_of(["", DIRECT, *WAYS]), "|---" * (2 + len(WAYS)) + "|"]
    for work in WORKS:
        turns = seconds[work.name]
        middle = statistics.median(turn[DIRECT] for turn in turns)
        cells = [work.name, f"{middle * 1e6:,.0f} µs" if work.sends else f"{1e-3 / middle:,.0f}"]
        for way in WAYS:
            ratio = statistics.median(turn[way] / turn[DIRECT] for turn in turns)
            cells.append(f"{ratio:.2f} × the time" if work.sends else f"{1 / ratio:.2f}")
        lines.append(line_of(cells))
    return lines


if __name__ == "__main__":
    sys.exit(main())
