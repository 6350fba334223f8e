"""Turns a client.properties file into the arguments of a `Client`. Opens no connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple

from ..schema.unknown_names import nearest
from ..security.properties import PropertySource, from_properties
from ..wire.errors import ConfigurationError
from .settings import ClientSettings

__all__ = ["ClientArguments", "client_arguments"]

_BOOTSTRAP: Final = "bootstrap"


class ClientArguments(NamedTuple):
    """The arguments of a `Client`, and the defaults of its producers and consumers."""

    bootstrap: str | Sequence[str]
    settings: ClientSettings
    producer: Mapping[str, Any]
    consumer: Mapping[str, Any]
    #: What consumers of a group begin with besides; `group` is the one of those that name none.
    group: Mapping[str, Any]


def client_arguments(source: PropertySource, overrides: Mapping[str, Any]) -> ClientArguments:
    """Returns what properties say; `overrides`, fields of ClientSettings and `bootstrap`, count
    first.

    Properties about an overridden setting are not read. Raises ConfigurationError.
    """
    known = [each.name for each in fields(ClientSettings)]
    for name in overrides:
        if name not in (*known, _BOOTSTRAP):
            near = ", ".join(nearest(name, [*known, _BOOTSTRAP]))
            hint = f"; the nearest: {near}" if near else ""
            raise ConfigurationError(f"ClientSettings has no {name!r}{hint}")
    found = from_properties(source, set_by_caller=overrides.keys())
    settings = {**found.settings, **overrides}
    bootstrap = settings.pop(_BOOTSTRAP, found.bootstrap)
    if bootstrap is None:
        raise ConfigurationError(
            "the properties have no bootstrap.servers: set it, or give bootstrap="
        )
    return ClientArguments(
        bootstrap, ClientSettings(**settings), found.producer, found.consumer, found.group
    )
