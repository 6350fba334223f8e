"""Lazy reading: an event in binary mode of which only the attributes asked for are read.

For consumers that look at the type of every event and take few. What is not asked for is not
checked; `event()` reads and checks the whole. Rules and errors are those of the full reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .errors import CloudEventError, UnknownVersionError
from .event import CloudEvent
from .headers import CONTENT_TYPE, binary_version, by_name, read_attribute
from .kafka import FORMAT_NAMES, format_name, from_kafka, shape_fault
from .record import DEFAULT, Header, KafkaRecord, NotAnEvent, OpaqueEvent, Profile
from .types import Timestamp
from .versions import SpecVersion

__all__ = ["LazyEvent", "lazy_from_kafka"]


class LazyEvent:
    """An event in a record of binary mode; each attribute is read and checked when asked for."""

    __slots__ = ("_key", "_profile", "_table", "_version", "headers", "value")

    #: The value of the record, which is the data; None when there is no data.
    value: bytes | None
    #: The headers of the record.
    headers: tuple[Header, ...]
    _key: bytes | None
    _profile: Profile
    _table: Mapping[str, bytes | None]
    _version: SpecVersion

    def get(self, name: str) -> str | None:
        """The text of an attribute; None when it is unset. Raises CloudEventError."""
        return read_attribute(self._table, self._version, name)

    def __getitem__(self, name: str) -> str:
        """The text of an attribute. Raises CloudEventError, KeyError when it is unset."""
        text = read_attribute(self._table, self._version, name)
        if text is None:
            raise KeyError(name)
        return text

    @property
    def specversion(self) -> str:
        """The version of CloudEvents that the event uses."""
        return self._version.label

    @property
    def id(self) -> str:
        """Identifies the event within its source. Raises CloudEventError when it is missing."""
        return self._required(self._version.id)

    @property
    def source(self) -> str:
        """Where the event happened. Raises CloudEventError when it is missing."""
        return self._required(self._version.source)

    @property
    def type(self) -> str:
        """What kind of event it is. Raises CloudEventError when it is missing."""
        return self._required(self._version.type)

    @property
    def subject(self) -> str | None:
        """What within the source the event is about."""
        name = self._version.subject
        return None if name is None else self.get(name)

    @property
    def time(self) -> Timestamp | None:
        """When it happened, as in `CloudEvent.time`."""
        text = self.get(self._version.time)
        return None if text is None else Timestamp(text)

    @property
    def datacontenttype(self) -> str | None:
        """The media type of the data."""
        return self.get(self._version.content_type)

    def event(self) -> CloudEvent:
        """The whole event, every rule checked. Raises CloudEventError."""
        event = from_kafka(self._key, self.value, self.headers, profile=self._profile)
        if isinstance(event, CloudEvent):
            return event
        raise AssertionError("the version and the mode have been read already")

    def record(self) -> KafkaRecord:
        """The record, to forward it as it is."""
        return KafkaRecord(self._key, self.value, self.headers)

    def _required(self, name: str) -> str:
        text = read_attribute(self._table, self._version, name)
        if text is None:
            raise self._version.missing_error(f"ce_{name}", ("Kafka binding 3.2.3",))
        return text

    def __repr__(self) -> str:
        return f"LazyEvent({self.record()!r})"


def lazy_from_kafka(
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header] | None = (),
    *,
    profile: Profile = DEFAULT,
) -> LazyEvent | CloudEvent | OpaqueEvent | NotAnEvent:
    """Read a record of binary mode only as far as is needed to know that it holds an event.

    A record of structured mode is read as a whole. Outcomes and errors are otherwise those of
    `from_kafka`, except that errors in attributes come when these are asked for.
    """
    try:
        kept = () if headers is None else tuple(headers)
        table = dict(kept)
        if len(table) != len(kept) or profile.any_case_headers:
            table = by_name(kept, profile)
        content_type = table.get(CONTENT_TYPE)
        name = FORMAT_NAMES.get(content_type)
        if name is None:
            name = format_name(content_type, None)
        version = None if name else binary_version(table)
    except UnknownVersionError:
        return from_kafka(key, value, headers, profile=profile)
    except CloudEventError:
        raise
    except (TypeError, ValueError, AttributeError):
        fault = shape_fault(key, value, headers)
        if fault is None:
            raise
        raise CloudEventError(fault) from None
    if version is None:
        # Structured mode, or no event: nothing to be lazy about.
        return from_kafka(key, value, headers, profile=profile)
    event = LazyEvent.__new__(LazyEvent)
    event._key = key
    event.value = value
    event.headers = kept
    event._table = table
    event._version = version
    event._profile = profile
    return event
