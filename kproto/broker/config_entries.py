"""Lists the config entries of DescribeConfigs: Kafka's names, types and defaults as tables.

Source: the responses of brokers of Kafka 4.4.0. The table of broker configs has most of the configs
that correspond to a setting of `BrokerSettings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from .group_configs import GROUP_SETTINGS
from .settings import BrokerSettings
from .topic_configs import DEFAULTS, TopicConfig

__all__ = [
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "broker_entries",
    "group_entries",
    "topic_entries",
]


class ConfigType(IntEnum):
    """Names the types of configs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Names the sources of a config's value (KIP-226)."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5
    GROUP = 8


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


_BOOLEAN, _STRING, _INT, _LONG, _LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
)

#: The type of each topic config, and the broker config that is its default (empty for none).
_TOPIC: Final[Mapping[str, tuple[ConfigType, str]]] = MappingProxyType(
    {
        "cleanup.policy": (ConfigType.LIST, "log.cleanup.policy"),
        "compression.gzip.level": (_INT, "compression.gzip.level"),
        "compression.lz4.level": (_INT, "compression.lz4.level"),
        "compression.type": (_STRING, "compression.type"),
        "compression.zstd.level": (_INT, "compression.zstd.level"),
        "delete.retention.ms": (_LONG, "log.cleaner.delete.retention.ms"),
        "errors.deadletterqueue.group.enable": (_BOOLEAN, ""),
        "file.delete.delay.ms": (_LONG, "log.segment.delete.delay.ms"),
        "flush.messages": (_LONG, "log.flush.interval.messages"),
        "flush.ms": (_LONG, ""),
        "follower.replication.throttled.replicas": (ConfigType.LIST, ""),
        "index.interval.bytes": (_INT, "log.index.interval.bytes"),
        "leader.replication.throttled.replicas": (ConfigType.LIST, ""),
        "local.retention.bytes": (_LONG, "log.local.retention.bytes"),
        "local.retention.ms": (_LONG, "log.local.retention.ms"),
        "max.compaction.lag.ms": (_LONG, "log.cleaner.max.compaction.lag.ms"),
        "max.decompressed.message.bytes": (_INT, "max.decompressed.message.bytes"),
        "max.message.bytes": (_INT, "message.max.bytes"),
        "message.timestamp.after.max.ms": (_LONG, "log.message.timestamp.after.max.ms"),
        "message.timestamp.before.max.ms": (_LONG, "log.message.timestamp.before.max.ms"),
        "message.timestamp.type": (_STRING, "log.message.timestamp.type"),
        "min.cleanable.dirty.ratio": (ConfigType.DOUBLE, "log.cleaner.min.cleanable.ratio"),
        "min.compaction.lag.ms": (_LONG, "log.cleaner.min.compaction.lag.ms"),
        "min.insync.replicas": (_INT, "min.insync.replicas"),
        "preallocate": (_BOOLEAN, "log.preallocate"),
        "remote.copy.lag.bytes": (_LONG, "log.remote.copy.lag.bytes"),
        "remote.copy.lag.ms": (_LONG, "log.remote.copy.lag.ms"),
        "remote.log.copy.disable": (_BOOLEAN, ""),
        "remote.log.delete.on.disable": (_BOOLEAN, ""),
        "remote.storage.enable": (_BOOLEAN, ""),
        "retention.bytes": (_LONG, "log.retention.bytes"),
        "retention.ms": (_LONG, "log.retention.hours"),
        "segment.bytes": (_INT, "log.segment.bytes"),
        "segment.index.bytes": (_INT, "log.index.size.max.bytes"),
        "segment.jitter.ms": (_LONG, ""),
        "segment.ms": (_LONG, ""),
        "unclean.leader.election.enable": (_BOOLEAN, "unclean.leader.election.enable"),
    }
)

#: Defaults of broker configs whose unit differs from that of the topic config.
_OTHER_UNITS: Final = MappingProxyType({"log.retention.hours": "168"})


class _BrokerConfigDef(NamedTuple):
    """Describes a broker config; `value` returns the config's value for the broker's settings.

    `default` is Kafka's default as text, None if Kafka has none.
    """

    name: str
    type: ConfigType
    default: str | None
    value: Callable[[BrokerSettings], object]
    read_only: bool = True
    is_sensitive: bool = False


