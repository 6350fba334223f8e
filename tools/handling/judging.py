"""Checks the log lines of members against dead letters and commits. Works on plain data.

The log lines, the dead letters, and the commits in `__consumer_offsets` are three independent
sources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kproto.client.processing.settings import Order

from .work import HandlerBehavior, fate_of, key_of

__all__ = ["Attempt", "Commit", "DeadLetter", "Member", "Verdict", "attempts_of", "judge"]

Key = tuple[int, int]

_NEVER: Final = 2**63


class Attempt(NamedTuple):
    """A call of a handler, from `begun` to `ended` (monotonic ns).

    `begun_ms` and `ended_ms` are the same times in ms since 1970. `end` is "e" if the handler
    returned, and "x" if it raised. If the log does not have the end, `end` is "", and `ended` and
    `ended_ms` are None.
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
    """A commit of `offset`, with its log append time `ms`.

    `ahead` are higher offsets that the commit's metadata lists as processed.
    """

    partition: int
    offset: int
    ms: int
    ahead: frozenset[int] = frozenset()


class DeadLetter(NamedTuple):
    """A dead letter: the partition and offset of its source record, and its log append time in ms.

    `is_as_it_came` is True if key, value and headers are unchanged. `reason` is the error text.
    """

    partition: int
    offset: int
    ms: int
    is_as_it_came: bool
    reason: str


@dataclass
class Member:
    """A member; `harmed` is the time (monotonic ns) at which it was killed or stalled, or None."""

    name: str
    harmed: int | None = None


@dataclass
class Verdict:
    """The result of the checks: `wrong` lists violations, `again` counts redeliveries."""

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
    letters: Iterable[DeadLetter],
    commits: Iterable[Commit],
) -> Verdict:
    """Checks the members' attempts, the dead letters and the commits against each other.

    `ends` has the number of records of each partition, whose offsets start at 0.
    """
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
    letters: list[DeadLetter],
) -> None:
    done = {(each.partition, each.offset) for each in attempts if each.end == "e"}
    dead = {(each.partition, each.offset) for each in letters}
    for partition, end in ends.items():
        for offset in range(end):
            key = (partition, offset)
            is_dead = fate_of(seed, partition, offset) is HandlerBehavior.DEAD
            if is_dead != (key in dead) or is_dead == (key in done):
                verdict.wrong.append(f"{key} was not processed, or is missing in the dead letters")
    for letter in letters:
        place = (letter.partition, letter.offset)
        if not letter.is_as_it_came or letter.reason != f"ValueError: never: {place}":
            verdict.wrong.append(
                f"the dead letter of {place} has other content, or the reason {letter.reason}"
            )


def _nothing_comes_again(
    verdict: Verdict,
    members: Mapping[str, Member],
    attempts: list[Attempt],
    commits: list[Commit],
) -> None:
    """Checks that records are redelivered only after a fault.

    A record may be redelivered if the member that processed it, or the member that receives it
    again, was killed or stalled. Once the offset of the record is committed, the record may be
    redelivered only to a member that was killed or stalled.
    """
    finished: dict[Key, Attempt] = {}
    committed = _since_when(commits)
    for each in sorted(attempts, key=lambda each: each.begun):
        key = (each.partition, each.offset)
        before = finished.get(key)
        if before is not None:
            verdict.again += 1
            if members[before.member].harmed is None and members[each.member].harmed is None:
                verdict.wrong.append(
                    f"{key} is redelivered without a fault: {before.member}, {each.member}"
                )
        is_committed = committed.get(key, _NEVER) < each.begun_ms  # before the attempt began
        if is_committed and members[each.member].harmed is None:
            verdict.wrong.append(
                f"{key} is redelivered to {each.member}, although it was committed"
            )
        if each.end == "e":
            finished[key] = each


def _since_when(commits: list[Commit]) -> dict[Key, int]:
    """Returns, for each record, the time (ms) of the first commit that covers the record.

    A commit covers a record by a higher offset, or by listing it in `ahead`.
    """
    since: dict[Key, int] = {}
    ends: dict[int, int] = defaultdict(int)
    for commit in sorted(commits, key=lambda each: each.ms):
        partition = commit.partition
        for offset in [*range(ends[partition], commit.offset), *commit.ahead]:
            since.setdefault((partition, offset), commit.ms)
        ends[partition] = max(ends[partition], commit.offset)
    return since


def _no_commit_is_ahead(
    verdict: Verdict, attempts: list[Attempt], letters: list[DeadLetter], commits: list[Commit]
) -> None:
    """Checks that each commit covers only records that were completed before the commit.

    A record is completed when its handler returns, or when its dead letter is written. A commit
    covers the records below its offset, and those in `ahead`. Commits of partitions without a
    completed record are not checked.
    """
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
                    verdict.wrong.append(f"{commit} skips unprocessed records")
                early = [at for at in commit.ahead if since.get(at, _NEVER) > commit.ms]
                if early:
                    verdict.wrong.append(f"{commit} lists unprocessed records: {early[:9]}")


def _order_is_kept(
    verdict: Verdict,
    order: Order,
    seed: int,
    members: Mapping[str, Member],
    attempts: list[Attempt],
) -> None:
    """Checks that the records of a partition, or of a key, are handled in order, one at a time.

    After a kill or stall of a member, records may be handled again.
    """
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
                    verdict.wrong.append(f"out of order: {each} after {last}")
            last = each
