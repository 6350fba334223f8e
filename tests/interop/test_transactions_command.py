"""Tests Java's TransactionsCommand (kafka-transactions.sh, KIP-664) on the embedded broker."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Final

import pytest

from kproto.records import RecordBatch, encode_batch
from tests.kafka.transaction_sides import TransactionSide
from tests.support.availability import not_available
from tests.support.embedded import ThreadedBroker, threaded_broker
from tools.setup.java import JavaNotFoundError, java_home
from tools.setup.maven import MavenError
from tools.storm.java import resolve_tools

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.exhaustive]

TIMEOUT_S: Final = 120
TOPIC: Final = "t"
HANGING_PRODUCER: Final = 12_345
#: Longer than the largest transaction timeout, after which a transaction may be hanging.
AN_HOUR_MS: Final = 3_600_000


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with threaded_broker() as running:
        yield running


@pytest.fixture
def side(broker: ThreadedBroker) -> Iterator[TransactionSide]:
    """Yields a side with two producers: `done` has committed a transaction, `ongoing` has not."""
    side = TransactionSide(broker.bootstrap, TOPIC)
    side.prepare(("done", "ongoing"), ())
    for name in ("done", "ongoing"):
        side.init(name, name, 4)
        side.add_partitions(name, name, [0], 3)
        assert side.produce(name, name, 0, 0, 9)[0] == "NONE"
    assert side.end("done", "done", 3, committed=True)[0] == "NONE"
    yield side
    side.close()


def command(broker: ThreadedBroker, *arguments: str) -> list[dict[str, str]]:
    """Runs the command and returns the rows of the printed table, each as {column: cell}."""
    try:
        path = f"{resolve_tools()}/*"
        java = java_home() / "bin" / "java"
    except (MavenError, JavaNotFoundError) as error:
        not_available("Java's TransactionsCommand", error)
    done = subprocess.run(
        [
            str(java),
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            *("-cp", path, "org.apache.kafka.tools.TransactionsCommand"),
            *("--bootstrap-server", broker.bootstrap, *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr
    header, *rows = [
        [cell.strip() for cell in line.split("\t")] for line in done.stdout.splitlines()
    ] or [[]]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_command_lists_and_describes_transactions(
    broker: ThreadedBroker, side: TransactionSide
) -> None:
    ids = {name: str(producer_id) for name, (producer_id, _) in side.producers.items()}
    listed = command(broker, "list")
    assert sorted(tuple(row.values())[:4] for row in listed) == [
        ("done", "1", ids["done"], "CompleteCommit"),
        ("ongoing", "1", ids["ongoing"], "Ongoing"),
    ]
    (row,) = command(broker, "describe", "--transactional-id", "ongoing")
    assert 0 <= int(row.pop("TransactionDurationMs")) < TIMEOUT_S * 1000
    assert time.time() * 1000 - int(row.pop("CurrentTransactionStartTimeMs")) < TIMEOUT_S * 1000
    row.pop("", None)
    assert row == {
        "CoordinatorId": "1",
        "TransactionalId": "ongoing",
        "ProducerId": ids["ongoing"],
        "ProducerEpoch": "0",
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "60000",
        "TopicPartitions": f"{TOPIC}-0",
    }
    producers = command(broker, "describe-producers", "--topic", TOPIC, "--partition", "0")
    assert {
        row["ProducerId"]: (
            row["ProducerEpoch"],
            row["LatestCoordinatorEpoch"],
            row["LastSequence"],
            row["CurrentTransactionStartOffset"],
        )
        for row in producers
    } == {ids["done"]: ("0", "0", "0", "None"), ids["ongoing"]: ("0", "-1", "0", "1")}


def test_command_finds_and_aborts_a_hanging_transaction(
    broker: ThreadedBroker, side: TransactionSide
) -> None:
    assert command(broker, "find-hanging", "--broker-id", "1") == []
    now_ms = time.time_ns() // 1_000_000
    batch = encode_batch(
        [(None, b"hanging", [], now_ms - AN_HOUR_MS)],
        producer_id=HANGING_PRODUCER,
        producer_epoch=3,
        base_sequence=0,
        is_transactional=True,
    )
    # A transaction that no coordinator knows.
    broker.call(
        lambda it: it.topics[TOPIC].partitions[1].append_of_coordinator(RecordBatch(batch), now_ms)
    )
    (row,) = command(broker, "find-hanging", "--broker-id", "1")
    found = row["Topic"], row["Partition"], row["ProducerId"], row["ProducerEpoch"]
    assert found == (TOPIC, "1", str(HANGING_PRODUCER), "3")
    assert row["StartOffset"] == "0"
    assert side.latest(1, committed=True) == ("NONE", 0)
    arguments = "--topic", TOPIC, "--partition", "1", "--start-offset", row["StartOffset"]
    assert command(broker, "abort", *arguments) == []
    assert side.latest(1, committed=True) == ("NONE", 2)
    assert command(broker, "find-hanging", "--broker-id", "1") == []


def test_command_terminates_a_transaction(broker: ThreadedBroker, side: TransactionSide) -> None:
    command(broker, "forceTerminateTransaction", "--transactionalId", "ongoing")
    assert side.describe("ongoing")[1] == "Empty"
    assert side.read(0, committed=True)[-1] == [(1, 1)], "the second producer's batch is aborted"
    assert side.end("ongoing", "ongoing", 3, committed=True)[0] == "PRODUCER_FENCED"
