"""Measures transactions against real brokers: kproto and other clients, in the same run.

    python -m tools.bench.transactions [--repeat 5] [--rows TEXT] [--clients NAMES] [--brokers …]

Each measurement has its own process, its own transactional id, and a topic of one partition; values
have 100 bytes. All producers have acks=all, batches of up to 1 MB, no compression, and no linger;
the other clients retry after 5 ms. A turn measures each client once; every second turn does so in
reverse order. The first transactions of a process are not measured. After each measurement the
benchmark reads the topic with read_committed, and compares the number of records and, for
"consume-transform-produce", the committed offset. A table has the medians of the turns, and the
medians of the ratios of two clients within a turn.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import kproto
from kproto.client.producer.transactions.transaction_completion import IN_COMPLETION
from kproto.messages import DescribeTransactionsRequest
from tools.bench.clients.processes import run_task
from tools.bench.clients.results import Results, line_of
from tools.bench.clients.rows import CLIENTS
from tools.bench.clients.task import TimePerRecord
from tools.bench.clients.topics import delete_topic, make_topic
from tools.kafka import VERSIONS, KafkaNode

from .overhead import Overhead, measure_overhead
from .task import BATCH_BYTES, VALUE, MeasuredTransactions, Task

WORKER: Final = "tools.bench.transactions.worker"

#: The records of the source are written in batches of this size, so that each poll of the largest
#: transaction returns records of one batch.
SOURCE_BATCH: Final = 1_000

OVERHEAD_SIZE: Final = 10_000


class Row(NamedTuple):
    """One row of the tables; `size` is the number of records of a transaction."""

    name: str
    work: str
    size: int
    transactions: int
    warm: int
    linger_ms: int = 0


ROWS: Final = (
    Row("1 record", "produce", 1, 200, 20),
    Row("100 records", "produce", 100, 200, 20),
    Row("10,000 records", "produce", 10_000, 30, 5),
    Row("consume-transform-produce, 100 records", "transform", 100, 200, 20),
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    rows = [row for row in ROWS if options.rows in row.name]
    faults = []
    with ExitStack() as stack:
        byte_code = Path(stack.enter_context(TemporaryDirectory(prefix="kproto-bench-")))
        for number, version in enumerate(options.brokers):
            with KafkaNode(version) as node:
                bench = Bench(node.bootstrap, options.clients, byte_code)
                bench.run(rows, options.repeat)
                overhead = None
                if options.overhead_rounds:
                    overhead = bench.overhead(options.overhead_rounds)
            sys.stderr.write("\n")
            title = f"Kafka {version}"
            lines = lines_of_tables(title, rows, options.clients, bench, overhead)
            print("\n".join([""] * bool(number) + lines), flush=True)
            faults += bench.faults
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.transactions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeat", type=int, default=5, help="turns")
    parser.add_argument(
        "--rows", default="", metavar="TEXT", help="only rows whose name contains TEXT"
    )
    parser.add_argument(
        "--clients", default=",".join(CLIENTS), metavar="NAMES", help="kproto and some of its peers"
    )
    parser.add_argument(
        "--brokers", default=",".join(VERSIONS), metavar="VERSIONS", help="releases of Kafka"
    )
    parser.add_argument(
        "--overhead-rounds", type=int, default=100, help="rounds of the table of CPU time"
    )
    options = parser.parse_args(arguments)
    wanted = options.clients.split(",")
    options.clients = [name for name in CLIENTS if name in wanted]
    options.brokers = options.brokers.split(",")
    if "kproto" not in wanted or len(options.clients) < len(wanted):
        parser.error(f"--clients: kproto and some of {', '.join(CLIENTS[1:])}, joined by commas")
    if not any(options.rows in row.name for row in ROWS):
        names = "\n  ".join(row.name for row in ROWS)
        parser.error(f"no row has {options.rows!r} in its name; the rows are\n  {names}")
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    return options


class Bench:
    """Runs the rows against one broker, and collects the measurements.

    `rates` has the times per record; `medians` has the p50 of a transaction's time, and the CPU
    time.
    """

    def __init__(self, bootstrap: str, clients: Sequence[str], byte_code: Path) -> None:
        self.rates = Results()
        self.medians = Results()
        self.faults: list[str] = []
        self._bootstrap = bootstrap
        self._clients = clients
        self._byte_code = byte_code
        self._source = f"source-{time.monotonic_ns()}"

    def run(self, rows: Sequence[Row], repeat: int) -> None:
        """Measures all rows `repeat` times, after a turn that is not measured."""
        most = max(row.size * (row.transactions + row.warm) for row in rows)
        asyncio.run(fill_source(self._bootstrap, self._source, min(most, 100_000)))
        for client in self._clients:
            for row in rows:
                few = row._replace(transactions=row.transactions // 4)
                self._tell(f"warming, {row.name}, {client}")
                self._run(few, client)
        for turn in range(repeat):
            for row in rows:
                for client in reversed(self._clients) if turn % 2 else self._clients:
                    self._tell(f"turn {turn + 1}, {row.name}, {client}")
                    self._measure(row, client)
                self.rates.end_turn(row.name)
                self.medians.end_turn(row.name)

    def _measure(self, row: Row, client: str) -> None:
        found = self._run(row, client)
        if "fault" in found:
            self.faults.append(f"{row.name}: {client} failed:\n{found['fault']}")
            return
        version = found.pop("version")
        self.rates.versions[client] = self.medians.versions[client] = version
        measured = MeasuredTransactions(**found)
        self.rates.add(row.name, client, TimePerRecord(measured.seconds, measured.cpu))
        self.medians.add(row.name, client, TimePerRecord(measured.p50, measured.cpu * row.size))

    def _run(self, row: Row, client: str) -> dict[str, Any]:
        topic = f"{client}-{time.monotonic_ns()}"
        task = Task(
            client,
            row.work,
            self._bootstrap,
            topic,
            self._source,
            row.size,
            row.transactions,
            row.warm,
            row.linger_ms,
        )
        asyncio.run(make_topic(self._bootstrap, topic, 1))
        try:
            found = run_task(task, self._byte_code, WORKER)
            if "fault" not in found:
                fault = asyncio.run(fault_of(task))
                found = {"fault": fault} if fault else found
        finally:
            asyncio.run(delete_topic(self._bootstrap, topic))
        return found

    def overhead(self, rounds: int) -> Overhead:
        """Compares the CPU time of kproto's transactional and idempotent producers."""
        topic = f"overhead-{time.monotonic_ns()}"
        self._tell("overhead")
        asyncio.run(make_topic(self._bootstrap, topic, 1))
        try:
            return asyncio.run(measure_overhead(self._bootstrap, topic, OVERHEAD_SIZE, rounds))
        finally:
            asyncio.run(delete_topic(self._bootstrap, topic))

    def _tell(self, text: str) -> None:
        print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)


