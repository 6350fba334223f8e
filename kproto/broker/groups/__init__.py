"""Implements consumer groups and their coordinator. Times are parameters, and no function waits.

`group_coordinator` finds, stores and loads the groups of a cluster. `classic_group` is a group of
the classic protocol: `classic_group_state` has the state machine of the group, and
`classic_members` tracks the members. `consumer` has groups of the consumer protocol (KIP-848), and
`share` has share groups (KIP-932). `group_metadata_manager` holds the loaded groups. `migration`
converts groups between the classic and the consumer protocol.
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
from .group_limits import (
    ClassicGroupLimits,
    ConsumerGroupConfig,
    MigrationPolicy,
    ShareGroupConfig,
)
from .group_metadata_manager import AnyGroup, GroupMetadataManager, OffsetsGroup
from .share import ShareGroup

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
    "OffsetsGroup",
    "PendingResult",
    "ShareGroup",
    "ShareGroupConfig",
    "SyncRequest",
    "SyncResult",
]
