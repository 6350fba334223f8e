"""The batches of a fetch response: where each one's records are, checked and decompressed.

Owns the walk over batch headers (magic 2, KIP-98), the CRC, and the choice of what to skip:
control batches, batches wholly outside the wanted offsets, a last batch cut short by the
fetch's size limit. Knows nothing of the records inside: those are `columnar`'s.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import google_crc32c

from kproto.wire.errors import CorruptBatchError

crc32c = google_crc32c.value
decompress = lambda c, b: zlib.decompress(b, 31)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_BATCH_BYTES", "MAX_CHUNK_BYTES", "BatchSection", "batch_sections", "next_offset"]

# How many bytes of records one chunk of columns may hold before the next one begins. Arrow's
# 32-bit offsets allow 2 GiB; 32 MiB keep a chunk, and what Spark makes of it, small beside a heap.
MAX_CHUNK_BYTES: Final = 32 << 20

# How large a batch may be after decompression. Kafka's own limit is message.max.bytes before
# compression (1 MiB by default); this bound stands against a batch made to blow up.
MAX_BATCH_BYTES: Final = 512 << 20

# base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base timestamp,
# max timestamp, producer id, producer epoch, base sequence, record count
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_PREFIX: Final = struct.Struct(">qi")
_CRC_START: Final = 21  # the CRC covers everything from the attributes on

_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_CONTROL: Final = 0x20


@dataclass(frozen=True, slots=True)
class BatchSection:
    """The records of one batch, uncompressed: `data[start:end]` holds `count` of them.

    `timestamp` (ms) is the one to count from: the base timestamp, or with log append time the
    batch's maximum, which then holds for every record.
    """

    data: bytes
    start: int
    end: int
    count: int
    base_offset: int
    timestamp: int
    log_append_time: bool
    batch_position: int

    @property
    def size(self) -> int:
        """Bytes of records."""
        return self.end - self.start

    def moved(self, data: bytes, start: int) -> BatchSection:
        """The same records in another buffer."""
        return replace(self, data=data, start=start, end=start + self.size)

    def corrupt(self, reason: str) -> CorruptBatchError:
        """An error that names this batch."""
        return CorruptBatchError(reason, offset=self.batch_position, base_offset=self.base_offset)


def batch_sections(
    records: bytes, *, start: int = 0, end: int | None = None
) -> Iterator[BatchSection]:
    """The data batches in `records` that may hold offsets from `start` up to, not with, `end`.

    A batch outside of these is passed over unread. Yields the good batches that stand before a
    broken one, then raises.

    Raises:
        CorruptBatchError: a batch is broken.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    for position, batch_end in _batch_bounds(records):
        (
            base_offset, _, _, _, crc, attributes, last_delta, base_timestamp, max_timestamp,
            _, _, _, count,
        ) = _HEADER.unpack_from(records, position)  # fmt: skip
        if base_offset + last_delta < start or (end is not None and base_offset >= end):
            continue

        def corrupt(reason: str, at: int = position, base: int = base_offset) -> CorruptBatchError:
            return CorruptBatchError(reason, offset=at, base_offset=base)

        actual = crc32c(records[position + _CRC_START : batch_end])
        if actual != crc:
            raise corrupt(f"the CRC is {actual:#010x}, the batch says {crc:#010x}")
        if attributes & _CONTROL:
            continue
        data, first, last = records, position + _HEADER.size, batch_end
        if attributes & _CODEC_MASK:
            data = decompress(attributes & _CODEC_MASK, records[first:last])
            first, last = 0, len(data)
        # A record takes seven bytes at least.
        if count < 0 or count * 7 > last - first:
            raise corrupt(f"{count} records do not fit into {last - first} bytes")
        log_append_time = bool(attributes & _LOG_APPEND_TIME)
        yield BatchSection(
            data=data,
            start=first,
            end=last,
            count=count,
            base_offset=base_offset,
            timestamp=max_timestamp if log_append_time else base_timestamp,
            log_append_time=log_append_time,
            batch_position=position,
        )


def next_offset(records: bytes, fetched_from: int) -> int:
    """The offset to fetch from next: the last whole batch's last offset + 1.

    That is true for compacted and for control batches too. Without a whole batch it is
    `fetched_from`.
    """
    following = fetched_from
    for position, _ in _batch_bounds(records):
        header = _HEADER.unpack_from(records, position)
        following = max(following, header[0] + header[6] + 1)
    return following


def _batch_bounds(records: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each whole batch."""
    position = 0
    while position + _PREFIX.size <= len(records):
        base_offset, length = _PREFIX.unpack_from(records, position)
        end = position + _PREFIX.size + length
        if length < _HEADER.size - _PREFIX.size:
            # Message sets of magic 0 and 1 can be as short as this; they have their magic here.
            raise CorruptBatchError(
                f"the batch length {length} is below that of an empty batch",
                offset=position,
                base_offset=base_offset,
            )
        if end > len(records):
            return
        magic = records[position + 16]
        if magic != 2:
            raise CorruptBatchError(
                f"magic {magic} is not read here: fetch with version 4 or later",
                offset=position,
                base_offset=base_offset,
            )
        yield position, end
        position = end
