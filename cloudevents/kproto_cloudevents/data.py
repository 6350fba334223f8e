"""The data of an event: what it is in memory, and how it turns into bytes, text and JSON.

Data is one of: None (no data), bytes (Binary), str (text of a datacontenttype that is not JSON)
or `JsonText` (a JSON value as its text, so that numbers, order and spelling stay as they were
written). This module knows no attribute, header or binding; it never shows data in an error.
"""

from __future__ import annotations

import binascii
import codecs
import enum
import json
import re
from decimal import Decimal
from typing import Any, Final, NoReturn

from .errors import CloudEventError, quoted
from .media_type import parse_media_type

__all__ = [
    "JSON_DECODER",
    "JSON_NULL",
    "PAIRS_DECODER",
    "Data",
    "JsonNull",
    "JsonText",
    "Pairs",
    "as_bytes",
    "as_json_text",
    "declares_json",
    "describe",
    "dump_json",
    "equal",
    "from_base64",
    "from_value",
    "json_of",
    "json_value",
    "parse_json",
    "public",
    "raw_decode",
    "skip_blanks",
]


class JsonNull(enum.Enum):
    """The type of `JSON_NULL`."""

    NULL = "null"

    def __repr__(self) -> str:
        return "JSON_NULL"


#: Data that is an explicit JSON null, as distinct from no data (None). See JSON format 3.1.1.
JSON_NULL: Final = JsonNull.NULL


class JsonText:
    """A JSON value as the text it was written in; whoever makes one has checked the text.

    Either `text` is the value alone, or `document` is an event in the JSON format that has the
    value as its member `data`; then the value is looked for when it is first asked for.
    """

    __slots__ = ("_document", "_text")

    def __init__(self, text: str = "", *, document: str | None = None) -> None:
        self._text = text
        self._document = document

    @property
    def text(self) -> str:
        """The value's text, without blanks around it."""
        document = self._document
        if document is not None:
            start = _data_start(document)
            _, end = raw_decode(document, start)
            self._text = document[start:end]
            self._document = None
        return self._text

    def parse(self) -> Any:
        """The value; a new object each time."""
        if self._document is None:
            return parse_json(self._text)
        return raw_decode(self._document, _data_start(self._document))[0]

    def __reduce__(self) -> tuple[object, ...]:
        return JsonText, (self.text,)


#: The name of the member `data`, escaped or not, up to its value. In a checked event it matches
#: nothing else before: a colon after a quote follows a name, a name with `\"` in it is refused,
#: and no other member of an event is an object.
_DATA_NAME: Final = re.compile(
    '"(?:d|\\\\u0064)(?:a|\\\\u0061)(?:t|\\\\u0074)(?:a|\\\\u0061)"[ \\t\\n\\r]*:[ \\t\\n\\r]*'
)


def _data_start(document: str) -> int:
    """Where the value of the member `data` starts."""
    match = _DATA_NAME.search(document)
    if match is None:
        raise AssertionError("whoever made the JsonText has seen the member")
    return match.end()


Data = bytes | str | JsonText | None

_DATA_CLAUSES = ('JSON format 3.1.1 "Payload Serialization"',)


def from_value(value: Any, content_type: str | None) -> Data:
    """Data from what a caller passes, as the datacontenttype declares it (JSON format 3.1.1).

    bytes are Binary; a str is text unless the type is JSON or absent, then it is a JSON string;
    `JSON_NULL` is an explicit null; anything else must be a JSON value. Raises CloudEventError
    for a value that cannot be what the datacontenttype says.
    """
    if value is None or isinstance(value, bytes | JsonText):
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
    """Binary data from Base64 text. Raises CloudEventError for anything else."""
    if isinstance(text, str):
        try:
            return binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            pass
    raise CloudEventError("the value is not Base64", where=where, clauses=("JSON format 3.1",))


def public(data: Data) -> Any:
    """Data as a caller sees it: bytes, str, the JSON value, `JSON_NULL`, or None for no data."""
    if isinstance(data, JsonText):
        value = data.parse()
        return JSON_NULL if value is None else value
    return data


