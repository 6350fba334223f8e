"""The Apache Pulsar binding (the draft of 2018): reads events from messages, and writes them.

A message is plain data: its properties (str to str) and its payload. This module imports no socket
and no client; it does not handle keys, schemas and other fields of a message.

    CE-EventID          "1"           an attribute: `CE-` and its capitalized name
    CE-X-Traceparent    "00-…"        an extension: `CE-X-` and its capitalized name
    CE-ContentType      "application/cloudevents+json"      the event is the payload

A property's value is the attribute as JSON: a String is in quotes, and `5` is an Integer. An event
keeps its message, so that the message can be written again unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .errors import (
    CloudEventError,
    OpaqueReason,
    Unknown,
    UnknownFormatError,
    UnknownVersionError,
    quoted,
    shown,
    unknown_of,
)
from .event.cloud_event import CloudEvent, no_event_error
from .event.data import JsonText
from .formats.registry import JSON_FORMAT, EventFormat, event_media_type
from .protocol_binding import (
    DEFAULT,
    LENIENT,
    BindingVocabulary,
    Mode,
    Profile,
    event_format_named,
    forward_only_error,
    mode_error,
    read_structured,
    unwritable_error,
)
from .values.json_text import (
    UNIQUE_NAMES_DECODER,
    compact_json,
    dump_json,
    member_texts,
    parse_json,
)
from .values.media_type import CLOUDEVENTS_JSON, parse_media_type
from .values.types import AttributeValue, JsonMap, canonical, json_of, utf8
from .versions.spec_version import SpecVersion
from .versions.version_tables import ALL_VERSIONS, V1_0, VERSION_ATTRIBUTES, named_version

__all__ = [
    "NotAPulsarEvent",
    "OpaquePulsarEvent",
    "PulsarMessage",
    "from_pulsar",
    "pulsar_message",
    "to_pulsar",
]

PREFIX: Final = "CE-"
EXTENSION_PREFIX: Final = "CE-X-"
#: The property that decides the content mode. In 0.1 it is also an attribute of binary mode.
CONTENT_TYPE: Final = "CE-ContentType"

_MODES: Final = ("Pulsar draft 3",)
_NAMES: Final = ("Pulsar draft 3.1.2.1",)
_VALUES: Final = ("Pulsar draft 3.1.2.2",)
_PULSAR: Final = BindingVocabulary(
    system="Pulsar",
    message="message",
    content_type=CONTENT_TYPE,
    document="payload",
    mode_clauses=_MODES,
    document_clauses=("Pulsar draft 3.2.1",),
    batch_clauses=_MODES,
)


class PulsarMessage(NamedTuple):
    """Properties and payload of a Pulsar message; a null payload is None.

    Fits `pulsar-client`: `producer.send(message.payload, message.properties)`.
    """

    properties: dict[str, str]
    payload: bytes | None

    def __repr__(self) -> str:
        size = "null" if self.payload is None else f"<{len(self.payload)} bytes>"
        return f"PulsarMessage(properties=[{', '.join(self.properties)}], payload={size})"


class OpaquePulsarEvent(NamedTuple):
    """An event that can be forwarded but not read; `to_pulsar` returns its message."""

    message: PulsarMessage
    #: The error message: which event format or version is unknown.
    reason: str

    @property
    def unknown(self) -> Unknown | None:
        """Returns the unknown part: "format" or "version"; None if `reason` is a plain str."""
        return unknown_of(self.reason)


class NotAPulsarEvent(NamedTuple):
    """A message that is not an event.

    Such a message has no `CE-` property, or only a `CE-ContentType` that is not an event format's
    media type.
    """

    message: PulsarMessage
    #: The reason why the message is not an event.
    reason: str


class _Origin(NamedTuple):
    """The message that an event was read from."""

    message: PulsarMessage
    #: None for binary mode.
    event_format: EventFormat | None

    @property
    def mode(self) -> Mode:
        """Returns the content mode of the message."""
        return "binary" if self.event_format is None else "structured"


# --- reading ------------------------------------------------------------------------------------


def from_pulsar(
    properties: Mapping[str, str],
    payload: bytes | None,
    *,
    mode: Mode | None = None,
    profile: Profile = DEFAULT,
    bare_values: bool = False,
) -> CloudEvent | OpaquePulsarEvent | NotAPulsarEvent:
    """Reads a Pulsar message.

    The property `CE-ContentType` decides the content mode (draft, 3): the media type of an event
    format, with or without quotes, means structured mode; any other value means binary mode. `mode`
    overrides the property. Of `profile`, only `refuse_unknown` and `any_case_headers` have an
    effect; `any_case_headers` applies to the names of properties. `bare_values` accepts a String
    without JSON quotes: numbers, booleans and values that are not JSON are then the text of a
    String.

    Returns the event. Returns `OpaquePulsarEvent` for an unknown event format or version; if
    `profile.refuse_unknown` is set, raises CloudEventError instead. Returns `NotAPulsarEvent` if
    the message has no `CE-` property, or only a `CE-ContentType` that names no event format.

    Raises CloudEventError for a message that claims to be an event but breaks a rule, and for
    properties or a payload of the wrong Python type. If `mode` is set, every message claims to be
    an event.
    """
    message = _checked_message(properties, payload)
    table = _table(message.properties, profile)
    reading = _MessageReadInput(message, table, profile, bare_values)
    try:
        name = _format_name(reading, mode)
        event = _read_binary(reading) if name is None else _read_structured(reading, name)
    except (UnknownVersionError, UnknownFormatError) as error:
        if profile.refuse_unknown:
            raise
        return OpaquePulsarEvent(message, OpaqueReason.of(error))
    if event is not None:
        return event
    if mode is not None or any(name != CONTENT_TYPE for name in table):
        raise V1_0.missing_error(_property_of(V1_0.specversion), _NAMES)
    return NotAPulsarEvent(
        message, "no CE- property, or only a CE-ContentType that is no event format"
    )


class _MessageReadInput(NamedTuple):
    """The inputs for reading one message."""

    message: PulsarMessage
    #: The properties of CloudEvents, by their name in the draft's spelling.
    table: dict[str, str]
    profile: Profile
    bare_values: bool

    def json_string(self, name: str) -> str | None:
        """Returns the String in a property; None if the property is missing or null.

        Raises CloudEventError for any other value.
        """
        written = self.table.get(name)
        if written is None:
            return None
        value = self.value(name)
        if value is None or isinstance(value, str):
            return value
        raise CloudEventError(
            "the value is no JSON string, or it lacks its quotes", where=name, clauses=_VALUES
        )

    def value(self, name: str) -> Any:
        """Returns the JSON value of a property.

        With `bare_values`, a number, a boolean and a text that is not JSON are returned as str.
        """
        written = self.table[name]
        try:
            value = parse_json(written)
        except CloudEventError as error:
            if self.bare_values:
                return written
            raise CloudEventError(
                f"{error.reason}; a String must be in quotes",
                where=shown(name),
                clauses=(*_VALUES, *error.clauses),
            ) from None
        return written if self.bare_values and isinstance(value, int | float) else value


def _checked_message(properties: Mapping[str, str], payload: bytes | None) -> PulsarMessage:
    if not isinstance(properties, Mapping):
        raise CloudEventError(
            f"the properties of a message are a mapping, not {type(properties).__name__}"
        )
    copied = dict(properties)
    if not all(isinstance(each, str) for pair in copied.items() for each in pair):
        raise CloudEventError("a property of a message is a str by name")
    if not (payload is None or isinstance(payload, bytes)):
        raise CloudEventError(
            f"the payload of a message is bytes or None, not {type(payload).__name__}"
        )
    return PulsarMessage(copied, payload)


def _table(properties: Mapping[str, str], profile: Profile) -> dict[str, str]:
    """Returns the properties that belong to the event, by name in the draft's spelling."""
    table: dict[str, str] = {}
    for written, text in properties.items():
        if not _is_event_property(written, profile):
            continue
        if not profile.any_case_headers:
            table[written] = text
            continue
        spelled = _SPELLINGS.get(written.lower()) or _respelled_property(written)
        if spelled in table:
            raise CloudEventError(
                "the property appears twice, in different case",
                where=shown(written),
                clauses=_NAMES,
            )
        table[spelled] = text
    return table


