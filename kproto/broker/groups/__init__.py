"""Implements consumer groups and their coordinator. Times are parameters, and no function waits.

`group_coordinator` finds, stores and loads the groups of a cluster. `classic_group` is a group of
the classic protocol: `classic_group_state` has the state machine of the group, and
`classic_members` tracks the members. `consumer` has groups of the consumer protocol (KIP-848).
`migration` converts groups between the two protocols.
"""

from .classic_group import ClassicGroup
from .classic_group_state import ClassicGroupState
from .classic_members import (
    ClassicMember,
    JoinRequest,
    JoinResult,
    LeavingMember,
    MemberProtocol,
    PendingResult,
    SyncRequest,
    SyncResult,
)
from .clock_reading import ClockReading
from .consumer import ConsumerGroup
from .group_coordinator import AnyGroup, GroupMetadataManager
from .group_limits import ClassicGroupLimits, ConsumerGroupConfig, MigrationPolicy

__all__ = [
    "AnyGroup",
    "ClassicGroup",
    "ClassicGroupLimits",
    "ClassicGroupState",
    "ClassicMember",
    "ClockReading",
    "ConsumerGroup",
    "ConsumerGroupConfig",
    "GroupMetadataManager",
    "JoinRequest",
    "JoinResult",
    "LeavingMember",
    "MemberProtocol",
    "MigrationPolicy",
    "PendingResult",
    "SyncRequest",
    "SyncResult",
]
