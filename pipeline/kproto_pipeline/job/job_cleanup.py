"""Spark's jobs of one call: told from others by a tag, and ended with all their tasks.

A job that failed or was cancelled is over before its tasks are: some still write then.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["cleanup_on_failure"]

logger = logging.getLogger("kproto.pipeline")

#: How long tasks may take to end after they were told to; Spark kills Python workers after two.
_PATIENCE_S: Final = 60.0


@contextmanager
def cleanup_on_failure(spark: SparkSession, undo: Callable[[], None]) -> Iterator[None]:
    """When the block fails, end its jobs, wait until none of their tasks runs, and call `undo`.

    That is done in a thread of its own: where the block was interrupted, this thread's connection
    to Java may still wait for an answer.
    """
    tag = f"kproto-{uuid.uuid4().hex}"

    def clear_away() -> None:
        try:
            _end_jobs(spark, tag)
            undo()
        except Exception as error:  # noqa: BLE001 - whatever Java says, the failure is the block's
            logger.warning("what the job had written could not be cleared away: %s", error)

    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    except BaseException as fault:
        clearing = Thread(target=clear_away, name="kproto-clear-away")
        clearing.start()
        clearing.join()
        if isinstance(fault, Exception):
            context.removeJobTag(tag)
        raise
    context.removeJobTag(tag)


def _end_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel the jobs with a tag, and wait until none of their tasks runs any more."""
    context = spark.sparkContext
    context.cancelJobsWithTag(tag)
    deadline = time.monotonic() + _PATIENCE_S
    while _running_tasks(context, tag) and time.monotonic() < deadline:
        time.sleep(0.05)


def _running_tasks(context: SparkContext, tag: str) -> int:
    """How many tasks of the jobs with a tag run, those of ended jobs too."""
    tracker = context.statusTracker()
    tasks = 0
    for number in context._jsc.sc().statusTracker().getJobIdsForTag(tag):
        job = tracker.getJobInfo(number)
        for stage in job.stageIds if job is not None else ():
            info = tracker.getStageInfo(stage)
            tasks += 0 if info is None else info.numActiveTasks
    return tasks
