"""`from_properties`: what a client.properties file says, as arguments for the client.

Java's names and librdkafka's, by the table of `property_table`. What no part of kproto has a use
for is known by name, and logged once; any other name is an error.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..schema.unknown_names import nearest
from ..wire.errors import ConfigurationError
from .properties_file import read_properties_file
from .property_given import Given, GivenByRow, agreed
from .property_table import IGNORED_PREFIXES, ROWS, Row
from .sasl_properties import sasl_of_properties
from .tls_properties import tls_of_properties

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

#: The path of a .properties file, or its content as a mapping; numbers and True are taken too.
PropertySource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]

#: A name that may be told in an error. Others may be a value that stands where no value is: the
#: second line of a certificate, where the first has no backslash at its end.
_TOLD: Final = re.compile(r"[a-z][a-z0-9]{0,30}([._-][a-z][a-z0-9]{0,30}){1,9}")

#: More than this in flight and Kafka's client is not idempotent, unless it is asked to be.
_IDEMPOTENT_IN_FLIGHT: Final = 5


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """What properties say to a client. Secrets are in no repr."""

    #: Addresses as they stand there; None where there are none.
    bootstrap: str | None
    #: Arguments of ClientSettings, `tls` and `sasl` among them.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of `Client.producer`.
    producer: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of `Client.consumer`.
    consumer: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of `Client.consumer` that are for members of a group alone, `group` among them.
    group: Mapping[str, Any] = field(default_factory=dict)
    #: Names that have no use here, in the order in which they were given.
    unused: tuple[str, ...] = ()
    #: Names about TLS and SASL which `security.protocol` does not ask for.
    not_asked_for: tuple[str, ...] = ()


def from_properties(
    source: PropertySource, *, given_otherwise: Collection[str] = ()
) -> ClientProperties:
    """What a file or a mapping of properties says.

    What `given_otherwise` names (settings of the client, `tls` and `sasl`, `bootstrap`) the caller
    sets itself: properties about it are known, and not looked at. Names that have no use here are
    logged in one line, without values.

    Raises ConfigurationError for a file that cannot be read, an unknown name, a wrong value, and
    what contradicts or is not there; the message names properties, and no secret.
    """
    values, origin = _values(source)
    found = read_values(values, given_otherwise=given_otherwise)
    if found.unused or found.not_asked_for:
        logger.warning("%s", unused_line(origin, found))
    return found


def unused_line(origin: str, found: ClientProperties) -> str:
    """One line that says which of the properties of `origin` do nothing; names alone."""
    parts = []
    if found.unused:
        parts.append(f"no use here for {', '.join(found.unused)}")
    if found.not_asked_for:
        parts.append(f"security.protocol does not ask for {', '.join(found.not_asked_for)}")
    return f"{origin}: {'; '.join(parts)}"


def read_values(
    values: Mapping[str, Any], *, given_otherwise: Collection[str] = ()
) -> ClientProperties:
    """`from_properties` of a mapping, which logs nothing."""
    _check_names(values)
    if values.get("config.providers"):
        raise ConfigurationError(
            "config.providers is set, and kproto runs none: put the values in place of the ${…}"
        )
    unused = [name for name in values if name not in _rows_by_property()]
    not_asked_for: list[str] = []
    by_part: dict[str, dict[str, Given]] = {}
    protocol = _protocol(values)
    for row in ROWS:
        there = [name for name in row.names if name in values]
        if not there or row.part == "security":
            continue
        if (row.name if row.part == "settings" else row.part) in given_otherwise:
            continue
        if (row.part == "tls" and not protocol.endswith("SSL")) or (
            row.part == "sasl" and not protocol.startswith("SASL")
        ):
            not_asked_for += there
            continue
        given = agreed([Given(name, row.kind.value(name, _text(values, name))) for name in there])
        assert given is not None
        if _has_no_use(row, given):
            unused += there
        else:
            by_part.setdefault(row.part, {})[row.name] = given

    settings = _plain(by_part.get("settings", {}))
    if protocol.endswith("SSL") and "tls" not in given_otherwise:
        settings["tls"] = tls_of_properties(by_part.get("tls", {}))
    if protocol.startswith("SASL") and "sasl" not in given_otherwise:
        settings["sasl"] = sasl_of_properties(by_part.get("sasl", {}))
    producer = _plain(by_part.get("producer", {}))
    producer.pop("acks", None)  # always all
    if producer.get("max_in_flight", 0) > _IDEMPOTENT_IN_FLIGHT:
        producer.setdefault("idempotent", False)
    consumer = _plain(by_part.get("consumer", {}))
    group = _plain(by_part.get("group", {}))
    if consumer.get("start") == "none":
        group["start"] = consumer.pop("start")
    bootstrap = by_part.get("bootstrap", {}).get("bootstrap")
    order = {name: place for place, name in enumerate(values)}
    return ClientProperties(
        None if bootstrap is None else str(bootstrap.value),
        settings,
        producer,
        consumer,
        group,
        tuple(sorted(unused, key=order.__getitem__)),
        tuple(not_asked_for),
    )


@cache
def known_names() -> frozenset[str]:
    """Every name that Kafka's Java clients or librdkafka know, and those of the table."""
    package = __name__.rpartition(".")[0]
    text = resources.files(package).joinpath("client_names.toml").read_text(encoding="utf-8")
    lists = tomllib.loads(text)
    return frozenset([*lists["java"]["names"], *lists["librdkafka"]["names"], *_rows_by_property()])


