"""Reads and writes event attributes in the headers of a Kafka record, for binary mode.

This module reads neither the key nor the value, and does not decide the content mode (Kafka binding
3.2.1 and 3.2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..errors import MAX_SHOWN, CloudEventError, quoted, shown
from ..event.cloud_event import CloudEvent
from ..event.data import JsonText
from ..protocol_binding import Profile
from ..values.media_type import parse_media_type
from ..values.types import canonical
from ..versions.check_plans import MAX_NAMES, MAX_PLANS
from ..versions.spec_version import (
    REMEMBERED_LENGTH,
    REMEMBERED_NAMES,
    REMEMBERED_VALUES,
    AttributeSpec,
    SpecVersion,
)
from ..versions.version_tables import (
    EVENT_GRID_SCHEMA,
    EVENT_VERSIONS,
    V1_0,
    V1_0_EVENT_GRID,
    VERSION_ATTRIBUTES,
    named_version,
    version_attribute,
)
from .record import Header

__all__ = [
    "CONTENT_TYPE",
    "CURRENT_HEADER",
    "CURRENT_VERSIONS",
    "PREFIX",
    "attribute_names",
    "binary_version",
    "event_grid_version",
    "has_attribute",
    "has_event_header",
    "headers_by_name",
    "is_event_header",
    "missing_version_error",
    "read_attribute",
    "read_headers",
    "write_headers",
]

CONTENT_TYPE: Final = "content-type"
PREFIX: Final = "ce_"

_BINARY_TYPE: Final = ("Kafka binding 3.2.1",)
_BINARY_HEADERS: Final = ("Kafka binding 3.2.3",)

# --- which headers are the event's --------------------------------------------------------------


def headers_by_name(headers: tuple[Header, ...], profile: Profile) -> dict[str, bytes | None]:
    """Returns headers by name, for a record whose header names repeat or differ in case.

    A null event header (`content-type` or `ce_…`) is ignored. If a header of the application
    repeats, the result has its last value. Raises CloudEventError if an event header repeats, with
    one exception: if the record has no `ce_` header, and no value of `content-type` is an event
    format or a batch, the result has the first `content-type`.
    """
    table: dict[str, bytes | None] = {}
    repeated: str | None = None
    for written, raw in headers:
        name = written.lower() if profile.any_case_headers else written
        is_event = is_event_header(name)
        if is_event and raw is None:
            continue
        if is_event and name in table:
            repeated = repeated or written
            if name == CONTENT_TYPE and _names_event_format(raw):
                table[name] = raw
            continue
        table[name] = raw
    if repeated is not None and (
        has_event_header(table) or _names_event_format(table[CONTENT_TYPE])
    ):
        raise CloudEventError(
            "the header appears twice",
            where=shown(repeated),
            clauses=(*_BINARY_HEADERS, 'CloudEvents 1.0 "Context Attributes"'),
        )
    return _respelled_table(table) if profile.any_case_headers else table


def _names_event_format(content_type: bytes | None) -> bool:
    """Returns True if a content type is the media type of an event format or of a batch."""
    if content_type is None:
        return False
    try:
        media_type = parse_media_type(content_type.decode())
    except UnicodeDecodeError:
        return False
    return media_type is not None and (media_type.is_event_format or media_type.is_batch_format)


def _respelled_table(table: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """Returns the headers by name; names of CloudEvents 0.1 are changed to their camelCase form.

    Headers of other versions are returned unchanged.
    """
    for mark, spelled in _SPELLINGS.items():
        if table.get(mark) is not None and table.get(CURRENT_HEADER) is None:
            return {spelled.get(name, name): raw for name, raw in table.items()}
    return table


def is_event_header(name: str) -> bool:
    """Returns True if a header belongs to the event, in either content mode.

    Pass the name in lower case if the reader ignores the case of header names.
    """
    return name == CONTENT_TYPE or name.startswith(PREFIX)


def has_event_header(table: Mapping[str, bytes | None]) -> bool:
    """Returns True if any `ce_` header is set; a null header is unset."""
    return any(name.startswith(PREFIX) and raw is not None for name, raw in table.items())


# --- reading ------------------------------------------------------------------------------------


class _HeaderSpec(NamedTuple):
    """The name and the spec of the attribute in one header, with a cache of valid values."""

    attribute: str
    spec: AttributeSpec
    #: Values that were valid before; None for attributes whose value differs in every event.
    remembered: dict[bytes, str] | None
    #: The header spec as a tuple, for `read_headers`.
    step: _Step


#: A plain tuple is faster to unpack than a header spec. It has the header, the attribute, its spec,
#: its remembered values and its quick check.
_Step = tuple[str, str, AttributeSpec, dict[bytes, str] | None, Callable[[str], object]]


def binary_version(table: Mapping[str, bytes | None]) -> SpecVersion | None:
    """Returns the version in the headers; None if the headers have no version.

    Raises UnknownVersionError for an unknown version, and CloudEventError for a value that is empty
    or not UTF-8.
    """
    known = CURRENT_VERSIONS.get(table.get(CURRENT_HEADER))
    if known is not None:
        return known
    attribute = version_attribute(table, PREFIX)
    if attribute is None:
        return None
    header = PREFIX + attribute
    # version_attribute() returns only an attribute that is set.
    label = _decode(header, table[header] or b"")
    return named_version(attribute, label, where=header, clauses=_BINARY_HEADERS)


def event_grid_version(table: Mapping[str, bytes | None], version: SpecVersion) -> SpecVersion:
    """Returns the version for a reader that accepts the dataschema "#" of Azure Event Grid."""
    raw = table.get(_DATA_SCHEMA_HEADER)
    if version is V1_0 and raw is not None and raw == EVENT_GRID_SCHEMA.encode():
        return V1_0_EVENT_GRID
    return version


def read_headers(table: Mapping[str, bytes | None], version: SpecVersion) -> dict[str, Any]:
    """Returns the attributes in the headers (Kafka binding 3.2.3), in the order of the headers.

    Raises CloudEventError if an attribute is invalid, or if a required one is missing.
    """
    names = tuple(table)
    plan = _PLANS[version].get(names)
    if plan is None or len(plan) != len(names):
        return _read_steps(table, version, plan)
    attributes: dict[str, Any] = {}
    header = ""
    try:
        # Both have the same length; `strict` would add a tenth of the time.
        for raw, (header, attribute, spec, remembered, quick) in zip(table.values(), plan):  # noqa: B905
            if raw is None:
                return _read_steps(table, version, plan)
            if remembered is None:
                # A quick check accepts most values without a call of a Python function.
                text = raw.decode()
                if not (text and quick(text)):
                    _check_text(header, text, spec, version)
                attributes[attribute] = text
            else:
                attributes[attribute] = remembered.get(raw) or _remember(
                    header, raw, spec, remembered, version
                )
    except UnicodeDecodeError:
        raise _no_utf8_error(header) from None
    return attributes if version.extension_map is None else version.with_map(attributes)


def _read_steps(
    table: Mapping[str, bytes | None], version: SpecVersion, plan: tuple[_Step, ...] | None
) -> dict[str, Any]:
    """Returns the attributes in the headers, if the fast loop of `read_headers` does not apply.

    The fast loop does not apply if these header names have no plan, if a header is null, or if a
    header is not an attribute.
    """
    attributes: dict[str, Any] = {}
    steps: Iterable[tuple[bytes | None, _Step]]
    if plan is None:
        steps = _steps(table, version)
    else:
        steps = ((table[step[0]], step) for step in plan)
    unset = False
    for raw, (header, attribute, spec, remembered, _) in steps:
        if raw is None:
            unset = True
        elif remembered is None:
            attributes[attribute] = _checked_text(header, raw, spec, version)
        else:
            attributes[attribute] = remembered.get(raw) or _remember(
                header, raw, spec, remembered, version
            )
    if plan is None or unset:
        for name in version.required:
            if name not in attributes:
                raise version.missing_error(PREFIX + name, _BINARY_HEADERS)
    if plan is None:
        _learn(tuple(table), version)
    return attributes if version.extension_map is None else version.with_map(attributes)


def _steps(
    table: Mapping[str, bytes | None], version: SpecVersion
) -> Iterator[tuple[bytes | None, _Step]]:
    """Yields the value and the `_Step` of each event header that is not null.

    Needed for records whose combination of header names has no plan yet (see `_learn`).
    """
    header_specs = _HEADER_SPECS[version]
    for header, raw in table.items():
        if raw is None:
            continue
        header_spec = header_specs.get(header)
        if header_spec is None:
            if not header.startswith(PREFIX):
                continue
            header_spec = _uncached_header_spec(header, raw, table, version, header_specs)
        yield raw, header_spec.step


def _learn(names: tuple[str, ...], version: SpecVersion) -> None:
    """Stores a plan for records with these header names: the steps that read their event headers.

    Stores no plan if an event header has no cached spec. Call `_learn` after the headers were read
    without an error: the plan then has every required attribute. The number of plans is bounded, as
    in `versions.check_plans`.
    """
    if len(_PLANS[version]) >= MAX_PLANS or len(names) > MAX_NAMES:
        return
    header_specs = _HEADER_SPECS[version]
    plan = []
    for name in names:
        header_spec = header_specs.get(name)
        if header_spec is not None:
            plan.append(header_spec.step)
        elif name.startswith(PREFIX) or len(name) > MAX_SHOWN:
            return
    _PLANS[version][names] = tuple(plan)


def read_attribute(
    table: Mapping[str, bytes | None], version: SpecVersion, name: str
) -> str | None:
    """Returns one attribute from the headers; None if it is unset.

    Raises CloudEventError if the attribute is set and its name or value is invalid. Also raises it
    for the datacontenttype if the headers `ce_datacontenttype` and `content-type` differ.
    """
    header_specs = _HEADER_SPECS[version]
    header = _HEADER_OF[version].get(name) or PREFIX + name
    raw = table.get(header)
    if raw is None or header == CONTENT_TYPE:
        # `ce_datacontenttype` is obsolete. It is still read; if the content-type header is set,
        # both must be equal.
        older = table.get(PREFIX + name)
        if older is not None:
            header, raw = PREFIX + name, older
    if raw is None:
        return None
    header_spec = header_specs.get(header) or _uncached_header_spec(
        header, raw, table, version, header_specs
    )
    remembered = header_spec.remembered
    if remembered is None:
        return _checked_text(header, raw, header_spec.spec, version)
    return remembered.get(raw) or _remember(header, raw, header_spec.spec, remembered, version)


def has_attribute(table: Mapping[str, bytes | None], version: SpecVersion, name: object) -> bool:
    """Returns True if an attribute is set; does not check its value."""
    if not isinstance(name, str):
        return False
    header = _HEADER_OF[version].get(name) or PREFIX + name
    return table.get(header) is not None or table.get(PREFIX + name) is not None


def attribute_names(table: Mapping[str, bytes | None], version: SpecVersion) -> tuple[str, ...]:
    """Returns the names of the set attributes, in the order of the headers.

    Raises CloudEventError for an invalid attribute name.
    """
    header_specs = _HEADER_SPECS[version]
    names: dict[str, None] = {}
    for header, raw in table.items():
        if raw is None:
            continue
        header_spec = header_specs.get(header)
        if header_spec is None:
            if not header.startswith(PREFIX):
                continue
            header_spec = _uncached_header_spec(header, raw, table, version, header_specs)
        names[header_spec.attribute] = None
    return tuple(names)


def missing_version_error() -> CloudEventError:
    """Returns the error for event headers without `ce_specversion`."""
    return V1_0.missing_error(PREFIX + V1_0.specversion, _BINARY_HEADERS)


def _checked_text(header: str, raw: bytes, spec: AttributeSpec, version: SpecVersion) -> str:
    """Returns the text of a header.

    Raises CloudEventError if the text breaks a rule of its attribute.
    """
    text = _decode(header, raw)
    if not (text and spec.quick(text)):
        _check_text(header, text, spec, version)
    return text


def _check_text(header: str, text: str, spec: AttributeSpec, version: SpecVersion) -> None:
    """Raises CloudEventError if a text breaks a rule of its attribute."""
    fault = spec.fault(text)
    if fault is not None:
        raise version.fault_error(fault, text, where=shown(header), clauses=_clauses(header))


def _remember(
    header: str,
    raw: bytes,
    spec: AttributeSpec,
    remembered: dict[bytes, str],
    version: SpecVersion,
) -> str:
    """Returns the text of a valid value, and caches it if the value is short.

    The attribute has the same values in many records of a topic. Raises CloudEventError for an
    invalid value.
    """
    text = _checked_text(header, raw, spec, version)
    if len(raw) <= REMEMBERED_LENGTH:
        if len(remembered) >= REMEMBERED_VALUES:
            remembered.clear()
        remembered[raw] = text
    return text


def _decode(header: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise _no_utf8_error(header) from None


def _no_utf8_error(header: str) -> CloudEventError:
    return CloudEventError("the value is not UTF-8", where=shown(header), clauses=_clauses(header))


def _clauses(header: str) -> tuple[str, ...]:
    return _BINARY_TYPE if header == CONTENT_TYPE else _BINARY_HEADERS


def _defined_header_specs(version: SpecVersion) -> dict[str, _HeaderSpec]:
    """Returns the `_HeaderSpec` of each attribute that a version defines, by header."""
    return {
        header: _header_spec(header, name, version.attributes[name])
        for name, header in _HEADER_OF[version].items()
    }


def _header_spec(header: str, name: str, spec: AttributeSpec) -> _HeaderSpec:
    remembered: dict[bytes, str] | None = {} if spec.repeats else None
    return _HeaderSpec(name, spec, remembered, (header, name, spec, remembered, spec.quick))


def _uncached_header_spec(
    header: str,
    raw: bytes,
    table: Mapping[str, bytes | None],
    version: SpecVersion,
    header_specs: dict[str, _HeaderSpec],
) -> _HeaderSpec:
    """Returns the `_HeaderSpec` of an extension or of `ce_datacontenttype`.

    Caches the spec of an extension.

    Bindings before 1.0 wrote `ce_datacontenttype`; this package reads it and never writes it.
    Raises CloudEventError for an invalid name, and if `ce_datacontenttype` differs from the
    content-type header.
    """
    name = header[len(PREFIX) :]
    if name == version.content_type:
        if table.get(CONTENT_TYPE, raw) not in (raw, None):
            raise CloudEventError(
                f"{header} and {CONTENT_TYPE} differ",
                where=header,
                clauses=(*_BINARY_TYPE, version.clause(name)),
            )
        return header_specs[CONTENT_TYPE]
    spec = version.checked_spec(name, header, _BINARY_HEADERS)
    header_spec = _header_spec(header, name, spec)
    if len(header_specs) < REMEMBERED_NAMES and len(header) <= MAX_SHOWN:
        header_specs[header] = header_spec
    return header_spec


_DATA_SCHEMA_HEADER: Final = PREFIX + V1_0.data_schema
#: The version header of the current versions (`ce_specversion`), and its known values.
CURRENT_HEADER: Final = PREFIX + V1_0.specversion
CURRENT_VERSIONS: Final[dict[bytes | None, SpecVersion]] = {
    label.encode(): version for label, version in VERSION_ATTRIBUTES[V1_0.specversion].items()
}
_HEADER_OF: Final = {
    version: {
        name: CONTENT_TYPE if name == version.content_type else PREFIX + name
        for name in version.attributes
    }
    for version in EVENT_VERSIONS
}
#: The steps by the tuple of a record's header names; headers that are not the event's have no step.
_PLANS: Final[dict[SpecVersion, dict[tuple[str, ...], tuple[_Step, ...]]]] = {
    version: {} for version in EVENT_VERSIONS
}
_HEADER_SPECS: Final = {version: _defined_header_specs(version) for version in EVENT_VERSIONS}
#: For versions with capitals in attribute names: the version header in lower case, and the correct
#: spelling of that version's headers by their lower case.
_SPELLINGS: Final = {
    PREFIX + version.specversion.lower(): {
        (PREFIX + name).lower(): PREFIX + name for name in version.attributes
    }
    for version in EVENT_VERSIONS
    if version.specversion != version.specversion.lower()
}


# --- writing ------------------------------------------------------------------------------------


def write_headers(event: CloudEvent, *, repeated: bool = False) -> list[Header]:
    """Returns the headers of binary mode (Kafka binding 3.2.3), in the order of the attributes.

    Set `repeated` if the headers repeat the attributes of an event in structured mode. Without
    `repeated`, raises CloudEventError if the datacontenttype would make a reader take the record
    for an event in structured mode or for a batch.
    """
    version = event._version
    attributes = event._attributes
    names = _HEADER_OF[version]
    written: list[Header] = []
    try:
        # A plain loop is a tenth faster than a comprehension here.
        for name, text in attributes.items():
            written.append((names[name], text.encode()))
    except (KeyError, AttributeError):
        # An extension whose header is not cached yet, or a value that is not a str.
        written = [
            (names.get(name) or _extension_header(name, names), canonical(value).encode())
            for name, value in attributes.items()
        ]
    encoding = version.data_encoding
    if encoding is not None and encoding in attributes and event.has_data:
        # The value of a record is the data itself, never encoded, so no header declares an
        # encoding.
        written = [each for each in written if each[0] != names[encoding]]
    content_type = version.content_type
    if content_type in attributes:
        # No call for a type that was checked before: this runs for every event.
        if attributes[content_type] not in _TYPES_OF_DATA and not repeated:
            _check_type_of_data(attributes[content_type])
    elif type(event._data) is JsonText:
        # A JSON value may lack a datacontenttype. Its bytes need one: without it, a reader would
        # take them for Binary data (JSON format 3.1.2).
        written.append((CONTENT_TYPE, b"application/json"))
    return written


def _check_type_of_data(content_type: str) -> None:
    """Raises CloudEventError if the type of the data is an event format or a batch."""
    media_type = parse_media_type(content_type)
    if media_type is not None and (media_type.is_event_format or media_type.is_batch_format):
        raise CloudEventError(
            f"data of type {quoted(media_type.essence)} would be read as an event of its own: "
            'write it with mode="structured"',
            where=CONTENT_TYPE,
            clauses=("Kafka binding 3", *_BINARY_TYPE),
        )
    if len(content_type) <= REMEMBERED_LENGTH:
        if len(_TYPES_OF_DATA) >= REMEMBERED_VALUES:
            _TYPES_OF_DATA.clear()
        _TYPES_OF_DATA.add(content_type)


#: Content types seen so far that mean binary mode.
_TYPES_OF_DATA: Final[set[str]] = set()


def _extension_header(name: str, names: dict[str, str]) -> str:
    """Returns the name of the header of an extension; stores it in `names`, a bounded cache."""
    header = PREFIX + name
    if len(names) < REMEMBERED_NAMES and len(header) <= MAX_SHOWN:
        names[name] = header
    return header
