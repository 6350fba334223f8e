"""Kills the job repeatedly at random times while events arrive; then checks its output.

    python -m tools.job_kills [--rounds 10] [--seed 1] [--format parquet]

Each round first publishes more events, some of them twice, and some records that are not events.
Then the round starts `kproto-pipeline run --mode incremental` in a new process group, and kills the
whole group with SIGKILL. The seed chooses the time: while Java starts, while the job reads, writes,
or publishes. The last run is not killed. Then pyarrow reads the output: each event and each dead
letter must be in it exactly once. Spark reads an output in the format `delta` or `iceberg`, which
only grows, so that one reading at the end suffices.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kproto.client import Client, NewTopic, ProducerRecord

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMATS", "JobKillResult", "kill_the_job"]

ROOT: Final = Path(__file__).resolve().parents[1]

#: By format: the release of PySpark; None is the release of this environment.
FORMATS: Final = {"parquet": None, "delta": "4.2.0", "iceberg": "4.1.4"}

#: The numbers of events, of duplicates and of records that are no events, published each round.
EVENTS: Final = 5_000
TWICE: Final = 50
BROKEN: Final = 20
PARTITIONS: Final = 3

#: The stages at which a kill may happen; "any" is after one of the next increments.
MOMENTS: Final = ("begins", "reads", "writes", "any")
TABLE_MOMENTS: Final = ("begins", "plans", "writes", "commits", "commits", "any")


@dataclass
class JobKillResult:
    """The result: counts of kills and of wrong rows, and the stages at which kills happened."""

    rounds: int = 0
    killed: int = 0
    published: int = 0
    lost: int = 0
    doubled: int = 0
    dead_letters_lost: int = 0
    dead_letters_doubled: int = 0
    moments: Counter[str] = field(default_factory=Counter)

    @property
    def exact(self) -> bool:
        """Returns True if each event and each dead letter is in the output exactly once."""
        wrong = (self.lost, self.doubled, self.dead_letters_lost, self.dead_letters_doubled)
        return not any(wrong)


@dataclass(frozen=True)
class Lake:
    """The output of the job: its folder and its format."""

    path: Path
    format: str

    @property
    def state(self) -> Path:
        """Returns the folder of the increments and their manifests."""
        return self.path if self.format == "parquet" else self.path / "_kproto_state"

    def increments(self) -> int:
        """Returns the number of published increments."""
        return len(list(self.state.glob("increment=*")))

    def commits(self) -> int:
        """Returns the number of commits of a table."""
        pattern = "_delta_log/*.json" if self.format == "delta" else "metadata/*.metadata.json"
        return len(list(self.path.glob(pattern)))

    def data_files(self) -> int:
        """Returns the number of data files of a table, including those of killed increments."""
        return len(list(self.path.rglob("*.parquet")))


def kill_the_job(
    bootstrap: str,
    folder: Path,
    *,
    rounds: int,
    seed: int,
    format_: str = "parquet",
    progress: Callable[[int, str], object] = lambda done, moment: None,
) -> JobKillResult:
    """Runs the job `rounds` times, then once to its end, and returns the counts.

    Kills each run except the last, unless the run ends first. Reads the whole output after each run
    and adds its duplicate events to `doubled`, so that a duplicate counts again in later readings.

    Raises:
        RuntimeError: the last run, which is not killed, fails.
    """
    chance = random.Random(seed)
    topic = f"job-kills-{format_}-{os.getpid()}-{seed}"
    lake = Lake(folder / "lake", format_)
    result = JobKillResult()
    asyncio.run(_create(bootstrap, topic))
    for number in range(rounds):
        asyncio.run(_publish(bootstrap, topic, number))
        with _begun(bootstrap, topic, lake) as running:
            moment = _wait(chance, lake, running)
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                result.killed += 1
                result.moments[moment] += 1
            running.communicate()
        result.rounds += 1
        progress(result.rounds, moment)
        if format_ == "parquet":
            seen, _ = _read(lake)
            result.doubled += sum(count - 1 for count in seen.values())
    with _begun(bootstrap, topic, lake) as running:
        out, _ = running.communicate()
        if running.returncode:
            raise RuntimeError(f"the last run ended with {running.returncode}:\n{out}")
    events, letters = _read(lake)
    wanted = {f"{n}" for n in range(rounds * EVENTS)}
    dead = {b"broken %d" % n for n in range(rounds * BROKEN)}
    result.published = len(wanted)
    result.lost = len(wanted - set(events))
    result.doubled += sum(count - 1 for count in events.values())
    result.dead_letters_lost = len(dead - set(letters))
    result.dead_letters_doubled = sum(count - 1 for count in letters.values())
    return result


def _begun(bootstrap: str, topic: str, lake: Lake) -> subprocess.Popen[str]:
    from tools.spark.environments import environment

    python = _python(lake.format)
    command = [
        *(python, "-m", "kproto_pipeline.job", "run", "--mode", "incremental"),
        *("--output", str(lake.path), "--format", lake.format),
        *("--source", f"kafka.bootstrap.servers={bootstrap}", "--source", f"subscribe={topic}"),
        *("--spark", "spark.master=local[2]", "--set", "limits.max_records=2000"),
        *("--spark", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    ]
    package = _package(lake.format)
    if package is not None:
        command += ["--spark", f"spark.jars.packages={package}"]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(python),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that the kill includes Java and its workers
    )


def _python(format_: str) -> str:
    from tools.spark.environments import python_with_pyspark

    version = FORMATS[format_]
    return sys.executable if version is None else str(python_with_pyspark(version))


def _package(format_: str) -> str | None:
    from kproto_pipeline.job.lake_packages import lake_package

    version = FORMATS[format_]
    return None if version is None else lake_package(format_, version)


def _wait(chance: random.Random, lake: Lake, running: subprocess.Popen[str]) -> str:
    """Chooses a random stage, and returns its name when the run has reached the stage or has ended.

    Returns after two minutes at the latest.
    """
    moment = chance.choice(MOMENTS if lake.format == "parquet" else TABLE_MOMENTS)
    deadline = time.monotonic() + 120
    last, commits, files = lake.increments(), lake.commits(), lake.data_files()
    wanted = last + chance.randint(0, 2)

    def has_come() -> bool:
        match moment:
            case "begins":
                return True
            case "reads":
                return any(lake.path.glob("_kproto/writing-*"))
            case "plans":
                return any(lake.state.glob("_kproto_plans/increment=*"))
            case "writes" if lake.format != "parquet":
                return lake.data_files() > files
            case "writes":
                return any(lake.path.glob("_kproto/writing-*/_temporary/0/_temporary/*"))
            case "commits":
                return lake.commits() > commits + wanted - last
            case _:
                return lake.increments() > wanted

    while running.poll() is None and not has_come() and time.monotonic() < deadline:
        time.sleep(0.002)
    most = {"begins": 3.0, "commits": 0.1}.get(moment, 0.4)
    time.sleep(chance.random() * most)
    return moment


def _read(lake: Lake) -> tuple[Counter[str], Counter[bytes]]:
    """Returns counts of the ids of valid events, and of the values of dead letters."""
    import pyarrow.dataset as ds

    events: Counter[str] = Counter()
    letters: Counter[bytes] = Counter()
    if not lake.increments():
        return events, letters
    path = lake.path if lake.format == "parquet" else _copied_rows(lake)
    rows = ds.dataset(str(path), format="parquet", partitioning="hive").to_table(
        columns=["id", "value", "status"]
    )
    for row in rows.to_pylist():
        if row["status"] == "valid":
            events[row["id"]] += 1
        else:
            letters[row["value"]] += 1
    return events, letters


#: Copies the rows of a table to Parquet; its arguments are the format, the table and the target.
_COPY: Final = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name, value in json.loads(sys.argv[4]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.read.format(sys.argv[1]).load(sys.argv[2])
rows.select("id", "value", "status").write.parquet(sys.argv[3])
"""


