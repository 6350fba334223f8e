"""Converts properties, from a file or a mapping, to the arguments of a `Client`."""

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
    #: Further defaults of consumers with a group. Its key `group` has the default group.
    group: Mapping[str, Any]
    #: Further defaults of share consumers.
    share: Mapping[str, Any]


def client_arguments(source: PropertySource, overrides: Mapping[str, Any]) -> ClientArguments:
    """Returns the arguments of a `Client` from the properties in `source`, and from `overrides`.

    The names in `overrides` are `bootstrap` and the fields of ClientSettings. Overrides replace
    properties: the properties of an overridden setting are not read. Raises ConfigurationError for
    an unknown name, an invalid value, an unreadable file, and if there is no bootstrap server.
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
            "the properties have no bootstrap.servers: set it, or pass bootstrap="
        )
    return ClientArguments(
        bootstrap,
        ClientSettings(**settings),
        found.producer,
        found.consumer,
        found.group,
        found.share,
    )
