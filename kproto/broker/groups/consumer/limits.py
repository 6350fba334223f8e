"""What bounds every group of the consumer protocol; `BrokerSettings` say why."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = ["ConsumerLimits", "MigrationPolicy"]


class MigrationPolicy(Enum):
    """Which groups may change their kind while they have members (group.consumer.migration.policy).

    Upgrade is from classic to consumer, downgrade the way back.
    """

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group may become one of the consumer protocol."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        """Whether the way back is open."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class ConsumerLimits(NamedTuple):
    """Times are in ms; the first of `assignors` is for groups whose members name none."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = ("uniform", "range")
    assignment_interval_ms: int = 0
    regex_refresh_interval_ms: int = 600_000
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    classic_max_size: int = 2_147_483_647
