"""Finds the record that an event was read from.

An event keeps this record in `_message`, so that the record can be written again byte for byte:
`reading` sets `_message`, and `writing` uses it. This module also defines the base class of
`LazyEvent` for `writing`, which cannot import `lazy`: `lazy` imports `writing` indirectly.
"""

from __future__ import annotations

from typing import NamedTuple

from ..event.cloud_event import CloudEvent, no_event_error
from ..event.data import as_payload
from ..formats.registry import EventFormat
from ..protocol_binding import Mode
from .record import KafkaRecord

__all__ = ["StructuredOrigin", "UnreadEvent", "kafka_record"]


class StructuredOrigin(NamedTuple):
    """The origin of an event that was read in structured mode.

    The origin of an event in binary mode is a plain tuple of the record's key and headers, which is
    cheaper. The record's value is then the event's data.
    """

    record: KafkaRecord
    event_format: EventFormat

    @property
    def mode(self) -> Mode:
        """Returns the content mode of the record, always "structured"."""
        return "structured"


class UnreadEvent:
    """The base class of `LazyEvent`: an event whose record is not completely read yet."""

    __slots__ = ()

    def event(self) -> CloudEvent:
        """Reads and returns the whole event. Raises CloudEventError if the event breaks a rule."""
        raise NotImplementedError  # `LazyEvent`, the only subclass, overrides it


def kafka_record(event: CloudEvent) -> KafkaRecord | None:
    """Returns the Kafka record that an event was read from; None if it was not read from one.

    Raises CloudEventError for an object that is not a CloudEvent.
    """
    if not isinstance(event, CloudEvent):
        raise no_event_error(event)
    origin = event._message
    if isinstance(origin, StructuredOrigin):
        return origin.record
    if type(origin) is tuple:
        key, headers = origin
        return KafkaRecord(key, as_payload(event._data, event.datacontenttype), headers)
    return None
