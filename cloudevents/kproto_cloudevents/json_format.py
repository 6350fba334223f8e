"""The JSON event format and the JSON batch format: an event as one JSON document.

Reading keeps the document, so that writing the event again gives the same bytes; data that is a
JSON value keeps its text even when the event goes out in another form. This module knows no
header and no binding.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .data import (
    Data,
    JsonText,
    as_json_text,
    declares_json,
    dump_json,
    raw_decode,
    skip_blanks,
)
from .errors import CloudEventError, quoted
from .event import CloudEvent
from .types import AttributeValue, canonical
from .versions import SpecVersion, spec_version

__all__ = ["from_json", "from_json_batch", "to_json", "to_json_batch"]

_ATTRIBUTES: Final = ("JSON format 2.2",)
_ENVELOPE: Final = ("JSON format 3",)
_DATA: Final = ("JSON format 3.1",)
_BATCH: Final = ("JSON format 4",)


# --- reading ------------------------------------------------------------------------------------


def from_json(document: bytes | str) -> CloudEvent:
    """Read an event from a document of `application/cloudevents+json`.

    Raises CloudEventError for what is no JSON, no event, or breaks a rule of its version;
    UnknownVersionError for a specversion that has no table.
    """
    text = _text(document)
    members, end = _members(text, skip_blanks(text, 0))
    if skip_blanks(text, end) != len(text):
        raise CloudEventError(f"more follows the event at character {end}", clauses=_ENVELOPE)
    return _event(members, document if isinstance(document, bytes) else document.encode())


def from_json_batch(document: bytes | str) -> list[CloudEvent]:
    """Read the events of a document of `application/cloudevents-batch+json`, all or none.

    Raises CloudEventError that says which element is wrong, and when versions differ.
    """
    text = _text(document)
    events = []
    for index, (start, end, members) in enumerate(_elements(text)):
        try:
            events.append(_event(members, text[start:end].encode()))
        except CloudEventError as error:
            where = f"event {index}" if error.where is None else f"event {index}, {error.where}"
            raise type(error)(error.reason, where=where, clauses=error.clauses) from None
    if len({event.specversion for event in events}) > 1:
        raise CloudEventError(
            "the events of one batch have one specversion",
            clauses=('CloudEvents 1.0 "Message"',),
        )
    return events


def _text(document: bytes | str) -> str:
    if isinstance(document, str):
        if document.isascii() or _has_utf8(document):
            return document
        raise CloudEventError("the document has an unpaired surrogate", clauses=("RFC 8259, 8.1",))
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


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _elements(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The objects of a batch, with where each starts and ends."""
    position = skip_blanks(text, 0)
    if text[position : position + 1] != "[":
        raise CloudEventError("a batch is a JSON array", clauses=_BATCH)
    position = skip_blanks(text, position + 1)
    if text[position : position + 1] == "]":
        _check_end(text, position + 1)
        return
    while True:
        members, end = _members(text, position)
        yield position, end, members
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


#: A member whose name is plain and, where it is a string without escapes, its value and what
#: follows. One match reads a usual attribute; every other member takes the decoder.
_MEMBER: Final = re.compile(
    r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*'
    r'(?:"([^"\\\x00-\x1f]*)"[ \t\n\r]*([,}]))?'
)
_SEPARATOR: Final = re.compile(r"[ \t\n\r]*([,}])")
_COLON: Final = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")


class _Written:
    """A member's value with the text it was written in."""

    __slots__ = ("text", "value")

    def __init__(self, value: Any, text: str) -> None:
        self.value = value
        self.text = text


def _members(text: str, start: int) -> tuple[dict[str, Any], int]:
    """The members of the object at `start` and where it ends; `data` comes as `_Written`.

    The object is walked here, not by the decoder, because the decoder lets the last of two equal
    names win and forgets how a number was written.
    """
    if text[start : start + 1] != "{":
        raise CloudEventError("an event is a JSON object", clauses=_ENVELOPE)
    members: dict[str, Any] = {}
    position = skip_blanks(text, start + 1)
    if text[position : position + 1] == "}":
        return members, position + 1
    mark = ","
    while mark == ",":
        match = _MEMBER.match(text, position)
        if match is not None and match[3] is not None and match[1] != "data":
            name, value, mark = match.groups()
            position = match.end()
        else:
            name, value, mark, position = _other_member(text, position, match)
        if name in members:
            raise CloudEventError(
                "the member appears twice",
                where=_shown(name),
                clauses=(*_ENVELOPE, 'CloudEvents 1.0 "Context Attributes"'),
            )
        members[name] = value
    return members, position


def _other_member(
    text: str, position: int, match: re.Match[str] | None
) -> tuple[str, Any, str, int]:
    """A member that one match does not read: its name, value, what follows, and where that ends."""
    if match is None:
        name, start = _member_name(text, position)
    elif match[3] is None:
        name, start = match[1], match.end()
    else:
        name, start = match[1], match.start(2) - 1
    value, end = raw_decode(text, start)
    if name == "data":
        value = _Written(value, text[start:end])
    mark, position = _separator(text, end)
    return name, value, mark, position


def _member_name(text: str, position: int) -> tuple[str, int]:
    """A name the pattern cannot read (escapes, or no name at all), and where its value starts."""
    position = skip_blanks(text, position)
    name, end = raw_decode(text, position)
    colon = _COLON.match(text, end)
    if not isinstance(name, str) or colon is None:
        raise CloudEventError(f"not JSON: no member at character {position}", clauses=("RFC 8259",))
    return name, colon.end()