@cache
def _rows_by_property() -> dict[str, Row]:
    return {name: row for row in ROWS for name in row.names}


def _values(source: PropertySource) -> tuple[Mapping[str, Any], str]:
    """Names with their values, and what to call where they come from."""
    if isinstance(source, Mapping):
        return source, "properties"
    if not isinstance(source, str | os.PathLike):
        raise ConfigurationError(
            f"properties are a {type(source).__name__}: give the path of a file, or a mapping"
        )
    return values_of_file(source), os.fspath(source)


def values_of_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The properties of a file, whose names are known; Kafka's clients cut blanks off as well.

    Raises ConfigurationError, which has the path and the line.
    """
    entries = read_properties_file(path)
    for name, entry in entries.items():
        if not _is_known(name):
            raise _unknown(name, f"{os.fspath(path)}, line {entry.line}: ")
    twice = [
        f"{name} (lines {entry.other_line} and {entry.line})"
        for name, entry in entries.items()
        if entry.other_line is not None
    ]
    if twice:
        logger.warning(
            "%s: more than one value, of which the last counts: %s",
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
    return name in known_names() or name.startswith(IGNORED_PREFIXES)


def _unknown(name: str, where: str) -> ConfigurationError:
    near = nearest(name, known_names()) if len(name) <= 100 else []
    hint = f"; the nearest: {', '.join(near)}" if near else ""
    if _TOLD.fullmatch(name):
        return ConfigurationError(f"{where}no client of Kafka has a property {name!r}{hint}")
    return ConfigurationError(
        f"{where}what stands there is no name of a property of any client of Kafka{hint}. Does the"
        " line before it lack the '\\' with which a line goes on?"
        if where
        else f"a property has a name that no client of Kafka knows{hint}"
    )


def _protocol(values: Mapping[str, Any]) -> str:
    row = next(each for each in ROWS if each.part == "security")
    (name,) = row.names
    if name not in values:
        return "PLAINTEXT"
    return str(row.kind.value(name, _text(values, name)))


def _text(values: Mapping[str, Any], name: str) -> str:
    """A value as a file would say it. Raises ConfigurationError, which does not tell it."""
    value = values[name]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Path):
        return os.fspath(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ConfigurationError(f"{name} holds bytes that are not UTF-8") from None
    if isinstance(value, Iterable) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    raise ConfigurationError(f"{name} is a {type(value).__name__}; it must be text")


def _has_no_use(row: Row, given: Given) -> bool:
    """Whether kproto does not do what this value says."""
    return row.name == "acks" and bool(given.value != "all")


def _plain(given: GivenByRow) -> dict[str, Any]:
    return {name: each.value for name, each in given.items()}
