"""CloudEvents as flat columns, straight from the headers of a whole chunk of records.

Owns the columns of an event and the fast way to them: each attribute's header values become one
Arrow column, and an attribute is checked once for each different value, or with one vectorized
test. Whatever that way does not prove right (structured mode, a null or repeated header, unusual
characters, a broken attribute) goes record by record through `kproto_cloudevents`, whose verdict
counts. So both ways agree: the fast one takes only what the binding would read the same.

Knows nothing of sockets or Spark.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kproto_cloudevents import CloudEvent, CloudEventError, from_kafka
from kproto_cloudevents.media_type import parse_media_type
from kproto_cloudevents.types import canonical
from kproto_cloudevents.version_tables import V1_0

from .arrow_columns import RECORD_FIELDS, binary_array, record_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .columns import RecordColumns

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

__all__ = ["EVENT_FIELDS", "event_batch"]

# Attributes first, then the data, then the record that carried the event. `error` says why a
# record is no event; then `value` and `headers` hold the record as it was and the attributes are
# null. `time` is the instant, to the microsecond; the text as written stands in the headers.
EVENT_FIELDS: Final[dict[str, pa.DataType]] = {
    "specversion": pa.string(),
    "id": pa.string(),
    "source": pa.string(),
    "type": pa.string(),
    "subject": pa.string(),
    "time": pa.timestamp("us", tz="UTC"),
    "dataschema": pa.string(),
    "datacontenttype": pa.string(),
    "extensions": pa.map_(pa.string(), pa.string()),
    "data": pa.binary(),
    "error": pa.string(),
    "value": pa.binary(),
    **{name: RECORD_FIELDS[name] for name in RECORD_FIELDS if name != "value"},
}

# A chunk with more different header names than this goes through the binding record by record:
# names are few in any real topic, and each costs one pass over all headers.
_MAX_HEADER_NAMES: Final = 128

_RECORD_NAMES: Final = frozenset(
    ("key", "topic", "partition", "offset", "timestamp", "timestampType")
)

_CONTENT_TYPE: Final = "content-type"
_PREFIX: Final = "ce_"
_CORE: Final = ("specversion", "id", "source", "type", "subject", "time", "dataschema")
_REQUIRED: Final = ("specversion", "id", "source", "type")

# What the headers say: the row of the header for each record, -1 where it has none.
_Picked = dict[str, "Int64s"]


def event_batch(
    columns: RecordColumns,
    *,
    topic: str,
    partition: int,
    names: Sequence[str] = tuple(EVENT_FIELDS),
    all_headers: bool = False,
) -> pa.RecordBatch:
    """The columns called `names` (of `EVENT_FIELDS`) as an Arrow record batch, a row a record.

    `headers` is null for a record that is an event, unless `all_headers`.

    Raises:
        CorruptBatchError: a header key is not UTF-8.
    """
    buffer = pa.py_buffer(columns.buffer)
    picked, extensions, regular = _attribute_headers(columns, buffer)
    values = {name: binary_array(buffer, columns.header_values, picked[name]) for name in picked}
    for name, array in values.items():
        regular &= _CHECKS.get(name, _check_plain_text)(array)
    if len(extensions):
        rows = _rows_of_headers(columns)[extensions]
        plain = _check_plain_text(binary_array(buffer, columns.header_values, extensions))
        regular[rows[~plain]] = False

    events = _event_arrays(columns, buffer, values, extensions, regular)
    if not regular.all():
        events = _with_irregular(events, columns, regular)
    arrays = {}
    for name in names:
        if name in _RECORD_NAMES:
            arrays[name] = record_array(name, columns, buffer, topic, partition)
        elif name == "headers":
            arrays[name] = _headers(columns, buffer, events["error"], all_headers)
        else:
            arrays[name] = events[name]
    schema = pa.schema([pa.field(name, EVENT_FIELDS[name]) for name in names])
    return pa.RecordBatch.from_arrays([arrays[name] for name in names], schema=schema)


def _headers(
    columns: RecordColumns, buffer: pa.Buffer, error: pa.Array, all_headers: bool
) -> pa.Array:
    """The headers column; costs next to nothing when no record needs it."""
    if not all_headers and error.null_count == len(error):
        return pa.nulls(len(error), EVENT_FIELDS["headers"])
    headers = record_array("headers", columns, buffer, "", 0)
    return headers if all_headers else pc.if_else(error.is_valid(), headers, None)


def _rows_of_headers(columns: RecordColumns) -> Int64s:
    """For each header the row of its record."""
    return np.repeat(np.arange(len(columns)), np.diff(columns.header_offsets))


def _attribute_headers(columns: RecordColumns, buffer: pa.Buffer) -> tuple[_Picked, Int64s, Bools]:
    """Which header holds which attribute, which are extensions, and the regular records.

    A record is regular so far if it has each required attribute, none twice or null, and no
    header that looks like an attribute but has an unusual name.
    """
    count = len(columns)
    rows = _rows_of_headers(columns)
    regular = np.ones(count, dtype=np.bool_)
    encoded = binary_array(buffer, columns.header_keys).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    try:
        header_names = encoded.dictionary.cast(pa.string()).to_pylist()
    except pa.ArrowInvalid:
        raise columns.not_utf8() from None
    nothing = np.empty(0, dtype=np.int64)
    if len(header_names) > _MAX_HEADER_NAMES:
        return {}, nothing, np.zeros(count, dtype=np.bool_)
    picked: _Picked = {}
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
            picked[attribute] = np.full(count, -1, dtype=np.int64)
            picked[attribute][record] = at
        else:
            is_extension[code] = True
    for attribute in _REQUIRED:
        regular &= picked[attribute] >= 0 if attribute in picked else False
    if columns.header_values.null is not None:
        regular[rows[columns.header_values.null]] = False
    extensions = np.flatnonzero(is_extension[codes]) if is_extension.any() else nothing
    return picked, extensions, regular


def _attribute_of(header: str) -> str | None:
    """The attribute that a header carries: None for no attribute, "" for one to look at closely."""
    if header == _CONTENT_TYPE:
        return "datacontenttype"
    if not header.startswith(_PREFIX):
        return None
    name = header.removeprefix(_PREFIX)
    usual = name.isascii() and name.isalnum() and name.islower() and not name[0].isdigit()
    # 20: the binding warns of longer names, so it shall see them.
    return name if usual and len(name) <= 20 and name not in ("data", "datacontenttype") else ""


# --- checks: each gives True for the values that are right without doubt, and for nulls --------


def _check_plain_text(array: pa.Array) -> Bools:
    """Text of one character or more, all of them printable ASCII."""
    data = array.buffers()[2]
    lengths = pc.fill_null(pc.binary_length(array), 1).to_numpy(zero_copy_only=False)
    filled: Bools = lengths > 0
    if data is None or data.size == 0:
        return filled
    text = np.frombuffer(data, dtype=np.uint8)
    if text.min() >= 0x20 and text.max() <= 0x7E:
        return filled
    return _matches(array, r"\A[ -~]+\z")


def _matches(array: pa.Array, pattern: str) -> Bools:
    found = pc.fill_null(pc.match_substring_regex(array, pattern), True)
    matching: Bools = found.to_numpy(zero_copy_only=False)
    return matching


# RFC 3339 without what needs a closer look: leap seconds, more than six digits of a second,
# the years before 1000 and after 8999, and the 29th of February.
_USUAL_TIME: Final = (
    r"\A[1-8][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])\z"
)


def _check_time(array: pa.Array) -> Bools:
    return _matches(array, _USUAL_TIME)


def _check_each_value(is_right: Callable[[str], bool]) -> Callable[[pa.Array], Bools]:
    """A check that runs once for each different value: sources and types are few."""

    def check(array: pa.Array) -> Bools:
        encoded = array.dictionary_encode()
        right = [_is_text(raw, is_right) for raw in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(right)).to_numpy(zero_copy_only=False)
        by_row: Bools = np.array([*right, True], dtype=np.bool_)[codes]
        return by_row

    return check


def _is_text(raw: bytes, is_right: Callable[[str], bool]) -> bool:
    try:
        return is_right(raw.decode())
    except UnicodeDecodeError:
        return False


def _obeys(attribute: str) -> Callable[[pa.Array], Bools]:
    spec = V1_0.attributes[attribute]
    return _check_each_value(lambda text: spec.fault(text) is None)


def _is_binary_mode(content_type: str) -> bool:
    """A right media type that does not say structured mode."""
    media_type = parse_media_type(content_type)
    return (
        media_type is not None
        and not media_type.is_event_format
        and not media_type.is_batch_format
        and V1_0.attributes["datacontenttype"].fault(content_type) is None
    )


_CHECKS: Final[Mapping[str, Callable[[pa.Array], Bools]]] = {
    "specversion": _check_each_value(lambda text: text == V1_0.label),
    "source": _obeys("source"),
    "type": _obeys("type"),
    "dataschema": _obeys("dataschema"),
    "datacontenttype": _check_each_value(_is_binary_mode),
    "time": _check_time,
}


# --- from header values to event columns -------------------------------------------------------


def _event_arrays(
    columns: RecordColumns,
    buffer: pa.Buffer,
    values: Mapping[str, pa.Array],
    extensions: Int64s,
    regular: Bools,
) -> dict[str, pa.Array]:
    """The event's columns for the regular records alone."""
    everyone = bool(regular.all())
    mask = pa.array(regular)
    kept = np.flatnonzero(regular)
    arrays: dict[str, pa.Array] = {}
    for name in (*_CORE, "datacontenttype"):
        if name not in values:
            arrays[name] = pa.nulls(len(kept), EVENT_FIELDS[name])
            continue
        array = values[name] if everyone else values[name].filter(mask)
        text = array.cast(pa.string())
        arrays[name] = text.cast(EVENT_FIELDS[name]) if name == "time" else text
    arrays["extensions"] = _extension_maps(columns, buffer, extensions, regular)
    arrays["data"] = binary_array(buffer, columns.values, None if everyone else kept)
    arrays["error"] = pa.nulls(len(kept), pa.string())
    arrays["value"] = pa.nulls(len(kept), pa.binary())
    return arrays


