"""The JSON event format and the JSON batch format: an event as one JSON document.

A read event keeps its document, so that writing it again gives the same bytes. Data that is a JSON
value keeps its text, even if the event is written in another format. This module imports no
binding, such as `kafka`.
"""

from __future__ import annotations

import binascii
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final

from ..errors import CloudEventError, quoted
from ..event.cloud_event import CloudEvent, no_event_error
from ..event.data import (
    USUAL_TYPE,
    Data,
    JsonText,
    TextOrBase64,
    as_bytes,
    as_json_text,
    as_text,
    declares_json,
    declares_text,
    from_base64,
    unmarked_error,
)
from ..values.json_text import (
    PAIRS_DECODER,
    Pairs,
    compact_json,
    dump_json,
    member_texts,
    parse_json,
    raw_decode,
    skip_blanks,
)
from ..values.types import INTEGER_MAX, MAP, AttributeValue, JsonMap, canonical, json_of, utf8
from ..versions.check_plans import checked_attributes
from ..versions.spec_version import SpecVersion
from ..versions.version_tables import (
    V1_0,
    V1_0_EVENT_GRID,
    VERSION_ATTRIBUTES,
    named_version,
    version_attribute,
    version_of_read,
)
from .json_shapes import learn_shape, shaped_members

__all__ = [
    "from_json",
    "from_json_batch",
    "from_json_with_content_type",
    "names_version",
    "to_json",
    "to_json_batch",
    "to_portable_json",
]

_ATTRIBUTES: Final = ("JSON format 2.2",)
_ENVELOPE: Final = ("JSON format 3",)
_DATA: Final = ("JSON format 3.1",)
_BATCH: Final = ("JSON format 4",)


# --- reading ------------------------------------------------------------------------------------


def from_json(document: bytes | str, *, event_grid_dataschema: bool = False) -> CloudEvent:
    """Reads an event from a document of `application/cloudevents+json`.

    `event_grid_dataschema` accepts the dataschema "#", which is no URI, in an event of 1.0: Azure
    Event Grid writes it.

    Raises CloudEventError if the text is not JSON, is not an event, or breaks a rule of its
    version. Raises UnknownVersionError for an unknown specversion.
    """
    text = _text(document)
    document = document.encode() if isinstance(document, str) else bytes(document)
    event = _event_of_known_shape(text, document)
    if event is None:
        event = _event(_whole(text), text, document, event_grid=event_grid_dataschema)
        # A shape of `V1_0_EVENT_GRID` would also accept "#" without `event_grid_dataschema`.
        if event._version is not V1_0_EVENT_GRID:
            learn_shape(text, event._attributes, event._version)
    return event


def _event_of_known_shape(text: str, document: bytes) -> CloudEvent | None:
    """Reads a document whose shape is known.

    Returns None if the shape is unknown or the event invalid.
    """
    found = shaped_members(text, _closely_checked)
    if found is None:
        return None
    version, attributes, value, start = found
    data: Data = None
    if start >= 0:
        if attributes.get(version.content_type) == USUAL_TYPE and version.data_encoding is None:
            data = JsonText("", text, start)  # like `_decoded_data`, in a third of its time
        else:
            try:
                data = _decoded_data(value, None, text, None, attributes, version, start)
            except CloudEventError:
                return None
    return CloudEvent._decoded(version, attributes, data, document, None)


def from_json_with_content_type(
    document: bytes, content_type: str | None, *, event_grid_dataschema: bool = False
) -> CloudEvent:
    """Reads an event; a document without a datacontenttype gets the content type of its message.

    `content_type` is the content type of the message: a valid media type, or None. If
    `content_type` is None, or if the document has a datacontenttype, reads the document as
    `from_json` does.

    Otherwise `content_type` becomes the event's datacontenttype. A null member `data` then means
    that the event has no data, unless `content_type` is JSON. The event does not keep the document,
    because the document lacks the datacontenttype.

    Raises CloudEventError as `from_json` does.
    """
    text = _text(document)
    pairs = _whole(text)
    members = dict(pairs)
    name = _version_of_members(members).content_type
    if content_type is None or members.get(name) is not None or len(members) != len(pairs):
        return _event(pairs, text, document, event_grid=event_grid_dataschema)
    members[name] = content_type
    if members.get("data", _ABSENT) is None and not declares_json(content_type):
        del members["data"]
    event = _event(Pairs(members.items()), text, document, event_grid=event_grid_dataschema)
    event._document = None
    return event


