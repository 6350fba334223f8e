"""Measures this process, and judges whether its use of resources stays flat.

Plain data except for `measure`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

__all__ = ["MEASURES", "Measure", "Sample", "measure", "verdicts"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1_000_000


@dataclass(frozen=True)
class Sample:
    """One measurement of the process; `at` is in seconds since the start."""

    at: float
    memory: int  #: resident, in bytes
    files: int  #: descriptors that are open
    tasks: int  #: of asyncio
    records: int  #: acknowledged so far


@dataclass(frozen=True)
class Measure:
    """One measure: its name and unit, and its allowed growth between the thirds of a run."""

    field: str
    title: str
    scale: int
    may_grow: float

    def of(self, sample: Sample) -> float:
        """Returns its value in a sample, in its unit."""
        return float(getattr(sample, self.field)) / self.scale


MEASURES = (
    Measure("memory", "resident memory, MB", _MB, 4.0),
    Measure("files", "open files", 1, 4.0),
    Measure("tasks", "tasks", 1, 4.0),
)
"""Files and tasks vary with the running work; a leak adds some in each round."""


def measure(at: float, records: int) -> Sample:
    """Measures this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return Sample(at, pages * _PAGE, files, len(asyncio.all_tasks()), records)


def verdicts(samples: Sequence[Sample]) -> dict[str, tuple[float, float, bool]]:
    """Returns for each measure its median in the second and last third, and whether it is flat.

    The first third warms up: modules are imported, pools and caches fill.
    """
    third = len(samples) // 3
    found = {}
    for each in MEASURES:
        middle = median(each.of(sample) for sample in samples[third : 2 * third])
        last = median(each.of(sample) for sample in samples[2 * third :])
        found[each.title] = (middle, last, last - middle <= each.may_grow)
    return found
