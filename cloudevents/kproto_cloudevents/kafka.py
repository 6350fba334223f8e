"""The Kafka protocol binding 1.0: a record to an event, an event to a record.

A record is plain data: key, value, and headers in their order; a header is `(str, bytes | None)`.
This module decides on mode, key and headers. It knows no socket and no client; what documents
look like is the formats' business, what attributes may be is the versions'.

What is read can be written again byte for byte: the event keeps the record it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .data import JsonText
from .errors import MAX_SHOWN, CloudEventError, UnknownVersionError, quoted
from .event import CloudEvent
from .formats import JSON_FORMAT, EventFormat, find_format
from .media_type import MediaType, parse_media_type
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
from .versions import VERSIONS, AttributeSpec, SpecVersion, spec_version

__all__ = ["from_kafka", "from_kafka_many", "kafka_record", "partition_key", "to_kafka"]

CONTENT_TYPE: Final = "content-type"
PREFIX: Final = "ce_"

_MODES: Final = ("Kafka binding 3",)
_KEY: Final = ("Kafka binding 3.1",)
_BINARY_TYPE: Final = ("Kafka binding 3.2.1",)
_BINARY_HEADERS: Final = ("Kafka binding 3.2.3",)
_STRUCTURED_TYPE: Final = ("Kafka binding 3.3.1",)
_STRUCTURED_DATA: Final = ("Kafka binding 3.3.2",)

#: How many different values of one attribute are remembered as checked. Sources, types and
#: content types repeat over a topic; past this many they are forgotten all at once.
REMEMBERED_VALUES: Final = 1024
#: Longer values are checked each time, so that what is remembered stays small (in bytes).
REMEMBERED_LENGTH: Final = 256


class _StructuredMessage(NamedTuple):
    """What an event read in structured mode remembers; one read in binary mode has its record."""

    record: KafkaRecord
    event_format: EventFormat


# --- reading ------------------------------------------------------------------------------------


def from_kafka(
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[Header] | None = (),
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
        kept = () if headers is None else tuple(headers)
    except TypeError:
        raise CloudEventError(_shape_fault(key, value, headers) or "") from None
    try:
        return _read(key, value, kept, mode, profile)
    except CloudEventError:
        raise
    except (TypeError, ValueError, AttributeError):
        fault = _shape_fault(key, value, kept)
        if fault is None:
            raise
        raise CloudEventError(fault) from None


def from_kafka_many(
    records: Iterable[tuple[bytes | None, bytes | None, Iterable[Header] | None]],
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
            kept = () if headers is None else tuple(headers)
            read.append(InvalidEvent(KafkaRecord(key, value, kept), error))
    return read


def _read(
    key: bytes | None,
    value: bytes | None,
    headers: tuple[Header, ...],
    mode: Mode | None,
    profile: Profile,
) -> CloudEvent | OpaqueEvent | NotAnEvent:
    if not (value is None or type(value) is bytes) or not (key is None or type(key) is bytes):
        raise TypeError
    table = dict(headers)
    if len(table) != len(headers) or profile.any_case_headers:
        table = _by_name(headers, profile)
    content_type = table.get(CONTENT_TYPE)
    try:
        # The usual content types have been seen before, and are no event format.
        if mode is not None or content_type not in _BINARY_TYPES:
            media_type = _media_type(content_type)
            if _is_structured(media_type, mode):
                return _read_structured(KafkaRecord(key, value, headers), media_type)
        version = _binary_version(table)
        if version is not None:
            return CloudEvent._decoded(
                version,
                _read_headers(table, version),
                value,
                None,
                # Cheaper than a KafkaRecord, which few ask for.
                (key, headers),
            )
    except UnknownVersionError as error:
        if profile.refuse_unknown:
            raise
        return OpaqueEvent(KafkaRecord(key, value, headers), str(error))
    except _UnknownFormatError as error:
        if profile.refuse_unknown:
            raise CloudEventError(error.reason, where=error.where, clauses=error.clauses) from None
        return OpaqueEvent(KafkaRecord(key, value, headers), str(error))
    if mode is not None or _has_event_header(table):
        raise CloudEventError(
            "the required attribute is missing",
            where="ce_specversion",
            clauses=(*_BINARY_HEADERS, 'CloudEvents 1.0 "REQUIRED Attributes"'),
        )
    return NotAnEvent(KafkaRecord(key, value, headers), _why_not(content_type))


class _UnknownFormatError(CloudEventError):
    """An event format that is not registered; never leaves this module."""


def _by_name(headers: tuple[Header, ...], profile: Profile) -> dict[str, bytes | None]:
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
                where=_shown(written),
                clauses=(*_BINARY_HEADERS, 'CloudEvents 1.0 "Context Attributes"'),
            )
        table[name] = raw
    return table


def _shape_fault(key: object, value: object, headers: object) -> str | None:
    """Which part of a record has the wrong Python type; None when every one is right."""
    for name, part in (("key", key), ("value", value)):
        if not (part is None or isinstance(part, bytes)):
            return f"the {name} of a record is bytes or None, not {type(part).__name__}"
    if isinstance(headers, Mapping):
        return (
            "headers are pairs (str, bytes | None) in their order, not a mapping: "
            "a mapping cannot hold a header twice"
        )
    if not isinstance(headers, Iterable):
        return f"headers are a sequence of pairs, not {type(headers).__name__}"
    for index, header in enumerate(headers):
        match header:
            case (str(), bytes() | None):
                continue
            case _:
                return f"header {index} is not a pair (str, bytes | None)"
    return None


#: Content types of binary mode that have been seen, and None, which is no content type.
_BINARY_TYPES: Final[set[bytes | None]] = {None}


def _media_type(raw: bytes | None) -> MediaType | None:
    """The media type in a content-type header; None when it is none."""
    if raw is None:
        return None
    try:
        parsed = parse_media_type(raw.decode())
    except UnicodeDecodeError:
        return None
    if (
        parsed is not None
        and len(raw) <= REMEMBERED_LENGTH
        and not (parsed.is_event_format or parsed.is_batch_format)
    ):
        if len(_BINARY_TYPES) > REMEMBERED_VALUES:
            _BINARY_TYPES.clear()
            _BINARY_TYPES.add(None)
        _BINARY_TYPES.add(raw)
    return parsed


def _is_structured(media_type: MediaType | None, mode: Mode | None) -> bool:
    """True when the value is an event in an event format (Kafka binding 3)."""
    if mode is not None:
        if mode not in ("binary", "structured"):
            raise CloudEventError(f"mode is binary or structured, not {mode!r}", clauses=_MODES)
        return mode == "structured"
    if media_type is None:
        return False
    if media_type.is_event_format:
        return True
    if media_type.is_batch_format:
        raise CloudEventError(
            "a batch of events cannot be one Kafka record: send each event by itself",
            where=CONTENT_TYPE,
            clauses=("Kafka binding 1.3",),
        )
    return False


def _has_event_header(table: Mapping[str, bytes | None]) -> bool:
    return any(name.startswith(PREFIX) and raw is not None for name, raw in table.items())


def _why_not(content_type: bytes | None) -> str:
    if content_type is None:
        return "no ce_ header and no content-type header"
    return "no ce_ header, and the content-type is no event format"


# --- structured mode ----------------------------------------------------------------------------


def _read_structured(record: KafkaRecord, media_type: MediaType | None) -> CloudEvent:
    chosen = JSON_FORMAT if media_type is None else _format_of(media_type)
    if record.value is None:
        raise CloudEventError(
            "a structured event is never null: the event stands in the value",
            where="value",
            clauses=_STRUCTURED_DATA,
        )
    event = chosen.read(record.value)
    event._message = _StructuredMessage(record, chosen)
    return event


def _format_of(media_type: MediaType) -> EventFormat:
    """The event format of a content type; JSON where the caller's mode overrides another type."""
    if not media_type.is_event_format:
        return JSON_FORMAT
    chosen = find_format(media_type.essence)
    if chosen is None:
        raise _UnknownFormatError(
            f"the event format {quoted(media_type.essence)} is not known here",
            where=CONTENT_TYPE,
            clauses=_MODES,
        )
    charset = (media_type.charset or "utf-8").lower()
    if chosen is JSON_FORMAT and charset not in ("utf-8", "utf8", "us-ascii", "ascii"):
        raise CloudEventError(
            f"a JSON event is UTF-8, not {quoted(charset)}",
            where=CONTENT_TYPE,
            clauses=(*_STRUCTURED_TYPE, "RFC 8259, 8.1"),
        )
    return chosen


