"""Measures this process, and checks that its memory, open files and tasks stay flat."""

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
    """A measurement of the process, `at` seconds after the start."""

    at: float
    memory: int  #: resident memory in bytes
    files: int  #: open file descriptors
    tasks: int  #: tasks of asyncio
    records: int  #: acknowledged records so far


@dataclass(frozen=True)
class Measure:
    """A measured field of `Sample`: `scale` converts a value to the unit of `title`.

    The median may grow by `may_grow` units from the second to the last third of a run.
    """

    field: str
    title: str
    scale: int
    may_grow: float

    def of(self, sample: Sample) -> float:
        """Returns the value of a sample in the measure's unit."""
        return float(getattr(sample, self.field)) / self.scale


MEASURES = (
    Measure("memory", "resident memory, MB", _MB, 4.0),
    Measure("files", "open files", 1, 4.0),
    Measure("tasks", "tasks", 1, 4.0),
)
"""The fields that must stay flat. Files and tasks vary a little; a leak would add more and more."""


def measure(at: float, records: int) -> Sample:
    """Returns a sample of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return Sample(at, pages * _PAGE, files, len(asyncio.all_tasks()), records)


def verdicts(samples: Sequence[Sample]) -> dict[str, tuple[float, float, bool]]:
    """Returns, by title of the measure, two medians, and True if the measure is flat.

    The medians are those of the second and of the last third of the samples. The first third is the
    warm-up, in which modules are imported, and pools and caches fill.
    """
    third = len(samples) // 3
    found = {}
    for each in MEASURES:
        middle = median(each.of(sample) for sample in samples[third : 2 * third])
        last = median(each.of(sample) for sample in samples[2 * third :])
        found[each.title] = (middle, last, last - middle <= each.may_grow)
    return found