_BROKER: Final = (
    _BrokerConfigDef(
        "allow.everyone.if.no.acl.found",
        _BOOLEAN,
        "false",
        lambda it: it.allow_everyone_if_no_acl_found,
    ),
    _BrokerConfigDef(
        "auto.create.topics.enable", _BOOLEAN, "true", lambda it: it.auto_create_topics
    ),
    _BrokerConfigDef("broker.id", _INT, "-1", lambda it: it.node_id),
    _BrokerConfigDef("broker.rack", _STRING, None, lambda it: it.rack),
    _BrokerConfigDef("connections.max.idle.ms", _LONG, "600000", lambda it: it.idle_timeout_ms),
    _BrokerConfigDef(
        "connections.max.reauth.ms", _LONG, "0", lambda it: it.sasl_session_lifetime_ms
    ),
    _BrokerConfigDef(
        "delegation.token.expiry.time.ms",
        _LONG,
        "86400000",
        lambda it: it.delegation_token_expiry_time_ms,
    ),
    _BrokerConfigDef(
        "delegation.token.max.lifetime.ms",
        _LONG,
        "604800000",
        lambda it: it.delegation_token_max_lifetime_ms,
    ),
    _BrokerConfigDef(
        "delegation.token.secret.key",
        ConfigType.PASSWORD,
        None,
        lambda it: it.delegation_token_secret_key,
        is_sensitive=True,
    ),
    _BrokerConfigDef("fetch.max.bytes", _INT, "57671680", lambda it: it.fetch_max_bytes),
    _BrokerConfigDef(
        "group.consumer.assignment.interval.ms",
        _INT,
        "1000",
        lambda it: it.group_consumer_assignment_interval_ms,
        read_only=False,
    ),
    _BrokerConfigDef(
        "group.consumer.assignors", _LIST, "uniform,range", lambda it: it.group_consumer_assignors
    ),
    _BrokerConfigDef(
        "group.consumer.heartbeat.interval.ms",
        _INT,
        "5000",
        lambda it: it.group_consumer_heartbeat_interval_ms,
    ),
    _BrokerConfigDef(
        "group.consumer.max.heartbeat.interval.ms",
        _INT,
        "15000",
        lambda it: it.group_consumer_max_heartbeat_interval_ms,
    ),
    _BrokerConfigDef(
        "group.consumer.max.session.timeout.ms",
        _INT,
        "60000",
        lambda it: it.group_consumer_max_session_timeout_ms,
    ),
    _BrokerConfigDef(
        "group.consumer.max.size", _INT, "2147483647", lambda it: it.group_consumer_max_size
    ),
    _BrokerConfigDef(
        "group.consumer.migration.policy",
        _STRING,
        "bidirectional",
        lambda it: it.group_consumer_migration_policy,
    ),
    _BrokerConfigDef(
        "group.consumer.min.heartbeat.interval.ms",
        _INT,
        "5000",
        lambda it: it.group_consumer_min_heartbeat_interval_ms,
    ),
    _BrokerConfigDef(
        "group.consumer.min.session.timeout.ms",
        _INT,
        "45000",
        lambda it: it.group_consumer_min_session_timeout_ms,
    ),
    _BrokerConfigDef(
        "group.consumer.regex.refresh.interval.ms",
        _INT,
        "600000",
        lambda it: it.group_consumer_regex_refresh_interval_ms,
    ),
    _BrokerConfigDef(
        "group.consumer.session.timeout.ms",
        _INT,
        "45000",
        lambda it: it.group_consumer_session_timeout_ms,
    ),
    _BrokerConfigDef(
        "group.coordinator.rebalance.protocols",
        _LIST,
        "classic,consumer,streams",
        lambda it: it.rebalance_protocols,
    ),
    _BrokerConfigDef(
        "group.initial.rebalance.delay.ms",
        _INT,
        "3000",
        lambda it: it.group_initial_rebalance_delay_ms,
    ),
    _BrokerConfigDef(
        "group.max.session.timeout.ms",
        _INT,
        "1800000",
        lambda it: it.group_max_session_timeout_ms,
    ),
    _BrokerConfigDef("group.max.size", _INT, "2147483647", lambda it: it.group_max_size),
    _BrokerConfigDef(
        "group.min.session.timeout.ms", _INT, "6000", lambda it: it.group_min_session_timeout_ms
    ),
    _BrokerConfigDef(
        "listeners",
        ConfigType.LIST,
        "PLAINTEXT://:9092",
        lambda it: ",".join(f"{one.name}://{one.host}:{one.port}" for one in it.all_listeners),
        read_only=False,
    ),
    _BrokerConfigDef(
        "log.retention.check.interval.ms",
        _LONG,
        "300000",
        lambda it: it.retention_check_interval_ms,
    ),
    _BrokerConfigDef(
        "max.incremental.fetch.session.cache.slots",
        _INT,
        "1000",
        lambda it: it.max_incremental_fetch_session_cache_slots,
    ),
    _BrokerConfigDef(
        "message.max.bytes", _INT, "1048588", lambda it: it.message_max_bytes, read_only=False
    ),
    _BrokerConfigDef("node.id", _INT, None, lambda it: it.node_id),
    _BrokerConfigDef("num.partitions", _INT, "1", lambda it: it.num_partitions),
    _BrokerConfigDef(
        "offset.metadata.max.bytes", _INT, "4096", lambda it: it.offset_metadata_max_bytes
    ),
    _BrokerConfigDef(
        "offsets.retention.check.interval.ms",
        _LONG,
        "600000",
        lambda it: it.offsets_retention_check_interval_ms,
    ),
    _BrokerConfigDef(
        "offsets.retention.minutes", _INT, "10080", lambda it: it.offsets_retention_minutes
    ),
    _BrokerConfigDef(
        "offsets.topic.num.partitions", _INT, "50", lambda it: it.offsets_topic_num_partitions
    ),
    _BrokerConfigDef(
        "producer.id.expiration.ms",
        _INT,
        "86400000",
        lambda it: it.producer_id_expiration_ms,
        read_only=False,
    ),
    _BrokerConfigDef("quota.window.num", _INT, "11", lambda it: it.quota_window_num),
    _BrokerConfigDef(
        "quota.window.size.seconds", _INT, "1", lambda it: it.quota_window_size_seconds
    ),
    _BrokerConfigDef("replica.selector.class", _STRING, None, lambda it: it.replica_selector),
    _BrokerConfigDef(
        "sasl.server.max.receive.size", _INT, "524288", lambda it: it.sasl_max_receive_bytes
    ),
    _BrokerConfigDef("socket.request.max.bytes", _INT, "104857600", lambda it: it.max_frame_bytes),
    _BrokerConfigDef("super.users", _STRING, "", lambda it: ";".join(it.super_users)),
)


