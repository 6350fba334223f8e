"""Starts and stops a Spark session, so that an interrupt leaves no Java process running."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from .interrupts import run_in_thread, uninterrupted
from .java_output import JavaOutput
from .spark_errors import spark_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["run_spark_work", "spark_session"]

T = TypeVar("T")

#: How long to wait, at most, until the Java process ends after Spark has stopped, in seconds.
_JAVA_EXIT_TIMEOUT_S: Final = 20.0

#: Defaults of every session: no web UI, log errors only, timestamps in UTC.
_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}

#: Defaults of a local session. Spark's default of 200 shuffle partitions is meant for a cluster, as
#: are the 50 partitions in which Delta Lake reads the state of a table.
_LOCAL_DEFAULTS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    "spark.databricks.delta.snapshotPartitions": str(os.cpu_count() or 1),
}


@contextmanager
def spark_session(
    name: str, conf: Mapping[str, str], *, verbose: bool = False
) -> Iterator[SparkSession]:
    """Yields a Spark session with these properties, and stops it after the block.

    The master is `local[*]`, unless the properties or `spark-submit` set another master. The lines
    that Java writes to stderr are forwarded; without `verbose`, stack traces are left out.

    Raises:
        SparkError: Spark did not start, or the block raised an error of Spark, Java or a file
        system.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark and its workers warn about the pandas version; kproto does not use pandas.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    # Starts Spark in a thread for two reasons: an interrupt while Java starts would leave the Java
    # process running, and PySpark sets a Ctrl-C handler, which interrupts calls to Java, only if it
    # starts in the main thread.
    started: list[SparkSession] = []
    output = JavaOutput(verbose=verbose)
    try:
        with spark_errors():
            run_in_thread(lambda: started.append(_start(name, conf, output)), lambda: None)
            yield started[0]
    finally:
        with uninterrupted():
            _stop(started[0] if started else None)
            output.close()


def _start(name: str, conf: Mapping[str, str], output: JavaOutput) -> SparkSession:
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has a conf of its own
    master = conf.get("spark.master", "" if submitted else "local[*]")
    defaults = dict(_DEFAULTS)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        defaults |= _LOCAL_DEFAULTS
    if master:
        defaults["spark.master"] = master
    properties = {"spark.app.name": name, **defaults, **conf}
    output.start_java(properties)
    builder = SparkSession.builder
    for key, value in properties.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    output.hide_lost_connections(spark)
    return spark


def _stop(spark: SparkSession | None) -> None:
    """Stops Spark and waits for its Java process, which inherited stdout; kills it after 20 s.

    Ignores errors: they mean that Java has ended already.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    java = getattr(gateway, "proc", None)
    if spark is not None:
        with suppress(Exception):
            spark.stop()
    if gateway is None or java is None:
        return  # spark-submit or the caller started Java
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    with suppress(OSError):
        java.stdin.close()
    try:
        java.wait(_JAVA_EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


def run_spark_work(
    spark: SparkSession, work: Callable[[], T], cancel_work: Callable[[], object] = lambda: None
) -> T:
    """Runs `work` and returns its result.

    An interrupt calls `cancel_work` and cancels Spark's jobs. The interrupt is raised after `work`
    has ended.
    """

    def cancel() -> None:
        cancel_work()
        spark.sparkContext.setLogLevel("OFF")  # otherwise each cancelled job logs an error
        spark.sparkContext.cancelAllJobs()

    return run_in_thread(work, cancel)
