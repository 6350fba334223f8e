"""Encodes a record (magic 2): key, value, headers. KIP-98.

For speed it does not check types. A wrong type raises one of `new_record.ENCODE_FAILURES`; the
caller then calls `new_record.check_new_record`, which names the field at fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...wire.buffers import octets_of_record
from .. import log_format
from ..new_record import MAX_INT64
from ..record import NO_HEADERS
from ..varints import VARINTS, encode_varint

if TYPE_CHECKING:
    from typing import Any

__all__ = ["NO_TIMESTAMP_YET", "NULL", "encode_head", "encode_record"]

#: The encoded length of a null key or value: -1.
NULL: Final = encode_varint(-1)
#: The latest timestamp of a batch without records: NaN, which is unequal to all timestamps.
NO_TIMESTAMP_YET: Final = float("nan")

# Header names repeat. The cache maps a name to the encoded bytes before a value of 0, 1, 2 … bytes:
# the name's length, the name, the value's length.
_MAX_HEADER_NAMES: Final = 256
_MAX_PREFIX_SIZE: Final = 128
_header_prefixes: Final[dict[str, list[bytes]]] = {}


def encode_head(timestamp: int, delta: int) -> bytes:
    """Returns the encoded attributes and timestamp delta, the first bytes after a record's length.

    Raises ValueError if `timestamp` (ms) is out of range.
    """
    if not log_format.NO_TIMESTAMP <= timestamp <= MAX_INT64:
        raise ValueError("timestamp out of range")
    if delta > MAX_INT64:
        delta -= 1 << 64  # overflows like a Java long; adding it to the base overflows back
    return b"\x00" + encode_varint(delta)


def encode_record(head: bytes, offset_delta: bytes, key: Any, value: Any, headers: Any) -> bytes:
    """Encodes a record without the length in front of it.

    `head` is the result of `encode_head`, `offset_delta` is an encoded varint. Raises one of
    `ENCODE_FAILURES` for a value of a wrong type or too large.
    """
    if key is None:
        key = b""
        key_length = NULL
    else:
        if type(key) is not bytes:
            key = octets_of_record(key)
        try:
            key_length = VARINTS[len(key)]
        except IndexError:
            key_length = encode_varint(len(key))
    if value is None:
        value = b""
        value_length = NULL
    else:
        if type(value) is not bytes:
            value = octets_of_record(value)
        try:
            value_length = VARINTS[len(value)]
        except IndexError:
            value_length = encode_varint(len(value))
    if not headers:
        return b"".join((head, offset_delta, key_length, key, value_length, value, NO_HEADERS))
    count = encode_varint(len(headers)) if len(headers) > 63 else VARINTS[len(headers)]
    parts = [head, offset_delta, key_length, key, value_length, value, count]
    for name, content in headers:
        if type(content) is bytes:
            try:
                parts.append(_header_prefixes[name][len(content)])
                parts.append(content)
                continue
            except (KeyError, IndexError):  # a new name, or a long value
                pass
        elif content is not None:
            content = octets_of_record(content)
        parts.append(_encode_header_name(name))
        if content is None:
            parts.append(NULL)
        else:
            parts.append(encode_varint(len(content)))
            parts.append(content)
    return b"".join(parts)


def _encode_header_name(name: Any) -> bytes:
    """Returns a header's name, encoded, with its length in front; adds the name to the cache."""
    if not isinstance(name, str):
        raise TypeError("header name is not str")
    try:
        utf8 = name.encode()
    except UnicodeEncodeError:
        utf8 = name.encode("utf-8", "surrogateescape")  # a name that was read, see `Record`
    encoded = encode_varint(len(utf8)) + utf8
    if name not in _header_prefixes:
        if len(_header_prefixes) >= _MAX_HEADER_NAMES:
            _header_prefixes.clear()
        _header_prefixes[name] = [encoded + VARINTS[size] for size in range(_MAX_PREFIX_SIZE)]
    return encoded
