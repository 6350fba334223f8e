"""The demo's Spark: all cores of this machine, and how far it has come."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from .progress import Stage

__all__ = ["spark_session", "watched"]


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
    from pyspark.sql import SparkSession

    spark = (
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
    try:
        yield spark
    finally:
        spark.stop()


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
        watcher.join()
