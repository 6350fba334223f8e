"""Corrects the header of a produced batch, as Kafka's LogValidator does before the append.

Each function returns a batch with a new checksum. Callers verify the old checksum before they call
the function.
"""

from __future__ import annotations

from typing import Final

from ...records import RecordBatch
from ...records.log_format import LOG_APPEND_TIME_FLAG
from ...records.magic2 import batch_header
from ...records.magic2.crc import crc32c

__all__ = [
    "has_valid_checksum",
    "with_attributes_of_kafka",
    "with_max_timestamp",
    "with_producer_of",
]

#: Producer id, producer epoch and base sequence are the bytes from 43 to 57 of a batch.
_PRODUCER: Final = slice(43, 57)

#: Codec, timestamp type, transactional, control and delete horizon.
_USED_ATTRIBUTES: Final = 0x7F


def has_valid_checksum(batch: RecordBatch) -> bool:
    """Returns True if the checksum of a batch of magic 2 is right; checks no other field."""
    return crc32c(batch.raw[batch_header.CRC_FROM :]) == batch.crc


def with_attributes_of_kafka(batch: RecordBatch, *, stamp_time: bool) -> RecordBatch:
    """Returns the batch with the attributes that Kafka's broker stores.

    Clears the bit of LogAppendTime, which a producer must not set. If the topic has LogAppendTime
    (`stamp_time`), also clears the unused bits, because Kafka then computes all attributes again;
    the append sets the bit of LogAppendTime later.
    """
    attributes = batch.attributes & ~LOG_APPEND_TIME_FLAG
    if stamp_time:
        attributes &= _USED_ATTRIBUTES
    if attributes == batch.attributes:
        return batch
    changed = bytearray(batch.raw)
    batch_header.ATTRIBUTES.pack_into(changed, batch_header.ATTRIBUTES_OFFSET, attributes)
    return _with_checksum(changed)


def with_max_timestamp(batch: RecordBatch, max_timestamp: int) -> RecordBatch:
    """Returns the batch with `max_timestamp` (ms) in its header."""
    changed = bytearray(batch.raw)
    batch_header.MAX_TIMESTAMP.pack_into(changed, batch_header.MAX_TIMESTAMP_OFFSET, max_timestamp)
    return _with_checksum(changed)


def with_producer_of(batch: RecordBatch, original: RecordBatch) -> RecordBatch:
    """Returns the batch with producer id, producer epoch and base sequence of `original`.

    Copies the bytes: a producer may have sent values below -1, which Kafka stores and
    `encode_batch` refuses.
    """
    changed = bytearray(batch.raw)
    changed[_PRODUCER] = original.raw[_PRODUCER]
    return _with_checksum(changed)


def _with_checksum(changed: bytearray) -> RecordBatch:
    crc = crc32c(bytes(memoryview(changed)[batch_header.CRC_FROM :]))
    batch_header.CRC.pack_into(changed, batch_header.CRC_OFFSET, crc)
    return RecordBatch(bytes(changed))
