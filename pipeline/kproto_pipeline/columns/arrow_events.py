"""Converts records with CloudEvents to Arrow columns: attributes, a map of extensions, data.

The fast path converts the header values of an attribute to one Arrow column, which `event_checks`
checks as a whole. If the fast path cannot prove a record valid, the slow path reads the record with
`kproto_cloudevents`. Such a record is in structured mode, for example, or has a repeated header,
unusual characters or an invalid attribute. Both paths give the same result for every record that
the fast path accepts.
"""

from __future__ import annotations

import warnings
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kproto_cloudevents import DEFAULT, CloudEvent, CloudEventError, Profile, from_kafka
from kproto_cloudevents.values.types import canonical

from .arrow_numpy import boolean_array, integer_values, number_array
from .arrow_records import RECORD_SCHEMA, binary_array, corrupt_array, record_array, text_array
from .event_checks import CHECKS, check_plain_text
from .event_schema import EVENT_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .record_columns import Bools, Int64s, RecordColumns

__all__ = ["events_as_arrow"]

# A chunk with more distinct header names takes the slow path. Most topics have few names, and each
# name costs one scan of all headers.
_MAX_HEADER_NAMES: Final = 128

# The columns that every row copies from its record.
_RECORD_NAMES: Final = frozenset(RECORD_SCHEMA.names) - {"value", "headers"}

_CONTENT_TYPE: Final = "content-type"
_PREFIX: Final = "ce_"
_CORE: Final = ("specversion", "id", "source", "type", "subject", "time", "dataschema")
_REQUIRED: Final = ("specversion", "id", "source", "type")

# By attribute, for each record: the index of the attribute's header among the headers of all
# records; -1 if the record lacks the header.
_HeadersByAttribute = dict[str, "Int64s"]


def events_as_arrow(
    columns: RecordColumns,
    *,
    topic: str,
    partition: int,
    schema: pa.Schema = EVENT_SCHEMA,
    all_headers: bool = False,
    profile: Profile = DEFAULT,
    corrupt_column: str | None = None,
) -> pa.RecordBatch:
    """Returns one row per record, with the columns of `EVENT_SCHEMA` that `schema` names.

    `schema` may have any order. `headers` is null for a record that is an event, unless
    `all_headers` is set. `profile` may have `json_events` and `event_grid_dataschema`; its other
    fields must have their defaults. In header keys, U+FFFD stands for bytes that are not UTF-8. For
    an unreadable record, the column `error` has the reason. The column named by `corrupt_column`
    has the stored bytes of the record.
    """
    buffer = pa.py_buffer(columns.buffer)
    by_attribute, extensions, regular = _attribute_headers(columns, buffer)
    values = {
        name: binary_array(buffer, columns.header_values, by_attribute[name])
        for name in by_attribute
    }
    for name, array in values.items():
        regular &= CHECKS.get(name, check_plain_text)(array)
    if len(extensions):
        rows = _rows_of_headers(columns)[extensions]
        plain = check_plain_text(binary_array(buffer, columns.header_values, extensions))
        regular[rows[~plain]] = False

    events = _event_arrays(columns, buffer, values, extensions, regular)
    if not regular.all():
        events = _with_irregular(events, columns, regular, profile)
    arrays = []
    for name in schema.names:
        if name == corrupt_column:
            arrays.append(corrupt_array(columns))
        elif name in _RECORD_NAMES:
            arrays.append(record_array(name, columns, buffer, topic, partition))
        elif name == "headers":
            arrays.append(_headers(columns, buffer, events["error"], all_headers))
        else:
            arrays.append(events[name])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _headers(
    columns: RecordColumns, buffer: pa.Buffer, error: pa.Array, all_headers: bool
) -> pa.Array:
    """Returns the column `headers`, which is null for events unless `all_headers` is set."""
    if not all_headers and error.null_count == len(error):
        return pa.nulls(len(error), EVENT_SCHEMA.field("headers").type)
    headers = record_array("headers", columns, buffer, "", 0)
    return headers if all_headers else pc.if_else(error.is_valid(), headers, None)


def _rows_of_headers(columns: RecordColumns) -> Int64s:
    """Returns, for each header of the chunk, the row of the record that has the header."""
    return np.repeat(np.arange(len(columns)), np.diff(columns.header_offsets))


def _attribute_headers(
    columns: RecordColumns, buffer: pa.Buffer
) -> tuple[_HeadersByAttribute, Int64s, Bools]:
    """Returns the headers by attribute, the indexes of extension headers, and the regular records.

    The third element is a mask. A record is regular if it has each required attribute, no attribute
    twice, no null header, and no `ce_` header with an unusual name. If the records have more than
    `_MAX_HEADER_NAMES` different header names, no record is regular.
    """
    count = len(columns)
    rows = _rows_of_headers(columns)
    regular = np.ones(count, dtype=np.bool_)
    encoded = binary_array(buffer, columns.header_keys).dictionary_encode()
    codes = integer_values(encoded.indices)
    header_names = text_array(encoded.dictionary).to_pylist()
    nothing = np.empty(0, dtype=np.int64)
    if len(header_names) > _MAX_HEADER_NAMES:
        return {}, nothing, np.zeros(count, dtype=np.bool_)
    by_attribute: _HeadersByAttribute = {}
    is_extension = np.zeros(len(header_names), dtype=np.bool_)
    for code, header in enumerate(header_names):
        attribute = _attribute_of(header)
        if attribute is None:
            continue
        at = np.flatnonzero(codes == code)
        record = rows[at]
        if attribute == "":
            regular[record] = False
            continue
        regular[record[1:][record[1:] == record[:-1]]] = False
        if attribute in _CORE or attribute == "datacontenttype":
            by_attribute[attribute] = np.full(count, -1, dtype=np.int64)
            by_attribute[attribute][record] = at
        else:
            is_extension[code] = True
    for attribute in _REQUIRED:
        regular &= by_attribute[attribute] >= 0 if attribute in by_attribute else False
    if columns.header_values.null is not None:
        regular[rows[columns.header_values.null]] = False
    extensions = np.flatnonzero(is_extension[codes]) if is_extension.any() else nothing
    return by_attribute, extensions, regular


