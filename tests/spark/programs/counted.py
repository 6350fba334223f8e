"""Counts the rows of a read."""

from __future__ import annotations

from typing import Any


def run(spark: Any, task: dict[str, Any]) -> int:
    """Returns the number of rows of a batch read with `options`, by `engine`."""
    from kproto_pipeline import register

    register(spark)
    return int(spark.read.format(task["engine"]).options(**task["options"]).load().count())
