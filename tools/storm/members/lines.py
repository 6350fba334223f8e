"""The lines in which a member tells what it does. A line is written before what it tells of counts.

A line is a word, the time in seconds, and the rest: partitions with commas between, or a partition
and an offset. Nothing of it is lost where the program is killed: each line is one write to a file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Told"]


class Told:
    """The file of one member."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def say(self, word: str, rest: object = "") -> None:
        """Write a line."""
        os.write(self._file, f"{word} {time.time():.6f} {rest}\n".encode())

    def partitions(self, word: str, partitions: Iterable[int]) -> None:
        """Write that partitions were `assigned`, `revoked` or `lost`."""
        self.say(word, ",".join(map(str, sorted(partitions))))

    def read(self, partition: int, offset: int) -> None:
        """Write that a record is in the hands of the handler."""
        self.say("read", f"{partition} {offset}")
