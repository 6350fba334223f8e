"""Reads a query's checkpoint: the offsets of its micro-batches, and the unfinished micro-batches.

A batch is unfinished from the time its offsets are written until its commit is written. A sink with
at-least-once delivery may repeat only records of a batch that was unfinished at a kill.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["Checkpoint", "Duplicates", "count_duplicates"]

#: The number of batches that Spark retains; high, so that none is purged before it is counted.
KEPT_BATCHES: Final = "100000"


@dataclass
class Checkpoint:
    """The checkpoint of a query with one source of one topic.

    `unfinished` are the batches that were unfinished at a kill.
    """

    folder: Path
    unfinished: set[int] = field(default_factory=set)

    def planned(self) -> int:
        """Returns the last batch whose offsets are written; -1 if there is none."""
        return _last(self.folder / "offsets")

    def finished(self) -> int:
        """Returns the last committed batch; -1 if there is none."""
        return _last(self.folder / "commits")

    def disturbed(self, finished_before: int) -> None:
        """Adds the batches that were unfinished at a kill to `unfinished`.

        A batch was unfinished if it is planned, and comes after `finished_before`, the last batch
        that was committed at the kill.
        """
        self.unfinished |= set(range(finished_before + 1, self.planned() + 1))

    def ends(self) -> dict[int, dict[int, int]]:
        """Returns the end offsets of each batch, by partition."""
        found = {}
        for path in (self.folder / "offsets").glob("[0-9]*"):
            # The lines are: the version, the metadata, then one per source.
            topics = json.loads(path.read_text().splitlines()[2])
            (partitions,) = topics.values()
            found[int(path.name)] = {int(part): offset for part, offset in partitions.items()}
        return found


def _last(folder: Path) -> int:
    return max((int(each.name) for each in folder.glob("[0-9]*")), default=-1)


@dataclass(frozen=True)
class Duplicates:
    """The numbers of duplicates from unfinished batches and from other batches.

    `batches` is the number of batches that have duplicates.
    """

    of_unfinished_batches: int
    of_others: int
    batches: int


def count_duplicates(
    extra: Iterable[tuple[int, int, int]],
    ends: Mapping[int, Mapping[int, int]],
    unfinished: set[int],
) -> Duplicates:
    """Counts duplicates by batch.

    `extra` has the source partition, the source offset and the number of duplicates of each record.
    `ends` has the end offsets by batch and partition.
    """
    counts: Counter[int] = Counter()
    ordered = sorted(ends)
    for partition, offset, surplus in extra:
        batch = next(
            (each for each in ordered if offset < ends[each].get(partition, 0)),
            -1,
        )
        counts[batch] += surplus
    inside = sum(count for batch, count in counts.items() if batch in unfinished)
    return Duplicates(inside, sum(counts.values()) - inside, len(counts))
