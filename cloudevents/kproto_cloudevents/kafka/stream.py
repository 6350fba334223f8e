"""Reads events from any async iterable of records, and yields each event with its record.

    async for received in events(client.consumer("orders", start="earliest")):
        match received.outcome:
            case CloudEvent() as event:
                print(received.record.offset, event.type)

The records may come from any client: they need a key, a value and headers. This module imports no
client and starts no task.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from ..errors import CloudEventError
from ..event.cloud_event import CloudEvent
from ..protocol_binding import DEFAULT, Mode, Profile
from .outcomes import InvalidEvent, NotAnEvent, OpaqueEvent, invalid_event
from .reading import from_kafka
from .record import Header

__all__ = ["ReadableRecord", "Received", "event_of", "events"]


class ReadableRecord(Protocol):
    """A record of any Kafka client. Each header is a pair of name and value."""

    @property
    def key(self) -> bytes | None:
        """Returns the key; None is null."""

    @property
    def value(self) -> bytes | None:
        """Returns the value; None is null."""

    @property
    def headers(self) -> Sequence[Header] | None:
        """Returns the headers in order, with duplicates; None means no headers."""


@runtime_checkable
class _Closable(Protocol):
    """An async iterator that can be closed, such as an async generator."""

    async def aclose(self) -> None:
        """Closes the iterator."""


RecordT = TypeVar("RecordT", bound=ReadableRecord)


class Received(NamedTuple, Generic[RecordT]):
    """The result of reading a record, and the record as its client returned it."""

    outcome: CloudEvent | OpaqueEvent | NotAnEvent | InvalidEvent
    record: RecordT

    def __repr__(self) -> str:
        # The repr of a client's record may show data.
        return f"Received(outcome={self.outcome!r}, record=<{type(self.record).__name__}>)"


async def events(
    records: AsyncIterable[RecordT], *, mode: Mode | None = None, profile: Profile = DEFAULT
) -> AsyncGenerator[Received[RecordT], None]:
    """Reads every record as `from_kafka` does, and yields the result with the record.

    A record for which `from_kafka` raises CloudEventError becomes an `InvalidEvent`, so that the
    record does not end the stream. Pass `mode="structured"` for topics of message format 0 or 1,
    whose records have no headers. Exceptions of `records` propagate. When this generator ends or is
    closed, it closes the iterator of `records`.
    """
    source = aiter(records)
    try:
        async for record in source:
            yield Received(_outcome(record, mode, profile), record)
    finally:
        if isinstance(source, _Closable):
            await source.aclose()


def event_of(
    record: ReadableRecord, *, mode: Mode | None = None, profile: Profile = DEFAULT
) -> CloudEvent:
    """Returns the event in a record, for applications that handle events only.

        await consumer.run(handle, decode=event_of, dead_letter_topic="orders.dead")

    Raises CloudEventError for a record that is not an event, for an unknown event format or
    specversion, and for a record that claims to be an event but breaks a rule.
    """
    outcome = from_kafka(record.key, record.value, record.headers, mode=mode, profile=profile)
    match outcome:
        case CloudEvent():
            return outcome
        case OpaqueEvent():
            raise CloudEventError(f"an event that cannot be read: {outcome.reason}")
        case NotAnEvent():
            raise CloudEventError(f"no event: {outcome.reason}")


def _outcome(
    record: ReadableRecord, mode: Mode | None, profile: Profile
) -> CloudEvent | OpaqueEvent | NotAnEvent | InvalidEvent:
    key, value, headers = record.key, record.value, record.headers
    try:
        return from_kafka(key, value, headers, mode=mode, profile=profile)
    except CloudEventError as error:
        return invalid_event(key, value, headers, error)
