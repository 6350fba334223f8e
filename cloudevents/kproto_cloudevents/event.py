"""The event: attributes in their order, and data. Immutable.

An event holds what was written: an attribute read from a header is its text, one read from JSON
keeps its type. Nothing is invented: id and time are never made up. The module knows no header and
no event format; what an event was read from is kept for the binding that read it, so that an
event can be written back byte for byte.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from . import data as event_data
from .data import Data
from .errors import CloudEventError, quoted
from .types import AttributeInput, AttributeValue, Timestamp, canonical, native, type_of
from .versions import V1_0, SpecVersion, spec_version

__all__ = ["CloudEvent"]


class _Keep:
    """The type of the mark that says: leave the data as it is."""


_KEEP: Final = _Keep()


class CloudEvent:
    """One CloudEvent.

        CloudEvent(id="1", source="/shop", type="order.placed", data={"total": 12})
        CloudEvent({"id": "1", "source": "/shop", "type": "order.placed"}, data=b"…")

    Attributes come from the mapping, then from the keywords, in that order; None is unset.
    `specversion` is "1.0" unless given. A datetime becomes an RFC 3339 text. Data is bytes, str, a
    JSON value, `JSON_NULL` for an explicit null, or None for no data; a JSON value is taken as it
    is now, later changes to the object do not reach the event.

    Raises CloudEventError for every breach of the version's rules.

    Two events are equal when they have the same attributes, whatever their order and whether a
    value is native or its canonical string, and the same data.
    """

    __slots__ = ("_attributes", "_data", "_document", "_message", "_version")

    # Values are AttributeValue; Any, because a checker cannot know that `id` is a str.
    _attributes: dict[str, Any]
    _data: Data
    #: The bytes of the event format this was read from, or None.
    _document: bytes | None
    #: The message of a binding this was read from, or None; only that binding looks into it.
    _message: object | None
    _version: SpecVersion

    def __init__(
        self,
        attributes: Mapping[str, AttributeInput] | None = None,
        /,
        *,
        data: Any = None,
        **named: AttributeInput,
    ) -> None:
        given = {**(attributes or {}), **named}
        version = _version_of(given)
        self._version = version
        self._attributes = _checked(given, version)
        if isinstance(data, str) and version.data_encoding in self._attributes:
            data = event_data.from_base64(data, where="data")
        self._data = event_data.from_value(data, self.datacontenttype)
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
        """An event whose attributes and data a decoder has checked already."""
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
        """The version of CloudEvents that the event uses."""
        return self._version.label

    @property
    def id(self) -> str:
        """Identifies the event within its source."""
        text: str = self._attributes[self._version.id]
        return text

    @property
    def source(self) -> str:
        """Where the event happened, a URI-reference."""
        text: str = self._attributes[self._version.source]
        return text

    @property
    def type(self) -> str:
        """What kind of event it is."""
        text: str = self._attributes[self._version.type]
        return text

    @property
    def subject(self) -> str | None:
        """What within the source the event is about."""
        name = self._version.subject
        return None if name is None else self._text(name)

    @property
    def time(self) -> Timestamp | None:
        """When it happened, the RFC 3339 text as written; `event.time.datetime` is a datetime."""
        text = self._text(self._version.time)
        return None if text is None else Timestamp(text)

    @property
    def datacontenttype(self) -> str | None:
        """The media type of the data."""
        return self._text(self._version.content_type)

    @property
    def dataschema(self) -> str | None:
        """The URI of the schema of the data."""
        return self._text(self._version.data_schema)

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Every attribute that is set, in order; a read-only view."""
        return MappingProxyType(self._attributes)

    @property
    def extensions(self) -> Mapping[str, AttributeValue]:
        """The attributes that the version does not define, in order; a read-only copy."""
        core = self._version.attributes
        return MappingProxyType(
            {name: value for name, value in self._attributes.items() if name not in core}
        )

    def get(self, name: str, default: AttributeValue | None = None) -> AttributeValue | None:
        """The value of an attribute, or the default when it is unset."""
        value: AttributeValue | None = self._attributes.get(name, default)
        return value

    def __getitem__(self, name: str) -> AttributeValue:
        value: AttributeValue = self._attributes[name]
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def _text(self, name: str) -> str | None:
        text: str | None = self._attributes.get(name)
        return text

    # --- data -----------------------------------------------------------------------------------

    @property
    def has_data(self) -> bool:
        """True when there is data, be it empty or a JSON null."""
        return self._data is not None

    @property
    def data(self) -> Any:
        """The data: bytes, str, a JSON value, `JSON_NULL`, or None when there is none.

        A JSON value is a new object at each call: keep it, and change it as you like.
        """
        return event_data.public(self._data)

    def data_bytes(self) -> bytes | None:
        """The data as the bytes of a payload; None when there is none.

        Raises CloudEventError when the datacontenttype's charset cannot encode the text.
        """
        return event_data.as_bytes(self._data, self.datacontenttype)

    def json(self) -> Any:
        """The data as a JSON value, bytes and text parsed; an explicit null is None.

        Raises CloudEventError when there is no data or when it is no JSON.
        """
        return event_data.json_value(self._data, self.datacontenttype)

    # --- the event as a value -------------------------------------------------------------------

    def replace(
        self,
        attributes: Mapping[str, AttributeInput] | None = None,
        /,
        *,
        data: Any = _KEEP,
        **named: AttributeInput,
    ) -> CloudEvent:
        """A copy with some attributes changed (None unsets) and, if given, other data.

        The copy is a new event: writing it does not repeat the bytes this one was read from.
        """
        changed = {**self._attributes, **(attributes or {}), **named}
        if isinstance(data, _Keep):
            return CloudEvent(changed, data=self._data_under(changed))
        return CloudEvent(changed, data=data)

    def to_version(self, label: str, *, drop: Collection[str] = ()) -> CloudEvent:
        """The event as another version of CloudEvents has it; the event itself if it is that.

        Attributes that the versions name differently are renamed, the others go along. Raises
        CloudEventError that names every attribute which the version cannot carry, unless it is in
        `drop`, which are the attributes to leave behind; UnknownVersionError for the version.
        """
        target = spec_version(label, where="specversion")
        if target is self._version:
            return self
        attributes, reasons = _carried(self._attributes, self._version, target, drop)
        if reasons:
            raise CloudEventError(
                f"version {label} cannot carry {'; '.join(reasons)}: replace or drop it"
            )
        return CloudEvent(attributes, data=self._data_under(attributes))

    def _data_under(self, attributes: Mapping[str, AttributeInput]) -> Any:
        """This event's data for other attributes: JSON that stays JSON keeps its text."""
        kept = self._data
        if not isinstance(kept, event_data.JsonText):
            return kept
        content_type = attributes.get(self._version.content_type)
        if content_type is None or event_data.declares_json(canonical(content_type)):
            return kept
        return self.data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CloudEvent):
            return NotImplemented
        mine, theirs = self._attributes, other._attributes
        return (mine == theirs or _canonical_of(mine) == _canonical_of(theirs)) and (
            event_data.equal(self._data, other._data, self.datacontenttype)
        )

    def __hash__(self) -> int:
        return hash((self.source, self.id))

    def __repr__(self) -> str:
        shown = [f"{name}={quoted(canonical(value))}" for name, value in self._attributes.items()]
        shown.append(f"data={event_data.describe(self._data)}")
        return f"CloudEvent({', '.join(shown)})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._attributes, self._data, self._document, self._message)


