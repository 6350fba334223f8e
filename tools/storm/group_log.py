"""Reads a group's records in `__consumer_offsets`: commits, and changes of the group protocol.

Also finds the members that a change leaves behind. The topic has all records of a group in one
partition, in order.
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
    "GroupRecord",
    "commits_of",
    "conversions_of",
    "left_behind",
    "read_group_log",
    "written_of",
]

OFFSETS_TOPIC: Final = "__consumer_offsets"

#: The key classes of the record that describes a group, one for each group protocol.
_OF_A_GROUP: Final = (GroupMetadataKey, ConsumerGroupMetadataKey)


class GroupRecord(NamedTuple):
    """A record of the group, with its offset and its append time in seconds."""

    offset: int
    at: float
    record: CoordinatorRecord


@dataclass
class Conversions:
    """The number of times that the group changed its protocol (KIP-848), by direction."""

    to_consumer: int = 0
    to_classic: int = 0
    while_empty: int = 0  #: changes without members, which convert no member

    @property
    def of_members(self) -> int:
        """Returns the number of protocol changes while the group had members."""
        return self.to_consumer + self.to_classic


async def read_group_log(client: kproto.Client, group: str) -> list[GroupRecord]:
    """Returns all records of the group, in order."""
    records = [record async for record in client.consumer(OFFSETS_TOPIC, stop_at_end=True)]
    return written_of(records, group)


def written_of(records: Iterable[Record], group: str) -> list[GroupRecord]:
    """Returns the group's records among the records of `__consumer_offsets`."""
    found = []
    for record in records:
        read = decode_coordinator_record(record, topic=OFFSETS_TOPIC)
        if isinstance(read, CoordinatorRecord) and _group_of(read) == group:
            found.append(GroupRecord(record.offset, record.timestamp / 1000, read))
    return found


def _group_of(record: CoordinatorRecord) -> str | None:
    """Returns the group id in a record's key (`group` or `group_id`); None if there is none."""
    key = record.key
    return getattr(key, "group", None) or getattr(key, "group_id", None)


def commits_of(written: Iterable[GroupRecord], topic: str) -> Iterator[Commit]:
    """Yields the commits for a topic, in the order of the records in `written`."""
    for _, _, (key, value, _) in written:
        if not (isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue)):
            continue
        if key.topic == topic:
            yield Commit(key.partition, value.offset, value.commit_timestamp / 1000)


def conversions_of(written: Iterable[GroupRecord], until: float = float("inf")) -> Conversions:
    """Counts the changes of the group's protocol, up to the time `until`.

    The record that describes the group has a different key type in each protocol, so a new key type
    means that the protocol changed. A change converted members if the classic record next to the
    change lists members: for a change to the consumer protocol, the last classic record before the
    change; for a change to the classic protocol, the first classic record after the change. A
    change that converted no members is counted in `while_empty`.
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


def left_behind(written: Iterable[GroupRecord]) -> dict[str, list[float]]:
    """Returns, by client id, the times at which a conversion to classic left a member behind.

    The classic generation is the group epoch at the conversion. A member that has not reached this
    epoch is in an old generation: the broker refuses its commits (ILLEGAL_GENERATION), although its
    partitions are not reassigned yet.
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