def _whole(text: str) -> Pairs:
    """Returns the members of the JSON object in `text`.

    Raises CloudEventError if other text follows the object.
    """
    start = 0 if text[:1] == "{" else skip_blanks(text, 0)
    pairs, end = _members(text, start)
    if end != len(text) and skip_blanks(text, end) != len(text):
        raise CloudEventError(f"more follows the event at character {end}", clauses=_ENVELOPE)
    return pairs


def names_version(document: bytes) -> bool:
    """Returns True if the document is a JSON object with a specversion, even an unknown one."""
    try:
        pairs = parse_json(_text(document), PAIRS_DECODER)
    except CloudEventError:
        return False
    if not isinstance(pairs, Pairs):
        return False
    members = dict(pairs)
    attribute = version_attribute(members)
    return attribute is not None and isinstance(members[attribute], str)


def from_json_batch(
    document: bytes | str, *, event_grid_dataschema: bool = False
) -> list[CloudEvent]:
    """Reads the events of a document of `application/cloudevents-batch+json`.

    `event_grid_dataschema` works as for `from_json`.

    Raises CloudEventError if the text is not a JSON array of objects, for the first event that
    breaks a rule, and if the versions of the events differ. Raises UnknownVersionError for an
    unknown specversion. The error for an event names the event's index in the array.
    """
    text = _text(document)
    events = []
    for index, (element, pairs) in enumerate(_elements(text)):
        try:
            event = _event(pairs, element, element.encode(), event_grid=event_grid_dataschema)
            events.append(event)
        except CloudEventError as error:
            where = f"event {index}" if error.where is None else f"event {index}, {error.where}"
            raise type(error)(error.reason, where=where, clauses=error.clauses) from None
    _check_one_version(events)
    return events


def _check_one_version(batch: list[CloudEvent]) -> None:
    if len({event.specversion for event in batch}) > 1:
        raise CloudEventError(
            "the events of one batch have one specversion",
            clauses=('CloudEvents 1.0 "Message"',),
        )


def _text(document: bytes | str) -> str:
    if isinstance(document, str):
        if not document.isascii():
            utf8(document, where=None, clauses=("RFC 8259, 8.1",))
        return document
    try:
        # A byte order mark may be ignored (RFC 8259, 8.1).
        return document.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise CloudEventError(
            f"the document is not UTF-8 at byte {error.start}", clauses=("RFC 8259, 8.1",)
        ) from None
    except AttributeError:
        raise CloudEventError(
            f"a JSON document is bytes or str, not {type(document).__name__}"
        ) from None


def _elements(text: str) -> Iterator[tuple[str, Pairs]]:
    """Yields the text and the members of each object of a batch."""
    position = skip_blanks(text, 0)
    if text[position : position + 1] != "[":
        raise CloudEventError("a batch is a JSON array", clauses=_BATCH)
    position = skip_blanks(text, position + 1)
    if text[position : position + 1] == "]":
        _check_end(text, position + 1)
        return
    while True:
        pairs, end = _members(text, position)
        yield text[position:end], pairs
        position = skip_blanks(text, end)
        mark = text[position : position + 1]
        if mark == "]":
            _check_end(text, position + 1)
            return
        if mark != ",":
            raise CloudEventError(f"the array is broken at character {position}", clauses=_BATCH)
        position = skip_blanks(text, position + 1)


def _check_end(text: str, position: int) -> None:
    if skip_blanks(text, position) != len(text):
        raise CloudEventError(f"more follows the batch at character {position}", clauses=_BATCH)


