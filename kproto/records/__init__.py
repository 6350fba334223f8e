"""Reads, checks, builds and converts record batches (magic 2) and message sets (magic 0 and 1).

Imports only `kproto.wire`: it needs no message classes and does no I/O. `kproto.stored` decodes the
records that Kafka itself writes (control records, internal topics) to messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .codecs.compression import (
        CODECS,
        MAX_DECOMPRESSED_BYTES,
        Codec,
        codec_for_id,
        codec_for_name,
    )
    from .header_block import Header
    from .legacy.message_set import LegacyBatch
    from .legacy.message_set_encoding import MessageSetBuilder, down_convert, encode_message_set
    from .log_format import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP, NO_TIMESTAMP_TYPE
    from .magic2.batch_builder import BatchBuilder, encode_batch, encode_batches
    from .magic2.crc import crc32c, crc32c_pure
    from .magic2.growing_batch import GrowingBatch
    from .magic2.record_batch import BatchReader, RecordBatch, restamp
    from .memory_records import checked_next_offset, read_batches, read_records
    from .new_record import ENCODE_FAILURES, MAX_BATCH_BYTES, MAX_TIMESTAMP_MS, NewRecord
    from .record import Record

__all__ = [
    "CODECS",
    "CREATE_TIME",
    "ENCODE_FAILURES",
    "LOG_APPEND_TIME",
    "MAX_BATCH_BYTES",
    "MAX_DECOMPRESSED_BYTES",
    "MAX_TIMESTAMP_MS",
    "NO_TIMESTAMP",
    "NO_TIMESTAMP_TYPE",
    "BatchBuilder",
    "BatchReader",
    "Codec",
    "GrowingBatch",
    "Header",
    "LegacyBatch",
    "MessageSetBuilder",
    "NewRecord",
    "Record",
    "RecordBatch",
    "checked_next_offset",
    "codec_for_id",
    "codec_for_name",
    "crc32c",
    "crc32c_pure",
    "down_convert",
    "encode_batch",
    "encode_batches",
    "encode_message_set",
    "read_batches",
    "read_records",
    "restamp",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "CODECS": ".codecs.compression",
            "CREATE_TIME": ".log_format",
            "ENCODE_FAILURES": ".new_record",
            "LOG_APPEND_TIME": ".log_format",
            "MAX_BATCH_BYTES": ".new_record",
            "MAX_DECOMPRESSED_BYTES": ".codecs.compression",
            "MAX_TIMESTAMP_MS": ".new_record",
            "NO_TIMESTAMP": ".log_format",
            "NO_TIMESTAMP_TYPE": ".log_format",
            "BatchBuilder": ".magic2.batch_builder",
            "BatchReader": ".magic2.record_batch",
            "Codec": ".codecs.compression",
            "GrowingBatch": ".magic2.growing_batch",
            "Header": ".header_block",
            "LegacyBatch": ".legacy.message_set",
            "MessageSetBuilder": ".legacy.message_set_encoding",
            "NewRecord": ".new_record",
            "Record": ".record",
            "RecordBatch": ".magic2.record_batch",
            "checked_next_offset": ".memory_records",
            "codec_for_id": ".codecs.compression",
            "codec_for_name": ".codecs.compression",
            "crc32c": ".magic2.crc",
            "crc32c_pure": ".magic2.crc",
            "down_convert": ".legacy.message_set_encoding",
            "encode_batch": ".magic2.batch_builder",
            "encode_batches": ".magic2.batch_builder",
            "encode_message_set": ".legacy.message_set_encoding",
            "read_batches": ".memory_records",
            "read_records": ".memory_records",
            "restamp": ".magic2.record_batch",
        },
    )
