"""Iterates over the batches and records in a `records` field, like Kafka's MemoryRecords.

The field is that of a Fetch response or a Produce request. `magic2` and `legacy` read the batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.errors import CorruptBatchError
from . import log_format
from .codecs.compression import MAX_DECOMPRESSED_BYTES
from .legacy.message_set import LegacyBatch
from .log_format import as_buffer
from .magic2.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .record import Record

__all__ = ["checked_next_offset", "read_batches", "read_records"]


def read_batches(
    data: bytes | bytearray | memoryview,
    *,
    check_crc: bool = True,
    allow_partial: bool = True,
    whole_first: bool = False,
) -> Iterator[RecordBatch]:
    """Yields the batches in the `records` field of a Fetch response or Produce request, in order.

    Yields a `RecordBatch` for a batch of magic 2, a `LegacyBatch` for a message of magic 0 or 1; a
    field may have batches and messages. With `check_crc`, calls `RecordBatch.check` on each.

    Brokers cut a Fetch response at its size limit, so an incomplete last batch is ignored. With
    `allow_partial=False` (for Produce) an incomplete batch is an error. With `whole_first` only
    an incomplete first batch is an error. From Fetch v3 on the first batch is always complete
    (KIP-74); a consumer that ignored an incomplete first batch would fetch it forever.

    Raises CorruptBatchError at the first corrupt batch, after it has yielded the batches before it.
    """
    data = as_buffer(data)
    size = len(data)
    position = 0
    while position < size:
        left = size - position
        base_offset: int | None = None
        if left >= log_format.LOG_OVERHEAD_BYTES:
            base_offset, length = log_format.LOG_OVERHEAD.unpack_from(data, position)
            if length < log_format.MIN_MESSAGE_BYTES:
                raise CorruptBatchError(
                    f"batch length {length} is too short for any format",
                    offset=position,
                    base_offset=base_offset,
                )
            magic = (
                data[position + log_format.MAGIC_OFFSET] if left > log_format.MAGIC_OFFSET else 2
            )
            if magic > 2:
                raise CorruptBatchError(
                    f"unknown magic {magic}", offset=position, base_offset=base_offset
                )
            if left >= log_format.LOG_OVERHEAD_BYTES + length:
                batch = RecordBatch(data, position) if magic == 2 else LegacyBatch(data, position)
                if check_crc:
                    batch.check()
                yield batch
                position += batch.size_in_bytes
                continue
        if not allow_partial or (whole_first and position == 0):
            raise CorruptBatchError(
                f"the data ends inside a batch: {left} bytes are left",
                offset=position,
                base_offset=base_offset,
            )
        return


def checked_next_offset(batch: RecordBatch, before: int | None) -> int:
    """Returns the offset after `batch`. Raises CorruptBatchError if `batch` begins before `before`.

    `before` is the next offset of the previous batch, None for the first batch. The checksum does
    not cover the base offset, so `RecordBatch.check` detects neither a base offset that is too low
    nor a batch that a broker sends twice. For a wrapper of magic 0 or 1, whose base offset is
    unknown, this function compares the offset of the last message with `before`.
    """
    if before is not None and batch.base_offset < before:
        batch.check()  # raises a more precise error if the checksum is wrong too
        raise CorruptBatchError(
            f"offsets do not rise: the batch holds {batch.base_offset} to {batch.last_offset}, and "
            f"the one before it ends at {before - 1}",
            offset=batch.position,
            base_offset=batch.base_offset,
        )
    return batch.next_offset


def read_records(
    data: bytes | bytearray | memoryview,
    *,
    from_offset: int = 0,
    check_crc: bool = True,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[Record]:
    """Yields the records in the `records` field of a fetch response, of any magic.

    Skips control batches, and records before `from_offset`: the response begins with the batch that
    contains the fetch offset. If a batch is corrupt, yields the records of the batches before it,
    and then raises the errors of `read_batches` and `RecordBatch.records`.
    """
    for batch in read_batches(data, check_crc=check_crc):
        if batch.is_control or batch.last_offset < from_offset:
            continue
        yield from batch.records(
            from_offset=from_offset, max_decompressed_bytes=max_decompressed_bytes
        )
