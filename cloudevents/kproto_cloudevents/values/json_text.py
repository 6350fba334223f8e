"""Exact JSON: reads, compares and writes JSON text, and refuses everything that is not JSON.

Python's decoder accepts NaN, and keeps only the last of two equal names. Every decoder of this
module refuses NaN and Infinity. The decoders differ in the treatment of duplicate names and of
numbers.
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn

from ..errors import CloudEventError

__all__ = [
    "BLANKS",
    "COMPARING_DECODER",
    "JSON_DECODER",
    "PAIRS_DECODER",
    "UNIQUE_NAMES_DECODER",
    "Pairs",
    "compact_json",
    "dump_json",
    "escape_ascii",
    "member_texts",
    "parse_json",
    "raw_decode",
    "skip_blanks",
    "value_end",
]

#: The whitespace of JSON.
BLANKS: Final = " \t\n\r"

_RFC: Final = ("RFC 8259",)
_DEPTH: Final = ("RFC 8259, 9",)
_WRITING: Final = ('JSON format 3.1.1 "Payload Serialization"',)


class _NotJsonError(ValueError):
    """Raised inside a decoder for values that Python's decoder accepts but JSON does not have."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is no JSON value")


class Pairs(list[tuple[str, Any]]):
    """The members of a JSON object in order, with duplicate names."""

    __slots__ = ()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotJsonError("a name appears twice in one object")
    return members


def _exact_whole(text: str) -> tuple[str, str]:
    return "whole", "0" if text == "-0" else text


#: Numbers of any length and nearly any exponent; raises if it cannot represent a number exactly.
_EXACT: Final = decimal.Context(
    prec=decimal.MAX_PREC,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[decimal.InvalidOperation, decimal.Inexact],
)


def _exact_fraction(text: str) -> tuple[str, str]:
    try:
        number = _EXACT.create_decimal(text).normalize(_EXACT)
    except decimal.DecimalException:
        return "fraction", text
    return "fraction", str(number) if number else "0"  # -0.0 equals 0.0


def _any_int(text: str) -> int | Decimal:
    """Returns an integer as int; as Decimal if it has more digits than int() accepts."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


#: Accepts only what RFC 8259 allows, not NaN or Infinity. Keeps the last of two equal names.
JSON_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
#: Returns every object as `Pairs`, which keeps duplicate names.
PAIRS_DECODER: Final = json.JSONDecoder(object_pairs_hook=Pairs, parse_constant=_refuse_constant)
#: Refuses duplicate names.
UNIQUE_NAMES_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant
)
#: Returns numbers as pairs that compare exactly. Python's own numbers do not: 1, 1.0 and True are
#: equal, and so are 1e400 and 1e500.
COMPARING_DECODER: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_exact_whole, parse_float=_exact_fraction
)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

# --- reading ------------------------------------------------------------------------------------


def raw_decode(text: str, start: int, decoder: json.JSONDecoder = JSON_DECODER) -> tuple[Any, int]:
    """Reads the JSON value that begins at `start`; returns the value and its end position.

    Raises CloudEventError if the value is not JSON or is nested too deeply.
    """
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _json_error(f"{error.msg} at character {error.pos}") from None
    except _NotJsonError as error:
        raise _json_error(str(error)) from None
    except RecursionError:
        raise CloudEventError("the JSON is nested too deeply to be read", clauses=_DEPTH) from None
    except ValueError:
        # int() refuses an integer with too many digits. The decoder below is slower.
        patient = json.JSONDecoder(
            object_pairs_hook=decoder.object_pairs_hook,
            parse_constant=_refuse_constant,
            parse_int=_any_int,
        )
        return raw_decode(text, start, patient)


def _json_error(reason: str) -> CloudEventError:
    return CloudEventError(f"not JSON: {reason}", clauses=_RFC)


def parse_json(text: str, decoder: json.JSONDecoder = JSON_DECODER) -> Any:
    """Reads a whole JSON text. Raises CloudEventError as `raw_decode` does."""
    start = skip_blanks(text, 0)
    value, end = raw_decode(text, start, decoder)
    end = skip_blanks(text, end)
    if end != len(text):
        raise _json_error(f"more follows the value at character {end}")
    return value


def value_end(text: str, start: int) -> int:
    """Returns the end of the value that begins at `start`, in a text that is known to be JSON.

    Accepts any nesting depth, unlike the decoder. The decoder could fail on a checked text, because
    the stack may be deeper now than it was during the check.
    """
    try:
        return raw_decode(text, start)[1]
    except CloudEventError:
        depth = 0
        for match in _STRING_OR_BRACKET.finditer(text, start):
            mark = match[0]
            depth += (mark in "[{") - (mark in "]}")
            if depth == 0:
                return match.end()
        raise


def skip_blanks(text: str, position: int) -> int:
    """Returns the first position at or after `position` that is not JSON whitespace."""
    while position < len(text) and text[position] in BLANKS:
        position += 1
    return position


def member_texts(text: str, start: int) -> dict[str, str]:
    """Returns the text of each member's value in the object at `start`; `text` must be JSON."""
    texts: dict[str, str] = {}
    position = skip_blanks(text, start + 1)
    while text[position] != "}":
        name, end = raw_decode(text, position)
        colon = skip_blanks(text, end)
        value_start = skip_blanks(text, colon + 1)
        _, end = raw_decode(text, value_start)
        texts[name] = text[value_start:end]
        position = skip_blanks(text, end)
        if text[position] == ",":
            position = skip_blanks(text, position + 1)
    return texts


