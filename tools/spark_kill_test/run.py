"""Runs the test once: starts writer and driver, kills processes, and compares the records."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from kproto import Client, NewTopic, ProducerRecord
from kproto.messages import FindCoordinatorRequest
from tools.kafka import KafkaCluster
from tools.processes import below, command_of
from tools.spark.environments import connector_jars, environment, python_with_connector

from .batches import KEPT_BATCHES, Checkpoint, Duplicates, count_duplicates
from .counting import Count, counted
from .driver import PREFIX

__all__ = ["QUICK_SESSIONS", "Plan", "Result", "spark_kill_test"]

#: Broker settings: a dead broker is detected after three seconds instead of nine.
QUICK_SESSIONS: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}

PARTITIONS: Final = 6
#: The records per call of the writer, and the pause after it in seconds.
TOGETHER: Final = 200
PAUSE_S: Final = 0.25
#: The range of seconds between two kills: some kills happen while a killed process starts again.
BETWEEN_S: Final = (1.0, 7.0)
DRAIN_S: Final = 300.0

#: By victim: a part of its command line. The part for workers excludes the daemons that plan the
#: driver's queries.
_WORDS: Final = {
    "executor": "CoarseGrainedExecutorBackend",
    "worker": "pyspark.daemon pyspark.worker",
}

VICTIMS: Final = ("driver", "executor", "worker", "broker")

#: With `exactly_once`, also the leader of a partition of the target topic, and the coordinator of a
#: task's transactional id.
TRANSACTION_VICTIMS: Final = (*VICTIMS, "leader", "coordinator")


@dataclass(frozen=True)
class Plan:
    """The plan of a run: `rounds` kills. The same seed chooses the same victims and pauses.

    With `exactly_once` the stream to the topic has the option exactlyOnce.
    """

    engine: str = "kproto"
    rounds: int = 30
    seed: int = 1
    with_connector: bool = False  # use the PySpark release of the JVM connector
    exactly_once: bool = False

    @property
    def victims(self) -> tuple[str, ...]:
        """The kinds of processes that are killed."""
        return TRANSACTION_VICTIMS if self.exactly_once else VICTIMS


@dataclass
class Result:
    """The result of `spark_kill_test`; `topic` counts committed records with `exactly_once`.

    `uncommitted` is the number of records of aborted transactions in the topic.
    """

    plan: Plan
    sent: int
    parquet: Count
    topic: Count
    duplicates: Duplicates
    killed: Counter[str]
    restarts: int
    took_s: float
    uncommitted: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Returns True if no record is lost, foreign, out of order or wrongly duplicated.

        The Parquet files may have no duplicates. The target topic may have duplicates only of
        batches that were unfinished at a kill, and none with `exactly_once`.
        """
        return (
            self.parquet.is_complete
            and not self.parquet.doubled
            and self.topic.is_complete
            and not self.duplicates.of_others
            and not (self.plan.exactly_once and self.topic.doubled)
        )


class Driver:
    """The driver and its child processes, which are killed together."""

    def __init__(self, plan: Plan, bootstrap: str, folder: Path) -> None:
        self._plan = plan
        self._task = {
            "engine": plan.engine,
            "bootstrap": bootstrap,
            "source": "source",
            "target": "target",
            "folder": str(folder),
            "exactly_once": plan.exactly_once,
        }
        self._log = folder / "driver.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.restarts = -1

    def start(self) -> None:
        conf = {
            "spark.master": "local-cluster[2,1,900]",
            "spark.executor.memory": "700m",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.minBatchesToRetain": KEPT_BATCHES,
            "spark.task.maxFailures": "20",
            "spark.deploy.maxExecutorRetries": "-1",
            "spark.python.unix.domain.socket.enabled": "false",
        }
        python: Path | str = sys.executable
        if self._plan.with_connector:
            python = python_with_connector()
            conf["spark.jars"] = connector_jars()
        task = {**self._task, "conf": conf}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "tools.spark_kill_test.driver", json.dumps(task)],
                env=environment(python),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.restarts += 1

    def ended(self) -> int | None:
        """Returns the exit code of the driver; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def kill(self) -> None:
        """Kills the driver with all its descendants; executors have their own process groups."""
        assert self._process is not None
        for pid in [*self.processes("CoarseGrainedExecutorBackend"), *self.processes("pyspark")]:
            _kill(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def processes(self, what: str) -> list[int]:
        """Returns the descendants of the driver whose command line contains `what`."""
        assert self._process is not None
        return [pid for pid in below(self._process.pid) if what in command_of(pid)]


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class SourceTopicProducer:
    """Sends numbered records until `ending` is set; the numbers ascend in each partition."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.sent = 0
        self.ending = asyncio.Event()

    async def run(self) -> None:
        async with Client(self._bootstrap) as client, client.producer() as producer:
            while not self.ending.is_set():
                numbers = range(self.sent, self.sent + TOGETHER)
                await producer.send_many("source", [_record(number) for number in numbers])
                self.sent += TOGETHER
                await asyncio.sleep(PAUSE_S)


