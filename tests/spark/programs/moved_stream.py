"""Runs one query by `format("kafka")` and `format("kproto")` in turn, from one checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def run(spark: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Runs the query by `engine`; returns all rows so far, and the end offsets of its batches.

    By default it reads the records that are available now. With `distinct`, Spark's state drops
    values that an earlier row had.
    """
    from kproto_pipeline import register

    register(spark)
    folder = Path(task["folder"])
    rows = spark.readStream.format(task["engine"]).options(**task["options"]).load()
    rows = rows.selectExpr("cast(value as string) as value", "partition", "offset")
    if task.get("distinct"):
        rows = rows.dropDuplicates(["value"])
    query = (
        rows.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**task.get("trigger", {"availableNow": True}))
        .start()
    )
    query.awaitTermination(120)
    if query.isActive:
        query.stop()
        raise TimeoutError("the query goes on and on")
    progress = [json.loads(each.json) for each in query.recentProgress]
    written = spark.read.parquet(str(folder / "rows")).orderBy("partition", "offset").collect()
    ends = [each["sources"][0]["endOffset"] for each in progress if each["numInputRows"]]
    return {
        "rows": [[row["value"], row["partition"], row["offset"]] for row in written],
        "ends": [json.loads(end) if isinstance(end, str) else end for end in ends],
    }
