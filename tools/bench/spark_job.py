"""The job of kproto_pipeline beside the same job on the JVM connector, same cores, same topic.

    python -m tools.bench.spark_job [--events 1000000] [--cores 2] [--repeat 3]

A topic of CloudEvents, one in a thousand of them sent twice and one in 1,500 broken, goes to
Parquet by status and type: read, judged, duplicates dropped, written, counted again. The peer does
that with `format("kafka")` and Spark's built-in functions. Both run on the PySpark that the
connector was built for, each in a process of its own, in turns, after one run to warm up; each must
come to the same counts. The median of the ratios of neighbouring turns is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

BROKER: Final = "4.4.0"
PARTITIONS: Final = 4
TWICE_EVERY: Final = 1_000
BROKEN_EVERY: Final = 1_500

ANSWER: Final = "answer: "


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.spark_job", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        return run_as_worker(json.loads(options.worker))
    measure(options.events, options.cores, options.repeat)
    return 0


def measure(events: int, cores: int, repeat: int) -> None:
    """Run both in turns, and print what came of it."""
    from tools.bench.spark import delete
    from tools.kafka import KafkaNode

    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP")
        if not bootstrap:
            bootstrap = closing.enter_context(KafkaNode(BROKER)).bootstrap
        topic = f"bench-job-{os.getpid()}-{time.time_ns()}"
        asyncio.run(publish(bootstrap, topic, events))
        closing.callback(lambda: asyncio.run(delete(bootstrap, topic)))
        folder = tempfile.mkdtemp(prefix="kproto-bench-")
        closing.callback(shutil.rmtree, folder, ignore_errors=True)
        task = {"bootstrap": bootstrap, "topic": topic, "cores": cores}
        theirs, ours = (
            closing.enter_context(
                Worker({**task, "engine": engine, "output": f"{folder}/{engine}"})
            )
            for engine in ("connector", "ours")
        )
        counts = [theirs.run()[1], ours.run()[1]]
        if counts[0] != counts[1]:
            raise RuntimeError(f"the jobs do not agree: {counts}")
        turns = [(theirs.run()[0], ours.run()[0]) for _ in range(repeat)]
    rows = counts[0]["read"]
    ratio = statistics.median(their / own for their, own in turns)
    print(
        f"\n{'The job, warm, thousand events/s':<36}{'cores':>6}{'ours':>8}{'connector':>11}  ratio"
    )
    best = [rows / min(each) / 1000 for each in zip(*turns, strict=True)]
    print(f"{'topic to Parquet':<36}{cores:>6}{best[1]:>8.0f}{best[0]:>11.0f}  {ratio:.2f}")
    print(f"both: {', '.join(f'{count:,} {what}' for what, count in counts[0].items())}")


async def publish(bootstrap: str, topic: str, events: int) -> None:
    """Fill a new topic, its partitions in turn."""
    from kproto.client import Client, NewTopic, ProducerRecord
    from tools.bench.spark import event_headers

    def records(first: int, last: int) -> list[ProducerRecord]:
        made = []
        for n in range(first, last):
            headers = event_headers(n)
            value = b'{"number":%09d,"text":"%s"}' % (n, b"x" * 84)
            record = ProducerRecord(value, b"%08d" % n, headers, partition=n % PARTITIONS)
            made.append(record)
            if n % TWICE_EVERY == 0:
                made.append(record)
            if n % BROKEN_EVERY == 0:
                lacking = [pair for pair in headers if pair[0] != "ce_id"]
                made.append(ProducerRecord(value, None, lacking, partition=n % PARTITIONS))
        return made

    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=PARTITIONS))
        # 16 KB batches, the default of Kafka's own producer.
        async with client.producer(batch_bytes=16_384) as producer:
            for first in range(0, events, 20_000):
                await producer.send_many(topic, records(first, min(first + 20_000, events)))


class Worker:
    """One engine in a process of its own, which runs its job when it is asked to."""

    def __init__(self, task: dict[str, object]) -> None:
        from tools.spark.environments import connector_jars, environment, python_with_connector

        python = str(python_with_connector())
        task = {**task, "jars": connector_jars()}
        self._process = subprocess.Popen(
            [python, str(Path(__file__)), "--worker", json.dumps(task)],
            env=environment(python),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self) -> tuple[float, dict[str, int]]:
        """Seconds, and the counts. Raises RuntimeError if the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                seconds, counts = json.loads(line.removeprefix(ANSWER))
                return seconds, counts
        raise RuntimeError("the job ended its process; see its output above")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]  # which ends it
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run_as_worker(task: dict[str, Any]) -> int:
    """In the worker process: run the job for each line of the input."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(f"local[{task['cores']}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", str(task["cores"]))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.jars", task["jars"])
    )
    spark = builder.getOrCreate()
    job = our_job if task["engine"] == "ours" else their_job
    try:
        for _ in sys.stdin:
            began = time.perf_counter()
            counts = job(spark, task)
            print(f"{ANSWER}{json.dumps([time.perf_counter() - began, counts])}", flush=True)
    finally:
        spark.stop()
    return 0


def our_job(spark: SparkSession, task: dict[str, Any]) -> dict[str, int]:
    """kproto_pipeline's."""
    from kproto_pipeline import run_job

    source = {"kafka.bootstrap.servers": task["bootstrap"], "subscribe": task["topic"]}
    counts = run_job(spark, source, task["output"], overwrite=True)
    return {name: getattr(counts, name) for name in ("read", "valid", "invalid", "duplicates")}