def _separator(text: str, position: int) -> tuple[str, int]:
    match = _SEPARATOR.match(text, position)
    if match is None:
        raise CloudEventError(
            f"not JSON: the object is broken at character {position}", clauses=("RFC 8259",)
        )
    return match[1], match.end()


def _event(members: dict[str, Any], document: bytes) -> CloudEvent:
    version = _version(members)
    data = members.pop("data", None)
    base64 = members.pop("data_base64", None)
    attributes: dict[str, AttributeValue] = {}
    for name, value in members.items():
        if name not in version.attributes:
            version.check_name(name, where=_shown(name), clauses=_ATTRIBUTES)
        if value is not None:
            attributes[name] = _attribute(name, value, version)
    for name in version.required:
        if name not in attributes:
            raise version.missing_error(name, _ENVELOPE)
    content_type = attributes.get(version.content_type)
    held = _data(data, base64, None if content_type is None else canonical(content_type))
    return CloudEvent._decoded(version, attributes, held, document, None)


def _version(members: dict[str, Any]) -> SpecVersion:
    label = members.get("specversion")
    if label is None:
        raise CloudEventError(
            "the required attribute is missing",
            where="specversion",
            clauses=(*_ENVELOPE, 'CloudEvents 1.0 "REQUIRED Attributes"'),
        )
    if not isinstance(label, str):
        raise CloudEventError(
            f"{_kind(label)} where a string belongs", where="specversion", clauses=_ATTRIBUTES
        )
    return spec_version(label, where="specversion", clauses=_ENVELOPE)


def _attribute(name: str, value: Any, version: SpecVersion) -> AttributeValue:
    """The value of a member that is an attribute, checked (JSON format 2.2)."""
    if isinstance(value, str):
        version.check_text(name, value, where=name, clauses=_ATTRIBUTES)
        return value
    spec = version.attributes.get(name)
    if spec is not None or not isinstance(value, bool | int):
        expected = "a string" if spec is not None else "a string, boolean or whole number"
        raise CloudEventError(
            f"{_kind(value)} where {expected} belongs", where=name, clauses=_ATTRIBUTES
        )
    try:
        canonical(value)
    except CloudEventError as error:
        raise CloudEventError(
            error.reason, where=name, clauses=(*_ATTRIBUTES, *error.clauses)
        ) from None
    return value


def _data(data: _Written | None, base64: Any, content_type: str | None) -> Data:
    """The data of an event from its two members, of which one may be there."""
    if base64 is not None:
        if data is not None:
            raise CloudEventError(
                "data and data_base64 exclude each other", where="data_base64", clauses=_DATA
            )
        return _from_base64(base64)
    if data is None:
        return None
    if content_type is None or declares_json(content_type):
        return JsonText(data.text)
    if isinstance(data.value, str):
        return data.value
    raise CloudEventError(
        f"{_kind(data.value)} where the datacontenttype {quoted(content_type)} wants a string",
        where="data",
        clauses=('JSON format 3.1.2 "Payload Deserialization"',),
    )


def _from_base64(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return binascii.a2b_base64(value, strict_mode=True)
        except ValueError:
            pass
    raise CloudEventError("the member is not Base64", where="data_base64", clauses=_DATA)


def _kind(value: Any) -> str:
    """What JSON calls the kind of a value; never the value itself."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number" if isinstance(value, int) else "a number that is not whole"
    if isinstance(value, str):
        return "a string"
    if value is None:
        return "null"
    return "an array" if isinstance(value, list) else "an object"


def _shown(name: str) -> str:
    """A member name as an error's place: as it is when it is plain, else quoted."""
    return name if name.isascii() and name.isidentifier() else quoted(name)


# --- writing ------------------------------------------------------------------------------------

_encode_string = json.JSONEncoder(ensure_ascii=False).encode


def to_json(event: CloudEvent) -> bytes:
    """Write an event as a document of `application/cloudevents+json`.

    An event that was read from JSON gives the bytes it was read from. Otherwise attributes come
    in the event's order, data last: bytes as `data_base64`, except that bytes which are JSON and
    are declared so go in as they are; text as a string; a JSON value in the text it was made of.
    """
    if event._document is not None:
        return event._document
    parts = [
        f"{_encode_string(name)}:{_attribute_json(value)}"
        for name, value in event._attributes.items()
    ]
    member = _data_member(event)
    if member is not None:
        parts.append(member)
    return f"{{{','.join(parts)}}}".encode()


def to_json_batch(events: Iterable[CloudEvent]) -> bytes:
    """Write events as a document of `application/cloudevents-batch+json`.

    Raises CloudEventError when their versions differ.
    """
    batch = list(events)
    if len({event.specversion for event in batch}) > 1:
        raise CloudEventError(
            "the events of one batch have one specversion",
            clauses=('CloudEvents 1.0 "Message"',),
        )
    return b"[" + b",".join(to_json(event) for event in batch) + b"]"


def _attribute_json(value: AttributeValue) -> str:
    if isinstance(value, bool | int):
        return canonical(value)
    return _encode_string(canonical(value))


def _data_member(event: CloudEvent) -> str | None:
    data = event._data
    if data is None:
        return None
    if isinstance(data, JsonText):
        return f'"data":{data.text}'
    if isinstance(data, str):
        return f'"data":{dump_json(data)}'
    as_json = as_json_text(data, event.datacontenttype)
    if as_json is not None:
        return f'"data":{as_json}'
    return f'"data_base64":"{binascii.b2a_base64(data, newline=False).decode()}"'
