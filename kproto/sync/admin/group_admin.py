"""`GroupAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/group_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...client.admin.admin import Admin
from ...client.admin.groups import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    GroupListing,
    MemberToRemove,
)
from ...client.admin.share_groups import ShareGroupDescription
from ...client.admin.streams_groups import StreamsGroupDescription
from ..wrapper import Wrapper

__all__ = ["GroupAdmin"]


class GroupAdmin(Wrapper[Admin]):
    """Lists, describes and deletes groups, and removes their members."""

    __slots__ = ()

    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        protocol_types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """Returns the groups of all brokers, sorted by id.

        `states` are states such as "Stable" and "Empty" (Kafka 2.6, KIP-518), `types` are
        "Classic", "Consumer", "Share" and "Streams" (Kafka 3.8, KIP-1043); without a filter all
        groups are returned. Raises AdminError by node id; its `results` have the groups of the
        other brokers.
        """
        return self._call(
            self._wrapped.list_groups,
            states=states,
            types=types,
            protocol_types=protocol_types,
            timeout_ms=timeout_ms,
        )

    def list_consumer_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """Returns the groups of consumers, and groups that only commit offsets; see `list_groups`.

        Kafka calls this operation deprecated since 4.1, in favor of `list_groups`.
        """
        return self._call(
            self._wrapped.list_consumer_groups, states=states, types=types, timeout_ms=timeout_ms
        )

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, ConsumerGroupDescription]:
        """Returns groups of consumers with their members, of the classic and consumer protocol.

        Raises AdminError by group id, with GROUP_ID_NOT_FOUND for a group that does not exist, and
        INCONSISTENT_GROUP_PROTOCOL for a classic group of another protocol type.
        """
        return self._call(
            self._wrapped.describe_consumer_groups,
            group_ids,
            include_authorized_operations=include_authorized_operations,
            timeout_ms=timeout_ms,
        )

    def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, ClassicGroupDescription]:
        """Returns classic groups of any protocol type, such as those of Kafka Connect.

        Raises AdminError by group id, with GROUP_ID_NOT_FOUND for a group that does not exist or is
        no classic group.
        """
        return self._call(
            self._wrapped.describe_classic_groups,
            group_ids,
            include_authorized_operations=include_authorized_operations,
            timeout_ms=timeout_ms,
        )

    def describe_share_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, ShareGroupDescription]:
        """Returns share groups with their members (KIP-932). Raises AdminError by group id."""
        return self._call(
            self._wrapped.describe_share_groups,
            group_ids,
            include_authorized_operations=include_authorized_operations,
            timeout_ms=timeout_ms,
        )

    def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, StreamsGroupDescription]:
        """Returns streams groups with members and topology (KIP-1071).

        `include_topology_description` also requests the stored description of the topology (Kafka
        4.4). Raises AdminError by group id.
        """
        return self._call(
            self._wrapped.describe_streams_groups,
            group_ids,
            include_authorized_operations=include_authorized_operations,
            include_topology_description=include_topology_description,
            timeout_ms=timeout_ms,
        )

    def delete_consumer_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes groups with their committed offsets.

        Raises AdminError by group id, with NON_EMPTY_GROUP for a group that has members. If an
        attempt was not answered, and the retry does not find the group, it is in `unknown`.
        """
        self._call(self._wrapped.delete_consumer_groups, group_ids, timeout_ms=timeout_ms)

    def delete_share_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes share groups; see `delete_consumer_groups`.

        The request would delete a group of any kind, so the call describes the groups first: a
        group of another kind stays, and its error is GROUP_ID_NOT_FOUND.
        """
        self._call(self._wrapped.delete_share_groups, group_ids, timeout_ms=timeout_ms)

    def delete_streams_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes streams groups; see `delete_consumer_groups`.

        The internal topics of the application stay.
        """
        self._call(self._wrapped.delete_streams_groups, group_ids, timeout_ms=timeout_ms)

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        members: Iterable[str | MemberToRemove] | None = None,
        *,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> list[MemberToRemove]:
        """Removes members from a group, by default all; returns the removed members.

        A member is named by its instance id (KIP-345), or by a `MemberToRemove`. A running member
        joins the group again. `reason` is for the log of the broker (Kafka 3.2, KIP-800). Raises
        AdminError by member.
        """
        return self._call(
            self._wrapped.remove_members_from_consumer_group,
            group_id,
            members,
            reason=reason,
            timeout_ms=timeout_ms,
        )