def _extension_maps(
    columns: RecordColumns, buffer: pa.Buffer, extensions: Int64s, regular: Bools
) -> pa.Array:
    """Each regular record's extensions by name, in the order of its headers."""
    rows = _rows_of_headers(columns)[extensions]
    wanted = regular[rows]
    counts = np.bincount(rows[wanted], minlength=len(columns))[regular]
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    header = extensions[wanted]
    keys = binary_array(buffer, columns.header_keys, header).cast(pa.string())
    values = binary_array(buffer, columns.header_values, header).cast(pa.string())
    return pa.MapArray.from_arrays(
        pa.array(offsets), pc.utf8_slice_codeunits(keys, len(_PREFIX)), values
    )


def _with_irregular(
    events: Mapping[str, pa.Array], columns: RecordColumns, regular: Bools
) -> dict[str, pa.Array]:
    """The columns of all records: the regular ones, and the others read one by one."""
    irregular = np.flatnonzero(~regular)
    with warnings.catch_warnings():
        # What the specification advises against is no fault of the reader.
        warnings.simplefilter("ignore")
        read = [_read_event(columns, int(row)) for row in irregular]
    order = pa.array(np.argsort(np.concatenate((np.flatnonzero(regular), irregular))))
    merged = {}
    for name, array in events.items():
        others = pa.array([event.get(name) for event in read], type=EVENT_FIELDS[name])
        merged[name] = pa.concat_arrays([array, others]).take(order)
    return merged


def _read_event(columns: RecordColumns, row: int) -> dict[str, Any]:
    """One record through the binding: its event columns, or `error` and the value."""
    value = columns.value(row)
    try:
        outcome = from_kafka(columns.key(row), value, columns.headers(row))
        if isinstance(outcome, CloudEvent):
            return _columns_of(outcome)
        return {"error": outcome.reason, "value": value}
    except CloudEventError as error:
        return {"error": str(error), "value": value}


def _columns_of(event: CloudEvent) -> dict[str, Any]:
    """An event's columns. Raises CloudEventError for data that its charset cannot express."""
    try:
        time = None if event.time is None else event.time.datetime.astimezone(UTC)
    except (CloudEventError, OverflowError):
        time = None  # a right time that a datetime cannot hold
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
