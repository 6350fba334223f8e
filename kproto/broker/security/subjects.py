"""Reads the subject of a certificate, such as `CN=alice,OU=bread`, which is the principal's name.

Parses a certificate (X.509, RFC 5280) up to the subject. The text is that of Java's
`X500Principal.getName()` (RFC 2253, the most specific name first), which Kafka uses unless
`ssl.principal.mapping.rules` is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ...wire.errors import AuthenticationError

__all__ = ["subject_of"]

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OBJECT_IDENTIFIER: Final = 0x06
_VERSION: Final = 0xA0

#: How many fields precede the subject, without the optional version: serial number, signature
#: algorithm, issuer, validity (RFC 5280, 4.1).
_BEFORE_SUBJECT: Final = 4

#: Attribute types with a short name (RFC 2253, 2.3), by object identifier. Other types are written
#: as object identifiers.
_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}

#: Tags of text types (UTF8String, PrintableString, TeletexString, IA5String, GeneralString,
#: BMPString), all of which Java reads as UTF-8; any other type is written as bytes.
_TEXTS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})

#: Java escapes each of these with a backslash.
_ESCAPED: Final = frozenset(',=+<>#;"\\')


class _DerValue(NamedTuple):
    """Holds a DER value: its tag, its content, and its complete bytes."""

    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """Returns the subject of a certificate in DER; "" if the subject is empty.

    Raises AuthenticationError if `certificate` cannot be parsed.
    """
    try:
        return _text(_subject(certificate))
    except (IndexError, StopIteration, ValueError):
        pass
    raise AuthenticationError("the client's certificate has a subject that cannot be read")


def _subject(certificate: bytes) -> _DerValue:
    signed = next(_values(next(_values(certificate)).content))
    parts = [part for part in _values(signed.content) if part.tag != _VERSION]
    subject = parts[_BEFORE_SUBJECT]
    if subject.tag != _SEQUENCE:
        raise ValueError
    return subject


def _text(subject: _DerValue) -> str:
    relative_names = list(_values(subject.content))
    return ",".join("+".join(_attributes(each)) for each in reversed(relative_names))


def _attributes(relative_name: _DerValue) -> Iterator[str]:
    """Yields `NAME=value` for each attribute of a relative distinguished name.

    Usually there is one attribute. Raises ValueError for invalid DER.
    """
    if relative_name.tag != _SET:
        raise ValueError
    for attribute in _values(relative_name.content):
        kind, value = _values(attribute.content)
        if kind.tag != _OBJECT_IDENTIFIER:
            raise ValueError
        number = _identifier(kind.content)
        name = _NAMES.get(number)
        if name is None or value.tag not in _TEXTS:
            yield f"{name or number}=#{value.whole.hex()}"
        else:
            text = value.content.decode("utf-8", "replace")
            yield f"{name}={_escape(text)}"


def _escape(text: str) -> str:
    """Returns an attribute value with the escapes of RFC 2253, 2.4, as Java writes them."""
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    after = len(text) - before - len(inner)
    escaped = "".join(f"\\{each}" if each in _ESCAPED else each for each in inner)
    return "\\ " * before + escaped.replace("\0", "\\00") + "\\ " * after


def _identifier(content: bytes) -> str:
    """Returns an object identifier as dotted numbers (X.690, 8.19)."""
    numbers: list[int] = []
    number = 0
    for octet in content:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _values(data: bytes) -> Iterator[_DerValue]:
    """Yields the consecutive DER values in `data` (X.690, 8.1)."""
    at = 0
    while at < len(data):
        tag, size, start = data[at], data[at + 1], at + 2
        if size & 0x80:
            octets = size & 0x7F
            size = int.from_bytes(data[start : start + octets], "big")
            start += octets
        if start + size > len(data):
            raise ValueError
        yield _DerValue(tag, data[start : start + size], data[at : start + size])
        at = start + size
