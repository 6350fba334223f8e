"""Runs a member of a client as a program; `process` ends, kills, stalls and wakes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tools.setup.peers import peers_python

from . import java
from .process import StormProcess
from .protocols import SESSION_MS, SESSION_VARIABLE, assignor_of
from .sightings import Member

__all__ = ["KINDS", "Group", "MemberProcess"]

ROOT = Path(__file__).resolve().parents[2]

#: By client: the module of its members; Java's program is not a module.
KINDS: Final[Mapping[str, str | None]] = {
    "kproto": "tools.storm.members.with_kproto",
    "java": None,
    "confluent": "tools.storm.members.with_confluent_kafka",
    "aiokafka": "tools.storm.members.with_aiokafka",
    "kafka-python": "tools.storm.members.with_kafka_python",
}


class KnownFailure(NamedTuple):
    """The words in the output of a member that ends because of a known bug of client or broker."""

    kind: str
    release: str  #: the beginning of the broker's release
    words: str


_NOT_CONVERTED: Final = (
    "Cannot upgrade the classic group members to consumer group because the embedded consumer "
    "protocol is malformed"
)
#: The known bugs, which concern converted groups: see docs/evidence/findings.md.
_KNOWN_ENDS: Final = (
    # The broker answers a waiting JoinGroup with REBALANCE_IN_PROGRESS if the group is converted.
    KnownFailure(
        "aiokafka", "", "aiokafka.errors.KafkaError: KafkaError: RebalanceInProgressError()"
    ),
    # Kafka 3.9 sends this error if a classic member has joined but not fetched its assignment yet.
    KnownFailure("java", "3.9", _NOT_CONVERTED),
    # Kafka 4 sends this error if the first rebalance has not ended.
    KnownFailure(
        "java", "4.", "UnknownServerException: The server experienced an unexpected error"
    ),
)


class Group(NamedTuple):
    """The group that members join, its broker, and the folder of the members' logs."""

    bootstrap: str
    topic: str
    name: str
    assignor: str
    version: str
    folder: Path
    session_ms: int = SESSION_MS  #: the session timeout of classic members


class MemberProcess(StormProcess):
    """The process of a member of one of the clients `KINDS`."""

    def __init__(self, kind: str, number: int, group: Group, instance: str | None = None) -> None:
        self.kind = kind
        name = f"{kind}-{number}"
        self.member = Member(name, is_strict=kind == "kproto")
        self._version = group.version
        self._told = group.folder / f"{name}.lines"
        self._said = group.folder / f"{name}.log"
        self.assignor = assignor = assignor_of(group.assignor, kind, number, group.version)
        with self._said.open("wb") as said:
            module = KINDS[kind]
            if module is None:
                config = group.folder / f"{name}.properties"
                command = java.command(
                    group.bootstrap, group.topic, group.name, assignor, config, group.session_ms
                )
            else:
                python = sys.executable if kind == "kproto" else str(peers_python())
                words = [group.bootstrap, group.topic, group.name, assignor]
                command = [python, "-m", module, *words, str(self._told)]
                command += [instance] if instance else []
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    SESSION_VARIABLE: str(group.session_ms),
                },
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        super().__init__(name, process, self._said, self.member.harmed)

    def be_slow(self) -> None:
        """Makes the member process its next record for longer than the maximum poll interval.

        Call it only for kproto's members. Does nothing if the member has not written a line yet,
        because the signal could end such a member.
        """
        if self._lines():
            self._process.send_signal(signal.SIGUSR1)

    @property
    def is_new(self) -> bool:
        """Returns True if SIGTERM ended the member before it wrote a line."""
        return self.exit_code == -signal.SIGTERM and not self._lines()

    def ended_by_known_fault(self) -> bool:
        """Returns True if a known bug ended the member; if so, records the member as harmed."""
        words = self.last_words()
        if not any(
            known.kind == self.kind
            and self._version.startswith(known.release)
            and known.words in words
            for known in _KNOWN_ENDS
        ):
            return False
        self.member.harmed.append(self._said.stat().st_mtime)
        return True

    def told(self) -> Member:
        """Returns the member as its log lines so far describe it."""
        fresh = Member(self.name, self.member.is_strict, harmed=list(self.member.harmed))
        for line in self._lines():
            fresh.take(line)
        return fresh

    def _lines(self) -> list[str]:
        if KINDS[self.kind] is None:
            said = self._said.read_text(encoding="utf-8", errors="replace")
            whole = said[: said.rfind("\n") + 1].splitlines()
            return [ours for line in whole for ours in java.lines_of(line)]
        if not self._told.exists():
            return []
        told = self._told.read_text(encoding="utf-8")
        return told[: told.rfind("\n") + 1].splitlines()
