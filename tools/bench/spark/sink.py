"""Measures writing rows from Spark's memory to a topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tools.bench.spark.reads import format_of, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["WRITES", "copy", "hold_rows", "timed_write"]

#: The writes in the order of the table, with their columns.
WRITES: Final = {
    "key and value": ("key", "value"),
    "with headers": ("key", "value", "headers"),
}

_VIEW: Final = "rows_to_write"


def hold_rows(spark: SparkSession, task: Mapping[str, Any], rows: int) -> int:
    """Caches rows in memory, in one partition per core; returns the number of rows."""
    from pyspark.sql import functions as sf

    number = sf.format_string("%09d", "id")
    headers = {
        "ce_specversion": sf.lit("1.0"),
        "ce_id": sf.concat(sf.lit("event-"), number),
        "ce_source": sf.lit("/bench/spark"),
        "ce_type": sf.lit("org.example.measured"),
        "ce_time": sf.lit("2026-01-01T00:00:00Z"),
        "content-type": sf.lit("application/json"),
    }
    made = spark.range(0, rows, 1, int(task["cores"])).select(
        number.cast("binary").alias("key"),
        sf.concat(sf.lit('{"number":'), number, sf.lit(f',"text":"{"x" * 84}"}}'))
        .cast("binary")
        .alias("value"),
        sf.array(
            *(
                sf.struct(sf.lit(name).alias("key"), value.cast("binary").alias("value"))
                for name, value in headers.items()
            )
        ).alias("headers"),
    )
    held = made.persist()
    held.createOrReplaceTempView(_VIEW)
    return held.count()


def timed_write(spark: SparkSession, task: Mapping[str, Any], what: str, topic: str) -> float:
    """Returns the seconds until all rows are acknowledged."""
    rows = spark.table(_VIEW).select(*WRITES[what])
    began = time.perf_counter()
    _write(rows, task, topic)
    return time.perf_counter() - began


def copy(spark: SparkSession, task: Mapping[str, Any], topic: str) -> None:
    """Writes all records of the task's topic, with their headers, to `topic`."""
    rows = load(spark.read, task, "with headers").select("key", "value", "headers", "partition")
    _write(rows, task, topic)


def _write(rows: DataFrame, task: Mapping[str, Any], topic: str) -> None:
    (
        rows.write.format(format_of(task))
        .option("kafka.bootstrap.servers", task["bootstrap"])
        .option("topic", topic)
        .mode("append")
        .save()
    )
