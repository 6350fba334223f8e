"""The options `kafka.*`: Java's names for the settings of a client, as a client takes them.

Owns what makes a client in the driver and in every task. Values may be secrets: they stand in no
repr, and Spark is handed them pickled alone. Opens nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kproto.client import Client, parse_bootstrap
from kproto.wire.errors import ConfigurationError

from ..shipped_files import resolve_shipped_files
from .errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PREFIX", "ClientOptions", "client_options"]

#: What stands before the name of a client's property in an option's name.
PREFIX: Final = "kafka."

_DEFAULTS: Final = {"client.id": "kproto-spark"}


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The properties of a client, by name; equal ones may share a client."""

    properties: tuple[tuple[str, str], ...] = field(repr=False)

    def client(self) -> Client:
        """A client with these properties, not connected yet.

        Raises:
            ConfigurationError: a file that a property names cannot be read here.
        """
        return Client.from_properties(resolve_shipped_files(dict(self.properties)))


def client_options(given: Mapping[str, str]) -> ClientOptions:
    """The properties, by names without `kafka.` before them, once a client would take them.

    Raises:
        OptionError: naming the property.
    """
    found = ClientOptions(tuple(sorted({**_DEFAULTS, **given}.items())))
    place = f"option {PREFIX}bootstrap.servers"
    try:
        parse_bootstrap(given["bootstrap.servers"])
        place = f"an option that begins with {PREFIX}"
        found.client()
    except KeyError:
        raise OptionError(f"{place} is missing; set it to host:port") from None
    except ConfigurationError as error:
        raise OptionError(f"{place}: {error}") from None
    return found
