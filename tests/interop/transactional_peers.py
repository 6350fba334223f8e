"""Runs the transactional producers of other clients, each command in a process of its own.

Each client (in the code, `peer`) has a program with these commands:

- `scenes TOPIC SOURCE`: runs several transactions; see `SCENES`. The transactions write to the
  partitions 0 to 3 of TOPIC, and commit offsets of SOURCE for the group TOPIC. Prints the committed
  offset after each transaction that commits offsets. Also prints two errors: "left member", for
  committing offsets of a member that has left, and "zombie", of a producer that another producer
  has fenced.
- `transform SOURCE TARGET COUNT`: reads COUNT records of SOURCE as a group member. Writes each
  record to TARGET with "!" appended to its value, in transactions that also commit the offsets of
  the group. Aborts every third transaction, and reads the records of this transaction again. Prints
  the number of commits and aborts.
- `read TOPIC...`: prints partition, offset and value of the records of each topic with
  read_committed, up to the last stable offset of each partition.
- `init`: prints the error of the producer's initialization.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import kproto
from tests.support.availability import not_available
from tools.reference.classes import ReferenceUnavailableError, class_path
from tools.setup.java import java_home

__all__ = ["PEERS", "SCENES", "SCENE_OFFSETS", "SCENE_PARTITIONS", "read", "read_by_kproto", "run"]

FOLDER: Final = Path(__file__).parent
PEERS: Final = ("confluent_kafka", "aiokafka", "kafka_python", "java")
TIMEOUT_S: Final = 240

SCENE_PARTITIONS: Final = 4
#: Offset and value of the committed records in each partition after `scenes`. A marker follows each
#: record: of a commit, or of the abort of the records at the offsets 2, 6 and 8.
SCENES: Final = ((0, "committed"), (4, "with offsets"), (10, "second"))
#: The committed offset after the transactions with offsets: 5 is committed, 9 aborted, 7 committed.
SCENE_OFFSETS: Final = [5, 5, 7]


def run(python: Path, peer: str, bootstrap: str, *arguments: str, protocol: str = "classic") -> Any:
    """Runs a command of the client `peer`; returns the JSON that the command prints.

    `protocol` is the group protocol of Java's consumer.
    """
    program = [str(python), str(FOLDER / "peer_scripts" / f"transactional_{peer}.py")]
    if peer == "java":
        program = _java(protocol)
    done = subprocess.run(
        [*program, bootstrap, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def read(python: Path, peer: str, bootstrap: str, *topics: str) -> dict[str, list[list[object]]]:
    """Returns the sorted [partition, offset, value] of the records that `peer` reads, by topic."""
    found = run(python, peer, bootstrap, "read", *topics)
    return {topic: sorted(records) for topic, records in found.items()}


def _java(protocol: str) -> list[str]:
    try:
        path = class_path("4.4.0", FOLDER / "java")
    except ReferenceUnavailableError as error:
        not_available("Java's client", error)
    return [
        str(java_home() / "bin" / "java"),
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        f"-Dprotocol={protocol}",
        *("-cp", path, "Transactional"),
    ]


async def read_by_kproto(bootstrap: str, *topics: str) -> dict[str, list[list[object]]]:
    """Returns the sorted [partition, offset, value] of the records that kproto reads, by topic."""
    result: dict[str, list[list[object]]] = {}
    async with kproto.Client(bootstrap) as client:
        for topic in topics:
            async with client.consumer(topic, read_committed=True, stop_at_end=True) as consumer:
                records = [record async for record in consumer]
            result[topic] = sorted(
                [record.partition, record.offset, (record.value or b"").decode()]
                for record in records
            )
    return result
