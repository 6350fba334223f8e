"""Defines `Record`, and decodes the headers of a record at the first access to them.

The headers of a record are encoded in a header block: their count, then names and values.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..wire.compiled import __compiled__
from ..wire.errors import CorruptBatchError
from ..wire.native import mypyc_attr
from .log_format import CREATE_TIME, NO_TIMESTAMP
from .varints import read_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..wire.native import i64

__all__ = ["BatchOrigin", "Header", "Record", "decode_as_java"]

Header: TypeAlias = tuple[str, bytes | None]

_SHOWN_BYTES: Final = 48

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


@mypyc_attr(allow_interpreted_subclasses=True)
class BatchOrigin:
    """Holds the fields that all records of a batch share: topic, partition and timestamp type.

    Also has the position of the batch in the buffer and its base offset, for errors in headers.
    An origin must not be changed, because many records refer to it.
    """

    __slots__ = ("base_offset", "partition", "position", "timestamp_type", "topic")

    def __init__(
        self,
        topic: str = "",
        partition: int = -1,
        timestamp_type: int = CREATE_TIME,
        position: int | None = None,
        base_offset: int | None = None,
    ) -> None:
        # Each argument has a default because mypyc's `__new__` calls `__init__` without arguments.
        self.topic = topic
        self.partition = partition
        self.timestamp_type = timestamp_type
        self.position = position
        self.base_offset = base_offset

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the fields for pickle and copy; the default fails in pickle protocols 0 and 1."""
        fields = self.topic, self.partition, self.timestamp_type, self.position, self.base_offset
        return BatchOrigin, fields


_NOWHERE: Final = BatchOrigin()


