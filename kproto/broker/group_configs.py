"""Holds and validates the dynamic configs of groups of the consumer protocol (KIP-848).

The configs override broker settings. The order of checks and the error messages equal those of
Kafka 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from .api_error import api_error
from .settings import BrokerSettings

__all__ = ["GROUP_SETTINGS", "AlterOp", "GroupConfigManager", "GroupSetting"]

#: Bounds of consumer.assignment.interval.ms in ms: Kafka's defaults. The embedded broker has no
#: setting for them.
_ASSIGNMENT_BOUNDS_MS: Final = 0, 15_000

_MOST: Final = 0x7FFF_FFFF


class AlterOp:
    """Names the operations of IncrementalAlterConfigs (KIP-339)."""

    SET: Final = 0
    DELETE: Final = 1
    APPEND: Final = 2
    SUBTRACT: Final = 3


class GroupSetting(NamedTuple):
    """Describes a group config; all values are in ms.

    `field` is the field of the group config in `ConsumerGroupConfig`. `broker_config` is the broker
    config that the group config overrides. `default` is Kafka's default of the broker config, and
    `value` returns the broker's setting. `least` is Kafka's fixed minimum. `bounds` returns the
    minimum and the maximum that the broker's settings allow. As in Kafka, the error message for a
    value outside of `bounds` differs from the error message for a value below `least`.
    """

    field: str
    broker_config: str
    default: int
    least: int
    value: Callable[[BrokerSettings], int]
    bounds: Callable[[BrokerSettings], tuple[int, int]]


_SESSION: Final = "consumer.session.timeout.ms"
_HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
_ASSIGNMENT: Final = "consumer.assignment.interval.ms"

#: The group configs by name.
GROUP_SETTINGS: Final[Mapping[str, GroupSetting]] = MappingProxyType(
    {
        _ASSIGNMENT: GroupSetting(
            "assignment_interval_ms",
            "group.consumer.assignment.interval.ms",
            1_000,
            0,
            lambda it: it.group_consumer_assignment_interval_ms,
            lambda it: _ASSIGNMENT_BOUNDS_MS,
        ),
        _HEARTBEAT: GroupSetting(
            "heartbeat_interval_ms",
            "group.consumer.heartbeat.interval.ms",
            5_000,
            1,
            lambda it: it.group_consumer_heartbeat_interval_ms,
            lambda it: (
                it.group_consumer_min_heartbeat_interval_ms,
                it.group_consumer_max_heartbeat_interval_ms,
            ),
        ),
        _SESSION: GroupSetting(
            "session_timeout_ms",
            "group.consumer.session.timeout.ms",
            45_000,
            1,
            lambda it: it.group_consumer_session_timeout_ms,
            lambda it: (
                it.group_consumer_min_session_timeout_ms,
                it.group_consumer_max_session_timeout_ms,
            ),
        ),
    }
)


class GroupConfigManager:
    """Holds the dynamic configs of each group: values as text by config name."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._configs: dict[str, Mapping[str, str]] = {}

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Returns the dynamic configs of a group; empty if none are set."""
        return self._configs.get(group_id, {})

    def altered(
        self, group_id: str, changes: Iterable[tuple[str, int, str | None]]
    ) -> Mapping[str, str]:
        """Returns the configs of a group after `changes`, without storing them.

        Each change is a config name, an `AlterOp` and a value; the value is None for DELETE. Raises
        INVALID_REQUEST for an empty group id, a config that is named twice, a missing value or an
        unknown operation. Raises INVALID_CONFIG for an unknown config that is set, for an invalid
        value, for a session timeout that is not above the heartbeat interval, and for APPEND and
        SUBTRACT.
        """
        changes = list(changes)
        if not group_id:
            raise api_error("INVALID_REQUEST", "Default group resources are not allowed.")
        if len({name for name, *_ in changes}) < len(changes):
            raise api_error("INVALID_REQUEST", "Error due to duplicate config keys")
        for name, operation, value in changes:
            if operation != AlterOp.DELETE and value is None:
                raise api_error("INVALID_REQUEST", f"Null value not supported for : {name}")
        configs = dict(self.configs_of(group_id))
        for name, operation, value in changes:
            if operation == AlterOp.DELETE:
                configs.pop(name, None)
            elif operation == AlterOp.SET:
                configs[name] = str(value).strip() if name in GROUP_SETTINGS else str(value)
            elif operation in (AlterOp.APPEND, AlterOp.SUBTRACT):
                what = "APPEND" if operation == AlterOp.APPEND else "SUBTRACT"
                raise api_error(
                    "INVALID_CONFIG", f"Can't {what} to key {name} because its type is not LIST."
                )
            else:
                raise api_error("INVALID_REQUEST", f"Unknown operation {operation}")
        return {name: str(value) for name, value in self._checked(configs).items()}

    def replace(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Stores the configs of a group in place of the former configs."""
        if configs:
            self._configs[group_id] = configs
        else:
            self._configs.pop(group_id, None)

    def _checked(self, configs: Mapping[str, str]) -> Mapping[str, int]:
        for name in configs:
            if name not in GROUP_SETTINGS:
                raise api_error("INVALID_CONFIG", f"Unknown group config name: {name}")
        values = {name: _number(name, text) for name, text in configs.items()}
        for name, value in values.items():
            least, most = GROUP_SETTINGS[name].bounds(self._settings)
            if not least <= value <= most:
                raise api_error(
                    "INVALID_CONFIG", f"{name} must be in the range {least} to {most} inclusive."
                )
        session, heartbeat = (
            values.get(name, GROUP_SETTINGS[name].value(self._settings))
            for name in (_SESSION, _HEARTBEAT)
        )
        if session <= heartbeat:
            raise api_error("INVALID_CONFIG", f"{_SESSION} must be greater than {_HEARTBEAT}")
        return values


def _number(name: str, text: str) -> int:
    number = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else _MOST + 1
    prefix = f"Invalid value {text} for configuration {name}: "
    if not -_MOST - 1 <= number <= _MOST:
        raise api_error("INVALID_CONFIG", prefix + "Not a number of type INT")
    least = GROUP_SETTINGS[name].least
    if number < least:
        raise api_error("INVALID_CONFIG", prefix + f"Value must be at least {least}")
    return number
