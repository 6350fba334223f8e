"""Converts columns of CloudEvents to columns of records, the inverse of `arrow_events`.

The fast path writes binary mode, one column after the other. The slow path converts row by row with
`kproto_cloudevents`: all rows in structured mode, and rows that the fast path cannot prove valid. A
row with an `error` is not an event; it becomes its original record. In binary mode, a row whose
headers match its columns keeps its headers. In any other row, headers that are not attributes
follow the attributes, as in `to_kafka`.
"""

from __future__ import annotations

import warnings
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kproto_cloudevents import (
    PORTABLE_JSON_FORMAT,
    CloudEvent,
    CloudEventError,
    EventFormat,
    Mode,
    to_kafka,
)

from kproto.records import GrowingBatch

from ..arrow_events import events_as_arrow
from ..arrow_numpy import binary_scalar, bounds, number_array
from ..arrow_records import RECORD_SCHEMA
from ..event_checks import CHECKS, check_plain_text
from ..event_schema import EVENT_SCHEMA
from ..to_arrow import arrow_batches
from .headers import (
    HeaderColumn,
    binary_lengths,
    check_keys,
    headers_of_lists,
    join_binary,
)
from .pieces import group_binary
from .record_sections import record_sections
from .varints import varints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ..record_columns import Bools, Int64s

__all__ = ["ContentMode", "EventRecords", "UnwritableEventError", "records_of_events"]

#: The content mode of written events; "default" is the default of `to_kafka`.
ContentMode: TypeAlias = Literal["default", "binary", "structured"]

#: The magic of record batches, the only record format with headers.
_MAGIC_OF_BATCHES: Final = 2

#: By attribute: its header in binary mode (Kafka binding 3.2.3), in the order of writing.
_HEADERS: Final = {
    "specversion": "ce_specversion",
    "id": "ce_id",
    "source": "ce_source",
    "type": "ce_type",
    "subject": "ce_subject",
    "time": "ce_time",
    "dataschema": "ce_dataschema",
    "datacontenttype": "content-type",
}
_REQUIRED: Final = ("id", "source", "type")
_PREFIX: Final = "ce_"

#: By version before 1.0, then by column: the version's name of the attribute.
_OLD_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "0.1": {"dataschema": "schemaurl", "datacontenttype": "contenttype"},
    "0.2": {"dataschema": "schemaurl", "datacontenttype": "contenttype"},
    "0.3": {"dataschema": "schemaurl"},
}

#: The extension names that the fast path accepts (CloudEvents 1.0, naming conventions).
_USUAL_NAME: Final = r"^[a-z0-9]{1,20}$"
_HEADER_OF_EVENT: Final = r"(?i)^(ce_.*|content-type)$"

# The columns by which events are compared; `error` is not null if a record is not an event.
_COMPARED: Final = pa.schema(
    [EVENT_SCHEMA.field(name) for name in (*_HEADERS, "extensions", "data", "error")]
)

# The range of years that `strftime` writes with four digits.
_FIRST_S: Final = -30_610_224_000  # 1000-01-01
_LAST_S: Final = 253_402_300_800  # 10000-01-01
_FIRST_EVER_S: Final = -62_135_596_800  # 0001-01-01, the first day of Python's calendar


