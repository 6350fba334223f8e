"""One kind of group made of the other, while it has members (KIP-848).

`upgraded` makes one of the consumer protocol of a classic group: its members stay, go on by the
classic protocol, and have what they had. `downgraded` is the way back, when the last member of the
consumer protocol has gone. Owns what each is made of, and the records that take the old one's
place. Plain functions; who asks writes and installs.
"""

from __future__ import annotations

from collections.abc import Collection

from ...stored.coordinator_records import CoordinatorRecord
from ...wire.errors import BrokerResponseError, DecodeError
from ..coordinators import java_hash
from ..refusal import refusal
from ..topics import Topics
from .consumer import ConsumerLimits, records
from .consumer.embedded import assignment_bytes, read_assignment, read_subscription
from .consumer.members import ClassicPart, ConsumerMember, without_epochs
from .consumer.state import NEVER, ConsumerState, metadata_hash
from .group import Group
from .group_metadata import GroupMetadata, MemberMetadata
from .java_order import grown_size, in_java_order, in_timeline_order
from .members import Member, ProtocolsOf
from .moment import Moment
from .stored import group_tombstone
from .subscriptions import CONSUMER_PROTOCOL_TYPE
from .voting import elected_protocol

__all__ = ["downgraded", "replaced", "upgraded"]


def replaced(kept: ConsumerState, group_id: str) -> list[CoordinatorRecord]:
    """What a group of the consumer protocol leaves in the log when it is none any more."""
    return records.group_tombstones(group_id, kept.members, kept.regexes)


def upgraded(
    group: Group, limits: ConsumerLimits, topics: Topics
) -> tuple[ConsumerState, list[CoordinatorRecord]]:
    """A group of the consumer protocol made of a classic one, and the records that say so.

    Who waits for a rebalance to end hears REBALANCE_IN_PROGRESS, also where that is refused. Raises
    GROUP_ID_NOT_FOUND where the policy or the members do not allow it. Raises UNKNOWN_SERVER_ERROR
    where the group has elected no protocol yet, or a member joins that does not support it: Kafka
    4.4.0 takes for granted that neither happens.
    """
    group_id = group.group_id
    if not limits.migration.upgrades:
        raise _cannot(group_id, "online upgrade is disabled")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _cannot(group_id, "the group does not use the consumer embedded protocol")
    if len(group.members) > limits.max_size:
        raise _cannot(group_id, "the group size exceeds the consumer group maximum size")
    group.turn_back()
    ids = in_java_order(group.members, java_hash, grown_size(len(group.members)))
    try:
        members = [
            _member(group, group.members[it], topics) for it in in_timeline_order(ids, java_hash)
        ]
    except DecodeError:
        raise _cannot(group_id, "the embedded consumer protocol is malformed") from None
    state = ConsumerState()
    written = [group_tombstone(group_id)]
    generation = group.generation
    names = frozenset[str]().union(*(it.topics for it in members))
    written += [records.member_metadata(group_id, it) for it in members]
    written.append(records.group_epoch(group_id, generation, metadata_hash(names, topics)))
    written += [
        records.target_assignment(group_id, it.member_id, without_epochs(it.assigned))
        for it in members
    ]
    written.append(records.target_epoch(group_id, generation, NEVER))
    written += [records.current_assignment(group_id, it) for it in members]
    for record in written:
        state.take(record)
    return state, written


def _member(group: Group, member: Member, topics: Topics) -> ConsumerMember:
    """Raises DecodeError, GROUP_ID_NOT_FOUND and UNKNOWN_SERVER_ERROR."""
    assigned, user_data = read_assignment(member.assignment, topics)
    if user_data:
        raise _cannot(
            group.group_id,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch "
            "to a default assignor before re-attempting the upgrade",
        )
    if group.protocol not in member.protocol_names:
        raise refusal(
            "UNKNOWN_SERVER_ERROR",
            f"classic group {group.group_id} is in a rebalance: {member.member_id} does not "
            f"support protocol {group.protocol!r}",
        )
    said = read_subscription(member.metadata(group.protocol), topics)
    return ConsumerMember(
        member.member_id,
        member.instance_id,
        said.rack,
        member.client_id,
        member.client_host,
        said.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicPart(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned={it: dict.fromkeys(its, group.generation) for it, its in assigned.items()},
    )


def _cannot(group_id: str, why: str) -> BrokerResponseError:
    return refusal(
        "GROUP_ID_NOT_FOUND",
        f"Cannot upgrade classic group {group_id} to consumer group because {why}.",
    )


def downgraded(
    kept: ConsumerState, leaving: Collection[str], topics: Topics, now: Moment
) -> tuple[GroupMetadata, ProtocolsOf]:
    """A classic group of the members that stay, which are classic ones; and their protocols.

    Each is assigned what was meant for it.
    """
    staying = [it for it in kept.members.values() if it.member_id not in leaving]
    classic = {it.member_id: it.classic for it in staying if it.classic is not None}
    protocols = {member_id: its.protocols for member_id, its in classic.items()}
    elected = elected_protocol([it.name for it in its] for its in protocols.values())
    members = []
    for member in staying:
        part = classic[member.member_id]
        said = next(it.metadata for it in part.protocols if it.name == elected)
        members.append(
            MemberMetadata(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                part.session_timeout_ms,
                said,
                assignment_bytes(kept.target_of(member.member_id), topics, said),
            )
        )
    metadata = GroupMetadata(
        CONSUMER_PROTOCOL_TYPE,
        kept.epoch,
        elected,
        members[0].member_id,
        now.date_ms,
        tuple(members),
    )
    return metadata, protocols
