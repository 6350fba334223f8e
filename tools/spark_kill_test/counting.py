"""Counts lost, duplicated and reordered records. Works on plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Count", "counted"]


@dataclass(frozen=True)
class Count:
    """The numbers of records found, lost, duplicated, out of order, and never sent (`foreign`).

    A record is out of order if it first appears after a record that was sent later in its lane.
    """

    found: int
    lost: int
    doubled: int
    disordered: int
    foreign: int

    @property
    def is_complete(self) -> bool:
        """Returns whether no record is lost, foreign or out of order; duplicates are allowed."""
        return not (self.lost or self.disordered or self.foreign)


def counted(sent: Iterable[int], lanes: Iterable[Iterable[int]], *, lane_count: int) -> Count:
    """Compares sent with found records, lane by lane in the order found.

    A number was sent in lane `number % lane_count`, in ascending order.
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
