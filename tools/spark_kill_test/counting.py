"""Counts lost, duplicated and reordered records. Works on plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Count", "counted"]


@dataclass(frozen=True)
class Count:
    """The numbers of records: found (duplicates included), lost, extra copies, out of order.

    `foreign` counts found numbers that were never sent. A record is out of order if it first
    appears after a record of its lane (partition) that was sent later.
    """

    found: int
    lost: int
    doubled: int
    disordered: int
    foreign: int

    @property
    def is_complete(self) -> bool:
        """Returns True if no record is lost, foreign or out of order; duplicates are allowed."""
        return not (self.lost or self.disordered or self.foreign)


def counted(sent: Iterable[int], lanes: Iterable[Iterable[int]], *, lane_count: int) -> Count:
    """Compares the numbers that were sent with those that were found.

    `lanes` has the found numbers of each partition, in offset order. The numbers were sent in
    ascending order, each to partition `number % lane_count`.
    """
    wanted = set(sent)
    seen: Counter[int] = Counter()
    disordered = 0
    latest: dict[int, int] = {}
    for lane in lanes:
        for number in lane:
            seen[number] += 1
            if seen[number] == 1:
                place = number % lane_count
                if number < latest.get(place, -1):
                    disordered += 1
                latest[place] = max(number, latest.get(place, -1))
    return Count(
        found=sum(seen.values()),
        lost=len(wanted - seen.keys()),
        doubled=sum(times - 1 for times in seen.values()),
        disordered=disordered,
        foreign=len(seen.keys() - wanted),
    )
