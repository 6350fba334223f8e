"""Runs `kproto configs`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

from ...client import Client
from ...client.admin import (
    AdminError,
    AlterConfigOp,
    ConfigEntry,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
)
from ...wire.errors import ConfigurationError
from ..command_error import CommandError
from ..name_patterns import expanded, is_pattern, topics_of
from .configs import RESOURCE_TYPES
from .confirming import confirm
from .group_types import named_groups
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


async def _resources_of(
    client: Client, texts: Iterable[str], *, needs_match: bool = False
) -> list[ConfigResource]:
    """Returns the resources that are named; names of topics, groups and metrics may be patterns.

    Raises ConfigurationError for text that is no resource. With `needs_match` raises CommandError
    for a pattern that matches none.
    """
    found: dict[ConfigResource, None] = {}
    for resource in map(resource_of, texts):
        names = [resource.name]
        if resource.type is ConfigResourceType.TOPIC:
            names = await topics_of(client, names, needs_match=needs_match)
        elif resource.type is ConfigResourceType.GROUP and is_pattern(resource.name):
            names = list(await named_groups(client, names, needs_match=needs_match))
        elif resource.type is ConfigResourceType.CLIENT_METRICS and is_pattern(resource.name):
            known = await client.admin.list_client_metrics_resources()
            names = expanded(names, known, what="subscription", needs_match=needs_match)
        found |= dict.fromkeys(ConfigResource(resource.type, name) for name in names)
    return list(found)


def _text_of(resource: ConfigResource) -> str:
    kinds = {kafka: own for own, kafka in RESOURCE_TYPES.items()}
    return f"{kinds[resource.type.name]}/{resource.name}"


async def _list(client: Client, options: argparse.Namespace) -> int:
    resources = await _resources_of(client, options.resources or ["topic/*"])
    partial = PartialResults()
    described: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = {}
    if resources:
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
            if equals:  # a value may be a secret
                raise ConfigurationError(f"{name!r:.80} is followed by a value, and is no NAME")
            raise ConfigurationError(f"{text!r:.80} is no NAME=VALUE")
        operations.append(AlterConfigOp(name, value if equals else None, kind))
    resources = await _resources_of(client, [options.resource], needs_match=True)
    if is_pattern(resource_of(options.resource).name) and not options.dry_run:
        names = ", ".join(map(_text_of, resources))
        entries = ", ".join(await _shown_entries(client, resources[0], operations))
        if not confirm(options, f"{options.verb} {entries} of {names}"):
            return 1
    if kind is ConfigOpType.DELETE:
        await _check_set(client, resources, options.entries)
    await client.admin.incremental_alter_configs(
        dict.fromkeys(resources, operations), validate_only=options.dry_run
    )
    return 0


async def _shown_entries(
    client: Client, resource: ConfigResource, operations: Iterable[AlterConfigOp]
) -> list[str]:
    """Returns the entries of a question; hides each value that may be a secret.

    As for Kafka's brokers, a config that is not described counts as sensitive.
    """
    try:
        described = await client.admin.describe_configs([resource])
    except AdminError:  # the principal may alter configs without describing them
        described = {}
    entries = described.get(resource, {})
    shown = []
    for each in operations:
        entry = entries.get(each.name)
        if each.value is None:
            shown.append(each.name)
        elif entry is None or entry.is_sensitive:
            shown.append(f"{each.name}=[hidden]")
        else:
            shown.append(f"{each.name}={each.value}")
    return shown


async def _check_set(
    client: Client, resources: Collection[ConfigResource], names: Iterable[str]
) -> None:
    """Raises CommandError for a config that no resource has set; brokers would ignore it."""
    described = await client.admin.describe_configs(resources)
    own = {
        name
        for resource, entries in described.items()
        for name, entry in entries.items()
        if entry.source in _own_sources(resource)
    }
    missing = [name for name in names if name not in own]
    if missing:
        which = ", ".join(map(_text_of, resources))
        raise CommandError(
            f"{which} has no config {', '.join(missing)} of its own; it has "
            f"{', '.join(sorted(own)) or 'none'}"
        )


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "set": partial(_alter, kind=ConfigOpType.SET),
    "unset": partial(_alter, kind=ConfigOpType.DELETE),
    "append": partial(_alter, kind=ConfigOpType.APPEND),
    "subtract": partial(_alter, kind=ConfigOpType.SUBTRACT),
}
