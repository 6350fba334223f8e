"""Checks the options `kafka.*` that are properties of the client, and builds clients from them.

The driver and every task build their client from the same properties. Values may be secrets, so no
repr shows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kproto.client import Client, ClientSettings, parse_bootstrap
from kproto.wire.errors import ConfigurationError

from ..shipped_files import resolve_shipped_files
from .errors import OptionError
from .option_words import PREFIX, option_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PREFIX", "ClientOptions", "client_options"]

_DEFAULTS: Final = {"client.id": "kproto-spark"}


#: How long a task waits, in ms, for a topic that the metadata lacks. The driver has planned to read
#: the topic, so the topic existed. The task waits as long as for a topic that the client has used.
_UNKNOWN_TOPIC_WAIT_MS: Final = ClientSettings().metadata_wait_ms


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The properties of a client as pairs of name and value; equal properties share a client.

    `broker_version` is the client's setting of that name, for which there is no property.
    `driver_folder` is the folder of the files that Spark has shipped to the driver.
    """

    properties: tuple[tuple[str, str], ...] = field(repr=False)
    broker_version: str | None = None
    driver_folder: str | None = None

    def client(self) -> Client:
        """Returns a client with these properties, not connected yet.

        Raises:
            ConfigurationError: a property names a file that cannot be read on this host.
        """
        properties = resolve_shipped_files(dict(self.properties), self.driver_folder)
        return Client.from_properties(
            properties,
            unknown_topic_wait_ms=_UNKNOWN_TOPIC_WAIT_MS,
            broker_version=self.broker_version,
        )


def client_options(
    given: Mapping[str, str], broker_version: str | None = None, driver_folder: str | None = None
) -> ClientOptions:
    """Returns the default properties, overridden by `given` (names without `kafka.`).

    `driver_folder` is as in `ClientOptions`.

    Creates a client, without connecting it, to check the properties.

    Raises:
        OptionError: a property is missing or wrong; the message names it.
    """
    properties = tuple(sorted({**_DEFAULTS, **given}.items()))
    found = ClientOptions(properties, broker_version, driver_folder)
    bootstrap = f"option {PREFIX}bootstrap.servers"
    try:
        parse_bootstrap(given["bootstrap.servers"])
    except KeyError:
        raise OptionError(f"{bootstrap} is missing; set it to host:port") from None
    except ConfigurationError as error:
        raise OptionError(f"{bootstrap}: {error}") from None
    try:
        found.client()
    except ConfigurationError as error:
        raise OptionError(_naming_option(str(error), given)) from None
    return found


def _naming_option(text: str, given: Mapping[str, str]) -> str:
    """Returns the text of an error about a property with the name of its option."""
    name = text.partition(" ")[0]
    if name in given and "." not in name:  # such as acks, which may also be a word of a sentence
        text = PREFIX + text
    text = option_text(text, given)
    return f"option {text}" if text.startswith((PREFIX, "brokerVersion ")) else text
