"""What bounds every group of the consumer protocol; `BrokerSettings` say why."""

from __future__ import annotations

from typing import NamedTuple

from ...consumer_group_settings import ASSIGNORS, MigrationPolicy

__all__ = ["ConsumerLimits", "MigrationPolicy"]


class ConsumerLimits(NamedTuple):
    """Times are in ms; the first of `assignors` is for groups whose members name none."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = ASSIGNORS
    assignment_interval_ms: int = 0
    regex_refresh_interval_ms: int = 600_000
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    classic_max_size: int = 2_147_483_647
