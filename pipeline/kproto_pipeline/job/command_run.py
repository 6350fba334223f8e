"""Runs a job for the command line: starts Spark, shows progress, prints the summary."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from .compaction import compact
from .event_status import VALID
from .increment_store import folder_name
from .interrupts import INTERRUPTED
from .job_run import run
from .lake_packages import lake_properties
from .output_reader import output_reader
from .progress import bar_chart, summary
from .progress_line import ProgressLine
from .spark_session import run_spark_work, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .job_run import RunResult
    from .settings import JobSettings

__all__ = ["compact_command", "run_command"]


def run_command(settings: JobSettings, *, verbose: bool = False) -> int:
    """Runs the job and prints a summary; returns the exit code.

    If an interrupt ends a stream, prints the summary and returns `INTERRUPTED`.

    Raises:
        KprotoError: as in `run`.
        SparkError: Spark, Java or a file system failed.
        KeyboardInterrupt: an interrupt ended a job that is not a stream.
    """
    spark_started = time.monotonic()
    stopped = threading.Event()
    output = settings.output
    properties = {**lake_properties(output.format), **settings.spark}
    with spark_session("kproto-pipeline", properties, verbose=verbose) as spark:
        started = time.monotonic()
        with ProgressLine(spark, settings.read_options) as line:
            interrupted = False
            result: RunResult | None = None
            try:
                result = run_spark_work(
                    spark, lambda: run(spark, settings, listener=line, stopped=stopped), stopped.set
                )
            except KeyboardInterrupt:
                if settings.mode != "stream":
                    raise
                interrupted = True
            ran = time.monotonic()
        if interrupted:
            print("stopped", file=sys.stderr)
        seconds = {"Spark started in": started - spark_started, "the job took": ran - started}
        print(*summary(line.progress.counts, line.progress.increments, seconds), sep="\n")
        if result is not None and result.increments:
            print(*run_spark_work(spark, lambda: _chart(spark, settings, result)), sep="\n")
    return INTERRUPTED if interrupted else 0


def compact_command(settings: JobSettings, size: int, *, verbose: bool = False) -> int:
    """Joins small increments up to about `size` bytes; prints the joined folders' numbers.

    Raises:
        KprotoError: as in `compact`.
        SparkError: Spark, Java or a file system failed.
    """
    with spark_session("kproto-pipeline", settings.spark, verbose=verbose) as spark:
        joined = run_spark_work(spark, lambda: compact(spark, settings, size=size))
    for number in joined:
        print(f"joined increments into {folder_name(number)}")
    if not joined:
        print("no increments to join")
    return 0


def _chart(spark: SparkSession, settings: JobSettings, result: RunResult) -> list[str]:
    """Returns a chart of this run's valid events by type.

    Returns an empty list if no event is valid, if the output format writes no files, or if the
    output lacks the column `type` or `status`.
    """
    output = settings.output
    columns = output.columns or ("type", "status")
    if not output.is_files or not {"type", "status"} <= set(columns) or not result.counts.valid:
        return []
    paths = [f"{output.path}/{folder_name(number)}" for number in result.increments]
    rows = (
        output_reader(spark, output, "type", "status")
        .option("basePath", output.path)
        .load(paths)
        .where(sf.col("status") == VALID)
        .groupBy("type")
        .count()
        .collect()
    )
    return ["", *bar_chart("events by type", [(str(row[0]), row[1]) for row in rows])]
