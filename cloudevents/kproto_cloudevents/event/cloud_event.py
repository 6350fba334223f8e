"""The immutable event: its attributes in order, and its data.

An event preserves the attributes as they were read: a str from a header, a typed value from JSON.
An event never creates an id or a time. An event that was read keeps its document or message, so
that the binding can write the same bytes again. This module imports no binding and no event format.

Clients call `to_kafka_record` on the objects that they send. Only the Kafka binding can implement
this method, and the binding imports this module. So the package's `__init__` assigns `_to_kafka`.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeAlias

from ..errors import CloudEventError, quoted
from ..values.types import (
    MAP,
    TIMESTAMP,
    AttributeInput,
    AttributeValue,
    Timestamp,
    canonical,
    same_map,
    same_time,
)
from ..versions.check_plans import checked_attributes
from ..versions.conversion import attributes_in, entries_of
from ..versions.spec_version import SpecVersion
from ..versions.version_tables import (
    V1_0,
    V1_0_EVENT_GRID,
    VERSION_ATTRIBUTES,
    named_version,
    spec_version,
    version_attribute,
    version_of_read,
)
from . import data as event_data
from .data import Data, from_value

__all__ = ["CloudEvent", "Mode", "no_event_error"]

Mode: TypeAlias = Literal["binary", "structured"]


class _Unchanged:
    """The type of `replace`'s default for `data`, which keeps the data."""


_UNCHANGED: Final = _Unchanged()

#: The version attribute of the current versions ("specversion"), and its known values.
_CURRENT_ATTRIBUTE: Final = V1_0.specversion
_CURRENT_VERSIONS: Final = VERSION_ATTRIBUTES[_CURRENT_ATTRIBUTE]


