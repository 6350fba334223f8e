"""Validates the settings of share groups (KIP-932)."""

from __future__ import annotations

from typing import Any, Final

from ..wire.errors import ConfigurationError

__all__ = ["SHARE_GROUP_LEAST", "check_share_groups"]

#: The settings of share groups that are numbers, with their minimum.
SHARE_GROUP_LEAST: Final = {
    "group_share_session_timeout_ms": 1,
    "group_share_min_session_timeout_ms": 1,
    "group_share_max_session_timeout_ms": 1,
    "group_share_heartbeat_interval_ms": 1,
    "group_share_min_heartbeat_interval_ms": 1,
    "group_share_max_heartbeat_interval_ms": 1,
    "group_share_max_size": 1,
    "group_share_assignment_interval_ms": 0,
    "group_share_delivery_count_limit": 2,
    "group_share_min_delivery_count_limit": 2,
    "group_share_max_delivery_count_limit": 5,
    "group_share_record_lock_duration_ms": 1_000,
    "group_share_min_record_lock_duration_ms": 1_000,
    "group_share_max_record_lock_duration_ms": 30_000,
    "group_share_partition_max_record_locks": 100,
    "group_share_min_partition_max_record_locks": 100,
    "group_share_max_partition_max_record_locks": 2_000,
    "group_share_max_share_sessions": 1,
    "share_coordinator_state_topic_num_partitions": 1,
    "share_coordinator_snapshot_update_records_per_snapshot": 0,
}

#: The settings that must be between the settings with `min_` and `max_` in their names.
_BOUNDED: Final = (
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "delivery_count_limit",
    "record_lock_duration_ms",
    "partition_max_record_locks",
)


def check_share_groups(settings: Any) -> None:
    """Raises ConfigurationError for a setting of share groups that is out of its bounds.

    `settings` has the attributes of `BrokerSettings`. A Kafka broker would not start with these
    settings either.
    """
    for name in _BOUNDED:
        least, value, most = (
            getattr(settings, f"group_share_{prefix}{name}") for prefix in ("min_", "", "max_")
        )
        if not least <= value <= most:
            raise ConfigurationError(
                f"group_share_{name} is {value}; group_share_min_{name} and "
                f"group_share_max_{name} allow {least} to {most}: set those too"
            )
    if settings.group_share_heartbeat_interval_ms >= settings.group_share_session_timeout_ms:
        raise ConfigurationError(
            f"group_share_heartbeat_interval_ms is {settings.group_share_heartbeat_interval_ms}, "
            "not less than group_share_session_timeout_ms, "
            f"{settings.group_share_session_timeout_ms}: each session would expire before its "
            "first heartbeat"
        )
