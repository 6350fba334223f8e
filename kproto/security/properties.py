"""Converts a client.properties file to arguments of the client: `from_properties`.

Accepts the property names of Kafka's Java clients and of librdkafka that `property_table` lists.
Other properties of these two clients have no effect in kproto, and one log line names them. A name
that neither client has is an error, unless it begins with one of `IGNORED_PREFIXES`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

from ..schema.unknown_names import nearest
from ..wire.errors import ConfigurationError
from .configured_property import ConfiguredByRow, ConfiguredProperty, resolve_synonyms
from .properties_file import read_properties_file
from .property_table import IGNORED_PREFIXES, ROWS, PropertyMapping

__all__ = [
    "ClientProperties",
    "PropertySource",
    "from_properties",
    "known_names",
    "read_values",
    "unused_line",
    "values_of_file",
]

logger = logging.getLogger("kproto.security")

#: The path of a .properties file, or a mapping of property names to text, int, bool, bytes, Path or
#: a list of texts.
PropertySource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]

#: A property name that an error may quote. Other text may be part of a secret value: if a line has
#: no backslash at its end, the next line of a private key is parsed as a name.
_PRINTABLE_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,30}([._-][a-z][a-z0-9]{0,30}){1,9}")

#: With more requests in flight than this, Kafka's producer is not idempotent unless
#: `enable.idempotence` is true.
_IDEMPOTENT_IN_FLIGHT: Final = 5


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """Holds the arguments of a client that properties set."""

    #: Bootstrap addresses, comma-separated; None if no property sets them.
    bootstrap: str | None
    #: Arguments of ClientSettings, `tls` and `sasl` among them.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of `Client.producer`.
    producer: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of `Client.consumer`.
    consumer: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of `Client.consumer` that only members of a group have, `group` among them.
    group: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of `Client.share_consumer` that no other consumer has.
    share: Mapping[str, Any] = field(default_factory=dict)
    #: Names of properties without an effect in kproto, in the order of the source.
    unused: tuple[str, ...] = ()
    #: Names of TLS and SASL properties that `security.protocol` disables.
    inactive: tuple[str, ...] = ()


def from_properties(
    source: PropertySource, *, set_by_caller: Collection[str] = ()
) -> ClientProperties:
    """Returns the arguments that a file or a mapping of properties sets.

    `set_by_caller` names the settings that the caller passes to the client itself: client settings,
    `tls`, `sasl` or `bootstrap`. Properties for these settings are ignored. Logs the names of all
    properties that have no effect in one line, without their values.

    Raises ConfigurationError for an unreadable file, an unknown name, an invalid value, a
    contradiction or a missing property; the error names the property and contains no secret.
    """
    values, origin = _values(source)
    found = read_values(values, set_by_caller=set_by_caller)
    if found.unused or found.inactive:
        logger.warning("%s", unused_line(origin, found))
    return found


def unused_line(origin: str, found: ClientProperties) -> str:
    """Returns a log line with the properties of `origin` (a path) that have no effect."""
    parts = []
    if found.unused:
        parts.append(f"no effect here: {', '.join(found.unused)}")
    if found.inactive:
        parts.append(f"security.protocol disables {', '.join(found.inactive)}")
    return f"{origin}: {'; '.join(parts)}"


def read_values(
    values: Mapping[str, Any], *, set_by_caller: Collection[str] = ()
) -> ClientProperties:
    """Returns the arguments that `values` sets, like `from_properties`; logs nothing."""
    _check_names(values)
    if values.get("config.providers"):
        raise ConfigurationError(
            "config.providers is set, and kproto runs none: replace each ${…} by its value"
        )
    unused = [name for name in values if name not in _rows_by_property()]
    inactive: list[str] = []
    by_part: dict[str, dict[str, ConfiguredProperty]] = {}
    protocol = _protocol(values)
    for row in ROWS:
        present = [name for name in row.names if name in values]
        if not present or row.part == "security":
            continue
        if (row.name if row.part == "settings" else row.part) in set_by_caller:
            continue
        if (row.part == "tls" and not protocol.endswith("SSL")) or (
            row.part == "sasl" and not protocol.startswith("SASL")
        ):
            inactive += present
            continue
        given = resolve_synonyms(
            [
                ConfiguredProperty(name, row.kind.value(name, _text(values, name)))
                for name in present
            ]
        )
        assert given is not None
        by_part.setdefault(row.part, {})[row.name] = given

    settings = _plain(by_part.get("settings", {}))
    if protocol.endswith("SSL") and "tls" not in set_by_caller:
        from .tls_properties import tls_from_properties  # only if TLS is configured

        settings["tls"] = tls_from_properties(by_part.get("tls", {}))
    if protocol.startswith("SASL") and "sasl" not in set_by_caller:
        from .sasl_properties import sasl_from_properties  # only if SASL is configured

        settings["sasl"] = sasl_from_properties(by_part.get("sasl", {}))
    producer = _plain(by_part.get("producer", {}))
    if producer.get("max_in_flight", 0) > _IDEMPOTENT_IN_FLIGHT:
        producer.setdefault("idempotent", False)
    consumer = _plain(by_part.get("consumer", {}))
    group = _plain(by_part.get("group", {}))
    if consumer.get("start") == "none":
        group["start"] = consumer.pop("start")
    bootstrap = by_part.get("bootstrap", {}).get("bootstrap")
    order = {name: index for index, name in enumerate(values)}
    return ClientProperties(
        None if bootstrap is None else str(bootstrap.value),
        settings,
        producer,
        consumer,
        group,
        _plain(by_part.get("share", {})),
        tuple(sorted(unused, key=order.__getitem__)),
        tuple(inactive),
    )


@cache
def known_names() -> frozenset[str]:
    """Returns all property names of Kafka's Java clients, of librdkafka and of `ROWS`."""
    # Imported here, because most properties have a row.
    import tomllib

    from ..schema.data_files import read_package_file

    text = read_package_file(__name__.rpartition(".")[0], "client_names.toml")
    assert text is not None
    lists = tomllib.loads(text)
    return frozenset([*lists["java"]["names"], *lists["librdkafka"]["names"], *_rows_by_property()])


