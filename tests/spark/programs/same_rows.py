"""Compares the rows of `format("kproto")` and `format("kafka")` for the same options."""

from __future__ import annotations

from typing import Any


def run(spark: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Returns the row count and column types of each format, and the counts of differing rows."""
    from kproto_pipeline import register

    register(spark)
    frames = {}
    for name in ("kafka", "kproto"):
        frame = spark.read.format(name).options(**task["options"]).load()
        frames[name] = frame.cache()
    theirs, ours = frames["kafka"], frames["kproto"]
    try:
        return {
            "kafka": theirs.count(),
            "kproto": ours.count(),
            "lacking": theirs.exceptAll(ours).count(),
            "added": ours.exceptAll(theirs).count(),
            "types": [theirs.dtypes, ours.dtypes],
        }
    finally:
        for frame in frames.values():
            frame.unpersist()
