"""The Kafka protocol binding 1.0: a record to an event, an event to a record.

A record is plain data: key, value, and headers in their order; a header is `(str, bytes | None)`.
This module decides on mode, key and headers. It knows no socket and no client; what documents
look like is the formats' business, what attributes may be is the versions'.

What is read can be written again byte for byte: the event keeps the record it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from .errors import CloudEventError, UnknownFormatError, UnknownVersionError, quoted
from .event import CloudEvent, no_event_error
from .formats import (
    JSON_FORMAT,
    EventFormat,
    StructuredMode,
    event_media_type,
    read_structured,
)
from .headers import (
    CONTENT_TYPE,
    binary_version,
    by_name,
    has_event_header,
    is_event_header,
    missing_version_error,
    read_headers,
    shown,
    write_headers,
)
from .media_type import parse_media_type
from .record import (
    DEFAULT,
    Header,
    InvalidEvent,
    KafkaRecord,
    KeyMapper,
    Mode,
    NotAnEvent,
    OpaqueEvent,
    Profile,
)
from .types import canonical
from .versions import REMEMBERED_LENGTH, REMEMBERED_VALUES

__all__ = ["from_kafka", "from_kafka_many", "kafka_record", "partition_key", "to_kafka"]

_MODES: Final = ("Kafka binding 3",)
_KEY: Final = ("Kafka binding 3.1",)
_BINARY_HEADERS: Final = ("Kafka binding 3.2.3",)
_OLD_KAFKA: Final = ("Kafka binding 1.3",)
_STRUCTURED: Final = StructuredMode(CONTENT_TYPE, "value", _MODES, ("Kafka binding 3.3.2",))
_JSON_NAME: Final = JSON_FORMAT.media_type


class _StructuredMessage(NamedTuple):
    """What an event read in structured mode remembers.

    One read in binary mode has a plain tuple, which is cheaper: its record's key and headers, and
    the profile; the value is its data.
    """

    record: KafkaRecord
    event_format: EventFormat
    profile: Profile


# --- reading ------------------------------------------------------------------------------------


def from_kafka(
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header] | None = (),
    *,
    mode: Mode | None = None,
    profile: Profile = DEFAULT,
) -> CloudEvent | OpaqueEvent | NotAnEvent:
    """Read a Kafka record.

    The mode follows from the `content-type` header (Kafka binding 3): an event format's media
    type is structured mode, anything else binary. `mode` says it instead, for producers from
    before 0.11, whose messages have no headers: `mode="structured"` then reads the value as JSON.
    headers None is the same as no headers.

    Gives the event; `OpaqueEvent` for an event format or a specversion that is not known here;
    `NotAnEvent` for a record without a trace of CloudEvents. A record whose value is null and
    that has event headers is an event without data. Raises CloudEventError for a record that
    claims to be an event and breaks a rule, and for parts of the wrong Python type.
    """
    try:
        return _read(key, value, () if headers is None else tuple(headers), mode, profile)
    except CloudEventError:
        raise
    except (TypeError, ValueError, AttributeError):
        fault = shape_fault(key, value, headers)
        if fault is None:
            raise
        raise CloudEventError(fault) from None


def from_kafka_many(
    records: Iterable[tuple[bytes | None, bytes | None, Sequence[Header] | None]],
    *,
    mode: Mode | None = None,
    profile: Profile = DEFAULT,
) -> list[CloudEvent | OpaqueEvent | NotAnEvent | InvalidEvent]:
    """Read many records, each `(key, value, headers)`, in their order.

    As `from_kafka`, except that a record which breaks a rule gives `InvalidEvent` in its place,
    and the others are read all the same.
    """
    read: list[CloudEvent | OpaqueEvent | NotAnEvent | InvalidEvent] = []
    for key, value, headers in records:
        try:
            read.append(from_kafka(key, value, headers, mode=mode, profile=profile))
        except CloudEventError as error:
            kept = tuple(headers) if isinstance(headers, Sequence) else ()
            read.append(InvalidEvent(KafkaRecord(key, value, kept), error))
    return read


def _read(
    key: bytes | None,
    value: bytes | None,
    headers: tuple[Header, ...],
    mode: Mode | None,
    profile: Profile,
) -> CloudEvent | OpaqueEvent | NotAnEvent:
    if not (value is None or isinstance(value, bytes)):
        raise TypeError
    if not (key is None or isinstance(key, bytes)):
        raise TypeError
    table = dict(headers)
    if len(table) != len(headers) or profile.any_case_headers:
        table = by_name(headers, profile)
    content_type = table.get(CONTENT_TYPE)
    if value is None and content_type is None and not has_event_header(table):
        # A tombstone, whatever mode the events of the topic are in.
        return NotAnEvent(KafkaRecord(key, value, headers), _why_not(content_type))
    try:
        if mode is not None or FORMAT_NAMES.get(content_type) != "":
            name = format_name(content_type, mode)
            if name:
                event, event_format = read_structured(value, name, _STRUCTURED)
                event._message = _StructuredMessage(
                    KafkaRecord(key, value, headers), event_format, profile
                )
                return event
        version = binary_version(table)
        if version is not None:
            return CloudEvent._decoded(
                version,
                read_headers(table, version),
                value,
                None,
                (key, headers, profile),
            )
    except (UnknownVersionError, UnknownFormatError) as error:
        if profile.refuse_unknown:
            raise
        return OpaqueEvent(KafkaRecord(key, value, headers), str(error))
    if mode is not None or has_event_header(table):
        raise missing_version_error()
    return NotAnEvent(KafkaRecord(key, value, headers), _why_not(content_type))


def shape_fault(key: object, value: object, headers: object) -> str | None:
    """Which part of a record has the wrong Python type; None when every one is right."""
    for name, part in (("key", key), ("value", value)):
        if not (part is None or isinstance(part, bytes)):
            return f"the {name} of a record is bytes or None, not {type(part).__name__}"
    if isinstance(headers, Mapping):
        return (
            "headers are pairs (str, bytes | None) in their order, not a mapping: "
            "a mapping cannot hold a header twice"
        )
    if headers is None:
        return None
    if not isinstance(headers, Sequence):
        return f"headers are a sequence of pairs, not {type(headers).__name__}"
    for index, header in enumerate(headers):
        match header:
            case (str(), bytes() | None):
                continue
            case _:
                return f"header {index} is not a pair (str, bytes | None)"
    return None


def _why_not(content_type: bytes | None) -> str:
    if content_type is None:
        return "no ce_ header and no content-type header"
    return "no ce_ header, and the content-type is no event format"


# --- which mode, which format -------------------------------------------------------------------

#: The event format of the content types met so far, `""` for those of binary mode. None stands
#: for no content type at all.
FORMAT_NAMES: Final[dict[bytes | None, str]] = {None: ""}


def format_name(raw: bytes | None, mode: Mode | None) -> str:
    """The event format that the record is in, `""` for binary mode (Kafka binding 3).

    Raises CloudEventError for a batch, for a charset that a JSON event cannot have, and for a
    mode that is none.
    """
    if mode == "binary":
        return ""
    if mode not in (None, "structured"):
        raise CloudEventError(f"mode is binary or structured, not {mode!r}", clauses=_MODES)
    name = FORMAT_NAMES.get(raw)
    if name is None:
        name = _parsed_format_name(raw or b"")
        if raw is not None and len(raw) <= REMEMBERED_LENGTH:
            if len(FORMAT_NAMES) > REMEMBERED_VALUES:
                FORMAT_NAMES.clear()
                FORMAT_NAMES[None] = ""
            FORMAT_NAMES[raw] = name
    # Told to be structured without an event format's content type, it is JSON.
    return name or ("" if mode is None else _JSON_NAME)


def _parsed_format_name(raw: bytes) -> str:
    try:
        media_type = parse_media_type(raw.decode())
    except UnicodeDecodeError:
        media_type = None
    if media_type is None:
        if _BROKEN_EVENT_TYPE.match(raw):
            raise CloudEventError(
                "an event format's media type is broken (RFC 2046)",
                where=CONTENT_TYPE,
                clauses=("Kafka binding 3.3.1",),
            )
        return ""
    if media_type.is_batch_format:
        raise CloudEventError(
            "a batch of events cannot be one Kafka record: send each event by itself",
            where=CONTENT_TYPE,
            clauses=("Kafka binding 1.3",),
        )
    if not media_type.is_event_format:
        return ""
    charset = (media_type.charset or "utf-8").lower()
    if media_type.essence == _JSON_NAME and charset not in _JSON_CHARSETS:
        raise CloudEventError(
            f"a JSON event is UTF-8, not {quoted(charset)}",
            where=CONTENT_TYPE,
            clauses=("Kafka binding 3.3.1", "RFC 8259, 8.1"),
        )
    return media_type.essence


#: Starts as the media type of an event format or of a batch does.
_BROKEN_EVENT_TYPE: Final = re.compile(
    rb"[ \t]*application/cloudevents(?:-batch)?(?![a-z0-9!#$&^_.-])", re.IGNORECASE
)
_JSON_CHARSETS: Final = ("utf-8", "utf8", "us-ascii", "ascii")


# --- writing ------------------------------------------------------------------------------------


class _FromRecord:
    """The type of the mark that says: the key of the record the event was read from, if any."""


_FROM_RECORD: Final = _FromRecord()


def to_kafka(
    event: CloudEvent | OpaqueEvent | NotAnEvent,
    mode: Mode | None = None,
    *,
    key: bytes | _FromRecord | None = _FROM_RECORD,
    key_mapper: KeyMapper | None = None,
    headers: Sequence[Header] = (),
    event_format: EventFormat | None = None,
    repeat_attributes: bool = False,
    message_format: int = 2,
) -> KafkaRecord:
    """Write an event as a Kafka record.

    An event that was read from a record of the same mode gives that record back, byte for byte,
    as `OpaqueEvent` and `NotAnEvent` do. Otherwise headers come in the order of the attributes,
    then those of the record it was read from that are not the event's. `headers` are more of
    yours, at the end. Without `mode` it is the mode the event was read in, else binary.

    The key is yours: `key`, or what `key_mapper` makes of the event (`partition_key` takes the
    partitioning extension); without either the key of the record it was read from, else null.

    `event_format` is for structured mode: the one the event was read in, else JSON;
    `repeat_attributes` then adds the `ce_` headers of binary mode (Kafka binding 3.3.3).
    `message_format` is the magic of the batch: 0 and 1 have no headers, so that only structured
    mode can be written there (Kafka binding 1.3), in JSON and without headers; whoever reads it
    must be told `mode="structured"`. A record that is no event and has no headers goes there too.

    Raises CloudEventError when the event cannot be written as asked.
    """
    written: Sequence[Header]
    if not isinstance(event, CloudEvent):
        if not isinstance(event, OpaqueEvent | NotAnEvent):
            raise CloudEventError(
                f"{type(event).__name__} is no event to be written: pass what from_kafka gave, or "
                "send the record itself",
                clauses=_MODES,
            )
        if mode is not None or event_format is not None or key_mapper is not None:
            raise CloudEventError(f"it goes out only as it came in: {event.reason}", clauses=_MODES)
        from_key, value, written = event.record
    elif event._message is None and (mode == "binary" or mode is None) and key_mapper is None:
        # A new event in binary mode, the data path: what is below, at two thirds of its price.
        data = event._data
        from_key = None
        value = data if type(data) is bytes else event.data_bytes()
        written = write_headers(event)
    else:
        from_key, value, written = _parts(event, mode, event_format, repeat_attributes)
        if key_mapper is not None:
            if key is not _FROM_RECORD:
                raise CloudEventError("give key or key_mapper, not both", clauses=_KEY)
            key = key_mapper(event)
    if isinstance(key, _FromRecord):
        key = from_key
    elif not (key is None or isinstance(key, bytes)):
        raise CloudEventError(
            f"the key of a record is bytes or None, not {type(key).__name__}", clauses=_KEY
        )
    if headers:
        written = (*written, *_own_headers(headers))
    if message_format != 2:
        _check_without_headers(event, written, message_format)
        written = ()
    # What KafkaRecord(…) does, at half its price: this is the data path.
    return _new_tuple(KafkaRecord, (key, value, tuple(written)))


_new_tuple: Final = tuple.__new__


def partition_key(event: CloudEvent) -> bytes | None:
    """A key mapper: the `partitionkey` of the partitioning extension, which stays in the event.

    None when it is unset (Kafka binding 3.1).
    """
    value = event.get("partitionkey")
    if value is None:
        value = event.extensions.get("partitionkey")  # 0.1 has a map of them
    return None if value is None else canonical(value).encode()


def kafka_record(event: CloudEvent) -> KafkaRecord | None:
    """The Kafka record that an event was read from; None for an event made otherwise.

    Raises CloudEventError for what is no CloudEvent.
    """
    if not isinstance(event, CloudEvent):
        raise no_event_error(event)
    message = event._message
    if isinstance(message, _StructuredMessage):
        return message.record
    if type(message) is tuple:
        key, headers, _ = message
        return KafkaRecord(key, event.data_bytes(), headers)
    return None


def _parts(
    event: CloudEvent,
    mode: Mode | None,
    event_format: EventFormat | None,
    repeat_attributes: bool,
) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
    """The key of the record that the event was read from, and value and headers to write."""
    message = event._message
    structured = message if type(message) is _StructuredMessage else None
    if mode is None:
        mode = "binary" if structured is None else "structured"
    if mode == "binary":
        if type(message) is tuple:
            key, headers, _ = message
            return key, event.data_bytes(), headers
        data = event._data
        value = data if isinstance(data, bytes) else event.data_bytes()
        written = write_headers(event)
    elif mode == "structured":
        if (
            structured is not None
            and event_format in (None, structured.event_format)
            and not repeat_attributes
        ):
            return structured.record
        chosen = event_format or JSON_FORMAT
        name = _JSON_NAME if chosen is JSON_FORMAT else event_media_type(chosen)
        value = chosen.write(event)
        written = [(CONTENT_TYPE, name.encode())]
        if repeat_attributes:
            written += [header for header in write_headers(event) if header[0] != CONTENT_TYPE]
    else:
        raise CloudEventError(f"mode is binary or structured, not {mode!r}", clauses=_MODES)
    if structured is not None:
        (key, _, headers), _, profile = structured
    elif type(message) is tuple:
        key, headers, profile = message
    else:
        return None, value, tuple(written)
    # Headers that were not the event's to its reader go with it from one mode to the other.
    written += [header for header in headers if not is_event_header(header[0], profile)]
    return key, value, tuple(written)


def _own_headers(headers: Sequence[Header]) -> Sequence[Header]:
    fault = shape_fault(None, None, headers)
    if fault is not None:
        raise CloudEventError(fault, clauses=_BINARY_HEADERS)
    for name, _ in headers:
        if is_event_header(name):
            raise CloudEventError(
                "the header belongs to the event: set the attribute instead",
                where=shown(name),
                clauses=_BINARY_HEADERS,
            )
    return headers


def _check_without_headers(
    event: CloudEvent | OpaqueEvent | NotAnEvent, headers: Sequence[Header], message_format: int
) -> None:
    """Refuse a record that would not be the same without its headers."""
    if message_format not in (0, 1):
        raise CloudEventError(
            f"message_format is 0, 1 or 2, not {message_format!r}", clauses=_OLD_KAFKA
        )
    if not headers and not isinstance(event, CloudEvent):
        return
    # An event that was read without headers has been read as JSON.
    name = format_name(dict(headers).get(CONTENT_TYPE), None) if headers else _JSON_NAME
    if name != _JSON_NAME:
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
