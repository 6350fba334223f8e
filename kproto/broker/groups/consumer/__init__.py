"""Groups of the consumer protocol (KIP-848). Plain data: times are parameters.

`persisted_state` is a group as its records make it; `record_helpers` makes the records.
`consumer_group` handles heartbeats and timeouts: each `group_change` collects records on a copy of
the state. `current_assignment_builder` reconciles a member with its target assignment, `assignors`
compute the target assignments, `regex_resolution` matches regular expressions (`re2`) against
topics. `classic_protocol` serves members of the classic protocol (`classic_subscriptions`).
"""

from .consumer_group import ConsumerGroup
from .heartbeat import ConsumerHeartbeat, ConsumerHeartbeatResult, validate_heartbeat

__all__ = [
    "ConsumerGroup",
    "ConsumerHeartbeat",
    "ConsumerHeartbeatResult",
    "validate_heartbeat",
]
