"""Runs a query that can move between `format("kafka")` and `format("kproto")`.

Runs with the same folder continue from the checkpoint in this folder, also in the other format.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.spark.programs.on_a_cluster import run_to_end


def run(spark: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Runs the query with format `engine`; returns all rows and the end offsets of the batches.

    The rows include the rows of earlier runs. By default, the query reads the records that are
    available now. With `distinct`, the query drops a row if an earlier row has the same value.
    """
    from kproto_pipeline import register

    register(spark)
    folder = Path(task["folder"])
    rows = spark.readStream.format(task["engine"]).options(**task["options"]).load()
    rows = rows.selectExpr("cast(value as string) as value", "partition", "offset")
    if task.get("distinct"):
        rows = rows.dropDuplicates(["value"])
    writer = (
        rows.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**task.get("trigger", {"availableNow": True}))
    )
    query = run_to_end(writer, 120)
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
