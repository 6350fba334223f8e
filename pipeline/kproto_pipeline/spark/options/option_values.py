"""Parses the text of one option: a boolean, a number, a duration, or one of a set of words.

Each parser takes the option's name and its text. It raises OptionError, whose message has both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from .errors import OptionError

__all__ = [
    "Parser",
    "parse_boolean",
    "parse_duration_ms",
    "parse_int32",
    "parse_not_negative",
    "parse_positive",
    "parse_text",
    "parse_whole_number",
    "word_parser",
]

#: Returns the value of an option from its name and text.
Parser: TypeAlias = Callable[[str, str], Any]

_MAX_INT32: Final = 2**31 - 1
_MAX_INT64: Final = 2**63 - 1

#: Milliseconds by unit of Spark's durations; a number without a unit is in milliseconds.
_MS_OF: Final = {
    "": 1.0,
    "us": 0.001,
    "ms": 1.0,
    "s": 1_000.0,
    "m": 60_000.0,
    "min": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}
_DURATION: Final = re.compile(r"([0-9]{1,15})\s*([a-z]*)", re.ASCII)


def parse_boolean(name: str, text: str) -> bool:
    """Parses `true` or `false`, ignoring case. Raises OptionError."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise OptionError(f"option {name} is {text!r}; it must be true or false")


def parse_whole_number(name: str, text: str, least: int, most: int) -> int:
    """Parses decimal digits, from `least` to `most`. Raises OptionError."""
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 20 and least <= int(digits) <= most:
        return int(digits)
    raise OptionError(
        f"option {name} is {text!r}; it must be a whole number from {least} to {most}"
    )


def parse_positive(name: str, text: str) -> int:
    """Parses a whole number from 1 to 2**63 - 1. Raises OptionError."""
    return parse_whole_number(name, text, 1, _MAX_INT64)


def parse_not_negative(name: str, text: str) -> int:
    """Parses a whole number from 0 to 2**63 - 1. Raises OptionError."""
    return parse_whole_number(name, text, 0, _MAX_INT64)


def parse_int32(name: str, text: str) -> int:
    """Parses a whole number from 1 to 2**31 - 1. Raises OptionError."""
    return parse_whole_number(name, text, 1, _MAX_INT32)


def parse_duration_ms(name: str, text: str) -> int:
    """Parses a duration in Spark's syntax (`15m`, `500ms`, `20 s`) to ms. Raises OptionError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or found[2] not in _MS_OF:
        raise OptionError(
            f"option {name} is {text!r}; it must be a duration such as 15m, 20s or 500ms"
        )
    return round(int(found[1]) * _MS_OF[found[2]])


def parse_text(name: str, text: str) -> str:
    """Returns the text without surrounding whitespace. Raises OptionError if it is empty."""
    if not text.strip():
        raise OptionError(f"option {name} is empty")
    return text.strip()


def word_parser(values: dict[str, Any], separator: str = " or ") -> Parser:
    """Returns a parser that maps each key of `values`, ignoring case, to its value."""
    by_word = {word.lower(): value for word, value in values.items()}

    def parse(name: str, text: str) -> Any:
        word = text.strip().lower()
        if word not in by_word:
            raise OptionError(f"option {name} is {text!r}; it must be {separator.join(values)}")
        return by_word[word]

    return parse
