"""Runs a case: fills the source, runs the Spark program, and counts the records of the target."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from kproto import Client, NewTopic, ProducerRecord
from tools.spark.cluster import SparkCluster
from tools.spark.environments import environment
from tools.spark_kill_test.counting import counted

from .attempts import Attempts, attempts_of
from .program import BATCH_ROWS, RUNNING_TASKS

__all__ = ["CASES", "WRITINGS", "Case", "Result", "Writing", "run_case"]

Case = Literal["error", "slow", "both", "late", "executor", "stage"]
Writing = Literal["batch", "stream", "exactlyOnce"]

#: By case: the text for the table.
CASES: Final[dict[Case, str]] = {
    "error": "an attempt fails",
    "executor": "SIGKILL of an executor",
    "stage": "SIGKILL of an executor with shuffle files: a second attempt of the stage",
    "slow": "speculation; the first attempt hangs, and Spark kills it",
    "both": "speculation; the first attempt goes on while the second writes",
    "late": "speculation; the first attempt ends before the second has written",
}
WRITINGS: Final[tuple[Writing, ...]] = ("batch", "stream", "exactlyOnce")

_SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "5s",
}
_ROWS_OF_A_TASK: Final = 400
_TIMEOUT_S: Final = 400


@dataclass(frozen=True)
class Result:
    """The result of a case; the counts of records are those of a reader with `read_committed`.

    `stored_first` is the number of records of repeated tasks that the log of the target had before
    the second attempts of these tasks began. `doubled` counts extra copies by task. `uncommitted`
    are the records that only a reader with `read_uncommitted` gets.
    """

    case: Case
    writing: Writing
    sent: int
    stored_first: int
    attempts: Attempts
    failures: list[str]
    lost: int
    doubled: Counter[int]
    disordered: int
    uncommitted: int

    @property
    def is_disturbed(self) -> bool:
        """Returns True if Spark repeated a task whose rows were stored."""
        return self.stored_first > 0 and bool(self.attempts.repeated)

    @property
    def is_right(self) -> bool:
        """Returns True if the sink has kept its promise."""
        if self.writing == "exactlyOnce":
            return not (self.lost or self.doubled or self.disordered)
        restarted = bool(self.failures)
        return not self.lost and (restarted or self.doubled.keys() <= self.attempts.repeated)


def run_case(
    case: Case, writings: Sequence[Writing], cluster: SparkCluster, bootstrap: str, folder: Path
) -> list[Result]:
    """Runs a case on running clusters; `folder` is new, and gets logs and checkpoints."""
    tasks = RUNNING_TASKS * (2 if case == "stage" else 1)
    runs = []
    for writing in writings:
        topics = (f"source-{case}-{writing}", f"target-{case}-{writing}")
        asyncio.run(_fill(bootstrap, *topics, tasks))
        (its := folder / writing).mkdir(parents=True)
        (its / "facts.jsonl").touch()
        run = {"case": case, "writing": writing, "bootstrap": bootstrap, "folder": str(its)}
        runs.append({**run, "source": topics[0], "target": topics[1]})
    python_path = environment(cluster.python)["PYTHONPATH"]
    conf = {
        "spark.master": cluster.master,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "700m",
        "spark.executorEnv.PYTHONPATH": python_path,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
        **(_SPECULATION if case in ("slow", "both", "late") else {}),
    }
    program = [str(cluster.python), "-m", "tools.spark_repeated_tasks.program"]
    with (folder / "driver.log").open("w") as log:
        subprocess.run(
            [*program, json.dumps(conf), json.dumps(runs)],
            env=cluster.environment({"PYTHONPATH": python_path}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
            timeout=_TIMEOUT_S,
        )
    (event_log,) = folder.glob("app-*")
    events = _lines(event_log)
    return [
        _result(case, writing, run, tasks, events)
        for writing, run in zip(writings, runs, strict=True)
    ]


def _result(
    case: Case, writing: Writing, run: dict[str, str], tasks: int, events: list[dict[str, Any]]
) -> Result:
    sent, bootstrap, target = tasks * _ROWS_OF_A_TASK, run["bootstrap"], run["target"]
    facts = _lines(Path(run["folder"]) / "facts.jsonl")
    attempts = attempts_of(events, {each["stage"] for each in facts if "stage" in each})
    found = asyncio.run(_read(bootstrap, target, read_committed=True))
    everything = asyncio.run(_read(bootstrap, target, read_committed=False))
    count = counted(range(sent), found.values(), lane_count=RUNNING_TASKS)
    numbers = Counter(number for its in found.values() for number in its)
    by_task = {number: task for task, its in found.items() for number in its}
    return Result(
        case=case,
        writing=writing,
        sent=sent,
        stored_first=_stored_first(facts, attempts.repeated),
        attempts=attempts,
        failures=[each["error"] for each in facts if each["what"] == "query failed"],
        lost=count.lost,
        doubled=_extra_copies(numbers, by_task),
        disordered=0 if case == "stage" else count.disordered,
        uncommitted=sum(map(len, everything.values())) - sum(map(len, found.values())),
    )


def _stored_first(facts: list[dict[str, Any]], repeated: set[int]) -> int:
    """Returns how many records of repeated tasks were stored before their second attempts began."""
    attempts: Counter[int] = Counter()
    stored = 0
    for each in facts:
        if each["what"] == "begins":
            attempts[each["task"]] += 1
        elif each["what"] == "stored" and each["task"] in repeated and attempts[each["task"]] == 1:
            stored += each["stored"][0]
    return stored


def _extra_copies(numbers: Counter[int], by_task: dict[int, int]) -> Counter[int]:
    copies: Counter[int] = Counter()
    for number, times in numbers.items():
        if times > 1:
            copies[by_task[number]] += times - 1
    return copies


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def _fill(bootstrap: str, source: str, target: str, tasks: int) -> None:
    sent = tasks * _ROWS_OF_A_TASK
    async with Client(bootstrap) as client, client.producer() as producer:
        await client.create_topics(NewTopic(source, RUNNING_TASKS), NewTopic(target, tasks))
        records = [ProducerRecord(b"%d" % n, partition=n % RUNNING_TASKS) for n in range(sent)]
        await producer.send_many(source, records)


async def _read(bootstrap: str, topic: str, *, read_committed: bool) -> dict[int, list[int]]:
    """Returns the numbers of the records by partition."""
    found: dict[int, list[int]] = {}
    async with Client(bootstrap) as client:
        reader = client.consumer(
            topic, start="earliest", stop_at_end=True, read_committed=read_committed
        )
        async for record in reader:
            assert record.value is not None
            number = int(record.value.partition(b":")[0])
            found.setdefault(record.partition, []).append(number)
    return found