class UnwritableEventError(ValueError):
    """A row is not a valid event; `row` is its index in the batch."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


class EventRecords(NamedTuple):
    """The keys, values and headers of records, one entry per record in each column."""

    keys: pa.Array
    values: pa.Array
    headers: HeaderColumn


def records_of_events(
    rows: pa.RecordBatch,
    mode: ContentMode,
    message_format: int = 2,
    *,
    portable_json: bool = False,
) -> EventRecords:
    """Converts rows with columns of `EVENT_SCHEMA` to records; missing columns count as null.

    `message_format` is the magic of the batches. In formats 0 and 1, which have no headers, an
    event is written in structured mode as JSON, unless `mode` is "binary": then it is refused.
    `portable_json` writes structured mode with `PORTABLE_JSON_FORMAT`.

    Raises:
        UnwritableEventError: a row is not a valid event.
    """
    options = _WriterOptions(
        None if mode == "default" else mode,
        message_format,
        PORTABLE_JSON_FORMAT if portable_json else None,
    )
    events = _Events(rows)
    with_error = events.errors()
    events.check(with_error)
    same = fast = np.zeros(len(events), dtype=bool)
    if mode != "structured" and message_format == _MAGIC_OF_BATCHES:
        same = ~with_error & _headers_match(events)
        fast = ~with_error & ~same & events.are_regular()
    slow = ~(with_error | same | fast)
    parts = [
        (indexes, make(events.select(indexes)))
        for indexes, make in (
            (np.flatnonzero(with_error), _original_records),
            (np.flatnonzero(same), _original_headers),
            (np.flatnonzero(fast), _binary),
        )
        if len(indexes)
    ]
    if slow.any():
        indexes = np.flatnonzero(slow)
        parts.append((indexes, _one_by_one(events.select(indexes), indexes, options)))
    if not parts:
        nothing = pa.nulls(0, pa.binary())
        return EventRecords(nothing, nothing, HeaderColumn.none(0))
    order = np.argsort(np.concatenate([indexes for indexes, _ in parts]), kind="stable")
    found = [part for _, part in parts]
    order_array = number_array(order)
    return EventRecords(
        pa.concat_arrays([part.keys for part in found]).take(order_array),
        pa.concat_arrays([part.values for part in found]).take(order_array),
        HeaderColumn(
            np.concatenate([part.headers.counts for part in found]),
            pa.concat_arrays([part.headers.data for part in found]),
        ).take(order),
    )


class _Events:
    """Rows with the columns of events; a missing column is null."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def select(self, rows: Int64s) -> _Events:
        """Returns the rows with these indexes."""
        if len(rows) == len(self):
            return self
        return _Events(self._rows.take(number_array(rows)))

    def column(self, name: str) -> pa.Array:
        """Returns a column, cast to its type in `EVENT_SCHEMA`."""
        kind = EVENT_SCHEMA.field(name).type
        if name not in self._rows.schema.names:
            return pa.nulls(len(self), kind)
        return self._rows.column(name).cast(kind)

    def text(self, attribute: str) -> pa.Array:
        """Returns an attribute as the text of its header; a null specversion is 1.0."""
        column = self.column(attribute)
        if attribute == "time":
            return _format_times(column)
        if attribute == "specversion":
            return pc.fill_null(column, "1.0")
        return column

    def errors(self) -> Bools:
        """Returns a mask of the rows that have an `error`; these rows are not events."""
        found: Bools = self.column("error").is_valid().to_numpy(zero_copy_only=False)
        return found

    def check(self, with_error: Bools) -> None:
        """Raises UnwritableEventError for faults that the conversion does not detect.

        These faults are a null or invalid header key and, in a row without an error, a non-null
        `value` or a time outside the years 1 to 9999. `with_error` is a mask of the rows with an
        error.
        """
        try:
            check_keys(self.column("headers"))
        except ValueError as error:
            reason, row = error.args
            raise UnwritableEventError(row, reason) from None
        given = self.column("value").is_valid().to_numpy(zero_copy_only=False) & ~with_error
        if given.any():
            raise UnwritableEventError(
                int(np.flatnonzero(given)[0]),
                "it has a value, which only a row with an error may have; the data of an event is "
                "in the column data",
            )
        seconds = self.column("time").cast(pa.int64()).fill_null(0)
        seconds = seconds.to_numpy(zero_copy_only=False) // 1_000_000
        wrong = ~with_error & ((seconds < _FIRST_EVER_S) | (seconds >= _LAST_S))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise UnwritableEventError(row, "time is outside the years 1 to 9999")

    def are_regular(self) -> Bools:
        """Returns a mask of the rows that are certainly valid events, for the fast path."""
        are_regular = np.ones(len(self), dtype=np.bool_)
        for attribute in _HEADERS:
            if attribute == "time":
                are_regular &= _are_regular_times(self.column(attribute))
                continue
            column = self.text(attribute).cast(pa.binary())
            are_regular &= CHECKS.get(attribute, check_plain_text)(column)
            if attribute in _REQUIRED:
                are_regular &= column.is_valid().to_numpy(zero_copy_only=False)
        extensions = self.column("extensions")
        counts, names, values = _entries(extensions)
        if len(names):
            usual = pc.match_substring_regex(names, _USUAL_NAME).to_numpy(zero_copy_only=False)
            usual &= ~pc.is_in(names, pa.array([*_HEADERS, "data"])).to_numpy(zero_copy_only=False)
            usual &= check_plain_text(values.cast(pa.binary()))
            usual &= values.is_valid().to_numpy(zero_copy_only=False)
            are_regular[
                np.repeat(np.arange(len(self)), counts)[~usual | _repeated_names(counts, names)]
            ] = False
        return are_regular


def _repeated_names(counts: Int64s, names: pa.Array) -> Bools:
    """Returns a mask of the entries that repeat the name of an earlier entry of the same map."""
    encoded = names.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    codes_by_row = np.repeat(np.arange(len(counts)), counts) * len(encoded.dictionary) + codes
    repeated = np.ones(len(codes_by_row), dtype=np.bool_)
    repeated[np.unique(codes_by_row, return_index=True)[1]] = False
    return repeated


