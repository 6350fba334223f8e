"""The calls of `Admin` for groups of every kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...wire.errors import KprotoError, UnsupportedVersionError
from .area import AdminArea
from .arguments import checked_list, checked_names
from .groups import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    GroupListing,
    MemberToRemove,
    consumer_of_classic,
    delete_groups_call,
    describe_classic_groups_call,
    describe_consumer_groups_call,
    is_of_other_kind,
    list_groups_request,
    listed_groups,
    matching_groups,
    remove_members_call,
)
from .share_groups import ShareGroupDescription, describe_share_groups_call
from .streams_groups import StreamsGroupDescription, describe_streams_groups_call

__all__ = ["GroupAdmin"]

#: The types of groups with consumers; "" before Kafka 3.8.
_OF_CONSUMERS: Final = ("", "classic", "consumer")


class GroupAdmin(AdminArea):
    """Lists, describes and deletes groups, and removes their members."""

    async def list_groups(
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
        wanted = checked_names("protocol_types", protocol_types)
        request = list_groups_request(
            checked_names("states", states), checked_names("types", types)
        )
        found = await self._requester.by_broker(
            "listing groups", lambda node: request, listed_groups, timeout_ms=timeout_ms
        )
        return matching_groups(found.values(), wanted)

    async def list_consumer_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """Returns the groups of consumers, and groups that only commit offsets; see `list_groups`.

        Kafka calls this operation deprecated since 4.1, in favor of `list_groups`.
        """
        found = await self.list_groups(
            states=states, types=types, protocol_types=("consumer", ""), timeout_ms=timeout_ms
        )
        return [each for each in found if each.type.lower() in _OF_CONSUMERS]

    async def describe_consumer_groups(
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
        call = describe_consumer_groups_call(operations=include_authorized_operations)
        classic = describe_classic_groups_call(operations=include_authorized_operations)

        async def send(
            ids: Sequence[str], left_ms: int
        ) -> dict[str, ConsumerGroupDescription | KprotoError]:
            found = await self._requester.attempt(call, ids, left_ms)
            others = [
                each
                for each, it in found.items()
                if isinstance(it, UnsupportedVersionError) or is_of_other_kind(it)
            ]
            if others:
                for group_id, group in (
                    await self._requester.attempt(classic, others, left_ms)
                ).items():
                    if isinstance(group, ClassicGroupDescription):
                        found[group_id] = consumer_of_classic(group)
                    else:
                        found[group_id] = group
                # A group that was created between the two requests is no classic group.
                again = [each for each in others if is_of_other_kind(found[each])]
                if again:
                    for group_id, its in (
                        await self._requester.attempt(call, again, left_ms)
                    ).items():
                        if isinstance(its, ConsumerGroupDescription):
                            found[group_id] = its
            return found

        ids = checked_names("group_ids", group_ids)
        return await self._requester.run(call, send, ids, timeout_ms)

    async def describe_classic_groups(
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
        call = describe_classic_groups_call(operations=include_authorized_operations)
        ids = checked_names("group_ids", group_ids)
        return await self._requester.by_part(call, ids, timeout_ms)

    async def describe_share_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, ShareGroupDescription]:
        """Returns share groups with their members (KIP-932). Raises AdminError by group id."""
        call = describe_share_groups_call(operations=include_authorized_operations)
        ids = checked_names("group_ids", group_ids)
        return await self._requester.by_part(call, ids, timeout_ms)

    async def describe_streams_groups(
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
        call = describe_streams_groups_call(
            operations=include_authorized_operations,
            topology_description=include_topology_description,
        )
        ids = checked_names("group_ids", group_ids)
        return await self._requester.by_part(call, ids, timeout_ms)

    async def delete_consumer_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes groups with their committed offsets.

        Raises AdminError by group id, with NON_EMPTY_GROUP for a group that has members. If an
        attempt was not answered, and the retry does not find the group, it is in `unknown`.
        """
        ids = checked_names("group_ids", group_ids)
        await self._requester.by_part(delete_groups_call(), ids, timeout_ms)

    async def delete_share_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes share groups; see `delete_consumer_groups`.

        The request would delete a group of any kind, so the call describes the groups first: a
        group of another kind stays, and its error is GROUP_ID_NOT_FOUND.
        """
        described = describe_share_groups_call(operations=False)
        call = delete_groups_call()

        async def send(ids: Sequence[str], left_ms: int) -> dict[str, KprotoError | None]:
            found = await self._requester.attempt(described, ids, left_ms)
            outcomes = {each: it for each, it in found.items() if isinstance(it, KprotoError)}
            shared = [each for each in ids if each not in outcomes]
            if not shared:
                return {**outcomes}
            return outcomes | await self._requester.attempt(call, shared, left_ms)

        ids = checked_names("group_ids", group_ids)
        await self._requester.run(call, send, ids, timeout_ms)

    async def delete_streams_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes streams groups; see `delete_consumer_groups`.

        The internal topics of the application stay.
        """
        await self.delete_consumer_groups(group_ids, timeout_ms=timeout_ms)

    async def remove_members_from_consumer_group(
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
        if members is None:
            described = await self.describe_consumer_groups([group_id], timeout_ms=timeout_ms)
            wanted = [
                MemberToRemove(each.instance_id, each.member_id)
                for each in described[group_id].members
            ]
        else:
            wanted = [
                MemberToRemove(each) if isinstance(each, str) else each
                for each in checked_list("members", members)
            ]
        call = remove_members_call(group_id, reason)
        return list(await self._requester.by_part(call, wanted, timeout_ms))
