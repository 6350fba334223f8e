"""Formats records by kcat's `-f` formats, such as `%t [%p] at %o: key %k, value %s\\n`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ..records.record import Record
from ..wire.errors import ConfigurationError
from .text_arguments import ESCAPES

__all__ = ["DIRECTIVES", "compile_format"]


class Directive(NamedTuple):
    """Prints a part of a record: the meaning of a letter after `%`, and its description."""

    description: str
    of: Callable[[Record], bytes]


def _length(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))


def _packed_length(data: bytes | None) -> bytes:
    return (-1 if data is None else len(data)).to_bytes(4, "big", signed=True)


def _headers(record: Record) -> bytes:
    return b",".join(
        b"%s=%s" % (name.encode("utf-8", "surrogateescape"), b"NULL" if value is None else value)
        for name, value in record.headers
    )


def _time(record: Record) -> bytes:
    if record.timestamp < 0:
        return b""
    try:
        moment = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # later than the year 9999
        return b"%d" % record.timestamp
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


#: kcat's letters and their meanings; `%D` is kproto's own.
DIRECTIVES: Final = {
    "s": Directive("value", lambda record: record.value or b""),
    "S": Directive("length of the value in bytes, -1 for null", lambda r: _length(r.value)),
    "R": Directive("length of the value as a big-endian int32", lambda r: _packed_length(r.value)),
    "k": Directive("key", lambda record: record.key or b""),
    "K": Directive("length of the key in bytes, -1 for null", lambda r: _length(r.key)),
    "T": Directive("timestamp in ms", lambda record: b"%d" % record.timestamp),
    "D": Directive("timestamp as ISO 8601 in UTC", _time),
    "h": Directive("headers, name=value joined by commas", _headers),
    "t": Directive("topic", lambda record: record.topic.encode()),
    "p": Directive("partition", lambda record: b"%d" % record.partition),
    "o": Directive("offset", lambda record: b"%d" % record.offset),
    "%": Directive("a percent sign", lambda record: b"%"),
}

_TOKEN: Final = re.compile(
    r"%(?P<letter>.)|\\x(?P<hex>[0-9A-Fa-f]{2})|\\(?P<escape>.)|[%\\]", re.DOTALL
)


def compile_format(text: str, null: bytes = b"") -> Callable[[Record], bytes]:
    """Returns the function that formats a record by `text`; a null key or value is `null`.

    Escapes are `\\n`, `\\r`, `\\t`, `\\0`, `\\\\` and `\\xHH`. Raises ConfigurationError for any
    other letter after `%` or a backslash.
    """
    parts: list[Callable[[Record], bytes]] = []
    at = 0
    for token in _TOKEN.finditer(text):
        parts += _literal(_bytes_of(text[at : token.start()]))
        at = token.end()
        letter, digits, escape = token["letter"], token["hex"], token["escape"]
        if letter in ("k", "s") and null:
            parts.append(_or_null(letter, null))
        elif letter in DIRECTIVES:
            parts.append(DIRECTIVES[letter].of)
        elif digits is not None:
            parts += _literal(bytes.fromhex(digits))
        elif escape in ESCAPES:
            parts += _literal(ESCAPES[escape])
        else:
            raise ConfigurationError(
                f"the format has {token[0]!r}, which has no meaning; the directives are "
                + ", ".join(f"%{name}" for name in DIRECTIVES)
            )
    parts += _literal(_bytes_of(text[at:]))
    return lambda record: b"".join([part(record) for part in parts])


def _or_null(letter: str, null: bytes) -> Callable[[Record], bytes]:
    def of(record: Record) -> bytes:
        data = record.key if letter == "k" else record.value
        return null if data is None else data

    return of


def _bytes_of(text: str) -> bytes:
    """Returns the bytes of an argument; those that are no UTF-8 are lone surrogates in the text."""
    return text.encode("utf-8", "surrogateescape")


def _literal(text: bytes) -> list[Callable[[Record], bytes]]:
    return [lambda record: text] if text else []
