"""What a client.properties file comes to as arguments of a `Client`. Opens no connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple, TypeVar

from ..schema.unknown_names import nearest
from ..security.properties import PropertySource, from_properties
from ..wire.errors import ConfigurationError
from .settings import ClientSettings

__all__ = ["ClientArguments", "client_arguments", "consumer_of"]

T = TypeVar("T")

_BOOTSTRAP: Final = "bootstrap"


class ClientArguments(NamedTuple):
    """Arguments of a `Client`, and what its producers and consumers begin with."""

    bootstrap: str | Sequence[str]
    settings: ClientSettings
    producer: Mapping[str, Any]
    consumer: Mapping[str, Any]
    #: What consumers of a group begin with besides; `group` is the one of those that name none.
    group: Mapping[str, Any]


def client_arguments(source: PropertySource, overrides: Mapping[str, Any]) -> ClientArguments:
    """What properties say, and `overrides` say otherwise: fields of ClientSettings, `bootstrap`.

    Properties about what is overridden are not looked at. Raises ConfigurationError.
    """
    known = [each.name for each in fields(ClientSettings)]
    for name in overrides:
        if name not in (*known, _BOOTSTRAP):
            near = ", ".join(nearest(name, [*known, _BOOTSTRAP]))
            hint = f"; the nearest: {near}" if near else ""
            raise ConfigurationError(f"ClientSettings has no {name!r}{hint}")
    found = from_properties(source, given_otherwise=overrides.keys())
    settings = {**found.settings, **overrides}
    bootstrap = settings.pop(_BOOTSTRAP, found.bootstrap)
    if bootstrap is None:
        raise ConfigurationError(
            "the properties have no bootstrap.servers: set it, or give bootstrap="
        )
    return ClientArguments(
        bootstrap, ClientSettings(**settings), found.producer, found.consumer, found.group
    )


def consumer_of(make: Callable[..., T], arguments: ClientArguments) -> Callable[..., T]:
    """`Client.consumer`, which begins with what properties say; what is given counts first."""

    def consumer(topics: Any, **given: Any) -> T:
        member = arguments.group if given.get("group", arguments.group.get("group")) else {}
        return make(topics, **{**arguments.consumer, **member, **given})

    return consumer
