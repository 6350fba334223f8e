"""Tests the share consumer of confluent-kafka 2.16.1 in share groups on the embedded broker."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kafka.share_sides import ShareSide
from tests.support.embedded import ThreadedBroker
from tests.support.patience import wait_until
from tests.support.share_peers import PARTITIONS, lag, share_broker, share_side

pytestmark = [pytest.mark.peers, pytest.mark.exhaustive]

RECORDS: Final = 70  # of each partition
SCRIPT: Final = Path(__file__).with_name("peer_scripts") / "share_confluent_kafka.py"


class Member:
    """A program with a share consumer; `events` are the JSON lines that it has printed."""

    def __init__(self, python: Path, broker: ThreadedBroker, mode: str) -> None:
        self.events: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [python, SCRIPT, broker.bootstrap, "t", "g", mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))

    def all(self, name: str) -> list[Any]:
        """Returns the values of all events of a name."""
        return [each[name] for each in list(self.events) if name in each]

    @property
    def acknowledged(self) -> set[tuple[int, int]]:
        """The partition and offset of each acknowledgement that has succeeded."""
        found = [each for each in list(self.events) if each.get("error", "") is None]
        return {(partition, at) for each in found for partition, at in each["acknowledged"]}

    def leave(self) -> int:
        """Ends the input of the program; returns its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(30)
        self._reader.join()
        return code

    def close(self) -> None:
        """Kills the program, if it runs."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with share_broker() as running:
        yield running


@pytest.fixture
def side(broker: ThreadedBroker) -> Iterator[ShareSide]:
    with share_side(broker, RECORDS // 10, 10) as found:
        found.set_config(share_auto_offset_reset="earliest")
        yield found


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_confluent_kafka_acknowledges_each_record(
    broker: ThreadedBroker, side: ShareSide, peers_python: Path, mode: str
) -> None:
    with ExitStack() as ending:
        members = []
        for _ in range(2):
            member = Member(peers_python, broker, mode)
            ending.callback(member.close)
            members.append(member)
        wait_until(lambda: lag(side, RECORDS) == 0)
        assert [member.leave() for member in members] == [0, 0]
    assert not [each for member in members for each in member.all("failed")]
    got = sorted((p, at, count) for member in members for p, at, count in member.all("got"))
    wanted = [(p, at, 1) for p in range(PARTITIONS) for at in range(RECORDS)]
    if mode == "explicit":
        wanted += [(p, at, 2) for p, at, _ in wanted if at % 10 == 0 and at % 7]
    assert got == sorted(wanted)
    acknowledged = members[0].acknowledged | members[1].acknowledged
    assert acknowledged == {(p, at) for p, at, _ in wanted}
    assert side.describe_share()[0] == "Empty"
