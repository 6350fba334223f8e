"""Proposes replicas that spread partitions over brokers: plain functions on plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...client import TopicPartition
from ..command_error import CommandError

__all__ = ["proposed_replicas"]

#: The rack of each broker; None if it has none.
_Racks = Mapping[int, str | None]


def proposed_replicas(
    current: Mapping[TopicPartition, Sequence[int]], brokers: Sequence[int], racks: _Racks
) -> dict[TopicPartition, tuple[int, ...]]:
    """Returns replicas on `brokers` for each partition, the preferred leader first.

    Replicas on other brokers move; of the rest, only as many as the balance needs: the brokers get
    as many replicas, and lead as many partitions, as far as the racks and the replicas allow. A
    move leaves the replicas of a partition in no fewer racks. Raises CommandError if a partition
    has more replicas than there are brokers.
    """
    most = max(map(len, current.values()), default=0)
    if most > len(brokers):
        raise CommandError(
            f"{most} replicas of a partition need {most} brokers, and --brokers names "
            f"{len(brokers)}"
        )
    replicas = {tp: list(current[tp]) for tp in sorted(current)}
    load = Counter(dict.fromkeys(brokers, 0))
    load.update(each for its in replicas.values() for each in its if each in load)
    for its in replicas.values():
        for at, each in enumerate(its):
            if each not in load:
                its[at] = _replacement(its, at, load, racks)
                load[its[at]] += 1
    while _move_one(replicas, load, racks):
        pass
    leads = Counter(dict.fromkeys(brokers, 0))
    leads.update(its[0] for its in replicas.values())
    while _change_one_leader(replicas, leads):
        pass
    return {tp: tuple(its) for tp, its in replicas.items()}


def _replacement(its: Sequence[int], at: int, load: Mapping[int, int], racks: _Racks) -> int:
    """Returns the broker for the replica at an index: in a rack of its own, with the least load."""
    used = _racks_of((each for number, each in enumerate(its) if number != at), racks)
    return min(
        (each for each in load if each not in its),
        key=lambda each: (racks.get(each) in used, load[each], each),
    )


def _racks_of(brokers: Iterable[int], racks: _Racks) -> set[str]:
    return {rack for each in brokers if (rack := racks.get(each)) is not None}


def _pairs(count: Mapping[int, int]) -> Iterable[tuple[int, int]]:
    """Yields pairs of brokers whose counts differ by more than 1, the largest difference first."""
    by_count = sorted(count, key=lambda each: (count[each], each))
    for most in reversed(by_count):
        for least in by_count:
            if count[most] - count[least] <= 1:
                break
            yield most, least


def _move_one(
    replicas: Mapping[TopicPartition, list[int]], load: Counter[int], racks: _Racks
) -> bool:
    """Moves a replica to a broker that has fewer; returns False if the brokers are balanced."""
    for most, least in _pairs(load):
        for its in replicas.values():
            if most not in its or least in its:
                continue
            moved = [least if each == most else each for each in its]
            if len(_racks_of(moved, racks)) < len(_racks_of(its, racks)):
                continue
            its[:] = moved
            load[most] -= 1
            load[least] += 1
            return True
    return False


def _change_one_leader(replicas: Mapping[TopicPartition, list[int]], leads: Counter[int]) -> bool:
    """Puts another replica first, whose broker leads fewer; returns False if none can."""
    for most, least in _pairs(leads):
        for its in replicas.values():
            if its[0] == most and least in its:
                its.remove(least)
                its.insert(0, least)
                leads[most] -= 1
                leads[least] += 1
                return True
    return False
