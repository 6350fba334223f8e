"""Runs `kproto configs`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, Final

from ...client import Client
from ...client.admin import (
    AlterConfigOp,
    ConfigEntry,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
)
from ...wire.errors import ConfigurationError
from .configs import RESOURCE_TYPES
from .rows import print_rows
from .running import PartialResults, VerbFunction, run_verb

__all__ = ["run"]

_COLUMNS: Final = ("resource", "name", "value", "source", "type", "read_only", "sensitive")

#: The sources of configs that were set for a resource of each type, by Kafka's names.
_OWN_SOURCES: Final = {
    "TOPIC": frozenset({ConfigSource.TOPIC}),
    "BROKER": frozenset({ConfigSource.DYNAMIC_BROKER}),
    "BROKER_LOGGER": frozenset({ConfigSource.DYNAMIC_BROKER_LOGGER}),
    "GROUP": frozenset({ConfigSource.GROUP}),
    "CLIENT_METRICS": frozenset({ConfigSource.CLIENT_METRICS}),
}


#: The sources of configs that were set for all brokers.
_SOURCES_OF_ALL_BROKERS: Final = frozenset({ConfigSource.DYNAMIC_DEFAULT_BROKER})


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


def resource_of(text: str) -> ConfigResource:
    """Returns the resource that `TYPE/NAME` names. Raises ConfigurationError for other text."""
    kind, slash, name = text.partition("/")
    if kind not in RESOURCE_TYPES or not slash:
        raise ConfigurationError(
            f"{text!r} is no TYPE/NAME, such as topic/orders; the types are "
            + ", ".join(RESOURCE_TYPES)
        )
    return ConfigResource(ConfigResourceType[RESOURCE_TYPES[kind]], name)


def _text_of(resource: ConfigResource) -> str:
    kinds = {kafka: own for own, kafka in RESOURCE_TYPES.items()}
    return f"{kinds[resource.type.name]}/{resource.name}"


async def _list(client: Client, options: argparse.Namespace) -> int:
    resources = [resource_of(text) for text in options.resources]
    if not resources:
        topics = await client.admin.list_topics()
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
    partial = PartialResults()
    described = await partial.of(
        client.admin.describe_configs(resources, names=options.names or None)
    )
    is_wanted = options.all or options.names
    rows = [
        _row(resource, entry)
        for resource, entries in described.items()
        for entry in entries.values()
        if is_wanted or entry.source in _own_sources(resource)
    ]
    print_rows(options, _COLUMNS, rows)
    partial.raise_error()
    return 0


def _own_sources(resource: ConfigResource) -> frozenset[ConfigSource]:
    """Returns the sources of the configs that `kafka-configs --describe` lists without --all."""
    if resource.type is ConfigResourceType.BROKER and not resource.name:
        return _SOURCES_OF_ALL_BROKERS
    return _OWN_SOURCES[resource.type.name]


def _row(resource: ConfigResource, entry: ConfigEntry) -> dict[str, Any]:
    return {
        "resource": _text_of(resource),
        "name": entry.name,
        "value": entry.value,
        "source": entry.source,
        "type": entry.type,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }


async def _alter(client: Client, options: argparse.Namespace, kind: ConfigOpType) -> int:
    operations = []
    for text in options.entries:
        name, equals, value = text.partition("=")
        if (kind is ConfigOpType.DELETE) == bool(equals):
            form = "NAME" if equals else "NAME=VALUE"
            raise ConfigurationError(f"{text!r:.80} is no {form}")
        operations.append(AlterConfigOp(name, value if equals else None, kind))
    await client.admin.incremental_alter_configs(
        {resource_of(options.resource): operations}, validate_only=options.dry_run
    )
    return 0


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "set": partial(_alter, kind=ConfigOpType.SET),
    "unset": partial(_alter, kind=ConfigOpType.DELETE),
    "append": partial(_alter, kind=ConfigOpType.APPEND),
    "subtract": partial(_alter, kind=ConfigOpType.SUBTRACT),
}