def _is_event_property(name: str, profile: Profile) -> bool:
    """Returns True if a property name has the prefix `CE-`.

    If `profile.any_case_headers` is set, the prefix can be in upper or lower case, such as `ce-`.
    """
    return (name.upper() if profile.any_case_headers else name).startswith(PREFIX)


def _respelled_property(written: str) -> str:
    """Returns a property name in the draft's spelling: prefix and next letter in upper case."""
    if written.upper().startswith(EXTENSION_PREFIX):
        return EXTENSION_PREFIX + _capitalized(written[len(EXTENSION_PREFIX) :])
    return PREFIX + _capitalized(written[len(PREFIX) :])


def _format_name(reading: _MessageReadInput, mode: Mode | None) -> str | None:
    """Returns the media type of the message's event format; None for binary mode (draft, 3)."""
    if mode == "binary":
        return None
    if mode not in (None, "structured"):
        raise mode_error(mode, _PULSAR)
    content_type = reading.table.get(CONTENT_TYPE, "").strip()
    if content_type.startswith('"'):
        content_type = reading.json_string(CONTENT_TYPE) or ""
    name = event_format_named(parse_media_type(content_type), _PULSAR)
    # Structured mode is JSON unless the content type names another event format.
    return name or (None if mode is None else CLOUDEVENTS_JSON)


