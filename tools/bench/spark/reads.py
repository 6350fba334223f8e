"""Measures reading a whole topic as a batch into Spark's `noop` sink."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

__all__ = ["READS", "format_of", "load", "timed_read"]

#: The reads, in the order of the table.
READS: Final = ("record columns", "with headers", "CloudEvents columns")


def timed_read(spark: SparkSession, task: Mapping[str, Any], what: str) -> float:
    """Returns the seconds to read all rows once. Raises RuntimeError if rows are missing."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sf

    seen = Observation()
    rows = load(spark.read, task, what).observe(seen, sf.count(sf.lit(1)).alias("rows"))
    began = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    took = time.perf_counter() - began
    if seen.get["rows"] != int(task["events"]):
        raise RuntimeError(f"{task['engine']} read {seen.get['rows']} of {task['events']} rows")
    return took


def load(
    reader: DataFrameReader | DataStreamReader, task: Mapping[str, Any], what: str, **options: str
) -> DataFrame:
    """Returns the topic's rows from the reader, with the columns of `what`, one of `READS`."""
    ours = task["engine"] == "ours"
    reader = (
        reader.format(format_of(task))
        .option("kafka.bootstrap.servers", task["bootstrap"])
        .option("subscribe", task["topic"])
        .options(**options)
    )
    if task.get("idle"):
        reader = reader.option("rows", task["events"])
    if what == "record columns":
        return reader.load()
    if what == "with headers":
        return reader.option("includeHeaders", "true").load()
    if ours:
        return reader.option("cloudEvents", "true").load()
    return _with_attributes(reader.option("includeHeaders", "true").load())


def format_of(task: Mapping[str, Any]) -> str:
    """Returns the name of the data source that the task's engine reads: kafka, kproto or idle."""
    if task["engine"] != "ours":
        return "kafka"
    return "idle" if task.get("idle") else "kproto"


def _with_attributes(frame: DataFrame) -> DataFrame:
    """Replaces the connector's headers by four attributes, with Spark's functions."""
    from pyspark.sql import functions as sf

    columns = {
        name: sf.expr(f"element_at(filter(headers, h -> h.key = 'ce_{name}'), 1).value")
        for name in ("id", "source", "type", "time")
    }
    return frame.withColumns(columns).drop("headers")
