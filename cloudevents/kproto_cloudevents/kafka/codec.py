"""`CloudEvents`: a codec of values for producers and consumers of `kproto`.

This module imports no client: `kproto` calls the codec with a context, of which the codec uses the
attributes that the protocols here declare.
"""

from __future__ import annotations

from typing import Protocol

from ..errors import CloudEventError
from ..event.cloud_event import CloudEvent
from ..formats.registry import EventFormat
from ..protocol_binding import DEFAULT, Mode, Profile
from .outcomes import NotAnEvent
from .reading import from_kafka
from .record import Header
from .writing import KeyMapper, to_kafka

__all__ = ["CloudEvents"]


class _EncodeContext(Protocol):
    """The headers and the key of the record to send; the codec replaces both."""

    headers: list[Header]
    key: bytes | None


class _ReadRecord(Protocol):
    """The record that was read, with its bytes."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def headers(self) -> list[Header]: ...


class _DecodeContext(Protocol):
    @property
    def record(self) -> _ReadRecord: ...


class CloudEvents:
    """Encodes events as records, and decodes records to events, by the Kafka protocol binding.

    `client.producer(value=CloudEvents())` sends events, and `client.consumer(…,
    value=CloudEvents())` returns records with an event as their value.

    Encoding writes value and headers of the record as `to_kafka` does, by default in the mode in
    which the event was read, or in binary mode; `mode`, `event_format`, `key_mapper` and
    `repeat_attributes` are arguments of `to_kafka`. A key that the caller sends is the key of the
    record; without one, the key is that of `key_mapper`, or of the record from which the event was
    read. The headers of the caller follow those of the event.

    Decoding reads a record as `from_kafka` does with `profile`. A tombstone is None. Any other
    record that is no event, or of an unknown event format or specversion, raises CloudEventError,
    so it is undecodable.
    """

    __slots__ = ("_event_format", "_key_mapper", "_mode", "_profile", "_repeat_attributes")

    #: A null value may be an event without data, so the codec gets nulls, too.
    takes_null = True

    def __init__(
        self,
        mode: Mode | None = None,
        *,
        profile: Profile = DEFAULT,
        event_format: EventFormat | None = None,
        key_mapper: KeyMapper | None = None,
        repeat_attributes: bool = False,
    ) -> None:
        self._mode: Mode | None = mode
        self._profile = profile
        self._event_format = event_format
        self._key_mapper = key_mapper
        self._repeat_attributes = repeat_attributes

    def encode(self, event: CloudEvent, context: _EncodeContext, /) -> bytes | None:
        """Returns the value of the event's record, and sets headers and key in `context`.

        None, a tombstone, has no headers of its own. Raises CloudEventError for an event that
        cannot be written.
        """
        if event is None:
            return None  # type: ignore[unreachable]  # a null, for which the type has no place
        has_key = context.key is not None
        key, value, headers = to_kafka(
            event,
            self._mode,
            key_mapper=None if has_key else self._key_mapper,
            headers=context.headers,
            event_format=self._event_format,
            repeat_attributes=self._repeat_attributes,
        )
        context.headers[:] = headers
        if not has_key:
            context.key = key
        return value

    def decode(self, data: bytes | None, context: _DecodeContext, /) -> CloudEvent:
        """Returns the event of a record, and None for a tombstone.

        Raises CloudEventError for a record that is no event, or none that can be read.
        """
        record = context.record
        found = from_kafka(record.key, data, record.headers, profile=self._profile)
        if isinstance(found, CloudEvent):
            return found
        if isinstance(found, NotAnEvent) and found.tombstone:
            return None  # type: ignore[return-value]  # as for any codec, a null is None
        raise CloudEventError(found.reason)