def _read_structured(reading: _MessageReadInput, name: str) -> CloudEvent:
    event, event_format = read_structured(reading.message.payload, name, _PULSAR)
    event._message = _Origin(reading.message, event_format)
    return event


def _read_binary(reading: _MessageReadInput) -> CloudEvent | None:
    """Returns the event in the properties; None if no property states the CloudEvents version."""
    version = _version_of_properties(reading)
    if version is None:
        return None
    attributes: dict[str, Any] = {}
    entries: dict[str, str] = {}
    for name, written in reading.table.items():
        if name.startswith(EXTENSION_PREFIX):
            attribute = _lowered(name, EXTENSION_PREFIX)
            if version.extension_map is not None:
                _check_entry(name, written, reading.value(name), version)
                entries[attribute] = written
                continue
            if attribute in version.attributes:
                raise CloudEventError(
                    f"{attribute} is no extension: its property is {_property_of(attribute)}",
                    where=shown(name),
                    clauses=_NAMES,
                )
        else:
            attribute = _attribute_of(name, version)
        value = _attribute_value(reading, name, attribute, version)
        if value is None:
            continue
        agrees = attribute == version.content_type and attributes.get(attribute) == value
        if attribute in attributes and not agrees:
            raise CloudEventError(
                f"the attribute {attribute} appears twice", where=shown(name), clauses=_NAMES
            )
        attributes[attribute] = value
    _add_map(attributes, entries, version, bare_values=reading.bare_values)
    for name in version.required:
        if name not in attributes:
            raise version.missing_error(_property_of(name), _NAMES)
    message = reading.message
    origin = _Origin(message, None)
    return CloudEvent._decoded(version, attributes, message.payload, None, origin)


def _version_of_properties(reading: _MessageReadInput) -> SpecVersion | None:
    for attribute in VERSION_ATTRIBUTES:
        name = _property_of(attribute)
        label = reading.json_string(name)
        if label is not None:
            return named_version(attribute, label, where=name, clauses=_NAMES)
    return None


def _attribute_of(name: str, version: SpecVersion) -> str:
    """Returns the attribute of a property with the prefix `CE-`."""
    attribute = _lowered(name, PREFIX)
    if name == CONTENT_TYPE and attribute not in version.attributes:
        # This property decides the mode, so it is also used in the versions that call the content
        # type by another name.
        return version.content_type
    if attribute == version.extension_map:
        raise CloudEventError(
            f"each entry of {attribute} is a property of its own, under {EXTENSION_PREFIX}",
            where=name,
            clauses=_NAMES,
        )
    return attribute


