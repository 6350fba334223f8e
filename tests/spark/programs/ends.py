"""Runs the steps of `on_a_cluster`, and reads with each schema; all must work on every PySpark."""

from __future__ import annotations

import sys
from typing import Any

from tests.spark.programs.on_a_cluster import STEPS


def run(spark: Any, task: dict[str, Any]) -> dict[str, Any]:
    found = {step: STEPS[step](spark, task) for step in task["steps"]}
    if task["register"]:
        from kproto_pipeline import register

        register(spark)
        register(spark)  # a second call has no effect
    source = spark.read.format("kproto").options(subscribe=task["events"], **task["options"])
    rows = source.option("includeHeaders", "true").load().orderBy("partition", "offset")
    found["headers"] = [
        [[header["key"], bytes(header["value"]).decode()] for header in row["headers"]]
        for row in rows.collect()
    ]
    events = source.option("cloudEvents", "true").load().orderBy("partition", "offset")
    found["events"] = [[row["id"], row["source"], row["type"]] for row in events.collect()]
    chosen = source.schema("offset bigint, timestamp timestamp").load()
    found["chosen"] = [[row["offset"], row["timestamp"].year] for row in chosen.collect()]
    found["releases"] = [spark.version, list(sys.version_info[:2])]
    return found
