"""Compares the job of kproto_pipeline with the same job on the JVM connector.

The topic has CloudEvents. Every 1,000th event is sent twice, and an invalid record follows every
1,500th event. The job sets the status of each event, drops duplicates, writes Parquet by status and
type, and counts the written rows. The compared job does the same with `format("kafka")` and Spark's
built-in functions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BROKEN_EVERY", "TWICE_EVERY", "timed_job"]

TWICE_EVERY: Final = 1_000
BROKEN_EVERY: Final = 1_500


def timed_job(spark: SparkSession, task: Mapping[str, Any]) -> float:
    """Returns the seconds of one run. Raises RuntimeError if its counts are wrong."""
    began = time.perf_counter()
    counts = (_our_job if task["engine"] == "ours" else _their_job)(spark, task)
    took = time.perf_counter() - began
    events = int(task["events"])
    twice, broken = (-(-events // every) for every in (TWICE_EVERY, BROKEN_EVERY))
    right = {
        "read": events + twice + broken,
        "valid": events,
        "invalid": broken,
        "duplicates": twice,
    }
    if counts != right:
        raise RuntimeError(f"{task['engine']} counted {counts}, expected {right}")
    return took


def _our_job(spark: SparkSession, task: Mapping[str, Any]) -> dict[str, int]:
    """Runs the job of kproto_pipeline, and returns its counts."""
    from kproto_pipeline import run_job

    source = {"kafka.bootstrap.servers": task["bootstrap"], "subscribe": task["topic"]}
    counts = run_job(spark, source, _output(task), overwrite=True)
    return {name: getattr(counts, name) for name in ("read", "valid", "invalid", "duplicates")}


def _their_job(spark: SparkSession, task: Mapping[str, Any]) -> dict[str, int]:
    """Runs the job of `_our_job` with the connector and Spark's functions; returns its counts."""
    from pyspark.sql import Observation, Window
    from pyspark.sql import functions as sf

    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", task["bootstrap"])
        .option("subscribe", task["topic"])
        .option("includeHeaders", "true")
        .load()
    )
    events = _with_event_columns(records)
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
    ).parquet(_output(task))
    rows = spark.read.parquet(_output(task)).groupBy("status").count().collect()
    found, written = seen.get, {row["status"]: row["count"] for row in rows}
    if written != {name: found[name] for name in ("valid", "invalid")}:
        raise RuntimeError(f"the counts do not agree: {found}, {written}")
    names = {"read": "read", "valid": "valid", "invalid": "invalid", "duplicates": "duplicate"}
    return {name: found[their] for name, their in names.items()}


def _output(task: Mapping[str, Any]) -> str:
    return f"{task['folder']}/{task['engine']}"


def _with_event_columns(records: DataFrame) -> DataFrame:
    """Returns the records as CloudEvents: columns from the headers, and the column `error`."""
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
