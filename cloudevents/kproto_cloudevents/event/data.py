"""The data of an event: its representation, and its conversion to bytes, str and JSON.

Data is one of:
- None: no data.
- bytes: Binary.
- str: text of a datacontenttype that is not JSON.
- `JsonText`: a JSON value as its text, which keeps numbers, order and spelling.
- `TextOrBase64`: a string in a document of a version before 0.3; it is either text or Base64.

This module imports no attributes, no headers and no binding. Its errors never contain data.
"""

from __future__ import annotations

import codecs
import enum
import re
from typing import Any, Final

from ..errors import CloudEventError, quoted
from ..values.json_text import (
    COMPARING_DECODER,
    dump_json,
    escape_ascii,
    parse_json,
    raw_decode,
    value_end,
)
from ..values.media_type import parse_media_type
from ..values.types import base64_bytes

__all__ = [
    "EMPTY_VALUE",
    "JSON_NULL",
    "USUAL_TYPE",
    "Data",
    "EmptyValue",
    "JsonNull",
    "JsonText",
    "TextOrBase64",
    "as_bytes",
    "as_json_text",
    "as_payload",
    "as_text",
    "declares_json",
    "declares_text",
    "describe",
    "equal",
    "from_base64",
    "from_value",
    "json_value",
    "public",
    "unmarked_error",
]


class JsonNull(enum.Enum):
    """The type of `JSON_NULL`."""

    NULL = "null"

    def __repr__(self) -> str:
        return "JSON_NULL"


#: Data that is an explicit JSON null, as distinct from no data (None). See JSON format 3.1.1.
JSON_NULL: Final = JsonNull.NULL


class EmptyValue(enum.Enum):
    """The type of `EMPTY_VALUE`."""

    EMPTY = "an empty value"


#: No data, which a record has as an empty value. The event has no data, but its record has no null
#: value either: on a compacted topic, a null value is a tombstone.
EMPTY_VALUE: Final = EmptyValue.EMPTY


class JsonText:
    """The text of a JSON value as it was written; the creator has checked it.

    Either `text` is the value, or `document` is an event in the JSON format whose member `data` is
    the value. `start` is the position of the value in the document; if it is negative, an access
    to the value searches for the position.
    """

    __slots__ = ("_document", "_start", "_text")

    def __init__(self, text: str = "", document: str | None = None, start: int = -1) -> None:
        self._text = text
        self._document = document
        self._start = start

    @property
    def text(self) -> str:
        """Returns the value's text, without whitespace around it."""
        document = self._document
        if document is not None:
            start = self._start if self._start >= 0 else _data_start(document)
            self._text = document[start : value_end(document, start)]
            self._document = None
        return self._text

    def parse(self) -> Any:
        """Returns the value; a new object at each call."""
        document = self._document
        if document is None:
            return parse_json(self._text)
        return raw_decode(document, self._start if self._start >= 0 else _data_start(document))[0]

    def __reduce__(self) -> tuple[object, ...]:
        return JsonText, (self.text,)


class TextOrBase64(str):
    """The data of a JSON document of a version before 0.3: either text, or the Base64 of bytes.

    The document does not tell text from Base64. Such data is written as it was read. A conversion
    that depends on the difference raises CloudEventError.
    """

    __slots__ = ()


#: Matches the name of the member `data`, escaped or not, up to its value. In a checked event, no
#: earlier text matches: outside of strings, a colon follows only a name; the reader refuses a name
#: that contains `\"`; and the reader ensures that no other member of the event is an object.
_DATA_NAME: Final = re.compile(
    '"(?:d|\\\\u0064)(?:a|\\\\u0061)(?:t|\\\\u0074)(?:a|\\\\u0061)"[ \\t\\n\\r]*:[ \\t\\n\\r]*'
)


def _data_start(document: str) -> int:
    """Returns the position of the value of the member `data`."""
    match = _DATA_NAME.search(document)
    if match is None:
        raise AssertionError("the reader that made the JsonText found the member")
    return match.end()


Data = bytes | str | JsonText | EmptyValue | None

#: The datacontenttype that occurs most often; it is recognized without parsing.
USUAL_TYPE: Final = "application/json"

_DATA_CLAUSES = ('JSON format 3.1.1 "Payload Serialization"',)
_READ_CLAUSES = ('JSON format 3.1.2 "Payload Deserialization"',)
_UNMARKED_CLAUSES = ('CloudEvents 0.1 and 0.2 "JSON format 3.1"',)
_DATA_SECTION = ('CloudEvents 1.0 "Event Data"',)


