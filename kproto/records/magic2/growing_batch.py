"""A batch (magic 2) whose records are encoded as they are given, for who fills many at once.

Owns what is in such a batch until it goes out, and again when somebody asks what it was.
`BatchBuilder` beside it writes whatever a batch may have, this one what a producer
sends: offsets without gaps, create time.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from .. import log_format
from ..codecs.compression import codec_for_name
from ..record import NO_HEADERS
from ..varints import VARINTS, encode_varint
from . import batch_header
from .record_batch import RecordBatch
from .record_encoding import NO_TIMESTAMP_YET, NULL, encode_head, encode_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...wire.buffers import BytesLike
    from ..record import Header, Record

__all__ = ["GrowingBatch"]


class GrowingBatch:
    """The records of one batch, at offsets 0, 1, 2 …, each encoded once, when it is given.

    `parts` joined are the records as they stand in the batch; `count` says how many they are,
    `size_in_bytes` how large the batch is before compression. The next record begins with `head`
    if it has the `timestamp`, in ms.
    """

    __slots__ = (
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
        self.count = 0
        self.size_in_bytes = batch_header.HEADER_BYTES
        self.head = b""
        self.timestamp: object = NO_TIMESTAMP_YET
        # Timestamps repeat: from which record on which one holds.
        self._stamped_from: list[int] = []
        self._stamps: list[int] = []

    @classmethod
    def of_encoded(cls, data: bytes, count: int, timestamp: int) -> GrowingBatch:
        """A batch of `count` records that stand in `data` already, all with one `timestamp` in ms.

        They are as records of magic 2 stand in a batch, uncompressed: offset deltas 0, 1, 2 …,
        timestamp deltas 0. That is not looked at here.
        """
        batch = cls()
        batch.stamp(timestamp)
        batch.parts.append(data)
        batch.count = count
        batch.size_in_bytes += len(data)
        return batch

    def stamp(self, timestamp: int) -> None:
        """Let records have `timestamp` from here on, in ms. Raises ValueError."""
        stamps, stamped_from = self._stamps, self._stamped_from
        delta = timestamp - stamps[0] if self.count else 0
        if 0 < delta < len(VARINTS):
            head = b"\x00" + VARINTS[delta]
        else:
            head = encode_head(timestamp, delta)
        if stamps and stamped_from[-1] == self.count:  # no record has the last one
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
        """Add a record; returns by how many bytes the batch grew.

        0, and nothing is added, if it would come to more than `limit`; the first always fits.
        Raises one of `ENCODE_FAILURES` for what no record can hold, and adds nothing then.
        """
        if timestamp != self.timestamp:
            self.stamp(timestamp)
        count = self.count
        try:
            # What most records are, in place; an IndexError is a length beyond the table.
            if headers or type(value) is not bytes:
                body = encode_record(self.head, VARINTS[count], key, value, headers)
            elif key is None:
                length = VARINTS[len(value)]
                body = b"".join((self.head, VARINTS[count], NULL, length, value, NO_HEADERS))
            elif type(key) is bytes:
                body = b"".join(
                    (
                        self.head,
                        VARINTS[count],
                        VARINTS[len(key)],
                        key,
                        VARINTS[len(value)],
                        value,
                        NO_HEADERS,
                    )
                )
            else:
                body = encode_record(self.head, VARINTS[count], key, value, headers)
            size = len(body)
            length = VARINTS[size]
        except IndexError:
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

    def build(
        self,
        *,
        compression: str = "none",
        producer_id: int = log_format.NO_PRODUCER_ID,
        producer_epoch: int = log_format.NO_PRODUCER_EPOCH,
        base_sequence: int = log_format.NO_SEQUENCE,
    ) -> bytes:
        """Returns the batch as bytes, checksum included. It wants one record at least.

        Raises MissingCodecError when the codec is not installed.
        """
        codec = codec_for_name(compression)
        payload = b"".join(self.parts)
        self.parts[:] = (payload,)  # joined once; a batch that goes again may have another header
        count = self.count
        return batch_header.pack_batch(
            codec.compress(payload, codec.default_level),
            codec.id,
            count - 1,
            self._stamps[0],
            self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )

    @property
    def max_timestamp(self) -> int:
        """Returns the largest timestamp of the records, in ms. It wants one record at least."""
        unused = self._stamped_from[-1] == self.count
        return max(self._stamps[:-1] if unused else self._stamps)

    def records(self) -> list[Record]:
        """The records, read again from what was encoded, headers too; at offsets 0, 1, 2 …"""
        return RecordBatch(self.build()).records(eager_headers=True)

    def timestamp_of(self, position: int) -> int:
        """Returns the timestamp of one record, in ms; known also when the records are forgotten."""
        return self._stamps[bisect_right(self._stamped_from, position) - 1]

    def forget(self) -> None:
        """Keep no more of the records than how many they were, and their timestamps."""
        self.parts.clear()