async def fill_source(bootstrap: str, topic: str, records: int) -> None:
    """Creates a topic, and writes at least `records` records in batches of `SOURCE_BATCH`."""
    await make_topic(bootstrap, topic, 1)
    values = [VALUE] * SOURCE_BATCH
    async with (
        kproto.Client(bootstrap) as client,
        client.producer(batch_bytes=BATCH_BYTES) as producer,
    ):
        for _ in range(-(-records // SOURCE_BATCH)):
            await producer.send_many(topic, values)


async def fault_of(task: Task) -> str:
    """Returns how the committed records or offset differ from those of the task; "" if equal."""
    expected = task.total * task.size
    async with kproto.Client(task.bootstrap) as client:
        await until_complete(client, task.transactional_id)
        count = 0
        async with client.consumer(task.topic, read_committed=True, stop_at_end=True) as consumer:
            async for fetched in consumer.record_lists():
                count += len(fetched.records)
        if count != expected:
            return f"{count:,} records are committed, not {expected:,}"
        if task.work != "transform":
            return ""
        tp = (task.source, 0)
        async with client.consumer(task.source, group=task.topic) as member:
            committed = (await member.committed(tp))[tp]
        found = None if committed is None else committed.offset
        return "" if found == expected else f"the committed offset is {found}, not {expected:,}"


async def until_complete(client: kproto.Client, transactional_id: str) -> None:
    """Waits until the coordinator has written the markers of the last transaction."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    while True:
        (its,) = (await client.request(request)).transaction_states
        if its.transaction_state not in IN_COMPLETION:
            return
        await asyncio.sleep(0.01)


def lines_of_tables(
    title: str,
    rows: Sequence[Row],
    clients: Sequence[str],
    bench: Bench,
    overhead: Overhead | None,
) -> list[str]:
    """Returns the lines of the tables of one broker: rates, p50, and the CPU time of kproto."""
    heads = [head_of(client, bench.rates) for client in clients]
    lines = [
        line_of([f"{title}: records/s, CPU µs a record (rate ÷ peer's, from–to)", *heads]),
        "|---" * (1 + len(heads)) + "|",
    ]
    lines += [
        line_of([row.name, *(rate_of(row, each, bench.rates) for each in clients)]) for row in rows
    ]
    lines += [
        "",
        line_of([f"{title}: p50 of a transaction, CPU time (time ÷ peer's, from–to)", *heads]),
        "|---" * (1 + len(heads)) + "|",
    ]
    lines += [
        line_of([row.name, *(p50_of(row, each, bench.medians) for each in clients)]) for row in rows
    ]
    if overhead is not None:
        lines += [
            "",
            line_of([f"{title}: CPU µs a record", "transactional", "idempotent", "ratio"]),
            "|---|---|---|---|",
            line_of(
                [
                    f"{OVERHEAD_SIZE:,} records",
                    f"{overhead.transactional * 1e6:.3f}",
                    f"{overhead.idempotent * 1e6:.3f}",
                    f"{overhead.ratio:.3f}",
                ]
            ),
        ]
    return lines


def head_of(client: str, results: Results) -> str:
    name = client.replace("_", "-")
    return name if client == "kproto" else f"{name} {results.versions.get(client, '')}".rstrip()


def rate_of(row: Row, client: str, results: Results) -> str:
    middle = results.middle(row.name, client)
    if middle is None:
        return "not measured"
    ratios = [1 / each.seconds for each in results.ratios(row.name, client)]
    return f"{1 / middle.seconds:,.0f}, {middle.cpu * 1e6:,.1f} µs{beside(ratios, client)}"


def p50_of(row: Row, client: str, results: Results) -> str:
    middle = results.middle(row.name, client)
    if middle is None:
        return "not measured"
    ratios = [each.seconds for each in results.ratios(row.name, client)]
    p50, cpu = middle.seconds * 1e3, middle.cpu * 1e3
    return f"{p50:.1f} ms, {cpu:.2f} ms{beside(ratios, client)}"


def beside(ratios: list[float], client: str) -> str:
    """Returns kproto's ratio to `client` in brackets: the median, and the range over the turns."""
    if client == "kproto" or not ratios:
        return ""
    return f" ({statistics.median(ratios):.2f}, {min(ratios):.2f}–{max(ratios):.2f})"


if __name__ == "__main__":
    sys.exit(main())
