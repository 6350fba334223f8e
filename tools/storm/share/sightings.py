"""Checks the log lines of the members of a share group and the records of the share coordinator.

Plain functions on plain data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from kproto import Record
from kproto.messages import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from kproto.stored.coordinator_records import decode_coordinator_record

__all__ = [
    "ACKNOWLEDGED",
    "ARCHIVED",
    "PASSED",
    "STATE_TOPIC",
    "Key",
    "ShareMember",
    "ShareVerdict",
    "Sighting",
    "StateLog",
    "judge",
    "state_log_of",
]

STATE_TOPIC: Final = "__share_group_state"
#: The final states of a record in `__share_group_state`.
ACKNOWLEDGED, ARCHIVED = 2, 4
#: The record is before the start offset of its share partition, so that it has ended. A snapshot
#: has no state of such a record; an update often has.
PASSED: Final = -1

#: A member that is not stalled returns a record at most this many seconds after its lock.
_SLACK_S: Final = 5.0
_MOST_NAMED: Final = 20

#: The partition and the offset of a record.
Key: TypeAlias = tuple[int, int]


class Sighting(NamedTuple):
    """A delivery, a confirmed acceptance, or a stored state of a record.

    `deliveries` is the delivery count, and `at` the time in seconds since 1970.
    """

    deliveries: int
    at: float


#: By record, and by state, what the share coordinator has stored first.
StateLog: TypeAlias = Mapping[Key, Mapping[int, Sighting]]


@dataclass
class ShareMember:
    """A member, as its log lines describe it; `harmed` has the times of its kills and stops."""

    name: str
    harmed: list[float] = field(default_factory=list)
    deliveries: list[tuple[Key, Sighting]] = field(default_factory=list)
    accepting: set[Key] = field(default_factory=set)
    rejecting: set[Key] = field(default_factory=set)
    #: The confirmed acceptances of each record.
    accepted: dict[Key, list[Sighting]] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    has_started: bool = False

    def take(self, line: str) -> None:
        """Adds one log line."""
        word, told, *rest = line.split()
        at = float(told)
        if word == "got":
            partition, offset, count = map(int, rest)
            self.deliveries.append(((partition, offset), Sighting(count, at)))
        elif word in ("accepting", "rejecting"):
            getattr(self, word).add((int(rest[0]), int(rest[1])))
        elif word == "accepted":
            partition = int(rest[0])
            for each in rest[1].split(","):
                offset_text, _, counted = each.partition(":")
                stored = self.accepted.setdefault((partition, int(offset_text)), [])
                stored.append(Sighting(int(counted), at))
        elif word == "failed":
            self.failed[rest[0]] += int(rest[1])
        elif word == "started":
            self.has_started = True

    def is_harmed(self, after: float, until: float) -> bool:
        """Returns True if the member was stopped, resumed or killed between the two times."""
        return any(after <= each <= until for each in self.harmed)


@dataclass
class ShareVerdict:
    """The counts of a storm of share groups; `named` has the first violations."""

    records: int = 0
    deliveries: int = 0
    redelivered: int = 0  #: deliveries after the first one of a record
    accepted: int = 0
    rejected: int = 0
    archived: int = 0  #: after the limit of deliveries
    archived_unseen: int = 0  #: of them, records that no member has logged
    #: confirmed acceptances without effect: the record had ended, and was below the start offset
    late: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    # Violations:
    lost: int = 0
    unexplained: int = 0
    after_acceptance: int = 0
    ended_twice: int = 0
    not_stored: int = 0
    above_limit: int = 0
    after_archive: int = 0
    early_archive: int = 0
    named: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Returns True if there is no violation."""
        return not (
            self.lost
            or self.unexplained
            or self.after_acceptance
            or self.ended_twice
            or self.not_stored
            or self.above_limit
            or self.after_archive
            or self.early_archive
        )

    def name(self, what: str) -> None:
        """Keeps the text of a violation, if there are few."""
        if len(self.named) < _MOST_NAMED:
            self.named.append(what)


def state_log_of(records: Iterable[Record], group: str) -> dict[Key, dict[int, Sighting]]:
    """Returns the states that the records of `__share_group_state` have for a group of one topic.

    The delivery count of the state `PASSED` is 0.
    """
    found: dict[Key, dict[int, Sighting]] = {}
    starts: dict[int, int] = {}
    for record in records:
        key, value, _ = decode_coordinator_record(record, topic=STATE_TOPIC)
        if not (
            isinstance(key, ShareSnapshotKey | ShareUpdateKey)
            and isinstance(value, ShareSnapshotValue | ShareUpdateValue)
            and key.group_id == group
        ):
            continue
        at = record.timestamp / 1000
        for each in value.state_batches:
            state = Sighting(each.delivery_count, at)
            for offset in range(each.first_offset, each.last_offset + 1):
                states = found.setdefault((key.partition, offset), {})
                states.setdefault(each.delivery_state, state)
        for offset in range(starts.get(key.partition, 0), value.start_offset):
            states = found.setdefault((key.partition, offset), {})
            states.setdefault(PASSED, Sighting(0, at))
        starts[key.partition] = max(starts.get(key.partition, 0), value.start_offset)
    return found


