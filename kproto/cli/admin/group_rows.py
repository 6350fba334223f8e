"""Reads the rows of `kproto groups describe` and `kproto groups lag`, for groups of each type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from ...client import Client, CommittedOffset, TopicPartition
from ...client.admin import (
    ConsumerGroupDescription,
    ListedOffset,
    MemberDescription,
    ShareGroupDescription,
    SharePartitionOffset,
    StreamsGroupDescription,
    StreamsTasks,
)
from .group_types import SHARE, STREAMS, GroupTypes
from .running import PartialResults

__all__ = ["Row", "described_rows", "lag_columns", "lag_notes", "lag_rows"]

#: A row of a table; the keys are the columns.
Row = dict[str, Any]

_MEMBER_COLUMNS: Final = ("member", "instance", "client", "host", "partitions", "tasks")


class _Member(Protocol):
    """The fields that the members of groups of each type have."""

    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def host(self) -> str: ...


class _Group(Protocol):
    """The fields that groups of each type have."""

    @property
    def group_id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def assignor(self) -> str | None: ...
    @property
    def coordinator(self) -> int | None: ...
    @property
    def members(self) -> Sequence[_Member]: ...


async def described_rows(client: Client, groups: GroupTypes, partial: PartialResults) -> list[Row]:
    """Returns a row for each member, and one for a group without members.

    The rows of streams groups have the tasks of their members, all others the partitions.
    """
    admin = client.admin
    rows: list[Row] = []
    if groups.of_consumers:
        consumers = await partial.each_of(admin.describe_consumer_groups(groups.of_consumers))
        rows += [row for group in consumers.values() for row in _consumer_rows(group)]
    if groups.share:
        share = await partial.each_of(admin.describe_share_groups(groups.share))
        rows += [row for group in share.values() for row in _share_rows(group)]
    if groups.streams:
        streams = await partial.each_of(admin.describe_streams_groups(groups.streams))
        rows += [row for group in streams.values() for row in _streams_rows(group)]
    return rows


def _consumer_rows(group: ConsumerGroupDescription) -> list[Row]:
    more = [
        {"instance": each.instance_id, "partitions": _texts(each.assignment)}
        for each in group.members
    ]
    return _member_rows(group, group.type, more)


def _share_rows(group: ShareGroupDescription) -> list[Row]:
    more = [{"partitions": _texts(each.assignment)} for each in group.members]
    return _member_rows(group, SHARE, more)


def _streams_rows(group: StreamsGroupDescription) -> list[Row]:
    more = [
        {"instance": each.instance_id, "tasks": task_texts(each.assignment)}
        for each in group.members
    ]
    return _member_rows(group, STREAMS, more)


def _member_rows(group: _Group, kind: str, more: list[Row]) -> list[Row]:
    """Returns a row for each member; `more` are the columns that only groups of `kind` have."""
    own: Row = {
        "group": group.group_id,
        "state": group.state,
        "type": kind,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        **dict.fromkeys(_MEMBER_COLUMNS),
    }
    return [
        {**own, "member": each.member_id, "client": each.client_id, "host": each.host, **its}
        for each, its in zip(group.members, more, strict=True)
    ] or [own]


def _texts(tps: Iterable[TopicPartition]) -> list[str]:
    return [f"{topic}:{number}" for topic, number in sorted(tps)]


def task_texts(tasks: StreamsTasks) -> list[str]:
    """Returns tasks as Kafka Streams names them, such as `active 0_1` and `standby 1_0`."""
    return [
        f"{kind} {subtopology}_{number}"
        for kind, its in tasks._asdict().items()
        for subtopology, number in sorted(its)
    ]


# Lag


async def lag_rows(client: Client, groups: GroupTypes, partial: PartialResults) -> list[Row]:
    """Returns a row for each partition with an offset or an owner.

    Adds the error of a group that does not exist to `partial`.
    """
    rows: list[Row] = []
    members: dict[str, Sequence[MemberDescription]] = dict.fromkeys(groups.streams, ())
    if groups.of_consumers:
        call = client.admin.describe_consumer_groups(groups.of_consumers)
        consumers = await partial.each_of(call)
        members = {name: group.members for name, group in consumers.items()} | members
    if members:
        rows += await _consumer_lag(client, members, partial)
    if groups.share:
        call_share = client.admin.describe_share_groups(groups.share)
        rows += await _share_lag(client, await partial.each_of(call_share), partial)
    return rows


def lag_columns(rows: Iterable[Row]) -> tuple[str, ...]:
    """Returns the columns of lag: with `start_offset` if there is a share group in `rows`.

    `committed` is left out if all groups are share groups, which commit no offsets.
    """
    kinds = {row["is_share"] for row in rows}
    offsets: tuple[str, ...] = () if kinds == {True} else ("committed",)
    if True in kinds:
        offsets = (*offsets, "start_offset")
    return ("group", "topic", "partition", *offsets, "log_end", "lag", "client", "host", "member")


async def _consumer_lag(
    client: Client,
    members: Mapping[str, Sequence[MemberDescription]],
    partial: PartialResults,
) -> list[Row]:
    """Returns the rows of groups of consumers, and of streams groups, which have no members here.

    Lists the ends of each log once for all groups. A row has no log end and no lag if the log has
    no leader; `partial` then has the error.
    """
    admin = client.admin
    committed = await partial.each_of(admin.list_consumer_group_offsets(dict.fromkeys(members)))
    owners = {
        name: {tp: member for member in members[name] for tp in member.assignment}
        for name in committed
    }
    tps = {tp for name, offsets in committed.items() for tp in [*offsets, *owners[name]]}
    starts = await partial.each_of(admin.list_offsets(dict.fromkeys(sorted(tps), "earliest")))
    ends = await partial.each_of(admin.list_offsets(dict.fromkeys(starts, "latest")))
    rows = []
    for name in members:
        offsets = committed.get(name, {})
        for tp in sorted({*offsets, *owners.get(name, {})}):
            owner = owners[name].get(tp)
            rows.append(
                {
                    **_partition(name, tp),
                    **lag_cells(offsets.get(tp), starts.get(tp), ends.get(tp)),
                    "client": owner and owner.client_id,
                    "host": owner and owner.host,
                    "member": owner and owner.member_id,
                }
            )
    return rows


def lag_cells(
    committed: CommittedOffset | None, start: ListedOffset | None, end: ListedOffset | None
) -> Row:
    """Returns the columns of offsets and lag; `start` and `end` of the log are None if unknown.

    The lag counts from the log start if the committed offset is before it, and is negative if that
    is beyond the log end, as Kafka prints.
    """
    offset = None if committed is None else committed.offset
    cells: Row = {"committed": offset, "log_start": None, "log_end": None, "lag": None}
    if start is None or end is None:
        return cells
    lag = None if offset is None else end.offset - max(offset, start.offset)
    return {**cells, "log_start": start.offset, "log_end": end.offset, "lag": lag}


def lag_notes(rows: Iterable[Row]) -> list[str]:
    """Returns words for each committed offset outside the log, which no member can fetch."""
    notes = []
    for row in rows:
        committed, start, end = row["committed"], row.get("log_start"), row["log_end"]
        if committed is None or start is None:
            continue
        where = f"group {row['group']}, {row['topic']}:{row['partition']}"
        if committed > end:
            notes.append(
                f"{where}: the committed offset {committed} is beyond the log end {end}, as after "
                "the topic was deleted and created again; kproto groups reset sets another"
            )
        elif committed < start:
            notes.append(
                f"{where}: the committed offset {committed} is before the log start {start}: the "
                "records between them are deleted, and the lag counts from the log start"
            )
    return notes


def _partition(group: str, tp: TopicPartition, *, is_share: bool = False) -> Row:
    return {
        "group": group,
        "topic": tp[0],
        "partition": tp[1],
        "committed": None,
        "start_offset": None,
        "is_share": is_share,
    }


async def _share_lag(
    client: Client, described: Mapping[str, ShareGroupDescription], partial: PartialResults
) -> list[Row]:
    listed: Mapping[str, Mapping[TopicPartition, SharePartitionOffset | None]] = {}
    if described:
        listed = await partial.each_of(
            client.admin.list_share_group_offsets(dict.fromkeys(described))
        )
    rows = []
    for name, group in described.items():
        offsets = listed.get(name, {})
        owners: dict[TopicPartition, list[Row]] = {}
        for member in group.members:
            its = {"client": member.client_id, "host": member.host, "member": member.member_id}
            for tp in member.assignment:
                owners.setdefault(tp, []).append(its)
        tps = sorted({*offsets, *owners})
        ends = await client.list_offsets(dict.fromkeys(tps, "latest")) if tps else {}
        for tp in tps:
            offset = offsets.get(tp)
            rows.append(
                {
                    **_partition(name, tp, is_share=True),
                    "start_offset": offset and offset.start_offset,
                    "log_end": ends[tp],
                    "lag": offset and offset.lag,
                    **_joined(owners.get(tp, [])),
                }
            )
    return rows


def _joined(owners: list[Row]) -> Row:
    """Returns the columns of a partition's owners; several members of a share group may own it."""
    return {
        name: ",".join(dict.fromkeys(owner[name] for owner in owners)) or None
        for name in ("client", "host", "member")
    }
