"""Validates and appends the records of a Produce.

The checks and errors are those of Kafka's ProduceRequest, UnifiedLog and LogValidator. As in Kafka,
the records of a compressed batch are verified only in part. Kafka always compares the largest
timestamp in the header with the timestamps of the records, and corrects the header. This module
does so only if the first or the largest timestamp in the header is out of bounds, or if the largest
timestamp is before the first timestamp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...protocol.error_codes import code_of
from ...records import (
    LOG_APPEND_TIME,
    MAX_DECOMPRESSED_BYTES,
    NO_TIMESTAMP,
    Record,
    RecordBatch,
    encode_batch,
    read_batches,
)
from ...records.log_format import COMPRESSION_CODEC_MASK, MAGIC_OFFSET
from ...records.magic2.batch_header import HEADER_BYTES, MIN_RECORD_BYTES
from ...records.magic2.unreadable_records import check_as_broker, decompressed_records
from ...wire.errors import BrokerResponseError, CorruptBatchError, MissingCodecError
from ..api_error import api_error
from ..topic_configs import TopicConfig
from .header_correction import (
    has_valid_checksum,
    with_attributes_of_kafka,
    with_max_timestamp,
    with_producer_of,
)
from .partition import Partition

__all__ = ["InvalidRecordsError", "LogAppendInfo", "append_records"]

#: The first version of Produce with record batches; before it, records may be message sets of magic
#: 0 or 1.
_FIRST_VERSION_OF_BATCHES: Final = 3
#: The first version that allows zstd (KIP-110).
_FIRST_VERSION_OF_ZSTD: Final = 7

_MAGIC_OF_BATCHES: Final = 2
_ZSTD: Final = 4
_NO_OFFSET: Final = -1


class InvalidRecordsError(BrokerResponseError):
    """Raised if single records are the reason to refuse a batch (KIP-467).

    `record_errors` maps the position of each such record in the batch to the reason.
    """

    def __init__(
        self, code: int, name: str, detail: str, *, record_errors: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(code, name, detail)
        self.record_errors = dict(record_errors or {})


class LogAppendInfo(NamedTuple):
    """Holds the result of an append: the base offset, the log append time, the log start offset.

    `base_offset` is -1 if nothing was appended. `log_append_time` is in ms, -1 if the records keep
    the producer's timestamps. For a duplicate, `base_offset` is the base offset of the stored
    batch, and `log_append_time` is the largest timestamp of the stored batch.
    """

    base_offset: int
    log_append_time: int
    log_start_offset: int


def append_records(
    partition: Partition,
    config: TopicConfig,
    records: bytes | None,
    version: int,
    now_ms: int,
) -> LogAppendInfo:
    """Appends `records`: one record batch; before v3 a message set is allowed, too.

    `version` is the version of the Produce request. A batch that duplicates one of the producer's
    last five batches is not stored again; as in Kafka, the result has the base offset and the
    largest timestamp of the stored batch. A message set without a complete message is not stored
    either. Raises BrokerResponseError with the error code of the response.
    """
    log = partition.log
    try:
        if version < _FIRST_VERSION_OF_BATCHES:
            sent = _convert_message_set(records or b"", config)
            if sent is None:
                return LogAppendInfo(_NO_OFFSET, NO_TIMESTAMP, log.start_offset)
            batch = sent
        else:
            batch = _single_batch(records, version)
        _check_batch(batch, config, version)
        _check_records(batch)
        batch = _with_checked_timestamps(batch, config, now_ms)
        if config.requires_keys:
            _check_keys(batch)
        if config.compression not in (None, batch.compression):
            batch = _recompressed(batch, config)
            _check_size(batch, config)
        batch = with_attributes_of_kafka(batch, stamp_time=config.log_append_time)
    except MissingCodecError as error:
        raise api_error("UNSUPPORTED_COMPRESSION_TYPE", str(error)) from None
    except CorruptBatchError as error:
        raise api_error("CORRUPT_MESSAGE", str(error)) from None
    if batch.size_in_bytes > config.segment_bytes:
        raise api_error(
            "RECORD_LIST_TOO_LARGE",
            f"the batch has {batch.size_in_bytes} bytes, and segment.bytes of the topic is "
            f"{config.segment_bytes}",
        )
    idempotent = batch.producer_id >= 0
    if idempotent:
        partition.producer_states.expire(now_ms - config.producer_id_expiration_ms)
        known = partition.producer_states.duplicate_of(batch)
        if known is not None:
            # Kafka returns the largest timestamp here, even with the producer's timestamps.
            return LogAppendInfo(known.base_offset, known.timestamp, log.start_offset)
        partition.producer_states.check(batch)
    base_offset = log.append(
        batch, now_ms, stamp_time=config.log_append_time, notifies=not idempotent
    )
    log_append_time = now_ms if config.log_append_time else NO_TIMESTAMP
    if idempotent:
        largest = now_ms if config.log_append_time else batch.max_timestamp
        partition.producer_states.update(batch, base_offset, largest, now_ms)
        log.notify()
    return LogAppendInfo(base_offset, log_append_time, log.start_offset)


def _single_batch(records: bytes | None, version: int) -> RecordBatch:
    """Returns the only batch in `records`.

    Raises INVALID_RECORD if there is no batch, more than one batch, or a message of magic 0 or 1.
    Raises CorruptBatchError.
    """
    records = records or b""
    if records[MAGIC_OFFSET : MAGIC_OFFSET + 1] in (b"\0", b"\1"):
        raise api_error("INVALID_RECORD", f"Produce v{version} may hold batches of magic 2 only")
    batches = read_batches(records, check_crc=False)
    batch = next(batches, None)
    if batch is None:
        raise api_error("INVALID_RECORD", f"Produce v{version} must hold a whole record batch")
    if next(batches, None) is not None:
        raise api_error("INVALID_RECORD", f"Produce v{version} may hold one record batch only")
    return batch


def _convert_message_set(records: bytes, config: TopicConfig) -> RecordBatch | None:
    """Returns the message set in `records` as one batch with the same codec.

    Returns None if there is no complete message. If `records` is a record batch, returns this
    batch. Raises INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, CorruptBatchError and
    MissingCodecError.
    """
    found: list[RecordBatch] = []
    for batch in read_batches(records, check_crc=False):
        _check_size(batch, config)
        if batch.magic < _MAGIC_OF_BATCHES and batch.attributes & COMPRESSION_CODEC_MASK == _ZSTD:
            raise api_error("INVALID_RECORD", "a message set cannot hold zstd")
        _check_header(batch)
        found.append(batch)
    if not found:
        return None
    first = found[0]
    if len(found) > 1:
        if first.magic == _MAGIC_OF_BATCHES or any(batch.compression != "none" for batch in found):
            raise api_error("INVALID_RECORD", "a batch or compressed messages must stand alone")
        if any(batch.magic != first.magic for batch in found):
            raise api_error("INVALID_RECORD", "messages of magic 0 and 1 may not be mixed")
    if first.magic == _MAGIC_OF_BATCHES:
        return first
    for batch in found:
        _check_timestamp_type(batch, config)
    return _up_converted(_messages(found), first.compression)


def _messages(found: list[RecordBatch]) -> list[Record]:
    try:
        return [record for batch in found for record in batch.records()]
    except CorruptBatchError as error:
        raise api_error("INVALID_RECORD", str(error)) from None


def _up_converted(records: list[Record], compression: str) -> RecordBatch:
    for record in records:
        if record.timestamp < NO_TIMESTAMP:
            raise api_error("INVALID_TIMESTAMP", f"{record.timestamp} is not a time in ms")
    return RecordBatch(
        encode_batch(
            [(record.key, record.value, (), record.timestamp) for record in records],
            compression=compression,
        )
    )


def _check_records(batch: RecordBatch) -> None:
    """Raises INVALID_RECORD for records that Kafka's brokers refuse.

    Raises UNKNOWN_SERVER_ERROR for data that cannot be decompressed, as Kafka does. Does not check
    records whose codec is not installed.
    """
    try:
        check_as_broker(batch)
    except MissingCodecError:
        return
    except CorruptBatchError as error:
        try:
            decompressed_records(batch, MAX_DECOMPRESSED_BYTES)
        except ValueError:
            raise api_error("UNKNOWN_SERVER_ERROR", str(error)) from None
        raise api_error("INVALID_RECORD", str(error)) from None


def _check_keys(batch: RecordBatch) -> None:
    """Raises INVALID_RECORD if a record has no key, because a compacted topic requires keys."""
    without = [number for number, record in enumerate(_messages([batch])) if record.key is None]
    if without:
        raise InvalidRecordsError(
            code_of("INVALID_RECORD"),
            "INVALID_RECORD",
            f"record {without[0]} of the batch has no key, and the topic is compacted",
            record_errors=dict.fromkeys(
                without, "a compacted topic accepts no record without a key"
            ),
        )


def _recompressed(batch: RecordBatch, config: TopicConfig) -> RecordBatch:
    """Returns a batch with the same records, compressed with the topic's codec."""
    assert config.compression is not None
    recompressed = RecordBatch(
        encode_batch(
            [(r.key, r.value, r.headers, r.timestamp) for r in _messages([batch])],
            compression=config.compression,
            compression_level=config.compression_level,
            is_transactional=batch.is_transactional,
        )
    )
    return with_producer_of(recompressed, batch)


