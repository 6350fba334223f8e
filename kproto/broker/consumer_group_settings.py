"""Validates the settings of groups of the consumer protocol (KIP-848).

Defines the names of the assignors and of the migration policies. `rebalance_protocols` determines
the enabled group protocols.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol

from ..schema.release_table import newest_release, release_number
from ..wire.errors import ConfigurationError
from .releases import Release

__all__ = [
    "ASSIGNORS",
    "ConsumerGroupSettings",
    "MigrationPolicy",
    "check_consumer_groups",
    "rebalance_protocols",
]

#: The server-side assignors, the default first.
ASSIGNORS: Final = ("uniform", "range")

_PROTOCOLS: Final = ("classic", "consumer")
#: The first release that enables the consumer protocol by default.
_FIRST_WITH_CONSUMER: Final = "4.0.0"


class MigrationPolicy(Enum):
    """Names the allowed conversions of groups with members (group.consumer.migration.policy).

    An upgrade converts a classic group to the consumer protocol. A downgrade converts a group of
    the consumer protocol to the classic protocol.
    """

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Returns True if a classic group may be converted to the consumer protocol."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        """Returns True if a group may be converted from the consumer to the classic protocol."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class ConsumerGroupSettings(Protocol):
    """Describes the settings that `check_consumer_groups` validates; times are in ms."""

    @property
    def group_coordinator_rebalance_protocols(self) -> tuple[str, ...] | None: ...
    @property
    def group_consumer_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_min_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_max_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_min_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_max_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_assignors(self) -> tuple[str, ...]: ...
    @property
    def group_consumer_migration_policy(self) -> str: ...


def check_consumer_groups(settings: ConsumerGroupSettings) -> None:
    """Raises ConfigurationError for invalid bounds, assignors, migration policy or protocols.

    A Kafka broker would not start with these settings either, with two exceptions: Kafka accepts
    the class name of an assignor, and group protocols that this broker does not have.
    """
    _check_between(
        "group_consumer_session_timeout_ms",
        settings.group_consumer_min_session_timeout_ms,
        settings.group_consumer_session_timeout_ms,
        settings.group_consumer_max_session_timeout_ms,
    )
    _check_between(
        "group_consumer_heartbeat_interval_ms",
        settings.group_consumer_min_heartbeat_interval_ms,
        settings.group_consumer_heartbeat_interval_ms,
        settings.group_consumer_max_heartbeat_interval_ms,
    )
    if settings.group_consumer_heartbeat_interval_ms >= settings.group_consumer_session_timeout_ms:
        raise ConfigurationError(
            f"group_consumer_heartbeat_interval_ms is "
            f"{settings.group_consumer_heartbeat_interval_ms}, not less than "
            f"group_consumer_session_timeout_ms, {settings.group_consumer_session_timeout_ms}: "
            "each session would expire before its first heartbeat"
        )
    assignors: object = settings.group_consumer_assignors
    if not isinstance(assignors, tuple) or not assignors or not {*assignors} <= {*ASSIGNORS}:
        raise ConfigurationError(
            f"group_consumer_assignors is {assignors!r}; give some of {', '.join(ASSIGNORS)}"
        )
    policies = [policy.value for policy in MigrationPolicy]
    if settings.group_consumer_migration_policy not in policies:
        raise ConfigurationError(
            f"group_consumer_migration_policy is {settings.group_consumer_migration_policy!r}; "
            f"take one of {', '.join(policies)}"
        )
    protocols: object = settings.group_coordinator_rebalance_protocols
    if protocols is not None and (
        not isinstance(protocols, tuple)
        or "classic" not in protocols
        or not set(protocols) <= {*_PROTOCOLS}
    ):
        raise ConfigurationError(
            f"group_coordinator_rebalance_protocols is {protocols!r}; give ('classic',) or "
            "('classic', 'consumer')"
        )


def _check_between(name: str, least: int, value: int, most: int) -> None:
    if not least <= value <= most:
        bounds = (
            name.replace("consumer_", "consumer_min_"),
            name.replace("consumer_", "consumer_max_"),
        )
        raise ConfigurationError(
            f"{name} is {value}; {bounds[0]} and {bounds[1]} allow {least} to {most} ms: set those "
            "too"
        )


def rebalance_protocols(given: tuple[str, ...] | None, release: Release | None) -> tuple[str, ...]:
    """Returns the enabled group protocols: `given` if it is not None.

    Otherwise returns the protocols that the Kafka release `release` enables by default, or all
    protocols if `release` is not the name of a release.
    """
    if given is not None:
        return given
    if isinstance(release, str):
        first = release_number(_FIRST_WITH_CONSUMER)
        return _PROTOCOLS[: 1 + (release_number(newest_release(release)) >= first)]
    return _PROTOCOLS