class CloudEvent:
    """An immutable CloudEvent.

        CloudEvent(id="1", source="/shop", type="order.placed", data={"total": 12})
        CloudEvent({"id": "1", "source": "/shop", "type": "order.placed"}, data=b"…")

    Attributes come from the mapping, then from the keywords, in that order; None unsets an
    attribute. The version is `specversion`, or `cloudEventsVersion` in 0.1; if neither is set, it
    is "1.0". A datetime becomes an RFC 3339 string. Data is bytes, str, a JSON value, `JSON_NULL`
    for an explicit null, or None for no data. A JSON value is copied: later changes to the object
    do not affect the event.

    Raises CloudEventError if an attribute or the data breaks a rule of the version, and
    UnknownVersionError for an unknown version.

    Two events are equal if they have the same attributes, in any order, and the same data. A native
    value (bool, int or bytes) equals its canonical string. The time of the event compares as an
    instant, and a Map (a type before 1.0) compares as a JSON value. The data encoding attribute of
    0.3 is ignored if both events have data, because it describes the document.
    """

    __slots__ = ("_attributes", "_data", "_document", "_message", "_version")

    # The values are AttributeValue; the type is Any, because `id`, for example, is always a str.
    _attributes: dict[str, Any]
    _data: Data
    #: The event format document that the event was read from, or None.
    _document: bytes | None
    #: The message that the event was read from, or None. Only the binding that read it uses it.
    _message: object | None
    _version: SpecVersion

    #: `to_kafka` of the binding, as a method; the package's `__init__` assigns it.
    _to_kafka: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        attributes: Mapping[str, AttributeInput] | None = None,
        /,
        *,
        data: Any = None,
        **named: AttributeInput,
    ) -> None:
        merged: dict[str, Any]  # a copy, which is changed below
        if attributes is None:
            merged = named
        elif type(attributes) is dict:
            merged = {**attributes, **named} if named else attributes.copy()
        else:
            merged = _merged_attributes({}, attributes, named)
        label = merged.get(_CURRENT_ATTRIBUTE)
        version = _CURRENT_VERSIONS.get(label) if type(label) is str else None
        if version is None:
            version = _version_of(merged)
            if merged.get(version.specversion) is None:
                # The caller omitted the version: it becomes the first attribute.
                merged = {version.specversion: version.label, **merged}
                merged[version.specversion] = version.label
        self._version = version
        checked = checked_attributes(merged, version, _closely_checked)
        if version.extension_map is not None:
            checked = version.with_map(checked)
        self._attributes = checked
        if data is None or type(data) is bytes:
            self._data = data
        elif version.data_encoding in checked:
            self._data = _declared_as_base64(data, version)
        else:
            self._data = from_value(data, self.datacontenttype)
        self._document = None
        self._message = None

    @classmethod
    def _decoded(
        cls,
        version: SpecVersion,
        attributes: dict[str, AttributeValue],
        data: Data,
        document: bytes | None,
        message: object | None,
    ) -> CloudEvent:
        """Returns an event whose attributes and data a decoder has already checked."""
        event = cls.__new__(cls)
        event._version = version
        event._attributes = attributes
        event._data = data
        event._document = document
        event._message = message
        return event

    # --- attributes -----------------------------------------------------------------------------

    @property
    def specversion(self) -> str:
        """Returns the version of CloudEvents that the event uses."""
        return self._version.label

    @property
    def id(self) -> str:
        """Returns the id, which identifies the event within its source."""
        text: str = self._attributes[self._version.id]
        return text

    @property
    def source(self) -> str:
        """Returns the source: a URI-reference to the context in which the event happened."""
        text: str = self._attributes[self._version.source]
        return text

    @property
    def type(self) -> str:
        """Returns the type of the occurrence, such as "order.placed"."""
        text: str = self._attributes[self._version.type]
        return text

    @property
    def subject(self) -> str | None:
        """Returns the subject of the event within its source; None if unset."""
        name = self._version.subject
        return None if name is None else self._text(name)

    @property
    def time(self) -> Timestamp | None:
        """Returns the time as written (RFC 3339); None if unset. See `Timestamp.datetime`."""
        text = self._attributes.get(self._version.time)
        return None if text is None else Timestamp(text)

    @property
    def datacontenttype(self) -> str | None:
        """Returns the media type of the data; None if unset."""
        text: str | None = self._attributes.get(self._version.content_type)
        return text

    @property
    def dataschema(self) -> str | None:
        """Returns the URI of the schema of the data; None if unset."""
        version = self._version
        text = self._text(version.data_schema)
        if text is None:
            for alias, name in version.aliases.items():
                if name == version.data_schema:
                    text = self._text(alias)
        return text

    @property
    def mode(self) -> Mode | None:
        """Returns the content mode of the message that the event was read from.

        Returns None if the event was not read from a message.
        """
        if self._message is None:
            return None
        # Binary mode keeps a plain tuple, which is cheaper to create and has no attribute `mode`.
        mode: Mode = getattr(self._message, "mode", "binary")
        return mode

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Returns a read-only view of every set attribute, in order."""
        return MappingProxyType(self._attributes)

    @property
    def extensions(self) -> Mapping[str, AttributeValue]:
        """Returns a read-only copy of the attributes that the version does not define, in order.

        In 0.1, the attribute `extensions` is a Map, whose entries follow the other extensions. Null
        entries are left out. An entry whose value cannot be an attribute value becomes its JSON
        text.
        """
        core = self._version.attributes
        found = {name: value for name, value in self._attributes.items() if name not in core}
        extension_map = self._attributes.get(self._version.extension_map or "")
        return MappingProxyType(
            found if extension_map is None else {**found, **entries_of(extension_map)}
        )

    def get(self, name: str, default: AttributeValue | None = None) -> AttributeValue | None:
        """Returns the value of an attribute, or the default if the attribute is unset."""
        value: AttributeValue | None = self._attributes.get(name, default)
        return value

    def __getitem__(self, name: str) -> AttributeValue:
        value: AttributeValue = self._attributes[name]
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def keys(self) -> KeysView[str]:
        """Returns the names of the set attributes, in order."""
        return self._attributes.keys()

    def items(self) -> ItemsView[str, AttributeValue]:
        """Returns the set attributes as pairs of name and value, in the event's order."""
        return self._attributes.items()

    def values(self) -> ValuesView[AttributeValue]:
        """Returns the values of the set attributes, in the event's order."""
        return self._attributes.values()

    def _text(self, name: str) -> str | None:
        text: str | None = self._attributes.get(name)
        return text

    # --- data -----------------------------------------------------------------------------------

    @property
    def has_data(self) -> bool:
        """Returns True if the event has data; empty data and a JSON null are data."""
        return self._data is not None and self._data is not event_data.EMPTY_VALUE

    @property
    def data(self) -> Any:
        """Returns the data: bytes, str, a JSON value, `JSON_NULL`, or None for no data.

        A JSON value is a new object at each call, so the caller may change it.
        """
        return event_data.public(self._data)

    def data_bytes(self) -> bytes | None:
        """Returns the data as the bytes of a payload; None for no data.

        Raises CloudEventError if the charset of the datacontenttype is unknown or cannot encode the
        text, and if the data is a JSON value but the datacontenttype is not JSON. Also raises
        CloudEventError for a string in a document of a version before 0.3, because the string may
        be text or Base64.
        """
        return event_data.as_bytes(self._data, self.datacontenttype)

    def json(self) -> Any:
        """Returns the data as a JSON value, parsed from bytes or str; an explicit null is None.

        Raises CloudEventError if there is no data, or if the data cannot be decoded or is not JSON.
        Also raises CloudEventError for a string in a document of a version before 0.3, because the
        string may be text or Base64.
        """
        return event_data.json_value(self._data, self.datacontenttype)

    # --- the event as a value -------------------------------------------------------------------

    def replace(
        self,
        attributes: Mapping[str, AttributeInput] | None = None,
        /,
        *,
        data: Any = _UNCHANGED,
        **named: AttributeInput,
    ) -> CloudEvent:
        """Returns a new event with changed attributes (None unsets one) and, if passed, new data.

        The new event does not keep the record or document of this event, so the new event is
        encoded again. If this event has no data because its record has an empty value
        (`Profile.empty_is_no_data`), the new event is also written with an empty value, unless the
        caller passes `data=None`. Raises CloudEventError as the constructor does.
        """
        changed = _merged_attributes(self._attributes, attributes, named)
        if isinstance(data, _Unchanged):
            data = self._data_in(changed, self._version)
        if self._version is V1_0_EVENT_GRID and version_of_read(V1_0, changed) is self._version:
            return _with_event_grid_schema(changed, data)
        return CloudEvent(changed, data=data)

    def to_version(
        self, label: str, *, drop: Collection[str] = (), rename: Mapping[str, str] | None = None
    ) -> CloudEvent:
        """Returns the event in the CloudEvents version `label`; this event if it has that version.

        Renames the attributes that have another name in the version, and keeps extensions. `drop`
        are the names of attributes to leave out. `rename` maps names of attributes to new names.
        `drop` and `rename` are ignored if the event has the version `label` already.

        Raises CloudEventError if the version cannot carry an attribute or the data; the error lists
        everything that the version cannot carry. Also raises CloudEventError if `drop` is a str or
        has a required attribute. Raises UnknownVersionError for an unknown version.
        """
        target = spec_version(label)
        if target is self._version:
            return self
        attributes, reasons = attributes_in(
            target, self._attributes, self._version, drop=drop, rename=rename or {}
        )
        if isinstance(self._data, event_data.TextOrBase64) and target.marks_binary:
            reasons.append(f"data ({event_data.unmarked_error().reason})")
        if reasons:
            raise CloudEventError(
                f"version {label} cannot carry {'; '.join(reasons)}: replace, rename or drop it",
                clauses=(target.clause(target.name_section),),
            )
        return CloudEvent(attributes, data=self._data_in(attributes, target))

    def _data_in(self, attributes: Mapping[str, AttributeInput], version: SpecVersion) -> Any:
        """Returns the data of this event, adapted to an event with other `attributes`.

        JSON data keeps its text if the new datacontenttype is JSON or unset. Otherwise JSON data
        becomes its Python value.
        """
        current = self._data
        if not isinstance(current, event_data.JsonText):
            return current
        content_type = attributes.get(version.content_type)
        if content_type is None or event_data.declares_json(canonical(content_type)):
            return current
        return self.data

    def to_kafka_record(self, mode: Any = None, **options: Any) -> Any:
        """Returns the `KafkaRecord` of `to_kafka(event, mode, **options)`.

        A producer that sends an object calls this method, and no other method of the object.
        """
        return self._to_kafka(mode, **options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CloudEvent):
            return NotImplemented
        return _same_attributes(self, other) and (
            event_data.equal(self._data, other._data, self.datacontenttype)
        )

    def __hash__(self) -> int:
        return hash((self.source, self.id))

    def __repr__(self) -> str:
        shown = [f"{name}={quoted(canonical(value))}" for name, value in self._attributes.items()]
        shown.append(f"data={event_data.describe(self._data)}")
        return f"CloudEvent({', '.join(shown)})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_event, (self._attributes, self._data, self._document, self._message)


