"""Spark reads a topic: our data source against the JVM connector, same cores, same run.

    python -m tools.bench.spark [--events 1000000] [--cores 1 2] [--repeat 3]

A real broker holds CloudEvents with six headers and a value of 113 bytes on four partitions. Each
engine reads them in a process of its own, first once to warm up, then `--repeat` times into
Spark's `noop` sink; the best time counts, and each read must bring every row. The connector is
the newest set that can be had, on the PySpark it was built for, in a venv of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

ROOT: Final = Path(__file__).resolve().parents[2]
PEER: Final = ROOT / ".cache" / "spark-peer"
JARS: Final = PEER / "connector-jars"

PEER_PYSPARK: Final = "4.2.0"
CONNECTOR: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.1",
)
BROKER: Final = "4.4.0"
PARTITIONS: Final = 4

# What is read -> whether it is ours or the connector's, in the order of the table.
READS: Final = {
    "record columns": ("ours", "connector"),
    "with headers": ("ours", "connector"),
    "CloudEvents columns": ("ours", "connector"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.spark", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        return read_as_worker(json.loads(options.worker))
    results = measure(options.events, options.cores, options.repeat)
    print_table(results, options.cores)
    return 0


def measure(events: int, cores: Sequence[int], repeat: int) -> dict[tuple[str, str, int], float]:
    """Rows/s by (what is read, engine, cores)."""
    from tools.kafka import KafkaNode

    install_peer()
    results = {}
    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP")
        if not bootstrap:
            bootstrap = closing.enter_context(KafkaNode(BROKER)).bootstrap
        topic = f"bench-spark-{os.getpid()}-{time.time_ns()}"
        asyncio.run(publish(bootstrap, topic, events))
        closing.callback(lambda: asyncio.run(delete(bootstrap, topic)))
        for core_count in cores:
            for engine in ("connector", "ours"):
                task = {
                    "bootstrap": bootstrap,
                    "topic": topic,
                    "events": events,
                    "cores": core_count,
                    "engine": engine,
                    "repeat": repeat,
                }
                for what, seconds in run_worker(task).items():
                    results[what, engine, core_count] = events / seconds
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


def install_peer() -> None:
    """The connector's PySpark in a venv of its own, and its jars from Maven."""
    python = PEER / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True)
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={PEER_PYSPARK}"], check=True
    )
    for artifact in CONNECTOR:
        _, name, version = artifact.split(":")
        if not (JARS / f"{name}-{version}.jar").exists():
            copy = ["mvn", "--batch-mode", "--quiet", "dependency:copy"]
            subprocess.run(
                [*copy, f"-Dartifact={artifact}", f"-DoutputDirectory={JARS}"], check=True
            )


def run_worker(task: dict[str, object]) -> dict[str, float]:
    """Measure one engine in a process of its own; seconds by what is read."""
    from tools.setup.java import java_home

    ours = task["engine"] == "ours"
    python = sys.executable if ours else str(PEER / "bin" / "python")
    folders = [ROOT, ROOT / "cloudevents", ROOT / "pipeline"] if ours else []
    environment = os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("SPARK_HOME", None)
    finished = subprocess.run(
        [python, str(Path(__file__)), "--worker", json.dumps(task)],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured: dict[str, float] = json.loads(finished.stdout.splitlines()[-1])
    return measured


def read_as_worker(task: dict[str, str]) -> int:
    """In the worker process: read everything, print seconds by what was read as JSON."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(f"local[{task['cores']}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
    )
    if task["engine"] == "connector":
        builder = builder.config("spark.jars", ",".join(map(str, sorted(JARS.glob("*.jar")))))
    spark = builder.getOrCreate()
    seconds = {}
    try:
        for what in READS:
            runs = [timed_read(spark, task, what) for _ in range(int(task["repeat"]) + 1)]
            seconds[what] = min(runs[1:])
    finally:
        spark.stop()
    print(json.dumps(seconds))
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


def print_table(results: dict[tuple[str, str, int], float], cores: Sequence[int]) -> None:
    """Thousand rows/s, and how many times the connector's ours is."""
    print(f"\n{'Spark reads, thousand rows/s':<30}{'cores':>6}{'ours':>10}{'connector':>11}  ratio")
    for what in READS:
        for core_count in cores:
            ours = results[what, "ours", core_count]
            peer = results[what, "connector", core_count]
            print(
                f"{what:<30}{core_count:>6}{ours / 1000:>10.0f}{peer / 1000:>11.0f}"
                f"  {ours / peer:.2f}"
            )


if __name__ == "__main__":
    sys.exit(main())
