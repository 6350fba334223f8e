"""Checks the log lines of the members of a group. Works on plain data.

A sighting is the log line of a member that starts to process a record. A member has seen a record
if its log has a sighting of the record. The rules:
- Every record was seen by a member.
- A record may be seen twice only if one of the two members was harmed: killed, stalled, or slower
  than the group allows. The record must not have been committed before the second member began to
  read the partition.
- No two members had a partition at the same time.
- No record was committed before it was seen.

The broker may leave a member behind when a group of the consumer protocol becomes classic. A member
that had not reached the newest epoch is then in an old generation, and cannot commit any more.
`group_log.left_behind` finds these members in the broker's records. The records that such a member
saw after its last commit may repeat, or stay uncommitted at the end. Records that the member saw
before its last commit may not repeat.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

__all__ = ["Commit", "Member", "Sighting", "Verdict", "judge"]

#: The precision of times, in seconds, because Java logs whole milliseconds.
_CLOCK_S: Final = 0.002
_MOST_NAMED: Final = 10
#: Members commit each second, so records must be committed this many seconds after they are seen.
_COMMITTED_WITHIN_S: Final = 3.0
#: The longest time, in seconds, for the last commit of revoked partitions.
_LAST_COMMIT_S: Final = 1.0


class Sighting(NamedTuple):
    """A log line of a member: at the time `at` (seconds) the member starts to process a record."""

    partition: int
    offset: int
    at: float


class Commit(NamedTuple):
    """A committed offset, with its append time in seconds."""

    partition: int
    offset: int
    at: float


@dataclass
class Member:
    """A member: the content of its log lines, and the times at which it was harmed.

    `is_strict` is True for members of kproto. Unexplained duplicates and errors of other clients
    are tolerated.
    """

    name: str
    is_strict: bool = True
    seen: list[Sighting] = field(default_factory=list)
    #: (partition, from, until) of each assignment; until is infinity before its revocation.
    owned: list[tuple[int, float, float]] = field(default_factory=list)
    harmed: list[float] = field(default_factory=list)
    #: The times at which the broker left the member behind.
    left_behind: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    has_left: bool = False

    def take(self, line: str) -> None:
        """Adds one log line."""
        word, at_text, *rest = line.split(" ", 2)
        at = float(at_text)
        text = rest[0].strip() if rest else ""
        match word:
            case "read":
                partition, offset = map(int, text.split())
                self.seen.append(Sighting(partition, offset, at))
            case "assigned":
                self.owned += [(int(each), at, float("inf")) for each in text.split(",") if each]
            case "revoked" | "lost":
                self.gave_up({int(each) for each in text.split(",") if each}, at)
            case "slow":
                self.harmed.append(at)
            case "error":
                self.errors.append(text)
            case "left":
                self.has_left = True

    def gave_up(self, partitions: Iterable[int] | None, at: float) -> None:
        """Ends the member's ownership of `partitions` (None: of all) at the time `at`."""
        given = None if partitions is None else set(partitions)
        self.owned = [
            (which, since, at)
            if until == float("inf") and (given is None or which in given)
            else (which, since, until)
            for which, since, until in self.owned
        ]

    def was_harmed(self, since: float, until: float) -> bool:
        """Returns True if the member was harmed between two times, both inclusive."""
        return any(since <= at <= until for at in self.harmed)

    def could_not_commit(self, partition: int, seen_at: float) -> bool:
        """Returns True if the broker left the member behind before the commit of a record.

        The member saw the record at `seen_at`. If the broker then leaves the member behind, the
        commit fails (see the module). This must happen while the member has the partition, or
        shortly after it logs the revocation, because the last commit follows this log line.
        """
        return any(
            since <= seen_at <= until
            and since <= at <= self._last_commit_by(until)
            and at - seen_at < _COMMITTED_WITHIN_S
            for which, since, until in self.owned
            if which == partition
            for at in self.left_behind
        )

    def _last_commit_by(self, given_up: float) -> float:
        later = (since for _, since, _ in self.owned if since >= given_up)
        return min([given_up + _LAST_COMMIT_S, *later])


#: By record (partition, offset): the time of the latest sighting, and the member that saw it.
_Last: TypeAlias = dict[tuple[int, int], tuple[float, Member]]


