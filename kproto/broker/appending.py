"""Whether the records of a Produce may be appended, and appending them.

The checks are those of Kafka's ProduceRequest, UnifiedLog and LogValidator, as far as the header
of a batch shows what they ask: the records inside are never decoded. What an error is called
follows Kafka too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..records import NO_TIMESTAMP, RecordBatch, read_batches
from ..records.layout import MAGIC_AT
from ..wire.errors import CorruptBatchError
from .refusal import refusal
from .topic_configs import TopicConfig
from .topics import Partition

__all__ = ["Appended", "append_records"]

#: Before this version, records are message sets of magic 0 or 1.
_FIRST_VERSION_OF_BATCHES: Final = 3
#: zstd came with this version (KIP-110).
_FIRST_VERSION_OF_ZSTD: Final = 7


class Appended(NamedTuple):
    """Where records went; `log_append_time` in ms, -1 when they keep the producer's times."""

    base_offset: int
    log_append_time: int
    log_start_offset: int


def append_records(
    partition: Partition, config: TopicConfig, records: bytes | None, version: int, now_ms: int
) -> Appended:
    """Append the one batch in `records`, sent by a Produce of that version.

    A batch that its producer sent before is not stored again and gets the answer of the first
    time. Raises BrokerResponseError.
    """
    log = partition.log
    try:
        batch = _only_batch(records, version)
        _check_batch(batch, config, version, now_ms)
    except CorruptBatchError as error:
        raise refusal("CORRUPT_MESSAGE", str(error)) from None
    idempotent = batch.producer_id >= 0
    if idempotent:
        known = partition.sequences.duplicate_of(batch)
        if known is not None:
            # Kafka gives the batch's timestamp here, also when it is the producer's.
            return Appended(known.base_offset, known.timestamp, log.start_offset)
        partition.sequences.check(batch)
    base_offset = log.append(batch, now_ms, stamp_time=config.log_append_time)
    log_append_time = now_ms if config.log_append_time else NO_TIMESTAMP
    if idempotent:
        largest = now_ms if config.log_append_time else batch.max_timestamp
        partition.sequences.remember(batch, base_offset, largest)
    return Appended(base_offset, log_append_time, log.start_offset)


def _only_batch(records: bytes | None, version: int) -> RecordBatch:
    """The batch in `records`; there must be exactly one."""
    if version < _FIRST_VERSION_OF_BATCHES:
        raise refusal(
            "UNSUPPORTED_FOR_MESSAGE_FORMAT",
            f"Produce v{version} carries message sets, which this broker does not store; "
            f"produce with v{_FIRST_VERSION_OF_BATCHES} or later",
        )
    records = records or b""
    if records[MAGIC_AT : MAGIC_AT + 1] in (b"\0", b"\1"):
        raise refusal("INVALID_RECORD", f"Produce v{version} may hold batches of magic 2 only")
    batches = read_batches(records, check_crc=False)
    batch = next(batches, None)
    if batch is None:
        raise refusal("INVALID_RECORD", f"Produce v{version} must hold a whole record batch")
    if next(batches, None) is not None:
        raise refusal("INVALID_RECORD", f"Produce v{version} may hold one record batch only")
    return batch


def _check_batch(batch: RecordBatch, config: TopicConfig, version: int, now_ms: int) -> None:
    """Raise what Kafka answers to a batch that it does not take."""
    if batch.base_offset != 0:
        raise refusal("INVALID_RECORD", f"the base offset is {batch.base_offset}; it must be 0")
    if batch.size_in_bytes > config.max_message_bytes:
        raise refusal(
            "MESSAGE_TOO_LARGE",
            f"the batch has {batch.size_in_bytes} bytes, and max.message.bytes of the topic is "
            f"{config.max_message_bytes}",
        )
    batch.check()
    if batch.compression == "zstd" and version < _FIRST_VERSION_OF_ZSTD:
        raise refusal("UNSUPPORTED_COMPRESSION_TYPE", f"Produce v{version} cannot carry zstd")
    if batch.record_count < 1 or batch.record_count != batch.last_offset_delta + 1:
        raise refusal(
            "INVALID_RECORD",
            f"the batch has {batch.record_count} records, and offsets for "
            f"{batch.last_offset_delta + 1}",
        )
    if batch.is_control:
        raise refusal("INVALID_RECORD", "clients may not write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise refusal("INVALID_RECORD", f"the base sequence is {batch.base_sequence}")
    if batch.is_transactional:
        raise refusal("INVALID_TXN_STATE", "this broker has no transaction coordinator")
    latest = now_ms + config.timestamp_after_max_ms
    if not config.log_append_time and batch.max_timestamp > latest:
        raise refusal(
            "INVALID_TIMESTAMP",
            f"the largest timestamp is {batch.max_timestamp} ms, and the topic takes none after "
            f"{latest} (message.timestamp.after.max.ms)",
        )
