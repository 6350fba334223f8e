"""Implements share groups (KIP-932) for the group coordinator. Times are parameters.

`share_group` handles heartbeats and session timeouts. `share_group_records` creates the records of
a group in `__consumer_offsets`, and `share_group_state` replays them. `simple_assignor` computes
the target assignment. `share_heartbeat` defines and validates requests.

`kproto.broker.share` has the other half of a share group: the states of the records in a share
partition, and the share coordinator, which stores them.
"""

from .share_group import ShareGroup, ShareStateInitialization
from .share_group_state import ShareGroupMember, SharePersistedState
from .share_heartbeat import ShareHeartbeat, ShareHeartbeatResult, validate_share_heartbeat

__all__ = [
    "ShareGroup",
    "ShareGroupMember",
    "ShareHeartbeat",
    "ShareHeartbeatResult",
    "SharePersistedState",
    "ShareStateInitialization",
    "validate_share_heartbeat",
]
