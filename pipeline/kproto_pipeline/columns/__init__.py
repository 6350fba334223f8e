"""The bytes of a fetch response as Arrow columns: of records, or of the CloudEvents in them.

`arrow_batches` is the way in, and the way leads down: `batch_sections` finds the batches, `chunks` reads
their fields with `field_reader`, `arrow_records` or `arrow_events` makes Arrow of them. Knows no Spark,
no client and no socket.
"""

from .arrow_events import EVENT_SCHEMA, events_as_arrow
from .arrow_records import RECORD_SCHEMA, records_as_arrow
from .to_arrow import arrow_batches

__all__ = [
    "EVENT_SCHEMA",
    "RECORD_SCHEMA",
    "arrow_batches",
    "events_as_arrow",
    "records_as_arrow",
]
