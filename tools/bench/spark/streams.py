"""Measures streaming into Spark's `noop` sink: all rows at once, or micro-batches of equal size."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

from tools.bench.spark.reads import format_of, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["STEPS", "micro_batches", "timed_stream", "to_topic"]

#: The steps of a micro-batch, by Spark's names in `durationMs`; the last is their total.
STEPS: Final = (
    "latestOffset",
    "walCommit",
    "getBatch",
    "queryPlanning",
    "addBatch",
    "commitOffsets",
    "triggerExecution",
)

_WARM_UP: Final = 10


def timed_stream(
    spark: SparkSession, task: Mapping[str, Any], what: str, batches_only: bool = False
) -> float:
    """Returns the seconds of a query with the trigger AvailableNow, from start to end.

    With `batches_only`, counts only the micro-batches: neither the start of the query nor the start
    of PySpark's process for a Python source. Raises RuntimeError if rows are missing.
    """
    began = time.perf_counter()
    progress = _run(spark, task, what)
    took = time.perf_counter() - began
    rows = sum(each["numInputRows"] for each in progress)
    if rows != int(task["events"]):
        raise RuntimeError(f"{task['engine']} read {rows} of {task['events']} rows")
    if batches_only:
        return sum(float(each["durationMs"]["triggerExecution"]) for each in progress) / 1000
    return took


def micro_batches(
    spark: SparkSession, task: Mapping[str, Any], what: str, rows: int, batches: int
) -> dict[str, float]:
    """Returns the median duration in ms of each step, from the eleventh micro-batch on."""
    progress = _run(spark, task, what, maxOffsetsPerTrigger=str(rows))
    full = [each for each in progress if each["numInputRows"] == rows]
    if len(full) < batches:
        raise RuntimeError(f"{task['engine']}: {len(full)} batches of {rows} rows, not {batches}")
    counted = full[_WARM_UP:batches]
    return {
        step: statistics.median(each["durationMs"].get(step, 0) for each in counted)
        for step in STEPS
    }


def to_topic(
    spark: SparkSession,
    task: Mapping[str, Any],
    source: str,
    target: str,
    rows: int,
    exactly_once: bool,
) -> dict[str, float]:
    """Returns the median duration in ms of each step of the micro-batches of `rows` rows.

    The stream copies the topic `source` to `target`. Of many micro-batches the first ten are not
    counted.
    """
    folder = tempfile.mkdtemp(dir=task["folder"])
    what = {**task, "topic": source}
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(rows)}
    query = (
        load(spark.readStream, what, "with headers", **options)
        .select("key", "value", "headers")
        .writeStream.format(format_of(task))
        .option("kafka.bootstrap.servers", task["bootstrap"])
        .option("topic", target)
        .option("exactlyOnce", str(exactly_once).lower())
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shutil.rmtree(folder)
    full = [each for each in query.recentProgress if each["numInputRows"] == rows]
    counted = full[_WARM_UP:] or full
    return {
        step: statistics.median(each["durationMs"].get(step, 0) for each in counted)
        for step in STEPS
    }


def _run(spark: SparkSession, task: Mapping[str, Any], what: str, **options: str) -> list[Any]:
    """Runs a query that reads all rows; returns the progress of each non-empty micro-batch."""
    folder = tempfile.mkdtemp(dir=task["folder"])
    rows = load(spark.readStream, task, what, startingOffsets="earliest", **options)
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shutil.rmtree(folder)
    return [each for each in query.recentProgress if each["numInputRows"]]
