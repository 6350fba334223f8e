"""Reads the batches of a query from its checkpoint: their offsets, and the unfinished batches.

A batch is running from the moment its offsets are written until its commit is written. An
at-least-once sink may repeat only the records of a batch that was running during a kill.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["Again", "Checkpoint", "again_of"]

#: The number of batches that Spark retains: enough that none is purged before it is counted.
KEPT_BATCHES: Final = "100000"


@dataclass
class Checkpoint:
    """The checkpoint of a query with one source of one topic."""

    folder: Path
    under_way: set[int] = field(default_factory=set)

    def planned(self) -> int:
        """Returns the last batch whose offsets are written; -1 for none."""
        return _last(self.folder / "offsets")

    def finished(self) -> int:
        """Returns the last committed batch; -1 for none."""
        return _last(self.folder / "commits")

    def disturbed(self, finished_before: int) -> None:
        """Records a kill after `finished_before` was the last committed batch."""
        self.under_way |= set(range(finished_before + 1, self.planned() + 1))

    def ends(self) -> dict[int, dict[int, int]]:
        """Returns the end offset of each batch and partition."""
        found = {}
        for path in (self.folder / "offsets").glob("[0-9]*"):
            # The lines are the version, the metadata, then one for each source.
            topics = json.loads(path.read_text().splitlines()[2])
            (partitions,) = topics.values()
            found[int(path.name)] = {int(part): offset for part, offset in partitions.items()}
        return found


def _last(folder: Path) -> int:
    return max((int(each.name) for each in folder.glob("[0-9]*")), default=-1)


@dataclass(frozen=True)
class Again:
    """The number of duplicate records in a topic, by kind of batch, and the number of batches."""

    of_batches_under_way: int
    of_others: int
    batches: int


def again_of(
    extra: Iterable[tuple[int, int, int]],
    ends: Mapping[int, Mapping[int, int]],
    under_way: set[int],
) -> Again:
    """Counts duplicates by batch.

    `extra` has source partition, source offset and number of duplicates of each record.
    """
    counts: Counter[int] = Counter()
    ordered = sorted(ends)
    for partition, offset, surplus in extra:
        batch = next(
            (each for each in ordered if offset < ends[each].get(partition, 0)),
            -1,
        )
        counts[batch] += surplus
    inside = sum(count for batch, count in counts.items() if batch in under_way)
    return Again(inside, sum(counts.values()) - inside, len(counts))
