"""Defines the configs of share partitions."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SharePartitionConfig"]


class SharePartitionConfig(NamedTuple):
    """Holds the configs of the share partitions of one group.

    `lock_duration_ms` is the duration of an acquisition lock. A record is archived after
    `delivery_count_limit` deliveries. At most `max_record_locks` records are in flight.
    `auto_offset_reset` is `latest`, `earliest` or `by_duration:` with an ISO 8601 duration.
    `allows_renew` is True if members may renew acquisition locks (KIP-1222).
    """

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    max_record_locks: int = 2_000
    auto_offset_reset: str = "latest"
    is_read_committed: bool = False
    allows_renew: bool = True