@dataclass
class Verdict:
    """The numbers of records and of violations, and descriptions of the first violations."""

    records: int = 0
    lost: int = 0
    again: int = 0  #: seen again, after the first or the second member was harmed
    doubled: int = 0  #: seen again although neither member was harmed
    again_committed: int = 0  #: seen again although it was committed
    out_of_order: int = 0
    two_owners: int = 0
    early_commits: int = 0
    uncommitted: int = 0  #: partitions with uncommitted records after all members left
    left_behind: int = 0  #: seen again or not committed, because the member was left behind
    by_peers: int = 0  #: seen again without a reason, first by a member of another client
    named: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Returns True if no rule is broken."""
        return not any(
            (
                self.lost,
                self.doubled,
                self.again_committed,
                self.out_of_order,
                self.two_owners,
                self.early_commits,
                self.uncommitted,
            )
        )

    def name(self, what: str) -> None:
        """Adds the description of a violation; keeps the first ten."""
        if len(self.named) < _MOST_NAMED:
            self.named.append(what)


def judge(members: Iterable[Member], commits: Iterable[Commit], ends: Mapping[int, int]) -> Verdict:
    """Checks what the members read and committed against the end offset of each partition.

    `commits` has all commits, in the order of the log.
    """
    members = list(members)
    verdict = Verdict(records=sum(ends.values()))
    by_partition: dict[int, list[Commit]] = {partition: [] for partition in ends}
    for commit in commits:
        by_partition[commit.partition].append(commit)
    first_seen: dict[tuple[int, int], float] = {}
    last_seen = _judge_sightings(members, by_partition, first_seen, verdict)
    for partition, end in ends.items():
        for offset in range(end):
            if (partition, offset) not in first_seen:
                verdict.lost += 1
                verdict.name(f"{partition}:{offset} was seen by no member")
    _judge_owners(members, verdict)
    _judge_commits(by_partition, first_seen, verdict)
    _judge_last_commits(by_partition, last_seen, ends, verdict)
    return verdict


def _judge_sightings(
    members: list[Member],
    commits: Mapping[int, list[Commit]],
    first_seen: dict[tuple[int, int], float],
    verdict: Verdict,
) -> _Last:
    times = {partition: [each.at for each in its] for partition, its in commits.items()}
    all_seen = [seen for member in members for seen in _in_turns(member, verdict)]
    all_seen.sort(key=lambda each: each.seen.at)
    last: _Last = {}
    for seen, member, begun in all_seen:
        place = (seen.partition, seen.offset)
        if place not in last:
            first_seen[place] = seen.at
            last[place] = (seen.at, member)
            continue
        since, other = last[place]
        last[place] = (seen.at, member)
        if other.could_not_commit(seen.partition, since):
            verdict.left_behind += 1
        elif other.was_harmed(since, seen.at) or member.was_harmed(begun, seen.at):
            verdict.again += 1
        else:
            if other.is_strict:
                verdict.doubled += 1
                verdict.name(
                    f"{place} was seen by {other.name} at {since:.3f}, and by {member.name} "
                    f"at {seen.at:.3f}"
                )
            else:
                verdict.by_peers += 1
            continue
        its = commits[seen.partition]
        at = bisect_right(times[seen.partition], begun - _CLOCK_S) - 1
        if at >= 0 and its[at].offset > seen.offset:
            verdict.again_committed += 1
            verdict.name(
                f"{place} was seen again by {member.name} at {seen.at:.3f}, which began at "
                f"{begun:.3f}; {its[at].offset} was committed at {its[at].at:.3f}"
            )
    return last


class _Seen(NamedTuple):
    """A record that `member` has seen.

    `begun` is the time at which the member first saw a record of the partition after the partition
    was assigned to it.
    """

    seen: Sighting
    member: Member
    begun: float


def _in_turns(member: Member, verdict: Verdict) -> Iterator[_Seen]:
    """Yields each sighting of a member, in the order of the member's log.

    If the member is strict, counts in `verdict` each offset that does not follow the previous
    offset of the partition. Offsets of different assignments are not compared.
    """
    starts: dict[int, list[float]] = {}
    for partition, since, _ in member.owned:
        starts.setdefault(partition, []).append(since)
    for its in starts.values():
        its.sort()
    #: By partition: number of the assignment, time of the first sighting in it, latest offset.
    turns: dict[int, tuple[int, float, int]] = {}
    for seen in member.seen:
        turn = bisect_right(starts.get(seen.partition, []), seen.at + _CLOCK_S)
        before, begun, offset = turns.get(seen.partition, (-1, seen.at, -1))
        if turn != before:
            begun = seen.at
        elif seen.offset != offset + 1:
            verdict.out_of_order += member.is_strict
            if member.is_strict:
                verdict.name(f"{member.name} saw {seen} after offset {offset}")
        turns[seen.partition] = (turn, begun, seen.offset)
        yield _Seen(seen, member, begun)


def _judge_owners(members: list[Member], verdict: Verdict) -> None:
    owned: dict[int, list[tuple[float, float, str]]] = {}
    for member in members:
        for partition, since, until in member.owned:
            harmed = min((at for at in member.harmed if since <= at <= until), default=until)
            owned.setdefault(partition, []).append((since, min(until, harmed), member.name))
    for partition, times in owned.items():
        times.sort()
        for (_, until, name), (since, _, other) in pairwise(times):
            if since + _CLOCK_S < until and name != other:
                verdict.two_owners += 1
                verdict.name(
                    f"{other} had partition {partition} at {since:.3f}, {name} until {until:.3f}"
                )


def _judge_commits(
    commits: Mapping[int, list[Commit]],
    first_seen: Mapping[tuple[int, int], float],
    verdict: Verdict,
) -> None:
    for partition, its in commits.items():
        done = 0
        latest = 0.0
        for commit in its:
            while done < commit.offset:
                latest = max(latest, first_seen.get((partition, done), float("inf")))
                done += 1
            if latest > commit.at + _CLOCK_S:
                verdict.early_commits += 1
                verdict.name(
                    f"{partition}:{commit.offset} was committed at {commit.at:.3f}; the last "
                    f"record before it was seen at {latest:.3f}"
                )


def _judge_last_commits(
    commits: Mapping[int, list[Commit]],
    last_seen: _Last,
    ends: Mapping[int, int],
    verdict: Verdict,
) -> None:
    for partition, its in commits.items():
        committed = its[-1].offset if its else 0
        left = [last_seen.get((partition, each)) for each in range(committed, ends[partition])]
        could_not = [
            last is not None and last[1].could_not_commit(partition, last[0]) for last in left
        ]
        verdict.left_behind += sum(could_not)
        if committed > ends[partition] or not all(could_not):
            verdict.uncommitted += 1
            by = left[-1][1].name if left and left[-1] is not None else "no member"
            verdict.name(
                f"{partition} ends at {ends[partition]}; {committed} was committed last; the "
                f"last record was seen by {by}"
            )