def topic_entries(config: TopicConfig, settings: BrokerSettings) -> list[ConfigEntry]:
    """Returns all configs of a topic.

    The synonyms of a config are its value for the topic, the broker config and the default.
    """
    entries = []
    for name, (kind, broker_config) in _TOPIC.items():
        synonyms: list[ConfigSynonym] = []
        if name in config.overrides:
            synonyms.append(ConfigSynonym(name, config.overrides[name], ConfigSource.TOPIC))
        if name == "max.message.bytes" and str(settings.message_max_bytes) != DEFAULTS[name]:
            synonyms.append(
                ConfigSynonym(broker_config, str(settings.message_max_bytes), ConfigSource.BROKER)
            )
        if broker_config:
            default = _OTHER_UNITS.get(broker_config, DEFAULTS[name])
            synonyms.append(ConfigSynonym(broker_config, default, ConfigSource.DEFAULT))
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        entries.append(ConfigEntry(name, config[name], source, kind, tuple(synonyms)))
    return entries


def group_entries(configs: Mapping[str, str], settings: BrokerSettings) -> list[ConfigEntry]:
    """Returns all configs of a group; `configs` has the values that were set for the group."""
    entries = []
    for name, row in GROUP_SETTINGS.items():
        value = row.value(settings)
        synonyms = (
            [ConfigSynonym(name, configs[name], ConfigSource.GROUP)] if name in configs else []
        )
        if value != row.default:
            synonyms.append(ConfigSynonym(row.broker_config, str(value), ConfigSource.BROKER))
        synonyms.append(ConfigSynonym(row.broker_config, str(row.default), ConfigSource.DEFAULT))
        first = synonyms[0]
        entries.append(ConfigEntry(name, first.value, first.source, _INT, tuple(synonyms)))
    return entries


def broker_entries(settings: BrokerSettings) -> list[ConfigEntry]:
    """Returns the broker configs of this module's table; the value of a secret is None."""
    return [_broker_entry(row, settings) for row in _BROKER]


def _broker_entry(row: _BrokerConfigDef, settings: BrokerSettings) -> ConfigEntry:
    value = _text(row.value(settings))
    is_set = value is not None and value != row.default
    shown = None if row.is_sensitive else value
    synonyms = []
    if is_set:
        synonyms.append(ConfigSynonym(row.name, shown, ConfigSource.BROKER))
    if row.default is not None:
        synonyms.append(ConfigSynonym(row.name, row.default, ConfigSource.DEFAULT))
    return ConfigEntry(
        row.name,
        shown,
        ConfigSource.BROKER if is_set else ConfigSource.DEFAULT,
        row.type,
        tuple(synonyms),
        row.read_only,
        row.is_sensitive,
    )


def _text(value: object) -> str | None:
    """Returns a config value in Kafka's text format; None if it is not set."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