def _merged_attributes(
    current: Mapping[str, AttributeInput],
    attributes: Mapping[str, AttributeInput] | None,
    named: Mapping[str, AttributeInput],
) -> dict[str, AttributeInput]:
    """Merges attributes: `attributes` override `current`, and `named` override both of these."""
    if attributes is None:
        return {**current, **named}
    # An event has data too, which `**` would drop: the caller must pass `dict(event)`.
    if attributes.__class__ is not dict and hasattr(attributes, "to_kafka_record"):
        raise _no_mapping_error(attributes)
    try:
        return {**current, **attributes, **named}
    except TypeError as error:
        raise _no_mapping_error(attributes) from error


def _no_mapping_error(attributes: object) -> CloudEventError:
    return CloudEventError(
        f"attributes are a mapping of names to values, not {type(attributes).__name__}"
    )


def no_event_error(value: object) -> CloudEventError:
    """Returns the error for an object that is not a CloudEvent, such as a `NotAnEvent`."""
    return CloudEventError(f"a CloudEvent is required, not {type(value).__name__}")


def _declared_as_base64(data: Any, version: SpecVersion) -> bytes:
    """Returns the data of an event that declares Base64: decodes a str, returns bytes unchanged."""
    if isinstance(data, str):
        return event_data.from_base64(data, where="data")
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise CloudEventError(
        f"{version.data_encoding} declares Base64: pass bytes, or unset the attribute",
        where="data",
        clauses=(version.clause(version.data_encoding or ""),),
    )


