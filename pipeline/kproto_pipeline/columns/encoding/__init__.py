"""Encodes Arrow columns as records.

`record_sections` encodes rows as batches, by column. `records_of_events` first
converts the columns of CloudEvents to columns of records. `partition_hashes` hashes keys like
Kafka's Java client. Imports neither Spark nor a client.
"""

from .events import UnwritableEventError, records_of_events
from .headers import HeaderColumn, headers_of_lists, join_binary
from .murmur2 import partition_hashes
from .record_sections import EncodedRows, record_sections

__all__ = [
    "EncodedRows",
    "HeaderColumn",
    "UnwritableEventError",
    "headers_of_lists",
    "join_binary",
    "partition_hashes",
    "record_sections",
    "records_of_events",
]
