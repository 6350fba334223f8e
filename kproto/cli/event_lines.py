"""Converts lines of JSON to records of CloudEvents, and records to such lines.

The only module of kproto that imports `kproto_cloudevents`, which the commands need for events
alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    Mode,
    NotAnEvent,
    OpaqueEvent,
    from_json,
    from_kafka,
    partition_key,
    to_json,
    to_kafka,
)

from ..client import ProducerRecord
from ..records.record import Record
from ..wire.errors import DecodeError, EncodeError

__all__ = ["event_line", "record_of_event_line"]


def record_of_event_line(
    line: bytes, mode: Mode, headers: Sequence[tuple[str, bytes | None]] = ()
) -> ProducerRecord:
    """Returns the record of an event, with further `headers`.

    The key of the record is the extension `partitionkey`, if the event has one. Raises EncodeError
    if the line is no valid event in JSON, or if a header would change the event.
    """
    try:
        record = to_kafka(from_json(line), mode, key_mapper=partition_key, headers=headers)
    except CloudEventError as error:
        raise EncodeError(f"is no valid CloudEvent: {error}") from error
    return ProducerRecord(record.value, record.key, record.headers)


def event_line(record: Record) -> bytes:
    """Returns the event of a record as a line of JSON.

    Raises DecodeError for a record that is no event, or no valid or readable one.
    """
    try:
        event = from_kafka(record.key, record.value, record.headers)
        if isinstance(event, CloudEvent):
            return to_json(event)
    except CloudEventError as error:
        raise DecodeError(f"is no valid CloudEvent: {error}") from error
    if isinstance(event, NotAnEvent):
        raise DecodeError("is no CloudEvent")
    assert isinstance(event, OpaqueEvent)
    raise DecodeError("is a CloudEvent in a format that kproto does not read")
