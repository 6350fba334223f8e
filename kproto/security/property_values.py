"""Parses the values of properties from text to Python values.

An error quotes a value only if it cannot be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..wire.durations import parse_duration
from ..wire.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ADDRESSES",
    "ANY_TEXT",
    "FILE",
    "OLD_RELEASE",
    "PEM",
    "SECRET",
    "SWITCH",
    "TEXT",
    "PropertyType",
    "choice",
    "kilobytes",
    "or_by_duration",
    "several",
    "whole",
]

#: Errors do not quote the values of properties with these prefixes. A user may mix up lines, so any
#: of these values may be a secret.
_HIDDEN: Final = ("sasl.", "ssl.", "https.")

#: How many characters of an invalid value an error quotes.
_SHOWN: Final = 40

#: A release of Kafka, and those that do not report their versions.
_RELEASE: Final = re.compile(r"[0-9]+(?:\.[0-9]+){1,3}")
_SILENT_RELEASE: Final = re.compile(r"0\.[89](?:\.[0-9]+){0,2}")

_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_LINE: Final = 64

#: Precedes the duration in a value of auto.offset.reset.
_BY_DURATION: Final = "by_duration:"


@dataclass(frozen=True, slots=True)
class PropertyType:
    """Parses the values of one type of property.

    `read` parses a text, or raises ValueError if the text is invalid. `may_be` describes the valid
    values, for the error message. If `is_secret`, the text is not stripped, and errors do not quote
    it.
    """

    may_be: str
    read: Callable[[str], Any]
    is_secret: bool = False

    def value(self, name: str, text: str) -> Any:
        """Returns the parsed `text` of the property `name`.

        Raises ConfigurationError for an invalid value.
        """
        try:
            return self.read(text if self.is_secret else text.strip())
        except ValueError:
            hidden = self.is_secret or name.startswith(_HIDDEN)
            is_ = "cannot be read" if hidden else f"is {_shortened(text)}"
            raise ConfigurationError(f"{name} {is_}; it must be {self.may_be}") from None


def whole(least: int, most: int = 2_147_483_647) -> PropertyType:
    """Returns a parser of integers from `least` to `most` (by default the largest Java int)."""

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise ValueError
        return int(text)

    return PropertyType(f"a whole number from {least} to {most}", read)


def kilobytes(least: int, most: int) -> PropertyType:
    """Returns a parser of sizes from `least` to `most` KB; the parser returns the size in bytes."""
    parsed = whole(least, most)
    return PropertyType(parsed.may_be, lambda text: int(parsed.read(text)) * 1024)


def choice(values: Mapping[str, Any], *, any_case: bool = False) -> PropertyType:
    """Returns a parser that accepts the keys of `values` and returns the value of a key.

    With `any_case`, upper and lower case are the same, and the keys of `values` must be lower-case.
    """

    def read(text: str) -> Any:
        key = text.lower() if any_case else text
        if key not in values:
            raise ValueError
        return values[key]

    named = [each or "empty" for each in values]
    return PropertyType(f"{', '.join(named[:-1])} or {named[-1]}", read)


def or_by_duration(other: PropertyType) -> PropertyType:
    """Returns a parser that also accepts `by_duration:` and an ISO-8601 duration (KIP-1106).

    The parser returns the duration as a timedelta, and other values as `other` does.
    """

    def read(text: str) -> Any:
        if not text.startswith(_BY_DURATION):
            return other.read(text)
        duration = parse_duration(text.removeprefix(_BY_DURATION))
        if duration.days < 0:
            raise ValueError
        return duration

    return PropertyType(f"{other.may_be}, or a duration such as by_duration:PT1H", read)


def _old_release(text: str) -> str | None:
    if _RELEASE.fullmatch(text) is None:
        raise ValueError
    return text if _SILENT_RELEASE.fullmatch(text) else None


def several(values: Mapping[str, Any]) -> PropertyType:
    """Returns a parser of comma-separated keys of `values`; the parser returns a tuple of values.

    Empty parts, as after a last comma, are dropped.
    """

    def read(text: str) -> tuple[Any, ...]:
        keys = [each.strip() for each in text.split(",") if each.strip()]
        if not keys or not set(keys) <= values.keys():
            raise ValueError
        return tuple(values[each] for each in keys)

    return PropertyType(f"some of {', '.join(values)}, separated by commas", read)


def _text(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _file(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError
    from pathlib import Path  # here, because few properties name a file

    return Path(text)


def _pem(text: str) -> str:
    """Returns PEM with the line breaks that OpenSSL needs.

    Kafka's clients accept spaces instead of line breaks. Raises ValueError if `text` has no block.
    """
    blocks = []
    for label, body in _PEM_BLOCK.findall(text):
        if ":" in body:  # headers of an encrypted key need their own lines
            blocks.append(f"-----BEGIN {label}-----{body}-----END {label}-----\n")
            continue
        letters = "".join(body.split())
        lines = [letters[at : at + _PEM_LINE] for at in range(0, len(letters), _PEM_LINE)]
        blocks.append("\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]))
    if not blocks:
        raise ValueError
    return "".join(blocks)


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"


#: Any text, which may be empty.
ANY_TEXT: Final = PropertyType("text", str)

#: Text that is not empty.
TEXT: Final = PropertyType("text, and not empty", _text)

#: A secret that is not empty. Errors do not quote it.
SECRET: Final = PropertyType("text, and not empty", _text, is_secret=True)

SWITCH: Final = choice({"true": True, "false": False}, any_case=True)

#: `host:port,host:port`, as a `Client` takes it.
ADDRESSES: Final = PropertyType("text, and not empty", _text)

#: A release before 0.10, whose brokers do not report their versions (KIP-35). Later releases report
#: them, so that the value is None.
OLD_RELEASE: Final = PropertyType("a release such as 0.9.0", _old_release)

#: The path of a file, which need not exist yet.
FILE: Final = PropertyType("the path of a file", _file)

#: Certificates or keys as inline PEM.
PEM: Final = PropertyType(
    "PEM: text with -----BEGIN …----- and -----END …----- in it (its lines may be separated by "
    "blanks, by \\n, or in a file by a '\\' at their ends)",
    _pem,
    is_secret=True,
)
