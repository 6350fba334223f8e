"""Spark reads a topic: our data source against the JVM connector, same cores, same run.

    python -m tools.bench.spark [--events 1000000] [--cores 1 2] [--repeat 3]

A real broker holds CloudEvents with six headers and a value of 113 bytes on four partitions. Each
engine reads them in a process of its own, first once to warm up, then `--repeat` times into
Spark's `noop` sink, in turns with the other. The best time of each is shown, and the median of
the ratios of neighbouring turns; each read must bring every row. The connector is
the newest set that can be had, on the PySpark it was built for, in a venv of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

BROKER: Final = "4.4.0"
PARTITIONS: Final = 4

#: What is read, in the order of the table.
READS: Final = ("record columns", "with headers", "CloudEvents columns")

#: How a worker's line with the seconds starts; whatever else it prints is passed over.
ANSWER: Final = "seconds: "


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.spark", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        return read_as_worker(json.loads(options.worker))
    print_table(measure(options.events, options.cores, options.repeat))
    return 0


class Measured(NamedTuple):
    """Rows/s of the best read of each engine, and how many times the connector's rate ours is."""

    ours: float
    connector: float
    ratio: float


def measure(events: int, cores: Sequence[int], repeat: int) -> dict[tuple[str, int], Measured]:
    """What was measured, by what is read and on how many cores."""
    from tools.kafka import KafkaNode

    results = {}
    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP")
        if not bootstrap:
            bootstrap = closing.enter_context(KafkaNode(BROKER)).bootstrap
        topic = f"bench-spark-{os.getpid()}-{time.time_ns()}"
        asyncio.run(publish(bootstrap, topic, events))
        closing.callback(lambda: asyncio.run(delete(bootstrap, topic)))
        for core_count in cores:
            task = {"bootstrap": bootstrap, "topic": topic, "events": events, "cores": core_count}
            with (
                Worker({**task, "engine": "connector"}) as connector,
                Worker({**task, "engine": "ours"}) as ours,
            ):
                for what in READS:
                    for engine in (connector, ours):
                        engine.read(what)  # to warm up
                    turns = [(connector.read(what), ours.read(what)) for _ in range(repeat)]
                    results[what, core_count] = Measured(
                        events / min(seconds for _, seconds in turns),
                        events / min(seconds for seconds, _ in turns),
                        statistics.median(theirs / own for theirs, own in turns),
                    )
    return results


async def publish(bootstrap: str, topic: str, events: int) -> None:
    """Fill a new topic, its partitions in turn."""
    from kproto.client import Client, NewTopic, ProducerRecord

    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=PARTITIONS))
        # 16 KB batches, the default of Kafka's own producer.
        async with client.producer(batch_bytes=16_384) as producer:
            for first in range(0, events, 20_000):
                records = [
                    ProducerRecord(
                        value=b'{"number":%09d,"text":"%s"}' % (n, b"x" * 84),
                        key=b"%08d" % n,
                        headers=event_headers(n),
                        partition=n % PARTITIONS,
                    )
                    for n in range(first, min(first + 20_000, events))
                ]
                await producer.send_many(topic, records)


async def delete(bootstrap: str, topic: str) -> None:
    """Leave nothing behind on a broker that is not ours."""
    from kproto.client import Client

    async with Client(bootstrap) as client:
        await client.delete_topics(topic)


def event_headers(number: int) -> list[tuple[str, bytes]]:
    """The six headers of one event."""
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"event-%09d" % number),
        ("ce_source", b"/bench/spark"),
        ("ce_type", b"org.example.measured"),
        ("ce_time", b"2026-01-01T%02d:%02d:00Z" % (number // 60 % 24, number % 60)),
        ("content-type", b"application/json"),
    ]


class Worker:
    """One engine in a process of its own, which reads when it is asked to."""

    def __init__(self, task: dict[str, object]) -> None:
        from tools.spark.environments import connector_jars, environment, python_with_connector

        python = sys.executable
        if task["engine"] == "connector":
            python = str(python_with_connector())
            task = {**task, "jars": connector_jars()}
        self._process = subprocess.Popen(
            [python, str(Path(__file__)), "--worker", json.dumps(task)],
            env=environment(python),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self, what: str) -> float:
        """Seconds that one read of everything took. Raises RuntimeError if the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                return float(line.removeprefix(ANSWER))
        raise RuntimeError(f"no time for {what!r}: the reading process ended; see its output above")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # which ends it
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def read_as_worker(task: dict[str, str]) -> int:
    """In the worker process: read what each line of the input says, answer with the seconds."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(f"local[{task['cores']}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
    )
    if task["engine"] == "connector":
        builder = builder.config("spark.jars", task["jars"])
    spark = builder.getOrCreate()
    try:
        for line in sys.stdin:
            print(f"{ANSWER}{timed_read(spark, task, line.strip())}", flush=True)
    finally:
        spark.stop()
    return 0


def timed_read(spark: SparkSession, task: dict[str, str], what: str) -> float:
    """Seconds to read the whole topic once; every row must arrive."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sf

    seen = Observation()
    rows = frame(spark, task, what).observe(seen, sf.count(sf.lit(1)).alias("rows"))
    began = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    took = time.perf_counter() - began
    if seen.get["rows"] != int(task["events"]):
        raise RuntimeError(f"{task['engine']} read {seen.get['rows']} of {task['events']} rows")
    return took


def frame(spark: SparkSession, task: dict[str, str], what: str) -> DataFrame:
    """The DataFrame to read: the same rows, whichever engine."""
    ours = task["engine"] == "ours"
    if ours:
        from kproto_pipeline import register

        register(spark)
    reader = (
        spark.read.format("kproto" if ours else "kafka")
        .option("kafka.bootstrap.servers", task["bootstrap"])
        .option("subscribe", task["topic"])
    )
    if what == "record columns":
        return reader.load()
    if what == "with headers":
        return reader.option("includeHeaders", "true").load()
    if ours:
        return reader.option("cloudEvents", "true").load()
    return with_attributes(reader.option("includeHeaders", "true").load())


def with_attributes(frame: DataFrame) -> DataFrame:
    """Four attributes out of the connector's headers, the usual way."""
    from pyspark.sql import functions as sf

    columns = {
        name: sf.expr(f"element_at(filter(headers, h -> h.key = 'ce_{name}'), 1).value")
        for name in ("id", "source", "type", "time")
    }
    return frame.withColumns(columns).drop("headers")


def print_table(results: dict[tuple[str, int], Measured]) -> None:
    """Thousand rows/s, and how many times the connector's ours is."""
    print(f"\n{'Spark reads, thousand rows/s':<30}{'cores':>6}{'ours':>10}{'connector':>11}  ratio")
    for (what, core_count), measured in results.items():
        print(
            f"{what:<30}{core_count:>6}{measured.ours / 1000:>10.0f}"
            f"{measured.connector / 1000:>11.0f}  {measured.ratio:.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