def _members(text: str, start: int) -> tuple[Pairs, int]:
    """Returns the members of the object that begins at `start`, and its end position.

    The members are pairs, because a dict would keep only the last of two equal names.
    """
    if text[start : start + 1] != "{":
        raise CloudEventError("an event is a JSON object", clauses=_ENVELOPE)
    pairs: Pairs
    pairs, end = raw_decode(text, start, PAIRS_DECODER)
    return pairs, end


def _event(pairs: Pairs, text: str, document: bytes, *, event_grid: bool = False) -> CloudEvent:
    """Returns the event of a JSON object's members; `text` and `document` are the object's JSON.

    `event_grid` accepts the dataschema "#".
    """
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _repeated_error(pairs)
    version = _version_of_members(members)
    if event_grid:
        version = version_of_read(version, members)
    data = members.pop("data", _ABSENT)
    base64 = members.pop("data_base64", None) if version.base64_member else None
    if version.has_maps and any(type(each) is Pairs for each in members.values()):
        return _event_with_maps(members, data, version, text, document)
    attributes = _checked_members(members, version)
    return CloudEvent._decoded(
        version,
        attributes,
        _decoded_data(data, base64, text, None, attributes, version),
        document,
        None,
    )


def _event_with_maps(
    members: dict[str, Any], data: Any, version: SpecVersion, text: str, document: bytes
) -> CloudEvent:
    """Returns the event with these `members`, at least one of which is a Map.

    Each Map keeps its text, except the whitespace between tokens.
    """
    texts = member_texts(text, skip_blanks(text, 0))
    for name, value in members.items():
        if type(value) is Pairs:
            members[name] = JsonMap(compact_json(texts[name]))
    attributes = _checked_members(members, version)
    # Pass the text of the data: a Map may have an entry `data`, which `JsonText` would find.
    return CloudEvent._decoded(
        version,
        attributes,
        _decoded_data(data, None, text, texts.get("data"), attributes, version),
        document,
        None,
    )


def _checked_members(members: dict[str, Any], version: SpecVersion) -> dict[str, Any]:
    """Returns the members that are set attributes. Raises CloudEventError if one is invalid."""
    return checked_attributes(
        members, version, _closely_checked, clauses=_ATTRIBUTES, required_clauses=_ENVELOPE
    )


def _closely_checked(name: str, value: Any, version: SpecVersion) -> AttributeValue:
    if type(value) is not str:
        return _not_text(name, value, version)
    version.check_text(name, value, where=name, clauses=_ATTRIBUTES)
    spec = version.attributes.get(name)
    if spec is not None and spec.type is MAP:
        raise CloudEventError("a string where an object belongs", where=name, clauses=_ATTRIBUTES)
    return value


#: Marks a missing member `data`, because None is the value of a member that is null.
_ABSENT: Final = object()


def _repeated_error(pairs: Pairs) -> CloudEventError:
    counts = Counter(name for name, _ in pairs)
    repeated = next(name for name, count in counts.items() if count > 1)
    return CloudEventError(
        "the member appears twice",
        where=_shown_member(repeated),
        clauses=(*_ENVELOPE, 'CloudEvents 1.0 "Context Attributes"'),
    )


#: The version attribute of the current versions ("specversion"), and its known values.
_CURRENT_ATTRIBUTE: Final = V1_0.specversion
_CURRENT_VERSIONS: Final = VERSION_ATTRIBUTES[_CURRENT_ATTRIBUTE]


def _version_of_members(members: dict[str, Any]) -> SpecVersion:
    label = members.get(_CURRENT_ATTRIBUTE)
    known = _CURRENT_VERSIONS.get(label) if type(label) is str else None
    if known is not None:
        return known
    attribute = version_attribute(members)
    if attribute is None:
        raise V1_0.missing_error(V1_0.specversion, _ENVELOPE)
    label = members[attribute]
    if not isinstance(label, str):
        raise CloudEventError(
            f"{_json_type(label)} where a string belongs", where=attribute, clauses=_ATTRIBUTES
        )
    return named_version(attribute, label, where=attribute, clauses=_ENVELOPE)


