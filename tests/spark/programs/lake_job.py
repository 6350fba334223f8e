"""Runs the job into a Delta or Iceberg table, and ends the run at a step."""

from __future__ import annotations

from typing import Any


class Killed(BaseException):
    """Simulates the kill of a process."""


def run(spark: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Runs the job with the task's `source`, `output` and `mode`; returns what it did.

    With `kill_at` the run ends after this step, and nothing is cleaned up. The result has the
    counts, the numbers of the increments, the columns of the table, and its rows as pairs of the
    status and the id.
    """
    from contextlib import nullcontext
    from dataclasses import astuple

    from kproto_pipeline.job import JobSettings, increment_writer, job_run
    from kproto_pipeline.job import run as run_job
    from kproto_pipeline.job.job_cleanup import cleanup_on_failure
    from kproto_pipeline.job.lake_table import open_lake_table
    from kproto_pipeline.job.settings import OutputSettings

    output = dict(task["output"])
    for name in ("columns", "partition_by"):
        if name in output:
            output[name] = tuple(output[name])
    settings = JobSettings(
        task["source"],
        OutputSettings(**output),
        mode=task["mode"],
        max_records=2,
        merge=task.get("merge", False),
    )

    def killed(step: str) -> None:
        if step == task.get("kill_at"):
            raise Killed

    counts, increments = None, []
    try:
        if "kill_at" in task:
            for module in (increment_writer, job_run):
                vars(module)["cleanup_on_failure"] = lambda spark, undo: nullcontext()
        result = run_job(spark, settings, on_step=killed)
        counts, increments = list(astuple(result.counts)), result.increments
    except Killed:
        pass
    finally:
        for module in (increment_writer, job_run):
            vars(module)["cleanup_on_failure"] = cleanup_on_failure
    table = open_lake_table(spark, settings)
    assert table is not None
    if table.version() is None:
        return {"counts": counts, "increments": increments, "columns": [], "rows": []}
    rows = table.read()
    # Any reader finds the table at its path.
    assert spark.read.format(output["format"]).load(output["path"]).count() == rows.count()
    found = sorted(
        (row["status"], row["id"] or "") for row in rows.select("status", "id").collect()
    )
    return {
        "counts": counts,
        "increments": increments,
        "columns": rows.columns,
        "rows": [list(each) for each in found],
    }
