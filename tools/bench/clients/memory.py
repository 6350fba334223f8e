"""Measures the memory of a producer or a consumer with many partitions; prints it as JSON.

The argument is a `MemoryTask` as JSON. Imports the standard library only, because it runs in the
environment of kproto and in that of the other clients.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "PARTITIONS_OF_TOPIC",
    "ROUNDS",
    "SETTLE_S",
    "VALUE",
    "MemoryTask",
    "rss_mb",
    "topics_of",
]

PARTITIONS_OF_TOPIC: Final = 1_000

#: The number of records that a producer sends to each partition.
ROUNDS: Final = 3
#: How long the client is idle before its resident memory is read, in seconds.
SETTLE_S: Final = 2.0
VALUE: Final = b"v" * 100


class MemoryTask(NamedTuple):
    """Identifies a measurement: the client, and `work`, which is "produce" or "consume".

    The topics are `topics_of(topic, partitions)`.
    """

    client: str
    work: str
    bootstrap: str
    topic: str
    partitions: int

    def tps(self) -> list[tuple[str, int]]:
        """Returns all partitions of the topics."""
        topics = topics_of(self.topic, self.partitions)
        return [(topic, at) for topic in topics for at in range(PARTITIONS_OF_TOPIC)]


def topics_of(topic: str, partitions: int) -> list[str]:
    """Returns the names of the topics that together have `partitions` partitions."""
    return [f"{topic}-{number}" for number in range(partitions // PARTITIONS_OF_TOPIC)]


def rss_mb(name: str = "VmRSS") -> float:
    """Returns the resident memory of this process in MB; with "VmHWM" its highest value."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(name)


def main() -> None:
    task = MemoryTask(*json.loads(sys.argv[1]).values())
    module = importlib.import_module(f"tools.bench.clients.memory_of_{task.client}")
    gc.collect()
    imported = rss_mb()
    works: dict[str, Callable[[MemoryTask], float]] = module.WORKS
    steady = works[task.work](task)
    print(json.dumps({"imported": imported, "steady": steady, "peak": rss_mb("VmHWM")}))


if __name__ == "__main__":
    main()
