"""The calls of `Admin` for the offsets of groups, and their lag."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ...wire.errors import ConfigurationError, KprotoError, UnsupportedVersionError
from ...wire.uuid import Uuid
from ..commits.offset_requests import CommittedOffset, checked_commits
from ..core.gather import gather_all
from ..metadata.cluster import TopicPartition
from .arguments import checked_map, checked_names, checked_partitions
from .errors import AdminError
from .group_offsets import (
    NamedOrId,
    PartitionLag,
    Partitions,
    SharePartitionOffset,
    alter_offsets_call,
    alter_share_offsets_call,
    delete_offsets_call,
    delete_share_offsets_call,
    lag_of,
    list_offsets_call,
    list_share_offsets_call,
)
from .offset_admin import OffsetAdmin
from .offsets import ListedOffset, OffsetSpec
from .share_groups import describe_share_groups_call

__all__ = ["GroupOffsetAdmin", "GroupsAndPartitions"]

#: Group ids, or the partitions to list by group id; None for all partitions with offsets.
GroupsAndPartitions: TypeAlias = Iterable[str] | Mapping[str, Iterable[TopicPartition] | None]

_Offsets: TypeAlias = dict[TopicPartition, CommittedOffset | None]


class GroupOffsetAdmin(OffsetAdmin):
    """Lists, alters and deletes the offsets of groups."""

    async def list_consumer_group_offsets(
        self,
        groups: GroupsAndPartitions,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, _Offsets]:
        """Returns the committed offsets of groups, by group id and partition.

        `groups` are group ids, or a mapping of group ids to the partitions to list. A requested
        partition without a committed offset has None. Partitions of deleted topics are left out if
        the coordinator names topics by id (Kafka 4.2). With `require_stable` the call waits for
        open transactions that commit offsets (KIP-447). Raises AdminError by group id; the error of
        a group is another AdminError by partition if only some of its partitions failed.
        """
        wanted = _checked_groups(groups)
        call = list_offsets_call(wanted, require_stable=require_stable)

        async def send(ids: Sequence[str], left_ms: int) -> dict[str, _Offsets | KprotoError]:
            found = await self._requester.attempt(call, ids, left_ms)
            return await self._with_topic_names(found)

        return await self._requester.run(call, send, wanted, timeout_ms)

    async def _with_topic_names(
        self, found: Mapping[str, dict[NamedOrId, CommittedOffset | None] | KprotoError]
    ) -> dict[str, _Offsets | KprotoError]:
        """Replaces the topic ids of OffsetFetch v10 by names; drops deleted topics."""
        view = self._requester.view
        offsets = [each for each in found.values() if not isinstance(each, KprotoError)]
        ids = {topic for each in offsets for topic, _ in each if isinstance(topic, Uuid)}
        names = {each: view.cluster.topic_name(each) for each in ids}
        missing = [each for each, name in names.items() if name is None]
        if missing:
            for topic in await view.refresh_ids(missing):
                names[topic.topic_id] = None if topic.error_code else topic.name
        named: dict[str, _Offsets | KprotoError] = {}
        for group_id, its in found.items():
            if isinstance(its, KprotoError):
                named[group_id] = its
                continue
            named[group_id] = {
                (name, partition): offset
                for (topic, partition), offset in its.items()
                if (name := names.get(topic) if isinstance(topic, Uuid) else topic)
            }
        return named

    async def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits offsets for a group without members (KIP-396).

        Raises AdminError by partition, with UNKNOWN_MEMBER_ID if the group has members.
        """
        commits = checked_commits(checked_map("offsets", offsets))
        await self._requester.by_part(alter_offsets_call(group_id, commits), commits, timeout_ms)

    async def delete_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Deletes committed offsets of a group (KIP-496).

        Raises AdminError by partition, with GROUP_SUBSCRIBED_TO_TOPIC for a topic to which a member
        subscribes.
        """
        tps = checked_partitions("partitions", partitions)
        await self._requester.by_part(delete_offsets_call(group_id), tps, timeout_ms)

    async def consumer_group_lag(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PartitionLag]:
        """Returns the lag of a group: its committed offsets, and the ends of the logs.

        Without `partitions`, returns the partitions for which the group has committed offsets. With
        `read_committed` the log end is the last stable offset. Raises AdminError by partition, with
        the lag of the others in `results`, or by group id if the offsets of the group cannot be
        listed, and ConfigurationError for a share group, which commits no offsets:
        `list_share_group_offsets` has its lag.
        """
        tps = None if partitions is None else checked_partitions("partitions", partitions)
        found = await self.list_consumer_group_offsets({group_id: tps}, timeout_ms=timeout_ms)
        committed = found[group_id]
        if not any(committed.values()) and await self._is_share_group(group_id, timeout_ms):
            raise ConfigurationError(
                f"{group_id!r} is a share group, which commits no offsets: call "
                "list_share_group_offsets, whose results have the lag"
            )
        starts: dict[TopicPartition, OffsetSpec] = dict.fromkeys(committed, "earliest")
        ends: dict[TopicPartition, OffsetSpec] = dict.fromkeys(committed, "latest")
        (log_starts, start_errors), (log_ends, end_errors) = await gather_all(
            [
                _outcomes(self.list_offsets(starts, timeout_ms=timeout_ms)),
                _outcomes(
                    self.list_offsets(ends, read_committed=read_committed, timeout_ms=timeout_ms)
                ),
            ]
        )
        lags = {
            tp: lag_of(its, log_starts[tp].offset, log_ends[tp].offset)
            for tp, its in committed.items()
            if tp in log_starts and tp in log_ends
        }
        errors = {**start_errors, **end_errors}
        if errors:
            raise AdminError(f"listing the lag of group {group_id!r}", lags, errors)
        return lags

    async def _is_share_group(self, group_id: str, timeout_ms: int | None) -> bool:
        """Returns True for a share group; False if brokers have no share groups (before 4.1)."""
        call = describe_share_groups_call(operations=False)
        try:
            await self._requester.by_part(call, [group_id], timeout_ms)
        except (AdminError, UnsupportedVersionError):
            return False
        return True

    # Streams groups: their offsets are those of a group of consumers.

    async def list_streams_group_offsets(
        self,
        groups: GroupsAndPartitions,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, _Offsets]:
        """Returns the committed offsets of streams groups; see `list_consumer_group_offsets`."""
        return await self.list_consumer_group_offsets(
            groups, require_stable=require_stable, timeout_ms=timeout_ms
        )

    async def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits offsets for a streams group; see `alter_consumer_group_offsets`."""
        await self.alter_consumer_group_offsets(group_id, offsets, timeout_ms=timeout_ms)

    async def delete_streams_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Deletes offsets of a streams group; see `delete_consumer_group_offsets`."""
        await self.delete_consumer_group_offsets(group_id, partitions, timeout_ms=timeout_ms)

    # Share groups

    async def list_share_group_offsets(
        self, groups: GroupsAndPartitions, *, timeout_ms: int | None = None
    ) -> dict[str, dict[TopicPartition, SharePartitionOffset | None]]:
        """Returns the start offsets of share groups, with their lag (KIP-932, KIP-1226).

        `groups` is as in `list_consumer_group_offsets`. Raises AdminError by group id.
        """
        wanted = _checked_groups(groups)
        return await self._requester.by_part(list_share_offsets_call(wanted), wanted, timeout_ms)

    async def alter_share_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Sets the start offsets of a share group without members. Raises AdminError by partition.

        The error is NON_EMPTY_GROUP if the group has members.
        """
        checked_commits(checked_map("offsets", offsets))
        call = alter_share_offsets_call(group_id, dict(offsets))
        await self._requester.by_part(call, offsets, timeout_ms)

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes the offsets of a share group for whole topics. Raises AdminError by topic."""
        names = checked_names("topics", topics)
        await self._requester.by_part(delete_share_offsets_call(group_id), names, timeout_ms)


async def _outcomes(
    listing: Awaitable[dict[TopicPartition, ListedOffset]],
) -> tuple[Mapping[TopicPartition, ListedOffset], Mapping[TopicPartition, KprotoError]]:
    """Returns the listed offsets, and the errors of the other partitions."""
    try:
        return await listing, {}
    except AdminError as error:
        return error.results, error.errors


def _checked_groups(groups: GroupsAndPartitions) -> dict[str, Partitions]:
    if not isinstance(groups, Mapping):
        return dict.fromkeys(checked_names("groups", groups))
    checked_names("groups", groups)
    return {
        group_id: None if tps is None else checked_partitions(f"the partitions of {group_id}", tps)
        for group_id, tps in groups.items()
    }
