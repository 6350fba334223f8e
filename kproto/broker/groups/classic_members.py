"""Who is in a group: members by id, which of them are static, who leads, which ids were given away.

Knows neither states nor time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...protocol.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from ...wire.errors import DecodeError
from ..api_error import api_error
from .answers import ToldMember
from .members import Member
from .voting import elected_protocol

__all__ = ["Roster", "subscribed_topics"]


class Roster:
    """The members of one group, in the order in which they joined."""

    def __init__(self) -> None:
        self.members: Final[dict[str, Member]] = {}
        #: The member ids of static members, by their instance ids.
        self.static_ids: Final[dict[str, str]] = {}
        #: Ids that were given away, and by when they must be used (`Moment.ms`).
        self.pending: Final[dict[str, int]] = {}
        self.leader: str | None = None

    def clear(self) -> None:
        """Nobody is in the group."""
        self.members.clear()
        self.static_ids.clear()
        self.pending.clear()
        self.leader = None

    def add(self, member: Member) -> None:
        """Take a member in; the first leads."""
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Let a member go, or an id; another leads if it did, the oldest of those that are left."""
        self.pending.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static_ids.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, member: Member, new_id: str) -> Member:
        """A static member under a new id; it leads if it did (KIP-345)."""
        replaced = Member(
            new_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.protocols,
            member.assignment,
        )
        self.swap(member, replaced)
        return replaced

    def swap(self, member: Member, other: Member) -> None:
        """Let another be in the place of a member; it leads if that did."""
        leads = self.leader == member.member_id
        del self.members[member.member_id]
        self.add(other)
        if leads:
            self.leader = other.member_id

    def check(self, member_id: str, instance_id: str | None) -> Member:
        """The member. Raises UNKNOWN_MEMBER_ID, and FENCED_INSTANCE_ID for a former self."""
        if instance_id is not None:
            known = self.static_ids.get(instance_id)
            if known is None:
                raise api_error(
                    "UNKNOWN_MEMBER_ID", f"no member has the instance id {instance_id!r}"
                )
            if known != member_id:
                raise api_error(
                    "FENCED_INSTANCE_ID", f"another member has the instance id {instance_id!r} now"
                )
        member = self.members.get(member_id)
        if member is None:
            raise api_error("UNKNOWN_MEMBER_ID", f"there is no member {member_id!r}")
        return member

    def id_of(self, member_id: str, instance_id: str | None) -> str:
        """That of a member, or one that was given away; static members may say none.

        Raises what `check` does.
        """
        if member_id in self.pending:
            return member_id
        if member_id:
            return self.check(member_id, instance_id).member_id
        known = None if instance_id is None else self.static_ids.get(instance_id)
        if known is None:
            raise api_error("UNKNOWN_MEMBER_ID", f"no member has the instance id {instance_id!r}")
        return known

    def elect_leader(self) -> bool:
        """Let one lead that has joined, the leader of now if it has; False where none has."""
        if self.leader is None:
            return False
        if self.members[self.leader].joining is not None:
            return True
        for member in self.members.values():
            if member.joining is not None:
                self.leader = member.member_id
                return True
        return False

    @property
    def joined(self) -> int:
        """How many members have joined and wait for the generation."""
        return sum(member.joining is not None for member in self.members.values())

    @property
    def have_all_joined(self) -> bool:
        """Whether all members have, and all who were given an id."""
        return self.joined == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member wants to have."""
        return max((0, *(it.rebalance_timeout_ms for it in self.members.values())))

    def told(self, protocol: str | None) -> tuple[ToldMember, ...]:
        """The members as the leader is told of them."""
        return tuple(
            ToldMember(member.member_id, member.instance_id, member.metadata(protocol))
            for member in self.members.values()
        )

    def subscribed(self, protocol_type: str | None, protocol: str | None) -> frozenset[str] | None:
        """The topics of all members, where they are consumers that say them as consumers do."""
        if protocol_type != PROTOCOL_TYPE or (self.members and not protocol):
            return None
        return subscribed_topics(it.metadata(protocol) for it in self.members.values())

    def supports_one_of(self, names: tuple[str, ...]) -> bool:
        """Whether all members support one of the protocols."""
        supported = [set(member.protocol_names) for member in self.members.values()]
        return any(all(name in its for its in supported) for name in names)

    def elect_protocol(self) -> str:
        """The protocol of the next generation."""
        return elected_protocol(member.protocol_names for member in self.members.values())


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Returns the topics of all subscriptions, None if one of them cannot be read.

    Reads version 0, which begins every version, as Kafka's coordinator does.
    """
    try:
        decoded = [decode_subscription(data, highest=0) for data in subscriptions]
    except DecodeError:
        return None
    return frozenset(topic for subscription in decoded for topic in subscription.topics)
