"""The Kafka protocol binding 1.0: a record to an event, an event to a record.

A record is plain data: key, value, and headers in their order; a header is `(str, bytes | None)`.
This module decides on mode, key and headers. It knows no socket and no client; what documents
look like is the formats' business, what attributes may be is the versions'.

What is read can be written again byte for byte: the event keeps the record it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from .data import JsonText
from .errors import CloudEventError, UnknownVersionError, quoted
from .event import CloudEvent
from .formats import JSON_FORMAT, EventFormat, find_format
from .media_type import MediaType, parse_media_type
from .types import AttributeValue, canonical
from .versions import VERSIONS, Fault, SpecVersion, spec_version

__all__ = [
    "DEFAULT",
    "LENIENT",
    "STRICT",
    "Header",
    "KafkaRecord",
    "KeyMapper",
    "Mode",
    "NotAnEvent",
    "OpaqueEvent",
    "Profile",
    "from_kafka",
    "kafka_record",
    "partition_key",
    "to_kafka",
]

Mode = Literal["binary", "structured"]
Header = tuple[str, bytes | None]
#: Gives the key of the record for an event; it cannot change the event, which is immutable.
KeyMapper = Callable[[CloudEvent], bytes | None]

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
#: How many names of extensions are remembered, for the same reason.
REMEMBERED_NAMES: Final = 1024


class Profile(NamedTuple):
    """What a reader puts up with beyond the binding, or refuses within it."""

    #: Take `CE_Type` and `Content-Type` for `ce_type` and `content-type`; Kafka's header keys are
    #: case-sensitive, but bridges from HTTP write them so.
    any_case_headers: bool = False
    #: Refuse an unknown specversion and an unknown event format instead of passing them on.
    refuse_unknown: bool = False


DEFAULT: Final = Profile()
STRICT: Final = Profile(refuse_unknown=True)
LENIENT: Final = Profile(any_case_headers=True)


class KafkaRecord(NamedTuple):
    """Key, value and headers of a Kafka record; null is None, and is not the same as empty."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return f"KafkaRecord(key={_size(self.key)}, value={_size(self.value)}, headers=[{names}])"


class OpaqueEvent(NamedTuple):
    """An event that can be forwarded as it is but not read; `to_kafka` gives its record back."""

    record: KafkaRecord
    #: Why it cannot be read: its event format or its specversion is unknown.
    reason: str


class NotAnEvent(NamedTuple):
    """A record with nothing of CloudEvents about it."""

    record: KafkaRecord
    reason: str

    @property
    def tombstone(self) -> bool:
        """True when the value is null: in a compacted topic it deletes its key."""
        return self.record.value is None


class _StructuredMessage(NamedTuple):
    """What an event read in structured mode remembers; one read in binary mode has its record."""

    record: KafkaRecord
    event_format: EventFormat


def _size(part: bytes | None) -> str:
    return "null" if part is None else f"<{len(part)} bytes>"


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
    if mode not in (None, "binary", "structured"):
        raise CloudEventError(f"mode is binary or structured, not {mode!r}", clauses=_MODES)
    try:
        return _read(key, value, headers, mode, profile)
    except CloudEventError:
        raise
    except (TypeError, ValueError, AttributeError):
        fault = _shape_fault(key, value, headers)
        if fault is None:
            raise
        raise CloudEventError(fault) from None


def _read(
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[Header] | None,
    mode: Mode | None,
    profile: Profile,
) -> CloudEvent | OpaqueEvent | NotAnEvent:
    kept = () if headers is None else tuple(headers)
    table = dict(kept)
    if len(table) != len(kept) or profile.any_case_headers:
        table = _by_name(kept, profile)
    record = KafkaRecord(key, value, kept)
    content_type = table.get(CONTENT_TYPE)
    media_type = None if content_type is None else _media_type(content_type)
    try:
        if _is_structured(media_type, mode):
            return _read_structured(record, media_type)
        version = _binary_version(table)
        if version is not None:
            return _read_binary(record, table, version)
    except UnknownVersionError as error:
        if profile.refuse_unknown:
            raise
        return OpaqueEvent(record, str(error))
    except _UnknownFormatError as error:
        if profile.refuse_unknown:
            raise CloudEventError(error.reason, where=error.where, clauses=error.clauses) from None
        return OpaqueEvent(record, str(error))
    if mode is not None or _has_event_header(table):
        raise CloudEventError(
            "the required attribute is missing",
            where="ce_specversion",
            clauses=(*_BINARY_HEADERS, 'CloudEvents 1.0 "REQUIRED Attributes"'),
        )
    return NotAnEvent(record, _why_not(content_type))


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