def _attribute_of(header: str) -> str | None:
    """Returns the name of the attribute that a header holds; None if it holds no attribute.

    Returns "" for an unusual attribute name; in this case, `kproto_cloudevents` must read the
    record.
    """
    if header == _CONTENT_TYPE:
        return "datacontenttype"
    if not header.startswith(_PREFIX):
        return None
    name = header.removeprefix(_PREFIX)
    usual = name.isascii() and name.isalnum() and name.islower() and not name[0].isdigit()
    # At most 20 characters, because `kproto_cloudevents` warns about longer names.
    return name if usual and len(name) <= 20 and name not in ("data", "datacontenttype") else ""


# --- from header values to event columns -------------------------------------------------------


def _event_arrays(
    columns: RecordColumns,
    buffer: pa.Buffer,
    values: Mapping[str, pa.Array],
    extensions: Int64s,
    regular: Bools,
) -> dict[str, pa.Array]:
    """Returns the event columns of the records in the mask `regular` (see `_attribute_headers`)."""
    all_regular = bool(regular.all())
    mask = boolean_array(regular)
    regular_rows = np.flatnonzero(regular)
    arrays: dict[str, pa.Array] = {}
    for name in (*_CORE, "datacontenttype"):
        if name not in values:
            arrays[name] = pa.nulls(len(regular_rows), EVENT_SCHEMA.field(name).type)
            continue
        array = values[name] if all_regular else values[name].filter(mask)
        text = array.cast(pa.string())
        arrays[name] = text.cast(EVENT_SCHEMA.field(name).type) if name == "time" else text
    arrays["extensions"] = _extension_maps(columns, buffer, extensions, regular)
    arrays["data"] = binary_array(buffer, columns.values, None if all_regular else regular_rows)
    arrays["error"] = pa.nulls(len(regular_rows), pa.string())
    arrays["value"] = pa.nulls(len(regular_rows), pa.binary())
    return arrays


def _extension_maps(
    columns: RecordColumns, buffer: pa.Buffer, extensions: Int64s, regular: Bools
) -> pa.Array:
    """Returns the extensions of each record in the mask `regular`, as an array of maps.

    A map has the extensions in the order of the record's headers.
    """
    rows = _rows_of_headers(columns)[extensions]
    selected = regular[rows]
    counts = np.bincount(rows[selected], minlength=len(columns))[regular]
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    header = extensions[selected]
    keys = binary_array(buffer, columns.header_keys, header).cast(pa.string())
    values = binary_array(buffer, columns.header_values, header).cast(pa.string())
    return pa.MapArray.from_arrays(
        number_array(offsets), pc.utf8_slice_codeunits(keys, len(_PREFIX)), values
    )


def _with_irregular(
    events: Mapping[str, pa.Array], columns: RecordColumns, regular: Bools, profile: Profile
) -> dict[str, pa.Array]:
    """Returns the event columns of all records.

    `events` has the columns of the records in the mask `regular`, which were read by column. Reads
    all other records one by one.
    """
    irregular = np.flatnonzero(~regular)
    with warnings.catch_warnings():
        # Ignores warnings: they are for writers, and the specification allows these events.
        warnings.simplefilter("ignore")
        read = [_read_event(columns, int(row), profile) for row in irregular]
    order = number_array(np.argsort(np.concatenate((np.flatnonzero(regular), irregular))))
    merged = {}
    for name, array in events.items():
        others = pa.array([event.get(name) for event in read], type=EVENT_SCHEMA.field(name).type)
        merged[name] = pa.concat_arrays([array, others]).take(order)
    return merged


def _read_event(columns: RecordColumns, row: int, profile: Profile) -> dict[str, Any]:
    """Reads one record with `from_kafka`; returns its values by column.

    If the record is no valid event, returns only `error`, and `value` if the value can be read.
    """
    error = None if columns.unreadable is None else columns.unreadable[row]
    if error is not None:
        return {"error": error.reason}
    value = columns.value(row)
    try:
        outcome = from_kafka(columns.key(row), value, columns.headers(row), profile=profile)
        if isinstance(outcome, CloudEvent):
            return _event_row(outcome)
        return {"error": outcome.reason, "value": value}
    except CloudEventError as fault:
        return {"error": str(fault), "value": value}


def _event_row(event: CloudEvent) -> dict[str, Any]:
    """Returns an event's columns. Raises CloudEventError as `CloudEvent.data_bytes` does."""
    try:
        time = None if event.time is None else event.time.datetime.astimezone(UTC)
    except (CloudEventError, OverflowError):
        time = None  # a valid time that a datetime cannot represent
    return {
        "specversion": event.specversion,
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "time": time,
        "dataschema": event.dataschema,
        "datacontenttype": event.datacontenttype,
        "extensions": [(name, canonical(value)) for name, value in event.extensions.items()],
        "data": event.data_bytes(),
    }
