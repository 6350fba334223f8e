"""Measures the memory of producers and consumers with 10,000 partitions of a real broker.

    python -m tools.bench.memory [--partitions 10000] [--repeat 3]

Each measurement has its own process. A producer sends three records to each partition, of 100
bytes, and waits for the acknowledgements after each round. A consumer reads the records of all
partitions. The table has medians of the resident memory: after the imports, two seconds after the
last record, and at its highest.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import kproto
from tools.bench.clients.memory import PARTITIONS_OF_TOPIC, VALUE, MemoryTask, topics_of
from tools.bench.clients.processes import run_task
from tools.kafka import DEFAULT_VERSION, SMALL_INDEXES, KafkaNode

__all__ = ["main"]

CLIENTS: Final = ("kproto", "confluent_kafka")
#: By work: how the table names it.
WORKS: Final = {"produce": "producer", "consume": "consumer"}
COLUMNS: Final = ("imported", "steady", "peak")
#: The maximum ratio of kproto's memory to confluent-kafka's.
ALLOWED: Final = 2.0
TOPIC: Final = "memory"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 if kproto needs more memory than the maximum ratio allows."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=10_000,
        help=f"partitions, in topics of {PARTITIONS_OF_TOPIC:,}",
    )
    parser.add_argument("--repeat", type=int, default=3, help="turns")
    parser.add_argument("--bootstrap", help="a running broker; default: starts one")
    options = parser.parse_args(arguments)
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    with ExitStack() as stack:
        bootstrap = options.bootstrap
        if bootstrap is None:
            node = KafkaNode(DEFAULT_VERSION, config=SMALL_INDEXES, heap="1g")
            bootstrap = stack.enter_context(node).bootstrap
        byte_code = Path(stack.enter_context(TemporaryDirectory(prefix="kproto-bench-")))
        asyncio.run(_prepare(bootstrap, options.partitions))
        for turn in range(options.repeat):
            for work in WORKS:
                for client in CLIENTS if turn % 2 else reversed(CLIENTS):
                    print(f"\rturn {turn + 1}, {work}, {client}\033[K", end="", file=sys.stderr)
                    task = MemoryTask(client, work, bootstrap, TOPIC, options.partitions)
                    told = run_task(task, byte_code, "tools.bench.clients.memory")
                    if "fault" in told:
                        print(f"\n{client}, {work}: {told['fault']}", file=sys.stderr)
                        return 1
                    found.setdefault((work, client), []).append(told)
    print("\r\033[K", end="", file=sys.stderr)
    return _print_table(found, options.partitions)


async def _prepare(bootstrap: str, partitions: int) -> None:
    """Creates the topics that do not exist yet; waits until each partition accepts records."""
    async with kproto.Client(bootstrap) as client, client.producer() as producer:
        for name in topics_of(TOPIC, partitions):
            with suppress(kproto.TopicExistsError):
                await client.create_topics(kproto.NewTopic(name, partitions=PARTITIONS_OF_TOPIC))
            for partition in range(PARTITIONS_OF_TOPIC):
                await producer.enqueue(name, VALUE, partition=partition)
            await producer.flush()


def _print_table(found: dict[tuple[str, str], list[dict[str, float]]], partitions: int) -> int:
    print(f"Resident memory in MB with {partitions:,} partitions.\n")
    heads = ["after the imports", "idle at the end", "peak", "peak ÷ confluent-kafka's"]
    print(f"| | | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}")
    is_good = True
    for work, name in WORKS.items():
        medians = {
            client: {
                key: statistics.median(each[key] for each in found[work, client]) for key in COLUMNS
            }
            for client in CLIENTS
        }
        for client, its in medians.items():
            ratio = its["peak"] / medians[CLIENTS[1]]["peak"]
            is_good &= ratio <= ALLOWED
            cells = " | ".join(f"{its[key]:.0f}" for key in COLUMNS)
            print(f"| {name} | {client} | {cells} | {ratio:.2f} |")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
