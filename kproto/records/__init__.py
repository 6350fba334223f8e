"""Record batches and message sets as Kafka stores and sends them: read, checked, built, passed on.

What is given out here knows the wire primitives and their errors; no message, no socket, no clock.
Three modules beside it make messages of what Kafka itself stores in records, and know
`kproto.messages`; import them by name: `control` (markers of transactions, leader changes,
snapshots), `coordinator` (offsets, groups, transactions), `metadata_log` (KRaft).
"""

from .batch import RecordBatch, restamp
from .compression import CODECS, MAX_DECOMPRESSED_BYTES, Codec, codec_for_id, codec_for_name
from .crc import crc32c, crc32c_pure
from .encoding import MAX_BATCH_BYTES, BatchBuilder, NewRecord, encode_batch, encode_batches
from .layout import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP, NO_TIMESTAMP_TYPE
from .message_set import LegacyBatch
from .message_set_encoding import MessageSetBuilder, down_convert, encode_message_set
from .reading import read_batches, read_records
from .record import Header, Record

__all__ = [
    "CODECS",
    "CREATE_TIME",
    "LOG_APPEND_TIME",
    "MAX_BATCH_BYTES",
    "MAX_DECOMPRESSED_BYTES",
    "NO_TIMESTAMP",
    "NO_TIMESTAMP_TYPE",
    "BatchBuilder",
    "Codec",
    "Header",
    "LegacyBatch",
    "MessageSetBuilder",
    "NewRecord",
    "Record",
    "RecordBatch",
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