_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')

# --- writing ------------------------------------------------------------------------------------

_NOT_ASCII: Final = re.compile("[^\\x00-\\x7f]")
_STRING_OR_BLANKS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\n\r]+')
#: Characters that JSON text may have unescaped, but a String may not (CloudEvents 1.0 "String").
_NOT_FOR_HEADERS: Final = re.compile(
    "[\\x7f-\\x9f\\ud800-\\udfff\\ufdd0-\\ufdef"
    + "".join(f"\\U{plane:04x}fffe\\U{plane:04x}ffff" for plane in range(17))
    + "]"
)


def compact_json(text: str) -> str:
    """Returns the JSON text without whitespace between its tokens, as a valid CloudEvents String.

    Keeps the spelling of numbers, the names and their order. Escapes the characters that a String
    may not have.
    """
    return _NOT_FOR_HEADERS.sub(_escape, _STRING_OR_BLANKS.sub(_only_string, text))


def _only_string(match: re.Match[str]) -> str:
    return match[1] or ""


def escape_ascii(text: str) -> str:
    """Returns the JSON text with every non-ASCII character escaped."""
    return _NOT_ASCII.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character.isascii():
        return f"\\u{ord(character):04x}"
    return _ASCII_ENCODER.encode(character)[1:-1]


#: The objects that `_encode` is writing, by id; with them, `_encode` detects circular references.
_being_written: Final[dict[int, Any]] = {}


def _encoder_made_once() -> Callable[[Any, int], Iterable[str]]:
    """Creates one C encoder for all values, because `_ENCODER` would create one for each value.

    Encoding then takes a third of the time. If the C encoder is missing, returns a function that
    always raises TypeError.
    """
    try:
        made: Callable[[Any, int], Iterable[str]] = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # private
            _being_written, _ENCODER.default, encode_basestring, None, ":", ",", False, False, False
        )
    except (AttributeError, TypeError):

        def made(value: Any, level: int) -> Iterable[str]:
            raise TypeError

    return made


_encode: Final = _encoder_made_once()


def dump_json(value: Any) -> str:
    """Returns a Python value as JSON. Raises CloudEventError if JSON cannot represent it."""
    try:
        text = "".join(_encode(value, 0))
    except (TypeError, ValueError, LookupError, RecursionError):
        # Any failure, even one that another thread caused, leads to the slower encoder.
        _being_written.clear()
        text = _carefully_encoded(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            # A lone surrogate has an escape in JSON but no UTF-8.
            return _ASCII_ENCODER.encode(value)
    return text


def _carefully_encoded(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except TypeError:
        raise _unwritable("a part of it has no JSON form") from None
    except RecursionError:
        raise _unwritable("it is nested too deeply") from None
    except ValueError as error:
        # "Out of range float values …", "Circular reference detected", "Exceeds the limit …"
        raise _unwritable(str(error)) from None


def _unwritable(reason: str) -> CloudEventError:
    return CloudEventError(
        f"the value cannot be written as JSON: {reason}", where="data", clauses=_WRITING
    )