def _record(number: int) -> ProducerRecord:
    lane = number % PARTITIONS
    return ProducerRecord(b"%d" % number, b"%d" % lane, partition=lane)


async def spark_kill_test(
    plan: Plan, cluster: KafkaCluster, folder: Path, progress: Callable[[int, str], None]
) -> Result:
    """Runs the test on a running cluster, and returns the result."""
    began = time.monotonic()
    bootstrap = cluster.bootstrap
    async with Client(bootstrap) as client:
        for topic in ("source", "target"):
            await client.create_topics(NewTopic(topic, PARTITIONS, 3, {"min.insync.replicas": "2"}))
    dice = random.Random(plan.seed)
    writer = SourceTopicProducer(bootstrap)
    driver = Driver(plan, bootstrap, folder)
    queries = [Checkpoint(folder / name) for name in ("parquet-checkpoint", "topic-checkpoint")]
    driver.start()
    writing = asyncio.create_task(writer.run())
    killed: Counter[str] = Counter()
    notes: list[str] = []
    try:
        for number in range(plan.rounds):
            victim = dice.choice(plan.victims)
            await _next_batches(driver, queries, notes)
            await asyncio.sleep(dice.uniform(*BETWEEN_S))
            before = [each.finished() for each in queries]
            killed[await _strike(victim, driver, cluster, dice, folder)] += 1
            for query, finished in zip(queries, before, strict=True):
                query.disturbed(finished)
            progress(number + 1, victim)
        await asyncio.to_thread(cluster.wait_for_all)
        writer.ending.set()
        await writing
        (folder / "end").touch()
        await _drained(driver, notes)
    finally:
        writing.cancel()
        driver.kill()
    parquet = await asyncio.to_thread(_in_parquet, folder, writer.sent)
    lanes, places, uncommitted = await _in_topic(bootstrap, read_committed=plan.exactly_once)
    written = counted(range(writer.sent), lanes, lane_count=PARTITIONS)
    surplus = Counter(number for lane in lanes for number in lane) - Counter(places.keys())
    duplicates = count_duplicates(
        ((*places[number], extra) for number, extra in surplus.items() if number in places),
        queries[1].ends(),
        queries[1].unfinished,
    )
    took = time.monotonic() - began
    return Result(
        plan,
        writer.sent,
        parquet,
        written,
        duplicates,
        killed,
        driver.restarts,
        took,
        uncommitted,
        notes,
    )


async def _next_batches(driver: Driver, queries: list[Checkpoint], notes: list[str]) -> None:
    """Waits until both queries have finished another batch; restarts a driver that ended.

    Raises TimeoutError after `DRAIN_S`.
    """
    before = [each.finished() for each in queries]
    deadline = time.monotonic() + DRAIN_S
    while not all(now.finished() > then for now, then in zip(queries, before, strict=True)):
        if driver.ended() is not None:
            notes.append(f"the driver ended by itself, with {driver.ended()}")
            for query in queries:
                query.disturbed(query.finished())
            driver.start()
        if time.monotonic() > deadline:
            raise TimeoutError(f"no batch was finished for {DRAIN_S:.0f} s")
        await asyncio.sleep(0.1)


async def _strike(
    victim: str, driver: Driver, cluster: KafkaCluster, dice: random.Random, folder: Path
) -> str:
    """Kills a process of the kind `victim`; returns the kind of the killed process.

    Kinds are those of `TRANSACTION_VICTIMS`. If no process of the kind runs, kills the driver.
    Restarts the killed process if Spark does not restart it.
    """
    if victim in ("broker", "leader", "coordinator"):
        number = dice.randrange(1, 4)
        if victim != "broker":
            number = await _node_of(victim, cluster.bootstrap, dice, folder)
        node = cluster.node(number)
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(dice.uniform(0.5, 4.0))
        await asyncio.to_thread(node.start)
        await asyncio.to_thread(cluster.wait_for_all)
        return victim
    if victim != "driver":
        word = _WORDS[victim]
        found = driver.processes(word)
        if found:
            _kill(dice.choice(found))
            return victim
    driver.kill()
    driver.start()
    return "driver"