def as_bytes(data: Data, content_type: str | None) -> bytes | None:
    """Data as the bytes of a message's payload; None stays None.

    Text is encoded by the datacontenttype's charset, UTF-8 when it names none; JSON escapes what
    the charset does not have. Raises CloudEventError for an unknown charset, and for other text
    that it cannot encode.
    """
    if data is None or isinstance(data, bytes):
        return data
    text = data.text if isinstance(data, JsonText) else data
    charset = _charset(content_type)
    try:
        return text.encode(charset)
    except UnicodeError:
        if isinstance(data, JsonText):
            return _NOT_ASCII.sub(_escape, text).encode(charset)
        raise CloudEventError(
            f"the text has characters that the charset {charset} cannot encode",
            where="data",
            clauses=_DATA_CLAUSES,
        ) from None


def json_value(data: Data, content_type: str | None) -> Any:
    """Data as a JSON value, bytes and text parsed; an explicit null is None.

    Raises CloudEventError when there is no data or when it is no JSON.
    """
    if isinstance(data, JsonText):
        return data.parse()
    if data is None:
        raise CloudEventError("the event has no data", where="data")
    return parse_json(data if isinstance(data, str) else _decode_json(data, content_type))


def as_json_text(data: bytes, content_type: str | None) -> str | None:
    """The text of bytes that are JSON and are declared so; None otherwise."""
    if content_type is None or not declares_json(content_type):
        return None
    try:
        text = _decode_json(data, content_type)
        parse_json(text)
    except CloudEventError:
        return None
    return text.strip(" \t\n\r")


def equal(one: Data, other: Data, content_type: str | None) -> bool:
    """True when both are the same data of the same datacontenttype, however they are held.

    JSON values compare as JSON (blanks, member order and number spelling do not matter, `1`,
    `1.0` and `true` are three values); bytes and text compare as the bytes they are or become.
    """
    if isinstance(one, JsonText) or isinstance(other, JsonText):
        if one is None or other is None:
            return False
        try:
            return _sorted_json(one, content_type) == _sorted_json(other, content_type)
        except CloudEventError:
            return False
    try:
        return as_bytes(one, content_type) == as_bytes(other, content_type)
    except CloudEventError:
        # A charset that is not known, or does not have a character.
        return one == other


def describe(data: Data) -> str:
    """What a repr may say of data: its kind and size, never its content."""
    if data is None:
        return "none"
    if isinstance(data, bytes):
        return f"<{len(data)} bytes>"
    if isinstance(data, str):
        return f"<text, {len(data)} characters>"
    return f"<JSON, {len(data.text)} characters>"


def declares_json(content_type: str) -> bool:
    """True when the media type is `*/json` or `*/*+json` (JSON format 3.1.1)."""
    media_type = parse_media_type(content_type)
    return media_type is not None and media_type.declares_json


# --- JSON, exact --------------------------------------------------------------------------------


class _NotJsonError(ValueError):
    """Raised from within the decoder for what Python reads and JSON does not have."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is no JSON value")


class Pairs(list[tuple[str, Any]]):
    """The members of a JSON object in their order, names that are there twice kept."""

    __slots__ = ()


def _any_int(text: str) -> int | Decimal:
    """An integer of any length: beyond Python's limit on digits it becomes a Decimal."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


#: Reads JSON as RFC 8259 has it: NaN and Infinity are refused.
JSON_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
#: The same, but every object comes as its pairs, which keeps names that are there twice.
PAIRS_DECODER: Final = json.JSONDecoder(object_pairs_hook=Pairs, parse_constant=_refuse_constant)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_NOT_ASCII: Final = re.compile("[^\\x00-\\x7f]")
_ASCII_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def raw_decode(text: str, start: int, decoder: json.JSONDecoder = JSON_DECODER) -> tuple[Any, int]:
    """Read one JSON value that starts at `start`; gives the value and where it ends.

    Raises CloudEventError that names the character, and for a value nested too deeply.
    """
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _json_error(f"{error.msg} at character {error.pos}") from None
    except _NotJsonError as error:
        raise _json_error(str(error)) from None
    except RecursionError:
        raise CloudEventError("the JSON is nested too deeply to be read") from None
    except ValueError:
        # An integer of more digits than int() takes; a decoder for these is slower.
        patient = json.JSONDecoder(
            object_pairs_hook=decoder.object_pairs_hook,
            parse_constant=_refuse_constant,
            parse_int=_any_int,
        )
        return raw_decode(text, start, patient)


