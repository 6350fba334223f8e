"""Batches of a query, as its checkpoint has them: their offsets, and which were under way when.

A batch is under way from the moment its offsets are written until its commit is. What a sink that
is at least once may repeat are the records of such a batch alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["Again", "Checkpoint", "again_of"]

#: One after the other, so that no batch is forgotten before it is counted.
KEPT_BATCHES: Final = "100000"


@dataclass
class Checkpoint:
    """The checkpoint of a query with one source of one topic, and what was seen of it."""

    folder: Path
    under_way: set[int] = field(default_factory=set)

    def planned(self) -> int:
        """The last batch whose offsets are written; -1 for none."""
        return _last(self.folder / "offsets")

    def finished(self) -> int:
        """The last batch that is committed; -1 for none."""
        return _last(self.folder / "commits")

    def disturbed(self, finished_before: int) -> None:
        """Something was killed since `finished_before` was the last committed batch."""
        self.under_way |= set(range(finished_before + 1, self.planned() + 1))

    def ends(self) -> dict[int, dict[int, int]]:
        """By batch and partition the offset behind its last record."""
        found = {}
        for path in (self.folder / "offsets").glob("[0-9]*"):
            # A version, metadata, then a line for each source.
            topics = json.loads(path.read_text().splitlines()[2])
            (partitions,) = topics.values()
            found[int(path.name)] = {int(part): offset for part, offset in partitions.items()}
        return found


def _last(folder: Path) -> int:
    return max((int(each.name) for each in folder.glob("[0-9]*")), default=-1)


@dataclass(frozen=True)
class Again:
    """Records that stand in a topic more than once: of how many batches, and of which."""

    of_batches_under_way: int
    of_others: int
    batches: int


def again_of(
    extra: Iterable[tuple[int, int, int]],
    ends: Mapping[int, Mapping[int, int]],
    under_way: set[int],
) -> Again:
    """Whose batches they are: `extra` has source partition, source offset and surplus of each."""
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
