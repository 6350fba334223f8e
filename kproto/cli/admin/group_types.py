"""Finds the groups that names and patterns name, with their types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...client import Client
from ...client.admin import AdminError, GroupListing
from ..name_patterns import expanded, has_pattern

__all__ = ["SHARE", "STREAMS", "GroupTypes", "all_groups", "named_groups", "type_of_group"]

SHARE: Final = "Share"
STREAMS: Final = "Streams"

#: The protocol types of groups of consumers: classic groups also have other types, as of Connect.
_PROTOCOL_TYPES: Final = ("", "consumer")


class GroupTypes(dict[str, str]):
    """The type of each group by its id; "" if brokers tell none (before Kafka 3.8), or no group."""

    @property
    def of_consumers(self) -> list[str]:
        """The groups that are described as groups of consumers, also if their type is unknown."""
        return [name for name, type_ in self.items() if type_ not in (SHARE, STREAMS)]

    @property
    def share(self) -> list[str]:
        """The share groups."""
        return [name for name, type_ in self.items() if type_ == SHARE]

    @property
    def streams(self) -> list[str]:
        """The streams groups."""
        return [name for name, type_ in self.items() if type_ == STREAMS]


async def named_groups(
    client: Client, names: Iterable[str], *, needs_match: bool = False
) -> GroupTypes:
    """Returns the groups that names and patterns name; a group need not exist.

    With `needs_match` raises CommandError for a pattern that matches no group.
    """
    wanted = list(names)
    types = await _types(client, is_partial=not has_pattern(wanted))
    found = expanded(wanted, types, what="group", needs_match=needs_match)
    return GroupTypes((name, types.get(name, "")) for name in found)


async def type_of_group(client: Client, group: str) -> str:
    """Returns the type of a group; see `GroupTypes`."""
    return (await _types(client, is_partial=True)).get(group, "")


async def _types(client: Client, *, is_partial: bool) -> dict[str, str]:
    """Returns the types of all groups; `is_partial` lets a broker that does not answer be missing.

    A group of this broker is then described as a group of consumers.
    """
    try:
        listed = await client.admin.list_groups()
    except AdminError as error:
        if not is_partial:
            raise
        listed = [each for groups in error.results.values() for each in groups]
    return {each.group_id: each.type for each in listed}


async def all_groups(client: Client) -> GroupTypes:
    """Returns the groups that have offsets: all but classic groups of other protocol types."""
    listed = await client.admin.list_groups()
    return GroupTypes((each.group_id, each.type) for each in listed if _has_offsets(each))


def _has_offsets(group: GroupListing) -> bool:
    return group.type in (SHARE, STREAMS) or group.protocol_type in _PROTOCOL_TYPES