def _not_text(name: str, value: Any, version: SpecVersion) -> AttributeValue:
    """Checks and returns an attribute's value that is no JSON string (JSON format 2.2)."""
    defined = version.attributes.get(name)
    expected = _EXPECTED_EXTENSION if defined is None else _EXPECTED[defined.type is MAP]
    if isinstance(value, Decimal):
        value = INTEGER_MAX + 1  # too many digits for int(), so the check below must refuse it
    fits = isinstance(value, bool | int | JsonMap) if defined is None else type(value) is JsonMap
    if not fits or (defined is not None and defined.type is not MAP):
        raise CloudEventError(
            f"{_json_type(value)} where {expected} belongs", where=name, clauses=_ATTRIBUTES
        )
    native: AttributeValue = value
    version.check_read_native(name, native, where=name, clauses=_ATTRIBUTES)
    if defined is not None:
        version.check_text(name, canonical(native), where=name, clauses=_ATTRIBUTES)
    return native


#: The expected type of an attribute that the version defines, by whether it is a Map.
_EXPECTED: Final = {False: "a string", True: "an object"}
_EXPECTED_EXTENSION: Final = "a string, boolean or whole number"


def _decoded_data(
    data: Any,
    base64: Any,
    text: str,
    data_text: str | None,
    attributes: dict[str, Any],
    version: SpecVersion,
    start: int = -1,
) -> Data:
    """Returns the data of the event in document `text`, from `data` or from `data_base64`.

    `data_text` is the text of the member `data`, or None; `start` is the position of that member's
    value, or negative if the position is unknown.
    """
    if base64 is not None:
        if data is not _ABSENT:
            raise CloudEventError(
                "data and data_base64 exclude each other", where="data_base64", clauses=_DATA
            )
        return from_base64(base64, where="data_base64")
    if data is _ABSENT:
        return None
    if version.data_encoding in attributes:
        return from_base64(data, where="data")
    content_type = attributes.get(version.content_type)
    if content_type is None or declares_json(content_type):
        return JsonText("", text, start) if data_text is None else JsonText(data_text)
    if isinstance(data, str):
        if version.marks_binary or declares_text(content_type):
            return data
        return TextOrBase64(data)
    if not version.marks_binary:
        # Before 0.3 data may be any JSON value, whatever its content type.
        return JsonText("", text, start) if data_text is None else JsonText(data_text)
    advice = "; an event without data has no such member" if data is None else ""
    raise CloudEventError(
        f"{_json_type(data)} where the datacontenttype {quoted(content_type)} requires a string"
        f"{advice}",
        where="data",
        clauses=('JSON format 3.1.2 "Payload Deserialization"',),
    )


def _json_type(value: Any) -> str:
    """Returns JSON's name for the type of a value, for an error; never the value itself."""
    if isinstance(value, Pairs | JsonMap):
        return "an object"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, float):
        return "a number that is not whole"
    if isinstance(value, int | Decimal):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "null" if value is None else "an array"


def _shown_member(name: str) -> str:
    """Returns a member name for an error: unquoted if it is an ASCII identifier, else quoted."""
    return name if name.isascii() and name.isidentifier() else quoted(name)


# --- writing ------------------------------------------------------------------------------------


def to_json(event: CloudEvent, *, portable: bool = False) -> bytes:
    """Writes an event as a document of `application/cloudevents+json`.

    Returns the original bytes of an event that was read from JSON. For any other event, writes the
    attributes in the event's order, then the data. Text becomes a string, and a JSON value keeps
    its text. Bytes that are valid JSON and declared as JSON become the member `data`, without
    whitespace or a byte order mark around it. Other bytes become the member `data_base64`. Versions
    before 1.0 do not have this member; `_bytes_member` describes how they represent bytes.

    `portable` writes the data of a `+json` media type as Base64, if the version can mark Base64.
    The official SDKs for Java and Go know only some of these media types: they refuse an event
    whose member `data` is not a string if they do not know that its type is JSON. The original
    bytes of an event that was read from JSON are then returned only if they are portable.

    Raises CloudEventError if the version cannot represent the data, and for an object that is not a
    CloudEvent.
    """
    if not isinstance(event, CloudEvent):
        raise no_event_error(event)
    version = event._version
    data = event._data
    unportable = portable and version.marks_binary and _is_unportable(event)
    if event._document is not None and not (unportable and isinstance(data, JsonText)):
        return event._document
    # An attribute's name contains no character that JSON would escape.
    parts = [
        f'"{name}":{encode_basestring(value) if type(value) is str else json_of(value)}'
        for name, value in event._attributes.items()
    ]
    if isinstance(data, JsonText) and unportable:
        parts.append(_bytes_member(event.data_bytes() or b"", event, as_base64=True))
    elif isinstance(data, JsonText):
        parts.append(f'"data":{data.text}')
    elif isinstance(data, str):
        if isinstance(data, TextOrBase64) and version.marks_binary:
            raise unmarked_error()
        parts.append(f'"data":{dump_json(data)}')
    elif isinstance(data, bytes):
        parts.append(_bytes_member(data, event, as_base64=unportable))
    return f"{{{','.join(parts)}}}".encode()


