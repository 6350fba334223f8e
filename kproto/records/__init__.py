"""Reads, checks, builds and converts record batches (magic 2) and message sets (magic 0 and 1).

Imports only `kproto.wire`: it needs no message classes and does no I/O. `kproto.stored` decodes the
records that Kafka itself writes (control records, internal topics) to messages.
"""

from .codecs.compression import CODECS, MAX_DECOMPRESSED_BYTES, Codec, codec_for_id, codec_for_name
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
