"""The lines in which a member logs its actions. A line is written before the action counts.

A line is a word, the time in seconds, and the rest: partitions with commas between, or a partition
and an offset. A kill of the program loses none of it: each line is one write to a file.
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
        """Writes a line."""
        os.write(self._file, f"{word} {time.time():.6f} {rest}\n".encode())

    def partitions(self, word: str, partitions: Iterable[int]) -> None:
        """Writes that partitions were `assigned`, `revoked` or `lost`."""
        self.say(word, ",".join(map(str, sorted(partitions))))

    def read(self, partition: int, offset: int) -> None:
        """Writes that the handler got a record."""
        self.say("read", f"{partition} {offset}")
