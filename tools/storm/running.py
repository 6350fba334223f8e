"""Runs a member as a program: starts it, asks it to leave, kills, stalls and resumes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tools.setup.peers import peers_python

from . import java
from .protocols import assignor_of
from .sightings import Member

__all__ = ["KINDS", "Group", "Running"]

ROOT = Path(__file__).resolve().parents[2]

#: The clients of members, and the module of each; Java's is a program of its own.
KINDS: Final[Mapping[str, str | None]] = {
    "kproto": "tools.storm.members.with_kproto",
    "java": None,
    "confluent": "tools.storm.members.with_confluent_kafka",
    "aiokafka": "tools.storm.members.with_aiokafka",
    "kafka-python": "tools.storm.members.with_kafka_python",
}


class KnownFailure(NamedTuple):
    """The last words of a client's members that end by a fault of theirs, or of the broker."""

    kind: str
    release: str  #: of the broker, as it begins
    words: str


_NOT_CONVERTED: Final = (
    "Cannot upgrade the classic group members to consumer group because the embedded consumer "
    "protocol is malformed"
)
#: All of groups that are converted: see docs/evidence/findings.md.
_KNOWN_ENDS: Final = (
    # JoinGroup is answered with this if its member waits for it meanwhile.
    KnownFailure(
        "aiokafka", "", "aiokafka.errors.KafkaError: KafkaError: RebalanceInProgressError()"
    ),
    # Kafka 3.9 answers this if a classic member has joined, and not fetched its assignment yet.
    KnownFailure("java", "3.9", _NOT_CONVERTED),
    # Kafka 4 fails with this if the first rebalance has not ended.
    KnownFailure(
        "java", "4.", "UnknownServerException: The server experienced an unexpected error"
    ),
)


class Group(NamedTuple):
    """The group that members join, and the folder of their logs."""

    bootstrap: str
    topic: str
    name: str
    assignor: str
    version: str
    folder: Path


class Running:
    """One member, from its start to its end."""

    def __init__(self, kind: str, number: int, group: Group, instance: str | None = None) -> None:
        self.kind = kind
        self.name = f"{kind}-{number}"
        self.member = Member(self.name, is_strict=kind == "kproto")
        self.is_stalled = False
        self._version = group.version
        self._told = group.folder / f"{self.name}.lines"
        self._said = group.folder / f"{self.name}.log"
        self.assignor = assignor = assignor_of(group.assignor, kind, number, group.version)
        with self._said.open("wb") as said:
            module = KINDS[kind]
            if module is None:
                config = group.folder / f"{self.name}.properties"
                command = java.command(group.bootstrap, group.topic, group.name, assignor, config)
            else:
                python = sys.executable if kind == "kproto" else str(peers_python())
                words = [group.bootstrap, group.topic, group.name, assignor]
                command = [python, "-m", module, *words, str(self._told)]
                command += [instance] if instance else []
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    @property
    def is_there(self) -> bool:
        """Returns whether its process runs."""
        return self._process.poll() is None

    def ask_to_leave(self) -> None:
        """Asks it to leave the group and to end."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills it."""
        now = time.time()
        self._process.kill()
        self._process.wait()
        self.member.harmed.append(now)

    def stall(self) -> None:
        """Suspends its process."""
        self.member.harmed.append(time.time())
        self._process.send_signal(signal.SIGSTOP)
        self.is_stalled = True

    def wake(self) -> None:
        """Resumes its process."""
        self.member.harmed.append(time.time())
        self._process.send_signal(signal.SIGCONT)
        self.is_stalled = False

    def be_slow(self) -> None:
        """Makes the next record take longer than the group allows; only our members support it.

        Does nothing to a starting member, which the signal would end.
        """
        if self._lines():
            self._process.send_signal(signal.SIGUSR1)

    def ended_by(self, deadline: float) -> bool:
        """Returns whether it had ended by then, a time of the monotonic clock."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def exit_code(self) -> int | None:
        """Returns its exit code; None while it runs."""
        return self._process.poll()

    @property
    def is_new(self) -> bool:
        """Returns whether it was asked to leave before it had written a line."""
        return self.exit_code == -signal.SIGTERM and not self._lines()

    def ended_by_known_fault(self) -> bool:
        """Returns whether it ended by a known fault; marks it as harmed then."""
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
        """Returns its lines so far."""
        fresh = Member(self.name, self.member.is_strict, harmed=list(self.member.harmed))
        for line in self._lines():
            fresh.take(line)
        return fresh

    def last_words(self) -> str:
        """Returns the end of its other output."""
        return self._said.read_text(errors="replace")[-1500:]

    def _lines(self) -> list[str]:
        if KINDS[self.kind] is None:
            said = self._said.read_text(encoding="utf-8", errors="replace")
            whole = said[: said.rfind("\n") + 1].splitlines()
            return [ours for line in whole for ours in java.lines_of(line)]
        if not self._told.exists():
            return []
        told = self._told.read_text(encoding="utf-8")
        return told[: told.rfind("\n") + 1].splitlines()
