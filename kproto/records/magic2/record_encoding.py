"""Encodes a record (magic 2): key, value, headers. KIP-98.

For speed, this module does not check types. A wrong type raises one of
`new_record.ENCODE_FAILURES`; the caller then calls `new_record.check_new_record`, which names the
field at fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...wire.buffers import octets_of_record
from ...wire.compiled import __compiled__
from .. import log_format
from ..header_block import NO_HEADERS
from ..new_record import MAX_INT64
from ..varints import VARINTS, encode_varint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...wire.native import i64
    from ..header_block import Header

__all__ = [
    "NO_TIMESTAMP_YET",
    "NULL",
    "append_exact",
    "encode_exact",
    "encode_head",
    "encode_record",
    "header_prefixes",
]

#: The encoded length of a null key or value: -1.
NULL: Final = encode_varint(-1)
#: The latest timestamp of a batch without records: NaN, which is unequal to all timestamps.
NO_TIMESTAMP_YET: Final = float("nan")

_TABLE_SIZE: Final = 8192  # of VARINTS

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
    if __compiled__:
        try:
            return encode_exact(head, offset_delta, key, value, headers)
        except TypeError:
            pass  # another type, such as bytearray, is converted or refused below
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


def encode_exact(
    head: bytes,
    offset_delta: bytes,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header],
) -> bytes:
    """Encodes a record as `encode_record` does, for arguments of exactly the declared types.

    In compiled code, raises TypeError for any other type, and takes less time: `%` copies each part
    once.
    """
    key_part: bytes = b"" if key is None else key
    key_length = NULL if key is None else _length(len(key_part))
    value_part: bytes = b"" if value is None else value
    value_length = NULL if value is None else _length(len(value_part))
    if not headers:
        return b"%b%b%b%b%b%b%b" % (
            head,
            offset_delta,
            key_length,
            key_part,
            value_length,
            value_part,
            NO_HEADERS,
        )
    parts: list[bytes] = [
        b"%b%b%b%b%b%b%b"
        % (
            head,
            offset_delta,
            key_length,
            key_part,
            value_length,
            value_part,
            _length(len(headers)),
        )
    ]
    for name, content in headers:
        if content is not None:
            size: i64 = len(content)
            prefixes = _header_prefixes.get(name)
            if prefixes is not None and size < _MAX_PREFIX_SIZE:
                parts.append(prefixes[size])
            else:
                parts.append(_encode_header_name(name))
                parts.append(_length(size))
            parts.append(content)
        else:
            parts.append(_encode_header_name(name))
            parts.append(NULL)
    return b"".join(parts)


def append_exact(
    parts: list[bytes],
    room: i64,
    head: bytes,
    offset_delta: bytes,
    key: Any,
    value: Any,
    headers: Any,
) -> int:
    """Appends an encoded record with its length to `parts`, for compiled code.

    Returns the number of appended bytes; 0 if they would be more than `room`; -1 if a value or a
    header has a type that `encode_exact` does not accept. Appends nothing in these two cases.
    """
    at = len(parts)
    try:
        return _append(parts, room, head, offset_delta, key, value, headers)
    except TypeError:
        del parts[at:]
        return -1


def _append(
    parts: list[bytes],
    room: i64,
    head: bytes,
    offset_delta: bytes,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header],
) -> i64:
    key_part: bytes = b"" if key is None else key
    key_length = NULL if key is None else _length(len(key_part))
    value_part: bytes = b"" if value is None else value
    value_length = NULL if value is None else _length(len(value_part))
    size: i64 = len(head) + len(offset_delta) + len(key_length) + len(value_length)
    size += len(key_part) + len(value_part)
    count = NO_HEADERS
    at: i64 = len(parts)
    parts.append(count)  # replaced when the size is known
    if headers:
        count = _length(len(headers))
        for name, content in headers:
            if content is None:
                prefix = _encode_header_name(name) + NULL
            else:
                content_size: i64 = len(content)
                prefixes = _header_prefixes.get(name)
                if prefixes is not None and content_size < _MAX_PREFIX_SIZE:
                    prefix = prefixes[content_size]
                else:
                    prefix = _encode_header_name(name) + _length(content_size)
                size += content_size
            size += len(prefix)
            parts.append(prefix)
            if content is not None:
                parts.append(content)
    size += len(count)
    length = _length(size)
    size += len(length)
    if size > room:
        del parts[at:]
        return 0
    parts[at] = b"%b%b%b%b%b%b%b%b" % (
        length,
        head,
        offset_delta,
        key_length,
        key_part,
        value_length,
        value_part,
        count,
    )
    return size


def _length(size: i64) -> bytes:
    return VARINTS[size] if size < _TABLE_SIZE else encode_varint(size)


def header_prefixes(name: str) -> list[bytes]:
    """Returns the bytes before a header value of 0, 1, 2 … bytes: the name with both lengths.

    The list has `_MAX_PREFIX_SIZE` items. Raises one of `ENCODE_FAILURES` for a name that is no
    str, or that cannot be encoded.
    """
    prefixes = _header_prefixes.get(name)
    if prefixes is None:
        _encode_header_name(name)
        prefixes = _header_prefixes[name]
    return prefixes


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
