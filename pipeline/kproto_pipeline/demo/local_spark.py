"""The demo's Spark: all cores of this machine, and how far it has come."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from .interrupts import in_own_thread, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from .progress import Stage

__all__ = ["spark_session", "spark_work", "watched"]

T = TypeVar("T")

#: How long Java may take to end after Spark has stopped.
_PATIENCE_S: Final = 20.0


@contextmanager
def spark_session(shuffle_partitions: int) -> Iterator[SparkSession]:
    """A Spark of this machine's own, all cores, without a web page, quiet.

    Spark's own 200 shuffle partitions are made for a cluster.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # PySpark warns of pandas versions, here and in its workers; no pandas is used.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    # In a thread: an interrupt that finds Java half begun would leave it behind. PySpark's own
    # answer to Ctrl-C, a call in the midst of another, is set up in the main thread alone.
    started: list[SparkSession] = []
    try:
        in_own_thread(lambda: started.append(_started(shuffle_partitions)), lambda: None)
        yield started[0]
    finally:
        with uninterrupted():
            for spark in started:
                _end(spark)


def _started(shuffle_partitions: int) -> SparkSession:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[*]")
        .appName("kproto-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", str(shuffle_partitions))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def _end(spark: SparkSession) -> None:
    """Stop Spark, and wait for its Java: it holds this program's output until it has ended."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    java = getattr(gateway, "proc", None)
    spark.stop()
    if gateway is None or java is None:
        return  # it was there before us
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    java.stdin.close()
    try:
        java.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


def spark_work(spark: SparkSession, work: Callable[[], T]) -> T:
    """What `work` returns. An interrupt cancels Spark's jobs, and is raised when `work` has ended.

    It never finds this program in the midst of a call to Java.
    """

    def cancel() -> None:
        spark.sparkContext.setLogLevel("OFF")  # each job would tell how it was cancelled
        spark.sparkContext.cancelAllJobs()

    return in_own_thread(work, cancel)


@contextmanager
def watched(spark: SparkSession, stage: Stage) -> Iterator[None]:
    """Move a stage's progress bar with the tasks that Spark has finished."""
    finished = threading.Event()

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not finished.wait(0.2):
            done = tasks = 0
            for number in tracker.getActiveStageIds():
                info = tracker.getStageInfo(number)
                if info is not None:
                    done += info.numCompletedTasks
                    tasks += info.numTasks
            if tasks:
                stage.advance_to(stage.total * done // tasks)

    watcher = threading.Thread(target=watch, name="progress")
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        with uninterrupted():
            watcher.join()
