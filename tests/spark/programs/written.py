"""Writes rows to a topic, by `format("kafka")` or `format("kproto")`."""

from __future__ import annotations

from typing import Any


def run(spark: Any, task: dict[str, Any]) -> int:
    """Writes the rows of topic `source` to topic `target` unchanged; returns the number of rows."""
    from kproto_pipeline import register

    register(spark)
    bootstrap = {"kafka.bootstrap.servers": task["bootstrap"]}
    rows = (
        spark.read.format("kafka")
        .options(**bootstrap, subscribe=task["source"], includeHeaders="true")
        .load()
        .select("key", "value", "headers", "partition")
    )
    rows.write.format(task["engine"]).mode("append").options(
        **bootstrap, topic=task["target"]
    ).save()
    return int(rows.count())
