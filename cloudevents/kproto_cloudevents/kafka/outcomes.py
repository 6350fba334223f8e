"""What reading a record can come to when it comes to no event.

These say themselves which record they are, as an event does, because clients send whatever has
`to_kafka_record`. So this module stands above writing, and below reading, which makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import CloudEventError, Unknown, unknown_of
from . import writing
from .record import ForwardOnly, KafkaRecord

__all__ = ["InvalidEvent", "NotAnEvent", "OpaqueEvent", "invalid_event"]


class OpaqueEvent(ForwardOnly):
    """An event that can be forwarded as it is but not read; `to_kafka` gives its record back.

    Its event format or its specversion is unknown: `unknown` says which, the reason in words.
    """

    __slots__ = ()

    to_kafka_record = writing.to_kafka_record

    @property
    def unknown(self) -> Unknown | None:
        """What is not known here: "format" or "version". None if it was made by hand."""
        return unknown_of(self.reason)


class NotAnEvent(ForwardOnly):
    """A record with nothing of CloudEvents about it."""

    __slots__ = ()

    to_kafka_record = writing.to_kafka_record

    @property
    def tombstone(self) -> bool:
        """Returns True when the value is null: in a compacted topic it deletes its key."""
        return self.record.value is None


class InvalidEvent(NamedTuple):
    """A record that claims to be an event and breaks a rule, as reading many at once gives it."""

    record: KafkaRecord
    error: CloudEventError


def invalid_event(
    key: bytes | None, value: bytes | None, headers: object, error: CloudEventError
) -> InvalidEvent:
    """The outcome for a record that has been refused; headers that are none are left out."""
    kept = tuple(headers) if isinstance(headers, Sequence) else ()
    return InvalidEvent(KafkaRecord(key, value, kept), error)
