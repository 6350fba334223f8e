"""Defines `Record`, which decodes its headers at the first access to them.

mypyc does not compile this module: attributes of interpreted classes with `__slots__` are read in
less time than those of compiled classes, and compiled code sets the slots by their index.
"""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ..wire.errors import CorruptBatchError
from .header_block import NO_HEADERS, decode_headers
from .log_format import CREATE_TIME, NO_TIMESTAMP
from .type_variables import K, V

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .header_block import Header

NewK = TypeVar("NewK")
NewV = TypeVar("NewV")

__all__ = ["BatchOrigin", "Record"]

_SHOWN_BYTES: Final = 48


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


class Record(Generic[K, V]):
    """A record of a partition.

    - `offset`; `key` and `value`: bytes or None, or what the codecs of a consumer return;
    - `timestamp` in ms since the epoch, -1 for none;
    - `timestamp_type`: 0 for create time, 1 for log append time, -1 if the magic has no timestamp;
    - `headers`: a list of (name, value or None), in order, with duplicates;
    - `topic` and `partition`: "" and -1 if the caller did not pass them to the reader.

    A byte of a header name that is not UTF-8 is a lone surrogate (U+DC80 to U+DCFF) in the name:
    Python's error handler `surrogateescape`. Such a name is written as the same bytes again. Java's
    consumer has U+FFFD instead.

    Two records are equal if all these fields are equal. Headers are decoded at the first access.
    The attribute byte of a record is not kept, because Kafka defines no bit of it. In annotations,
    `Record` is a record of bytes, and `Record[str, Order]` a record with decoded key and value.
    """

    if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
        __class_getitem__ = classmethod(GenericAlias)

    __slots__ = ("_headers", "_origin", "key", "offset", "timestamp", "value")

    offset: int
    timestamp: int
    key: K | None
    value: V | None
    _headers: bytes | list[Header]
    #: Shared by the records of a batch, so that creating a record sets one attribute, not five.
    _origin: BatchOrigin

    def __init__(
        self,
        offset: int = 0,
        timestamp: int = NO_TIMESTAMP,
        key: K | None = None,
        value: V | None = None,
        headers: Iterable[Header] = (),
        timestamp_type: int = CREATE_TIME,
        *,
        topic: str = "",
        partition: int = -1,
    ) -> None:
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

    def converted(self, key: NewK | None, value: NewV | None) -> Record[NewK, NewV]:
        """Returns a record with another key and value; its other fields are those of this record.

        Does not decode the headers if they are not decoded yet.
        """
        created: Any = Record.__new__(Record)
        record: Record[NewK, NewV] = created
        record.offset = self.offset
        record.timestamp = self.timestamp
        record.key = key
        record.value = value
        record._headers = self._headers
        record._origin = self._origin
        return record

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
    kind: type[Record[Any, Any]],
    offset: int,
    timestamp: int,
    key: Any,
    value: Any,
    headers: bytes | list[Header],
    origin: BatchOrigin,
) -> Record[Any, Any]:
    """Returns the record of which `Record.__reduce__` has returned the fields."""
    record: Record[Any, Any] = kind.__new__(kind)
    record.offset = offset
    record.timestamp = timestamp
    record.key = key
    record.value = value
    record._headers = headers
    record._origin = origin
    return record


def _shown(value: object) -> str:
    if not isinstance(value, bytes) or len(value) <= _SHOWN_BYTES:
        return repr(value)
    return f"{value[:_SHOWN_BYTES]!r}… ({len(value)} bytes)"