def _version_of(given: Mapping[str, AttributeInput]) -> SpecVersion:
    label = given.get("specversion")
    if label is None:
        return V1_0
    return spec_version(canonical(label), where="specversion")


def _checked(
    given: Mapping[str, AttributeInput], version: SpecVersion
) -> dict[str, AttributeValue]:
    """The attributes as an event holds them, the version first where it was left out."""
    attributes: dict[str, AttributeValue] = {}
    if given.get(version.specversion) is None:
        attributes[version.specversion] = version.label
    specs = version.attributes
    for name, value in given.items():
        spec = specs.get(name) or version.checked_spec(name, name)
        # The usual value is found right at once; the others are looked at closely.
        if type(value) is str and (value in spec.found_right or (value and spec.quick(value))):
            attributes[name] = value
        elif value is not None:
            attributes[name] = _checked_value(name, value, version)
    for name in version.required:
        if name not in attributes:
            raise version.missing_error(name)
    return attributes


def _checked_value(name: str, value: AttributeInput, version: SpecVersion) -> AttributeValue:
    if type(value) is str:
        version.check_text(name, value, where=name)
        return value
    try:
        held = native(value)
    except CloudEventError as error:
        raise CloudEventError(error.reason, where=name, clauses=error.clauses) from None
    if isinstance(held, str) and name in version.attributes:
        version.check_text(name, held, where=name)
        return held
    if isinstance(held, str):
        # A typed text: a time, a URI, a map.
        reason = type_of(held).fault(held)
        if reason is not None:
            raise version.fault_error((reason, type_of(held).name), held, where=name)
    version.check_native(name, held)
    return held


#: What versions may name differently. The encoding of data is not among them: it belongs to the
#: document, and each version's format says it anew.
_ROLES: Final = ("id", "source", "type", "subject", "time", "content_type", "data_schema")


def _carried(
    attributes: Mapping[str, AttributeValue],
    version: SpecVersion,
    target: SpecVersion,
    drop: Collection[str],
) -> tuple[dict[str, AttributeValue], list[str]]:
    """The attributes under another version, and why each of the others cannot be."""
    names = {getattr(version, role): getattr(target, role) for role in _ROLES}
    carried: dict[str, AttributeValue] = {target.specversion: target.label}
    reasons = []
    for name, value in attributes.items():
        if name in (version.specversion, version.data_encoding) or name in drop:
            continue
        extension = name not in version.attributes
        new_name = name if extension else names.get(name)
        if new_name is None or (extension and name in target.attributes):
            reasons.append(f"{name} (it has another meaning, or none, there)")
            continue
        try:
            target.checked_spec(new_name, new_name)
            carried[new_name] = _checked_value(new_name, value, target)
        except CloudEventError as error:
            reasons.append(f"{name} ({error})")
    return carried, reasons


def _canonical_of(attributes: Mapping[str, AttributeValue]) -> dict[str, str]:
    return {name: canonical(value) for name, value in attributes.items()}


def _rebuild(
    attributes: dict[str, AttributeValue],
    data: Data,
    document: bytes | None,
    message: object | None,
) -> CloudEvent:
    """What unpickling calls."""
    return CloudEvent._decoded(_version_of(attributes), attributes, data, document, message)
