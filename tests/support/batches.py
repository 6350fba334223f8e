"""Builds small record batches for tests of code that stores or forwards batches."""

from __future__ import annotations

from kproto.records import CREATE_TIME, RecordBatch, encode_batch
from kproto.records.magic2.batch_header import CRC, CRC_FROM, CRC_OFFSET
from kproto.records.magic2.crc import crc32c

__all__ = ["TIMESTAMP", "batch_bytes", "patched", "view"]

#: A time in 2023, which every topic accepts as a record timestamp.
TIMESTAMP = 1_700_000_000_000


def batch_bytes(
    count: int = 1,
    *,
    value: bytes = b"v",
    timestamp: int = TIMESTAMP,
    step_ms: int = 1,
    compression: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    base_offset: int = 0,
) -> bytes:
    """Returns a batch of `count` records whose timestamps increase by `step_ms`."""
    return encode_batch(
        [(b"k", value, (), timestamp + index * step_ms) for index in range(count)],
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        base_offset=base_offset,
    )


def view(
    count: int = 1,
    *,
    value: bytes = b"v",
    timestamp: int = TIMESTAMP,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compression: str = "none",
    step_ms: int = 1,
) -> RecordBatch:
    """Returns a batch of `batch_bytes` as a RecordBatch."""
    batch = RecordBatch(
        batch_bytes(
            count,
            value=value,
            timestamp=timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            compression=compression,
            step_ms=step_ms,
        )
    )
    assert batch.timestamp_type == CREATE_TIME
    return batch


def patched(batch: bytes, at: int, new: bytes) -> bytes:
    """Returns the batch with `new` at position `at`, and a correct checksum."""
    changed = bytearray(batch)
    changed[at : at + len(new)] = new
    CRC.pack_into(changed, CRC_OFFSET, crc32c(bytes(changed[CRC_FROM:])))
    return bytes(changed)
