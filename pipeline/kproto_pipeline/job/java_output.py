"""Starts Spark's Java process, forwards what it writes to stderr, and keeps the last lines.

If Java ends before Spark has started, only these lines have the reason.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from threading import Thread
from typing import TYPE_CHECKING, Final

from .errors import SparkError
from .spark_errors import describe_error, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

__all__ = ["JavaOutput", "startup_failure"]

#: The number of lines to keep.
_KEPT_LINES: Final = 200

#: How long to wait for the last lines after Java has ended, in seconds.
_LAST_LINES_TIMEOUT_S: Final = 2.0

#: Beginnings of lines that say only what Java and Spark always say at their start.
_STARTUP_LINES: Final = (
    "WARNING: Using incubator modules: ",
    "Using Spark's default log4j profile: ",
    "Setting default log level to ",
    "To adjust logging level use ",
    "Setting Spark log level to ",
)


class JavaOutput:
    """Forwards the stderr of Spark's Java process line by line to this process's stderr.

    Without `verbose`, leaves out stack traces and the lines of every start.
    """

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._thread: Thread | None = None

    def start_java(self, properties: Mapping[str, str]) -> None:
        """Starts the Java process with these Spark properties, unless Java is already started.

        Raises:
            SparkError: Java ended at once; the message has what Java wrote.
        """
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway

        if SparkContext._gateway is not None:
            return
        conf = SparkConf(loadDefaults=False).setAll(list(properties.items()))
        read_end, write_end = os.pipe()
        self._thread = Thread(target=self._forward, args=(read_end,), daemon=True)
        self._thread.start()
        try:
            gateway = launch_gateway(conf, {"stderr": write_end})  # type: ignore[no-untyped-call]
        except PySparkException as error:
            os.close(write_end)
            self.close()
            words = (describe_error(error), startup_failure(self._lines))
            raise SparkError(" ".join(filter(None, words))) from error
        os.close(write_end)
        SparkContext._ensure_initialized(gateway=gateway)

    def hide_lost_connections(self, spark: SparkSession) -> None:
        """Hides, without `verbose`, the tracebacks that PySpark prints when Java has ended."""
        server = getattr(spark.sparkContext, "_accumulatorServer", None)
        if server is not None and not self._verbose:
            server.handle_error = lambda *connection: None

    def close(self) -> None:
        """Waits until the last lines are forwarded, at most 2 s."""
        if self._thread is not None:
            self._thread.join(_LAST_LINES_TIMEOUT_S)

    def _forward(self, read_end: int) -> None:
        with open(read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._lines.append(line)
                if self._verbose or not (line[:1].isspace() or line.startswith(_STARTUP_LINES)):
                    sys.stderr.write(line)
                    sys.stderr.flush()


def startup_failure(lines: Iterable[str]) -> str:
    """Returns why Java ended before Spark started, from the lines that Java wrote; or nothing."""
    logged = re.compile(r"\d\d/\d\d/\d\d |:: |" + "|".join(map(re.escape, _STARTUP_LINES)))
    words = one_line("".join(line for line in lines if not logged.match(line)))
    return re.sub(r'^Exception in thread "\w+" ', "", words)