def judge(
    members: Iterable[ShareMember],
    log: StateLog,
    ends: Mapping[int, int],
    limit: int,
    lock_s: float,
) -> ShareVerdict:
    """Checks the deliveries and the ends of all records.

    `ends` has the end offset of each partition, whose first offset is 0. A record is delivered
    after its end if its delivery count is above the stored one, or if a member that was not stopped
    logs it more than the duration `lock_s` of a lock and 5 s later. A broker confirms an
    acknowledgement of an offset below the start offset of the share partition without checking the
    lock, so that the confirmation may come from a member whose lock had ended.
    """
    members = list(members)
    verdict = ShareVerdict(records=sum(ends.values()))
    for each in members:
        verdict.failed += each.failed
    by_key: dict[Key, list[tuple[ShareMember, Sighting]]] = {}
    for member in members:
        for key, delivery in member.deliveries:
            by_key.setdefault(key, []).append((member, delivery))
    keys = [(partition, offset) for partition, end in ends.items() for offset in range(end)]
    for key in keys:
        states = log.get(key, {})
        _check_deliveries(verdict, key, by_key.get(key, []), states, limit, lock_s)
        counts = [delivery.deliveries for _, delivery in by_key.get(key, [])]
        _check_end(verdict, key, max(counts, default=0), members, states, limit)
    return verdict


def _check_deliveries(
    verdict: ShareVerdict,
    key: Key,
    deliveries: list[tuple[ShareMember, Sighting]],
    states: Mapping[int, Sighting],
    limit: int,
    lock_s: float,
) -> None:
    text = f"{key[0]}:{key[1]}"
    verdict.deliveries += len(deliveries)
    verdict.redelivered += max(0, len(deliveries) - 1)
    accepted, archived, passed = map(states.get, (ACKNOWLEDGED, ARCHIVED, PASSED))
    for member, delivery in deliveries:
        count, at = delivery
        what = f"{member.name} got {text} at {at:.3f} with the delivery count {count}"
        if count > limit:
            verdict.above_limit += 1
            verdict.name(f"{what}, above the limit {limit}")
        if accepted is not None and _is_later(member, delivery, accepted, lock_s):
            verdict.after_acceptance += 1
            verdict.name(f"{what}, after its acceptance: {accepted}")
        if archived is not None and _is_later(member, delivery, archived, lock_s):
            verdict.after_archive += 1
            verdict.name(f"{what}, after it was archived: {archived}")
        if accepted is archived and passed is not None:
            end = passed._replace(deliveries=limit)  # the true count is not known
            if _is_later(member, delivery, end, lock_s):
                verdict.after_acceptance += 1
                verdict.name(f"{what}, after the start offset had passed it: {passed}")


def _is_later(member: ShareMember, delivery: Sighting, end: Sighting, lock_s: float) -> bool:
    """Returns True if a broker has certainly acquired the record again after its `end`."""
    if delivery.deliveries > end.deliveries:
        return True
    is_late = delivery.at > end.at + lock_s + _SLACK_S
    return is_late and not member.is_harmed(end.at, delivery.at)


def _check_end(
    verdict: ShareVerdict,
    key: Key,
    highest: int,
    members: list[ShareMember],
    states: Mapping[int, Sighting],
    limit: int,
) -> None:
    """Checks the end of a record whose highest delivery count in the logs is `highest`."""
    text = f"{key[0]}:{key[1]}"
    is_accepted = any(key in member.accepting for member in members)
    is_rejected = any(key in member.rejecting for member in members)
    if ACKNOWLEDGED in states:
        verdict.accepted += 1
        if not is_accepted:
            verdict.unexplained += 1
            verdict.name(f"{text} is acknowledged, and no member has accepted it")
    elif ARCHIVED in states:
        if states[ARCHIVED].deliveries >= limit:
            verdict.archived += 1
            verdict.archived_unseen += not highest
        elif is_rejected:
            verdict.rejected += 1
        else:
            verdict.early_archive += 1
            verdict.name(f"{text} is archived after {states[ARCHIVED].deliveries} deliveries")
    elif PASSED in states:
        # The write that ended the record was a snapshot. A killed member logs no last delivery.
        is_archived = highest >= limit - 1 and not (is_accepted or is_rejected)
        verdict.accepted += is_accepted
        verdict.rejected += is_rejected and not is_accepted
        verdict.archived += is_archived
        if not (is_accepted or is_rejected or is_archived):
            verdict.unexplained += 1
            verdict.name(f"{text} has ended, and no member has accepted or rejected it")
    else:
        verdict.lost += 1
        verdict.name(f"{text} is neither accepted nor archived: {dict(states)}")
    if ACKNOWLEDGED in states and ARCHIVED in states:
        verdict.ended_twice += 1
        verdict.name(f"{text} is acknowledged and archived: {dict(states)}")
    confirmed = [each for member in members for each in member.accepted.get(key, ())]
    archived = states.get(ARCHIVED)
    if ACKNOWLEDGED in states or (PASSED in states and archived is None):
        verdict.late += max(0, len(confirmed) - 1)
        return
    late = [each for each in confirmed if archived is not None and each.at >= archived.at]
    verdict.late += len(late)
    if len(late) < len(confirmed):
        verdict.not_stored += 1
        verdict.name(f"the acceptance of {text} is confirmed, and not stored: {dict(states)}")