def _version_of(attributes: Mapping[str, AttributeInput]) -> SpecVersion:
    attribute = version_attribute(attributes)
    if attribute is None:
        return V1_0
    return named_version(attribute, canonical(attributes[attribute]), where=attribute)


def _closely_checked(name: str, value: AttributeInput, version: SpecVersion) -> AttributeValue:
    return version.checked_value(name, value)


def _same_attributes(one: CloudEvent, other: CloudEvent) -> bool:
    # Compare canonical strings, because True equals 1 in Python.
    texts, others = _canonical_of(one._attributes), _canonical_of(other._attributes)
    if texts == others:
        return True
    version = one._version
    if (version.label, version.title) != (other._version.label, other._version.title):
        return False
    if version.data_encoding is not None and one.has_data and other.has_data:
        for each in (texts, others):
            each.pop(version.data_encoding, None)
    return texts.keys() == others.keys() and all(
        text == others[name] or _same_value(name, text, others[name], version)
        for name, text in texts.items()
    )


def _same_value(name: str, text: str, other: str, version: SpecVersion) -> bool:
    """Returns True if two different strings are the same value of an attribute.

    Only times and Maps have several spellings. A header does not show that an extension is a Map.
    In the versions that have Maps, any JSON object therefore counts as a Map.
    """
    spec = version.attributes.get(name)
    if spec is None:
        return version.has_maps and same_map(text, other)
    if spec.type is MAP:
        return same_map(text, other)
    return spec.type is TIMESTAMP and same_time(text, other)


def _canonical_of(attributes: Mapping[str, AttributeValue]) -> dict[str, str]:
    return {
        name: value if type(value) is str else canonical(value)
        for name, value in attributes.items()
    }


def _rebuild_event(
    attributes: dict[str, AttributeValue],
    data: Data,
    document: bytes | None,
    message: object | None,
) -> CloudEvent:
    """Rebuilds a pickled event."""
    version = version_of_read(_version_of(attributes), attributes)
    return CloudEvent._decoded(version, attributes, data, document, message)


def _with_event_grid_schema(attributes: Mapping[str, AttributeInput], data: Any) -> CloudEvent:
    """Returns a new event with the dataschema "#", which the constructor refuses."""
    name = V1_0.data_schema
    event = CloudEvent({**attributes, name: None}, data=data)
    checked = event._attributes
    event._attributes = {
        each: attributes[name] if each == name else checked[each]
        for each in attributes
        if each == name or each in checked
    }
    event._version = V1_0_EVENT_GRID
    return event