async def _node_of(victim: str, bootstrap: str, dice: random.Random, folder: Path) -> int:
    """Returns the node id of a leader of the target topic, or of a transaction coordinator."""
    lane = dice.randrange(PARTITIONS)
    async with Client(bootstrap) as client:
        if victim == "leader":
            return (await client.topic("target")).partitions[lane].leader
        metadata = json.loads((folder / "topic-checkpoint" / "metadata").read_text())
        transactional_id = f"{PREFIX}-{metadata['id']}-{lane}"
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        return (await client.request(request)).coordinators[0].node_id


async def _drained(driver: Driver, notes: list[str]) -> None:
    deadline = time.monotonic() + DRAIN_S
    while (code := driver.ended()) != 0:
        if code is not None:
            notes.append(f"the driver ended by itself, with {code}")
            driver.start()
        if time.monotonic() > deadline:
            raise TimeoutError(f"the queries were not done within {DRAIN_S:.0f} s")
        await asyncio.sleep(0.2)


def _in_parquet(folder: Path, sent: int) -> Count:
    """Counts the records in the files that Spark's file sink has committed."""
    import pyarrow.parquet as pq

    lanes: dict[int, list[tuple[int, int]]] = {}
    for path in _files_of(folder / "rows"):
        table = pq.read_table(path)
        for value, partition, offset in zip(
            *(table[name].to_pylist() for name in ("value", "source_partition", "source_offset")),
            strict=True,
        ):
            lanes.setdefault(partition, []).append((offset, int(value)))
    ordered = [[value for _, value in sorted(lane)] for lane in lanes.values()]
    return counted(range(sent), ordered, lane_count=PARTITIONS)


def _files_of(rows: Path) -> list[Path]:
    """Returns the data files that the log of Spark's file sink lists as committed."""
    log = rows / "_spark_metadata"
    names = sorted(
        (each for each in log.iterdir() if not each.name.startswith(".")),
        key=lambda each: (int(each.name.partition(".")[0]), each.suffix),
    )
    compacted = [index for index, each in enumerate(names) if each.suffix == ".compact"]
    found: dict[str, Any] = {}
    for each in names[compacted[-1] if compacted else 0 :]:
        for line in each.read_text().splitlines()[1:]:
            entry = json.loads(line)
            found[entry["path"]] = entry["action"]
    return [Path(path.removeprefix("file://")) for path, action in found.items() if action == "add"]


async def _in_topic(
    bootstrap: str, *, read_committed: bool
) -> tuple[list[list[int]], dict[int, tuple[int, int]], int]:
    """Returns the numbers in each partition of the target topic, in the order of the offsets.

    Also returns the partition and the offset of each number in the source topic, and how many
    records of the target topic `read_committed` leaves out.
    """
    lanes: dict[int, list[int]] = {}
    places = {}
    async with Client(bootstrap) as client:
        if read_committed:
            await _until_markers_written(client)
        reader = client.consumer("target", stop_at_end=True, read_committed=read_committed)
        async for record in reader:
            lanes.setdefault(record.partition, []).append(int(record.value or b"-1"))
        uncommitted = -sum(map(len, lanes.values()))
        async for _ in client.consumer("target", stop_at_end=True):
            uncommitted += 1
        async for record in client.consumer("source", stop_at_end=True):
            places[int(record.value or b"-1")] = (record.partition, record.offset)
    return list(lanes.values()), places, uncommitted


async def _until_markers_written(client: Client) -> None:
    """Waits until no transaction is open; raises TimeoutError after `DRAIN_S`."""
    ends: dict[tuple[str, int], Literal["latest"]] = {
        ("target", lane): "latest" for lane in range(PARTITIONS)
    }
    async with asyncio.timeout(DRAIN_S):
        while True:
            stable = await client.list_offsets(ends, read_committed=True)
            if stable == await client.list_offsets(ends):
                return
            await asyncio.sleep(0.1)
