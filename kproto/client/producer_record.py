"""Records to send: `ProducerRecord`, encoded records, and objects that convert to a record."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias

from ..records.type_variables import K, V
from ..wire.errors import EncodeError

__all__ = [
    "ContentMode",
    "EncodedRecords",
    "EventRecord",
    "Headers",
    "ProducerRecord",
    "SupportsKafkaRecord",
    "as_record",
    "check_many",
    "record_of_event",
]

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


class ProducerRecord(NamedTuple, Generic[K, V]):
    """A record to send.

    `timestamp` is in ms; None is the present time. If `partition` is None, the hash of the key
    determines the partition; a record without a key goes to the sticky partition (KIP-480). Key and
    value are bytes, or what the codecs of the producer encode. In annotations, `ProducerRecord` is
    a record of bytes, and `ProducerRecord[str, Order]` a record for codecs.
    """

    value: V | None
    key: K | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
    ProducerRecord.__class_getitem__ = classmethod(GenericAlias)


def as_record(value: bytes | ProducerRecord | None) -> ProducerRecord:
    """Returns `value`, an element of the argument of `send_many`, as a ProducerRecord."""
    return value if isinstance(value, ProducerRecord) else ProducerRecord(value)


def check_many(name: str, values: object, *, one: str, of_one: str) -> None:
    """Raises TypeError if `values` is not an iterable of records or events.

    For the error text, `name` is the name of the argument, `one` is the word for one element, and
    `of_one` is the method that sends a single element. A mapping, a str and bytes are refused
    although they can be iterated, because their keys, characters and numbers are no records.
    """
    hint = f"pass a list of {one}s, or use {of_one} for one {one}"
    is_single = isinstance(values, ProducerRecord) or hasattr(values, "to_kafka_record")
    if is_single:
        raise TypeError(f"{name} is one {one}: {hint}")
    if isinstance(values, Mapping):
        raise TypeError(f"{name} is a mapping, whose keys are no {one}s: {hint}")
    if isinstance(values, str | bytes | bytearray | memoryview):
        raise TypeError(f"{name} is a single {type(values).__name__}: {hint}")
    if isinstance(values, AsyncIterable):
        raise TypeError(
            f"{name} is an async iterator: collect its {one}s in a list, or await {of_one} for each"
        )
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} is of type {type(values).__name__}: {hint}")


class EncodedRecords(NamedTuple):
    """The encoded records of one batch: `count` records in `data`, uncompressed.

    The bytes are those of records in a batch of magic 2 (KIP-98): offset deltas 0, 1, 2 …,
    timestamp deltas 0. `timestamp` is the timestamp of all records, in ms; None is the present
    time. The bytes are not validated: the broker or a consumer may refuse invalid bytes.
    """

    data: bytes
    count: int  # type: ignore[assignment]  # a tuple has a method of that name
    timestamp: int | None = None


ContentMode: TypeAlias = Literal["binary", "structured"]


class SupportsKafkaRecord(Protocol):
    """An object that converts to a record: an event of `kproto_cloudevents`, or your own class."""

    def to_kafka_record(
        self, mode: ContentMode | None = None, **options: Any
    ) -> tuple[bytes | None, bytes | None, Headers]:
        """Returns the key, value and headers of a record that represents this object.

        For brokers before Kafka 0.11, which cannot store headers, `options` has `message_format`
        (0 or 1), and the record must have no headers.
        """
        ...


class EventRecord(ProducerRecord):
    """The record of an event, for brokers whose record format is not known yet.

    If the brokers are older than Kafka 0.11, `without_headers` replaces the record.
    """

    event: SupportsKafkaRecord
    mode: ContentMode | None
    options: Mapping[str, Any]

    def without_headers(self, message_format: int) -> ProducerRecord:
        """Returns the event's record for `message_format` 0 or 1.

        Raises the error of an event that cannot be such a record.
        """
        key, value, headers = record_of_event(self.event, self.mode, self.options, message_format)
        return ProducerRecord(value, key, headers, self.timestamp, self.partition)


def record_of_event(
    event: SupportsKafkaRecord,
    mode: ContentMode | None,
    options: Mapping[str, Any],
    message_format: int = 2,
) -> tuple[bytes | None, bytes | None, Headers]:
    """Returns key, value and headers of an event, for batches of magic `message_format`.

    Raises EncodeError for an object that is no event, and the error of an event that cannot be
    converted.
    """
    if isinstance(event, type) or not callable(getattr(event, "to_kafka_record", None)):
        given = event.__name__ if isinstance(event, type) else type(event).__name__
        raise EncodeError(
            f"{given} is no event to be sent, because it has no to_kafka_record(): "
            "send its key, value and headers by `send`"
        )
    if message_format < 2:
        options = {"message_format": message_format, **options}
    return event.to_kafka_record(mode, **options)