def _check_size(batch: RecordBatch, config: TopicConfig) -> None:
    if batch.size_in_bytes > config.max_message_bytes:
        raise api_error(
            "MESSAGE_TOO_LARGE",
            f"the batch has {batch.size_in_bytes} bytes, and max.message.bytes of the topic is "
            f"{config.max_message_bytes}",
        )


def _check_timestamp_type(batch: RecordBatch, config: TopicConfig) -> None:
    if config.log_append_time and batch.timestamp_type == LOG_APPEND_TIME:
        reason = "producers may not set the log append time"
        raise InvalidRecordsError(
            code_of("INVALID_TIMESTAMP"),
            "INVALID_TIMESTAMP",
            reason,
            record_errors=dict.fromkeys(range(batch.record_count), reason),
        )


def _check_header(batch: RecordBatch) -> None:
    """Calls `RecordBatch.check`, but raises INVALID_RECORD for a negative count, as Kafka does.

    Raises CorruptBatchError for a wrong checksum or an unknown codec. A wrong checksum takes
    precedence over a negative count.
    """
    try:
        batch.check()
    except CorruptBatchError as error:
        is_negative = batch.magic == _MAGIC_OF_BATCHES and (
            batch.record_count < 0 or batch.last_offset_delta < 0
        )
        if is_negative and has_valid_checksum(batch):
            raise api_error("INVALID_RECORD", str(error)) from None
        raise


