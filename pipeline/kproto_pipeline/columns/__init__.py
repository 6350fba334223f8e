"""Decodes the record batches of a Fetch response into Arrow columns: records, or CloudEvents.

`arrow_batches` is the entry point. `batch_sections` finds and decompresses the batches, `chunks`
reads their fields with `field_reader`, and `arrow_records` or `arrow_events` creates the Arrow
arrays. Imports neither Spark nor the client.
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
