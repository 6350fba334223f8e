"""Holds and validates the dynamic configs of groups (KIP-848, KIP-932).

The configs of groups of the consumer protocol and of share groups override broker settings. The
configs of streams groups are stored and described, but have no effect. The order of checks and the
error messages equal those of Kafka 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from .api_error import api_error
from .config_changes import AlterOp, ConfigChange, apply_changes
from .config_table import BROKER, GROUP, checked_value, config_defs
from .settings import BrokerSettings

__all__ = [
    "GROUP_SETTINGS",
    "SHARE_GROUP_SETTINGS",
    "SHARE_PARTITION_SETTINGS",
    "AlterOp",
    "GroupConfigManager",
    "GroupSetting",
    "reset_duration_ms",
]

#: Bounds of consumer.assignment.interval.ms in ms: Kafka's defaults. The embedded broker has no
#: setting for them.
_ASSIGNMENT_BOUNDS_MS: Final = 0, 15_000


class GroupSetting(NamedTuple):
    """Describes a group config that is a number; times are in ms.

    `field` is the field of the config in `ConsumerGroupConfig`, `ShareGroupConfig` or
    `SharePartitionConfig`. `value` returns the broker's
    setting. `bounds` returns the minimum and the maximum that the broker's settings allow. As in
    Kafka, the error message for a value outside of `bounds` differs from the error message for a
    value below the fixed minimum of `config_table`.
    """

    field: str
    value: Callable[[BrokerSettings], int]
    bounds: Callable[[BrokerSettings], tuple[int, int]]


_SESSION: Final = "consumer.session.timeout.ms"
_HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
_ASSIGNMENT: Final = "consumer.assignment.interval.ms"

#: The configs of groups of the consumer protocol by name.
GROUP_SETTINGS: Final[Mapping[str, GroupSetting]] = MappingProxyType(
    {
        _ASSIGNMENT: GroupSetting(
            "assignment_interval_ms",
            lambda it: it.group_consumer_assignment_interval_ms,
            lambda it: _ASSIGNMENT_BOUNDS_MS,
        ),
        _HEARTBEAT: GroupSetting(
            "heartbeat_interval_ms",
            lambda it: it.group_consumer_heartbeat_interval_ms,
            lambda it: (
                it.group_consumer_min_heartbeat_interval_ms,
                it.group_consumer_max_heartbeat_interval_ms,
            ),
        ),
        _SESSION: GroupSetting(
            "session_timeout_ms",
            lambda it: it.group_consumer_session_timeout_ms,
            lambda it: (
                it.group_consumer_min_session_timeout_ms,
                it.group_consumer_max_session_timeout_ms,
            ),
        ),
    }
)

_SHARE_SESSION: Final = "share.session.timeout.ms"
_SHARE_HEARTBEAT: Final = "share.heartbeat.interval.ms"

#: The configs of the members of share groups by name.
SHARE_GROUP_SETTINGS: Final[Mapping[str, GroupSetting]] = MappingProxyType(
    {
        "share.assignment.interval.ms": GroupSetting(
            "assignment_interval_ms",
            lambda it: it.group_share_assignment_interval_ms,
            lambda it: _ASSIGNMENT_BOUNDS_MS,
        ),
        _SHARE_HEARTBEAT: GroupSetting(
            "heartbeat_interval_ms",
            lambda it: it.group_share_heartbeat_interval_ms,
            lambda it: (
                it.group_share_min_heartbeat_interval_ms,
                it.group_share_max_heartbeat_interval_ms,
            ),
        ),
        _SHARE_SESSION: GroupSetting(
            "session_timeout_ms",
            lambda it: it.group_share_session_timeout_ms,
            lambda it: (
                it.group_share_min_session_timeout_ms,
                it.group_share_max_session_timeout_ms,
            ),
        ),
    }
)

#: The configs of share partitions by name.
SHARE_PARTITION_SETTINGS: Final[Mapping[str, GroupSetting]] = MappingProxyType(
    {
        "share.delivery.count.limit": GroupSetting(
            "delivery_count_limit",
            lambda it: it.group_share_delivery_count_limit,
            lambda it: (
                it.group_share_min_delivery_count_limit,
                it.group_share_max_delivery_count_limit,
            ),
        ),
        "share.partition.max.record.locks": GroupSetting(
            "max_record_locks",
            lambda it: it.group_share_partition_max_record_locks,
            lambda it: (
                it.group_share_min_partition_max_record_locks,
                it.group_share_max_partition_max_record_locks,
            ),
        ),
        "share.record.lock.duration.ms": GroupSetting(
            "lock_duration_ms",
            lambda it: it.group_share_record_lock_duration_ms,
            lambda it: (
                it.group_share_min_record_lock_duration_ms,
                it.group_share_max_record_lock_duration_ms,
            ),
        ),
    }
)

_ALL_SETTINGS: Final = {**GROUP_SETTINGS, **SHARE_GROUP_SETTINGS, **SHARE_PARTITION_SETTINGS}

#: The pairs of a session timeout and a heartbeat interval; the timeout must be greater.
_SESSIONS: Final = ((_SESSION, _HEARTBEAT), (_SHARE_SESSION, _SHARE_HEARTBEAT))

_RESET: Final = "share.auto.offset.reset"
_EARLIEST: Final = "earliest"
_LATEST: Final = "latest"

#: A value of share.auto.offset.reset with a duration of ISO 8601.
_BY_DURATION: Final = re.compile(
    r"by_duration:P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


def reset_duration_ms(text: str) -> int | None:
    """Returns the duration of a value `by_duration:PnDTnHnMn.nS` in ms; None for other values."""
    found = _BY_DURATION.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (float(it or 0) for it in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


class GroupConfigManager:
    """Holds the dynamic configs of each group: values as text by config name."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._configs: dict[str, Mapping[str, str]] = {}

    @property
    def groups(self) -> list[str]:
        """Returns the group ids with dynamic configs, sorted."""
        return sorted(self._configs)

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Returns the dynamic configs of a group; empty if none are set."""
        return self._configs.get(group_id, {})

    def altered(self, group_id: str, changes: Iterable[ConfigChange]) -> Mapping[str, str]:
        """Returns the configs of a group after `changes`, without storing them.

        Each change is a config name, an `AlterOp` and a value; the value is None for DELETE. Raises
        INVALID_REQUEST for an empty group id, and the errors of `apply_changes`. Raises
        INVALID_CONFIG for an unknown config that is set, for an invalid value, and for a session
        timeout that is not above the heartbeat interval.
        """
        if not group_id:
            raise api_error("INVALID_REQUEST", "Default group resources are not allowed.")
        return self._checked(apply_changes(self.configs_of(group_id), list(changes), {}))

    def replace(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Stores the configs of a group in place of the former configs."""
        if configs:
            self._configs[group_id] = configs
        else:
            self._configs.pop(group_id, None)

    def _checked(self, configs: Mapping[str, str]) -> Mapping[str, str]:
        known = config_defs(GROUP)
        for name in configs:
            if name not in known:
                raise api_error("INVALID_CONFIG", f"Unknown group config name: {name}")
        texts = {name: checked_value(known[name], text) for name, text in configs.items()}
        self._check_reset(texts.get(_RESET, _LATEST))
        for name, text in texts.items():
            least, most = self._bounds(name)
            if least is not None and not least <= int(text) <= most:
                raise api_error(
                    "INVALID_CONFIG", f"{name} must be in the range {least} to {most} inclusive."
                )
        for names in _SESSIONS:
            session, heartbeat = (
                int(texts.get(name, _ALL_SETTINGS[name].value(self._settings))) for name in names
            )
            if session <= heartbeat:
                raise api_error("INVALID_CONFIG", f"{names[0]} must be greater than {names[1]}")
        return texts

    @staticmethod
    def _check_reset(text: str) -> None:
        if text not in (_EARLIEST, _LATEST) and reset_duration_ms(text) is None:
            raise api_error(
                "INVALID_CONFIG",
                f"Invalid value {text} for configuration {_RESET}: Invalid value `{text}` for "
                f"configuration {_RESET}. The value must be either 'earliest', 'latest' or of the "
                "format 'by_duration:<PnDTnHnMn.nS>'.",
            )

    def _bounds(self, name: str) -> tuple[int | None, int]:
        """Returns the bounds that broker configs set for a group config; None for no bounds."""
        if name in _ALL_SETTINGS:
            return _ALL_SETTINGS[name].bounds(self._settings)
        kind, _, rest = name.partition(".")
        brokers = config_defs(BROKER)
        bounds = [brokers.get(f"group.{kind}.{bound}.{rest}") for bound in ("min", "max")]
        if None in bounds:
            return None, 0
        least, most = (int(str(bound and bound.default)) for bound in bounds)
        return least, most
