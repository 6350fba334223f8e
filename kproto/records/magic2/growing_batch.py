"""Builds the batches (magic 2) of a producer, and encodes each record when it is appended.

`GrowingBatch` keeps the encoded records, so that a batch can be built again for a retry and its
records can be read again for an error report. `GrowingBatch` writes only what a producer sends:
offsets without gaps and create time. `BatchBuilder` writes all features of a batch.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Final

from ...wire.compiled import __compiled__
from .. import log_format
from ..codecs.compression import codec_for_name
from ..header_block import NO_HEADERS
from ..new_record import MAX_INT64
from ..varints import VARINTS, encode_varint, read_varint
from . import batch_header
from .record_batch import RecordBatch
from .record_decoding import RecordReader
from .record_encoding import NO_TIMESTAMP_YET, NULL, encode_head, encode_record
from .run_encoding import (
    encode_columns,
    encode_run,
    encode_values,
    join_records,
    varints_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...wire.buffers import BytesLike
    from ..header_block import Header
    from ..record import Record

__all__ = ["GrowingBatch"]

#: The most bytes of a record of `append_run` besides its key, value and headers: the length of the
#: record (5), attributes (1), timestamp delta (10), offset delta (5), the lengths of key and value
#: (10) and the number of headers (1).
_MOST_RUN_OVERHEAD: Final = 32

#: The encoded offset deltas. The list grows with the largest batch, to at most `_MAX_DELTAS` items.
#: `append_run` fills a batch up to this number of records.
_DELTAS: Final = list(VARINTS)
_MAX_DELTAS: Final = 65_536

#: The most bytes of a key and a value together for `encode_columns` and `encode_values`: the length
#: of the record is then in `VARINTS`.
_MOST_BY_COLUMNS: Final = len(VARINTS) - _MOST_RUN_OVERHEAD

#: With fewer values, `encode_values` takes more time than `encode_columns`.
_LEAST_BY_SIZE: Final = 64

#: Up to this number of records with headers are encoded, even if fewer of them may fit.
_LEAST_ENCODED: Final = 16


class GrowingBatch:
    """Holds the encoded records of a batch, at offsets 0, 1, 2 …

    `parts`, joined, are the encoded records; `count` is their number; `size_in_bytes` is the size
    of the uncompressed batch with its header. `head` is the encoded attributes and timestamp delta
    of a record with the timestamp `timestamp` (ms).
    """

    __slots__ = (
        "_ends",
        "_stamped_from",
        "_stamps",
        "count",
        "head",
        "parts",
        "size_in_bytes",
        "timestamp",
    )

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        # The ends of the encoded records, once `record_at` has needed them.
        self._ends: array[int] | None = None
        self.count = 0
        self.size_in_bytes = batch_header.HEADER_BYTES
        self.head = b""
        self.timestamp: object = NO_TIMESTAMP_YET
        # `_stamps` has the timestamps in the order of the records. `_stamped_from` has, for each of
        # them, the index of the first record with it.
        self._stamped_from: list[int] = []
        self._stamps: list[int] = []

    @classmethod
    def of_encoded(cls, data: bytes, count: int, timestamp: int) -> GrowingBatch:
        """Returns a batch of the `count` encoded records in `data`, all with `timestamp` in ms.

        `data` must have uncompressed records of magic 2 with offset deltas 0, 1, 2 … and timestamp
        delta 0. This is not checked.
        """
        batch = cls()
        batch.stamp(timestamp)
        batch.parts.append(data)
        batch.count = count
        batch.size_in_bytes += len(data)
        return batch

    def stamp(self, timestamp: int) -> None:
        """Sets the timestamp (ms) of the next records. Raises ValueError if it is out of range."""
        stamps, stamped_from = self._stamps, self._stamped_from
        delta = timestamp - stamps[0] if self.count else 0
        if 0 <= delta < len(VARINTS) and 0 <= timestamp <= MAX_INT64:
            head = b"\x00" + VARINTS[delta]
        else:
            head = encode_head(timestamp, delta)
        if stamps and stamped_from[-1] == self.count:  # no record has the latest timestamp
            stamps.pop()
            stamped_from.pop()
        self.head = head
        self.timestamp = timestamp
        stamps.append(timestamp)
        stamped_from.append(self.count)

    def append(
        self,
        key: BytesLike | None,
        value: BytesLike | None,
        headers: Sequence[Header],
        timestamp: int,
        limit: int,
    ) -> int:
        """Appends a record with `timestamp` in ms; returns by how many bytes the batch grew.

        Returns 0, and does not append the record, if the batch would exceed `limit` bytes. The
        first record of a batch is appended even if it exceeds `limit`. Raises one of
        `ENCODE_FAILURES`, and does not append the record, if an argument has a wrong type or is out
        of range.
        """
        if timestamp != self.timestamp:
            self.stamp(timestamp)
        count = self.count
        try:
            # The fast path for most records. IndexError: a length or `count` exceeds the table.
            if __compiled__ or headers or type(value) is not bytes:
                body = encode_record(self.head, _DELTAS[count], key, value, headers)
            elif key is None:
                length = VARINTS[len(value)]
                body = b"".join((self.head, _DELTAS[count], NULL, length, value, NO_HEADERS))
            elif type(key) is bytes:
                body = b"".join(
                    (
                        self.head,
                        _DELTAS[count],
                        VARINTS[len(key)],
                        key,
                        VARINTS[len(value)],
                        value,
                        NO_HEADERS,
                    )
                )
            else:
                body = encode_record(self.head, _DELTAS[count], key, value, headers)
            size = len(body)
            length = VARINTS[size]
        except IndexError:
            if len(_DELTAS) == count < _MAX_DELTAS:
                _extend_deltas()
            body = encode_record(self.head, encode_varint(count), key, value, headers)
            size = len(body)
            length = encode_varint(size)
        size += len(length)
        if size + self.size_in_bytes > limit and count:
            return 0
        append = self.parts.append
        append(length)
        append(body)
        self.count = count + 1
        self.size_in_bytes += size
        return size

    def append_run(
        self,
        keys: Sequence[bytes] | None,
        values: Sequence[bytes],
        timestamp: int,
        limit: int,
        headers: Sequence[Sequence[Header]] | None = None,
    ) -> tuple[int, int]:
        """Appends records, as many of them as certainly fit.

        Returns the number of appended records, and by how many bytes the batch grew. Record `i` has
        the key `keys[i]`, or no key if `keys` is None, the value `values[i]`, and the headers
        `headers[i]`, or none if `headers` is None; all have `timestamp` in ms. The first record
        that is left out may still fit: pass this record to `append`. Raises one of
        `ENCODE_FAILURES`, and appends no record, if a header has a wrong type.
        """
        count = self.count
        number = max(0, min(len(values), _MAX_DELTAS - count))
        sizes = list(map(len, values))
        key_sizes = [] if keys is None else list(map(len, keys))
        payload = sum(sizes) + sum(key_sizes)
        if self.size_in_bytes + payload + len(values) * _MOST_RUN_OVERHEAD > limit:
            of_both: Iterable[int] = sizes if keys is None else map(add, sizes, key_sizes)
            ends = list(accumulate(map(_MOST_RUN_OVERHEAD.__add__, of_both)))
            number = min(number, bisect_right(ends, limit - self.size_in_bytes))
        if not number:
            return 0, 0
        if number < len(values):
            values, sizes = values[:number], sizes[:number]
            keys, key_sizes = None if keys is None else keys[:number], key_sizes[:number]
            headers = None if headers is None else headers[:number]
        while count + number > len(_DELTAS):
            _extend_deltas()
        if timestamp != self.timestamp:
            self.stamp(timestamp)
        deltas = _DELTAS[count : count + number]
        if headers is not None:
            number, encoded = self._encode_with_headers(deltas, keys, values, headers, limit)
            if not number:
                return 0, 0
        elif __compiled__ or max(sizes) + max(key_sizes, default=0) > _MOST_BY_COLUMNS:
            bodies = encode_run(self.head, deltas, keys, values)
            encoded = join_records(varints_of(list(map(len, bodies))), bodies)
        elif keys is None and number >= _LEAST_BY_SIZE:
            encoded = encode_values(self.head, deltas, values, sizes)
        else:
            encoded = encode_columns(self.head, deltas, keys, values, key_sizes, sizes)
        self.parts.append(encoded)
        size = len(encoded)
        self.count = count + number
        self.size_in_bytes += size
        return number, size

    def _encode_with_headers(
        self,
        deltas: Sequence[bytes],
        keys: Sequence[bytes] | None,
        values: Sequence[bytes],
        headers: Sequence[Sequence[Header]],
        limit: int,
    ) -> tuple[int, bytes]:
        """Encodes records for `append_run`; returns how many of them fit, and these, encoded.

        The size of the first record determines how many are encoded.
        """
        room = limit - self.size_in_bytes
        if len(values) > _LEAST_ENCODED:
            key = None if keys is None else keys[0]
            first = encode_record(self.head, deltas[0], key, values[0], headers[0])
            most = max(room // len(first), _LEAST_ENCODED)
            deltas, values, headers = deltas[:most], values[:most], headers[:most]
            keys = None if keys is None else keys[:most]
        bodies = encode_run(self.head, deltas, keys, values, headers)
        sizes = list(map(len, bodies))
        lengths = varints_of(sizes)
        ends = list(accumulate(map(add, sizes, map(len, lengths))))
        number = bisect_right(ends, room)
        return number, join_records(lengths[:number], bodies[:number])

    def build(
        self,
        *,
        compression: str = "none",
        producer_id: int = log_format.NO_PRODUCER_ID,
        producer_epoch: int = log_format.NO_PRODUCER_EPOCH,
        base_sequence: int = log_format.NO_SEQUENCE,
        is_transactional: bool = False,
    ) -> bytes:
        """Returns the batch as bytes with its checksum. The batch must have a record.

        Raises ConfigurationError for an unknown compression, and MissingCodecError if the codec is
        not installed.
        """
        codec = codec_for_name(compression)
        payload = self.compact()  # a retry need not join the parts again
        count = self.count
        return batch_header.pack_batch(
            codec.compress(payload, codec.default_level),
            codec.id | (batch_header.TRANSACTIONAL_FLAG if is_transactional else 0),
            count - 1,
            self._stamps[0],
            self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )

    def compact(self) -> bytes:
        """Joins `parts` to one part, which needs less memory, and returns this part."""
        parts = self.parts
        if len(parts) != 1:
            parts[:] = (b"".join(parts),)
        return parts[0]

    def record_sizes(self) -> list[int]:
        """Returns the encoded sizes of the records in order, in bytes, with their length fields.

        Raises IndexError or ValueError for encoded records that are invalid.
        """
        payload = self.compact()
        sizes = []
        end = 0
        for _ in range(self.count):
            start = end
            length = payload[end]
            end += 1
            if length > 0x7F:
                length, end = read_varint(payload, start)
            end += length >> 1  # a length is not negative, so its zigzag value is twice as large
            sizes.append(end - start)
        return sizes

    @property
    def max_timestamp(self) -> int:
        """Returns the largest timestamp of the records, in ms. The batch must have a record."""
        stamps = self._stamps
        if len(stamps) == 1:
            return stamps[0]
        unused = self._stamped_from[-1] == self.count
        return max(stamps[:-1] if unused else stamps)

    def records(self) -> list[Record]:
        """Returns the records, decoded from `parts`, with offsets 0, 1, 2 …"""
        return RecordBatch(self.build()).records(eager_headers=True)

    def record_at(self, position: int) -> Record:
        """Returns the record at index `position` from 0 on; decodes no other record.

        Raises CorruptBatchError for encoded records that are invalid.
        """
        payload = self.compact()
        try:
            ends = self._ends
            if ends is None or len(ends) != self.count:
                ends = self._ends = array("Q", accumulate(self.record_sizes()))
            start = ends[position - 1] if position else 0
            reader = RecordReader(
                payload, start, ends[position], 1, 0, self._stamps[0], self.count - 1
            )
            (record,) = reader.read(1)
        except (IndexError, ValueError):
            return self.records()[position]  # raises the error of the corrupt record
        _ = record.headers
        return record

    @property
    def only_timestamp(self) -> int:
        """The timestamp in ms of all records; -1 if they have several timestamps."""
        return self._stamps[0] if len(self._stamps) == 1 else -1

    def timestamp_of(self, position: int) -> int:
        """Returns the timestamp in ms of the record at index `position`, even after `forget`."""
        return self._stamps[bisect_right(self._stamped_from, position) - 1]

    def forget(self) -> None:
        """Drops the encoded records to free memory; keeps their number and timestamps."""
        self.parts.clear()
        self._ends = None


def _extend_deltas() -> None:
    """Doubles `_DELTAS`."""
    known = len(_DELTAS)
    _DELTAS.extend(encode_varint(delta) for delta in range(known, 2 * known))
