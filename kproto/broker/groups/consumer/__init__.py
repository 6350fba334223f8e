"""Implements groups of the consumer protocol (KIP-848). Times are parameters.

`consumer_group` handles heartbeats and timeouts. `group_change` collects the records of one change
on a copy of the state. `consumer_group_records` creates the records, and `persisted_state` replays
them. `assignors` computes the target assignments, and `current_assignment_builder` reconciles a
member with its target assignment. `regex_resolution` matches regular expressions (`re2`) against
topics. `classic_protocol` handles requests of classic members, and `classic_subscriptions` decodes
their subscriptions.
"""

from .consumer_group import ConsumerGroup
from .heartbeat import ConsumerHeartbeat, ConsumerHeartbeatResult, validate_heartbeat

__all__ = [
    "ConsumerGroup",
    "ConsumerHeartbeat",
    "ConsumerHeartbeatResult",
    "validate_heartbeat",
]
