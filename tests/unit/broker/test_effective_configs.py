"""Tests that exactly the configs of `effective_configs` change what the embedded broker does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.broker import BrokerSettings, effective_configs
from kproto.broker.cluster_state import ClusterState
from kproto.broker.config_changes import AlterOp
from kproto.broker.config_table import BROKER, GROUP, TOPIC, ConfigDef, ConfigType, config_defs
from kproto.broker.topic_configs import TopicConfig
from kproto.wire.errors import BrokerResponseError
from tests.unit.broker.test_handlers import context

BROKER_SOURCES: Final = Path(effective_configs.__file__).parent

#: Attributes of TopicConfig that say which configs are set, not what they do.
BOOKKEEPING: Final = ("overrides", "_defaults", "_dynamic_defaults")

#: Configs without which a config has no effect.
CONTEXT: Final = {
    "compression.gzip.level": {"compression.type": "gzip"},
    "compression.lz4.level": {"compression.type": "lz4"},
    "compression.zstd.level": {"compression.type": "zstd"},
    "max.compaction.lag.ms": {"cleanup.policy": "compact"},
}


def other_values(config: ConfigDef) -> Iterator[str]:
    """Yields values of a config that differ from its default; not all need be valid."""
    if config.type is ConfigType.BOOLEAN:
        yield "false" if config.default == "true" else "true"
    elif config.one_of:
        yield from (each for each in config.one_of if each != config.default)
    elif config.type in (ConfigType.STRING, ConfigType.LIST, ConfigType.CLASS, ConfigType.PASSWORD):
        yield from ("0:0", "x")
    else:
        number = float(config.default or 0)
        yield from (f"{number + step:.0f}" for step in (-1, 1, -100, 1000))
        yield from ("0.25", "5")
        yield "1048577"


def effects(config: TopicConfig) -> dict[str, Any]:
    return {name: value for name, value in vars(config).items() if name not in BOOKKEEPING}


def has_effect_on_topic(config: ConfigDef) -> bool:
    base = CONTEXT.get(config.name, {})
    before = effects(TopicConfig(base, 1_048_588))
    for value in other_values(config):
        try:
            after = effects(TopicConfig({**base, config.name: value}, 1_048_588))
        except BrokerResponseError:
            continue
        return after != before
    raise AssertionError(f"no valid value of {config.name} was tried")


def test_topic_configs_with_effect_are_named() -> None:
    changing = {
        name
        for name, config in config_defs(TOPIC).items()
        if name != "remote.storage.enable"  # refused
        and has_effect_on_topic(config)
    }
    assert changing == effective_configs.TOPIC_CONFIGS


def test_attributes_of_topic_configs_are_read() -> None:
    others = "\n".join(
        path.read_text(encoding="utf-8")
        for path in BROKER_SOURCES.rglob("*.py")
        if path.name != "topic_configs.py"
    )
    for name in effects(TopicConfig({}, 1)):
        assert re.search(rf"\.{name}\b", others), name


def state_of(cluster: ClusterState) -> object:
    topic = cluster.topics.named("t")
    return effects(topic.config), cluster.groups._consumer_limits("g")


@pytest.mark.parametrize(
    "config",
    [each for each in config_defs(BROKER).values() if each.update in ("cluster", "broker")],
    ids=lambda each: each.name,
)
def test_dynamic_broker_configs_with_effect_are_named(config: ConfigDef) -> None:
    cluster = context(settings=BrokerSettings()).cluster
    assert cluster.topics.get("t") is not None
    before = state_of(cluster)
    is_named = config.name in effective_configs.DYNAMIC_BROKER_CONFIGS
    node = "" if config.update == "cluster" else "1"
    for value in other_values(config):
        change = (config.name, AlterOp.SET, value)
        try:
            cluster.alter_broker_configs(node, [change], validate_only=False)
        except BrokerResponseError:
            continue
        assert (state_of(cluster) != before) == is_named
        return
    assert not is_named, "no valid value was tried"


def test_group_configs_with_effect_exist() -> None:
    assert set(config_defs(GROUP)) >= effective_configs.GROUP_CONFIGS


def test_every_config_has_an_effect_or_not() -> None:
    for kind in (TOPIC, BROKER):
        ineffective = effective_configs.ineffective_configs(kind)
        assert ineffective == sorted(ineffective)
    assert len(effective_configs.ineffective_configs(TOPIC)) + len(
        effective_configs.TOPIC_CONFIGS
    ) == len(config_defs(TOPIC))