def _are_regular_times(times: pa.Array) -> Bools:
    seconds = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False) // 1_000_000
    usual: Bools = (seconds >= _FIRST_S) & (seconds < _LAST_S)
    return usual


def _format_times(times: pa.Array) -> pa.Array:
    """Formats times as RFC 3339 in UTC, without trailing zeros of a fraction."""
    text = pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ")
    text = pc.replace_substring_regex(text, r"\.0+Z$", "Z")
    return pc.replace_substring_regex(text, r"(\.[0-9]*[1-9])0+Z$", r"\1Z")


def _format_time(time: datetime) -> str:
    """Formats one time of any year, like `_format_times`."""
    text = time.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def _entries(maps: pa.Array) -> tuple[Int64s, pa.Array, pa.Array]:
    """Returns the number of entries of each map, and all keys and all values."""
    if not len(maps):
        return np.empty(0, dtype=np.int64), maps.keys[:0], maps.items[:0]
    valid = maps.is_valid()
    offsets = bounds(maps)
    counts = np.diff(offsets).astype(np.int64)
    counts[~valid.to_numpy(zero_copy_only=False)] = 0
    first, last = int(offsets[0]), int(offsets[-1])
    return counts, maps.keys[first:last], maps.items[first:last]


# --- four paths to records ----------------------------------------------------------------------


def _original_records(events: _Events) -> EventRecords:
    """Returns the original records of rows with an error."""
    return EventRecords(
        events.column("key"), events.column("value"), headers_of_lists(events.column("headers"))
    )


def _original_headers(events: _Events) -> EventRecords:
    """Returns records with the headers of the column `headers`, unchanged.

    Call this function only for rows for which `_headers_match` is True: only the records of such
    rows decode to the events of the rows.
    """
    return EventRecords(
        events.column("key"), events.column("data"), headers_of_lists(events.column("headers"))
    )


def _headers_match(events: _Events) -> Bools:
    """Returns a mask: True for a row whose headers and data decode to the event in its columns."""
    given = events.column("headers")
    same: Bools = given.is_valid().to_numpy(zero_copy_only=False).copy()
    if not same.any():
        return same
    rows = np.flatnonzero(same)
    selected = events.select(rows)
    (section,) = record_sections(*_original_headers(selected), batch_bytes=1 << 62)
    fetched = GrowingBatch.of_encoded(section.data, section.count, 0).build()
    read = _Events(
        pa.Table.from_batches(
            arrow_batches(
                fetched,
                partial(events_as_arrow, topic="", partition=0, schema=_COMPARED),
                chunk_bytes=1 << 30,
            )
        )
        .combine_chunks()
        .to_batches()[0]
    )
    equal = np.ones(len(rows), dtype=np.bool_)
    for name in _COMPARED.names:
        given_column = selected.text(name) if name == "specversion" else selected.column(name)
        equal &= _equals(given_column, read.column(name))
    same[rows] = equal
    return same


def _equals(first: pa.Array, second: pa.Array) -> Bools:
    """Returns a mask of the rows in which two columns are equal; null equals null."""
    if not pa.types.is_map(first.type):
        equal = pc.fill_null(pc.equal(first, second), False)
        both = pc.and_(first.is_null(), second.is_null())
        found: Bools = pc.or_(equal, both).to_numpy(zero_copy_only=False)
        return found
    counts, names, values = _entries(first)
    others, other_names, other_values = _entries(second)
    same: Bools = counts == others
    if same.all():
        wrong = ~(_equals(names, other_names) & _equals(values, other_values))
        same[np.repeat(np.arange(len(counts)), counts)[wrong]] = False
        return same
    pairs = zip(first.to_pylist(), second.to_pylist(), strict=True)
    return np.array([one == another for one, another in pairs], dtype=np.bool_)


def _binary(events: _Events) -> EventRecords:
    """Encodes valid events in binary mode on the fast path, one column after the other."""
    pieces: list[pa.Array] = []
    counts = np.zeros(len(events), dtype=np.int64)
    for attribute, header in _HEADERS.items():
        column = events.text(attribute).cast(pa.binary())
        if column.null_count == len(column):
            continue
        counts += column.is_valid().to_numpy(zero_copy_only=False)
        name = _encoded_name(header)
        entry = pc.binary_join_element_wise(
            name, varints(binary_lengths(column)), column, binary_scalar(b"")
        )
        pieces.append(entry)
    more, names, values = _entries(events.column("extensions"))
    if len(names):
        names, values = pc.binary_join_element_wise(_PREFIX, names, ""), values.cast(pa.binary())
        entries = join_binary(
            varints(binary_lengths(names)),
            names.cast(pa.binary()),
            varints(binary_lengths(values)),
            values,
        )
        ends = np.zeros(len(events) + 1, dtype=np.int64)
        np.cumsum(more, out=ends[1:])
        pieces.append(group_binary(entries, ends))
        counts += more
    event_headers = _event_headers(events)
    counts += event_headers.counts
    headers = HeaderColumn(counts, join_binary(*pieces, event_headers.data))
    return EventRecords(events.column("key"), events.column("data"), headers)


