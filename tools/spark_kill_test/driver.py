"""The driver: runs two queries on the same topic until the file `folder`/end exists.

    python -m tools.spark_kill_test.driver TASK

TASK is JSON: `engine`, `bootstrap`, `source`, `target`, `folder`, `exactly_once`, `conf`. When the
file `folder`/end exists, both queries read the remaining records, and the program ends with 0.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

#: The maximum number of offsets of a micro-batch; low, so that kills affect many batches.
BATCH = "3000"

#: The start of all transactional ids.
PREFIX = "kill-test"


def main() -> int:
    from pyspark.sql import SparkSession

    task = json.loads(sys.argv[1])
    builder = SparkSession.builder.appName("spark-kill-test")
    for name, value in task["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if task["engine"] == "kproto":
        from kproto_pipeline import register

        register(spark)
    queries = [_to_parquet(spark, task), _to_topic(spark, task)]
    end = Path(task["folder"]) / "end"
    while not end.exists():
        for query in queries:
            if not query.isActive:
                raise RuntimeError(f"a query ended: {query.exception()}")
        time.sleep(0.2)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    spark.stop()
    return 0


def _rows(spark: Any, task: dict[str, Any]) -> Any:
    return (
        spark.readStream.format(task["engine"])
        .option("kafka.bootstrap.servers", task["bootstrap"])
        .option("subscribe", task["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", BATCH)
        .load()
    )


def _to_parquet(spark: Any, task: dict[str, Any]) -> Any:
    rows = _rows(spark, task).selectExpr(
        "cast(value as string) as value", "partition as source_partition", "offset as source_offset"
    )
    return (
        rows.writeStream.format("parquet")
        .option("path", f"{task['folder']}/rows")
        .option("checkpointLocation", f"{task['folder']}/parquet-checkpoint")
        .trigger(processingTime="500 milliseconds")
        .start()
    )


def _to_topic(spark: Any, task: dict[str, Any]) -> Any:
    writing = _rows(spark, task).select("key", "value").writeStream.format(task["engine"])
    if task["exactly_once"]:
        writing = writing.option("exactlyOnce", "true").option("transactionalIdPrefix", PREFIX)
    return (
        writing.option("kafka.bootstrap.servers", task["bootstrap"])
        .option("topic", task["target"])
        .option("checkpointLocation", f"{task['folder']}/topic-checkpoint")
        .trigger(processingTime="500 milliseconds")
        .start()
    )


if __name__ == "__main__":
    sys.exit(main())
