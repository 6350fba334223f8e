"""Creates the client of a command from its arguments, the environment and a context."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..schema.unknown_names import nearest
from ..security.properties import values_of_file
from ..wire.errors import ConfigurationError
from .client_warnings import print_client_warnings
from .read_properties import given_properties

if TYPE_CHECKING:
    from pathlib import Path

    from ..client import Client, Hooks

__all__ = ["CLIENT_ID", "client_of", "context_properties", "properties_of"]

_BOOTSTRAP: Final = "bootstrap.servers"
_DEFAULT_BOOTSTRAP: Final = "localhost:9092"

#: The client id of the commands, which brokers log and apply quotas to.
CLIENT_ID: Final = "kproto-cli"


def client_of(options: argparse.Namespace, *, hooks: Hooks | None = None) -> Client:
    """Returns the client of a command, which is not connected yet; prints its warnings.

    Raises ConfigurationError for an unreadable file, an unknown context and an invalid property.
    """
    print_client_warnings(quiet=getattr(options, "quiet", False))
    overrides: dict[str, Any] = {} if hooks is None else {"hooks": hooks}
    from ..client import Client

    return Client.from_properties(properties_of(options, os.environ), **overrides)


def properties_of(options: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the client properties by Kafka's names.

    In order of precedence: `--bootstrap`, `-X`, `--properties`, `--context`, then the environment
    variables KPROTO_BOOTSTRAP and KPROTO_PROPERTIES (a file). Without any of them, the bootstrap
    server is localhost:9092.
    """
    values: dict[str, Any] = {"client.id": CLIENT_ID, _BOOTSTRAP: _DEFAULT_BOOTSTRAP}
    if environment.get("KPROTO_PROPERTIES"):
        values |= values_of_file(environment["KPROTO_PROPERTIES"])
    if environment.get("KPROTO_BOOTSTRAP"):
        values[_BOOTSTRAP] = environment["KPROTO_BOOTSTRAP"]
    if options.context is not None:
        values |= context_properties(options.context, configuration_folder(environment))
    values |= given_properties(options)
    if options.bootstrap is not None:
        values[_BOOTSTRAP] = options.bootstrap
    return values


def configuration_folder(environment: Mapping[str, str]) -> Path:
    """Returns the user's configuration folder of kproto: XDG_CONFIG_HOME, APPDATA or ~/.config."""
    from pathlib import Path  # here, because only --context needs it

    base = environment.get("XDG_CONFIG_HOME") or environment.get("APPDATA")
    return (Path(base) if base else Path.home() / ".config") / "kproto"


def context_properties(name: str, folder: Path) -> dict[str, str]:
    """Returns the properties under `[name]` in `contexts.toml` in `folder`.

    The names are Kafka's; `bootstrap.servers = "a:9092"` needs no quotes around the name, although
    TOML reads it as a nested table. The key `properties` is the path of a properties file, whose
    properties have lower precedence; a relative path starts at `folder`. Raises ConfigurationError
    if there is no such context, or if the file is invalid.
    """
    import tomllib  # here, because only --context needs it
    from pathlib import Path

    file = folder / "contexts.toml"
    try:
        contexts = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"--context {name} needs {file}, which cannot be read: {error.strerror}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is no valid TOML: {error}") from error
    context = contexts.get(name)
    if not isinstance(context, dict):
        known = ", ".join(nearest(name, contexts) or sorted(contexts))
        raise ConfigurationError(f"{file} has no context {name}; it has {known or 'none'}")
    values = dict(_flat(context))
    path = values.pop("properties", None)
    if path is None:
        return values
    return {**values_of_file(str(folder / Path(path).expanduser())), **values}


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{key}.")
        elif isinstance(value, bool) and prefix + key != _BOOTSTRAP:
            found.append((prefix + key, str(value).lower()))
        elif isinstance(value, str) or (
            isinstance(value, int | float) and prefix + key != _BOOTSTRAP
        ):
            found.append((prefix + key, str(value)))
        else:
            raise ConfigurationError(
                f"{prefix + key} of the context is {value!r:.80}, which is no text: write it in "
                'quotes, such as "kafka-1:9092,kafka-2:9092"'
            )
    return found