def to_portable_json(event: CloudEvent) -> bytes:
    """Writes an event as `to_json(event, portable=True)`."""
    return to_json(event, portable=True)


#: The media types that the official SDKs for Java 4.0.1 and for Go 2.16.2 both take for JSON.
_PORTABLE_JSON: Final = re.compile(r"(?:application|text)/json(?:;.*)?")


def _is_unportable(event: CloudEvent) -> bool:
    """Returns True if the type of the data is JSON, and SDKs for other languages do not know it."""
    content_type = event.datacontenttype
    return (
        content_type is not None
        and declares_json(content_type)
        and _PORTABLE_JSON.fullmatch(content_type) is None
    )


def _bytes_member(data: bytes, event: CloudEvent, *, as_base64: bool = False) -> str:
    """Returns the member for data that is bytes: JSON bytes unchanged, other bytes as Base64.

    `as_base64` writes JSON bytes as Base64, too.

    1.0 has the member `data_base64`. 0.3 has an attribute that declares Base64. Versions before 0.3
    have neither: text becomes a string, and bytes of a type that is neither text nor JSON become
    unmarked Base64. These versions refuse bytes that would be read back differently, because of
    whitespace around JSON or a charset that adds a byte order mark.
    """
    version = event._version
    content_type = event.datacontenttype
    encoding_said = version.data_encoding in event._attributes
    as_json = None if encoding_said or as_base64 else as_json_text(data, content_type)
    if as_json is not None and (
        version.marks_binary or _represents(JsonText(as_json), data, content_type)
    ):
        return f'"data":{as_json}'
    encoded = binascii.b2a_base64(data, newline=False).decode()
    if version.base64_member:
        return f'"data_base64":"{encoded}"'
    if version.data_encoding is not None and not encoding_said:
        return f'"{version.data_encoding}":"base64","data":"{encoded}"'
    if encoding_said:
        return f'"data":"{encoded}"'
    if content_type is not None and not declares_json(content_type):
        if not declares_text(content_type):
            return f'"data":"{encoded}"'
        text = as_text(data, content_type)
        if text is not None and _represents(text, data, content_type):
            return f'"data":{dump_json(text)}'
    raise CloudEventError(
        "a reader would not get the same bytes, because this version cannot mark Base64: "
        f"set {version.content_type}, or replace the bytes with their text or JSON value",
        where="data",
        clauses=(version.clause("JSON format 3.1"),),
    )


def _represents(value: Data, data: bytes, content_type: str | None) -> bool:
    """Returns True if a reader of a document with the data `value` gets the bytes `data`."""
    try:
        return as_bytes(value, content_type) == data
    except CloudEventError:
        return False


def to_json_batch(events: Iterable[CloudEvent]) -> bytes:
    """Writes events as a document of `application/cloudevents-batch+json`.

    Raises CloudEventError if the versions of the events differ, and as `to_json` does.
    """
    batch = list(events)
    for event in batch:
        if not isinstance(event, CloudEvent):
            raise no_event_error(event)
    _check_one_version(batch)
    return b"[" + b",".join(to_json(event) for event in batch) + b"]"
