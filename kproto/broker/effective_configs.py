"""Names the configs that take effect in the embedded broker; all others are only stored.

`tools/docs/configs.py` prints the tables of the documentation from these names. A test alters each
config of Kafka and compares the effect with these names.
"""

from __future__ import annotations

from typing import Final

from .config_table import BROKER, TOPIC, config_defs
from .group_configs import GROUP_SETTINGS
from .static_configs import STATIC_CONFIGS

__all__ = [
    "DYNAMIC_BROKER_CONFIGS",
    "GROUP_CONFIGS",
    "STATIC_CONFIGS",
    "TOPIC_CONFIGS",
    "ineffective_configs",
]

#: The configs of a topic that take effect.
TOPIC_CONFIGS: Final = frozenset(
    {
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)

#: The configs of a group that take effect.
GROUP_CONFIGS: Final = frozenset(GROUP_SETTINGS)

#: The configs of a broker that take effect when an admin client alters them: the defaults of the
#: topic configs, and three others.
DYNAMIC_BROKER_CONFIGS: Final = frozenset(
    {
        *(
            config.broker_config
            for config in config_defs(TOPIC).values()
            if config.name in TOPIC_CONFIGS and not config.name.startswith("compression.")
        ),
        "compression.type",
        "group.consumer.assignment.interval.ms",
        "log.cleaner.backoff.ms",
        "producer.id.expiration.ms",
    }
)


def ineffective_configs(kind: str) -> list[str]:
    """Returns the configs of a kind, TOPIC or BROKER, that are stored without effect, sorted."""
    effective = TOPIC_CONFIGS if kind == TOPIC else DYNAMIC_BROKER_CONFIGS | STATIC_CONFIGS
    assert kind in (TOPIC, BROKER), kind
    return sorted(set(config_defs(kind)) - effective)