@cache
def _rows_by_property() -> dict[str, PropertyMapping]:
    return {name: row for row in ROWS for name in row.names}


def _values(source: PropertySource) -> tuple[Mapping[str, Any], str]:
    """Returns the properties, and a name for their source: the path, or "properties"."""
    if isinstance(source, Mapping):
        return source, "properties"
    if not isinstance(source, str | os.PathLike):
        raise ConfigurationError(
            f"properties are a {type(source).__name__}: pass the path of a file, or a mapping"
        )
    return values_of_file(source), os.fspath(source)


def values_of_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the properties of a file, each value stripped, as Kafka's clients do.

    Logs properties that have several different values. Raises ConfigurationError for an unreadable
    or invalid file and for an unknown name.
    """
    entries = read_properties_file(path)
    for name, entry in entries.items():
        if not _is_known(name):
            raise _unknown(name, f"{os.fspath(path)}, line {entry.line}: ")
    twice = [
        f"{name} (lines {entry.earlier_line} and {entry.line})"
        for name, entry in entries.items()
        if entry.earlier_line is not None
    ]
    if twice:
        logger.warning(
            "%s: more than one value, the last one applies: %s",
            os.fspath(path),
            ", ".join(twice),
        )
    return {name: entry.value.strip() for name, entry in entries.items()}


def _check_names(values: Mapping[str, Any]) -> None:
    for name in values:
        if not isinstance(name, str):
            raise ConfigurationError(
                f"a property has a {type(name).__name__} for a name; it must be a str"
            )
        if not _is_known(name):
            raise _unknown(name, "")


def _is_known(name: str) -> bool:
    # `known_names` reads a file: most properties have a row.
    return name in _rows_by_property() or name.startswith(IGNORED_PREFIXES) or name in known_names()


def _unknown(name: str, location: str) -> ConfigurationError:
    similar = nearest(name, known_names()) if len(name) <= 100 else []
    hint = f"; the nearest: {', '.join(similar)}" if similar else ""
    if _PRINTABLE_NAME.fullmatch(name):
        return ConfigurationError(f"{location}no client of Kafka has a property {name!r}{hint}")
    return ConfigurationError(
        f"{location}the text is no name of a property of any client of Kafka{hint}. Does the"
        " line before it lack the '\\' with which a line goes on?"
        if location
        else f"a property has a name that no client of Kafka has{hint}"
    )


def _protocol(values: Mapping[str, Any]) -> str:
    row = next(each for each in ROWS if each.part == "security")
    (name,) = row.names
    if name not in values:
        return "PLAINTEXT"
    return str(row.kind.value(name, _text(values, name)))


def _text(values: Mapping[str, Any], name: str) -> str:
    """Returns the value of the property `name` as the text that a file would have.

    Raises ConfigurationError for a value of an unsupported type, without quoting it.
    """
    value = values[name]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ConfigurationError(f"{name} holds bytes that are not UTF-8") from None
    if isinstance(value, Iterable) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    raise ConfigurationError(f"{name} is a {type(value).__name__}; it must be text")


def _plain(given: ConfiguredByRow) -> dict[str, Any]:
    return {name: each.value for name, each in given.items()}
