"""Runs other clients as group members, each in its own process, and collects their records."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.records import encode_batch
from tests.support.batches import TIMESTAMP
from tests.support.embedded import ThreadedBroker
from tests.support.patience import wait_until
from tests.support.raw_connection import RawConnection

__all__ = [
    "PARTITIONS",
    "GroupMember",
    "read_by",
    "share",
    "share_and_hand_over",
    "write",
]

SCRIPTS: Final = Path(__file__).parent / "peer_scripts"
PARTITIONS: Final = 6
PATIENCE_S: Final = 60


class GroupMember:
    """A client in its own process, and the events that it reports."""

    def __init__(self, python: Path, peer: str, broker: ThreadedBroker, group: str) -> None:
        script = SCRIPTS / f"grouped_{peer}.py"
        self._begin([python, script, broker.bootstrap, "t", group])

    def _begin(self, command: Sequence[str | Path]) -> None:
        self.assigned: list[int] = []
        self.read: list[tuple[int, str]] = []
        self.has_left = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._listen)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, *rest = json.loads(line)
            if what == "assigned":
                self.assigned = rest[0]
            elif what == "read":
                self.read.append((rest[0], rest[1]))
            else:
                self.has_left = True

    def leave(self) -> None:
        """Leaves the group and ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert self.has_left

    def end(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def write(broker: ThreadedBroker, *values: str) -> None:
    """Produces one record with each value to each partition of topic `t`."""
    records = encode_batch([(None, value.encode(), [], TIMESTAMP) for value in values])
    data = [PartitionProduceData(index=it, records=records) for it in range(PARTITIONS)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    with RawConnection(broker.bootstrap) as connection:
        (topic,) = connection.exchange(request, 9).responses
    assert [it.error_code for it in topic.partition_responses] == [0] * PARTITIONS


def share(members: Sequence[GroupMember]) -> bool:
    """Returns whether each partition has exactly one owner, and each member owns a partition."""
    assigned = sorted(it for member in members for it in member.assigned)
    return assigned == list(range(PARTITIONS)) and all(member.assigned for member in members)


def read_by(members: Sequence[GroupMember]) -> list[tuple[int, str]]:
    return sorted(it for member in members for it in member.read)


def share_and_hand_over(
    broker: ThreadedBroker,
    python: Path,
    peers: Sequence[str],
    group: str,
    described: Callable[[], tuple[str, int]],
) -> None:
    """Runs a group: members join one by one and read all records; then the first member leaves.

    The other members, if any, then own all partitions, and continue at the offsets that the first
    member committed. `described` returns the group's state and the number of its members.
    """
    with ExitStack() as ending:
        members: list[GroupMember] = []
        for peer in peers:
            member = GroupMember(python, peer, broker, group)
            ending.callback(member.end)
            members.append(member)
            wait_until(lambda: share(members))
        write(broker, "one", "two")
        expected = [(it, value) for it in range(PARTITIONS) for value in ("one", "two")]
        wait_until(lambda: len(read_by(members)) >= len(expected))
        assert read_by(members) == expected
        assert described() == ("Stable", len(peers))
        first, *rest = members
        first.leave()
        if rest:
            wait_until(lambda: share(rest))
            write(broker, "three")
            expected = sorted([*expected, *((it, "three") for it in range(PARTITIONS))])
            wait_until(lambda: len(read_by(members)) >= len(expected))
            assert read_by(members) == expected, "a leaving member has committed its offsets"
        for member in rest:
            member.leave()
