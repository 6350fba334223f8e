"""Writes the failure of a record into headers that follow its own.

Key, value and headers stay as they were, byte for byte; these headers are added at the end, always
all of them and in this order, so that they can be removed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ...records import Header, Record
from ...wire.errors import CorruptBatchError

__all__ = [
    "FAILURE_HEADERS",
    "Failure",
    "due_of",
    "failure_of",
    "headers_with",
    "origin_of",
    "text_of",
    "with_record_note",
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

#: In their order. What is a number stands there in decimal.
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

#: So many bytes of a message are told: a record that the topic took before is to fit with it.
_LONGEST: Final = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a forwarded record: its origin, and the reason.

    `timestamp` is that of the original record in ms; `attempts` counts all so far. `due_ms` is when
    it is retried, in ms since 1970; None for a dead letter. `headers` are those of the original
    record.
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
    told = headers[-count:]
    if tuple(name for name, _ in told) != FAILURE_HEADERS:
        return None
    values = [None if value is None else value.decode(errors="replace") for _, value in told]
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
        return None  # somebody else's


class Due(NamedTuple):
    """When a record of a retry topic is due, in ms since 1970; `group` forwarded it, ""
    if unknown.
    """

    at_ms: float
    group: str


def due_of(record: Record, delay_ms: int, now_ms: int) -> Due:
    """Returns when a record of a retry topic is due, in ms since 1970, also one of other producers.

    That is at most the delay from now, whatever the clock of the producer said.
    """
    try:
        told = failure_of(record)
    except CorruptBatchError:
        told = None  # that is told to who reads the headers, a handler or whoever sends it on
    at = record.timestamp + delay_ms if told is None or told.due_ms is None else told.due_ms
    return Due(min(at, now_ms + delay_ms), "" if told is None else told.group)


def origin_of(record: Record) -> Failure:
    """Returns the failure of a record; a record without one is its own origin."""
    told = failure_of(record)
    if told is not None:
        return told
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
        tuple(record.headers),
    )


def headers_with(
    origin: Failure, error: BaseException, group: str, attempts: int, due_ms: int | None
) -> list[Header]:
    """Returns the headers of a record that failed with `error`; `attempts` counts all so far."""
    kind = type(error)
    told: dict[str, object] = {
        _TOPIC: origin.topic,
        _PARTITION: origin.partition,
        _OFFSET: origin.offset,
        _TIMESTAMP: origin.timestamp,
        _GROUP: group,
        _ATTEMPTS: attempts,
        _TYPE: f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        _MESSAGE: text_of(error),
        _DUE: due_ms,
    }
    return [
        *origin.headers,
        *(
            (name, None if value is None else str(value).encode(errors="replace"))
            for name, value in told.items()
        ),
    ]


def with_record_note(error: BaseException, record: Record) -> BaseException:
    """Returns the error with a note that names the record, which is not processed."""
    error.add_note(
        f"raised by the handler of {record.topic}[{record.partition}] at offset {record.offset}, "
        "which is not done"
    )
    return error


def text_of(error: BaseException) -> str:
    """Returns the text of an error, as far as it has one; up to 2,000 bytes."""
    try:
        text = str(error)
    except Exception as fault:  # noqa: BLE001 - of the user's class: the record is sent on anyway
        text = f"its text could not be made: {type(fault).__name__}"
    return text.encode(errors="replace")[:_LONGEST].decode(errors="ignore")