def _json_error(reason: str) -> CloudEventError:
    return CloudEventError(f"not JSON: {reason}", clauses=("RFC 8259",))


def parse_json(text: str) -> Any:
    """Read a whole JSON text. Raises CloudEventError as `raw_decode` does."""
    start = skip_blanks(text, 0)
    value, end = raw_decode(text, start)
    end = skip_blanks(text, end)
    if end != len(text):
        raise _json_error(f"more follows the value at character {end}")
    return value


def dump_json(value: Any) -> str:
    """The JSON text of a Python value. Raises CloudEventError for one JSON cannot express."""
    try:
        text = _ENCODER.encode(value)
    except TypeError:
        raise _unwritable("a part of it has no JSON form") from None
    except RecursionError:
        raise _unwritable("it is nested too deeply") from None
    except ValueError as error:
        # "Out of range float values …", "Circular reference detected", "Exceeds the limit …"
        raise _unwritable(str(error)) from None
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            # A lone surrogate has an escape in JSON but no UTF-8.
            return _ASCII_ENCODER.encode(value)
    return text


def _unwritable(reason: str) -> CloudEventError:
    return CloudEventError(
        f"the value cannot be written as JSON: {reason}", where="data", clauses=_DATA_CLAUSES
    )


def json_of(value: Any) -> str:
    """The JSON text of a value that was read with its objects as `Pairs`."""
    try:
        return dump_json(_without_pairs(value))
    except RecursionError:
        raise CloudEventError("the JSON is nested too deeply to be read") from None


def _without_pairs(value: Any) -> Any:
    if isinstance(value, Pairs):
        return {name: _without_pairs(inner) for name, inner in value}
    if isinstance(value, list):
        return [_without_pairs(inner) for inner in value]
    return value


def skip_blanks(text: str, position: int) -> int:
    """The first position from `position` on that is no JSON blank."""
    while position < len(text) and text[position] in " \t\n\r":
        position += 1
    return position


def _sorted_json(data: bytes | str | JsonText, content_type: str | None) -> str:
    value = json_value(data, content_type)
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except RecursionError:
        raise CloudEventError("the JSON is nested too deeply to be compared") from None


def _decode_json(data: bytes, content_type: str | None) -> str:
    """Bytes of JSON as text: by the charset if one is named, else UTF-8 (RFC 8259, 8.1)."""
    charset = _charset(content_type)
    try:
        return data.decode(charset).removeprefix("\ufeff")
    except UnicodeError:
        raise CloudEventError(f"the data is not {charset}", where="data") from None


def _escape(match: re.Match[str]) -> str:
    """A character outside ASCII as JSON escapes it."""
    return _ASCII_ENCODER.encode(match[0])[1:-1]


def _charset(content_type: str | None) -> str:
    """The Python codec for a datacontenttype's charset; UTF-8 when it names none."""
    media_type = None if content_type is None else parse_media_type(content_type)
    charset = None if media_type is None else media_type.charset
    if charset is None:
        return "utf-8"
    try:
        codec = codecs.lookup(charset)
    except (LookupError, ValueError):
        codec = None
    # Python's registry also holds transforms (base64, rot13) that are no character sets.
    if codec is None or not getattr(codec, "_is_text_encoding", True):
        raise CloudEventError(
            f"the charset {quoted(charset)} is not known",
            where="datacontenttype",
            clauses=_DATA_CLAUSES,
        )
    return codec.name
