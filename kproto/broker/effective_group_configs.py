"""Computes the configs that apply to a group: broker settings, overridden by dynamic configs.

The dynamic configs of a group override the dynamic configs of all brokers, and these override the
settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .dynamic_configs import ALL_BROKERS, BrokerConfigManager
from .group_configs import (
    GROUP_SETTINGS,
    SHARE_GROUP_SETTINGS,
    SHARE_PARTITION_SETTINGS,
    GroupConfigManager,
    GroupSetting,
)
from .groups import ConsumerGroupConfig, MigrationPolicy, ShareGroupConfig
from .settings import BrokerSettings
from .share import SharePartitionConfig

__all__ = ["EffectiveGroupConfigs"]


class EffectiveGroupConfigs:
    """Returns the configs of each group, by group id."""

    def __init__(
        self, settings: BrokerSettings, brokers: BrokerConfigManager, groups: GroupConfigManager
    ) -> None:
        self._settings = settings
        self._brokers = brokers
        self._groups = groups
        self._consumer = ConsumerGroupConfig(
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_max_size,
            settings.group_consumer_assignors,
            settings.group_consumer_assignment_interval_ms,
            settings.group_consumer_regex_refresh_interval_ms,
            MigrationPolicy(settings.group_consumer_migration_policy),
            settings.group_max_size,
        )

    def consumer(self, group_id: str) -> ConsumerGroupConfig:
        """Returns the config of a group of the consumer protocol."""
        return self._consumer._replace(**self._overrides(group_id, GROUP_SETTINGS))

    def share(self, group_id: str) -> ShareGroupConfig:
        """Returns the config of the members of a share group."""
        config = ShareGroupConfig(
            max_size=self._settings.group_share_max_size, **self._defaults(SHARE_GROUP_SETTINGS)
        )
        return config._replace(**self._overrides(group_id, SHARE_GROUP_SETTINGS))

    def share_partition(self, group_id: str) -> SharePartitionConfig:
        """Returns the config of the share partitions of a share group."""
        texts = self._groups.configs_of(group_id)
        config = SharePartitionConfig(
            **self._defaults(SHARE_PARTITION_SETTINGS),
            auto_offset_reset=texts.get("share.auto.offset.reset", "latest"),
            is_read_committed=texts.get("share.isolation.level") == "read_committed",
            allows_renew=texts.get("share.renew.acknowledge.enable", "true") == "true",
        )
        return config._replace(**self._overrides(group_id, SHARE_PARTITION_SETTINGS))

    def _defaults(self, table: Mapping[str, GroupSetting]) -> dict[str, Any]:
        return {it.field: it.value(self._settings) for it in table.values()}

    def _overrides(self, group_id: str, table: Mapping[str, GroupSetting]) -> dict[str, Any]:
        configs = self._groups.configs_of(group_id)
        of_brokers = self._brokers.configs_of(ALL_BROKERS)
        return {
            setting.field: int(text)
            for name, setting in table.items()
            for text in _first(configs.get(name), of_brokers.get(f"group.{name}"))
        }


def _first(*texts: str | None) -> Iterable[str]:
    return [it for it in texts if it is not None][:1]
