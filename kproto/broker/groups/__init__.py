"""Groups and their coordinator. Plain data: times are parameters, nothing waits.

`group_coordinator` finds and stores the groups of a cluster. `classic_group` is a group of the
classic protocol: it carries out the table of `classic_group_state` on its `classic_members`.
`consumer` has groups of the consumer protocol (KIP-848), and `migration` converts between the two.
"""

from .classic_group import ClassicGroup
from .classic_group_state import ClassicGroupState
from .classic_members import (
    ClassicMember,
    JoinRequest,
    JoinResult,
    LeaveRequest,
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
    "LeaveRequest",
    "MemberProtocol",
    "MigrationPolicy",
    "PendingResult",
    "SyncRequest",
    "SyncResult",
]
