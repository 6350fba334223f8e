"""The Spark program of a case: copies a topic, and disturbs the first attempts of tasks.

    python -m tools.spark_repeated_tasks.program CONF RUNS

Both are JSON. A run has `case`, `writing` (batch, stream or exactlyOnce), `bootstrap`, `source`,
`target` and `folder`. Each task writes to the partition of the target with its number, its first
rows before the others. `folder`/facts.jsonl gets a line for each event in a task, and
for each failure of the query, which then starts again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tools.processes import command_of, parent_of

#: The rows per Arrow batch of the sink, and the bytes per row: the sink sends 8 MiB together.
BATCH_ROWS: Final = 200
ROW_BYTES: Final = 42_000

#: The rows per Arrow batch of `mapInArrow`. Spark passes `BATCH_ROWS` rows to the sink when it has
#: the next row, and Python buffers the end of a batch, so the disturbance is two batches later.
SMALL_BATCH_ROWS: Final = 25
DISTURBED_BATCH: Final = BATCH_ROWS // SMALL_BATCH_ROWS + 1
RUNNING_TASKS: Final = 4
WAIT_S: Final = 60.0
MAX_STARTS: Final = 3


def main() -> int:
    from kproto_pipeline import register
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("repeated-tasks")
    for name, value in json.loads(sys.argv[1]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    for run in json.loads(sys.argv[2]):
        for _ in range(MAX_STARTS):
            try:
                _copy(spark, run)
                break
            except Exception as error:  # noqa: BLE001 - Spark's errors have many classes
                Facts(Path(run["folder"])).add("query failed", error=str(error)[:2000])
    spark.stop()
    return 0


def _copy(spark: Any, run: dict[str, Any]) -> None:
    brokers = {"kafka.bootstrap.servers": run["bootstrap"]}
    is_batch = run["writing"] == "batch"
    reading = spark.read if is_batch else spark.readStream
    rows = (
        reading.format("kproto")
        .options(**brokers, subscribe=run["source"], startingOffsets="earliest")
        .option("minPartitions", RUNNING_TASKS)
        .load()
        .select("value")
    )
    if run["case"] == "stage":
        rows = rows.repartition(2 * RUNNING_TASKS, "value")
    rows = rows.mapInArrow(disturbed(run), "value binary, partition int")
    options = brokers | {"topic": run["target"], "kafka.compression.type": "gzip"}
    if is_batch:
        rows.write.format("kproto").mode("append").options(**options).save()
        return
    query = (
        rows.writeStream.format("kproto")
        .options(**options, exactlyOnce=str(run["writing"] == "exactlyOnce").lower())
        .option("checkpointLocation", f"{run['folder']}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


class Facts:
    """The events of a run, in a file that all processes append to."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "facts.jsonl"

    def add(self, what: str, **further: object) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"what": what, "at": time.time(), **further}) + "\n")

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def wait_for(self, what: str, **further: object) -> None:
        """Waits until there is an event with these values."""
        wanted = {"what": what, **further}
        _wait(lambda: any(wanted.items() <= each.items() for each in self.all()))


def disturbed(run: dict[str, Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns the function for `mapInArrow`, which makes rows larger and disturbs attempts."""

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        number, attempt = context.partitionId(), context.attemptNumber()
        its = {"task": number, "attempt": attempt, "stage": context.stageId()}
        facts = Facts(Path(run["folder"]))
        is_first = not any(
            each["what"] == "begins" and each["task"] == number for each in facts.all()
        )
        facts.add("begins", **its)
        if run["case"] == "late" and attempt == 1 and number == 0:
            facts.wait_for("ends", task=0, attempt=0)
        for count, batch in enumerate(_larger(batches, number)):
            yield batch
            if count == DISTURBED_BATCH and (is_first or number == 0):
                stored = _stored(run, [number])
                facts.add("stored", stored=stored, **its)
                _disturb(run, facts, number, attempt, is_first)
        facts.add("ends", **its)

    return rows


def _disturb(run: dict[str, Any], facts: Facts, number: int, attempt: int, is_first: bool) -> None:
    match run["case"], number, attempt:
        case "executor" | "stage", _, _ if is_first:
            if number == 0:
                _stored(run, range(RUNNING_TASKS))
                for each in range(RUNNING_TASKS):
                    facts.wait_for("stored", task=each)
                facts.add("kills")
                _kill_executor(own=run["case"] == "executor")
            elif number < RUNNING_TASKS:
                facts.wait_for("kills")
                time.sleep(1)
        case "error", 0, 0 if is_first:
            raise RuntimeError("attempt 0 fails")
        case "slow", 0, 0 if is_first:
            time.sleep(WAIT_S)  # Spark kills this attempt when the speculative one has ended
        case "both", 0, 0 if is_first:
            facts.wait_for("stored", task=0, attempt=1)
        case "both", 0, 1:
            time.sleep(8)
        case "late", 0, 0 if is_first:
            facts.wait_for("begins", task=0, attempt=1)
        case "late", 1, 0 if is_first:
            facts.wait_for("ends", task=0, attempt=0)
            time.sleep(8)  # so the stage is unfinished when the second attempt goes on


def _larger(batches: Iterator[Any], number: int) -> Iterator[Any]:
    """Yields batches of `SMALL_BATCH_ROWS` rows for the partition with the number of the task."""
    import pyarrow as pa

    values = [value for batch in batches for value in batch.column("value").to_pylist()]
    for first in range(0, len(values), SMALL_BATCH_ROWS):
        end = first + SMALL_BATCH_ROWS
        some = [value + b":" + bytes(ROW_BYTES) for value in values[first:end]]
        partitions = pa.array([number] * len(some), pa.int32())
        yield pa.RecordBatch.from_arrays([pa.array(some), partitions], ["value", "partition"])


def _stored(run: dict[str, Any], partitions: Any) -> list[int]:
    """Waits until each partition of the target has a batch of rows; returns the log ends."""
    from kproto.sync import Client

    ends: list[int] = []

    def are_there() -> bool:
        ends[:] = client.list_offsets(dict.fromkeys(wanted, "latest")).values()
        return min(ends) >= BATCH_ROWS

    wanted = [(run["target"], each) for each in partitions]
    with Client(run["bootstrap"]) as client:
        _wait(are_there)
    return ends


def _wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError("the awaited event did not occur")
        time.sleep(0.1)


def _kill_executor(*, own: bool) -> None:
    """Kills the executor of this task, or the other executor of its application."""
    mine = parent_of(os.getppid())  # the parent of a Python worker is its daemon
    words = command_of(mine).split()
    application = words[words.index("--app-id") + 1]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (int(entry.name) == mine) == own:
            found = command_of(int(entry.name)).split()
            if found[:1] == words[:1] and application in found:
                os.kill(int(entry.name), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
