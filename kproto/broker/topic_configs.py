"""The settings that a topic may have, under Kafka's names: a table, and reading what was asked.

Three of them act here. The others are kept and shown, and change nothing: there is no disk, no
second replica and no clean-up. Source: Kafka 4.4, "Topic Configs".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from .refusal import refusal

__all__ = ["DEFAULTS", "TopicConfig"]

_NEVER: Final = "9223372036854775807"

#: Kafka's defaults, by name; that of max.message.bytes is the broker's message_max_bytes.
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


class _Kind(NamedTuple):
    name: str
    pattern: re.Pattern[str]


#: What a value may look like, by what the default looks like; the first that fits counts.
_KINDS: Final = (
    _Kind("a whole number", re.compile(r"-?[0-9]{1,19}")),
    _Kind("a number", re.compile(r"-?[0-9]+\.[0-9]+")),
    _Kind("true or false", re.compile("true|false")),
    _Kind("text", re.compile(".*")),
)


class TopicConfig:
    """The settings of one topic. Raises INVALID_CONFIG for one that no topic has.

    `given` holds those that were set, `max_message_bytes` the largest batch in bytes,
    `log_append_time` whether the broker stamps records, and `timestamp_after_max_ms` how far in
    the future a record may be.
    """

    def __init__(self, given: Mapping[str, str | None], message_max_bytes: int) -> None:
        self._defaults = {**DEFAULTS, "max.message.bytes": str(message_max_bytes)}
        self.given: dict[str, str] = {}
        for name, value in given.items():
            if name not in DEFAULTS:
                raise refusal("INVALID_CONFIG", f"no topic has a setting {name!r}")
            if value is None:
                raise refusal("INVALID_CONFIG", f"setting {name!r} has no value")
            _check_kind(name, value)
            self.given[name] = value
        self.max_message_bytes = self._number("max.message.bytes")
        self.timestamp_after_max_ms = self._number("message.timestamp.after.max.ms")
        self.log_append_time = self._timestamp_type() == "LogAppendTime"

    def __getitem__(self, name: str) -> str:
        return self.given.get(name, self._defaults[name])

    def _number(self, name: str) -> int:
        number = int(self[name])
        if number < 0:
            raise refusal("INVALID_CONFIG", f"{name} is {number}; it must be at least 0")
        return number

    def _timestamp_type(self) -> str:
        name = "message.timestamp.type"
        if self[name] not in ("CreateTime", "LogAppendTime"):
            raise refusal(
                "INVALID_CONFIG", f"{name} is {self[name]!r}; it is CreateTime or LogAppendTime"
            )
        return self[name]


def _check_kind(name: str, value: str) -> None:
    """Raise INVALID_CONFIG when the value is not of the kind of the default."""
    kind = next(kind for kind in _KINDS if kind.pattern.fullmatch(DEFAULTS[name]))
    if not kind.pattern.fullmatch(value):
        raise refusal("INVALID_CONFIG", f"{name} is {value!r}; it must be {kind.name}")