# --- binary mode --------------------------------------------------------------------------------


class _HeaderReader(NamedTuple):
    """How one header of an event is read."""

    attribute: str
    spec: AttributeSpec
    #: Values that have been found right; None for attributes that differ from event to event.
    remembered: dict[bytes, str] | None
    quick: Callable[[str], object]


def _binary_version(table: Mapping[str, bytes | None]) -> SpecVersion | None:
    """The version that the headers name; None when they name none."""
    raw = table.get("ce_specversion")
    if raw is None:
        return None
    known = _VERSION_OF.get(raw)
    if known is not None:
        return known
    label = _decode("ce_specversion", raw)
    return spec_version(label, where="ce_specversion", clauses=_BINARY_HEADERS)


def _read_headers(table: Mapping[str, bytes | None], version: SpecVersion) -> dict[str, Any]:
    """The attributes in the headers (Kafka binding 3.2.3), in the order of the headers."""
    readers = _READERS[version.label]
    attributes: dict[str, Any] = {}
    for header, raw in table.items():
        if raw is None:
            continue
        reader = readers.get(header)
        if reader is None:
            if header[:3] != PREFIX:
                continue
            reader = _reader_of(header, raw, table, version, readers)
        attribute, spec, remembered, quick = reader
        text = None if remembered is None else remembered.get(raw)
        if text is None:
            text = _decode(header, raw)
            if not (text and quick(text)):
                _check(header, text, spec, version)
            if remembered is not None:
                _remember(remembered, raw, text)
        attributes[attribute] = text
    for name in version.required:
        if name not in attributes:
            raise version.missing_error(PREFIX + name, _BINARY_HEADERS)
    return attributes


