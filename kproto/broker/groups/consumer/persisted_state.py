"""Holds the persisted state of a consumer protocol group: the state that its records determine.

`PersistedState` replays each record both when it is written and when a coordinator loads it. So a
new coordinator has the same state as the former one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ....messages.base import Message
from ....messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from ....messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from ....messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from ....messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from ....messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from ....messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from ....messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from ....messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from ....messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from ....messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from ....messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ....messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ....stored.coordinator_records import CoordinatorRecord
from ....wire.uuid import Uuid
from ...coordinators import java_hash
from ...topics import Topics
from ..classic_members import MemberProtocol
from ..java_order import in_timeline_order
from .consumer_group_member import (
    LEAVE_EPOCH,
    Assigned,
    ClassicMemberMetadata,
    ConsumerGroupMember,
    MemberState,
    Partitions,
    partitions_of,
)
from .regex_resolution import ResolvedRegex

__all__ = [
    "FIRST_EPOCH",
    "NEVER",
    "ConsumerGroupState",
    "ConsumerKey",
    "PersistedState",
    "metadata_hash",
]

#: The epoch of a new group, as in Kafka since 4.3.
FIRST_EPOCH: Final = 1

#: The timestamp of a target assignment that no assignor has computed. The assignment interval does
#: not apply after such an assignment: the next target assignment is computed at once.
NEVER: Final = 0

#: The keys of records of consumer-protocol groups.
ConsumerKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)


class ConsumerGroupState(StrEnum):
    """Names the states of a group, as ConsumerGroupDescribe and ListGroups return them."""

    EMPTY = "Empty"
    #: The group epoch is newer than the target assignment.
    ASSIGNING = "Assigning"
    #: At least one member does not have its complete target assignment yet.
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class PersistedState:
    """Holds the state of a group after all of its records.

    `targets` are the target assignments by member id. The assignor computed the target assignments
    for the group epoch `target_epoch` at `target_ms`, in ms since 1970 (NEVER if no assignor has
    computed any).
    """

    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    #: The member ids of static members by instance id.
    static_ids: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    target_epoch: int = FIRST_EPOCH
    target_ms: int = NEVER
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)

    def copy(self) -> PersistedState:
        """Returns a copy with dicts of its own; the values in the dicts are immutable."""
        return replace(
            self,
            members=dict(self.members),
            static_ids=dict(self.static_ids),
            targets=dict(self.targets),
            regexes=dict(self.regexes),
        )

    # State of the group

    @property
    def group_state(self) -> ConsumerGroupState:
        """Returns the state of the group, which follows from its members and epochs."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(it.is_reconciled_to(self.target_epoch) for it in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def target_assignment_of(self, member_id: str, instance_id: str | None = None) -> Partitions:
        """Returns the target assignment of the member `member_id`.

        If that member has no target assignment, returns the target assignment of the static member
        that has `instance_id` now. Returns an empty mapping if neither of the two members has a
        target assignment.
        """
        if member_id not in self.targets and instance_id is not None:
            member_id = self.static_ids.get(instance_id, member_id)
        return self.targets.get(member_id, {})

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Returns the static member with an instance id; None if there is none."""
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Returns the names of the topics that a member subscribes to, by name or by expression."""
        resolved = self.regexes.get(member.regex)
        return member.topics if resolved is None else member.topics | resolved.topics

    @property
    def topics(self) -> frozenset[str]:
        """Returns the names of the topics to which at least one member subscribes."""
        return frozenset().union(*(self.topics_of(it) for it in self.members.values()))

    @property
    def regex_counts(self) -> Counter[str]:
        """Returns how many members subscribe with each regular expression."""
        return Counter(it.regex for it in self.members.values() if it.regex)

    @property
    def is_homogeneous(self) -> bool:
        """Returns True if all members have the same subscription.

        Returns False if a member subscribes both by topic names and by a regular expression.
        """
        subscribed = {(it.topics, it.regex) for it in self.members.values()}
        return len(subscribed) <= 1 and not any(names and regex for names, regex in subscribed)

    @property
    def owned(self) -> dict[tuple[Uuid, int], str]:
        """Returns which member may still read a partition: member ids by topic id and index."""
        return {tp: member_id for member_id, it in self.members.items() for tp in partitions_of(it)}

    @property
    def assignor(self) -> str | None:
        """Returns the assignor that most members prefer; None if no member prefers any.

        Of assignors with equal votes, returns the first in the order of `votes`.
        """
        votes = self.votes
        return max(votes, key=votes.__getitem__, default=None)

    @property
    def votes(self) -> dict[str, int]:
        """Returns how many members prefer each assignor, in the iteration order of Kafka's map."""
        votes = Counter(it.assignor for it in self.members.values() if it.assignor is not None)
        return {it: votes[it] for it in in_timeline_order(votes, java_hash)}

    # Records

    def replay(self, record: CoordinatorRecord) -> None:
        """Applies a record; ignores records of other types, and tombstones of unknown members."""
        key, value = record.key, record.value
        if isinstance(key, ConsumerGroupMetadataKey):
            if isinstance(value, ConsumerGroupMetadataValue):
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
        elif isinstance(key, ConsumerGroupMemberMetadataKey):
            self._replay_member(key.member_id, value)
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                self.target_epoch = value.assignment_epoch
                self.target_ms = value.assignment_timestamp
            else:
                self.target_epoch, self.target_ms = FIRST_EPOCH, NEVER
        elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
            if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
                self.targets[key.member_id] = {
                    it.topic_id: frozenset(it.partitions) for it in value.topic_partitions
                }
            else:
                self.targets.pop(key.member_id, None)
        elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            self._replay_assignment(key.member_id, value)
        elif isinstance(key, ConsumerGroupRegularExpressionKey):
            if isinstance(value, ConsumerGroupRegularExpressionValue):
                self.regexes[key.regular_expression] = ResolvedRegex(
                    frozenset(value.topics), value.version, value.timestamp
                )
            else:
                self.regexes.pop(key.regular_expression, None)

    def _replay_member(self, member_id: str, value: Message | None) -> None:
        if not isinstance(value, ConsumerGroupMemberMetadataValue):
            removed = self.members.pop(member_id, None)
            instance_id = None if removed is None else removed.instance_id
            if instance_id is not None and self.static_ids.get(instance_id) == member_id:
                del self.static_ids[instance_id]
            return
        classic = value.classic_member_metadata
        self.members[member_id] = replace(
            self.members.get(member_id, ConsumerGroupMember(member_id)),
            instance_id=value.instance_id,
            rack=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicMemberMetadata(
                classic.session_timeout_ms,
                tuple(MemberProtocol(it.name, it.metadata) for it in classic.supported_protocols),
            ),
        )
        if value.instance_id is not None:
            self.static_ids[value.instance_id] = member_id

    def _replay_assignment(self, member_id: str, value: Message | None) -> None:
        member = self.members.get(member_id)
        if not isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            if member is not None:
                self.members[member_id] = replace(
                    member,
                    epoch=LEAVE_EPOCH,
                    previous_epoch=LEAVE_EPOCH,
                    state=MemberState.STABLE,
                    assigned={},
                    revoking={},
                )
            return
        self.members[member_id] = replace(
            member or ConsumerGroupMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_assigned(value.assigned_partitions, value.member_epoch),
            revoking=_assigned(value.partitions_pending_revocation, value.member_epoch),
        )


def _assigned(topics: Iterable[TopicPartitions], epoch: int) -> Assigned:
    """Returns partitions with the epochs at which they were assigned.

    Records of brokers before Kafka 4.3 do not have these epochs. For such records, the member epoch
    `epoch` is used.
    """
    found: dict[Uuid, Mapping[int, int]] = {}
    for it in topics:
        epochs = it.assignment_epochs or [epoch] * len(it.partitions)
        found[it.topic_id] = dict(zip(it.partitions, epochs, strict=False))
    return found


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Returns a hash of the names, topic ids and partition counts of topics; 0 if none exists.

    The hash function differs from Kafka's.
    """
    hashed = hashlib.blake2b(digest_size=8)
    some = False
    for name in sorted(names):
        topic = topics.get(name)
        if topic is not None:
            some = True
            hashed.update(f"{name}:{topic.topic_id}:{len(topic.partitions)},".encode())
    return int.from_bytes(hashed.digest(), "big", signed=True) if some else 0
