"""Formats the tables of the configs that take effect in the embedded broker."""

from __future__ import annotations

from typing import Final

from kproto.broker.config_table import BROKER, GROUP, TOPIC, config_defs
from kproto.broker.effective_configs import (
    DYNAMIC_BROKER_CONFIGS,
    GROUP_CONFIGS,
    STATIC_CONFIGS,
    TOPIC_CONFIGS,
    ineffective_configs,
)

from .tables import code, table

__all__ = ["configs_table"]

_YES: Final = "yes"


def configs_table(of: str) -> str:
    """Returns the table of the configs of topics, brokers or groups, with those without effect.

    Raises LookupError for any other `of`.
    """
    makers = {"topics": _topics, "brokers": _brokers, "groups": _groups}
    if of not in makers:
        raise LookupError(f"there is no table of the configs of {of}; there are {list(makers)}")
    return makers[of]()


def _topics() -> str:
    known = config_defs(TOPIC)
    rows = [
        (code(name), code(known[name].broker_config), code(known[name].default or ""))
        for name in sorted(TOPIC_CONFIGS)
    ]
    heads = ("config of a topic with effect", "config of brokers for its default", "default")
    return table(heads, rows) + _without_effect("topics", ineffective_configs(TOPIC))


def _brokers() -> str:
    known = config_defs(BROKER)
    rows = [
        (
            code(name),
            _YES if name in STATIC_CONFIGS else "",
            _YES if name in DYNAMIC_BROKER_CONFIGS else "",
        )
        for name in sorted((STATIC_CONFIGS & set(known)) | DYNAMIC_BROKER_CONFIGS)
    ]
    heads = (
        "config of a broker with effect",
        "set by a setting of `BrokerSettings`",
        "altered by an admin client",
    )
    return table(heads, rows) + _without_effect("brokers", ineffective_configs(BROKER))


def _groups() -> str:
    known = config_defs(GROUP)
    rows = [(code(name), code(known[name].default or "")) for name in sorted(GROUP_CONFIGS)]
    ineffective = sorted(set(known) - GROUP_CONFIGS)
    return table(("config of a group with effect", "default"), rows) + _without_effect(
        "groups", ineffective
    )


def _without_effect(of: str, names: list[str]) -> str:
    listed = ", ".join(map(code, names))
    return f"\nStored and described, but without effect ({len(names)} configs of {of}): {listed}.\n"
