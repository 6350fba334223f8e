"""Lists the config entries of DescribeConfigs: each config with its value, source and synonyms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .config_table import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ConfigDef,
    ConfigSource,
    ConfigType,
    config_defs,
)
from .dynamic_configs import ALL_BROKERS, BrokerConfigManager
from .settings import BrokerSettings
from .static_configs import static_configs
from .topic_configs import TopicConfig

__all__ = [
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "all_brokers_entries",
    "broker_entries",
    "client_metrics_entries",
    "group_entries",
    "logger_entries",
    "topic_entries",
]


class ConfigSynonym(NamedTuple):
    """Holds a config that can set the value of a `ConfigEntry`.

    In a list of synonyms, the first synonym sets the value.
    """

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """Holds a config with its value and the value's source, for DescribeConfigs.

    `value` is None for a secret, and for a config that is not set and has no default.
    """

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    synonyms: tuple[ConfigSynonym, ...]
    read_only: bool = False
    is_sensitive: bool = False


def topic_entries(
    config: TopicConfig, settings: BrokerSettings, brokers: BrokerConfigManager
) -> list[ConfigEntry]:
    """Returns all configs of a topic, as the node with `settings` describes them.

    The synonyms of a config are its value for the topic, and the values of the broker config that
    is its default.
    """
    static, entries = static_configs(settings), []
    for each in config_defs(TOPIC).values():
        synonyms: list[ConfigSynonym] = []
        if each.name in config.overrides:
            value = config.overrides[each.name]
            synonyms.append(ConfigSynonym(each.name, value, ConfigSource.TOPIC))
        if each.broker_config:
            synonyms += _broker_values(each.broker_config, settings, static, brokers)
        entries.append(_entry(each, synonyms, each.default))
    return entries


def group_entries(
    configs: Mapping[str, str], settings: BrokerSettings, brokers: BrokerConfigManager
) -> list[ConfigEntry]:
    """Returns all configs of a group; `configs` has the values that were set for the group."""
    static, entries = static_configs(settings), []
    for each in config_defs(GROUP).values():
        synonyms = (
            [ConfigSynonym(each.name, configs[each.name], ConfigSource.GROUP)]
            if each.name in configs
            else []
        )
        if each.broker_config in config_defs(BROKER):
            synonyms += _broker_values(each.broker_config, settings, static, brokers)
        else:
            synonyms += _defaults(each)
        entries.append(_entry(each, synonyms, each.default))
    return entries


def client_metrics_entries(configs: Mapping[str, str]) -> list[ConfigEntry]:
    """Returns all configs of a client metrics subscription."""
    return [
        _entry(
            each,
            [ConfigSynonym(each.name, configs[each.name], ConfigSource.CLIENT_METRICS)]
            if each.name in configs
            else [],
            each.default,
        )
        for each in config_defs(CLIENT_METRICS).values()
    ]


def logger_entries(levels: Mapping[str, str]) -> list[ConfigEntry]:
    """Returns the level of each logger as a config."""
    return [
        ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER, ConfigType.UNKNOWN, ())
        for name, level in levels.items()
    ]


def broker_entries(settings: BrokerSettings, brokers: BrokerConfigManager) -> list[ConfigEntry]:
    """Returns the configs of a broker; the value of a secret is None."""
    static, known = static_configs(settings), config_defs(BROKER)
    names = {
        *known,
        *static,
        *brokers.configs_of(str(settings.node_id)),
        *brokers.configs_of(ALL_BROKERS),
    }
    return [
        _entry(
            known.get(name, _unknown(name)), _broker_values(name, settings, static, brokers), None
        )
        for name in sorted(names)
    ]


def all_brokers_entries(brokers: BrokerConfigManager) -> list[ConfigEntry]:
    """Returns the dynamic configs that are set for all brokers."""
    known, source = config_defs(BROKER), ConfigSource.DYNAMIC_DEFAULT_BROKER
    return [
        _entry(known.get(name, _unknown(name)), [ConfigSynonym(name, value, source)], None)
        for name, value in sorted(brokers.configs_of(ALL_BROKERS).items())
    ]


#: Configs of replication quotas, which Kafka's table of broker configs lacks (KIP-73).
_THROTTLED_RATES = (
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def _unknown(name: str) -> ConfigDef:
    """Returns the definition of a config that the table lacks; as in Kafka, its value is hidden."""
    if name in _THROTTLED_RATES:
        return ConfigDef(name, ConfigType.LONG, None, ())
    return ConfigDef(name, ConfigType.UNKNOWN, None, (), is_sensitive=True, update="read-only")


def _broker_values(
    name: str,
    settings: BrokerSettings,
    static: Mapping[str, str],
    brokers: BrokerConfigManager,
) -> list[ConfigSynonym]:
    """Returns the values of a broker config, the value that applies first."""
    found = [
        ConfigSynonym(name, value, source)
        for value, source in brokers.values(str(settings.node_id), name)
    ]
    if name in static:
        found.append(ConfigSynonym(name, static[name], ConfigSource.STATIC_BROKER))
    config = config_defs(BROKER).get(name)
    return found if config is None else [*found, *_defaults(config)]


def _defaults(config: ConfigDef) -> Iterable[ConfigSynonym]:
    return (ConfigSynonym(name, value, ConfigSource.DEFAULT) for name, value in config.synonyms)


def _entry(config: ConfigDef, synonyms: list[ConfigSynonym], default: str | None) -> ConfigEntry:
    """Returns the entry of a config.

    The value is that of the first synonym with the config's own unit, else `default`.
    """
    first = next((it for it in synonyms if it.source is not ConfigSource.DEFAULT), None)
    value = first.value if first else default if default is not None else config.default
    if config.is_sensitive:
        value = None
        synonyms = [it._replace(value=None) for it in synonyms]
    return ConfigEntry(
        config.name,
        value,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        config.type,
        tuple(synonyms),
        config.read_only,
        config.is_sensitive,
    )
