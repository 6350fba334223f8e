"""Runs programs of tests/spark/programs in another Python, which has another PySpark version."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.spark.programs.__main__ import MARK
from tools.spark.environments import environment

from .environment import ROOT

__all__ = ["ProgramFailed", "SparkPrograms", "spark_programs"]

#: Spark settings of every test.
QUIET = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


class ProgramFailed(AssertionError):
    """Raised if the program raises an error, or if the program's process ends.

    The message has the text of the program's error.
    """


class SparkPrograms:
    """A Spark session in its own process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(self, program: str, task: object) -> Any:
        """Calls `run(spark, task)` of a program and returns the result. Raises ProgramFailed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"program": program, "task": task}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(MARK):
                answer = json.loads(line.removeprefix(MARK))
                if "error" in answer:
                    raise ProgramFailed(answer["error"])
                return answer["result"]
        raise ProgramFailed("the process ended; see its output above")


@contextmanager
def spark_programs(
    python: Path, config: Mapping[str, str], *, errors: IO[bytes] | None = None
) -> Iterator[SparkPrograms]:
    """Yields a Spark session of the interpreter `python`, with settings `QUIET` and `config`.

    The process ends with the block. The process writes its standard error to `errors`, by default
    to the standard error of the test's process.
    """
    command = [str(python), "-m", "tests.spark.programs", json.dumps({**QUIET, **config})]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(python),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    ) as process:
        try:
            yield SparkPrograms(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # ends the process
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
