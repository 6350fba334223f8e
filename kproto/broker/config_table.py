"""Reads the table of Kafka's configs, and validates values by it.

The data file `configs.jsonl` in this package has a JSON object for each config of topics, brokers,
groups and client metrics. `python -m tools.config_facts` writes the file from the answers of a
broker of Kafka 4.4.0. The keys of an object:

kind           topic, broker, group or client-metrics
name, type     as DescribeConfigs returns them
default        the default value; null for none
synonyms       the configs that DescribeConfigs lists as defaults, with their values. Without the
               key, the config itself is the only one if it has a default
sensitive      whether DescribeConfigs hides the value
update         of a broker config: read-only, or the largest scope in which it can be altered:
               cluster, broker or listener
least, most    the bounds of a number; `also` is a valid number outside of the bounds
one_of         the valid texts
broker_config  the broker config that sets the default of a topic or group
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ..protocol.config_types import ConfigSource, ConfigType
from ..wire.errors import BrokerResponseError
from .api_error import api_error

__all__ = [
    "BROKER",
    "CLIENT_METRICS",
    "GROUP",
    "TOPIC",
    "ConfigDef",
    "ConfigSource",
    "ConfigType",
    "checked_value",
    "config_defs",
    "split_list",
]

_FILE_NAME: Final = "configs.jsonl"

#: The kinds of configs in the table.
TOPIC: Final = "topic"
BROKER: Final = "broker"
GROUP: Final = "group"
CLIENT_METRICS: Final = "client-metrics"


class ConfigDef(NamedTuple):
    """Describes a config; see the keys of the data file in the docstring of this module."""

    name: str
    type: ConfigType
    default: str | None
    synonyms: tuple[tuple[str, str], ...]
    is_sensitive: bool = False
    update: str = ""
    least: float | None = None
    most: float | None = None
    also: float | None = None
    one_of: tuple[str, ...] = ()
    broker_config: str = ""

    @property
    def read_only(self) -> bool:
        """Returns True if no request can alter the config."""
        return self.update == "read-only"


@cache
def config_defs(kind: str) -> Mapping[str, ConfigDef]:
    """Returns the configs of a kind by name, sorted by name."""
    return _all()[kind]


@cache
def _all() -> Mapping[str, Mapping[str, ConfigDef]]:
    file = resources.files(__name__.rpartition(".")[0]).joinpath(_FILE_NAME)
    found: dict[str, dict[str, ConfigDef]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["kind"], {})[row["name"]] = _config_def(row)
    return {kind: MappingProxyType(configs) for kind, configs in found.items()}


def _config_def(row: Mapping[str, Any]) -> ConfigDef:
    name, default = row["name"], row["default"]
    own = () if default is None else ((name, default),)
    return ConfigDef(
        name,
        ConfigType[row["type"]],
        default,
        tuple((each, value) for each, value in row.get("synonyms", own)),
        row.get("sensitive", False),
        row.get("update", ""),
        row.get("least"),
        row.get("most"),
        row.get("also"),
        tuple(row.get("one_of", ())),
        row.get("broker_config", ""),
    )


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_REPLICAS: Final = re.compile(r"([0-9]+:[0-9]+)?(,[0-9]+:[0-9]+)*")
_THROTTLED: Final = ".replication.throttled.replicas"

#: The bits of each type of whole numbers.
_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def checked_value(config: ConfigDef, value: str) -> str:
    """Returns a value without surrounding spaces, in the format in which Kafka describes it.

    Raises INVALID_CONFIG with Kafka's message if the value has another type than the config, is
    out of bounds, or is not one of the valid texts.
    """
    if config.type in _BITS or config.type is ConfigType.DOUBLE:
        text = value.strip()
        _check_bounds(config, value, _number(config, value, text))
        return text.removeprefix("+") if config.type in _BITS else text
    if config.type is ConfigType.BOOLEAN:
        text = value.strip().lower()
        if text not in ("true", "false"):
            raise _invalid(config, value, "Expected value to be either true or false")
        return text
    if config.type is ConfigType.LIST:
        parts = split_list(value)
        if "" in parts:
            raise api_error(
                "INVALID_CONFIG", f"Configuration '{config.name}' values must not be empty."
            )
        for part in parts if config.one_of else ():
            if part not in config.one_of:
                raise _invalid(config, part, f"String must be one of: {', '.join(config.one_of)}")
        if config.name.endswith(_THROTTLED):
            _check_throttled(config, parts)
        return ",".join(parts)
    if config.one_of and value not in config.one_of:
        raise _invalid(config, value, f"String must be one of: {', '.join(config.one_of)}")
    return value


def split_list(value: str) -> list[str]:
    """Returns the elements of a config of the type LIST; an empty text has none."""
    return [part.strip() for part in value.strip().split(",")] if value.strip() else []


def _number(config: ConfigDef, value: str, text: str) -> float:
    bits = _BITS.get(config.type)
    if bits is None:
        try:
            return float(text)
        except ValueError:
            raise _invalid(config, value, "Not a number of type DOUBLE") from None
    number = int(text) if _WHOLE.fullmatch(text) else None
    if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _invalid(config, value, f"Not a number of type {config.type.name}")
    return number


def _check_bounds(config: ConfigDef, value: str, number: float) -> None:
    if number == config.also:
        return
    below = config.least is not None and number < config.least
    above = config.most is not None and number > config.most
    if (below or above) and config.also is not None:
        raise _invalid(
            config,
            value,
            f"Value must be between {config.least} and {config.most} or equal to {config.also}",
        )
    if below:
        raise _invalid(config, value, f"Value must be at least {config.least}")
    if above:
        raise _invalid(config, value, f"Value must be no more than {config.most}")


def _check_throttled(config: ConfigDef, parts: list[str]) -> None:
    text = ",".join(parts)
    if text != "*" and not _REPLICAS.fullmatch(text):
        raise _invalid(
            config,
            f"[{', '.join(parts)}]",
            f"{config.name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


def _invalid(config: ConfigDef, value: str, reason: str) -> BrokerResponseError:
    return api_error(
        "INVALID_CONFIG", f"Invalid value {value} for configuration {config.name}: {reason}"
    )
