"""Validates the configs of topics, and converts them to the limits that the broker applies.

Configs with an attribute in `TopicConfig` take effect. All other configs are stored and described
but have no effect; most of these configs concern disks or remote storage. Names, defaults and
bounds are in `config_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..records import codec_for_name
from ..records.codecs.compression import level_for
from ..wire.errors import ConfigurationError
from .api_error import api_error
from .config_table import TOPIC, ConfigSource, ConfigType, checked_value, config_defs, split_list

__all__ = ["DEFAULTS", "LIST_DEFAULTS", "NO_CONFIGS", "TopicConfig"]

#: The codec for each value of compression.type; None for the producer's codec.
_CODECS: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        "producer": None,
        "uncompressed": "none",
        "gzip": "gzip",
        "snappy": "snappy",
        "lz4": "lz4",
        "zstd": "zstd",
    }
)

NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})

#: Kafka's log.retention.check.interval.ms.
_CHECK_INTERVAL_MS: Final = 300_000

#: Kafka's producer.id.expiration.ms.
_PRODUCER_EXPIRATION_MS: Final = 86_400_000

#: Kafka's log.cleaner.backoff.ms.
_CLEANER_BACKOFF_MS: Final = 15_000

#: Kafka's defaults by config name. For max.message.bytes, `TopicConfig` uses the broker's
#: message_max_bytes as the default instead.
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {name: config.default or "" for name, config in config_defs(TOPIC).items()}
)


#: The default of each topic config that is a list.
LIST_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: config.default or ""
        for name, config in config_defs(TOPIC).items()
        if config.type is ConfigType.LIST
    }
)


class TopicConfig:
    """Holds the configs of one topic. Raises INVALID_CONFIG for an unknown name or invalid value.

    `configs` are the configs to set; the attribute `overrides` has them. `defaults` are the values
    of dynamic broker configs, by the names of the topic configs that they are the defaults of. The
    other attributes are:

    max_message_bytes            maximum size of a batch
    timestamp_before_max_ms      how far in the past a producer's timestamp may be
    timestamp_after_max_ms       how far in the future a producer's timestamp may be
    log_append_time              whether the broker sets the timestamps of records
    min_insync_replicas          minimum size of the ISR for acks=-1
    requires_keys                whether records must have keys, because the topic is compacted
    retention_bytes              maximum size of a log; negative for no limit
    retention_ms                 maximum age of a batch; negative for no limit
    segment_bytes                maximum size of a segment
    segment_ms                   maximum difference of the timestamps in a segment
    min_cleanable_dirty_ratio    minimum share of dirty bytes for a compaction
    min_compaction_lag_ms        minimum age of a record that is compacted
    max_compaction_lag_ms        maximum age of a record that is not compacted yet
    delete_retention_ms          time for which a tombstone is kept after a compaction
    cleaner_backoff_ms           minimum time between two checks for compaction
    retention_check_interval_ms  time for which a batch that was too old at its append is kept
    producer_id_expiration_ms    time for which the state of an idle producer is kept
    compression                  the codec of stored batches; None to keep the producer's codec
    compression_level            the compression level; None for the default of the codec
    unclean_leader_election      whether a replica that is not in sync may become the leader

    A topic that is only compacted has no retention limits.
    """

    def __init__(
        self,
        configs: Mapping[str, str | None],
        message_max_bytes: int,
        retention_check_interval_ms: int = _CHECK_INTERVAL_MS,
        producer_id_expiration_ms: int = _PRODUCER_EXPIRATION_MS,
        defaults: Mapping[str, str] = NO_CONFIGS,
        cleaner_backoff_ms: int = _CLEANER_BACKOFF_MS,
    ) -> None:
        self._defaults = {**DEFAULTS, "max.message.bytes": str(message_max_bytes), **defaults}
        self._dynamic_defaults = frozenset(defaults)
        self.overrides = _checked(configs)
        self.max_message_bytes = self._number("max.message.bytes")
        self.timestamp_before_max_ms = self._number("message.timestamp.before.max.ms")
        self.timestamp_after_max_ms = self._number("message.timestamp.after.max.ms")
        self.log_append_time = self["message.timestamp.type"] == "LogAppendTime"
        self.min_insync_replicas = self._number("min.insync.replicas")
        policies = split_list(self["cleanup.policy"])
        self.requires_keys = "compact" in policies
        is_cut = "delete" in policies
        self.retention_bytes = self._number("retention.bytes") if is_cut else -1
        self.retention_ms = self._number("retention.ms") if is_cut else -1
        self.min_cleanable_dirty_ratio = float(self["min.cleanable.dirty.ratio"])
        self.min_compaction_lag_ms = self._number("min.compaction.lag.ms")
        self.max_compaction_lag_ms = self._number("max.compaction.lag.ms")
        self.delete_retention_ms = self._number("delete.retention.ms")
        self.segment_bytes = self._number("segment.bytes")
        self.segment_ms = self._number("segment.ms")
        if self.requires_keys:
            self.segment_ms = min(self.segment_ms, self.max_compaction_lag_ms)
        self.cleaner_backoff_ms = cleaner_backoff_ms
        self.unclean_leader_election = self["unclean.leader.election.enable"] == "true"
        self.retention_check_interval_ms = retention_check_interval_ms
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.compression = _CODECS[self["compression.type"]]
        self.compression_level = self._compression_level()

    def __getitem__(self, name: str) -> str:
        return self.overrides.get(name, self._defaults[name])

    def source(self, name: str) -> ConfigSource:
        """Returns the source of a config's value, for the response of CreateTopics."""
        if name in self.overrides:
            return ConfigSource.TOPIC
        if name in self._dynamic_defaults:
            return ConfigSource.DYNAMIC_DEFAULT_BROKER
        if self._defaults[name] != DEFAULTS[name]:
            return ConfigSource.STATIC_BROKER
        return ConfigSource.DEFAULT

    def _number(self, name: str) -> int:
        return int(self[name])

    def _compression_level(self) -> int | None:
        """Returns the level that is set for the codec; None if no level or no codec is set.

        Raises INVALID_CONFIG for a level that the codec does not have.
        """
        name = f"compression.{self.compression}.level"
        if self.compression is None or name not in self.overrides:
            return None
        try:
            return level_for(codec_for_name(self.compression), int(self[name]))
        except ConfigurationError as error:
            raise api_error("INVALID_CONFIG", f"{name}: {error}") from None


def _checked(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the values of `configs` in Kafka's format. Raises INVALID_CONFIG."""
    checked: dict[str, str] = {}
    known = config_defs(TOPIC)
    for name, value in configs.items():
        if value is None:
            raise api_error("INVALID_CONFIG", f"Null value not supported for topic configs: {name}")
        if name not in known:
            raise api_error("INVALID_CONFIG", f"Unknown topic config name: {name}")
        checked[name] = checked_value(known[name], value)
    if checked.get("remote.storage.enable") == "true":
        raise api_error(
            "INVALID_CONFIG",
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage.",
        )
    return checked
