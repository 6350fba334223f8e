"""Decodes the header block of a record: the count of its headers, then names and values."""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..wire.compiled import __compiled__
from .varints import read_varint

if __compiled__:
    from ..wire.c_functions import headers_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..wire.native import i64

__all__ = [
    "NO_HEADERS",
    "Header",
    "decode_as_java",
    "decode_headers",
    "decode_headers_of",
    "latest_names",
    "read_headers",
]

Header: TypeAlias = tuple[str, bytes | None]

#: An encoded surrogate. Java decodes its three bytes to one U+FFFD, Python decodes them to three.
_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")

NO_HEADERS: Final = b"\x00"
"""The header block of a record without headers: a count of zero."""


def decode_as_java(text: bytes) -> str:
    """Decodes UTF-8 as Java's `String` does: U+FFFD stands for bytes that are not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", text).decode("utf-8", "replace")


# Header blocks of a topic mostly have the same names, values of the same lengths, and some values
# that are equal in all blocks. Such a block is decoded with a `Struct.unpack` and a comparison of
# the bytes between the values that differ; the blocks share the other headers. The cache maps the
# length of a block to the items of a template:
# - the unpack function;
# - the bytes before each value that differs, and those after the last one;
# - the headers of a block;
# - for each value that differs: the index of its header, the name, its index in the unpacked tuple;
# - the start and the end of each value in the block; -1 for null.
# The first template of a length has the values of one block. After each block with another value
# of a header, the new template has one value more that differs.
_Template: TypeAlias = tuple[
    Callable[[bytes], tuple[bytes, ...]],
    tuple[bytes, ...],
    list[Header],
    tuple[tuple[int, str, int], ...],
    list[int],
]
_templates: Final[dict[int, _Template]] = {}
# Maps the length of blocks to the number of blocks whose values had other bounds than the template.
# If the bounds often change, learning each block would take longer than it saves.
_other_bounds: Final[dict[int, int]] = {}
_LEARN_ONE_IN: Final = 4
_MAX_TEMPLATES: Final = 512
_MAX_TEMPLATE_HEADERS: Final = 64
_MAX_TEMPLATE_BYTES: Final = 4096

#: For compiled code: the latest name of the first header of a record, of the second header …
latest_names: Final[list[str]] = []


def decode_headers(block: bytes) -> list[Header]:
    """Returns the headers in `block`, the bytes from the header count to the end of the record.

    Raises ValueError for a negative count, a null name, and missing or extra bytes.
    """
    template = None if __compiled__ else _templates.get(len(block))
    if template is not None:
        unpack, expected, shared, differing, _ = template
        parts = unpack(block)
        if parts[::2] == expected:
            headers = shared.copy()
            for index, name, part in differing:
                headers[index] = name, parts[part]
            return headers
    try:
        return read_headers(block, 0, len(block))
    except IndexError:
        raise ValueError("the block ends inside a header") from None


def decode_headers_of(records: Iterable[Any]) -> None:
    """Decodes the headers of all `records`, in place.

    Raises ValueError, which names the offset of the record, for a corrupt header block.
    """
    find = _templates.get
    for record in records:
        block = record._headers
        if block is NO_HEADERS or block == NO_HEADERS:
            record._headers = []
            continue
        if isinstance(block, list):
            continue
        template = None if __compiled__ else find(len(block))  # `decode_headers` inlined
        if template is not None:
            unpack, expected, shared, differing, _ = template
            parts = unpack(block)
            if parts[::2] == expected:
                record._headers = headers = shared.copy()
                for index, name, part in differing:
                    headers[index] = name, parts[part]
                continue
        try:
            record._headers = decode_headers(block)
        except ValueError as error:
            raise ValueError(f"headers of the record at offset {record.offset}: {error}") from None


def read_headers(block: bytes, pos: i64, size: i64) -> list[Header]:
    """Returns the headers in the header block `block[pos:size]`.

    Raises ValueError as `decode_headers` does, and IndexError if the buffer ends inside a header.
    """
    if __compiled__:
        found = headers_in(block, pos, size, latest_names)  # pyright: ignore[reportPossiblyUnboundVariable]
        if found is not None:
            return found
    end: i64
    length: i64
    start: i64 = pos
    count: i64 = block[pos]
    pos += 1
    if count > 0x7F:
        count, pos = read_varint(block, start)
    if count & 1:
        raise ValueError("negative header count")
    count >>= 1
    headers: list[Header] = []
    # Compiled code reads a block in less time than a template takes.
    regular = (
        not __compiled__
        and not start
        and 0 < count <= _MAX_TEMPLATE_HEADERS
        and size <= _MAX_TEMPLATE_BYTES
    )
    bounds: list[int] = []  # of the values
    for _ in range(count):
        length = block[pos]
        pos += 1
        if length > 0x7F:
            length, pos = read_varint(block, pos - 1)
        if length & 1:
            raise ValueError(f"header {len(headers)}: null or negative name length")
        end = pos + (length >> 1)
        if end > size:
            raise ValueError(f"header {len(headers)}: name longer than the block")
        name = _decode_name(block[pos:end])
        length = block[end]
        pos = end + 1
        if length > 0x7F:
            length, pos = read_varint(block, end)
        if length & 1:  # any negative length means null, as in Kafka's DefaultRecord
            headers.append((name, None))
            bounds.append(-1)
            bounds.append(-1)
            continue
        end = pos + (length >> 1)
        if end > size:
            raise ValueError(f"header {name!r}: value longer than the block")
        headers.append((name, block[pos:end]))
        bounds.append(pos)
        bounds.append(end)
        pos = end
    if pos != size:
        raise ValueError(f"{size - pos} bytes after the last header")
    if regular:
        _learn_template(block, bounds, headers)
    return headers


def _decode_name(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")


def _learn_template(block: bytes, bounds: list[int], headers: list[Header]) -> None:
    """Adds a block to the cache; `bounds` are the start and the end of each value, -1 for null.

    If the cache has a template with other bounds, replaces it only for one block in four.
    """
    size = len(block)
    known = _templates.get(size)
    differs = [False] * len(headers)
    if known is None:
        if len(_templates) >= _MAX_TEMPLATES:
            _templates.clear()
            _other_bounds.clear()
    elif known[4] == bounds:
        # The bounds are equal, so the numbers of headers are equal, too.
        differs = [old != new for old, new in zip(known[2], headers, strict=True)]
        for index, _, _ in known[3]:
            differs[index] = True
    else:
        _other_bounds[size] = misses = _other_bounds.get(size, 0) + 1
        if misses % _LEARN_ONE_IN:
            return
    expected: list[bytes] = []
    layout: list[str] = []
    differing: list[tuple[int, str, int]] = []
    value_end = 0
    for index, (name, value) in enumerate(headers):
        if value is not None and differs[index]:
            start, end = bounds[2 * index], bounds[2 * index + 1]
            differing.append((index, name, 2 * len(expected) + 1))
            expected.append(block[value_end:start])
            layout.append(f"{start - value_end}s{end - start}s")
            value_end = end
    expected.append(block[value_end:])
    layout.append(f"{size - value_end}s")
    unpack = Struct("".join(layout)).unpack
    _templates[size] = unpack, tuple(expected), headers.copy(), tuple(differing), bounds
