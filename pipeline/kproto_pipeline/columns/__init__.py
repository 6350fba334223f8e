"""Decodes the record batches of a Fetch response into Arrow columns: records, or CloudEvents.

`arrow_batches` is the entry point. `batch_sections` finds and decompresses the batches, `chunks`
reads their fields with `field_reader`, and `arrow_records` or `arrow_events` creates the Arrow
arrays. Imports neither Spark nor the client. Each public name is loaded at its first use, because
`events_as_arrow` needs kproto_cloudevents and pyarrow.compute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.lazy_names import lazy_names

if TYPE_CHECKING:
    from .arrow_events import events_as_arrow
    from .arrow_records import RECORD_SCHEMA, records_as_arrow
    from .event_schema import EVENT_SCHEMA
    from .to_arrow import arrow_batches

__all__ = [
    "EVENT_SCHEMA",
    "RECORD_SCHEMA",
    "arrow_batches",
    "events_as_arrow",
    "records_as_arrow",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "EVENT_SCHEMA": ".event_schema",
            "RECORD_SCHEMA": ".arrow_records",
            "arrow_batches": ".to_arrow",
            "events_as_arrow": ".arrow_events",
            "records_as_arrow": ".arrow_records",
        },
    )