def _encoded_name(header: str) -> pa.Scalar:
    name = header.encode()
    length = varints(np.array([len(name)], dtype=np.int64))[0].as_py()
    return binary_scalar(length + name)


def _event_headers(events: _Events) -> HeaderColumn:
    """Returns the column `headers` without headers that hold CloudEvents attributes."""
    lists = events.column("headers")
    if lists.null_count == len(lists):
        return HeaderColumn.none(len(lists))
    keys = lists.flatten().field("key")
    is_extra = pc.invert(pc.match_substring_regex(keys, _HEADER_OF_EVENT))
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(lists)), counts)
    mask = is_extra.to_numpy(zero_copy_only=False)
    extra_counts = np.bincount(rows[mask], minlength=len(lists))
    ends = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum(extra_counts, out=ends[1:])
    entries = lists.flatten().filter(is_extra)
    return headers_of_lists(
        pa.ListArray.from_arrays(
            number_array(ends), entries, type=RECORD_SCHEMA.field("headers").type
        )
    )


class _WriterOptions(NamedTuple):
    """The options of `to_kafka` for all rows of a batch."""

    mode: Mode | None
    message_format: int
    event_format: EventFormat | None


def _one_by_one(events: _Events, rows: Int64s, options: _WriterOptions) -> EventRecords:
    """Converts the events in `rows` with `to_kafka`, one by one: the slow path.

    Raises UnwritableEventError for the first invalid event, with its row and its fault. `rows` are
    row numbers of the caller's batch.
    """
    names = [name for name in EVENT_SCHEMA.names if name in (*_HEADERS, "extensions", "data")]
    columns = {name: _as_list(events, rows, name) for name in (*names, "key", "headers")}
    columns["time"] = [None if each is None else _format_time(each) for each in columns["time"]]
    written = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # e.g. long names, which the specification allows
        for at, row in enumerate(rows.tolist()):
            try:
                written.append(_record({name: columns[name][at] for name in columns}, options))
            except CloudEventError as error:
                raise UnwritableEventError(row, str(error)) from error
    lists = [
        [{"key": name, "value": value} for name, value in headers] for _, _, headers in written
    ]
    return EventRecords(
        pa.array([key for key, _, _ in written], pa.binary()),
        pa.array([value for _, value, _ in written], pa.binary()),
        headers_of_lists(pa.array(lists, RECORD_SCHEMA.field("headers").type)),
    )


def _as_list(events: _Events, rows: Int64s, name: str) -> list[Any]:
    """Returns the column `name` as a list.

    Raises UnwritableEventError for text that is not UTF-8. `rows` has the index of each event in
    the caller's batch, for this error.
    """
    column = events.column(name)
    try:
        found: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        for at, row in enumerate(rows.tolist()):
            try:
                column[at].as_py()
            except UnicodeDecodeError as error:
                raise UnwritableEventError(row, f"{name} is no UTF-8: {error}") from error
        raise
    return found


def _record(
    event: dict[str, Any], options: _WriterOptions
) -> tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]:
    """Returns key, value and headers of an event. Raises CloudEventError for an invalid event."""
    called = _OLD_NAMES.get(event["specversion"], {})
    given = {called.get(name, name): event[name] for name in _HEADERS if event[name] is not None}
    for name, value in event["extensions"] or ():
        if name in given or name in ("data", "specversion"):
            raise CloudEventError(f"extension {name!r} has the name of an attribute")
        given[name] = value
    own = [
        (each["key"], each["value"])
        for each in event["headers"] or ()
        if not (each["key"].lower().startswith(_PREFIX) or each["key"].lower() == "content-type")
    ]
    for name in _REQUIRED:
        if name not in given:
            raise CloudEventError(f"{name}: the required attribute is missing")
    try:
        made = CloudEvent(**given, data=event["data"])
    except TypeError as error:
        raise CloudEventError(str(error)) from None
    return to_kafka(made, key=event["key"], headers=own, **options._asdict())
