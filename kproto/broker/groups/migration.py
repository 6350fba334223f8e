"""Converts groups between the classic and the consumer protocol while they have members (KIP-848).

`convert_to_consumer_group` upgrades a classic group. The members of the group keep their
assignments and continue to use the classic protocol. `convert_to_classic_group` downgrades a group
when its last member of the consumer protocol leaves, or when a classic member replaces that member.
Each of these functions returns the new state; the caller stores the records and replaces the group.
"""

from __future__ import annotations

from collections.abc import Collection

from ...protocol.consumer_protocol import PROTOCOL_TYPE
from ...stored.coordinator_records import CoordinatorRecord
from ...wire.errors import BrokerResponseError, DecodeError
from ..api_error import api_error
from ..coordinators import java_hash
from ..topics import Topics
from .classic_group import ClassicGroup
from .classic_members import ClassicMember, ProtocolsOf, select_protocol
from .clock_reading import ClockReading
from .consumer import consumer_group_records
from .consumer.classic_subscriptions import assignment_bytes, read_assignment, read_subscription
from .consumer.consumer_group_member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    without_epochs,
)
from .consumer.persisted_state import NEVER, PersistedState, metadata_hash
from .coordinator_records import group_tombstone
from .group_limits import ConsumerGroupConfig
from .group_metadata import GroupMetadata, MemberMetadata
from .java_order import grown_size, in_java_order, in_timeline_order

__all__ = ["convert_to_classic_group", "convert_to_consumer_group", "group_tombstones_of"]


def group_tombstones_of(persisted: PersistedState, group_id: str) -> list[CoordinatorRecord]:
    """Returns the tombstones for a group of the consumer protocol that is deleted or converted."""
    return consumer_group_records.group_tombstones(group_id, persisted.members, persisted.regexes)


def convert_to_consumer_group(
    group: ClassicGroup, limits: ConsumerGroupConfig, topics: Topics
) -> tuple[PersistedState, list[CoordinatorRecord]]:
    """Converts a classic group; returns the state of the new group, and the records to store.

    Delayed JoinGroups and SyncGroups of the group get REBALANCE_IN_PROGRESS, even if the conversion
    fails later.

    Raises GROUP_ID_NOT_FOUND if the migration policy, the protocol type, the group size, or the
    subscription or assignment of a member does not allow the conversion. Raises
    UNKNOWN_SERVER_ERROR if the group has not selected a protocol yet, or if a joining member does
    not support the selected protocol: Kafka 4.4.0 assumes that neither happens.
    """
    group_id = group.group_id
    if not limits.migration.upgrades:
        raise _cannot(group_id, "online upgrade is disabled")
    if group.protocol_type != PROTOCOL_TYPE:
        raise _cannot(group_id, "the group does not use the consumer embedded protocol")
    if len(group.members) > limits.max_size:
        raise _cannot(group_id, "the group size exceeds the consumer group maximum size")
    group.fail_pending_requests()
    ids = in_java_order(group.members, java_hash, grown_size(len(group.members)))
    try:
        members = [
            _member(group, group.members[it], topics) for it in in_timeline_order(ids, java_hash)
        ]
    except DecodeError:
        raise _cannot(group_id, "the embedded consumer protocol is malformed") from None
    state = PersistedState()
    written = [group_tombstone(group_id)]
    generation = group.generation
    names = frozenset[str]().union(*(it.topics for it in members))
    written += [consumer_group_records.member_metadata(group_id, it) for it in members]
    written.append(
        consumer_group_records.group_epoch(group_id, generation, metadata_hash(names, topics))
    )
    written += [
        consumer_group_records.target_assignment(
            group_id, it.member_id, without_epochs(it.assigned)
        )
        for it in members
    ]
    written.append(consumer_group_records.target_epoch(group_id, generation, NEVER))
    written += [consumer_group_records.current_assignment(group_id, it) for it in members]
    for record in written:
        state.replay(record)
    return state, written


def _member(group: ClassicGroup, member: ClassicMember, topics: Topics) -> ConsumerGroupMember:
    """Returns a classic member as a member of the new group.

    The member epoch is the generation of the classic group. Raises the errors of
    `convert_to_consumer_group`, and DecodeError for an invalid subscription or assignment.
    """
    assigned, user_data = read_assignment(member.assignment, topics)
    if user_data:
        raise _cannot(
            group.group_id,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch "
            "to a default assignor before re-attempting the upgrade",
        )
    if group.protocol not in member.protocol_names:
        raise api_error(
            "UNKNOWN_SERVER_ERROR",
            f"classic group {group.group_id} is in a rebalance: {member.member_id} does not "
            f"support protocol {group.protocol!r}",
        )
    subscription = read_subscription(member.metadata(group.protocol), topics)
    return ConsumerGroupMember(
        member.member_id,
        member.instance_id,
        subscription.rack,
        member.client_id,
        member.client_host,
        subscription.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMemberMetadata(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned={it: dict.fromkeys(its, group.generation) for it, its in assigned.items()},
    )


def _cannot(group_id: str, reason: str) -> BrokerResponseError:
    return api_error(
        "GROUP_ID_NOT_FOUND",
        f"Cannot upgrade classic group {group_id} to consumer group because {reason}.",
    )


def convert_to_classic_group(
    persisted: PersistedState, leaving: Collection[str], topics: Topics, now: ClockReading
) -> tuple[GroupMetadata, ProtocolsOf]:
    """Converts a group to the classic protocol, without the members `leaving`.

    Returns the metadata of the classic group, and the protocols of its members by member id. All
    remaining members must use the classic protocol. The target assignment of each member becomes
    its assignment.
    """
    staying = [it for it in persisted.members.values() if it.member_id not in leaving]
    classic = {it.member_id: it.classic for it in staying if it.classic is not None}
    protocols = {member_id: its.protocols for member_id, its in classic.items()}
    elected = select_protocol([it.name for it in its] for its in protocols.values())
    members = []
    for member in staying:
        part = classic[member.member_id]
        subscription = next(it.metadata for it in part.protocols if it.name == elected)
        members.append(
            MemberMetadata(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                part.session_timeout_ms,
                subscription,
                assignment_bytes(
                    persisted.target_assignment_of(member.member_id), topics, subscription
                ),
            )
        )
    metadata = GroupMetadata(
        PROTOCOL_TYPE,
        persisted.epoch,
        elected,
        members[0].member_id,
        now.timestamp_ms,
        tuple(members),
    )
    return metadata, protocols
