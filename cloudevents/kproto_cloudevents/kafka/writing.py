"""Writes an event, or another result of reading, as a Kafka record.

Decides on the content mode, the key and the headers. `headers` writes attributes as headers,
`formats` writes documents. If an event was read from a record, its `origin` has that record, which
is written again byte for byte.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..errors import CloudEventError, shown
from ..event.cloud_event import CloudEvent
from ..event.data import as_payload
from ..formats.registry import JSON_FORMAT, EventFormat, event_media_type
from ..protocol_binding import (
    Mode,
    forward_only_error,
    mode_error,
    unwritable_error,
)
from ..values.media_type import CLOUDEVENTS_JSON
from ..values.types import canonical, utf8
from .content_mode import KAFKA, format_name
from .headers import CONTENT_TYPE, is_event_header, write_headers
from .origin import StructuredOrigin, UnreadEvent
from .record import ForwardOnly, Header, KafkaRecord, shape_fault

__all__ = ["KeyMapper", "partition_key", "to_kafka", "to_kafka_record"]

#: Returns the key of the record to write for an event. If the function returns None, the new record
#: gets the key of the record that the event was read from.
KeyMapper = Callable[[CloudEvent], bytes | None]

_KEY: Final = ("Kafka binding 3.1",)
_BINARY_HEADERS: Final = ("Kafka binding 3.2.3",)
_OLD_KAFKA: Final = ("Kafka binding 1.3",)


class _KeyOfRecord(enum.Enum):
    """The type of the default value of the argument `key` of `to_kafka`.

    The default stands for the key of the record from which the event was read, or for a null key if
    there is no such record.
    """

    KEY = "of the record"


_FROM_RECORD: Final = _KeyOfRecord.KEY


def to_kafka(
    event: CloudEvent | UnreadEvent | ForwardOnly,
    mode: Mode | None = None,
    *,
    key: bytes | _KeyOfRecord | None = _FROM_RECORD,
    key_mapper: KeyMapper | None = None,
    headers: Sequence[Header] = (),
    event_format: EventFormat | None = None,
    repeat_attributes: bool = False,
    message_format: int = 2,
) -> KafkaRecord:
    """Writes an event as a Kafka record.

    An event that was read from a record of the same content mode becomes that record again, byte
    for byte. An `OpaqueEvent` or `NotAnEvent` also becomes its record again. A `LazyEvent` is first
    read as a whole. Any newly written record has the event headers first, in the order of the
    attributes. Then come the headers of the original record that are not event headers. In every
    record, the caller's `headers` come last. The default `mode` is the mode in which the event was
    read, or binary if it was not read.

    The key is `key`, or the result of `key_mapper` (`partition_key` uses the partitioning
    extension). If `key` and `key_mapper` are missing, or `key_mapper` returns None, the key is that
    of the original record, or null if there is no original record.

    `event_format` applies to structured mode; the default is the format in which the event was
    read, or JSON. `repeat_attributes` adds the `ce_` headers of binary mode to a structured event
    (Kafka binding 3.3.3).

    `message_format` is the magic of the batch. Records of formats 0 and 1 have no headers. In these
    formats, an event must be in structured mode (Kafka binding 1.3) and JSON, which are then the
    defaults, without other headers. A reader of the record must pass `mode="structured"`, or a
    profile with `json_events`. An `OpaqueEvent` or `NotAnEvent` must have no headers, except the
    content type of a JSON event.

    Raises CloudEventError if the event cannot be written as requested. In binary mode, also raises
    CloudEventError if the datacontenttype is an event format or a batch, because readers would take
    the record for structured mode or a batch.
    """
    written: Sequence[Header]
    if message_format != 2 and isinstance(event, CloudEvent):
        mode = mode or "structured"
        event_format = event_format or JSON_FORMAT
    if not isinstance(event, CloudEvent):
        if isinstance(event, UnreadEvent):
            return to_kafka(
                event.event(),
                mode,
                key=key,
                key_mapper=key_mapper,
                headers=headers,
                event_format=event_format,
                repeat_attributes=repeat_attributes,
                message_format=message_format,
            )
        if not isinstance(event, ForwardOnly):
            raise unwritable_error(event, KAFKA)
        if mode is not None or event_format is not None or key_mapper is not None:
            raise forward_only_error(event.reason, KAFKA)
        from_key, value, written = event.record
    elif event._message is None and (mode == "binary" or mode is None) and key_mapper is None:
        # A new event in binary mode, the most frequent call: inlined, in two thirds of the time.
        data = event._data
        from_key = None
        value = data if type(data) is bytes else as_payload(data, event.datacontenttype)
        written = write_headers(event)
    else:
        from_key, value, written = _parts(event, mode, event_format, repeat_attributes)
        if key_mapper is not None:
            if key is not _FROM_RECORD:
                raise CloudEventError("pass key or key_mapper, not both", clauses=_KEY)
            found = key_mapper(event)
            key = _FROM_RECORD if found is None else found
    if key is _FROM_RECORD:
        key = from_key
    elif not (key is None or isinstance(key, bytes)):
        raise CloudEventError(
            f"the key of a record is bytes or None, not {type(key).__name__}", clauses=_KEY
        )
    if headers:
        written = (*written, *_extra_headers(headers))
    if message_format != 2:
        _check_without_headers(event, written, message_format)
        written = ()
    # KafkaRecord(…) inlined, in half its time: this runs for every event.
    return _new_tuple(KafkaRecord, (key, value, tuple(written)))


_new_tuple: Final = tuple.__new__


def partition_key(event: CloudEvent) -> bytes | None:
    """Returns the event's `partitionkey` (partitioning extension) as a record key, in UTF-8.

    Returns None if the attribute is unset (Kafka binding 3.1). The event keeps the attribute.
    """
    value = event.get("partitionkey")
    if value is None:
        value = event.extensions.get("partitionkey")  # in 0.1 an entry of the map `extensions`
    return None if value is None else utf8(canonical(value), where="partitionkey", clauses=_KEY)


def to_kafka_record(outcome: ForwardOnly, mode: Any = None, **options: Any) -> Any:
    """Implements `to_kafka_record` of `OpaqueEvent` and `NotAnEvent`: returns their record."""
    return to_kafka(outcome, mode, **options)


def _parts(
    event: CloudEvent,
    mode: Mode | None,
    event_format: EventFormat | None,
    repeat_attributes: bool,
) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
    """Returns the key, value and headers to write.

    The key is that of the record that the event was read from, or None if there is no such record.
    """
    message = event._message
    structured = message if type(message) is StructuredOrigin else None
    if mode is None:
        mode = "binary" if structured is None else "structured"
    if mode == "binary":
        if type(message) is tuple:
            key, headers = message
            return key, as_payload(event._data, event.datacontenttype), headers
        value = as_payload(event._data, event.datacontenttype)
        written = write_headers(event)
    elif mode == "structured":
        if (
            structured is not None
            and event_format in (None, structured.event_format)
            and not repeat_attributes
        ):
            return structured.record
        read_in = None if structured is None else structured.event_format
        chosen = event_format or read_in or JSON_FORMAT
        written = [_JSON_HEADER if chosen is JSON_FORMAT else _format_header(chosen)]
        value = chosen.write(event)
        if repeat_attributes:
            repeated = write_headers(event, repeated=True)
            written += [header for header in repeated if header[0] != CONTENT_TYPE]
    else:
        raise mode_error(mode, KAFKA)
    if structured is not None:
        key, _, headers = structured.record
    elif type(message) is tuple:
        key, headers = message
    else:
        return None, value, tuple(written)
    # In the other mode, keep the headers that no reader takes for event headers.
    written += [header for header in headers if not is_event_header(header[0].lower())]
    return key, value, tuple(written)


def _format_header(event_format: EventFormat) -> tuple[str, bytes]:
    return CONTENT_TYPE, event_media_type(event_format).encode()


#: The header of the JSON format, whose media type needs no check.
_JSON_HEADER: Final = _format_header(JSON_FORMAT)


def _extra_headers(headers: Sequence[Header]) -> Sequence[Header]:
    fault = shape_fault(None, None, headers)
    if fault is not None:
        raise CloudEventError(fault, clauses=_BINARY_HEADERS)
    for name, _ in headers:
        if is_event_header(name.lower()):
            raise CloudEventError(
                "the header belongs to the event: set the attribute instead",
                where=shown(name),
                clauses=_BINARY_HEADERS,
            )
    return headers


def _check_without_headers(
    event: CloudEvent | ForwardOnly, headers: Sequence[Header], message_format: int
) -> None:
    """Checks that the record can be written without headers and without loss of information.

    Raises CloudEventError if the check fails, and for an unknown message format.
    """
    if message_format not in (0, 1):
        raise CloudEventError(
            f"message_format is 0, 1 or 2, not {message_format!r}", clauses=_OLD_KAFKA
        )
    if not headers and not isinstance(event, CloudEvent):
        return
    # An event that was read without headers has been read as JSON.
    name = format_name(dict(headers).get(CONTENT_TYPE), None) if headers else CLOUDEVENTS_JSON
    if name != CLOUDEVENTS_JSON:
        raise CloudEventError(
            f"message format {message_format} has no headers: write structured mode in JSON",
            clauses=_OLD_KAFKA,
        )
    lost = [name for name, _ in headers if name != CONTENT_TYPE]
    if lost:
        raise CloudEventError(
            f"message format {message_format} has no headers: {len(lost)} would be lost",
            where=shown(lost[0]),
            clauses=_OLD_KAFKA,
        )
