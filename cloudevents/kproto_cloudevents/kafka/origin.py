"""What an event remembers of the record that it was read from, so that it can be written again.

The event keeps it as its `message`, into which only this room looks. Reading makes it, writing
uses it; this module does neither. It also names the shape of an event that is not read yet, which
writing must know and lazy reading, which stands above it, has.
"""

from __future__ import annotations

from typing import NamedTuple

from ..binding import Mode
from ..event.cloud_event import CloudEvent, no_event_error
from ..formats.registry import EventFormat
from .record import KafkaRecord

__all__ = ["StructuredOrigin", "UnreadEvent", "kafka_record"]


class StructuredOrigin(NamedTuple):
    """What an event read in structured mode remembers.

    One read in binary mode has a plain tuple, which is cheaper: its record's key and headers; the
    value is its data.
    """

    record: KafkaRecord
    event_format: EventFormat

    @property
    def mode(self) -> Mode:
        """Returns the mode of the record; that of a plain tuple is binary."""
        return "structured"


class UnreadEvent:
    """A record that holds an event, which is read when it is asked for: a `LazyEvent`."""

    __slots__ = ()

    def event(self) -> CloudEvent:
        """Returns the whole event, every rule checked. Raises CloudEventError."""
        raise NotImplementedError


def kafka_record(event: CloudEvent) -> KafkaRecord | None:
    """Returns the Kafka record that an event was read from; None for an event made otherwise.

    Raises CloudEventError for what is no CloudEvent.
    """
    if not isinstance(event, CloudEvent):
        raise no_event_error(event)
    origin = event._message
    if isinstance(origin, StructuredOrigin):
        return origin.record
    if type(origin) is tuple:
        key, headers = origin
        return KafkaRecord(key, event.data_bytes(), headers)
    return None
