"""Encodes Arrow columns as records. Knows neither Spark, the client nor sockets.

`record_sections` encodes the rows of one partition as batches, column by column.
`records_of_events` converts the columns of CloudEvents to records first. `partition_hashes` hashes
keys as Kafka's own clients do.
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
