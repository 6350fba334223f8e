"""Lazy reading: an access to an attribute of an event in binary mode reads that attribute only.

This saves time if a consumer reads the type of every event and processes few of them. An attribute
that is not accessed is not checked; `event()` reads and checks the whole event. Rules and errors
are those of `from_kafka`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import CloudEventError, UnknownVersionError
from ..event.cloud_event import CloudEvent
from ..protocol_binding import DEFAULT, Mode, Profile
from ..values.types import Timestamp
from ..versions.spec_version import SpecVersion
from .content_mode import FORMAT_NAMES, format_name
from .headers import (
    CONTENT_TYPE,
    CURRENT_HEADER,
    CURRENT_VERSIONS,
    attribute_names,
    binary_version,
    event_grid_version,
    has_attribute,
    headers_by_name,
    read_attribute,
)
from .origin import UnreadEvent
from .outcomes import NotAnEvent, OpaqueEvent
from .reading import from_kafka
from .record import Header, KafkaRecord, check_shape

__all__ = ["LazyEvent", "lazy_from_kafka"]


class LazyEvent(UnreadEvent):
    """An event in a record of binary mode; each access reads and checks one attribute."""

    __slots__ = ("_profile", "_table", "_version", "headers", "key", "value")

    #: The key of the record; None is a null key.
    key: bytes | None
    #: The value of the record; None is a null value.
    value: bytes | None
    #: The headers of the record.
    headers: tuple[Header, ...]
    _profile: Profile
    _table: Mapping[str, bytes | None]
    _version: SpecVersion

    def get(self, name: str, default: str | None = None) -> str | None:
        """Returns the attribute `name`, or `default` if it is unset.

        Raises CloudEventError if the attribute is invalid.
        """
        try:
            text = read_attribute(self._table, self._version, name)
        except (TypeError, AttributeError):
            check_shape(self.key, self.value, self.headers)
            raise
        return default if text is None else text

    def __getitem__(self, name: str) -> str:
        """Returns an attribute. Raises CloudEventError if invalid, KeyError if unset."""
        text = self.get(name)
        if text is None:
            raise KeyError(name)
        return text

    def __contains__(self, name: object) -> bool:
        """Returns True if an attribute is set; does not read its value."""
        return has_attribute(self._table, self._version, name)

    def __iter__(self) -> Iterator[str]:
        """Yields the names of the set attributes, in the order of `keys`.

        Raises the errors of `keys`.
        """
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def keys(self) -> tuple[str, ...]:
        """Returns the names of the set attributes, in the event's order.

        Raises CloudEventError for an invalid name, but does not check values.
        """
        try:
            return attribute_names(self._table, self._version)
        except (TypeError, AttributeError):
            check_shape(self.key, self.value, self.headers)
            raise

    def items(self) -> tuple[tuple[str, str], ...]:
        """Returns the attributes that are set, as pairs.

        Raises CloudEventError if an attribute is invalid.
        """
        return tuple((name, self[name]) for name in self.keys())

    def values(self) -> tuple[str, ...]:
        """Returns the values of the attributes that are set, in the order of `keys`.

        Raises CloudEventError if an attribute is invalid.
        """
        return tuple(self[name] for name in self.keys())

    @property
    def specversion(self) -> str:
        """Returns the version of CloudEvents that the event uses."""
        return self._version.label

    @property
    def id(self) -> str:
        """Returns the id within the source. Raises CloudEventError if it is missing or invalid."""
        return self._required(self._version.id)

    @property
    def source(self) -> str:
        """Returns the source. Raises CloudEventError if it is missing or invalid."""
        return self._required(self._version.source)

    @property
    def type(self) -> str:
        """Returns the type. Raises CloudEventError if it is missing or invalid."""
        return self._required(self._version.type)

    @property
    def subject(self) -> str | None:
        """Returns the subject; None if unset. Raises CloudEventError if it is invalid."""
        name = self._version.subject
        return None if name is None else self.get(name)

    @property
    def time(self) -> Timestamp | None:
        """Returns the time as it was written (RFC 3339); None if unset. See `CloudEvent.time`.

        Raises CloudEventError if the time is invalid.
        """
        text = self.get(self._version.time)
        return None if text is None else Timestamp(text)

    @property
    def datacontenttype(self) -> str | None:
        """Returns the media type of the data; None if unset.

        Raises CloudEventError if the media type is invalid.
        """
        return self.get(self._version.content_type)

    @property
    def data(self) -> bytes | None:
        """Returns the value of the record, which is the data; None if there is no data."""
        if self._profile.empty_is_no_data and self.value == b"":
            return None
        return self.value

    @property
    def mode(self) -> Mode:
        """Returns the content mode: "binary", because structured events are never lazy."""
        return "binary"

    def event(self) -> CloudEvent:
        """Reads and returns the whole event. Raises CloudEventError if the event breaks a rule."""
        event = from_kafka(self.key, self.value, self.headers, profile=self._profile)
        if isinstance(event, CloudEvent):
            return event
        raise AssertionError("the version and the mode have been read already")

    def record(self) -> KafkaRecord:
        """Returns the record, to forward it unchanged."""
        return KafkaRecord(self.key, self.value, self.headers)

    def to_kafka_record(self, mode: Any = None, **options: Any) -> Any:
        """Returns the record that `to_kafka` writes for the whole event.

        Raises CloudEventError if the event is invalid. To forward the record unchecked, use
        `record`.
        """
        return self.event().to_kafka_record(mode, **options)

    def _required(self, name: str) -> str:
        try:
            text = read_attribute(self._table, self._version, name)
        except (TypeError, AttributeError):
            check_shape(self.key, self.value, self.headers)
            raise
        if text is None:
            raise self._version.missing_error(f"ce_{name}", ("Kafka binding 3.2.3",))
        return text

    def __reduce__(self) -> tuple[object, ...]:
        """Makes pickle and copy keep the record, from which the copy reads its attributes."""
        return _lazy, (self.key, self.value, self.headers, self._profile)

    def __repr__(self) -> str:
        return f"LazyEvent({self.record()!r})"


def _lazy(
    key: bytes | None, value: bytes | None, headers: Sequence[Header], profile: Profile
) -> object:
    return lazy_from_kafka(key, value, headers, profile=profile)


def lazy_from_kafka(
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header] | None = (),
    *,
    profile: Profile = DEFAULT,
) -> LazyEvent | CloudEvent | OpaqueEvent | NotAnEvent:
    """Reads a record; an event in binary mode becomes a `LazyEvent` with unread attributes.

    Reads a record of structured mode as a whole. Results and errors are those of `from_kafka`,
    except for two errors of a `LazyEvent`. The error for an invalid attribute is raised only when
    the attribute is read. The error for a missing required attribute is raised only when its
    property is read. `event()` raises both errors.
    """
    if (value.__class__ is not bytes and value is not None) or (
        key.__class__ is not bytes and key is not None
    ):
        check_shape(key, value, headers)  # accepts subclasses of bytes
    try:
        header_pairs = () if headers is None else tuple(headers)
        table = dict(header_pairs)
        if len(table) != len(header_pairs) or profile.any_case_headers:
            table = headers_by_name(header_pairs, profile)
        content_type = table.get(CONTENT_TYPE)
        name = FORMAT_NAMES.get(content_type)
        if name is None:
            name = format_name(content_type, None)
        if name:
            version = None
        else:
            # Look up the current versions first, which saves a call.
            version = CURRENT_VERSIONS.get(table.get(CURRENT_HEADER)) or binary_version(table)
    except UnknownVersionError:
        return from_kafka(key, value, headers, profile=profile)
    except CloudEventError:
        raise
    except (TypeError, ValueError, AttributeError):
        check_shape(key, value, headers)
        raise
    if version is None:
        # Structured mode, or no event: read the whole record.
        return from_kafka(key, value, headers, profile=profile)
    if profile.event_grid_dataschema:
        version = event_grid_version(table, version)
    event = LazyEvent.__new__(LazyEvent)
    event.key = key
    event.value = value
    event.headers = header_pairs
    event._table = table
    event._version = version
    event._profile = profile
    return event
