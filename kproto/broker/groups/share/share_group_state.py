"""Holds the persisted state of a share group: the state that its records determine (KIP-932).

`SharePersistedState` replays each record both when it is written and when a coordinator loads it.
So a new coordinator has the same state as the former one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from ....messages.base import Message
from ....messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from ....messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from ....messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from ....messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from ....messages.share_group_metadata_key import ShareGroupMetadataKey
from ....messages.share_group_metadata_value import ShareGroupMetadataValue
from ....messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from ....messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from ....messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from ....messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from ....messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from ....messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from ....stored.coordinator_records import CoordinatorRecord
from ....wire.uuid import Uuid
from ..consumer.consumer_group_member import JOIN_EPOCH, LEAVE_EPOCH, Partitions
from ..consumer.persisted_state import FIRST_EPOCH

__all__ = [
    "ShareGroupMember",
    "ShareGroupState",
    "ShareKey",
    "SharePersistedState",
    "TopicInitialization",
]

#: The keys of records of share groups.
ShareKey = (
    ShareGroupMetadataKey
    | ShareGroupMemberMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)

#: The timestamp of a target assignment that no assignor has computed.
_NEVER: Final = 0


class ShareGroupState(StrEnum):
    """Names the states of a share group, as ShareGroupDescribe and ListGroups return them."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """Holds a member; `topics` are the subscribed topic names.

    Partitions of a share group are shared, so a member never waits for another member to revoke
    partitions: `assigned` follows the target assignment at once.
    """

    member_id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    epoch: int = JOIN_EPOCH
    previous_epoch: int = LEAVE_EPOCH
    assigned: Partitions = field(default_factory=dict)


class TopicInitialization(NamedTuple):
    """Holds the partitions of one topic whose share state exists, or is being created."""

    name: str
    partitions: frozenset[int]


@dataclass(slots=True)
class SharePersistedState:
    """Holds the state of a share group after all of its records.

    `targets` are the target assignments by member id. The assignor computed them for the group
    epoch `target_epoch` at `target_ms`, in ms since 1970. `initializing`, `initialized` and
    `deleting` are topics by topic id: the share coordinator creates, has created or deletes the
    state of their partitions.
    """

    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    members: dict[str, ShareGroupMember] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    target_epoch: int = FIRST_EPOCH
    target_ms: int = _NEVER
    initializing: Mapping[Uuid, TopicInitialization] = field(default_factory=dict)
    initialized: Mapping[Uuid, TopicInitialization] = field(default_factory=dict)
    deleting: Mapping[Uuid, str] = field(default_factory=dict)
    #: Whether a record of `initializing`, `initialized` and `deleting` exists.
    has_partition_metadata: bool = False

    def copy(self) -> SharePersistedState:
        """Returns a copy with dicts of its own; the values in the dicts are immutable."""
        return replace(self, members=dict(self.members), targets=dict(self.targets))

    @property
    def group_state(self) -> ShareGroupState:
        """Returns EMPTY for a group without members, else STABLE."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def topics(self) -> frozenset[str]:
        """Returns the names of the topics to which at least one member subscribes."""
        return frozenset().union(*(it.topics for it in self.members.values()))

    @property
    def is_homogeneous(self) -> bool:
        """Returns True if all members have the same subscription."""
        return len({it.topics for it in self.members.values()}) <= 1

    @property
    def awaits_assignment(self) -> bool:
        """Returns True if an initialized partition of a subscribed topic has no member yet.

        Then the group epoch is bumped, and the assignor runs again.
        """
        if not self.members:
            return False
        assigned: dict[Uuid, set[int]] = {}
        for target in self.targets.values():
            for topic_id, its in target.items():
                assigned.setdefault(topic_id, set()).update(its)
        topics = self.topics
        return any(
            it.name in topics and frozenset(assigned.get(topic_id, ())) != it.partitions
            for topic_id, it in self.initialized.items()
        )

    # Records

    def replay(self, record: CoordinatorRecord) -> None:
        """Applies a record; ignores records of other types, and tombstones of unknown members."""
        key, value = record.key, record.value
        if isinstance(key, ShareGroupMetadataKey):
            if isinstance(value, ShareGroupMetadataValue):
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
        elif isinstance(key, ShareGroupMemberMetadataKey):
            self._replay_member(key.member_id, value)
        elif isinstance(key, ShareGroupTargetAssignmentMetadataKey):
            if isinstance(value, ShareGroupTargetAssignmentMetadataValue):
                self.target_epoch = value.assignment_epoch
                self.target_ms = value.assignment_timestamp
            else:
                self.target_epoch, self.target_ms = FIRST_EPOCH, _NEVER
        elif isinstance(key, ShareGroupTargetAssignmentMemberKey):
            if isinstance(value, ShareGroupTargetAssignmentMemberValue):
                self.targets[key.member_id] = {
                    it.topic_id: frozenset(it.partitions) for it in value.topic_partitions
                }
            else:
                self.targets.pop(key.member_id, None)
        elif isinstance(key, ShareGroupCurrentMemberAssignmentKey):
            self._replay_assignment(key.member_id, value)
        elif isinstance(key, ShareGroupStatePartitionMetadataKey):
            self._replay_partitions(value)

    def _replay_member(self, member_id: str, value: Message | None) -> None:
        if not isinstance(value, ShareGroupMemberMetadataValue):
            self.members.pop(member_id, None)
            return
        self.members[member_id] = replace(
            self.members.get(member_id, ShareGroupMember(member_id)),
            rack=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
        )

    def _replay_assignment(self, member_id: str, value: Message | None) -> None:
        member = self.members.get(member_id)
        if isinstance(value, ShareGroupCurrentMemberAssignmentValue):
            self.members[member_id] = replace(
                member or ShareGroupMember(member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                assigned={
                    it.topic_id: frozenset(it.partitions) for it in value.assigned_partitions
                },
            )
        elif member is not None:
            self.members[member_id] = replace(
                member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}
            )

    def _replay_partitions(self, value: Message | None) -> None:
        self.has_partition_metadata = isinstance(value, ShareGroupStatePartitionMetadataValue)
        if isinstance(value, ShareGroupStatePartitionMetadataValue):
            self.initializing = _topics(value.initializing_topics)
            self.initialized = _topics(value.initialized_topics)
            self.deleting = {it.topic_id: it.topic_name for it in value.deleting_topics}
        else:
            self.initializing, self.initialized, self.deleting = {}, {}, {}


def _topics(infos: Iterable[TopicPartitionsInfo]) -> dict[Uuid, TopicInitialization]:
    return {
        it.topic_id: TopicInitialization(it.topic_name, frozenset(it.partitions)) for it in infos
    }
