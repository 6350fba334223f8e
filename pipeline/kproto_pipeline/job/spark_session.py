"""A Spark for a program of ours: begun and ended so that an interrupt leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from .interrupts import run_in_thread, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["run_spark_work", "spark_session"]

T = TypeVar("T")

#: How long Java may take to end after Spark has stopped.
_PATIENCE_S: Final = 20.0

#: What holds unless the conf says otherwise: quiet, without a web page, times of events as UTC.
_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}

#: Of a Spark of this machine's own, besides. Its 200 shuffle partitions are made for a cluster.
_LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
}


@contextmanager
def spark_session(name: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A Spark with this conf; all cores of this machine, unless it names another master.

    So does `spark-submit`, which names it by the environment.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark warns of pandas versions, here and in its workers; no pandas is used.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    # In a thread: an interrupt that finds Java half begun would leave it behind. PySpark's own
    # answer to Ctrl-C, a call in the midst of another, is set up in the main thread alone.
    started: list[SparkSession] = []
    try:
        run_in_thread(lambda: started.append(_started(name, conf)), lambda: None)
        yield started[0]
    finally:
        with uninterrupted():
            for spark in started:
                _end(spark)


def _started(name: str, conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has a conf of its own
    master = conf.get("spark.master", "" if submitted else "local[*]")
    defaults = dict(_QUIET)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        defaults |= _LOCAL
    if master:
        defaults["spark.master"] = master
    builder = SparkSession.builder.appName(name)
    for key, value in {**defaults, **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


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


def run_spark_work(
    spark: SparkSession, work: Callable[[], T], cancel_work: Callable[[], object] = lambda: None
) -> T:
    """What `work` returns. An interrupt cancels Spark's jobs, and is raised when `work` has ended.

    It never finds this program in the midst of a call to Java. `cancel_work` is called by it, too.
    """

    def cancel() -> None:
        cancel_work()
        spark.sparkContext.setLogLevel("OFF")  # each job would tell how it was cancelled
        spark.sparkContext.cancelAllJobs()

    return run_in_thread(work, cancel)
