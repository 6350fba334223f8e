"""The record that an event was read from, stored so that it can be written again byte for byte.

The event stores it as `_message`, which only this package uses: `reading` sets it, `writing` uses
it. This module also defines the base class of an unread event for `writing`; `lazy` has the
subclass.
"""

from __future__ import annotations

from typing import NamedTuple

from ..event.cloud_event import CloudEvent, no_event_error
from ..formats.registry import EventFormat
from ..protocol_binding import Mode
from .record import KafkaRecord

__all__ = ["StructuredOrigin", "UnreadEvent", "kafka_record"]


class StructuredOrigin(NamedTuple):
    """The origin of an event that was read in structured mode.

    An event of binary mode has a plain tuple of the key and the headers of its record instead,
    which is cheaper; the value is the data of the event.
    """

    record: KafkaRecord
    event_format: EventFormat

    @property
    def mode(self) -> Mode:
        """Returns the content mode of the record; a plain tuple is binary."""
        return "structured"


class UnreadEvent:
    """A record that holds an event which is not read yet: a `LazyEvent`."""

    __slots__ = ()

    def event(self) -> CloudEvent:
        """Returns the whole event after checking every rule. Raises CloudEventError."""
        raise NotImplementedError


def kafka_record(event: CloudEvent) -> KafkaRecord | None:
    """Returns the Kafka record that an event was read from; None for any other event.

    Raises CloudEventError for an object that is not a CloudEvent.
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
