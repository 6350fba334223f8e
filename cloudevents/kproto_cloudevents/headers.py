"""Headers of binary mode: event attributes in the headers of a Kafka record, both ways.

This module knows headers and attributes alone: not the key, not the value, not which mode a
record is in (Kafka binding 3.2.1 and 3.2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .data import JsonText
from .errors import MAX_SHOWN, CloudEventError, quoted
from .event import CloudEvent
from .record import Header, Profile
from .types import canonical
from .versions import (
    REMEMBERED_LENGTH,
    REMEMBERED_NAMES,
    REMEMBERED_VALUES,
    V1_0,
    VERSIONS,
    AttributeSpec,
    SpecVersion,
    spec_version,
)

__all__ = [
    "CONTENT_TYPE",
    "PREFIX",
    "binary_version",
    "by_name",
    "has_event_header",
    "is_event_header",
    "missing_version_error",
    "read_attribute",
    "read_headers",
    "shown",
    "write_headers",
]

CONTENT_TYPE: Final = "content-type"
PREFIX: Final = "ce_"

_BINARY_TYPE: Final = ("Kafka binding 3.2.1",)
_BINARY_HEADERS: Final = ("Kafka binding 3.2.3",)

# --- which headers are the event's --------------------------------------------------------------


def by_name(headers: tuple[Header, ...], profile: Profile) -> dict[str, bytes | None]:
    """Headers by name where names repeat or differ in case.

    A header of the event may be there once, a null one not counted; of the others the last
    stands in the table, and all stay in the record.
    """
    table: dict[str, bytes | None] = {}
    for written, raw in headers:
        name = written.lower() if profile.any_case_headers else written
        ours = name == CONTENT_TYPE or name.startswith(PREFIX)
        if ours and raw is None:
            continue
        if ours and name in table:
            raise CloudEventError(
                "the header appears twice",
                where=shown(written),
                clauses=(*_BINARY_HEADERS, 'CloudEvents 1.0 "Context Attributes"'),
            )
        table[name] = raw
    return table


def is_event_header(name: str) -> bool:
    """True for a header that belongs to the event, in either mode."""
    return name == CONTENT_TYPE or name.startswith(PREFIX)


def has_event_header(table: Mapping[str, bytes | None]) -> bool:
    """True when any header speaks of CloudEvents; a null header is unset, and says nothing."""
    return any(name.startswith(PREFIX) and raw is not None for name, raw in table.items())


# --- reading ------------------------------------------------------------------------------------


class _HeaderReader(NamedTuple):
    """How one header of an event is read."""

    attribute: str
    spec: AttributeSpec
    #: Values that have been found right; None for attributes that differ from event to event.
    remembered: dict[bytes, str] | None


def binary_version(table: Mapping[str, bytes | None]) -> SpecVersion | None:
    """The version that the headers name; None when they name none."""
    raw = table.get("ce_specversion")
    if raw is None:
        return None
    known = _VERSION_OF.get(raw)
    if known is not None:
        return known
    label = _decode("ce_specversion", raw)
    return spec_version(label, where="ce_specversion", clauses=_BINARY_HEADERS)


def read_headers(table: Mapping[str, bytes | None], version: SpecVersion) -> dict[str, Any]:
    """The attributes in the headers (Kafka binding 3.2.3), in the order of the headers."""
    readers = _READERS[version.label]
    attributes: dict[str, Any] = {}
    for header, raw in table.items():
        if raw is None:
            continue
        reader = readers.get(header)
        if reader is None:
            if not header.startswith(PREFIX):
                continue
            reader = _reader_of(header, raw, table, version, readers)
        attribute, spec, remembered = reader
        if remembered is None:
            attributes[attribute] = _checked(header, raw, spec, version)
        else:
            attributes[attribute] = remembered.get(raw) or _remember(header, raw, reader, version)
    for name in version.required:
        if name not in attributes:
            raise version.missing_error(PREFIX + name, _BINARY_HEADERS)
    return attributes


def read_attribute(
    table: Mapping[str, bytes | None], version: SpecVersion, name: str
) -> str | None:
    """One attribute in the headers, checked; None when it is unset."""
    readers = _READERS[version.label]
    header = _HEADER_OF[version.label].get(name) or PREFIX + name
    raw = table.get(header)
    if raw is None:
        # Nobody writes `ce_datacontenttype` any more, but it is read.
        header = PREFIX + name
        raw = table.get(header)
        if raw is None:
            return None
    reader = readers.get(header) or _reader_of(header, raw, table, version, readers)
    if reader.remembered is None:
        return _checked(header, raw, reader.spec, version)
    return reader.remembered.get(raw) or _remember(header, raw, reader, version)


def missing_version_error() -> CloudEventError:
    """The error for headers that speak of an event and name no specversion."""
    return V1_0.missing_error(PREFIX + V1_0.specversion, _BINARY_HEADERS)


def _checked(header: str, raw: bytes, spec: AttributeSpec, version: SpecVersion) -> str:
    """The text of a header that is right by the rules of its attribute."""
    text = _decode(header, raw)
    if text and spec.quick(text):
        return text
    fault = spec.fault(text)
    if fault is not None:
        raise version.fault_error(fault, text, where=shown(header), clauses=_clauses(header))
    return text


def _remember(header: str, raw: bytes, reader: _HeaderReader, version: SpecVersion) -> str:
    """Check a value of an attribute that repeats over a topic, and remember it when it is right."""
    text = _checked(header, raw, reader.spec, version)
    remembered = reader.remembered
    if remembered is not None and len(raw) <= REMEMBERED_LENGTH:
        if len(remembered) >= REMEMBERED_VALUES:
            remembered.clear()
        remembered[raw] = text
    return text


def _decode(header: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CloudEventError(
            "the value is not UTF-8", where=shown(header), clauses=_clauses(header)
        ) from None


def _clauses(header: str) -> tuple[str, ...]:
    return _BINARY_TYPE if header == CONTENT_TYPE else _BINARY_HEADERS


def shown(header: str) -> str:
    """A header name as an error's place: quoted when it is long or not plain."""
    plain = header.isascii() and header.isprintable() and 0 < len(header) <= MAX_SHOWN
    return header if plain else quoted(header)


