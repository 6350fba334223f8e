"""Reads the version of a Delta table in another thread, and tells whether its session is active."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run(spark: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Returns the version, and whether the thread's session was active before and after."""
    from kproto_pipeline.job import JobSettings
    from kproto_pipeline.job.lake_table import open_lake_table
    from kproto_pipeline.job.settings import OutputSettings

    spark.range(1).write.format("delta").mode("append").save(task["path"])
    settings = JobSettings(
        {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"},
        OutputSettings(path=task["path"], format="delta"),
        mode="incremental",
    )
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession

    def in_thread() -> dict[str, Any]:
        sessions.clearActiveSession()
        before = sessions.getActiveSession().isDefined()
        table = open_lake_table(spark, settings)
        assert table is not None
        sessions.clearActiveSession()
        version = table.version()
        return {
            "before": before,
            "version": version,
            "after": sessions.getActiveSession().isDefined(),
        }

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(in_thread).result()
