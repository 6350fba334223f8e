"""What bounds every group of a cluster; `BrokerSettings` say why."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GroupLimits"]


class GroupLimits(NamedTuple):
    """Times are in ms."""

    initial_rebalance_delay_ms: int
    new_member_join_timeout_ms: int
    max_size: int