_MEDIA_TYPES: Final[dict[bytes, MediaType]] = {}


def _media_type(raw: bytes) -> MediaType | None:
    """The media type in a content-type header; None when it is none."""
    known = _MEDIA_TYPES.get(raw)
    if known is not None:
        return known
    if not isinstance(raw, bytes):
        raise _value_error(CONTENT_TYPE, raw)
    try:
        parsed = parse_media_type(raw.decode())
    except UnicodeDecodeError:
        return None
    if parsed is not None and len(raw) <= REMEMBERED_LENGTH:
        if len(_MEDIA_TYPES) >= REMEMBERED_VALUES:
            _MEDIA_TYPES.clear()
        _MEDIA_TYPES[raw] = parsed
    return parsed


def _is_structured(media_type: MediaType | None, mode: Mode | None) -> bool:
    """True when the value is an event in an event format (Kafka binding 3)."""
    if mode is not None:
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
    """How one header of an event is read: its attribute, its check, and values found right."""

    attribute: str
    fault: Callable[[str], Fault | None]
    #: None for attributes that differ from event to event.
    remembered: dict[bytes, str] | None


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


def _read_binary(
    record: KafkaRecord, table: Mapping[str, bytes | None], version: SpecVersion
) -> CloudEvent:
    readers = _READERS[version.label]
    attributes: dict[str, AttributeValue] = {}
    for header, raw in table.items():
        if raw is None:
            continue
        reader = readers.get(header)
        if reader is None:
            if not header.startswith(PREFIX):
                continue
            reader = _extension_reader(header, version, readers)
        attribute, fault, remembered = reader
        if remembered is None:
            text = _checked(header, raw, fault, version)
        else:
            known = remembered.get(raw)
            text = _remember(header, raw, reader, version) if known is None else known
        if attribute in attributes and attributes[attribute] != text:
            raise CloudEventError(
                "content-type and ce_datacontenttype differ",
                where=header,
                clauses=(*_BINARY_TYPE, version.clause(version.content_type)),
            )
        attributes[attribute] = text
    for name in version.required:
        if name not in attributes:
            raise version.missing_error(PREFIX + name, _BINARY_HEADERS)
    return CloudEvent._decoded(version, attributes, record.value, None, record)


def _checked(
    header: str, raw: bytes, fault: Callable[[str], Fault | None], version: SpecVersion
) -> str:
    """The text of a header that is right by its attribute's rules."""
    try:
        text = raw.decode()
    except (UnicodeDecodeError, AttributeError):
        raise _value_error(header, raw) from None
    found = fault(text)
    if found is not None:
        clauses = _BINARY_TYPE if header == CONTENT_TYPE else _BINARY_HEADERS
        raise version.fault_error(found, text, where=_shown(header), clauses=clauses)
    return text


def _remember(header: str, raw: bytes, reader: _HeaderReader, version: SpecVersion) -> str:
    """Check a value of an attribute that repeats over a topic, and remember that it is right."""
    text = _checked(header, raw, reader.fault, version)
    remembered = reader.remembered
    if remembered is not None and len(raw) <= REMEMBERED_LENGTH:
        if len(remembered) >= REMEMBERED_VALUES:
            remembered.clear()
        remembered[raw] = text
    return text


