"""Reads an event from a Kafka record.

Decides whether a record is an event, an opaque event or no event. `content_mode` finds the mode,
`headers` reads the attributes, and `formats` reads documents. An event keeps its record (`origin`),
so that the record can be written again byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeGuard

from ..errors import CloudEventError, OpaqueReason, UnknownFormatError, UnknownVersionError
from ..event.cloud_event import CloudEvent
from ..event.data import EMPTY_VALUE, EmptyValue
from ..formats.json_format import from_json_with_content_type, names_version
from ..formats.registry import JSON_FORMAT
from ..protocol_binding import DEFAULT, Mode, Profile, read_structured
from ..versions.version_tables import V1_0
from .content_mode import FORMAT_NAMES, KAFKA, format_name
from .headers import (
    CONTENT_TYPE,
    CURRENT_HEADER,
    CURRENT_VERSIONS,
    binary_version,
    event_grid_version,
    has_event_header,
    headers_by_name,
    missing_version_error,
    read_attribute,
    read_headers,
)
from .origin import StructuredOrigin
from .outcomes import InvalidEvent, NotAnEvent, OpaqueEvent, invalid_event
from .record import Header, KafkaRecord, check_shape

__all__ = ["from_kafka", "from_kafka_many"]


def from_kafka(
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header] | None = (),
    *,
    mode: Mode | None = None,
    profile: Profile = DEFAULT,
) -> CloudEvent | OpaqueEvent | NotAnEvent:
    """Reads a Kafka record.

    The `content-type` header decides the content mode (Kafka binding 3): the media type of an event
    format means structured mode; any other value means binary mode. `mode` overrides the header,
    and is needed for records of message format 0 and 1, which have no headers: `mode="structured"`
    then reads the value as JSON. None for `headers` means no headers.

    Returns the event, `OpaqueEvent` for an unknown event format or specversion (an error if
    `profile.refuse_unknown` is set), or `NotAnEvent` for a record without a `ce_` header and
    without the content type of an event format. A record with `ce_` headers and a null value is an
    event without data.

    Raises CloudEventError for a record that claims to be an event but breaks a rule, and for a key,
    value or headers of the wrong Python type. If `mode` is set, every record claims to be an event,
    except a record with a null value and with neither a `ce_` header nor a `content-type`.
    """
    header_pairs: tuple[Header, ...] = ()
    try:
        # Checks the exact type first, which saves a call.
        data: bytes | EmptyValue | None = value
        if type(value) is not bytes and not (value is None or isinstance(value, bytes)):
            raise TypeError
        if key is not None and not isinstance(key, bytes):
            raise TypeError
        if headers is not None:
            header_pairs = tuple(headers)
        table = dict(header_pairs)
        if len(table) != len(header_pairs) or (profile is not DEFAULT and profile.any_case_headers):
            table = headers_by_name(header_pairs, profile)
        content_type = table.get(CONTENT_TYPE)
        if value is None and content_type is None and not has_event_header(table):
            # A tombstone, even if the topic's events are in structured mode.
            return NotAnEvent(KafkaRecord(key, value, header_pairs), _why_not(content_type))
        name = FORMAT_NAMES.get(content_type) if mode is None else None
        if name is None:
            name = format_name(content_type, mode)
        if name:
            event, event_format = read_structured(
                value, name, KAFKA, event_grid_dataschema=profile.event_grid_dataschema
            )
            # The constructors inlined, in two thirds of their time: this runs for every record.
            record = _new_tuple(KafkaRecord, (key, value, header_pairs))
            event._message = _new_tuple(StructuredOrigin, (record, event_format))
            return event
        version = CURRENT_VERSIONS.get(table.get(CURRENT_HEADER)) or binary_version(table)
        if version is not None:
            if profile is not DEFAULT:
                if profile.event_grid_dataschema:
                    version = event_grid_version(table, version)
                data = EMPTY_VALUE if profile.empty_is_no_data and value == b"" else value
            attributes = read_headers(table, version)
            # `_decoded` inlined, in half its time.
            event = _new_event(CloudEvent)
            event._version = version
            event._attributes = attributes
            event._data = data
            event._document = None
            event._message = (key, header_pairs)
            return event
        if profile.json_events and mode is None and _is_an_event(value, table):
            # All versions check the datacontenttype alike, so V1_0 serves for any document.
            type_of_data = read_attribute(table, V1_0, V1_0.content_type)
            event = from_json_with_content_type(
                value, type_of_data, event_grid_dataschema=profile.event_grid_dataschema
            )
            event._message = StructuredOrigin(KafkaRecord(key, value, header_pairs), JSON_FORMAT)
            return event
        if mode is not None or has_event_header(table):
            raise missing_version_error()
        return NotAnEvent(KafkaRecord(key, value, header_pairs), _why_not(content_type))
    except (UnknownVersionError, UnknownFormatError) as error:
        if profile.refuse_unknown:
            raise
        return OpaqueEvent(KafkaRecord(key, value, header_pairs), OpaqueReason.of(error))
    except CloudEventError:
        raise
    except (TypeError, ValueError, AttributeError):
        check_shape(key, value, headers)
        raise


def from_kafka_many(
    records: Iterable[tuple[bytes | None, bytes | None, Sequence[Header] | None]],
    *,
    mode: Mode | None = None,
    profile: Profile = DEFAULT,
) -> list[CloudEvent | OpaqueEvent | NotAnEvent | InvalidEvent]:
    """Reads many records, each `(key, value, headers)`, in their order.

    Works like `from_kafka`, except that a record for which `from_kafka` raises CloudEventError
    becomes an `InvalidEvent`. The records after an `InvalidEvent` are still read.
    """
    read: list[CloudEvent | OpaqueEvent | NotAnEvent | InvalidEvent] = []
    for key, value, headers in records:
        try:
            read.append(from_kafka(key, value, headers, mode=mode, profile=profile))
        except CloudEventError as error:
            read.append(invalid_event(key, value, headers, error))
    return read


_new_event: Final = object.__new__
_new_tuple: Final = tuple.__new__


def _is_an_event(value: bytes | None, table: Mapping[str, bytes | None]) -> TypeGuard[bytes]:
    """Returns True if the record has no `ce_` header, and its value is JSON with a specversion."""
    return value is not None and not has_event_header(table) and names_version(value)


def _why_not(content_type: bytes | None) -> str:
    if content_type is None:
        return "no ce_ header and no content-type header"
    return "no ce_ header, and the content-type is no event format"
