"""Arrow columns as the bytes of records: the way back. Knows no Spark, no client and no socket.

`record_sections` is the way in: rows of one partition, cut into batches, column by column.
`records_of_events` makes records of the columns of CloudEvents before.
`partition_hashes` says where a key belongs, as Kafka's own clients do.
"""

from .events import UnwritableEventError, records_of_events
from .headers import HeaderColumn, headers_of_lists
from .murmur2 import partition_hashes
from .record_sections import Section, record_sections

__all__ = [
    "HeaderColumn",
    "Section",
    "UnwritableEventError",
    "headers_of_lists",
    "partition_hashes",
    "record_sections",
    "records_of_events",
]
