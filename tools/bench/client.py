"""Measures produce and consume against a real broker: kproto and other clients, in the same run.

    python -m tools.bench.client [--records 1000000] [--repeat 3] [--rows TEXT] [--clients NAMES]

Uses one broker, topics of one partition unless a row names another number, and 100-byte values.
Each measurement has its own process. Separate rows measure the start-up. The other measurements
begin after the start-up: producing after the first acknowledgement, reading after a twentieth of
the records, single sends after 200 sends, concurrent sends after one round. The table also has the
CPU time per record, which counts all threads of the client's process. A turn measures each client
once; every second turn measures the clients in reverse order. A table has the medians of the turns,
and the medians of the ratios of two clients within a turn. Compare ratios between machines, not
absolute rates.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tools.bench.clients.processes import run_task
from tools.bench.clients.results import Results, lines_of_tables
from tools.bench.clients.rows import CLIENTS, FEW, ROWS, SHARES, Row, clients_of, records_of
from tools.bench.clients.task import Task, TimePerRecord
from tools.bench.clients.topics import delete_topic, fill_topic, make_topic
from tools.kafka import KafkaNode

BROKER: Final = "4.4.0"

#: The records that a new broker receives and serves before the first measurement.
WARMING: Final = 200_000

#: The minimum number of records of a turn: a few fetches must not return all of them.
LEAST_RECORDS: Final = 50_000


def main(
    arguments: Sequence[str] | None = None,
    all_rows: Sequence[Row] = ROWS,
    node: Callable[[], KafkaNode] = lambda: KafkaNode(BROKER),
) -> int:
    """Measures those of `all_rows` that the arguments select, and prints their tables.

    `node` returns the broker to start; the option `--bootstrap` names a running broker instead.
    """
    options = parsed(arguments, all_rows)
    rows = [row for row in all_rows if options.rows in row.name]
    with ExitStack() as stack:
        bootstrap = options.bootstrap or stack.enter_context(node()).bootstrap
        byte_code = Path(stack.enter_context(TemporaryDirectory(prefix="kproto-bench-")))
        bench = Bench(bootstrap, options.records, options.clients, byte_code)
        stack.callback(bench.delete_filled_except)
        bench.warm()
        for turn in range(options.repeat):
            for number, row in enumerate(rows, 1):
                bench.measure(row, turn)
                bench.delete_filled_except(rows[number:])
    sys.stderr.write("\n")
    print("\n".join(lines_of_tables(rows, options.clients, bench.results)))
    for told in (*bench.skipped, *bench.faults):
        print(told, file=sys.stderr)
    return 1 if bench.faults else 0


def parsed(arguments: Sequence[str] | None, all_rows: Sequence[Row] = ROWS) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--records",
        type=int,
        default=1_000_000,
        help="records of a turn for each client; aiokafka gets half, kafka-python a tenth",
    )
    parser.add_argument("--repeat", type=int, default=3, help="turns")
    parser.add_argument(
        "--rows", default="", metavar="TEXT", help="only rows whose name contains TEXT"
    )
    parser.add_argument(
        "--clients", default=",".join(CLIENTS), metavar="NAMES", help="kproto and some of its peers"
    )
    parser.add_argument("--bootstrap", help="a running broker; default: starts one")
    options = parser.parse_args(arguments)
    wanted = options.clients.split(",")
    options.clients = [name for name in CLIENTS if name in wanted]
    if "kproto" not in wanted or len(options.clients) < len(wanted):
        parser.error(f"--clients: kproto and some of {', '.join(CLIENTS[1:])}, joined by commas")
    if not any(options.rows in row.name for row in all_rows):
        names = "\n  ".join(row.name for row in all_rows)
        parser.error(f"no row has {options.rows!r} in its name; the rows are\n  {names}")
    if options.records < LEAST_RECORDS or options.repeat < 1:
        parser.error(f"--records must be at least {LEAST_RECORDS}, --repeat at least 1")
    return options


class Bench:
    """Runs the rows of the table against one broker, and collects the measurements."""

    def __init__(
        self, bootstrap: str, records: int, clients: Sequence[str], byte_code: Path
    ) -> None:
        self.results = Results()
        self.skipped: dict[str, None] = {}  # each once, in order
        self.faults: list[str] = []
        self._bootstrap = bootstrap
        self._records = records
        self._clients = clients
        self._byte_code = byte_code
        self._stamp = int(time.time())
        self._filled: set[str] = set()  # names of topics that rows share

    def warm(self) -> None:
        """Warms up the broker's JIT compiler, and makes Python cache the clients' byte code."""
        with self._topic("warm", partitions=1) as topic:
            asyncio.run(fill_topic(self._bootstrap, topic, WARMING, headers=False))
            for client in self._clients:
                self._tell(f"warming, {client}")
                records = WARMING // SHARES.get(client, 1)
                for work in ("batches", "start, produce"):
                    run_task(Task(client, work, self._bootstrap, topic, records), self._byte_code)

    def measure(self, row: Row, turn: int) -> None:
        """Measures a row `row.times` times with each client, in alternating order."""
        clients = clients_of(row, self._clients)
        for number in range(row.times):
            for client in reversed(clients) if (turn + number) % 2 else clients:
                self._tell(f"turn {turn + 1}, {row.name}, {client}")
                self._measure(row, client)
            self.results.end_turn(row.name)

    def _measure(self, row: Row, client: str) -> None:
        with self._topic_for(row, client) as topic:
            count = records_of(row, client, self._records)
            task = Task(
                client, row.works[client], self._bootstrap, topic, count, row.keyed, row.headers
            )
            result = run_task(task, self._byte_code)
        if "fault" in result:
            self.faults.append(f"{row.name}: {client} failed:\n{result['fault']}")
        elif "skipped" in result:
            told = f"{row.name}: SKIPPED, {result['skipped']}"
            self.skipped[told] = None
            self._tell(told + "\n")
        else:
            self.results.versions[client] = result["version"]
            self.results.add(row.name, client, TimePerRecord(result["seconds"], result["cpu"]))

    @contextmanager
    def _topic_for(self, row: Row, client: str) -> Iterator[str]:
        """Yields a new topic or, if `row.reads` is set, a filled topic that several rows share."""
        if row.reads:
            yield self._filled_topic(row)
            return
        with self._topic(f"own-{client}", row.partitions) as topic:
            if row.few:
                asyncio.run(fill_topic(self._bootstrap, topic, FEW, headers=False))
            yield topic

    def _filled_name(self, row: Row) -> str:
        """Returns the name of the filled topic that the row reads."""
        kind = "headers" if row.headers else "keys"
        return f"bench-{self._stamp}-{kind}-{self._filled_records(row)}-{row.partitions}"

    def _filled_records(self, row: Row) -> int:
        return FEW if row.few else self._records

    def _filled_topic(self, row: Row) -> str:
        topic, partitions = self._filled_name(row), row.partitions
        if topic not in self._filled:
            self._tell(f"filling {topic}")
            asyncio.run(make_topic(self._bootstrap, topic, partitions))
            self._filled.add(topic)
            records = self._filled_records(row)
            filling = fill_topic(
                self._bootstrap, topic, records, headers=row.headers, partitions=partitions
            )
            asyncio.run(filling)
        return topic

    def delete_filled_except(self, rows: Sequence[Row] = ()) -> None:
        """Deletes the filled topics that none of these rows reads.

        A broker maps the index files of each partition into memory. Linux limits the number of maps
        of a process (`vm.max_map_count`, 65,530 by default), and a broker that reaches it stops.
        """
        for topic in self._filled - {self._filled_name(row) for row in rows if row.reads}:
            asyncio.run(delete_topic(self._bootstrap, topic))
            self._filled.remove(topic)

    @contextmanager
    def _topic(self, name: str, partitions: int) -> Iterator[str]:
        """Yields a new topic, and deletes it afterwards to free the disk."""
        topic = f"bench-{self._stamp}-{name}-{time.monotonic_ns()}"
        asyncio.run(make_topic(self._bootstrap, topic, partitions))
        try:
            yield topic
        finally:
            asyncio.run(delete_topic(self._bootstrap, topic))

    def _tell(self, text: str) -> None:
        print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
