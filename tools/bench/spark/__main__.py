"""Compares two data sources of Spark: that of kproto and the JVM connector.

    python -m tools.bench.spark [TABLE …] [--events 1000000] [--cores 1 2] [--repeat 3]

A real broker has CloudEvents with six headers and a value of 114 bytes on four partitions. An
engine is a Spark session with one of the data sources. Each engine runs in a separate process, on
the PySpark version for which the connector was built. An engine runs once to warm up, then
`--repeat` times; the engines run in turn, in alternating order. The tables show the best rate of
each engine, the median of the ratios of consecutive runs, and the CPU time per row. The connector
is the newest release whose jars are available.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from tools.bench.spark.engines import CONNECTOR, OURS, Engine, EngineTimes, in_turns
from tools.bench.spark.job import BROKEN_EVERY, TWICE_EVERY
from tools.bench.spark.reads import READS
from tools.bench.spark.sink import WRITES
from tools.bench.spark.streams import STEPS
from tools.bench.spark.topics import PARTITIONS, TEXT_BYTES, delete, publish

BROKER: Final = "4.4.0"

#: The number of rows of a micro-batch, then the number of micro-batches of a query.
MICRO_ROWS: Final = 1_000
MICRO_BATCHES: Final = 60


@dataclass(frozen=True)
class SparkBench:
    """The settings that all tables of the Spark benchmark share."""

    bootstrap: str
    folder: str
    events: int
    repeat: int
    #: The partitions of the topics to which the sinks write.
    partitions: int
    #: Settings of both Spark sessions.
    conf: dict[str, str]

    def engines(
        self, closing: ExitStack, cores: int, topic: str, events: int, *, idle: bool = False
    ) -> tuple[Engine, Engine]:
        """Starts both engines for a topic; with `idle`, `IdleSource` replaces kproto's."""
        task = {"bootstrap": self.bootstrap, "topic": topic, "events": events}
        task |= {"folder": self.folder, "idle": idle, "conf": self.conf}
        ours, connector = (
            closing.enter_context(Engine(name, cores, task)) for name in (OURS, CONNECTOR)
        )
        return ours, connector


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools.bench.spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--partitions", type=int, default=PARTITIONS, help="partitions that the sinks write to"
    )
    parser.add_argument(
        "--conf", nargs="+", default=[], metavar="NAME=VALUE", help="settings of Spark, for both"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.tables if name not in TABLES]
    if unknown:
        parser.error(f"there is no table {unknown[0]}; the tables are {', '.join(TABLES)}")
    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP")
        if not bootstrap:
            from tools.kafka import KafkaNode

            bootstrap = closing.enter_context(KafkaNode(BROKER)).bootstrap
        folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="kproto-bench-"))
        conf = dict(setting.split("=", 1) for setting in options.conf)
        run = SparkBench(
            bootstrap, folder, options.events, options.repeat, options.partitions, conf
        )
        for name in options.tables or TABLES:
            TABLES[name](run, options.cores)
    return 0


def _published(run: SparkBench, closing: ExitStack, events: int, **shape: int) -> str:
    """Creates a topic with `events` events, and returns its name; `closing` deletes the topic."""
    topic = f"bench-spark-{os.getpid()}-{time.time_ns()}"
    asyncio.run(publish(run.bootstrap, topic, events, **shape))
    closing.callback(lambda: asyncio.run(delete(run.bootstrap, topic)))
    return topic


def _read_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    _reads(run, all_cores, "Spark reads a batch", "read")


def _stream_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    _reads(run, all_cores, "A stream, all at once", "stream")
    title = "The same, without the start of the query"
    _reads(run, all_cores, title, "stream", batches_only=True)


def _idle_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    title = "PySpark with a source in Python that does nothing, a stream, all at once"
    _reads(run, all_cores, title, "stream", whats=READS[:2], idle=True)
    _writes(run, all_cores, "PySpark with a sink in Python that does nothing", idle=True)


def _reads(
    run: SparkBench,
    all_cores: Sequence[int],
    title: str,
    action: str,
    *,
    whats: Sequence[str] = READS,
    idle: bool = False,
    **arguments: object,
) -> None:
    _head(title, idle=idle)
    with ExitStack() as closing:
        topic = _published(run, closing, run.events)
        for cores in all_cores:
            with ExitStack() as ending:
                engines = run.engines(ending, cores, topic, run.events, idle=idle)
                for what in whats:
                    turns = in_turns(engines, action, repeat=run.repeat, what=what, **arguments)
                    _line(what, cores, run.events, turns)


def _micro_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    rows = MICRO_ROWS * (MICRO_BATCHES + 1)
    print(f"\nA micro-batch of {MICRO_ROWS:,} rows, median, ms\n")
    print("| | cores | " + " | ".join(STEPS) + " |")
    print("|---" * (len(STEPS) + 2) + "|")
    with ExitStack() as closing:
        topic = _published(run, closing, rows)
        for cores in all_cores:
            with ExitStack() as ending:
                engines = run.engines(ending, cores, topic, rows)
                found: dict[str, list[dict[str, Any]]] = {OURS: [], CONNECTOR: []}
                for turn in range(run.repeat):
                    for engine in engines[:: -1 if turn % 2 else 1]:
                        found[engine.name].append(
                            engine.do(
                                "micro batches",
                                what="record columns",
                                rows=MICRO_ROWS,
                                batches=MICRO_BATCHES,
                            )
                        )
            for name, runs in found.items():
                cells = [f"{statistics.median(each[step] for each in runs):.0f}" for step in STEPS]
                print(f"| {name} | {cores} | {' | '.join(cells)} |", flush=True)


