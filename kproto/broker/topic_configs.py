"""Lists the topic configs with Kafka's names and defaults, and validates their values.

Configs with an attribute in `TopicConfig` take effect. All other configs are stored and described
but have no effect; most of these configs concern disks, compaction or remote storage. Source: Kafka
4.4, "Topic Configs".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ..records import codec_for_name
from ..records.codecs.compression import level_for
from ..wire.errors import ConfigurationError
from .api_error import api_error

__all__ = ["DEFAULTS", "TopicConfig"]

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

_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
_CLEANUP_POLICIES: Final = frozenset({"compact", "delete"})

#: Kafka's log.retention.check.interval.ms.
_CHECK_INTERVAL_MS: Final = 300_000

#: Kafka's producer.id.expiration.ms.
_PRODUCER_EXPIRATION_MS: Final = 86_400_000

_NEVER: Final = "9223372036854775807"

#: Kafka's defaults by config name. For max.message.bytes, `TopicConfig` uses the broker's
#: message_max_bytes as the default instead.
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "delete",
        "compression.gzip.level": "-1",
        "compression.lz4.level": "9",
        "compression.type": "producer",
        "compression.zstd.level": "3",
        "delete.retention.ms": "86400000",
        "errors.deadletterqueue.group.enable": "false",
        "file.delete.delay.ms": "60000",
        "flush.messages": _NEVER,
        "flush.ms": _NEVER,
        "follower.replication.throttled.replicas": "",
        "index.interval.bytes": "4096",
        "leader.replication.throttled.replicas": "",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.compaction.lag.ms": _NEVER,
        "max.decompressed.message.bytes": "2147483639",
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": _NEVER,
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "min.insync.replicas": "1",
        "preallocate": "false",
        "remote.copy.lag.bytes": "-1",
        "remote.copy.lag.ms": "0",
        "remote.log.copy.disable": "false",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
        "unclean.leader.election.enable": "false",
    }
)


class _ConfigKind(NamedTuple):
    """Holds a format of config values; `name` is its name in error messages."""

    name: str
    pattern: re.Pattern[str]


#: The formats of values. A config has the first format that matches its default.
_CONFIG_KINDS: Final = (
    _ConfigKind("a whole number", re.compile(r"-?[0-9]{1,19}")),
    _ConfigKind("a number", re.compile(r"-?[0-9]+\.[0-9]+")),
    _ConfigKind("true or false", re.compile("true|false")),
    _ConfigKind("text", re.compile(".*")),
)


class TopicConfig:
    """Holds the configs of one topic. Raises INVALID_CONFIG for an unknown name or invalid value.

    `configs` are the configs to set; the attribute `overrides` has them. The other attributes are:

    max_message_bytes            maximum size of a batch
    timestamp_before_max_ms      how far in the past a producer's timestamp may be
    timestamp_after_max_ms       how far in the future a producer's timestamp may be
    log_append_time              whether the broker sets the timestamps of records
    min_insync_replicas          minimum size of the ISR for acks=-1
    requires_keys                whether records must have keys, because the topic is compacted
    retention_bytes              maximum size of a log; negative for no limit
    retention_ms                 maximum age of a batch; negative for no limit
    retention_check_interval_ms  time for which a batch that was too old at its append is kept
    producer_id_expiration_ms    time for which the state of an idle producer is kept
    compression                  the codec of stored batches; None to keep the producer's codec
    compression_level            the compression level; None for the default of the codec

    A topic that is only compacted has no retention limits.
    """

    def __init__(
        self,
        configs: Mapping[str, str | None],
        message_max_bytes: int,
        retention_check_interval_ms: int = _CHECK_INTERVAL_MS,
        producer_id_expiration_ms: int = _PRODUCER_EXPIRATION_MS,
    ) -> None:
        self._defaults = {**DEFAULTS, "max.message.bytes": str(message_max_bytes)}
        self.overrides: dict[str, str] = {}
        for name, value in configs.items():
            if name not in DEFAULTS:
                raise api_error("INVALID_CONFIG", f"no topic has a setting {name!r}")
            if value is None:
                raise api_error("INVALID_CONFIG", f"setting {name!r} has no value")
            _check_kind(name, value)
            self.overrides[name] = value
        self.max_message_bytes = self._number("max.message.bytes")
        self.timestamp_before_max_ms = self._number("message.timestamp.before.max.ms")
        self.timestamp_after_max_ms = self._number("message.timestamp.after.max.ms")
        self.log_append_time = self._one_of("message.timestamp.type", _TIMESTAMP_TYPES) == (
            "LogAppendTime"
        )
        self.min_insync_replicas = self._number("min.insync.replicas", least=1)
        policies = self._cleanup_policies()
        self.requires_keys = "compact" in policies
        is_cut = "delete" in policies
        retention_ms = self._number("retention.ms", least=-1)
        self.retention_bytes = int(self["retention.bytes"]) if is_cut else -1
        self.retention_ms = retention_ms if is_cut else -1
        self.retention_check_interval_ms = retention_check_interval_ms
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.compression = _CODECS[self._one_of("compression.type", _CODECS)]
        self.compression_level = self._compression_level()

    def __getitem__(self, name: str) -> str:
        return self.overrides.get(name, self._defaults[name])

    def _number(self, name: str, least: int = 0) -> int:
        number = int(self[name])
        if number < least:
            raise api_error("INVALID_CONFIG", f"{name} is {number}; it must be at least {least}")
        return number

    def _one_of(self, name: str, allowed: Collection[str]) -> str:
        if self[name] not in allowed:
            raise api_error(
                "INVALID_CONFIG", f"{name} is {self[name]!r}; it is one of {', '.join(allowed)}"
            )
        return self[name]

    def _cleanup_policies(self) -> set[str]:
        policies = {policy.strip() for policy in self["cleanup.policy"].split(",")}
        if not policies <= _CLEANUP_POLICIES:
            raise api_error(
                "INVALID_CONFIG",
                f"cleanup.policy is {self['cleanup.policy']!r}; it is compact, delete or both",
            )
        return policies

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


def _check_kind(name: str, value: str) -> None:
    """Raises INVALID_CONFIG if `value` does not have the format of the config's default."""
    kind = next(kind for kind in _CONFIG_KINDS if kind.pattern.fullmatch(DEFAULTS[name]))
    if not kind.pattern.fullmatch(value):
        raise api_error("INVALID_CONFIG", f"{name} is {value!r}; it must be {kind.name}")
