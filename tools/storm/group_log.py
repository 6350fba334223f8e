"""Reads the broker's log of a group: commits, changes of its protocol, and members left behind.

Reads `__consumer_offsets`, which has the records of a group in one partition, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import kproto
from kproto.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kproto.records import Record
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record

from .sightings import Commit

__all__ = [
    "OFFSETS_TOPIC",
    "Conversions",
    "Written",
    "commits_of",
    "conversions_of",
    "left_behind",
    "read_group_log",
    "written_of",
]

OFFSETS_TOPIC: Final = "__consumer_offsets"

#: The keys of the record that each group has, one for each protocol.
_OF_A_GROUP: Final = (GroupMetadataKey, ConsumerGroupMetadataKey)


class Written(NamedTuple):
    """A record of the group, with its offset and its append time (s)."""

    offset: int
    at: float
    record: CoordinatorRecord


@dataclass
class Conversions:
    """How often the protocol of the group changed with members in it (KIP-848's migration)."""

    to_consumer: int = 0
    to_classic: int = 0
    while_empty: int = 0  #: without members: no member was converted

    @property
    def of_members(self) -> int:
        """Returns how often it changed with members."""
        return self.to_consumer + self.to_classic


async def read_group_log(client: kproto.Client, group: str) -> list[Written]:
    """Returns all records of the group, in order."""
    records = [record async for record in client.consumer(OFFSETS_TOPIC, stop_at_end=True)]
    return written_of(records, group)


def written_of(records: Iterable[Record], group: str) -> list[Written]:
    """Returns the records of the group among those of `__consumer_offsets`."""
    found = []
    for record in records:
        read = decode_coordinator_record(record, topic=OFFSETS_TOPIC)
        if isinstance(read, CoordinatorRecord) and _group_of(read) == group:
            found.append(Written(record.offset, record.timestamp / 1000, read))
    return found


def _group_of(record: CoordinatorRecord) -> str | None:
    """Returns the group of a key, which has one of two field names."""
    key = record.key
    return getattr(key, "group", None) or getattr(key, "group_id", None)


def commits_of(written: Iterable[Written], topic: str) -> Iterator[Commit]:
    """Yields the commits of a topic, in order."""
    for _, _, (key, value, _) in written:
        if not (isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue)):
            continue
        if key.topic == topic:
            yield Commit(key.partition, value.offset, value.commit_timestamp / 1000)


def conversions_of(written: Iterable[Written], until: float = float("inf")) -> Conversions:
    """Returns how often the group was converted, up to that time.

    A classic group is one record, which lists its members; a group of the consumer protocol has its
    own kinds of records. A conversion replaces one kind by the other: a classic group that starts
    with members was converted, because a new one starts without.
    """
    found = Conversions()
    kind: type | None = None
    classic_members = 0
    for _, at, (key, value, _) in written:
        if at > until or value is None or not isinstance(key, _OF_A_GROUP):
            continue
        before, kind = kind, type(key)
        if isinstance(value, GroupMetadataValue):
            classic_members = len(value.members)
        if before is None or kind is before:
            continue
        if not classic_members:
            found.while_empty += 1
        elif kind is GroupMetadataKey:
            found.to_classic += 1
        else:
            found.to_consumer += 1
    return found


def left_behind(written: Iterable[Written]) -> dict[str, list[float]]:
    """Returns by client id when members were left behind in a group that became a classic one.

    Its generation is the epoch of the group then. A member that had not reached that epoch is in an
    old generation, and the broker refuses its commits (ILLEGAL_GENERATION), although its partitions
    are not reassigned yet.
    """
    found: dict[str, list[float]] = {}
    epochs: dict[str, int] = {}
    is_classic = True
    for _, at, (key, value, _) in written:
        match key, value:
            case (
                ConsumerGroupCurrentMemberAssignmentKey(),
                ConsumerGroupCurrentMemberAssignmentValue(),
            ):
                epochs[key.member_id] = value.member_epoch
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                is_classic = False
            case GroupMetadataKey(), GroupMetadataValue():
                for member in () if is_classic else value.members:
                    if epochs.get(member.member_id) != value.generation:
                        found.setdefault(member.client_id, []).append(at)
                is_classic = True
    return found