#: The usual types of a caller's value. None of them is bytes, None or `JsonText`.
_USUAL_JSON: Final = frozenset({dict, list, str})


def from_value(value: Any, content_type: str | None) -> Data:
    """Converts a caller's value to data of the datacontenttype (JSON format 3.1.1).

    bytes are Binary. A str is text, or a JSON string if the type is JSON or absent. `JSON_NULL` is
    an explicit null. Any other value must be a JSON value. Raises CloudEventError for a value that
    the datacontenttype does not allow.
    """
    if type(value) not in _USUAL_JSON:
        if value is None or isinstance(value, bytes | JsonText | EmptyValue):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
    if content_type is None or declares_json(content_type):
        return JsonText(dump_json(None if value is JSON_NULL else value))
    if isinstance(value, str):
        return value
    raise CloudEventError(
        f"{type(value).__name__} cannot be data of {quoted(content_type)}: pass bytes or str",
        where="data",
        clauses=_DATA_CLAUSES,
    )


def from_base64(text: Any, *, where: str) -> bytes:
    """Decodes Base64 to Binary data. Raises CloudEventError if `text` is not Base64."""
    decoded = base64_bytes(text) if isinstance(text, str) else None
    if decoded is not None:
        return decoded
    raise CloudEventError("the value is not Base64", where=where, clauses=("JSON format 3.1",))


def public(data: Data) -> Any:
    """Returns data for a caller: bytes, str, the JSON value, `JSON_NULL`, or None for no data."""
    if isinstance(data, JsonText):
        value = data.parse()
        return JSON_NULL if value is None else value
    if isinstance(data, TextOrBase64):
        return str(data)
    return None if data is EMPTY_VALUE else data


def as_payload(data: Data, content_type: str | None) -> bytes | None:
    """Returns the value of a Kafka record: empty for `EMPTY_VALUE`, otherwise as `as_bytes`."""
    return b"" if data is EMPTY_VALUE else as_bytes(data, content_type)


def as_bytes(data: Data, content_type: str | None) -> bytes | None:
    """Returns data as the bytes of a message's payload; None for no data.

    Encodes text in the charset of the datacontenttype (default UTF-8). If the charset lacks a
    character, a JSON value gets an escape for it, and any other text raises CloudEventError. Also
    raises CloudEventError for an unknown charset, for a JSON value whose datacontenttype is not
    JSON, and for `TextOrBase64`.
    """
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, EmptyValue):
        return None
    if isinstance(data, JsonText):
        text = data.text
        if content_type is not None and not declares_json(content_type):
            raise CloudEventError(
                f"the data is a JSON value, and its type {quoted(content_type)} is not JSON: "
                "replace the data or its type",
                where="data",
                clauses=_UNMARKED_CLAUSES,
            )
    elif isinstance(data, TextOrBase64):
        raise unmarked_error()
    else:
        text = data
    charset = _charset(content_type)
    try:
        return text.encode(charset)
    except UnicodeError:
        escaped = escape_ascii(text) if isinstance(data, JsonText) else text
    try:
        return escaped.encode(charset)
    except UnicodeError:
        raise CloudEventError(
            f"the text has characters that the charset {charset} cannot encode",
            where="data",
            clauses=_DATA_CLAUSES,
        ) from None


def json_value(data: Data, content_type: str | None) -> Any:
    """Returns data as a JSON value, parsed from bytes or str; an explicit null is None.

    Raises CloudEventError if there is no data, if the data cannot be decoded or is not JSON, and
    for `TextOrBase64`.
    """
    if isinstance(data, JsonText):
        return data.parse()
    if data is None or isinstance(data, EmptyValue):
        raise CloudEventError("the event has no data", where="data", clauses=_DATA_SECTION)
    if isinstance(data, TextOrBase64):
        raise unmarked_error()
    return parse_json(data if isinstance(data, str) else _decode_json(data, content_type))


def as_json_text(data: bytes, content_type: str | None) -> str | None:
    """Returns the JSON text of bytes, without whitespace around it.

    Returns None if the bytes are not JSON or not declared as JSON, or if UTF-8 cannot encode the
    text.
    """
    if content_type is None or not declares_json(content_type):
        return None
    try:
        text = _decode_json(data, content_type)
        parse_json(text)
        text.encode()  # UTF-7, for example, decodes to lone surrogates, which UTF-8 lacks
    except (CloudEventError, UnicodeError):
        return None
    return text.strip(" \t\n\r")