def _readers_of(version: SpecVersion) -> dict[str, _HeaderReader]:
    """The readers for the attributes that a version defines, by header."""
    return {
        CONTENT_TYPE if name == version.content_type else PREFIX + name: _HeaderReader(
            name, spec, {} if spec.repeats else None
        )
        for name, spec in version.attributes.items()
    }


def _reader_of(
    header: str,
    raw: bytes,
    table: Mapping[str, bytes | None],
    version: SpecVersion,
    readers: dict[str, _HeaderReader],
) -> _HeaderReader:
    """The reader for an extension, and for `ce_datacontenttype`.

    The binding before 1.0 wrote the latter; it is read, never written, and must not contradict
    the content-type header.
    """
    name = header[len(PREFIX) :]
    if name == version.content_type:
        if table.get(CONTENT_TYPE, raw) not in (raw, None):
            raise CloudEventError(
                f"{header} and {CONTENT_TYPE} differ",
                where=header,
                clauses=(*_BINARY_TYPE, version.clause(name)),
            )
        return readers[CONTENT_TYPE]
    spec = version.checked_spec(name, header, _BINARY_HEADERS)
    reader = _HeaderReader(name, spec, None)
    if len(readers) < REMEMBERED_NAMES and len(header) <= MAX_SHOWN:
        readers[header] = reader
    return reader


_VERSION_OF: Final = {label.encode(): version for label, version in VERSIONS.items()}
_READERS: Final = {label: _readers_of(version) for label, version in VERSIONS.items()}


# --- writing ------------------------------------------------------------------------------------


def write_headers(event: CloudEvent) -> list[Header]:
    """The headers of binary mode (Kafka binding 3.2.3), in the order of the attributes."""
    version = event._version
    names = _HEADER_OF[version.label]
    written: list[Header]
    try:
        written = [(names[name], text.encode()) for name, text in event._attributes.items()]
    except (KeyError, AttributeError):
        # An extension that is written for the first time, or a value that is no str.
        written = [
            (names.get(name) or _extension_header(name, names), canonical(value).encode())
            for name, value in event._attributes.items()
        ]
    if version.data_encoding in event._attributes:
        # The value of a record is the data as it is: never encoded, so never said to be.
        written = [each for each in written if each[0] != names[version.data_encoding or ""]]
    if isinstance(event._data, JsonText) and version.content_type not in event._attributes:
        # JSON implies its datacontenttype; no other form does (JSON format 3.1.2).
        written.append((CONTENT_TYPE, b"application/json"))
    return written


def _extension_header(name: str, names: dict[str, str]) -> str:
    """The header of an extension; remembered, as its reader is."""
    header = PREFIX + name
    if len(names) < REMEMBERED_NAMES and len(header) <= MAX_SHOWN:
        names[name] = header
    return header


_HEADER_OF: Final = {
    label: {
        name: CONTENT_TYPE if name == version.content_type else PREFIX + name
        for name in version.attributes
    }
    for label, version in VERSIONS.items()
}
