"""Runs the demo: publishes flights, runs the job, and prints counts, a table and a chart.

Stops the broker and Spark, and deletes the topic, even after an error. Needs the packages for which
`command.check_installed` looks.
"""

from __future__ import annotations

import io
import os
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ..job import JobSettings, RunResult, run
from ..job.interrupts import enter_uninterrupted, run_coroutine_in_thread
from ..job.job_cleanup import cleanup_on_failure
from ..job.output_files import OutputFiles
from ..job.progress_line import ProgressLine
from ..job.settings import OutputSettings
from ..job.spark_session import run_spark_work, spark_session
from .flight_tables import carrier_rows, flight_table, hour_rows
from .flights import Expected, flight_records, read_flights
from .progress import StageProgress
from .publishing import (
    TOPIC_PARTITIONS,
    Publisher,
    create,
    embedded_broker,
    publish,
    topic_removed,
)
from .report import Check, StageRate, all_checks, draw_delay_by_hour, print_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from ..job import JobCounts

__all__ = ["run_demo"]

#: Spark properties for a short run: few shuffle partitions, no optimizing compiler in the JVM, and
#: its serial garbage collector.
_SPARK: Final = {
    "spark.sql.shuffle.partitions": str(TOPIC_PARTITIONS),
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

#: The interval of the stream's increments in seconds; short, so that a viewer sees progress.
_INTERVAL_S: Final = 1.0


def run_demo(output: Path, limit: int | None, *, batch: bool) -> list[Check]:
    """Runs the demo, prints its report, and returns the checks in the report.

    Publishes up to `limit` flights (None: all), and writes events and chart to the folder `output`.
    With `batch`, the job runs after all records are published. Otherwise the job reads a stream
    while records are published.
    """
    flights = read_flights(limit)
    expected = Expected(len(flights))
    topic = f"kproto-demo-{uuid.uuid4().hex[:12]}"
    parquet = str(output.absolute() / "events")
    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP") or enter_uninterrupted(
            closing, embedded_broker()
        )
        print(f"broker {bootstrap}, topic {topic}")
        enter_uninterrupted(closing, topic_removed(bootstrap, topic))
        run_coroutine_in_thread(partial(create, bootstrap, topic))
        source = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
        run_job = _batch if batch else _stream
        spark, published, counts, rates = run_job(closing, source, flights, expected, parquet)

        def tables() -> tuple[list[Row], list[Row]]:
            events = flight_table(spark, parquet)
            return carrier_rows(events), hour_rows(events)

        carriers, by_hour = run_spark_work(spark, tables)
    checks = all_checks(expected, published, counts, carriers)
    print_report(checks, carriers, rates)
    chart = output / "delay-by-hour.png"
    draw_delay_by_hour(by_hour, chart)
    print(f"\nevents {parquet}\nchart  {chart.absolute()}")
    return checks


def _batch(
    closing: ExitStack,
    source: Mapping[str, str],
    flights: Sequence[Mapping[str, object]],
    expected: Expected,
    parquet: str,
) -> tuple[SparkSession, int, JobCounts, list[StageRate]]:
    """Publishes all records, then runs the job twice, with a new and with a warm Spark session.

    Returns the session, the number of published records, the counts of the second run, and the
    rates.
    """
    with StageProgress("encode", expected.records) as encoding:
        records = []
        for record in flight_records(flights):
            records.append(record)
            encoding.advance_to(len(records))
    with StageProgress("publish", expected.records) as publishing:
        published = run_coroutine_in_thread(
            partial(
                publish,
                source["kafka.bootstrap.servers"],
                source["subscribe"],
                records,
                publishing,
            )
        )
    spark_started = time.monotonic()
    spark = closing.enter_context(spark_session("kproto-demo", _SPARK))
    rates = [
        StageRate("encode", encoding.seconds, expected.records),
        StageRate("publish", publishing.seconds, expected.records),
        StageRate("Spark starts", time.monotonic() - spark_started, None),
    ]
    settings = JobSettings(source, OutputSettings(parquet, overwrite=True))
    for name in ("first run", "warm run"):
        with ProgressLine(spark, settings.read_options) as line:
            result = run_spark_work(spark, partial(run, spark, settings, listener=line))
        rates.append(StageRate(name, sum(line.seconds), result.counts.read))
    return spark, published, result.counts, rates


def _stream(
    closing: ExitStack,
    source: Mapping[str, str],
    flights: Sequence[Mapping[str, object]],
    expected: Expected,
    parquet: str,
) -> tuple[SparkSession, int, JobCounts, list[StageRate]]:
    """Runs the job as a stream during publishing, until it has read all records.

    Returns the session, the number of published records, the counts of the job, and the rates.
    """
    stage = StageProgress("publish", expected.records, out=io.StringIO())
    # The last third is published only after the first increment, so that a warm increment follows.
    warm = threading.Event()
    publisher = enter_uninterrupted(
        closing,
        Publisher(
            source["kafka.bootstrap.servers"],
            source["subscribe"],
            flight_records(flights),
            stage,
            (expected.records * 2 // 3, warm),
        ),
    )
    spark_started = time.monotonic()
    spark = closing.enter_context(spark_session("kproto-demo", _SPARK))
    started = time.monotonic()
    stopped = threading.Event()

    def enough(result: RunResult) -> bool:
        publisher.check()
        if result.increments:
            warm.set()
        return publisher.finished.is_set() and result.counts.read >= publisher.published

    stream = JobSettings(source, OutputSettings(parquet), mode="stream", interval_s=_INTERVAL_S)

    def streamed() -> RunResult:
        files = OutputFiles(spark, parquet)
        staging = files.new_sibling("writing")
        settings = replace(stream, output=OutputSettings(staging))
        with cleanup_on_failure(spark, lambda: files.delete(staging)):
            result = run(spark, settings, listener=line, stopped=stopped, enough=enough)
            if not stopped.is_set():
                files.replace(staging)
        return result

    with ProgressLine(
        spark, stream.read_options, prefix=lambda: f"published {stage.done:,}  "
    ) as line:
        result = run_spark_work(spark, streamed, stopped.set)
    first, *others = line.seconds
    rates = [
        StageRate("Spark starts", started - spark_started, None),
        StageRate("publish", stage.seconds, publisher.published),
        StageRate("first increment", first, line.read[0]),
    ]
    if others:
        rates.append(StageRate("warm increments", sum(others), sum(line.read[1:])))
    return spark, publisher.published, result.counts, rates
