"""Asks a broker for its configs, and for the values that it refuses, as plain data."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kproto import Client
from kproto.broker.config_table import ConfigSource, ConfigType
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.describe_configs_response import DescribeConfigsResourceResult
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

__all__ = ["config_facts", "format_facts"]

_TOPIC: Final = 2
_BROKER: Final = 4
_CLIENT_METRICS: Final = 16
_GROUP: Final = 32
_NODE: Final = "1"
_HOUR_MS: Final = 3_600_000

#: The smallest and largest values of each type of numbers; a broker answers with its own bounds.
_EXTREMES: Final[Mapping[int, tuple[str, str]]] = {
    ConfigType.INT: ("-2147483648", "2147483647"),
    ConfigType.SHORT: ("-32768", "32767"),
    ConfigType.LONG: ("-9223372036854775808", "9223372036854775807"),
    ConfigType.DOUBLE: ("-1e300", "1e300"),
}
_TEXTS: Final = (ConfigType.STRING, ConfigType.LIST)
_NO_CHOICE: Final = "no-such-choice"
_LEAST: Final = re.compile(r"Value must be at least (\S+)$")
_MOST: Final = re.compile(r"Value must be no more than (\S+)$")
_BETWEEN: Final = re.compile(r"must be between (\S+) and (\S+)(?: or equal to (\S+))?$")
_ONE_OF: Final = re.compile(r"String must be one of(?: \(case insensitive\))?: (.*)$")

#: Parts of the messages in which a broker refuses a config for all brokers or without a listener.
_SCOPES: Final = (("only per-listener", "listener"), ("broker id must be specified", "broker"))

#: A value for each type, for configs without a default.
_SAMPLES: Final[Mapping[int, str]] = {ConfigType.LONG: "3600000", ConfigType.INT: "10"}

Row = dict[str, Any]


async def config_facts(client: Client) -> list[Row]:
    """Returns a row for each config; see `kproto.broker.config_table` for the keys of a row."""
    topic = f"facts-{uuid.uuid4().hex[:8]}"
    await client.create_topics(topic)
    rows = []
    for kind, name, word in (
        (_TOPIC, topic, "topic"),
        (_BROKER, _NODE, "broker"),
        (_GROUP, "facts", "group"),
        (_CLIENT_METRICS, "facts", "client-metrics"),
    ):
        for entry in await _describe(client, kind, name):
            row: Row = {
                "kind": word,
                "name": entry.name,
                "type": ConfigType(entry.config_type).name,
            }
            row |= _default(kind, entry)
            if kind == _BROKER:
                row |= await _update_mode(client, entry)
            if kind != _BROKER or not entry.read_only:
                row |= await _bounds(client, kind, name, entry)
            rows.append(row)
    by_name = {(row["kind"], row["name"]): row for row in rows}
    for kind, name, word in ((_TOPIC, topic, "topic"), (_GROUP, "facts", "group")):
        broker_configs = await _broker_configs(client, kind, name, rows)
        for config, broker_config in broker_configs.items():
            by_name[word, config]["broker_config"] = broker_config
    return sorted(rows, key=lambda row: (row["kind"], row["name"]))


def format_facts(rows: Iterable[Row]) -> str:
    """Returns the rows as text, one JSON object per line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def _default(kind: int, entry: DescribeConfigsResourceResult) -> Row:
    """Returns the default of a config, and the defaults of its synonyms."""
    defaults = [it for it in entry.synonyms if it.source == ConfigSource.DEFAULT]
    row: Row = {}
    if entry.config_source == ConfigSource.DEFAULT:
        row["default"] = entry.value
    else:
        row["default"] = next((it.value for it in defaults if it.name == entry.name), None)
        if kind == _TOPIC and defaults:
            row["default"] = _in_ms(defaults[-1].name, defaults[-1].value or "")
    synonyms = [[it.name, it.value] for it in defaults]
    expected = [] if row["default"] is None else [[entry.name, row["default"]]]
    if synonyms != expected:
        row["synonyms"] = synonyms
    if entry.is_sensitive:
        row["sensitive"] = True
    return row


def _in_ms(name: str, value: str) -> str:
    """Returns the default of a topic config whose broker config is in hours, in ms."""
    return str(int(value) * _HOUR_MS) if name.endswith(".hours") else value


async def _describe(client: Client, kind: int, name: str) -> list[DescribeConfigsResourceResult]:
    wanted = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=True)
    (found,) = (await client.request(request)).results
    assert not found.error_code, found
    return list(found.configs)


async def _refusal(
    client: Client, kind: int, name: str, configs: Mapping[str, str], *, validate: bool = True
) -> str:
    """Returns the message in which the broker refuses `configs`; empty if it accepts them."""
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate)
    (found,) = (await client.request(request)).responses
    return (found.error_message or "error without a message") if found.error_code else ""


async def _update_mode(client: Client, entry: DescribeConfigsResourceResult) -> Row:
    """Returns how a broker config can be altered: for all brokers, one broker or one listener."""
    if entry.read_only:
        return {"update": "read-only"}
    refusal = await _refusal(client, _BROKER, "", {entry.name: entry.value or "1"})
    return {"update": next((mode for part, mode in _SCOPES if part in refusal), "cluster")}


async def _bounds(
    client: Client, kind: int, name: str, entry: DescribeConfigsResourceResult
) -> Row:
    """Returns the bounds or the choices of a config's values, as far as the broker tells them."""
    row: Row = {}
    for extreme in _EXTREMES.get(entry.config_type, ()):
        refusal = await _refusal(client, kind, name, {entry.name: extreme})
        if between := _BETWEEN.search(refusal):
            row["least"], row["most"] = _number(between[1]), _number(between[2])
            if between[3]:
                row["also"] = _number(between[3])
        elif least := _LEAST.search(refusal):
            row["least"] = _number(least[1])
        elif most := _MOST.search(refusal):
            row["most"] = _number(most[1])
    if entry.config_type in _TEXTS:
        refusal = await _refusal(client, kind, name, {entry.name: _NO_CHOICE})
        if choices := _ONE_OF.search(refusal):
            row["one_of"] = choices[1].split(", ")
    return row


def _number(text: str) -> float:
    number = float(text)
    return int(text) if "." not in text and "E" not in text.upper() else number


async def _broker_configs(
    client: Client, kind: int, name: str, rows: Iterable[Row]
) -> dict[str, str]:
    """Returns the broker config that sets the default of each config, by the config's name.

    Sets each config that can be set for all brokers, and reads the synonyms.
    """
    for row in rows:
        if row["kind"] == "broker" and row["update"] == "cluster":
            value = row["default"]
            if value is None:
                value = _SAMPLES.get(ConfigType[row["type"]], "x")
            await _refusal(client, _BROKER, "", {row["name"]: value}, validate=False)
    found: dict[str, str] = {}
    for entry in await _describe(client, kind, name):
        sources = (
            ConfigSource.DYNAMIC_DEFAULT_BROKER,
            ConfigSource.STATIC_BROKER,
            ConfigSource.DEFAULT,
        )
        for synonym in sorted(entry.synonyms, key=lambda it: sources.index(it.source)):
            found.setdefault(entry.name, synonym.name)
    return found
