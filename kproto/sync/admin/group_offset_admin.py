"""`GroupOffsetAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/group_offset_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...client.admin.group_offset_admin import GroupsAndPartitions, _Offsets
from ...client.admin.group_offsets import PartitionLag, SharePartitionOffset
from ...client.commits.offset_requests import CommittedOffset
from ...client.metadata.cluster import TopicPartition
from .offset_admin import OffsetAdmin

__all__ = ["GroupOffsetAdmin"]


class GroupOffsetAdmin(OffsetAdmin):
    """Lists, alters and deletes the offsets of groups."""

    __slots__ = ()

    def list_consumer_group_offsets(
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
        return self._call(
            self._wrapped.list_consumer_group_offsets,
            groups,
            require_stable=require_stable,
            timeout_ms=timeout_ms,
        )

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits offsets for a group without members (KIP-396).

        Raises AdminError by partition, with UNKNOWN_MEMBER_ID if the group has members.
        """
        self._call(
            self._wrapped.alter_consumer_group_offsets, group_id, offsets, timeout_ms=timeout_ms
        )

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes committed offsets of a group (KIP-496).

        Raises AdminError by partition, with GROUP_SUBSCRIBED_TO_TOPIC for a topic to which a member
        subscribes.
        """
        self._call(
            self._wrapped.delete_consumer_group_offsets, group_id, partitions, timeout_ms=timeout_ms
        )

    def consumer_group_lag(
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
        return self._call(
            self._wrapped.consumer_group_lag,
            group_id,
            partitions,
            read_committed=read_committed,
            timeout_ms=timeout_ms,
        )

    def list_streams_group_offsets(
        self,
        groups: GroupsAndPartitions,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, _Offsets]:
        """Returns the committed offsets of streams groups; see `list_consumer_group_offsets`."""
        return self._call(
            self._wrapped.list_streams_group_offsets,
            groups,
            require_stable=require_stable,
            timeout_ms=timeout_ms,
        )

    def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits offsets for a streams group; see `alter_consumer_group_offsets`."""
        self._call(
            self._wrapped.alter_streams_group_offsets, group_id, offsets, timeout_ms=timeout_ms
        )

    def delete_streams_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes offsets of a streams group; see `delete_consumer_group_offsets`."""
        self._call(
            self._wrapped.delete_streams_group_offsets, group_id, partitions, timeout_ms=timeout_ms
        )

    def list_share_group_offsets(
        self, groups: GroupsAndPartitions, *, timeout_ms: int | None = None
    ) -> dict[str, dict[TopicPartition, SharePartitionOffset | None]]:
        """Returns the start offsets of share groups, with their lag (KIP-932, KIP-1226).

        `groups` is as in `list_consumer_group_offsets`. Raises AdminError by group id.
        """
        return self._call(self._wrapped.list_share_group_offsets, groups, timeout_ms=timeout_ms)

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> None:
        """Sets the start offsets of a share group without members. Raises AdminError by partition.

        The error is NON_EMPTY_GROUP if the group has members.
        """
        self._call(
            self._wrapped.alter_share_group_offsets, group_id, offsets, timeout_ms=timeout_ms
        )

    def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes the offsets of a share group for whole topics. Raises AdminError by topic."""
        self._call(
            self._wrapped.delete_share_group_offsets, group_id, topics, timeout_ms=timeout_ms
        )