def _attribute_value(
    reading: _MessageReadInput, name: str, attribute: str, version: SpecVersion
) -> AttributeValue | None:
    """Returns the checked value of one attribute; None if it is null, which means unset."""
    where = shown(name)
    version.checked_spec(attribute, where, _NAMES)
    value = reading.value(name)
    if value is None:
        return None
    if isinstance(value, str):
        version.check_text(attribute, value, where=where, clauses=_VALUES)
        return value
    if isinstance(value, dict) and version.has_maps:
        value = JsonMap(compact_json(reading.table[name]))
    if not isinstance(value, bool | int | JsonMap):
        raise CloudEventError(
            "the value is no JSON string, boolean or whole number",
            where=where,
            clauses=_VALUES,
        )
    version.check_read_native(attribute, value, where=where, clauses=_VALUES)
    return value


def _check_entry(name: str, written: str, value: Any, version: SpecVersion) -> None:
    """Raises CloudEventError if an entry of the map of extensions has duplicate member names."""
    if not isinstance(value, dict | list):
        return
    try:
        parse_json(written, UNIQUE_NAMES_DECODER)
    except CloudEventError:
        raise CloudEventError(
            f"{quoted(written)} has a name twice",
            where=shown(name),
            clauses=(*_VALUES, version.clause("Map")),
        ) from None


def _add_map(
    attributes: dict[str, Any], entries: dict[str, str], version: SpecVersion, *, bare_values: bool
) -> None:
    """Adds the extensions in `entries` as one Map, if the version has an attribute for them."""
    if version.extension_map is None or not entries:
        return
    members = []
    for name, text in entries.items():
        if bare_values:
            try:
                parse_json(text)
            except CloudEventError:
                text = dump_json(text)
        members.append(f"{dump_json(name)}:{text}")
    attributes[version.extension_map] = JsonMap(compact_json(f"{{{','.join(members)}}}"))


# --- writing ------------------------------------------------------------------------------------


def to_pulsar(
    event: CloudEvent | OpaquePulsarEvent | NotAPulsarEvent,
    mode: Mode | None = None,
    *,
    properties: Mapping[str, str] | None = None,
    event_format: EventFormat | None = None,
    repeat_attributes: bool = False,
) -> PulsarMessage:
    """Writes an event as a Pulsar message.

    An event that was read from a Pulsar message becomes that message again, unless the caller
    passes another `mode`, another `event_format`, or `repeat_attributes` for structured mode. In
    these three cases, the new message keeps the properties of the old message that do not belong to
    the event. `OpaquePulsarEvent` and `NotAPulsarEvent` become their message again; for them,
    `mode` and `event_format` must be None. The default `mode` is the mode in which the event was
    read, or binary if it was not read.

    `properties` are added to the message. `event_format` applies to structured mode; the default
    is the format in which the event was read, or JSON. `repeat_attributes` adds the properties
    of binary mode to a structured event (draft, 3.2.2).

    In binary mode, the payload is None for an event without data. The returned properties are a
    copy. Raises CloudEventError if the event cannot be written as requested.
    """
    if isinstance(event, CloudEvent):
        message = _message_of(event, mode, event_format, repeat_attributes)
    elif not isinstance(event, OpaquePulsarEvent | NotAPulsarEvent):
        raise unwritable_error(event, _PULSAR)
    elif mode is None and event_format is None:
        message = event.message
    else:
        raise forward_only_error(event.reason, _PULSAR)
    added = {} if properties is None else _checked_message(properties, None).properties
    for name in added:
        if _is_event_property(name, LENIENT):
            raise CloudEventError(
                "the property belongs to the event: set the attribute instead",
                where=shown(name),
                clauses=_NAMES,
            )
    return PulsarMessage({**message.properties, **added}, message.payload)


def pulsar_message(event: CloudEvent) -> PulsarMessage | None:
    """Returns the Pulsar message that an event was read from; None if it was not read from one.

    Raises CloudEventError for an object that is not a CloudEvent.
    """
    if not isinstance(event, CloudEvent):
        raise no_event_error(event)
    origin = event._message
    if not isinstance(origin, _Origin):
        return None
    return PulsarMessage(dict(origin.message.properties), origin.message.payload)


