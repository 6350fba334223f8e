"""The failure headers of a forwarded record.

A forwarded record keeps its key, value and headers byte for byte. The failure headers follow the
record's own headers. Failure headers are always complete and in the order of `FAILURE_HEADERS`, so
that the client can find and remove them later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ...records import Header, Record
from ...wire.errors import CorruptBatchError

__all__ = [
    "FAILURE_HEADERS",
    "Failure",
    "add_record_note",
    "due_time",
    "error_text",
    "failure_of",
    "forwarded_headers",
    "has_readable_headers",
    "origin_of",
]

_TOPIC: Final = "kproto.origin.topic"
_PARTITION: Final = "kproto.origin.partition"
_OFFSET: Final = "kproto.origin.offset"
_TIMESTAMP: Final = "kproto.origin.timestamp"
_GROUP: Final = "kproto.group"
_ATTEMPTS: Final = "kproto.attempts"
_TYPE: Final = "kproto.error.type"
_MESSAGE: Final = "kproto.error.message"
_DUE: Final = "kproto.retry.due"

#: The names of the failure headers, in their order. Numbers are written in decimal.
FAILURE_HEADERS: Final = (
    _TOPIC,
    _PARTITION,
    _OFFSET,
    _TIMESTAMP,
    _GROUP,
    _ATTEMPTS,
    _TYPE,
    _MESSAGE,
    _DUE,
)

#: The name of the header that replaces the own headers of a dead letter if these could not be
#: decoded; the value of the header has their encoded bytes.
_UNREADABLE_HEADERS: Final = "kproto.unreadable.headers"

#: The most bytes of an error message in a header: the record must still fit into max.message.bytes
#: of its topic.
_LONGEST: Final = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """The origin of a forwarded record, and its last error.

    `topic`, `partition`, `offset`, `timestamp` (in ms) and `headers` are the fields of the original
    record, before any retry topic. `group` is the group whose handler failed last; `attempts`
    counts the attempts in all topics. `error_type` is the class of the last exception with its
    module. `due_ms` is the time of the next attempt, in ms since 1970; None for a dead letter.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    group: str
    attempts: int
    error_type: str
    error_message: str
    due_ms: int | None
    headers: tuple[Header, ...]


def failure_of(record: Record) -> Failure | None:
    """Returns the failure of a record that `run` forwarded; None for any other record.

    Raises CorruptBatchError if the headers of the record cannot be read.
    """
    headers = record.headers
    count = len(FAILURE_HEADERS)
    last = headers[-count:]
    if tuple(name for name, _ in last) != FAILURE_HEADERS:
        return None
    values = [None if value is None else value.decode(errors="replace") for _, value in last]
    topic, partition, offset, timestamp, group, attempts, kind, message, due = values
    try:
        return Failure(
            topic or "",
            int(partition or ""),
            int(offset or ""),
            int(timestamp or ""),
            group or "",
            int(attempts or ""),
            kind or "",
            message or "",
            None if due is None else int(due),
            tuple(headers[:-count]),
        )
    except ValueError:
        return None  # headers of another program


class RetryDueTime(NamedTuple):
    """The due time of a record in a retry topic, in ms since 1970.

    `group` is the group that forwarded the record, "" if it is unknown.
    """

    at_ms: float
    group: str


def due_time(record: Record, delay_ms: int, now_ms: int) -> RetryDueTime:
    """Returns the due time of a record in a retry topic.

    A record without failure headers was sent by another program: it is due `delay_ms` after its
    timestamp. The wait from `now_ms` is at most `delay_ms`, because the clock of the producer may
    be wrong.
    """
    try:
        failure = failure_of(record)
    except CorruptBatchError:
        failure = None  # the handler, or the pool that forwards the record, raises this error later
    if failure is None or failure.due_ms is None:
        at = record.timestamp + delay_ms
    else:
        at = failure.due_ms
    return RetryDueTime(min(at, now_ms + delay_ms), "" if failure is None else failure.group)


def origin_of(record: Record) -> Failure:
    """Returns the failure of a record that `run` forwarded.

    For any other record returns a failure without attempts, whose origin is the record itself. If
    the headers of the record cannot be decoded, the failure has one header instead, whose value has
    the encoded bytes of the headers.
    """
    headers: tuple[Header, ...]
    try:
        failure = failure_of(record)
        headers = tuple(record.headers)
    except CorruptBatchError:
        failure = None
        headers = ((_UNREADABLE_HEADERS, record.encoded_headers),)
    if failure is not None:
        return failure
    return Failure(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        "",
        0,
        "",
        "",
        None,
        headers,
    )


def has_readable_headers(record: Record) -> bool:
    """Returns True if the headers of a record can be decoded."""
    try:
        _ = record.headers
    except CorruptBatchError:
        return False
    return True


def forwarded_headers(
    origin: Failure,
    error: BaseException,
    group: str,
    attempts: int,
    due_ms: int | None,
    *,
    with_message: bool = True,
) -> list[Header]:
    """Returns the headers of a forwarded record: the original headers, and the failure headers.

    The record failed with `error`; `attempts` counts all attempts so far. `due_ms` is the time of
    the next attempt, in ms since 1970; None for a dead letter. `with_message=False` leaves the text
    of the error empty, which makes the record smaller.
    """
    kind = type(error)
    added: dict[str, object] = {
        _TOPIC: origin.topic,
        _PARTITION: origin.partition,
        _OFFSET: origin.offset,
        _TIMESTAMP: origin.timestamp,
        _GROUP: group,
        _ATTEMPTS: attempts,
        _TYPE: f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        _MESSAGE: error_text(error) if with_message else "",
        _DUE: due_ms,
    }
    return [
        *origin.headers,
        *(
            (name, None if value is None else str(value).encode(errors="replace"))
            for name, value in added.items()
        ),
    ]


def add_record_note(error: BaseException, record: Record) -> BaseException:
    """Adds a note that names `record` and says that it is not processed; returns `error`."""
    error.add_note(
        f"raised by the handler of {record.topic}[{record.partition}] at offset {record.offset}, "
        "which is not processed"
    )
    return error


def error_text(error: BaseException) -> str:
    """Returns the text of an error, up to 2,000 bytes; if `str()` raises, a text that says so."""
    try:
        text = str(error)
    except Exception as fault:  # noqa: BLE001 - the user's class is broken: forward the record
        text = f"its text could not be made: {type(fault).__name__}"
    return text.encode(errors="replace")[:_LONGEST].decode(errors="ignore")