def _copied_rows(lake: Lake) -> Path:
    from kproto_pipeline.job.lake_packages import lake_properties

    from tools.spark.environments import environment

    python, target = _python(lake.format), lake.path.with_name("rows")
    conf = lake_properties(lake.format)
    conf["spark.jars.packages"] = str(_package(lake.format))
    arguments = [lake.format, str(lake.path), str(target), json.dumps(conf)]
    subprocess.run([python, "-c", _COPY, *arguments], env=environment(python), check=True)
    return target


async def _create(bootstrap: str, topic: str) -> None:
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=PARTITIONS))


async def _publish(bootstrap: str, topic: str, number: int) -> None:
    """Publishes the events of a round, and some records that are not events.

    Sends some events of this round and of the previous round again.
    """
    ids = [*range(number * EVENTS, (number + 1) * EVENTS)]
    ids += ids[:: EVENTS // TWICE]
    ids += [n for n in ids[:TWICE] if number for n in (n - EVENTS,)]
    records = [
        ProducerRecord(
            b'{"n":%d}' % n,
            None,
            [
                ("ce_specversion", b"1.0"),
                ("ce_id", b"%d" % n),
                ("ce_source", b"/kills"),
                ("ce_type", b"org.example.killed"),
                ("content-type", b"application/json"),
            ],
            partition=n % PARTITIONS,
        )
        for n in ids
    ]
    records += [
        ProducerRecord(b"broken %d" % n, None, [("other", b"")], partition=n % PARTITIONS)
        for n in range(number * BROKEN, (number + 1) * BROKEN)
    ]
    async with Client(bootstrap) as client, client.producer() as producer:
        await producer.send_many(topic, records)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.job_kills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=tuple(FORMATS), default="parquet")
    options = parser.parse_args()
    from kproto_pipeline.demo.publishing import embedded_broker

    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP") or closing.enter_context(embedded_broker())
        folder = Path(tempfile.mkdtemp(prefix="kproto-job-kills-"))
        closing.callback(shutil.rmtree, folder, ignore_errors=True)
        result = kill_the_job(
            bootstrap,
            folder,
            rounds=options.rounds,
            seed=options.seed,
            format_=options.format,
            progress=lambda done, moment: print(f"round {done}: {moment}", flush=True),
        )
    print(options.format, result)
    return 0 if result.exact else 1


if __name__ == "__main__":
    sys.exit(main())
