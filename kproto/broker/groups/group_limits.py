"""Defines limits and timeouts of groups; `BrokerSettings` explains the default values."""

from __future__ import annotations

from typing import NamedTuple

from ..consumer_group_settings import ASSIGNORS, MigrationPolicy

__all__ = ["ClassicGroupLimits", "ConsumerGroupConfig", "MigrationPolicy", "ShareGroupConfig"]


class ClassicGroupLimits(NamedTuple):
    """Holds the limits that all classic groups have; times are in ms."""

    initial_rebalance_delay_ms: int
    new_member_join_timeout_ms: int
    max_size: int


class ConsumerGroupConfig(NamedTuple):
    """Holds the limits of one group of the consumer protocol; times are in ms.

    The first of `assignors` is the default for groups whose members name no assignor.
    `classic_max_size` is the maximum size of a classic group, for downgrades.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = ASSIGNORS
    assignment_interval_ms: int = 0
    regex_refresh_interval_ms: int = 600_000
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    classic_max_size: int = 2_147_483_647


class ShareGroupConfig(NamedTuple):
    """Holds the limits of the members of one share group (KIP-932); times are in ms."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 200
    assignment_interval_ms: int = 0