def as_text(data: bytes, content_type: str) -> str | None:
    """Returns bytes decoded to str; None if their type is not text or they cannot be decoded."""
    if not declares_text(content_type):
        return None
    try:
        text = data.decode(_charset(content_type))
    except (CloudEventError, UnicodeError):
        return None
    return text


def unmarked_error() -> CloudEventError:
    """Returns the error for a conversion that must know whether `TextOrBase64` data is Base64."""
    return CloudEventError(
        "the string is either text or the Base64 of bytes, which the document does not tell: "
        "replace the data with the text or the bytes",
        where="data",
        clauses=_UNMARKED_CLAUSES,
    )


def equal(one: Data, other: Data, content_type: str | None) -> bool:
    """Returns True if `one` and `other` are the same data, in any representation.

    `one` and `other` have the datacontenttype `content_type`. If `one` or `other` is a JSON value,
    they are compared as JSON: whitespace and member order do not matter. `1.0` and `1e0` are equal;
    `1`, `1.0` and `true` differ. Otherwise their bytes are compared.
    """
    if isinstance(one, JsonText) or isinstance(other, JsonText):
        if isinstance(one, EmptyValue | None) or isinstance(other, EmptyValue | None):
            return False
        if isinstance(one, JsonText) and isinstance(other, JsonText) and one.text == other.text:
            return True  # not parsed, so the nesting depth does not matter
        try:
            same: bool = _comparable(one, content_type) == _comparable(other, content_type)
        except (CloudEventError, RecursionError):
            return False
        return same
    try:
        return as_bytes(one, content_type) == as_bytes(other, content_type)
    except CloudEventError:
        # The charset is unknown, or cannot encode a character.
        return one == other


def describe(data: Data) -> str:
    """Describes data for a repr: its representation and size, never its content."""
    if data is None or isinstance(data, EmptyValue):
        return "none"
    if isinstance(data, bytes):
        return f"<{len(data)} bytes>"
    if isinstance(data, TextOrBase64):
        return f"<text or Base64, {len(data)} characters>"
    if isinstance(data, str):
        return f"<text, {len(data)} characters>"
    return f"<JSON, {len(data.text)} characters>"


def declares_json(content_type: str) -> bool:
    """Returns True if the media type is `*/json` or `*/*+json` (JSON format 3.1.1)."""
    if content_type == USUAL_TYPE:
        return True
    media_type = parse_media_type(content_type)
    return media_type is not None and media_type.declares_json


def declares_text(content_type: str) -> bool:
    """Returns True if the media type is text: `text/*`, XML, or any type with a charset."""
    media_type = parse_media_type(content_type)
    return media_type is not None and media_type.declares_text


def _comparable(data: bytes | str | JsonText, content_type: str | None) -> Any:
    """Decodes JSON data for comparison: `==` is True only for values that are equal in JSON."""
    text = data.text if isinstance(data, JsonText) else data
    if isinstance(text, bytes):
        text = _decode_json(text, content_type)
    return parse_json(text, COMPARING_DECODER)


def _decode_json(data: bytes, content_type: str | None) -> str:
    """Decodes JSON bytes by the charset of the content type, by default UTF-8 (RFC 8259, 8.1)."""
    charset = _charset(content_type)
    try:
        return data.decode(charset).removeprefix("\ufeff")
    except UnicodeError:
        raise CloudEventError(
            f"the data is not {charset}", where="data", clauses=_READ_CLAUSES
        ) from None


def _charset(content_type: str | None) -> str:
    """Returns the name of Python's codec for the charset in a datacontenttype, by default UTF-8.

    Raises CloudEventError for an unknown charset.
    """
    if content_type is None or content_type == USUAL_TYPE:
        return "utf-8"
    media_type = parse_media_type(content_type)
    charset = None if media_type is None else media_type.charset
    if charset is None:
        return "utf-8"
    try:
        codec = codecs.lookup(charset)
    except (LookupError, ValueError):
        codec = None
    # Python's registry also has transforms (base64, rot13) that are not character sets.
    if codec is None or not getattr(codec, "_is_text_encoding", True):
        raise CloudEventError(
            f"the charset {quoted(charset)} is not known",
            where="datacontenttype",
            clauses=_DATA_CLAUSES,
        )
    return codec.name