@mypyc_attr(allow_interpreted_subclasses=True)
class Record:
    """A record of a partition.

    - `offset`; `key` and `value`, bytes or None;
    - `timestamp` in ms since the epoch, -1 for none;
    - `timestamp_type`: 0 for create time, 1 for log append time, -1 if the magic has no timestamp;
    - `headers`: a list of (name, value or None), in order, with duplicates;
    - `topic` and `partition`: "" and -1 if the caller did not pass them to the reader.

    A byte of a header name that is not UTF-8 is a lone surrogate (U+DC80 to U+DCFF) in the name:
    Python's error handler `surrogateescape`. Such a name is written as the same bytes again. Java's
    consumer has U+FFFD instead.

    Two records are equal if all these fields are equal. Headers are decoded at the first access.
    The attribute byte of a record is not kept, because Kafka defines no bit of it.
    """

    __slots__ = ("_headers", "_origin", "key", "offset", "timestamp", "value")

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    _headers: bytes | list[Header]
    #: Shared by the records of a batch, so that creating a record sets one attribute, not five.
    _origin: BatchOrigin

    def __init__(
        self,
        offset: int = 0,
        timestamp: int = NO_TIMESTAMP,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Iterable[Header] = (),
        timestamp_type: int = CREATE_TIME,
        *,
        topic: str = "",
        partition: int = -1,
    ) -> None:
        # Each argument has a default because mypyc's `__new__` calls `__init__` without arguments.
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self._headers = list(headers)
        if topic or partition != -1 or timestamp_type != CREATE_TIME:
            self._origin = BatchOrigin(topic, partition, timestamp_type)
        else:
            self._origin = _NOWHERE

    @property
    def topic(self) -> str:
        """Returns the topic; "" if the record was decoded or created without a topic."""
        return self._origin.topic

    @topic.setter
    def topic(self, topic: str) -> None:
        of = self._origin
        self._origin = BatchOrigin(
            topic, of.partition, of.timestamp_type, of.position, of.base_offset
        )

    @property
    def partition(self) -> int:
        """Returns the partition; -1 if the record was decoded or created without a partition."""
        return self._origin.partition

    @partition.setter
    def partition(self, partition: int) -> None:
        of = self._origin
        self._origin = BatchOrigin(
            of.topic, partition, of.timestamp_type, of.position, of.base_offset
        )

    @property
    def timestamp_type(self) -> int:
        """Returns 0 for create time, 1 for log append time, -1 if the format has no timestamp."""
        return self._origin.timestamp_type

    @timestamp_type.setter
    def timestamp_type(self, timestamp_type: int) -> None:
        of = self._origin
        self._origin = BatchOrigin(
            of.topic, of.partition, timestamp_type, of.position, of.base_offset
        )

    @property
    def headers(self) -> list[Header]:
        """Returns the headers, (name, value or None), in order.

        Raises CorruptBatchError if the header block is corrupt.
        """
        block = self._headers
        if isinstance(block, list):
            return block
        try:
            headers = self._headers = [] if block == NO_HEADERS else decode_headers(block)
        except ValueError as error:
            raise CorruptBatchError(
                f"headers of the record at offset {self.offset}: {error}",
                offset=self._origin.position,
                base_offset=self._origin.base_offset,
            ) from None
        return headers

    @headers.setter
    def headers(self, headers: Iterable[Header]) -> None:
        self._headers = list(headers)

    @property
    def encoded_headers(self) -> bytes | None:
        """Returns the encoded headers; None if the headers were decoded, or were set."""
        block = self._headers
        return block if isinstance(block, bytes) else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.topic == other.topic
            and self.partition == other.partition
            and self.timestamp == other.timestamp
            and self.timestamp_type == other.timestamp_type
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    __hash__ = None  # type: ignore[assignment]  # a mutable class; mypy refuses this idiom

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the fields for pickle and copy; the default fails in pickle protocols 0 and 1."""
        fields = self.offset, self.timestamp, self.key, self.value, self._headers, self._origin
        return _restored, (type(self), *fields), getattr(self, "__dict__", None)

    def __repr__(self) -> str:
        block = self._headers
        if isinstance(block, bytes):
            try:
                block = decode_headers(block)
            except ValueError:
                block = []  # a repr must not raise; `headers` raises the error
        headers = ", ".join(f"({name!r}, {_shown(value)})" for name, value in block[:8])
        more = ", …" if len(block) > 8 else ""
        place = f"topic={self.topic!r}, partition={self.partition}, " if self.topic else ""
        return (
            f"Record({place}offset={self.offset}, timestamp={self.timestamp}, "
            f"key={_shown(self.key)}, value={_shown(self.value)}, headers=[{headers}{more}])"
        )


def _restored(
    kind: type[Record],
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: bytes | list[Header],
    origin: BatchOrigin,
) -> Record:
    """Returns the record of which `Record.__reduce__` has returned the fields."""
    record: Record = kind.__new__(kind)
    record.offset = offset
    record.timestamp = timestamp
    record.key = key
    record.value = value
    record._headers = headers
    record._origin = origin
    return record


def _shown(value: bytes | None) -> str:
    if value is None or len(value) <= _SHOWN_BYTES:
        return repr(value)
    return f"{value[:_SHOWN_BYTES]!r}… ({len(value)} bytes)"


# Header blocks of a topic mostly have the same names and values of the same lengths. Such a block
# is decoded with a `Struct.unpack` and a comparison of the bytes between the values. The cache maps
# the length of a block to the unpack function, the bytes before each value, and each name with the
# index of its value in the unpacked tuple. A plain loop over the names takes half as long as
# `list(zip(…))`.
_Template: TypeAlias = (
    "tuple[Callable[[bytes], tuple[bytes, ...]], tuple[bytes, ...], tuple[tuple[str, int], ...]]"
)
_templates: Final[dict[int, _Template]] = {}
_MAX_TEMPLATES: Final = 512
_MAX_TEMPLATE_HEADERS: Final = 64
_MAX_TEMPLATE_BYTES: Final = 4096


def decode_headers(block: bytes) -> list[Header]:
    """Returns the headers in `block`, the bytes from the header count to the end of the record.

    Raises ValueError for a negative count, a null name, and missing or extra bytes.
    """
    template = None if __compiled__ else _templates.get(len(block))
    if template is not None:
        unpack, expected, value_indexes = template
        parts = unpack(block)
        if parts[::2] == expected:
            headers: list[Header] = []
            for name, index in value_indexes:
                headers.append((name, parts[index]))
            return headers
    try:
        return read_headers(block, 0, len(block))
    except IndexError:
        raise ValueError("the block ends inside a header") from None


def decode_headers_of(records: list[Record]) -> None:
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
            unpack, expected, value_indexes = template
            parts = unpack(block)
            if parts[::2] == expected:
                headers: list[Header] = []
                for name, index in value_indexes:
                    headers.append((name, parts[index]))
                record._headers = headers
                continue
        try:
            record._headers = decode_headers(block)
        except ValueError as error:
            raise ValueError(f"headers of the record at offset {record.offset}: {error}") from None


def read_headers(block: bytes, pos: i64, size: i64) -> list[Header]:
    """Returns the headers in the header block `block[pos:size]`.

    Raises ValueError as `decode_headers` does, and IndexError if the buffer ends inside a header.
    """
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
    bounds: list[int] | None = [] if regular else None  # of the values
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
        if __compiled__:
            name = name_at(block, pos, end, len(headers))
        else:
            name = _decode_name(block[pos:end])
        length = block[end]
        pos = end + 1
        if length > 0x7F:
            length, pos = read_varint(block, end)
        if length & 1:  # any negative length means null, as in Kafka's DefaultRecord
            headers.append((name, None))
            bounds = None
            continue
        end = pos + (length >> 1)
        if end > size:
            raise ValueError(f"header {name!r}: value longer than the block")
        headers.append((name, block[pos:end]))
        if bounds is not None:
            bounds.append(pos)
            bounds.append(end)
        pos = end
    if pos != size:
        raise ValueError(f"{size - pos} bytes after the last header")
    if bounds:
        _learn_template(block, bounds, headers)
    return headers


def _decode_name(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")


# The encoded and the decoded name of the first header of the latest blocks, of the second header …
_latest_names: Final[list[tuple[bytes, str]]] = []
_MAX_LATEST_NAMES: Final = 64
_MAX_NAME_BYTES: Final = 128


def name_at(block: bytes, pos: i64, end: i64, number: i64) -> str:
    """Returns the header name in `block[pos:end]`, for compiled code.

    Most records have the same names: if the bytes are those of the latest name of the header with
    this `number`, counted from 0, no bytes are copied or decoded.
    """
    if number < len(_latest_names):
        raw, name = _latest_names[number]
        if len(raw) == end - pos:
            at: i64 = 0
            while pos < end and block[pos] == raw[at]:
                pos += 1
                at += 1
            if pos == end:
                return name
            pos -= at
    raw = block[pos:end]
    name = _decode_name(raw)
    if len(raw) <= _MAX_NAME_BYTES:
        if number < len(_latest_names):
            _latest_names[number] = raw, name
        elif number < _MAX_LATEST_NAMES:
            _latest_names.append((raw, name))
    return name


def _learn_template(block: bytes, bounds: list[int], headers: list[Header]) -> None:
    """Adds a block to the cache; `bounds` are the start and the end of each value."""
    expected: list[bytes] = []
    layout: list[str] = []
    value_end = 0
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        expected.append(block[value_end:start])
        layout.append(f"{start - value_end}s{end - start}s")
        value_end = end
    if len(_templates) >= _MAX_TEMPLATES:
        _templates.clear()
    value_indexes = tuple([(name, 2 * index + 1) for index, (name, _) in enumerate(headers)])
    _templates[len(block)] = (Struct("".join(layout)).unpack, tuple(expected), value_indexes)