def _check(header: str, text: str, spec: AttributeSpec, version: SpecVersion) -> None:
    """Refuse a text that breaks a rule of its attribute."""
    fault = spec.fault(text)
    if fault is not None:
        clauses = _BINARY_TYPE if header == CONTENT_TYPE else _BINARY_HEADERS
        raise version.fault_error(fault, text, where=_shown(header), clauses=clauses)


def _remember(remembered: dict[bytes, str], raw: bytes, text: str) -> None:
    if len(raw) <= REMEMBERED_LENGTH:
        if len(remembered) >= REMEMBERED_VALUES:
            remembered.clear()
        remembered[raw] = text


def _decode(header: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CloudEventError(
            "the value is not UTF-8", where=_shown(header), clauses=_BINARY_HEADERS
        ) from None


def _shown(header: str) -> str:
    """A header name as an error's place: quoted when it is long or not plain."""
    plain = header.isascii() and header.isprintable() and 0 < len(header) <= MAX_SHOWN
    return header if plain else quoted(header)


def _readers_of(version: SpecVersion) -> dict[str, _HeaderReader]:
    """The readers for the attributes that a version defines, by header."""
    unlike = {version.id, version.time, version.subject}
    return {
        CONTENT_TYPE if name == version.content_type else PREFIX + name: _HeaderReader(
            name, spec, None if name in unlike else {}, spec.quick
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
    version.check_name(name, where=_shown(header), clauses=_BINARY_HEADERS)
    spec = version.reading(name)
    reader = _HeaderReader(name, spec, None, spec.quick)
    if len(readers) < REMEMBERED_VALUES and len(header) <= MAX_SHOWN:
        readers[header] = reader
    return reader


_VERSION_OF: Final = {label.encode(): version for label, version in VERSIONS.items()}
_READERS: Final = {label: _readers_of(version) for label, version in VERSIONS.items()}


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
    mode can be written there (Kafka binding 1.3), in JSON and without headers.

    Raises CloudEventError when the event cannot be written as asked.
    """
    if not isinstance(event, CloudEvent):
        if mode is not None or event_format is not None or key_mapper is not None:
            raise CloudEventError(f"it goes out only as it came in: {event.reason}", clauses=_MODES)
        record = event.record
    else:
        record = _record(event, mode, event_format, repeat_attributes)
        if key_mapper is not None:
            if key is not _FROM_RECORD:
                raise CloudEventError("give key or key_mapper, not both", clauses=_KEY)
            key = key_mapper(event)
    if not isinstance(key, _FromRecord):
        if not (key is None or isinstance(key, bytes)):
            raise CloudEventError(
                f"the key of a record is bytes or None, not {type(key).__name__}", clauses=_KEY
            )
        record = KafkaRecord(key, record[1], record[2])
    if headers:
        record = record._replace(headers=(*record.headers, *_own_headers(headers)))
    if message_format < 2:
        record = _without_headers(record, message_format)
    return record


def partition_key(event: CloudEvent) -> bytes | None:
    """A key mapper: the `partitionkey` of the partitioning extension, which stays in the event.

    None when it is unset (Kafka binding 3.1).
    """
    value = event.get("partitionkey")
    return None if value is None else canonical(value).encode()


def kafka_record(event: CloudEvent) -> KafkaRecord | None:
    """The Kafka record that an event was read from; None for an event made otherwise."""
    message = event._message
    if isinstance(message, _StructuredMessage):
        return message.record
    if isinstance(message, tuple):
        key, headers = message
        return KafkaRecord(key, event.data_bytes(), headers)
    return None


def _record(
    event: CloudEvent,
    mode: Mode | None,
    event_format: EventFormat | None,
    repeat_attributes: bool,
) -> KafkaRecord:
    """The record of an event with the key of the record it was read from."""
    read_from = None if event._message is None else kafka_record(event)
    message = event._message
    structured = message if isinstance(message, _StructuredMessage) else None
    if mode is None:
        mode = "binary" if structured is None else "structured"
    if mode == "binary":
        if read_from is not None and structured is None:
            return read_from
        written = _binary_headers(event)
        value = event.data_bytes()
    elif mode == "structured":
        if (
            structured is not None
            and event_format in (None, structured.event_format)
            and not repeat_attributes
        ):
            return structured.record
        chosen = event_format or JSON_FORMAT
        written = [(CONTENT_TYPE, chosen.media_type.encode())]
        if repeat_attributes:
            written += [header for header in _binary_headers(event) if header[0] != CONTENT_TYPE]
        value = chosen.write(event)
    else:
        raise CloudEventError(f"mode is binary or structured, not {mode!r}", clauses=_MODES)
    if read_from is None:
        return KafkaRecord(None, value, tuple(written))
    # Headers that are not the event's go with it from one mode to the other.
    written += [header for header in read_from.headers if not _is_event_header(header[0])]
    return KafkaRecord(read_from.key, value, tuple(written))


def _binary_headers(event: CloudEvent) -> list[Header]:
    """The headers of binary mode (Kafka binding 3.2.3), in the order of the attributes."""
    names = _HEADER_OF[event._version.label]
    written: list[Header] = []
    for name, value in event._attributes.items():
        text = value if type(value) is str else canonical(value)
        written.append((names.get(name) or PREFIX + name, text.encode()))
    if isinstance(event._data, JsonText) and event._version.content_type not in event._attributes:
        # JSON implies its datacontenttype; no other form does (JSON format 3.1.2).
        written.append((CONTENT_TYPE, b"application/json"))
    return written


def _own_headers(headers: Sequence[Header]) -> Sequence[Header]:
    for name, _ in headers:
        if _is_event_header(name):
            raise CloudEventError(
                "the header belongs to the event: set the attribute instead",
                where=_shown(name),
                clauses=_BINARY_HEADERS,
            )
    return headers


def _is_event_header(name: str) -> bool:
    return name == CONTENT_TYPE or name.startswith(PREFIX)


def _without_headers(record: KafkaRecord, message_format: int) -> KafkaRecord:
    """The record for message format 0 or 1, which has no headers."""
    lost = [name for name, _ in record.headers if name != CONTENT_TYPE]
    content_type = dict(record.headers).get(CONTENT_TYPE)
    media_type = None if content_type is None else _media_type(content_type)
    if media_type is None or media_type.essence != JSON_FORMAT.media_type:
        raise CloudEventError(
            f"message format {message_format} has no headers: write structured mode in JSON",
            clauses=("Kafka binding 1.3",),
        )
    if lost:
        raise CloudEventError(
            f"message format {message_format} has no headers: {len(lost)} would be lost",
            where=_shown(lost[0]),
            clauses=("Kafka binding 1.3",),
        )
    return record._replace(headers=())


_HEADER_OF: Final = {
    label: {
        name: CONTENT_TYPE if name == version.content_type else PREFIX + name
        for name in version.attributes
    }
    for label, version in VERSIONS.items()
}