def _check_batch(batch: RecordBatch, config: TopicConfig, version: int) -> None:
    """Raises BrokerResponseError or CorruptBatchError if a batch cannot be appended.

    Checks the header, the size and the checksum.
    """
    if batch.base_offset != 0:
        raise api_error("INVALID_RECORD", f"the base offset is {batch.base_offset}; it must be 0")
    _check_size(batch, config)
    _check_header(batch)
    if batch.compression == "zstd" and version < _FIRST_VERSION_OF_ZSTD:
        raise api_error("UNSUPPORTED_COMPRESSION_TYPE", f"Produce v{version} cannot carry zstd")
    count = batch.record_count
    if count < 1 or count != batch.last_offset_delta + 1:
        raise api_error(
            "INVALID_RECORD",
            f"the batch has {count} records, and offsets for {batch.last_offset_delta + 1}",
        )
    most = (batch.size_in_bytes - HEADER_BYTES) // MIN_RECORD_BYTES
    if batch.compression == "none" and count > most:
        raise api_error(
            "INVALID_RECORD", f"the batch has {count} records, and bytes for at most {most}"
        )
    if batch.is_control:
        raise api_error("INVALID_RECORD", "clients may not write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise api_error("INVALID_RECORD", f"the base sequence is {batch.base_sequence}")
    _check_timestamp_type(batch, config)


def _with_checked_timestamps(batch: RecordBatch, config: TopicConfig, now_ms: int) -> RecordBatch:
    """Checks the timestamps of a batch; returns the batch with a corrected largest timestamp.

    Trusts the header if its base timestamp is not after its largest timestamp, and these two are
    within the bounds of the topic. Also trusts a header in which both timestamps are -1. Otherwise
    reads the records, and raises INVALID_TIMESTAMP if the timestamp of a record is out of the
    bounds. Checks nothing for a topic with log append times.
    """
    if config.log_append_time:
        return batch  # the append sets the timestamp of all records
    earliest = now_ms - config.timestamp_before_max_ms
    latest = now_ms + config.timestamp_after_max_ms
    first, largest = batch.base_timestamp, batch.max_timestamp
    if first <= largest <= latest and (
        earliest <= first != NO_TIMESTAMP or first == largest == NO_TIMESTAMP
    ):
        return batch
    times = [record.timestamp for record in _messages([batch])]
    reasons = {
        number: f"the timestamp is {timestamp} ms; the topic accepts {earliest} to {latest}"
        for number, timestamp in enumerate(times)
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest
    }
    if reasons:
        raise InvalidRecordsError(
            code_of("INVALID_TIMESTAMP"),
            "INVALID_TIMESTAMP",
            f"the timestamps are {min(times)} to {max(times)} ms, and the topic accepts {earliest} "
            f"to {latest} (message.timestamp.before.max.ms, message.timestamp.after.max.ms)",
            record_errors=reasons,
        )
    return with_max_timestamp(batch, max(times))