def their_job(spark: SparkSession, task: dict[str, Any]) -> dict[str, int]:
    """The same with the connector and built-in functions, as one would write it."""
    from pyspark.sql import Observation, Window
    from pyspark.sql import functions as sf

    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", task["bootstrap"])
        .option("subscribe", task["topic"])
        .option("includeHeaders", "true")
        .load()
    )
    events = with_event_columns(records)
    place = sf.struct("topic", "partition", "offset")
    identity = [sf.col("source"), sf.col("id"), sf.when(sf.col("error").isNotNull(), place)]
    order = Window.partitionBy(*identity).orderBy("topic", "partition", "offset")
    status = (
        sf.when(sf.col("error").isNotNull(), "invalid")
        .when(sf.row_number().over(order) == 1, "valid")
        .otherwise("duplicate")
    )
    seen = Observation()
    judged = events.withColumn("status", status).observe(
        seen,
        sf.count(sf.lit(1)).alias("read"),
        *(
            sf.count(sf.when(sf.col("status") == each, 1)).alias(each)
            for each in ("valid", "invalid", "duplicate")
        ),
    )
    judged.where("status <> 'duplicate'").write.mode("overwrite").partitionBy(
        "status", "type"
    ).parquet(task["output"])
    rows = spark.read.parquet(task["output"]).groupBy("status").count().collect()
    found, written = seen.get, {row["status"]: row["count"] for row in rows}
    if written != {name: found[name] for name in ("valid", "invalid")}:
        raise RuntimeError(f"the counts do not agree: {found}, {written}")
    names = {"read": "read", "valid": "valid", "invalid": "invalid", "duplicates": "duplicate"}
    return {name: found[their] for name, their in names.items()}


def with_event_columns(records: DataFrame) -> DataFrame:
    """CloudEvents in binary mode out of headers: attributes, extensions, and what is wrong."""
    from pyspark.sql import functions as sf

    named = ("specversion", "id", "source", "type", "subject", "dataschema")

    def header(name: str) -> str:
        return f"cast(get(filter(headers, h -> h.key = '{name}'), 0).value as string)"

    columns = {name: sf.expr(header(f"ce_{name}")) for name in named}
    columns["datacontenttype"] = sf.expr(header("content-type"))
    columns["written_time"] = sf.expr(header("ce_time"))
    known = ", ".join(f"'ce_{name}'" for name in (*named, "time"))
    columns["extensions"] = sf.expr(
        "map_from_entries(transform("
        f"filter(headers, h -> h.key like 'ce\\_%' and h.key not in ({known})), "
        "h -> struct(substring(h.key, 4), cast(h.value as string))))"
    )
    events = records.withColumns(columns).withColumn(
        "time", sf.expr("try_to_timestamp(written_time)")
    )
    wrong = sf.coalesce(
        *(
            sf.when(sf.coalesce(sf.col(name), sf.lit("")) == "", f"ce_{name} is missing")
            for name in ("specversion", "id", "source", "type")
        ),
        sf.when(sf.col("specversion") != "1.0", "ce_specversion is not known"),
        sf.when(
            sf.col("written_time").isNotNull() & sf.col("time").isNull(), "ce_time is no timestamp"
        ),
    )
    events = events.withColumn("error", wrong)
    broken = sf.col("error").isNotNull()
    return events.select(
        *(sf.when(~broken, sf.col(name)).alias(name) for name in (*named, "time", "extensions")),
        sf.when(~broken, sf.col("datacontenttype")).alias("datacontenttype"),
        sf.when(~broken, sf.col("value")).alias("data"),
        "key",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "error",
        sf.when(broken, sf.col("value")).alias("value"),
        sf.when(broken, sf.col("headers")).alias("headers"),
    )


if __name__ == "__main__":
    sys.exit(main())