def _once_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    """Compares streams from topic to topic, with and without exactlyOnce."""
    rows = MICRO_ROWS * (MICRO_BATCHES + 1)
    print(f"\nA micro-batch of {MICRO_ROWS:,} rows to a topic, median, ms\n")
    print(
        "| | cores | addBatch | commitOffsets | triggerExecution | all at once, thousand rows/s |"
    )
    print("|---|---|---|---|---|---|")
    with ExitStack() as closing:
        topics = [_published(run, closing, events) for events in (rows, run.events)]
        target = _published(run, closing, 0)
        for cores in all_cores:
            with ExitStack() as ending:
                task = {"bootstrap": run.bootstrap, "topic": topics[0], "events": rows}
                task |= {"folder": run.folder, "idle": False, "conf": run.conf}
                engine = ending.enter_context(Engine(OURS, cores, task))
                steps: dict[bool, list[dict[str, float]]] = {False: [], True: []}
                rates: dict[bool, list[float]] = {False: [], True: []}
                for turn in range(run.repeat):
                    for once in (False, True)[:: -1 if turn % 2 else 1]:
                        how = {"target": target, "exactly_once": once}
                        steps[once].append(
                            engine.do("to topic", source=topics[0], rows=MICRO_ROWS, **how)
                        )
                        whole = engine.do("to topic", source=topics[1], rows=run.events, **how)
                        rates[once].append(run.events / whole["triggerExecution"])
            for once, runs in steps.items():
                cells = [
                    f"{statistics.median(each[step] for each in runs):.0f}"
                    for step in ("addBatch", "commitOffsets", "triggerExecution")
                ]
                name = "exactlyOnce" if once else "at least once"
                rate = f"{statistics.median(rates[once]):.0f}"
                print(f"| {name} | {cores} | {' | '.join(cells)} | {rate} |", flush=True)


def _sink_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    _writes(run, all_cores, f"Spark writes a batch to {run.partitions} partitions")


def _writes(run: SparkBench, all_cores: Sequence[int], title: str, *, idle: bool = False) -> None:
    from kproto.client import Client, NewTopic

    async def make(topic: str) -> None:
        async with Client(run.bootstrap) as client:
            await client.create_topics(NewTopic(topic, partitions=run.partitions))

    _head(title, idle=idle)
    for cores in all_cores:
        with ExitStack() as closing:
            engines = run.engines(closing, cores, "", run.events, idle=idle)
            for engine in engines:
                engine.do("rows to write", rows=run.events)
            for what in WRITES:
                topic = f"bench-sink-{os.getpid()}-{time.time_ns()}"
                asyncio.run(make(topic))
                turns = in_turns(engines, "write", repeat=run.repeat, what=what, topic=topic)
                _line(what, cores, run.events, turns)
                asyncio.run(delete(run.bootstrap, topic))


def _job_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    _head("The job, warm: topic to Parquet")
    with ExitStack() as closing:
        topic = _published(
            run, closing, run.events, twice_every=TWICE_EVERY, broken_every=BROKEN_EVERY
        )
        for cores in all_cores:
            with ExitStack() as ending:
                engines = run.engines(ending, cores, topic, run.events)
                turns = in_turns(engines, "job", repeat=run.repeat)
                _line("CloudEvents to Parquet", cores, run.events, turns)


def _memory_table(run: SparkBench, all_cores: Sequence[int]) -> None:
    print("\nThe peak memory of a Python worker, MB\n")
    print("| topic | cores | values, MB | read | copied to another topic |")
    print("|---" * 5 + "|")
    for events, text_bytes in (
        (run.events, TEXT_BYTES),
        (4 * run.events, TEXT_BYTES),
        (run.events // 50, 100_000),
    ):
        with ExitStack() as closing:
            topic = _published(run, closing, events, text_bytes=text_bytes)
            for cores in all_cores:
                peaks = [
                    _worker_peak_bytes(run, action, cores, topic, events)
                    for action in ("read", "copy")
                ]
                cells = [f"{events:,} events", str(cores), f"{events * text_bytes >> 20:,}"]
                cells += [str(peak >> 20) for peak in peaks]
                print(f"| {' | '.join(cells)} |", flush=True)


def _worker_peak_bytes(run: SparkBench, action: str, cores: int, topic: str, events: int) -> int:
    task = {"bootstrap": run.bootstrap, "topic": topic, "events": events, "folder": run.folder}
    with ExitStack() as closing:
        engine = closing.enter_context(Engine(OURS, cores, task))
        if action == "read":
            engine.do(action, what="CloudEvents columns")
        else:
            engine.do(action, topic=_published(run, closing, 0))
        return engine.worker_peak_bytes()


#: By name: the function that prints the table.
TABLES: Final = {
    "read": _read_table,
    "stream": _stream_table,
    "micro": _micro_table,
    "sink": _sink_table,
    "once": _once_table,
    "job": _job_table,
    "idle": _idle_table,
    "memory": _memory_table,
}


def _head(title: str, *, idle: bool = False) -> None:
    ours = "idle" if idle else "kproto"
    print(f"\n{title}: thousand rows/s, and microseconds of CPU a row\n")
    print(f"| | cores | {ours} | JVM connector | ratio | CPU, {ours} | CPU, JVM connector |")
    print("|---|---|---|---|---|---|---|")


def _line(what: str, cores: int, rows: int, turns: EngineTimes) -> None:
    rates = [f"{rows / min(each) / 1000:.0f}" for each in (turns.ours, turns.connector)]
    cpu = [
        f"{statistics.median(each) / rows * 1e6:.2f}"
        for each in (turns.ours_cpu, turns.connector_cpu)
    ]
    cells = [what, str(cores), *rates, f"{turns.ratio:.2f}", *cpu]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