def _decode(header: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except (UnicodeDecodeError, AttributeError):
        raise _value_error(header, raw) from None


def _value_error(header: str, raw: object) -> CloudEventError:
    if isinstance(raw, bytes):
        reason = "the value is not UTF-8"
    else:
        reason = f"a header value is bytes or None, not {type(raw).__name__}"
    return CloudEventError(reason, where=_shown(header), clauses=_BINARY_HEADERS)


def _shown(header: str) -> str:
    """A header name as an error's place: quoted when it is long or not plain."""
    plain = header.isascii() and header.isprintable() and 0 < len(header) <= 48
    return header if plain else quoted(header)


def _readers_of(version: SpecVersion) -> dict[str, _HeaderReader]:
    """The readers for the attributes that a version defines."""
    unlike = {version.id, version.time, version.subject}
    readers = {
        PREFIX + name: _HeaderReader(name, spec.fault, None if name in unlike else {})
        for name, spec in version.attributes.items()
    }
    # `ce_datacontenttype` is what the binding did before 1.0; it is read, never written.
    readers[CONTENT_TYPE] = readers[PREFIX + version.content_type]
    return readers


def _extension_reader(
    header: str, version: SpecVersion, readers: dict[str, _HeaderReader]
) -> _HeaderReader:
    """The reader for an extension; remembered, so that its name is checked once."""
    name = header[len(PREFIX) :]
    version.check_name(name, where=_shown(header), clauses=_BINARY_HEADERS)
    reader = _HeaderReader(name, version.extension_fault, None)
    if len(readers) < REMEMBERED_NAMES and len(header) <= REMEMBERED_LENGTH:
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
    record = _written(event, mode, event_format, repeat_attributes)
    if headers:
        record = record._replace(headers=(*record.headers, *_own_headers(headers)))
    if message_format < 2:
        record = _without_headers(record, message_format)
    if key_mapper is not None:
        if key is not _FROM_RECORD:
            raise CloudEventError("give key or key_mapper, not both", clauses=_KEY)
        if not isinstance(event, CloudEvent):
            raise CloudEventError(f"a key cannot be mapped: {event.reason}", clauses=_KEY)
        key = key_mapper(event)
    if isinstance(key, _FromRecord):
        return record
    if not (key is None or isinstance(key, bytes)):
        raise CloudEventError(
            f"the key of a record is bytes or None, not {type(key).__name__}", clauses=_KEY
        )
    return record._replace(key=key)


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
    return message if isinstance(message, KafkaRecord) else None


def _written(
    event: CloudEvent | OpaqueEvent | NotAnEvent,
    mode: Mode | None,
    event_format: EventFormat | None,
    repeat_attributes: bool,
) -> KafkaRecord:
    if not isinstance(event, CloudEvent):
        if mode is not None or event_format is not None:
            raise CloudEventError(f"it goes out only as it came in: {event.reason}", clauses=_MODES)
        return event.record
    message = event._message
    if mode is None:
        mode = "structured" if isinstance(message, _StructuredMessage) else "binary"
    if mode == "binary":
        return message if isinstance(message, KafkaRecord) else _binary(event)
    if mode != "structured":
        raise CloudEventError(f"mode is binary or structured, not {mode!r}", clauses=_MODES)
    if (
        isinstance(message, _StructuredMessage)
        and event_format in (None, message.event_format)
        and not repeat_attributes
    ):
        return message.record
    return _structured(event, event_format or JSON_FORMAT, repeat_attributes)


def _binary(event: CloudEvent) -> KafkaRecord:
    key, others = _taken_over(event)
    return KafkaRecord(key, event.data_bytes(), (*_binary_headers(event), *others))


def _structured(
    event: CloudEvent, event_format: EventFormat, repeat_attributes: bool
) -> KafkaRecord:
    key, others = _taken_over(event)
    written: list[Header] = [(CONTENT_TYPE, event_format.media_type.encode())]
    if repeat_attributes:
        written += [header for header in _binary_headers(event) if header[0] != CONTENT_TYPE]
    return KafkaRecord(key, event_format.write(event), (*written, *others))


def _taken_over(event: CloudEvent) -> tuple[bytes | None, tuple[Header, ...]]:
    """What the record that the event was read from hands on: its key, headers not the event's."""
    record = kafka_record(event)
    if record is None:
        return None, ()
    return record.key, tuple(each for each in record.headers if not _is_event_header(each[0]))


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
