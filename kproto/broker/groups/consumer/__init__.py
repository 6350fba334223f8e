"""Groups of the consumer protocol (KIP-848), as a coordinator keeps them. Plain data, as its rows.

What is kept is made of records alone: `state` takes them one by one, `records` makes them. `group`
decides on heartbeats and on what time does, by the steps of a `change`; `reconciling` says what a
member shall hold now, `assignors` who shall hold what, `regexes` which topics an expression means
(`re2`). `classic` is for members of the classic protocol in such a group.
"""

from .consumer_group import ConsumerGroup
from .heartbeat import Heartbeat, HeartbeatAnswer, check_heartbeat
from .limits import ConsumerLimits, MigrationPolicy

__all__ = [
    "ConsumerGroup",
    "ConsumerLimits",
    "Heartbeat",
    "HeartbeatAnswer",
    "MigrationPolicy",
    "check_heartbeat",
]
