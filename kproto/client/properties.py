"""Converts a client.properties file to the arguments of a `Client`. It opens no connection."""

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
    #: Further defaults of group consumers; `group` is the default group of consumers.
    group: Mapping[str, Any]


def client_arguments(source: PropertySource, overrides: Mapping[str, Any]) -> ClientArguments:
    """Returns the arguments from properties and `overrides`: fields of ClientSettings, `bootstrap`.

    Properties of an overridden setting are not read. Raises ConfigurationError.
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
