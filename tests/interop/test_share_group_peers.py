"""Tests Java's share consumer in share groups on the embedded broker.

The clients are those of Kafka 4.4.0, run by VerifiableShareConsumer of Kafka's tools.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from tests.kafka.share_sides import ShareSide
from tests.support.availability import not_available
from tests.support.embedded import ThreadedBroker
from tests.support.patience import wait_until
from tests.support.share_peers import PARTITIONS, lag, share_broker, share_side
from tools.kafka.jars import KafkaJarsError, resolve_jars
from tools.setup.java import JavaNotFoundError, java_home
from tools.setup.maven import MavenError
from tools.storm.java import resolve_tools

pytestmark = [pytest.mark.peers, pytest.mark.exhaustive]

BATCHES: Final = 8
BATCH: Final = 25
RECORDS: Final = PARTITIONS * BATCHES * BATCH
PATIENCE_S: Final = 60.0


class JavaMember:
    """Runs Java's VerifiableShareConsumer, which reports what it reads and acknowledges."""

    def __init__(self, broker: ThreadedBroker, mode: str) -> None:
        jars = [resolve_jars("4.4.0") / "kafka-clients-4.4.0.jar", resolve_tools() / "*"]
        self.consumed: Counter[tuple[int, int]] = Counter()
        self.events: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [
                java_home() / "bin" / "java",
                "-Xmx96m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                os.pathsep.join(map(str, jars)),
                "org.apache.kafka.tools.VerifiableShareConsumer",
                *("--bootstrap-server", broker.bootstrap, "--topic", "t", "--group-id", "g"),
                *("--acknowledgement-mode", mode, "--offset-reset-strategy", "earliest"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                event = json.loads(line)
                self.events.append(event)
                if event["name"] == "records_consumed":
                    for part in event["partitions"]:
                        self.consumed.update((part["partition"], it) for it in part["offsets"])

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait(PATIENCE_S)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def leave(self) -> None:
        """Ends the member as an operator does; it acknowledges, and leaves the group."""
        self._process.terminate()
        self._end()


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    try:
        resolve_tools(), resolve_jars("4.4.0"), java_home()
    except (MavenError, KafkaJarsError, JavaNotFoundError) as error:
        not_available("Java's share consumer", error)
    with share_broker() as running:
        yield running


@pytest.fixture
def side(broker: ThreadedBroker) -> Iterator[ShareSide]:
    with share_side(broker, BATCHES, BATCH) as found:
        yield found


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_java_members_acknowledge_each_record_once(
    broker: ThreadedBroker, side: ShareSide, mode: str
) -> None:
    with ExitStack() as ending:
        members = []
        for _ in range(2):
            member = JavaMember(broker, mode)
            ending.callback(member.kill)
            members.append(member)
        wait_until(lambda: lag(side, BATCHES * BATCH) == 0)
        wait_until(lambda: sum(it.consumed.total() for it in members) >= RECORDS)
        for member in members:
            member.leave()
        consumed = members[0].consumed + members[1].consumed
    assert set(consumed.values()) == {1}
    assert len(consumed) == RECORDS
    assert side.describe_share()[0] == "Empty"


def test_java_member_reads_what_a_killed_member_has_not_acknowledged(
    broker: ThreadedBroker, side: ShareSide
) -> None:
    side.set_config(share_auto_offset_reset="earliest")
    side.heartbeat("m", 0, ["t"])
    side.heartbeat("m")
    held = side.fetch("m", side.assigned["m"], max_records=100)
    acquired = [it for part in held[2] for it in part[4]]
    assert sum(last - first + 1 for first, last, _ in acquired) >= 100
    tp = (held[2][0][0], held[2][0][1])
    side.acknowledge("m", {tp: [(0, 9, [1])]})
    side.drop("m")
    with ExitStack() as ending:
        member = JavaMember(broker, "sync")
        ending.callback(member.kill)
        wait_until(lambda: lag(side, BATCHES * BATCH) == 0)
        wait_until(lambda: member.consumed.total() >= RECORDS - 10)
    accepted = {(tp[1], offset) for offset in range(10)}
    assert not accepted & set(member.consumed), "an accepted record is delivered again"
    assert len(member.consumed) == RECORDS - len(accepted)
