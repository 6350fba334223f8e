"""CloudEvents for Kafka records, exact and lossless.

A record is plain data: key, value, and headers `(str, bytes | None)` in their order. The package
imports the standard library alone and opens no socket, so that it goes with any Kafka client.

    from kproto_cloudevents import CloudEvent, from_kafka, to_kafka

    record = to_kafka(CloudEvent(id="1", source="/shop", type="order.placed", data={"total": 12}))
    event = from_kafka(record.key, record.value, record.headers)

`from_kafka` gives a `CloudEvent`, an `OpaqueEvent` (to be forwarded, not read) or `NotAnEvent`;
whatever is wrong with a record that claims to be an event is a `CloudEventError`.
"""

from __future__ import annotations

from .data import JSON_NULL, JsonNull
from .errors import CloudEventError, CloudEventWarning, UnknownFormatError, UnknownVersionError
from .event import CloudEvent
from .formats import JSON_FORMAT, EventFormat, register_format
from .json_format import from_json, from_json_batch, to_json, to_json_batch
from .kafka import from_kafka, from_kafka_many, kafka_record, partition_key, to_kafka
from .lazy import LazyEvent, lazy_from_kafka
from .record import (
    DEFAULT,
    LENIENT,
    STRICT,
    Header,
    InvalidEvent,
    KafkaRecord,
    KeyMapper,
    Mode,
    NotAnEvent,
    OpaqueEvent,
    Profile,
)
from .stream import ReadableRecord, Received, events
from .types import AttributeInput, AttributeValue, JsonMap, Timestamp, Uri, UriReference

__all__ = [
    "DEFAULT",
    "JSON_FORMAT",
    "JSON_NULL",
    "LENIENT",
    "STRICT",
    "AttributeInput",
    "AttributeValue",
    "CloudEvent",
    "CloudEventError",
    "CloudEventWarning",
    "EventFormat",
    "Header",
    "InvalidEvent",
    "JsonMap",
    "JsonNull",
    "KafkaRecord",
    "KeyMapper",
    "LazyEvent",
    "Mode",
    "NotAnEvent",
    "OpaqueEvent",
    "Profile",
    "ReadableRecord",
    "Received",
    "Timestamp",
    "UnknownFormatError",
    "UnknownVersionError",
    "Uri",
    "UriReference",
    "events",
    "from_json",
    "from_json_batch",
    "from_kafka",
    "from_kafka_many",
    "kafka_record",
    "lazy_from_kafka",
    "partition_key",
    "register_format",
    "to_json",
    "to_json_batch",
    "to_kafka",
]
