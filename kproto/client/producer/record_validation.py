"""Validates the records of a user, without topics and batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from ...records import MAX_TIMESTAMP_MS
from ...wire.buffers import octets_of_record
from ...wire.errors import EncodeError
from ..producer_record import Headers, ProducerRecord

__all__ = [
    "CompressionName",
    "EncodedRecords",
    "Headers",
    "ProducerRecord",
    "SupportsKafkaRecord",
    "as_record",
    "checked_bytes",
    "checked_headers",
    "checked_timestamp",
    "record_of_event",
]

CompressionName: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]


def as_record(value: bytes | ProducerRecord | None) -> ProducerRecord:
    """Returns an element of `send_many` as a record."""
    return value if isinstance(value, ProducerRecord) else ProducerRecord(value)


class EncodedRecords(NamedTuple):
    """The encoded records of one batch: `count` records in `data`, uncompressed.

    The bytes are those of records in a batch of magic 2 (KIP-98): offset deltas 0, 1, 2 …,
    timestamp deltas 0. `timestamp` is that of all records, in ms; now by default. The bytes are not
    validated: the broker or a consumer may refuse invalid bytes.
    """

    data: bytes
    count: int  # type: ignore[assignment]  # a tuple has a method of that name
    timestamp: int | None = None


class SupportsKafkaRecord(Protocol):
    """An object that returns a record: an event of `kproto_cloudevents`, or of your own class."""

    def to_kafka_record(
        self, mode: Literal["binary", "structured"] | None = None, **options: Any
    ) -> tuple[bytes | None, bytes | None, Headers]:
        """Returns key, value and headers of the record."""
        ...


def record_of_event(
    event: SupportsKafkaRecord,
    mode: Literal["binary", "structured"] | None,
    options: Mapping[str, Any],
) -> tuple[bytes | None, bytes | None, Headers]:
    """Returns key, value and headers of an event.

    Raises EncodeError for an object that is no event.
    """
    if isinstance(event, type) or not callable(getattr(event, "to_kafka_record", None)):
        given = event.__name__ if isinstance(event, type) else type(event).__name__
        raise EncodeError(
            f"{given} is no event to be sent, because it has no to_kafka_record(): "
            "send its key, value and headers by `send`"
        )
    return event.to_kafka_record(mode, **options)


def checked_bytes(what: str, value: object) -> bytes:
    """Returns a copy of a bytes-like value, because its owner may change it. Raises EncodeError."""
    try:
        return octets_of_record(value)
    except (TypeError, ValueError) as error:
        raise EncodeError(f"the {what} of a record is bytes or None: {error}") from None


def checked_timestamp(timestamp: object) -> int:
    """Returns the timestamp, in ms. Raises EncodeError."""
    if type(timestamp) is not int or not 0 <= timestamp <= MAX_TIMESTAMP_MS:
        raise EncodeError(f"timestamp {timestamp!r} of a record is no time in ms since 1970")
    return timestamp


def checked_headers(headers: Headers) -> Headers:
    """Returns the headers as a tuple. Raises EncodeError."""
    try:
        found = tuple((name, value) for name, value in headers)
        for name, value in found:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is no str")
            name.encode()
            if value is not None and type(value) is not bytes:
                checked_bytes("header", value)
    except (AttributeError, TypeError, ValueError) as error:
        raise EncodeError(
            f"headers of a record are pairs of str and bytes or None: {error}"
        ) from None
    return found
