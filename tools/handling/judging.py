"""Checks the actions of members against the records of the broker. Works on plain data.

There are three independent sources: the log lines of the members, the dead letters, and the commits
in `__consumer_offsets`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kproto.client.processing.settings import Order

from .work import Fate, fate_of, key_of

__all__ = ["Attempt", "Commit", "Letter", "Member", "Verdict", "attempts_of", "judge"]

Key = tuple[int, int]

_NEVER: Final = 2**63


class Attempt(NamedTuple):
    """One call of a handler, from `begun` to `ended` (monotonic ns); `…_ms` are times of day.

    `end` is "e" if the handler returned, "x" if it raised, and "" if the log has no end.
    """

    member: str
    partition: int
    offset: int
    begun: int
    begun_ms: int
    ended: int | None
    ended_ms: int | None
    end: str


class Commit(NamedTuple):
    """A commit of `offset` at `ms` in the broker's log; `ahead` are completed higher offsets."""

    partition: int
    offset: int
    ms: int
    ahead: frozenset[int] = frozenset()


class Letter(NamedTuple):
    """A dead letter, its source record, and its log append time."""

    partition: int
    offset: int
    ms: int
    is_as_it_came: bool
    reason: str


@dataclass
class Member:
    """A member; `harmed` is the time of its kill or stall in monotonic ns, or None."""

    name: str
    harmed: int | None = None


@dataclass
class Verdict:
    """The result of the checks: `wrong` lists violations, `again` counts records handled again."""

    records: int = 0
    dead_letters: int = 0
    commits: int = 0
    again: int = 0
    wrong: list[str] = field(default_factory=list)


def attempts_of(member: str, lines: Iterable[str]) -> Iterator[Attempt]:
    """Yields the attempts in a member's lines; a record has at most one open attempt."""
    open_: dict[Key, tuple[int, int]] = {}
    for line in lines:
        parts = line.split()
        if len(parts) != 5:
            continue  # the member was killed while it wrote the line
        what, (ns, ms, partition, offset) = parts[0], map(int, parts[1:])
        key = (partition, offset)
        if what == "b":
            open_[key] = ns, ms
        else:
            begun, begun_ms = open_.pop(key)
            yield Attempt(member, partition, offset, begun, begun_ms, ns, ms, what)
    for (partition, offset), (begun, begun_ms) in open_.items():
        yield Attempt(member, partition, offset, begun, begun_ms, None, None, "")


def judge(
    order: Order,
    seed: int,
    ends: Mapping[int, int],
    members: Mapping[str, Member],
    attempts: Iterable[Attempt],
    letters: Iterable[Letter],
    commits: Iterable[Commit],
) -> Verdict:
    """Checks all sources; `ends` has the number of records of each partition (offsets from 0)."""
    attempts, letters, commits = list(attempts), list(letters), list(commits)
    verdict = Verdict(sum(ends.values()), len(letters), len(commits))
    _all_is_handled(verdict, seed, ends, attempts, letters)
    _nothing_comes_again(verdict, members, attempts, commits)
    _no_commit_is_ahead(verdict, attempts, letters, commits)
    if order != "none":
        _order_is_kept(verdict, order, seed, members, attempts)
    return verdict


def _all_is_handled(
    verdict: Verdict,
    seed: int,
    ends: Mapping[int, int],
    attempts: list[Attempt],
    letters: list[Letter],
) -> None:
    done = {(each.partition, each.offset) for each in attempts if each.end == "e"}
    dead = {(each.partition, each.offset) for each in letters}
    for partition, end in ends.items():
        for offset in range(end):
            key = (partition, offset)
            is_dead = fate_of(seed, partition, offset) is Fate.DEAD
            if is_dead != (key in dead) or is_dead == (key in done):
                verdict.wrong.append(f"{key} was not handled, or is no dead letter")
    for letter in letters:
        place = (letter.partition, letter.offset)
        if not letter.is_as_it_came or letter.reason != f"ValueError: never: {place}":
            verdict.wrong.append(f"the dead letter of {place} is another, or says {letter.reason}")


def _nothing_comes_again(
    verdict: Verdict,
    members: Mapping[str, Member],
    attempts: list[Attempt],
    commits: list[Commit],
) -> None:
    """Checks that a completed record repeats only after a kill or stall of one of its members."""
    finished: dict[Key, Attempt] = {}
    committed = _since_when(commits)
    for each in sorted(attempts, key=lambda each: each.begun):
        key = (each.partition, each.offset)
        before = finished.get(key)
        if before is not None:
            verdict.again += 1
            if members[before.member].harmed is None and members[each.member].harmed is None:
                verdict.wrong.append(f"{key} comes again: {before.member}, {each.member}")
        is_committed = committed.get(key, _NEVER) < each.begun_ms  # before the attempt began
        if is_committed and members[each.member].harmed is None:
            verdict.wrong.append(f"{key} comes again to {each.member}, and was committed")
        if each.end == "e":
            finished[key] = each


def _since_when(commits: list[Commit]) -> dict[Key, int]:
    """Returns the time (ms) of each record's commit: by a higher offset, or in `ahead`."""
    since: dict[Key, int] = {}
    ends: dict[int, int] = defaultdict(int)
    for commit in sorted(commits, key=lambda each: each.ms):
        partition = commit.partition
        for offset in [*range(ends[partition], commit.offset), *commit.ahead]:
            since.setdefault((partition, offset), commit.ms)
        ends[partition] = max(ends[partition], commit.offset)
    return since


def _no_commit_is_ahead(
    verdict: Verdict, attempts: list[Attempt], letters: list[Letter], commits: list[Commit]
) -> None:
    """Checks that all records below a commit, and those in its `ahead`, were completed before."""
    done: dict[int, dict[int, int]] = defaultdict(dict)  # by partition and offset: the time (ms)
    ends = [(each.partition, each.offset, each.ended_ms) for each in attempts if each.end == "e"]
    for partition, offset, ms in [*ends, *((each[0], each[1], each[2]) for each in letters)]:
        if ms is not None:
            known = done[partition].get(offset, ms)
            done[partition][offset] = min(known, ms)
    for partition, since in done.items():
        latest = [0]  # by offset: the time (ms) at which all lower offsets are completed
        for offset in range(max(since) + 1):
            latest.append(max(latest[-1], since.get(offset, _NEVER)))
        for commit in commits:
            if commit.partition == partition:
                behind = commit.offset >= len(latest)
                if behind or latest[commit.offset] > commit.ms:
                    verdict.wrong.append(f"{commit} is ahead of what was done")
                early = [at for at in commit.ahead if since.get(at, _NEVER) > commit.ms]
                if early:
                    verdict.wrong.append(f"{commit} says that {early[:9]} are done")


def _order_is_kept(
    verdict: Verdict,
    order: Order,
    seed: int,
    members: Mapping[str, Member],
    attempts: list[Attempt],
) -> None:
    """Checks that offsets are handled in order; a kill or stall of a member may repeat some."""
    strands: dict[object, list[Attempt]] = defaultdict(list)
    for each in attempts:
        key = key_of(seed, each.partition, each.offset) if order == "key" else b""
        if key is not None:
            strands[each.partition, key].append(each)
    for strand in strands.values():
        last: Attempt | None = None
        for each in sorted(strand, key=lambda each: each.begun):
            if last is not None and members[last.member].harmed is None:
                is_behind = last.ended is not None and last.ended <= each.begun
                is_next = each.offset >= last.offset
                if not (is_behind and is_next) and members[each.member].harmed is None:
                    verdict.wrong.append(f"out of order: {each} behind {last}")
            last = each