def _message_of(
    event: CloudEvent, mode: Mode | None, event_format: EventFormat | None, repeat_attributes: bool
) -> PulsarMessage:
    origin = event._message if isinstance(event._message, _Origin) else None
    was = None if origin is None else origin.event_format
    if mode is None:
        mode = "binary" if was is None else "structured"
    if mode == "binary":
        if origin is not None and was is None:
            return origin.message
        written = _properties_of(event)
        payload = event.data_bytes()
    elif mode == "structured":
        if was is not None and event_format in (None, was) and not repeat_attributes:
            assert origin is not None
            return origin.message
        chosen = event_format or was or JSON_FORMAT
        media_type = event_media_type(chosen)
        payload = chosen.write(event)
        written = _properties_of(event) if repeat_attributes else {}
        written[CONTENT_TYPE] = dump_json(media_type)
    else:
        raise mode_error(mode, _PULSAR)
    # In the other mode, keep the properties that no reader takes for event properties.
    if origin is not None:
        for name, text in origin.message.properties.items():
            if not _is_event_property(name, LENIENT):
                written[name] = text
    return PulsarMessage(written, payload)


def _properties_of(event: CloudEvent) -> dict[str, str]:
    """Returns the properties of binary mode (draft, 3.1.2), in the order of the attributes."""
    version = event._version
    written: dict[str, str] = {}
    for attribute, value in event._attributes.items():
        if attribute == version.extension_map:
            written |= _entry_properties(canonical(value))
        elif attribute == version.data_encoding and event.has_data:
            continue  # The payload is never encoded, so no property declares Base64.
        elif attribute in version.attributes or version.extension_map is not None:
            written[_property_of(attribute)] = json_of(value)
        else:
            written[_property_of(attribute, EXTENSION_PREFIX)] = json_of(value)
    if type(event._data) is JsonText and version.content_type not in event._attributes:
        # A JSON value may lack a content type. Its bytes need one: without it, a reader would take
        # them for Binary data (JSON format 3.1.2).
        written[_property_of(version.content_type)] = '"application/json"'
    _check_read_as_binary(event)
    return written


def _entry_properties(extension_map: str) -> dict[str, str]:
    written: dict[str, str] = {}
    for name, text in member_texts(extension_map, 0).items():
        if not name or "A" <= name[0] <= "Z":
            raise CloudEventError(
                "a reader would find the entry under another name: the first letter of a property "
                "name must be upper case",
                where=f"extensions {quoted(name)}",
                clauses=_NAMES,
            )
        utf8(name, where=f"extensions {quoted(name)}", clauses=_NAMES)
        written[_property_of(name, EXTENSION_PREFIX)] = text
    return written


def _check_read_as_binary(event: CloudEvent) -> None:
    """Raises CloudEventError if a reader would take the data for a structured event or a batch."""
    content_type = event.datacontenttype
    media_type = None if content_type is None else parse_media_type(content_type)
    if (
        media_type is not None
        and _property_of(event._version.content_type) == CONTENT_TYPE
        and (media_type.is_event_format or media_type.is_batch_format)
    ):
        raise CloudEventError(
            f"data of type {quoted(media_type.essence)} would be read as structured mode: "
            'write it with mode="structured"',
            where=CONTENT_TYPE,
            clauses=_MODES,
        )


# --- names --------------------------------------------------------------------------------------


def _property_of(attribute: str, prefix: str = PREFIX) -> str:
    return prefix + _capitalized(attribute)


def _capitalized(name: str) -> str:
    """Returns the name with its first letter in upper case if that letter is ASCII."""
    return name[:1].upper() + name[1:] if name[:1].isascii() else name


def _lowered(name: str, prefix: str) -> str:
    first = name[len(prefix) : len(prefix) + 1]
    if "a" <= first <= "z" or not first:
        raise CloudEventError(
            f"the first letter after {prefix} must be upper case",
            where=shown(name),
            clauses=_NAMES,
        )
    return (first.lower() if first.isascii() else first) + name[len(prefix) + 1 :]


#: The properties of the attributes that the versions define, by their lower-case spelling.
_SPELLINGS: Final = {
    name.lower(): name
    for name in (
        *(_property_of(attribute) for version in ALL_VERSIONS for attribute in version.attributes),
        CONTENT_TYPE,  # overrides the spelling of 0.2 for the same property
    )
}
