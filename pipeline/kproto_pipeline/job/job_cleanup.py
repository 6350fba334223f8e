"""Cancels the Spark jobs of a failed `with` block, waits for their tasks, and cleans up.

A job tag identifies the jobs. A failed or cancelled job ends before its tasks, which may still
write files: cleanup must wait for them.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Final

from .spark_errors import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["cleanup_on_failure"]

logger = logging.getLogger("kproto.pipeline")

#: How long to wait for cancelled tasks, at most, in seconds; Spark kills Python workers after two
#: seconds.
_CANCEL_TIMEOUT_S: Final = 60.0


@contextmanager
def cleanup_on_failure(spark: SparkSession, undo: Callable[[], None]) -> Iterator[None]:
    """Cancels the Spark jobs of a failed `with` block, waits for their tasks, calls `undo`.

    Cleans up in a separate thread: after an interrupt, the calling thread's connection to Java may
    still wait for a response.
    """
    tag = f"kproto-{uuid.uuid4().hex}"

    def cleanup() -> None:
        try:
            _cancel_jobs(spark, tag)
            undo()
        except Exception as error:  # noqa: BLE001 - the caller raises the error of the block
            words = describe_error(error)
            logger.warning("files of the failed job could not be removed: %s", words)

    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    except BaseException as fault:
        thread = Thread(target=cleanup, name="kproto-cleanup")
        thread.start()
        thread.join()
        if isinstance(fault, Exception):
            with suppress(Exception):  # Java has ended; the caller raises the error of the block
                context.removeJobTag(tag)
        raise
    context.removeJobTag(tag)


def _cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancels the jobs with a tag, and waits until their tasks have ended, at most 60 s."""
    context = spark.sparkContext
    context.cancelJobsWithTag(tag)
    deadline = time.monotonic() + _CANCEL_TIMEOUT_S
    while _running_tasks(context, tag) and time.monotonic() < deadline:
        time.sleep(0.05)


def _running_tasks(context: SparkContext, tag: str) -> int:
    """Returns the number of running tasks of all jobs with a tag, including ended jobs."""
    tracker = context.statusTracker()
    tasks = 0
    for number in context._jsc.sc().statusTracker().getJobIdsForTag(tag):
        job = tracker.getJobInfo(number)
        for stage in job.stageIds if job is not None else ():
            info = tracker.getStageInfo(stage)
            tasks += 0 if info is None else info.numActiveTasks
    return tasks
