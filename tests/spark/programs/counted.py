"""Counts the rows of a read."""

from __future__ import annotations

from typing import Any


def run(spark: Any, task: dict[str, Any]) -> int:
    """Returns the number of rows that a batch reads with the task's `engine` and `options`."""
    from kproto_pipeline import register

    register(spark)
    return int(spark.read.format(task["engine"]).options(**task["options"]).load().count())
