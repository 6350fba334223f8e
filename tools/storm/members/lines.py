"""Writes the log lines of a member.

A member logs an assignment, a revocation and a record before it acts on them.

A line is a word, the time in seconds, and the details: partitions separated by commas, or a
partition and an offset. Each line is one write to the file, so that a kill loses no line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["MemberLog"]


class MemberLog:
    """The log file of one member."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def say(self, word: str, rest: object = "") -> None:
        """Appends a line: `word`, the present time in seconds, and `rest`."""
        os.write(self._file, f"{word} {time.time():.6f} {rest}\n".encode())

    def partitions(self, word: str, partitions: Iterable[int]) -> None:
        """Logs that partitions were `assigned`, `revoked` or `lost`."""
        self.say(word, ",".join(map(str, sorted(partitions))))

    def read(self, partition: int, offset: int) -> None:
        """Logs that the member starts to process a record."""
        self.say("read", f"{partition} {offset}")
