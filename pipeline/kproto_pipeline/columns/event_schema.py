"""Defines the columns of events, without the modules that create them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from .arrow_records import RECORD_SCHEMA

__all__ = ["EVENT_SCHEMA"]

#: The columns: the attributes of the event, its data, and the fields of its record. If a record is
#: not an event, `error` is the reason, `value` and `headers` are those of the record, and the
#: attributes and `data` are null. `time` is in microseconds; if `all_headers` is set, `headers` has
#: the original text of the time of an event in binary mode.
EVENT_SCHEMA: Final[pa.Schema] = pa.schema(
    [
        ("specversion", pa.string()),
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("subject", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("dataschema", pa.string()),
        ("datacontenttype", pa.string()),
        ("extensions", pa.map_(pa.string(), pa.string())),
        ("data", pa.binary()),
        ("error", pa.string()),
        ("value", pa.binary()),
        *(field for field in RECORD_SCHEMA if field.name != "value"),
    ]
)
