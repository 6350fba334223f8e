"""Runs an engine (Spark with one data source) in a separate process, and two engines in turn.

Both engines run on the PySpark version for which the connector was built. The caller names an
action, a function of `tools.bench.spark.worker`, whose result is JSON. The CPU time of an engine
includes its whole process tree: the driver, the JVM and the Python workers.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from tools.processes import below, command_of, cpu_s, peak_bytes
from tools.spark.environments import connector_jars, environment, python_with_connector

__all__ = ["ANSWER", "CONNECTOR", "OURS", "Engine", "EngineTimes", "in_turns"]

OURS: Final = "ours"
CONNECTOR: Final = "connector"

#: The prefix of the line with a worker's result; other lines are ignored.
ANSWER: Final = "answer: "


class Engine:
    """Runs actions in a separate process: Spark on `cores` cores with one data source.

    `name` is OURS or CONNECTOR.
    """

    def __init__(self, name: str, cores: int, task: dict[str, object]) -> None:
        self.name = name
        python = str(python_with_connector())
        settings = {**task, "engine": name, "cores": cores, "jars": connector_jars()}
        self._process = subprocess.Popen(
            [python, "-m", "tools.bench.spark.worker", json.dumps(settings)],
            env=environment(python),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, action: str, **arguments: object) -> Any:
        """Runs an action and returns its result. Raises RuntimeError if the process ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([action, arguments]) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                return json.loads(line.removeprefix(ANSWER))
        raise RuntimeError(f"no answer to {action!r}: the process ended; see its output above")

    def cpu_s(self) -> float:
        """Returns the CPU seconds of the process and its descendants so far."""
        return cpu_s(self._process.pid)

    def worker_peak_bytes(self) -> int:
        """Returns the largest peak memory of the running Python workers, in bytes.

        Raises RuntimeError if no worker is running.
        """
        workers = [pid for pid in below(self._process.pid) if "pyspark.daemon" in command_of(pid)]
        if not workers:
            raise RuntimeError(f"{self.name}: no Python worker is running")
        return max(map(peak_bytes, workers))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # ends the process
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class EngineTimes(NamedTuple):
    """The wall-clock and CPU seconds of two engines; each engine runs once in each turn."""

    ours: list[float]
    connector: list[float]
    ours_cpu: list[float]
    connector_cpu: list[float]

    @property
    def ratio(self) -> float:
        """Returns the median, over all turns, of the connector's time divided by kproto's."""
        return statistics.median(
            theirs / own for own, theirs in zip(self.ours, self.connector, strict=True)
        )


def in_turns(
    engines: tuple[Engine, Engine], action: str, *, repeat: int, **arguments: object
) -> EngineTimes:
    """Runs an action `repeat` times on both engines after a warm-up; alternates their order.

    The action must return its duration in seconds.
    """
    for engine in engines:
        engine.do(action, **arguments)
    seconds: dict[str, list[float]] = {OURS: [], CONNECTOR: []}
    cpu: dict[str, list[float]] = {OURS: [], CONNECTOR: []}
    for turn in range(repeat):
        for engine in engines[:: -1 if turn % 2 else 1]:
            before = engine.cpu_s()
            seconds[engine.name].append(engine.do(action, **arguments))
            cpu[engine.name].append(engine.cpu_s() - before)
    return EngineTimes(seconds[OURS], seconds[CONNECTOR], cpu[OURS], cpu[CONNECTOR])
