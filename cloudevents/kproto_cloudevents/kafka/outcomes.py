"""Defines the results of reading a record that is not a readable event.

Clients send any object that has the method `to_kafka_record`, so `OpaqueEvent` and `NotAnEvent`
have this method. The method is defined in `writing`, which this module imports. `reading` imports
this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import CloudEventError, Unknown, unknown_of
from . import writing
from .record import ForwardOnly, KafkaRecord

__all__ = ["InvalidEvent", "NotAnEvent", "OpaqueEvent", "invalid_event"]


class OpaqueEvent(ForwardOnly):
    """An event that can be forwarded but not read; `to_kafka` returns its record.

    Its event format or its specversion is unknown: see `unknown` and `reason`.
    """

    __slots__ = ()

    to_kafka_record = writing.to_kafka_record

    @property
    def unknown(self) -> Unknown | None:
        """Returns the unknown part: "format" or "version"; None if `reason` is a plain str."""
        return unknown_of(self.reason)


class NotAnEvent(ForwardOnly):
    """A record without a `ce_` header and without the content type of an event format."""

    __slots__ = ()

    to_kafka_record = writing.to_kafka_record

    @property
    def tombstone(self) -> bool:
        """Returns True if the value is null: in a compacted topic, the record deletes its key."""
        return self.record.value is None


class InvalidEvent(NamedTuple):
    """A record that claims to be an event but breaks a rule, and the error.

    `from_kafka_many` returns an `InvalidEvent`; `events` yields an `InvalidEvent` in a `Received`.
    """

    record: KafkaRecord
    error: CloudEventError


def invalid_event(
    key: bytes | None, value: bytes | None, headers: object, error: CloudEventError
) -> InvalidEvent:
    """Returns the `InvalidEvent` for a record that breaks a rule.

    The `InvalidEvent` has no headers if `headers` is not a sequence.
    """
    header_pairs = tuple(headers) if isinstance(headers, Sequence) else ()
    return InvalidEvent(KafkaRecord(key, value, header_pairs), error)
